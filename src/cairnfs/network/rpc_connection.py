"""A blocking connection over Hadoop RPC: one call at a time.

Whether to call again, and whom, is for the caller to know.
"""

from __future__ import annotations

import itertools
import socket
from collections.abc import Iterator
from contextlib import suppress

from google.protobuf.message import Message

from cairnfs.errors import HdfsError, IOException
from cairnfs.network.address import Address
from cairnfs.network.sockets import is_stale, open_socket
from cairnfs.wire.protocols import Method, Protocol
from cairnfs.wire.rpc import Closed
from cairnfs.wire.rpc_client import ClientConnection, ClientEvent, Failure, Reply

_RECEIVE_BYTES = 64 << 10
_CALL_ID_MASK = 0x7FFFFFFF


class NoAnswer(IOException):
    """Nobody knows whether the call was done; its cause is what the network said."""


def make_call_ids() -> Iterator[int]:
    """Ids for the calls of one client, which any thread may take: 0, 1, and so on."""
    return map(_CALL_ID_MASK.__and__, itertools.count())


class RpcConnection:
    """One connection, to be closed once it `is_broken`."""

    def __init__(
        self,
        address: Address,
        protocol: Protocol,
        client_id: bytes,
        user: str,
        timeout_s: float,
        real_user: str | None = None,
    ) -> None:
        """`real_user` is who acts in the name of `user`, if that is somebody else."""
        self.address = address
        self.is_broken = False
        self._machine = ClientConnection(protocol, client_id, user, real_user)
        try:
            self._socket = open_socket(address, connect_timeout_s=timeout_s, timeout_s=timeout_s)
        except OSError as error:
            raise NoAnswer(str(error)) from error
        self._opening = self._machine.encode_opening()

    def call(self, call_id: int, method: Method, request: Message, retry_count: int = 0) -> Message:
        """Send and wait; raises what the server answers, or NoAnswer."""
        self.is_broken = True  # unless there is an answer
        data = self._machine.encode_call(call_id, method, request, retry_count)
        opening, self._opening = self._opening, b""
        try:
            self._socket.sendall(opening + data if opening else data)
            event = self._receive()
        except BlockingIOError:
            late = TimeoutError(f"{self.address} did not answer {method.name} in time")
            raise NoAnswer(str(late)) from late
        except NoAnswer:
            raise
        except OSError as error:
            raise NoAnswer(str(error)) from error
        match event:
            case Reply():
                self.is_broken = False
                return event.response
            case Failure():
                self.is_broken = False
                raise event.error
            case Closed(error=HdfsError() as refusal):
                raise refusal
            case Closed():
                hint = "an HTTP port? RPC is usually 8020"
                raise IOException(f"{self.address} does not speak RPC: {event.error} ({hint})")

    def _receive(self) -> ClientEvent:
        while True:
            data = self._socket.recv(_RECEIVE_BYTES)
            if not data:
                raise NoAnswer(f"{self.address} closed the connection")
            for event in self._machine.receive_data(data):
                return event

    def is_stale(self) -> bool:
        """Whether the server has closed an idle connection, as it may."""
        return is_stale(self._socket)

    def interrupt(self) -> None:
        """End a call that another thread waits for."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._socket.close()
