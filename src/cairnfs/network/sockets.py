"""Blocking sockets with timeouts of the kernel.

Python's own timeouts would cost a poll for each call; SO_RCVTIMEO and SO_SNDTIMEO cost
nothing.  Every failure here is an OSError that is no answer of a server's: whoever called
knows that the peer, or the way to it, is at fault.
"""

from __future__ import annotations

import select
import socket
import struct
from collections.abc import Sequence

from cairnfs.errors import EOFException, IOException
from cairnfs.network.address import Address

_TIMEVAL = struct.Struct("@ll")


class PeerTimeout(IOException, TimeoutError):
    """A peer neither sent nor took anything in time."""


class PeerClosed(EOFException, ConnectionError):
    """A peer closed the connection when more was to come."""


def open_socket(address: Address, *, connect_timeout_s: float, timeout_s: float) -> socket.socket:
    """Connect; what is then sent and received may take `timeout_s` at a time."""
    try:
        sock = socket.create_connection(address, connect_timeout_s)
    except TimeoutError as error:
        raise PeerTimeout(f"no connection to {address} in {connect_timeout_s:.0f} s") from error
    except OSError as error:
        raise type(error)(error.errno, f"{error.strerror}: {address}") from error
    try:
        sock.setblocking(True)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        set_timeouts(sock, read_s=timeout_s, write_s=timeout_s)
    except OSError:
        sock.close()
        raise
    return sock


def set_timeouts(
    sock: socket.socket, *, read_s: float | None = None, write_s: float | None = None
) -> None:
    """How long a peer may neither send nor take anything; None leaves it as it is."""
    for option, seconds in ((socket.SO_RCVTIMEO, read_s), (socket.SO_SNDTIMEO, write_s)):
        if seconds is not None:
            value = _TIMEVAL.pack(int(seconds), int(seconds % 1 * 1_000_000))
            sock.setsockopt(socket.SOL_SOCKET, option, value)


def send_all(sock: socket.socket, buffers: Sequence[bytes | memoryview]) -> None:
    """Send every byte of these, one after the other."""
    total = sum(map(len, buffers))
    try:
        sent = sock.sendmsg(buffers)
        if sent < total:
            for buffer in buffers:
                if sent < len(buffer):
                    sock.sendall(memoryview(buffer)[sent:])
                sent = max(0, sent - len(buffer))
    except BlockingIOError:
        raise PeerTimeout("nothing was taken in time") from None


def receive_some(sock: socket.socket, view: memoryview) -> int:
    """At least one byte into `view`; how many."""
    try:
        count = sock.recv_into(view)
    except BlockingIOError:
        raise PeerTimeout("nothing was received in time") from None
    if count == 0:
        raise PeerClosed("the connection was closed")
    return count


def receive_all(sock: socket.socket, views: list[memoryview]) -> None:
    """Fill all of these, one after the other, by one call if possible."""
    while True:
        try:
            count = sock.recvmsg_into(views, 0, socket.MSG_WAITALL)[0]
        except BlockingIOError:
            raise PeerTimeout("nothing was received in time") from None
        if count == 0 and any(views):
            raise PeerClosed("the connection was closed")
        while views and count >= len(views[0]):
            count -= len(views.pop(0))
        if not views:
            return
        views[0] = views[0][count:]


def is_stale(sock: socket.socket) -> bool:
    """Whether the peer has closed a connection that was idle, as it may."""
    poll = select.poll()
    poll.register(sock, select.POLLIN)
    return bool(poll.poll(0))  # its end, or something that nobody has asked for
