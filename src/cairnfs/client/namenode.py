"""Calls to the NameNodes, from any thread, until one of them has answered.

Each call takes an idle connection or makes one, so that threads never wait for each other.
A call that gets no answer is sent again, to the next NameNode if there are several, under
the same client id and call id with a growing retry count: a server that did it already
answers with the reply that it has stored.
"""

from __future__ import annotations

import itertools
import os
import threading
import time
from collections.abc import Sequence
from typing import TypeVar

from google.protobuf.message import Message

from cairnfs.errors import (
    IOException,
    RetriableException,
    StandbyException,
    UnresolvedPathException,
)
from cairnfs.network.address import Address
from cairnfs.network.rpc_connection import NoAnswer, RpcConnection, make_call_ids
from cairnfs.network.sockets import PeerTimeout
from cairnfs.wire.protocols import CLIENT_PROTOCOL, Method, Protocol

LINKS_MAX = 32  # that are followed for one path

_IDLE_MAX = 32
_PAUSE_S = 0.1  # before the second round of all NameNodes; then ever longer
_PAUSE_MAX_S = 2.0

_M = TypeVar("_M", bound=Message)


class NameNodes:
    """The NameNodes of one file system, called in the name of one user."""

    def __init__(
        self,
        addresses: Sequence[Address],
        user: str,
        *,
        timeout_s: float,
        patience_s: float,
        real_user: str | None = None,
    ) -> None:
        """`patience_s` is how long to go on when none answers that has answered before.

        `real_user` is who acts in the name of `user`, if that is somebody else.
        """
        self.addresses = tuple(addresses)
        self.user = user
        self._real_user = real_user
        self._timeout_s = timeout_s
        self._patience_s = patience_s
        self.client_id = os.urandom(16)
        self._call_ids = make_call_ids()
        self._current = 0  # index of the NameNode to ask first
        self._has_answered = False
        self._idle: list[RpcConnection] = []
        self._lock = threading.Lock()
        self._is_closed = False

    def call(
        self, name: str, request: Message, answer: type[_M], protocol: Protocol = CLIENT_PROTOCOL
    ) -> _M:
        """Call and wait; errors are those of the server, or say that there is none."""
        method = protocol[name]
        call_id = next(self._call_ids)
        began_s = time.monotonic()
        for retry_count in itertools.count():
            index = self._current
            try:
                response = self._attempt(index, call_id, method, request, retry_count)
            except (StandbyException, RetriableException, NoAnswer) as error:
                self._leave(index)
                if self._gives_up(error, retry_count, time.monotonic() - began_s):
                    raise _as_seen_by_users(error, name, self.addresses) from error.__cause__
                self._pause(retry_count)
                continue
            assert isinstance(response, answer)
            return response
        raise AssertionError("unreachable")

    def call_path(
        self,
        name: str,
        request: Message,
        answer: type[_M],
        field: str = "src",
        protocol: Protocol = CLIENT_PROTOCOL,
    ) -> _M:
        """The same, following symbolic links: `request.field` is then what they lead to."""
        path = getattr(request, field)
        for _ in range(LINKS_MAX):
            try:
                return self.call(name, request, answer, protocol)
            except UnresolvedPathException as link:
                setattr(request, field, self.path_behind(link))
        raise IOException(f"{path}: more than {LINKS_MAX} symbolic links, or a loop of them")

    def path_behind(self, link: UnresolvedPathException) -> str:
        """Where a link leads, if that is in this file system."""
        target = str(link)
        if "://" not in target:
            return target
        authority, _, path = target.partition("://")[2].partition("/")
        if authority in map(str, self.addresses):
            return f"/{path}"
        raise IOException(f"the symbolic link to {target} leads to another file system")

    def close(self) -> None:
        """Close all connections; whoever calls from now on is told so."""
        with self._lock:
            self._is_closed = True
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def begin_anew(self) -> None:
        """In a forked child: be another client, with connections of its own."""
        self._lock = threading.Lock()
        self.client_id = os.urandom(16)
        idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()  # our copy of it; the parent's stays open

    def _attempt(
        self, index: int, call_id: int, method: Method, request: Message, retry_count: int
    ) -> Message:
        connection = self._take(index)
        try:
            return connection.call(call_id, method, request, retry_count)
        finally:
            if connection.is_broken:
                connection.close()
            else:
                self._has_answered = True
                self._put_back(connection)

    def _take(self, index: int) -> RpcConnection:
        address = self.addresses[index]
        while True:
            with self._lock:
                if self._is_closed:
                    raise IOException("Filesystem closed")
                connection = self._idle.pop() if self._idle else None
            if connection is None:
                return RpcConnection(
                    address,
                    CLIENT_PROTOCOL,
                    self.client_id,
                    self.user,
                    self._timeout_s,
                    real_user=self._real_user,
                )
            if connection.address == address and not connection.is_stale():
                return connection
            connection.close()

    def _put_back(self, connection: RpcConnection) -> None:
        with self._lock:
            if not self._is_closed and len(self._idle) < _IDLE_MAX:
                self._idle.append(connection)
                return
        connection.close()

    def _leave(self, index: int) -> None:
        """Ask the next NameNode from now on, unless somebody has moved on already."""
        with self._lock:
            if self._current == index:
                self._current = (index + 1) % len(self.addresses)

    def _gives_up(self, error: Exception, retry_count: int, waited_s: float) -> bool:
        if self._is_closed:
            return True
        if retry_count + 1 < len(self.addresses):
            return False
        # An address at which nobody has ever answered is most likely a mistake.
        is_patient = self._has_answered or not isinstance(error, NoAnswer)
        return not is_patient or waited_s >= self._patience_s

    def _pause(self, retry_count: int) -> None:
        rounds = (retry_count + 1) // len(self.addresses)
        if rounds:
            pause_s = min(_PAUSE_MAX_S, _PAUSE_S * 2 ** min(rounds - 1, 10))
            time.sleep(pause_s * (0.5 + os.urandom(1)[0] / 512))  # clients are not to come at once


class NameNodeUnreachable(IOException, ConnectionError):
    """No NameNode could be asked, or none has answered."""


class NameNodeRefused(NameNodeUnreachable, ConnectionRefusedError):
    """Nobody listens at the address of any NameNode."""


def _as_seen_by_users(error: Exception, name: str, addresses: Sequence[Address]) -> Exception:
    if not isinstance(error, NoAnswer):
        return error
    where = ", ".join(map(str, addresses))
    text = f"no NameNode at {where} answered {name}: {error}"
    match error.__cause__:
        case ConnectionRefusedError():
            return NameNodeRefused(text)
        case TimeoutError():
            return PeerTimeout(text)
        case _:
            return NameNodeUnreachable(text)
