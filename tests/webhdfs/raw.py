"""HTTP as no library would send it."""

from __future__ import annotations

import socket
from contextlib import suppress

TIMEOUT_S = 20.0


def connect(address: str) -> socket.socket:
    host, _, port = address.rpartition(":")
    return socket.create_connection((host, int(port)), timeout=TIMEOUT_S)


def exchange(address: str, sent: bytes) -> bytes:
    """Send these bytes; what comes back until the server closes or has nothing more to say."""
    with connect(address) as sock:
        return exchange_on(sock, sent)


def exchange_on(sock: socket.socket, sent: bytes, *, has_body: bool = True) -> bytes:
    """The same on a connection that stays open; reads one response, with its body if it has one."""
    with suppress(BrokenPipeError, ConnectionResetError):  # it has heard enough
        sock.sendall(sent)
    received = b""
    while not is_whole(received, has_body=has_body):
        try:
            data = sock.recv(65536)
        except ConnectionResetError:
            break
        if not data:
            break
        received += data
    return received


def is_whole(response: bytes, *, has_body: bool = True) -> bool:
    """Whether there is a response with as much of a body as it promises."""
    head, end, body = response.partition(b"\r\n\r\n")
    if not end or not has_body:
        return bool(end)
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            return len(body) >= int(line.partition(b":")[2])
    return False


def status_of(response: bytes) -> int:
    """0 if there was none."""
    return int(response[9:12]) if response.startswith(b"HTTP/1.") else 0
