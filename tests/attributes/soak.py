"""Random operations on the product, beside the magician, for as long as one likes.

    python -m tests.attributes.soak --comparisons 1000000
    python -m tests.attributes.soak --store postgres --seed 7

Operations, snapshots, roll-backs and clones among them, go to a NameNode in this process; after
each, every attribute of every inode is compared, in every snapshot, too.  Now and then it is the
root itself in which that happens.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import time
from collections.abc import Iterator

from tests.attributes.exploring import Difference, Tally, wander
from tests.attributes.product import Embedded, open_embedded

from cairnfs.config import Control
from cairnfs.testing.postgres_server import PostgresServer

ROUND = 20_000  # comparisons with one namespace
TOLD_EVERY_S = 20.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--comparisons", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--store", choices=("sqlite", "postgres"), default="sqlite")
    parser.add_argument("--control", type=Control, choices=list(Control), default="optimistic")
    given = parser.parse_args()
    began = told = time.monotonic()
    total = Tally()
    seed = given.seed
    with contextlib.ExitStack() as stack:
        server = None
        if given.store == "postgres":
            server = stack.enter_context(PostgresServer(durable=False))
        while total.comparisons < given.comparisons:
            at_root = seed % 4 == 0
            try:
                with _system(server, given.control, seed, at_root=at_root) as system:
                    found = wander(system, seed, ROUND)
            except Difference as difference:
                print(f"seed {seed}, at_root={at_root}: {difference}")
                return 1
            seed += 1
            total.sequences += found.sequences
            total.operations += found.operations
            total.comparisons += found.comparisons
            total.cut_short += found.cut_short
            if time.monotonic() > told + TOLD_EVERY_S:
                told = time.monotonic()
                _tell(total, told - began)
    _tell(total, time.monotonic() - began)
    return 0


@contextlib.contextmanager
def _system(
    server: PostgresServer | None, control: Control, seed: int, *, at_root: bool
) -> Iterator[Embedded]:
    name = f"soak_{seed}"
    url = "" if server is None else server.create_database(name)
    with open_embedded(url, control, at_root=at_root) as system:
        yield system
    if server is not None:
        server.drop_database(name)


def _tell(total: Tally, seconds: float) -> None:
    print(
        f"{total.comparisons:,} comparisons of {total.operations:,} operations in"
        f" {total.sequences:,} walks, {total.comparisons / seconds:,.0f} a second: no difference",
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
