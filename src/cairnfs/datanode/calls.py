"""Blocking calls over Hadoop RPC: one connection, one call at a time."""

from __future__ import annotations

import select
import socket
import threading
import uuid

from google.protobuf.message import Message

from cairnfs.datanode.connection import SocketTimeout
from cairnfs.errors import EOFException, HdfsError, IOException
from cairnfs.network.address import Address
from cairnfs.wire.protocols import Protocol
from cairnfs.wire.rpc import Closed
from cairnfs.wire.rpc_client import ClientConnection, ClientEvent, Failure, Reply

_RECEIVE_BYTES = 64 << 10


class RpcCaller:
    """Calls one server; connects when there is something to say, and again after a failure.

    Errors of the server are raised as they are, those of the network as OSError: then
    nobody knows whether the call was done.
    """

    def __init__(
        self, address: Address, protocol: Protocol, user: str, timeout_s: float = 60.0
    ) -> None:
        self.address = address
        self._protocol = protocol
        self._user = user
        self._timeout_s = timeout_s
        self._client_id = uuid.uuid4().bytes
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self._machine: ClientConnection | None = None
        self._call_id = 0

    def call(self, method: str, request: Message) -> Message:
        """Call and wait for the answer."""
        with self._lock:
            if self._socket is not None and self._is_stale():
                self._disconnect()
            try:
                return self._exchange(method, request)
            except TimeoutError as error:
                self._disconnect()
                raise SocketTimeout(f"{self.address} did not answer {method} in time") from error
            except EOFException:
                self._disconnect()
                raise
            except HdfsError:
                raise  # an answer as good as any; the connection goes on
            except OSError:
                self._disconnect()
                raise

    def close(self) -> None:
        with self._lock:
            self._disconnect()

    def interrupt(self) -> None:
        """End a call that another thread waits for."""
        sock = self._socket
        if sock is not None:
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                return

    def _exchange(self, method: str, request: Message) -> Message:
        if self._socket is None or self._machine is None:
            self._connect()
        sock, machine = self._socket, self._machine
        assert sock is not None
        assert machine is not None
        self._call_id = self._call_id + 1 & 0x7FFFFFFF
        sock.sendall(machine.encode_call(self._call_id, self._protocol[method], request))
        while True:
            data = sock.recv(_RECEIVE_BYTES)
            if not data:
                raise EOFException(f"{self.address} closed the connection")
            for event in machine.receive_data(data):
                return self._answer(event)

    def _answer(self, event: ClientEvent) -> Message:
        match event:
            case Reply(response=response):
                return response
            case Failure(error=error):
                raise error
            case Closed(error=error):
                self._disconnect()
                if isinstance(error, HdfsError):
                    raise error
                raise IOException(f"{self.address} does not speak RPC: {error}")

    def _connect(self) -> None:
        self._socket = socket.create_connection(
            (self.address.host, self.address.port), self._timeout_s
        )
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._machine = ClientConnection(self._protocol, self._client_id, self._user)
        self._socket.sendall(self._machine.encode_opening())

    def _is_stale(self) -> bool:
        """Whether the server has closed an idle connection, as it may."""
        assert self._socket is not None
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        return bool(poll.poll(0))  # its end, or something that nobody has asked for

    def _disconnect(self) -> None:
        if self._socket is not None:
            self._socket.close()
        self._socket = self._machine = None
