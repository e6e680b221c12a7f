"""Connections to PostgreSQL: a small pool, and what its failures mean to us.

The pool hands out the connection used last, opens another when all are busy, and
forgets those that broke; so service goes on by itself when the server comes back.
Nothing is sent when a connection is taken or given back: a commit is one round trip.

Every failure leaves here as `StoreUnavailableException`, which promises that nothing
was changed, or as `ConnectionLost`, which promises nothing.  No text names a password.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import asyncpg

from cairnfs.errors import HdfsError, StoreUnavailableException

CONNECT_TIMEOUT_S = 5.0
IDLE_IN_TRANSACTION_MAX_MS = 10_000
RECEIVED_BYTES_MAX = 32 << 10  # in one read

SESSION_SETTINGS = {
    "application_name": "cairnfs",
    "search_path": "cairnfs",
    "synchronous_commit": "on",
    "default_transaction_isolation": "read committed",
    "statement_timeout": "0",
    "lock_timeout": "0",
    # A NameNode that stopped in the middle must not keep the clock from the others.
    "idle_in_transaction_session_timeout": str(IDLE_IN_TRANSACTION_MAX_MS),
    "tcp_keepalives_idle": "5",
    "tcp_keepalives_interval": "2",
    "tcp_keepalives_count": "3",
    "jit": "off",
    # Every statement looks up keys in indexes.  Planning it once, and never choosing by
    # statistics that a new table does not have, is what makes that dependable.
    "plan_cache_mode": "force_generic_plan",
    "max_parallel_workers_per_gather": "0",
    "enable_seqscan": "off",
    "enable_bitmapscan": "off",
    "enable_hashjoin": "off",
    "enable_material": "off",
    "enable_mergejoin": "off",
}

_SHUTTING_DOWN = ("57P01", "57P02", "57P03", "57P05", "25P03")
_EXPLANATIONS = {
    "25006": "is read-only",
    "53100": "has no disk space left",
    "53200": "is out of memory",
    "53300": "has no connection left for us",
    "57P03": "is starting up or shutting down",
    "28P01": "refuses our name or password",
    "28000": "refuses our name or password",
    "3D000": "does not exist",
    "42501": "denies us what we need",
}


class ConnectionLost(Exception):
    """The connection broke; what was under way may or may not have happened."""


class Connections:
    """At most `size_max` connections to one database."""

    def __init__(self, dsn: str, size_max: int) -> None:
        self.place = describe(dsn)
        self._dsn = dsn
        self._size_max = size_max
        self._open: set[Any] = set()
        self._idle: list[Any] = []
        self._opening = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._closed = False

    async def acquire(self) -> Any:
        """A connection that was healthy when last seen."""
        while True:
            if self._closed:
                raise self._was_closed()
            while self._idle:
                connection = self._idle.pop()
                if not connection.is_closed():
                    return connection
                self._open.discard(connection)
            if len(self._open) + self._opening < self._size_max:
                return await self._connect()
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            try:
                await turn
            except asyncio.CancelledError:
                if turn.done() and not turn.cancelled():
                    self._admit()  # our turn goes to the next
                raise

    def release(self, connection: Any) -> None:
        """Give back a connection that is in no transaction."""
        if connection.is_closed() or self._closed:
            self.discard(connection)
            return
        self._idle.append(connection)
        self._admit()

    def discard(self, connection: Any) -> None:
        """Drop a connection; the server rolls back what it had begun."""
        self._open.discard(connection)
        if not connection.is_closed():
            connection.terminate()
        self._admit()

    def give_back(self, connection: Any, error: BaseException) -> None:
        """Release a connection on which a statement failed, or drop it if that is wiser."""
        lost = isinstance(self.translate(error), ConnectionLost)
        if lost or isinstance(error, asyncpg.ReadOnlySQLTransactionError):
            # The others are most likely no better; new ones may find a healthy server.
            idle, self._idle = self._idle, []
            for each in (connection, *idle):
                self.discard(each)
        elif isinstance(error, Exception):
            self.release(connection)
        else:
            self.discard(connection)  # cancelled in the middle of something

    @asynccontextmanager
    async def borrow(self) -> AsyncIterator[Any]:
        """A connection; dropped if its user was cancelled, or it was lost."""
        connection = await self.acquire()
        try:
            yield connection
        except BaseException as error:
            meaning = self.fail(connection, error)
            if meaning is error:
                raise
            raise meaning from error
        else:
            self.release(connection)

    def fail(self, connection: Any, error: BaseException) -> BaseException:
        """Take back a connection whose user has failed; returns what that means."""
        self.give_back(connection, error)
        return self.translate(error)

    def translate(self, error: BaseException) -> BaseException:
        """What a failure of a statement means; conflicts and bugs stay as they are."""
        if isinstance(error, HdfsError):
            return error  # it is said already
        state = getattr(error, "sqlstate", None)
        if isinstance(state, str):
            if state in _SHUTTING_DOWN or state.startswith("08"):
                return ConnectionLost(f"the connection to {self.place} broke: {error}")
            if state.startswith(("CF", "40", "23", "42P01")):
                return error  # a conflict; or, at opening, a database without our tables
            return StoreUnavailableException(
                f"{self.place} {_EXPLANATIONS.get(state, f'reports: {error}')}; nothing was changed"
            )
        if isinstance(error, ValueError):
            return error  # asyncpg's DataError: an argument that is a bug of ours
        # InternalClientError: the server ended an idle session, and asyncpg lost its step.
        broken = asyncpg.InterfaceError, asyncpg.InternalClientError, OSError, EOFError
        if isinstance(error, broken):
            return ConnectionLost(f"the connection to {self.place} broke: {error}")
        return error

    async def close(self) -> None:
        self._closed = True
        while self._waiting:
            self._admit()
        for connection in list(self._open):
            try:
                await connection.close(timeout=CONNECT_TIMEOUT_S)
            except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
                connection.terminate()
        self._open.clear()
        self._idle.clear()

    async def _connect(self) -> Any:
        self._opening += 1
        try:
            connection = await connect(self._dsn, self.place)
        except BaseException:
            self._opening -= 1
            self._admit()
            raise
        self._opening -= 1
        if self._closed:  # while we connected
            connection.terminate()
            raise self._was_closed()
        self._open.add(connection)
        return connection

    def _was_closed(self) -> StoreUnavailableException:
        return StoreUnavailableException(f"the connections to {self.place} were closed")

    def _admit(self) -> None:
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return


async def connect(dsn: str, place: str) -> Any:
    """One connection, with our session settings."""
    try:
        connection = await asyncpg.connect(
            dsn,
            timeout=CONNECT_TIMEOUT_S,
            server_settings=SESSION_SETTINGS,
            max_cached_statement_lifetime=0,  # never prepare the same again
        )
    except asyncpg.PostgresError as error:
        reason = _EXPLANATIONS.get(error.sqlstate or "", f"refuses a connection: {error}")
        raise StoreUnavailableException(f"{place} {reason}; nothing was changed") from error
    except TimeoutError as error:
        text = f"{place} does not answer within {CONNECT_TIMEOUT_S} s; nothing was changed"
        raise StoreUnavailableException(text) from error
    except OSError as error:
        text = f"{place} cannot be reached ({error.strerror or error}); nothing was changed"
        raise StoreUnavailableException(text) from error
    except (asyncpg.InterfaceError, ValueError):
        # Their texts quote the address, password included.
        text = f"the address of {place} is not one that PostgreSQL understands"
        raise StoreUnavailableException(text) from None
    _keep_alive(connection)
    _receive_in_parts(connection)
    return connection


def describe(dsn: str) -> str:
    """The database and where it is, without user and password."""
    parts = urlsplit(dsn)
    query = parse_qs(parts.query)
    at = query.get("host", [""])[0] or unquote(parts.netloc.rpartition("@")[2]) or "localhost"
    port = query.get("port", [""])[0]
    name = unquote(parts.path.lstrip("/"))
    return f"database {name!r} at {at}" + (f", port {port}" if port else "")


def _receive_in_parts(connection: Any) -> None:
    """Let asyncio have room for what an answer usually is, not for 256 KiB.

    So much is mapped anew, by the system, for each of them.
    """
    transport: Any = getattr(connection, "_transport", None)
    if hasattr(transport, "max_size"):
        transport.max_size = RECEIVED_BYTES_MAX


def _keep_alive(connection: Any) -> None:
    """Notice a server that vanished without a word (asyncpg has no setting for it)."""
    transport = getattr(connection, "_transport", None)
    link = transport.get_extra_info("socket") if transport is not None else None
    if link is None or link.family == socket.AF_UNIX:
        return
    link.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    options = {"TCP_KEEPIDLE": 5, "TCP_KEEPINTVL": 2, "TCP_KEEPCNT": 3, "TCP_USER_TIMEOUT": 11_000}
    for name, value in options.items():
        with contextlib.suppress(AttributeError, OSError):
            link.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
