"""The RPC port of a NameNode: connections, and the way of a call through them.

Bytes received -> events of `wire.rpc` -> the method's handler -> an operation -> bytes sent.
There is no task, future or thread per call; everything runs in callbacks of one event loop.

Invariant: what one client does or leaves undone costs the others nothing but its share of the
processor.  A connection has a bounded number of calls under way and of bytes to be sent; past
either it is not read from, and its client's next calls wait in the client's own socket.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import resource
import socket
from collections import deque
from collections.abc import Iterable, Mapping
from typing import Final, cast

from cairnfs.errors import AuthorizationException, UnsupportedOperationException
from cairnfs.namenode.client_sockets import Client, ClientSockets
from cairnfs.namenode.groups import UnixGroups
from cairnfs.namenode.namenode import NameNode
from cairnfs.namenode.service import Handler, IncomingCall, Service
from cairnfs.namesystem.permissions import Caller
from cairnfs.observe.audit import describe_user
from cairnfs.web.server import take_port
from cairnfs.wire.protocols import Method, MethodTable
from cairnfs.wire.rpc import Call, Closed, ConnectionContext, Send, ServerConnection, ServerEvent

log = logging.getLogger(__name__)

CALLS_UNDER_WAY_MAX: Final = 128  # of one connection
CALLS_AT_ONCE_MAX: Final = 32  # of one connection, before others have their turn
UNSENT_BYTES_MAX: Final = 4 << 20  # of one connection, and what the calls under way add to it
IDLE_LIMIT_S = 20.0  # twice ipc.client.connection.maxidletime
IDLE_CONNECTIONS_MAX: Final = 4000  # ipc.client.idlethreshold: as many may be idle for longer,
IDLE_PART_MAX = 0.5  # or this part of the descriptors that we may have
# Five minutes, in which a client has read nothing of what it has asked for.
DEAF_SWEEPS_MAX: Final = 15
STOP_LIMIT_S: Final = 5.0  # for calls under way to be answered, and the answers to be read


class RpcServer:
    """Serves any number of protocols on one port, from `start` until `stop`."""

    def __init__(
        self,
        namenode: NameNode,
        services: Iterable[Service],
        *,
        groups: UnixGroups | None = None,
        impersonators: Iterable[str] = (),
    ) -> None:
        """`impersonators` may act for other users, as the superuser may."""
        self.namenode = namenode
        self.groups = groups or UnixGroups()
        self.handlers: dict[Method, Handler] = {}
        protocols = []
        for service in services:
            protocols.append(service.protocol)
            for method in service.protocol.methods.values():
                self.handlers[method] = service.handlers.get(method, _refuse)
        self.methods = MethodTable(protocols)
        self._impersonators = frozenset(impersonators)
        self._connections: set[RpcConnection] = set()
        self._clients: ClientSockets | None = None
        self._sweep: asyncio.TimerHandle | None = None

    async def start(self, host: str, port: int) -> int:
        """Listen; returns the port, which is a free one if 0 was asked for."""
        return await self.start_on(take_port(host, port, "port"))

    async def start_on(self, sock: socket.socket) -> int:
        """The same on a port that was taken before."""
        _allow_many_connections()
        self._clients = ClientSockets(self._serve, UNSENT_BYTES_MAX)
        self._clients.listen(sock)
        self.namenode.runner.receive_waiting = self._clients.poll
        loop = asyncio.get_running_loop()
        self._sweep = loop.call_later(IDLE_LIMIT_S, self._sweep_connections)
        return cast(int, sock.getsockname()[1])

    async def stop(self) -> None:
        """Take up no more calls, and end the connections when those under way are answered.

        So first this, then the NameNode is stopped; or the other way round, which answers
        what arrives meanwhile with StandbyException.
        """
        if self._clients is not None:
            self._clients.stop_listening()
        if self._sweep is not None:
            self._sweep.cancel()
        for connection in list(self._connections):
            connection.close_when_answered()
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + STOP_LIMIT_S
        while self._connections:
            if loop.time() >= deadline_s:
                for connection in list(self._connections):
                    connection.abort()
            await asyncio.sleep(0.01)
        if self._clients is not None:
            runner = self.namenode.runner
            if runner.receive_waiting == self._clients.poll:  # not another server's
                runner.receive_waiting = None
            self._clients.close()
            self._clients = None

    @property
    def open_connections(self) -> int:
        return len(self._connections)

    @property
    def calls_under_way(self) -> int:
        """Calls that were taken up, and are not answered yet."""
        return sum(connection.calls_under_way for connection in self._connections)

    @property
    def calls_waiting(self) -> int:
        """Calls that have arrived, and wait for others of their connection to be answered."""
        return sum(connection.calls_waiting for connection in self._connections)

    def ended(self, connection: RpcConnection) -> None:
        self._connections.discard(connection)

    def identify(self, context: ConnectionContext, address: str) -> Caller:
        """Who calls; raises AuthorizationException if they may not be who they say."""
        if context.real_user is not None and context.real_user != context.user:
            self._check_impersonation(context.real_user, context.user, address)
        return self._caller(context.user, address)

    def _serve(self, client: Client) -> RpcConnection:
        connection = RpcConnection(self, client)
        self._connections.add(connection)
        return connection

    def _check_impersonation(self, real_user: str, user: str, address: str) -> None:
        if (
            real_user not in self._impersonators
            and not self._caller(real_user, address).is_superuser
        ):
            raise AuthorizationException(f"User: {real_user} is not allowed to impersonate {user}")

    def _caller(self, user: str, address: str) -> Caller:
        return self.namenode.caller(user, self.groups.of(user), address)

    def _sweep_connections(self) -> None:
        """End what has been idle since the last time: strangers, and others if there are many.

        And who has not read for long: what it has asked for is kept in memory.
        """
        descriptors, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        idle_max = min(IDLE_CONNECTIONS_MAX, int(descriptors * IDLE_PART_MAX))
        for connection in list(self._connections):
            is_idle, is_deaf = connection.is_idle(), connection.is_deaf()
            if is_deaf or (
                is_idle and (not connection.is_open or len(self._connections) > idle_max)
            ):
                connection.abort()
        loop = asyncio.get_running_loop()
        self._sweep = loop.call_later(IDLE_LIMIT_S, self._sweep_connections)


class RpcConnection:
    """One client's connection: its calls, over the bytes of its socket."""

    __deletable__ = ("_machine",)  # for who compiles it

    def __init__(self, server: RpcServer, client: Client) -> None:
        self._server = server
        self._client = client
        self.namenode = server.namenode
        self.groups = server.groups
        self.calls = server.namenode.calls
        self.audit = server.namenode.audit
        self.ugi = ""
        self.proto = "rpc"
        self._handlers: Mapping[Method, Handler] = server.handlers
        self._machine = ServerConnection(server.methods, self._authorize)
        self._loop = asyncio.get_running_loop()
        self._caller: Caller | None = None
        self._under_way = 0
        self._events: deque[ServerEvent] = deque()  # that wait for calls under way to end
        self._replies: list[bytes] = []  # to be sent in this turn of the loop
        self._reads = True
        self._client_reads = True
        self._was_idle = False
        self._deaf_sweeps = 0  # since it has last read something
        self._moved = 0  # `Client.moved` at the last sweep
        self._closing = False

    # From the socket.

    def receive(self, data: bytes) -> None:
        begun = 0
        for event in self._machine.receive_data(data):
            if self._events or begun == CALLS_AT_ONCE_MAX or not self._may_take_up_more:
                self._events.append(event)
            elif type(event) is Call:
                begun += 1
                self._begin(event)
            else:
                self._take_up(event)
        if self._events:
            self._pause_or_resume()
            if begun == CALLS_AT_ONCE_MAX:
                self._loop.call_soon(self._take_up_more)

    def end_received(self) -> None:
        self.close_when_answered()

    def pause_writing(self) -> None:
        self._client_reads = False
        self._pause_or_resume()

    def resume_writing(self) -> None:
        self._client_reads = True
        self._take_up_more()

    def connection_lost(self, error: Exception | None) -> None:
        self._closing = True
        self._events.clear()
        self._replies.clear()
        del self._machine  # which knows us: nobody has to look for such circles
        self._server.ended(self)

    # From the calls under way.

    def send_reply(self, reply: bytes) -> None:
        """Send the reply to one of the calls; those of a turn of the loop together."""
        self._under_way -= 1
        if self._under_way or self._replies:  # more are likely to follow
            if not self._replies:
                self._loop.call_soon(self._send_replies)
            self._replies.append(reply)
        else:
            self._client.write(reply)
        if self._events and self._under_way == CALLS_UNDER_WAY_MAX // 2:
            self._loop.call_soon(self._take_up_more)
        if self._closing and not self._under_way:
            self._loop.call_soon(self._client.close)

    # From the server.

    @property
    def is_open(self) -> bool:
        """Whether the client has said who it is."""
        return self._caller is not None

    @property
    def calls_under_way(self) -> int:
        return self._under_way

    @property
    def calls_waiting(self) -> int:
        return len(self._events)

    def is_idle(self) -> bool:
        """Whether there has been no call since the last time of asking."""
        was_idle, self._was_idle = self._was_idle, not self._under_way
        return was_idle and self._was_idle

    def is_deaf(self) -> bool:
        """Whether the client has read nothing for long, though there was something for it."""
        moved = self._client.moved
        is_stuck = self._client.has_unsent and moved == self._moved
        self._moved = moved
        self._deaf_sweeps = self._deaf_sweeps + 1 if is_stuck else 0
        return self._deaf_sweeps > DEAF_SWEEPS_MAX

    def close_when_answered(self) -> None:
        self._closing = True
        self._events.clear()
        self._client.pause_reading()
        if not self._under_way:
            self._send_replies()  # those of this turn of the loop
            self._client.close()

    def abort(self) -> None:
        self._client.abort()

    def _authorize(self, context: ConnectionContext) -> None:
        self._caller = self._server.identify(context, self._client.address)
        self.ugi = describe_user(context.user, context.real_user)

    def _take_up(self, event: ServerEvent) -> None:
        if type(event) is Call:
            self._begin(event)
        elif type(event) is Send:
            self._client.write(event.data)
        elif type(event) is Closed:
            log.info("the connection of %s ends: %s", self._client.address, event.error)
            self._client.close()

    def _begin(self, event: Call) -> None:
        """Let the call be handled; what becomes of it, `send_reply` is told."""
        assert self._caller is not None, "the machine lets nobody call before"
        self._was_idle = False
        self._under_way += 1
        call = IncomingCall(self, event, self._caller)
        try:
            request = event.method.decode_request(event.request)
            if self.audit is not None:
                call.request = request
            response = self._handlers[event.method](call, request)
        except Exception as error:
            call.fail(error)
        else:
            if response is not None:
                call.answer(response)

    @property
    def _may_take_up_more(self) -> bool:
        return self._client_reads and self._under_way < CALLS_UNDER_WAY_MAX

    def _take_up_more(self) -> None:
        for _ in range(CALLS_AT_ONCE_MAX):
            if not self._events or not self._may_take_up_more:
                break
            self._take_up(self._events.popleft())
        else:
            if self._events:
                self._loop.call_soon(self._take_up_more)
        self._pause_or_resume()

    def _pause_or_resume(self) -> None:
        """Read from the client as long as it reads and has not too much under way."""
        reads = self._client_reads and not self._events
        if reads is self._reads or self._closing or self._client.is_closing:
            return
        self._reads = reads
        if reads:
            self._client.resume_reading()
        else:
            self._client.pause_reading()

    def _send_replies(self) -> None:
        replies = b"".join(self._replies)
        self._replies.clear()
        if replies:
            self._client.write(replies)


def _refuse(call: IncomingCall, request: object) -> None:
    raise UnsupportedOperationException(f"{call.method.name} is not offered by this NameNode")


def _allow_many_connections() -> None:
    """Use as many file descriptors as the system lets us."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(OSError, ValueError):  # then it's as many as there are
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
