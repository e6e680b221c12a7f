"""Ports on this machine that nobody listens on."""

from __future__ import annotations

import errno
import socket
from collections.abc import Collection

from cairnfs.cli.errors import CommandError

HOST = "127.0.0.1"
PORT_MAX = 65535


def is_free(port: int) -> bool:
    """Whether a server could listen there now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as sock:
        # As servers do: the remains of closed connections are not in the way.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind((HOST, port))
        except OSError as error:
            if error.errno == errno.EACCES:
                raise CommandError(f"port {port} is root's; choose one above 1023") from None
            return False
    return True


def choose_port(first: int, taken: Collection[int]) -> int:
    """The first free port from `first` on that is not among those `taken` already."""
    for port in range(first, PORT_MAX + 1):
        if port not in taken and is_free(port):
            return port
    raise CommandError(f"no port from {first} on is free; name a lower one with --base-port")
