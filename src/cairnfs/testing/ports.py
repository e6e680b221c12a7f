"""Ports for the nodes of tests, which no other test process on this machine chooses.

A process claims a stretch of ports by the name of a Unix socket, and walks through it: a port
that was given out is not given out again until all the others have been, so that a node that
starts slowly, or that a test has stopped for a while, finds its own still free.

Invariant: two live processes never hold one stretch; the system takes the claim back when its
process ends, however that ends.
"""

from __future__ import annotations

import functools
import itertools
import random
import socket
from collections.abc import Iterator, Sequence

HOST = "127.0.0.1"
# Below those that the system gives to connections.
PORTS = range(20_000, 32_000)
STRETCH = 500


def choose_free_ports(count: int) -> list[int]:
    """Ports that nobody listens on, and that no node of another test process will."""
    return list(itertools.islice(_free_ports(), count))


@functools.cache
def _free_ports() -> Iterator[int]:
    return filter(_is_free, itertools.cycle(_claim_stretch()))


def _claim_stretch() -> Sequence[int]:
    starts = range(0, len(PORTS), STRETCH)
    for start in random.SystemRandom().sample(starts, len(starts)):
        claim = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            claim.bind(f"\0cairnfs-test-ports-{start}")
        except OSError:
            claim.close()
            continue
        claim.detach()  # from here on, the end of the process closes it and nothing else
        return PORTS[start : start + STRETCH]
    raise RuntimeError(f"{len(starts)} test processes have ports already: end one of them")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True
