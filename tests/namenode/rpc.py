"""A server on a scratch namespace, and the simplest client of Hadoop RPC."""

from __future__ import annotations

import itertools
import os
import socket
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self

from google.protobuf.message import Message

from cairnfs.namenode.__main__ import SERVICES
from cairnfs.namenode.groups import UnixGroups
from cairnfs.namenode.server import RpcServer
from cairnfs.testing.scratch import SUPERUSER, ScratchClient
from cairnfs.wire.protocols import CLIENT_PROTOCOL, Protocol
from cairnfs.wire.rpc import Closed
from cairnfs.wire.rpc_client import ClientConnection, Failure, Reply

TIMEOUT_S = 20.0


class FixedGroups(UnixGroups):
    """Groups that the machine of a test need not know."""

    def __init__(self, **groups: tuple[str, ...]) -> None:
        super().__init__()
        self.groups = groups

    def of(self, user: str) -> tuple[str, ...]:
        return self.groups.get(user, ())


class RunningServer:
    """A server's port, and the means to look behind it."""

    def __init__(self, scratch: ScratchClient, server: RpcServer, port: int) -> None:
        self.scratch = scratch
        self.server = server
        self.port = port

    def connect(
        self,
        user: str = SUPERUSER,
        real_user: str | None = None,
        protocol: Protocol = CLIENT_PROTOCOL,
    ) -> RpcClient:
        return RpcClient(self.port, user, real_user, protocol)

    def connect_socket(self) -> socket.socket:
        sock = socket.create_connection(("127.0.0.1", self.port), TIMEOUT_S)
        sock.settimeout(TIMEOUT_S)
        return sock


@contextmanager
def running_server(
    scratch: ScratchClient, groups: UnixGroups | None = None, impersonators: Iterable[str] = ()
) -> Iterator[RunningServer]:
    """Serve the scratch namespace on a free port."""
    server = RpcServer(
        scratch.namenode.namenode, SERVICES, groups=groups, impersonators=impersonators
    )
    port = scratch.namenode.wait(server.start("127.0.0.1", 0))
    try:
        yield RunningServer(scratch, server, port)
    finally:
        scratch.namenode.wait(server.stop())


class RpcClient:
    """One connection; each call waits for its answer."""

    def __init__(
        self,
        port: int,
        user: str = SUPERUSER,
        real_user: str | None = None,
        protocol: Protocol = CLIENT_PROTOCOL,
    ) -> None:
        self.client_id = os.urandom(16)
        self.protocol = protocol
        self.socket = socket.create_connection(("127.0.0.1", port), TIMEOUT_S)
        self.socket.settimeout(TIMEOUT_S)
        self.machine = ClientConnection(protocol, self.client_id, user, real_user)
        self._ids = itertools.count()
        self._answers: dict[int, Reply | Failure] = {}
        self.socket.sendall(self.machine.encode_opening())

    def call(self, name: str, request: Message, protocol: Protocol | None = None) -> Any:
        """The response to a call; raises its error."""
        return self.wait(self.send(name, request, protocol))

    def send(
        self,
        name: str,
        request: Message,
        protocol: Protocol | None = None,
        *,
        call_id: int | None = None,
        retry_count: int = 0,
    ) -> int:
        """Send a call and wait for nothing; returns its id."""
        call_id = next(self._ids) if call_id is None else call_id
        method = (protocol or self.protocol)[name]
        self.socket.sendall(self.machine.encode_call(call_id, method, request, retry_count))
        return call_id

    def wait(self, call_id: int) -> Any:
        """The response to a call that was sent; raises its error."""
        while call_id not in self._answers:
            data = self.socket.recv(1 << 16)
            if not data:
                raise ConnectionError("the server has closed the connection")
            for event in self.machine.receive_data(data):
                if isinstance(event, Closed):
                    raise event.error
                self._answers[event.call_id] = event
        answer = self._answers.pop(call_id)
        if isinstance(answer, Failure):
            raise answer.error
        return answer.response

    def close(self) -> None:
        self.socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
