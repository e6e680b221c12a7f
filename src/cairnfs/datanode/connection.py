"""A blocking connection for block transfer: a socket and its receive buffer.

Timeouts are the kernel's (`network.sockets`).  A peer that stalls costs its own thread and
nobody else's.
"""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Sequence
from contextlib import suppress
from typing import TypeVar

from google.protobuf.message import Message

from cairnfs.errors import EOFException, IOException
from cairnfs.network.address import Address
from cairnfs.network.sockets import set_timeouts
from cairnfs.wire.packets import Ack, Packet
from cairnfs.wire.receive_buffer import ReceiveBuffer
from cairnfs.wire.transfer import Request

_M = TypeVar("_M", bound=Message)
_SENDFILE_BYTES_MAX = 0x7FFFF000


class SocketTimeout(IOException, java_class="java.net.SocketTimeoutException"):
    """The peer neither sent nor took anything in time."""


class Connection:
    """One peer.  `shutdown` may be called by any thread, the rest by one reader and one
    writer at a time."""

    def __init__(
        self, sock: socket.socket, *, read_timeout_s: float, write_timeout_s: float
    ) -> None:
        sock.setblocking(True)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        self._socket = sock
        self._buffer = ReceiveBuffer()
        self.set_timeouts(read_s=read_timeout_s, write_s=write_timeout_s)

    @classmethod
    def connect(
        cls,
        address: Address,
        *,
        connect_timeout_s: float,
        read_timeout_s: float,
        write_timeout_s: float,
    ) -> Connection:
        try:
            sock = socket.create_connection(address, connect_timeout_s)
        except TimeoutError as error:
            raise SocketTimeout(
                f"no connection to {address} in {connect_timeout_s:.0f} s"
            ) from error
        return cls(sock, read_timeout_s=read_timeout_s, write_timeout_s=write_timeout_s)

    def set_timeouts(self, *, read_s: float | None = None, write_s: float | None = None) -> None:
        set_timeouts(self._socket, read_s=read_s, write_s=write_s)

    def expect_packets(self, buffer_bytes: int) -> None:
        """Make room for several packets; what was received stays."""
        self._buffer = ReceiveBuffer.grown_from(self._buffer, buffer_bytes)

    # Receiving.

    def read_request(self) -> Request | None:
        """The next operation, or None if the peer has closed the connection instead."""
        while (request := self._buffer.take_request()) is None:
            if not self._fill():
                if len(self._buffer):
                    raise EOFException("the connection was closed within a request")
                return None
        return request

    def read_message(self, message_type: type[_M]) -> _M:
        while (message := self._buffer.take_message(message_type)) is None:
            self._fill_or_fail()
        return message

    def read_ack(self) -> Ack:
        while (ack := self._buffer.take_ack()) is None:
            self._fill_or_fail()
        return ack

    def read_acks(self) -> list[Ack]:
        """At least one, and all others that have arrived."""
        acks = [self.read_ack()]
        while (ack := self._buffer.take_ack()) is not None:
            acks.append(ack)
        return acks

    def read_packets(self) -> list[Packet]:
        """At least one, and all others that have arrived; good until the next call."""
        while not (packets := self._buffer.take_packets()):
            self._fill_or_fail()
        return packets

    def read_exactly(self, count: int) -> bytes:
        while (taken := self._buffer.take_bytes(count)) is None:
            self._fill_or_fail()
        return taken

    def _fill(self) -> bool:
        try:
            count = self._socket.recv_into(self._buffer.space())
        except BlockingIOError:
            raise SocketTimeout("nothing was received in time") from None
        self._buffer.received(count)
        return count > 0

    def _fill_or_fail(self) -> None:
        if not self._fill():
            raise EOFException("the connection was closed")

    # Sending.

    def send(self, data: bytes, *, more: bool = False) -> None:
        """Send all of it.  `more` follows at once, and may share a segment."""
        self.send_all((data,), socket.MSG_MORE if more else 0)

    def send_all(self, buffers: Sequence[bytes | memoryview], flags: int = 0) -> None:
        try:
            sent = self._socket.sendmsg(buffers, (), flags)
            total = sum(map(len, buffers))
            if sent < total:
                rest = memoryview(b"".join(buffers))[sent:]
                while rest:
                    rest = rest[self._socket.send(rest, flags) :]
        except BlockingIOError:
            raise SocketTimeout("nothing was taken in time") from None

    def send_file(self, fd: int, offset: int, count: int) -> None:
        """Send a part of a file, without a copy of it in this process."""
        out = self._socket.fileno()
        while count:
            try:
                sent = os.sendfile(out, fd, offset, min(count, _SENDFILE_BYTES_MAX))
            except BlockingIOError:
                raise SocketTimeout("nothing was taken in time") from None
            if sent == 0:
                raise FileTooShort(f"the file ends {count} bytes too early, at {offset}")
            offset += sent
            count -= sent

    # The end.

    def shutdown(self) -> None:
        """Make whoever reads or writes here find the end."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._socket.close()

    @property
    def is_local(self) -> bool:
        """Whether the peer is on this machine."""
        try:
            return bool(self._socket.getpeername()[0] == self._socket.getsockname()[0])
        except OSError:
            return False

    @property
    def peer(self) -> str:
        try:
            host, port = self._socket.getpeername()[:2]
        except OSError:
            return "a closed connection"
        return f"{host}:{port}"


class FileTooShort(IOException):
    """A block file has lost its end."""


def is_disconnect(error: BaseException) -> bool:
    """Whether the peer just went away, which is its right."""
    if isinstance(error, EOFException | SocketTimeout | ConnectionError):
        return True
    return isinstance(error, OSError) and error.errno in (errno.EPIPE, errno.EBADF, errno.ENOTCONN)
