"""A store that many NameNodes share: PostgreSQL.

A commit is one call of a function in the database (`postgres_functions.sql`): it locks the
clock, checks the member's epoch, validates what was read, and applies the changes.
TxID order is therefore commit order for all NameNodes, and a commit that was answered
is on the database's disk (`synchronous_commit`).

If the connection breaks between sending a commit and its answer, only `CommitUnknown`
is said; `settle` finds out, and makes sure that what has not happened never will.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import (
    AbstractAsyncContextManager,
    asynccontextmanager,
    contextmanager,
    nullcontext,
)
from typing import Any

import asyncpg

from cairnfs.errors import StoreUnavailableException
from cairnfs.store.base import (
    CommitUnknown,
    Conflict,
    Fenced,
    Found,
    LocalReads,
    LockMode,
    PastRow,
    Reading,
    Row,
)
from cairnfs.store.batches import Batch, Member, new_keys
from cairnfs.store.postgres_connections import ConnectionLost, Connections
from cairnfs.store.postgres_schema import format_database, migrate
from cairnfs.store.postgres_statements import (
    batch_statement,
    change_arguments,
    collect,
    keys_at,
    read_statement,
)
from cairnfs.store.schema import Key

CONNECTIONS_MAX = 8
CONNECTIONS_FOR_STATEMENTS = 2
SETTLE_WAITS_S = (0.05, 0.1, 0.2, 0.5, 1.0, 1.0, 1.5, 2.0, 3.0)

_LOCK_MODES = {LockMode.READ_COMMITTED: 0, LockMode.SHARED: 1, LockMode.EXCLUSIVE: 2}

_LOCK = "SELECT n, since, data FROM cairn_lock($1, $2, $3, $4)"
_FIND_REPLIES = (
    "SELECT data FROM replies WHERE client_id = $1 AND last_call >= $2 AND first_call <= $2"
)
_COUNT_EACH = "SELECT a, count(*) FROM records WHERE t = $1 GROUP BY a"
_COUNT_IDS = (
    "SELECT count(*) FROM (SELECT DISTINCT id FROM records WHERE t = $1 AND id IS NOT NULL) ids"
)
_SCAN_TABLE = (
    "SELECT a, b, since, data FROM records WHERE t = $1 AND (a, b) > ($2, $3)"
    " ORDER BY t, a, b LIMIT $4"
)
_SCAN_PAST = (
    "SELECT t, a, b, until, since, id, data, holder FROM past WHERE holder = $7 AND until <= $5"
    " AND (until, t, a, b) > ($1, $2, $3, $4) ORDER BY until, t, a, b LIMIT $6"
)
# From one to the next by the index: there are many rows for each.
_PAST_HOLDERS = (
    "WITH RECURSIVE found (holder) AS ((SELECT min(holder) FROM past) UNION ALL"
    " SELECT (SELECT min(p.holder) FROM past p WHERE p.holder > found.holder) FROM found"
    " WHERE found.holder IS NOT NULL) SELECT holder FROM found WHERE holder IS NOT NULL"
)
_RESERVE = "UPDATE counters SET next = next + $2 WHERE name = $1 RETURNING next - $2"
_DROP_REPLIES = (
    "WITH expired AS (SELECT client_id, last_call, txid FROM replies WHERE expires_ms < $1"
    " ORDER BY expires_ms LIMIT $2 FOR UPDATE SKIP LOCKED),"
    " gone AS (DELETE FROM replies r USING expired e WHERE r.client_id = e.client_id"
    " AND r.last_call = e.last_call AND r.txid = e.txid RETURNING 1)"
    " SELECT count(*) FROM gone"
)


class PostgresStore:
    """See `store.base.Store`."""

    local: LocalReads | None = None

    def __init__(self, connections: Connections, transactions_max: int) -> None:
        self._connections = connections
        self._commits = CommitOrder()
        # Some connections stay free for single statements, which transactions may wait for.
        self._transactions = asyncio.Semaphore(transactions_max)

    @classmethod
    async def open(cls, dsn: str, *, pool_max: int = CONNECTIONS_MAX) -> PostgresStore:
        """Connect to a formatted database, and migrate it if it is of an older version."""
        if pool_max <= CONNECTIONS_FOR_STATEMENTS:
            raise ValueError(f"a store needs more than {CONNECTIONS_FOR_STATEMENTS} connections")
        connections = Connections(dsn, pool_max)
        try:
            await migrate(connections)
        except ConnectionLost as lost:
            await connections.close()
            raise StoreUnavailableException(f"{lost}; nothing was changed") from lost
        except BaseException:
            await connections.close()
            raise
        return cls(connections, pool_max - CONNECTIONS_FOR_STATEMENTS)

    @property
    def place(self) -> str:
        """The database, in words without a password."""
        return self._connections.place

    async def meta(self) -> dict[str, str]:
        return dict(await self.fetch("SELECT name, value FROM meta"))

    # Reading.

    async def read(self, reading: Reading) -> Found:
        return await read_by(self.fetch, reading)

    async def find_replies(self, client_id: bytes, call_id: int) -> list[bytes]:
        return [data for (data,) in await self.fetch(_FIND_REPLIES, client_id, call_id)]

    async def fetch(self, statement: str, *arguments: object) -> list[Any]:
        """Run one statement that may run twice: if the connection breaks it is repeated."""
        try:
            return await self._fetch_once(statement, arguments)
        except ConnectionLost:
            pass
        try:
            return await self._fetch_once(statement, arguments)
        except ConnectionLost as lost:
            raise StoreUnavailableException(str(lost)) from lost

    async def _fetch_once(self, statement: str, arguments: tuple[object, ...]) -> list[Any]:
        # As with `borrow`, which would take some microseconds more of each read.
        connection = await self._connections.acquire()
        try:
            records: list[Any] = await connection.fetch(statement, *arguments)
        except BaseException as error:
            meaning = self._connections.fail(connection, error)
            if isinstance(error, asyncpg.TransactionRollbackError):  # deadlock, serialization
                raise StoreUnavailableException(f"{self.place} reports: {error}") from error
            if meaning is error:
                raise
            raise meaning from error
        self._connections.release(connection)
        return records

    # Writing.

    def prepare(self, batch: Batch) -> None:
        batch.encoded_changes = change_arguments(batch)

    async def commit(self, batch: Batch) -> int:
        async with self._commits.turn(batch):
            return await self._commit(batch)

    async def _commit(self, batch: Batch) -> int:
        statement, arguments = batch_statement(batch)
        connection = await self._connections.acquire()
        try:
            base = await connection.fetchval(statement, *arguments)
        except BaseException as error:
            self._connections.give_back(connection, error)
            if is_occupied(error):
                raise Conflict(await occupied_keys(self.fetch, batch)) from None
            meaning = explain_failure(self._connections, batch, error)
            if meaning is error:
                raise
            raise meaning from error
        self._connections.release(connection)
        return int(base)

    async def settle(self, member: Member) -> int | None:
        for wait_s in (*SETTLE_WAITS_S, None):
            try:
                ((base,),) = await self.fetch("SELECT cairn_settle($1, $2, $3)", *member)
                return None if base is None else int(base)
            except asyncpg.PostgresError as error:
                if error.sqlstate == "CF002":
                    raise Fenced(str(error)) from None
                if error.sqlstate == "CF003":
                    raise self._unsettled() from error
                raise
            except StoreUnavailableException as error:
                if wait_s is None:
                    raise self._unsettled() from error
                await asyncio.sleep(wait_s)
        raise AssertionError("the last attempt returns or raises")

    def _unsettled(self) -> StoreUnavailableException:
        """Neither "done" nor "nothing was changed": the stored reply will tell a retry."""
        return StoreUnavailableException(
            f"whether {self.place} has made this change is not known yet; "
            "send the call again, as a retry"
        )

    async def scan_table(self, table: int, after: tuple[int, bytes], limit: int) -> list[Row]:
        found = await self.fetch(_SCAN_TABLE, table, *after, limit)
        return [Row((table, a, b), since, data) for a, b, since, data in found]

    async def count_rows(self, table: int) -> int:
        ((count,),) = await self.fetch("SELECT count(*) FROM records WHERE t = $1", table)
        return int(count)

    async def count_each(self, table: int) -> dict[int, int]:
        return dict(await self.fetch(_COUNT_EACH, table))

    async def count_ids(self, table: int) -> int:
        ((count,),) = await self.fetch(_COUNT_IDS, table)
        return int(count)

    async def scan_past(
        self, holder: int, after: tuple[int, Key], until: int, limit: int
    ) -> list[PastRow]:
        found = await self.fetch(_SCAN_PAST, after[0], *after[1], until, limit, holder)
        return [PastRow((t, a, b), *rest) for t, a, b, *rest in found]

    async def past_holders(self) -> list[int]:
        return [holder for (holder,) in await self.fetch(_PAST_HOLDERS)]

    async def count_past(self) -> int:
        ((count,),) = await self.fetch("SELECT count(*) FROM past")
        return int(count)

    async def last_txid(self) -> int:
        ((txid,),) = await self.fetch("SELECT txid FROM clock WHERE one = 1")
        return int(txid)

    async def peek(self, counter: str) -> int:
        ((next,),) = await self.fetch("SELECT next FROM counters WHERE name = $1", counter)
        return int(next)

    async def reserve(self, counter: str, count: int) -> int:
        ((first,),) = await self.fetch(_RESERVE, counter, count)
        return int(first)

    async def drop_expired_replies(self, now_ms: int, limit: int) -> int:
        ((count,),) = await self.fetch(_DROP_REPLIES, now_ms, limit)
        return int(count)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[PostgresTransaction]:
        async with self._transactions:
            transaction = PostgresTransaction(self._connections, self._commits)
            await transaction.begin()
            try:
                yield transaction
            finally:
                await transaction.end()

    @asynccontextmanager
    async def moment(self) -> AsyncIterator[PostgresTransaction]:
        async with self._transactions:
            transaction = PostgresTransaction(self._connections, self._commits)
            await transaction.begin("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            try:
                yield transaction
            finally:
                await transaction.end()

    async def close(self) -> None:
        await self._connections.close()


class CommitOrder:
    """Lets a member's batches reach the database in the order of their numbers.

    The database refuses a number below one that it has seen (see `cairn_commit`).  A
    transaction that has the clock goes ahead: whoever is before it waits for the clock.
    """

    def __init__(self) -> None:
        self._lock = asyncio.Lock()  # fair: first come, first served

    def turn(self, batch: Batch, *, has_clock: bool = False) -> AbstractAsyncContextManager[None]:
        return nullcontext() if batch.member is None or has_clock else self._lock


class PostgresTransaction:
    """See `store.base.StoreTransaction`.  A `Conflict` leaves it, and its locks, standing."""

    def __init__(self, connections: Connections, commits: CommitOrder) -> None:
        self._connections = connections
        self._connection: Any = None  # None: over
        self._commits = commits
        self._has_clock = False

    async def begin(self, statement: str = "BEGIN") -> None:
        for last in (False, True):
            self._connection = await self._connections.acquire()
            try:
                await self._run(statement)
                return
            except StoreUnavailableException:
                # A connection that broke while it was idle is no reason to give up.
                if last or self._connection is not None:
                    raise

    async def take_clock(self) -> int:
        try:
            ((txid,),) = await self._fetch("SELECT txid FROM clock WHERE one = 1 FOR UPDATE")
        except (asyncpg.DeadlockDetectedError, asyncpg.SerializationError):
            raise Conflict from None
        self._has_clock = True
        return int(txid)

    async def lock(self, modes: Mapping[Key, LockMode]) -> dict[Key, Row]:
        keys = sorted(modes)
        if not keys:
            return {}
        numbers = [_LOCK_MODES[modes[key]] for key in keys]
        try:
            found = await self._fetch(_LOCK, *zip(*keys, strict=True), numbers)
        except (asyncpg.DeadlockDetectedError, asyncpg.SerializationError):
            raise Conflict(keys) from None
        return {keys[n - 1]: Row(keys[n - 1], since, data) for n, since, data in found}

    async def read(self, reading: Reading) -> Found:
        return await read_by(self._fetch, reading)

    async def commit(self, batch: Batch) -> int:
        async with self._commits.turn(batch, has_clock=self._has_clock):
            return await self._commit(batch)

    async def _commit(self, batch: Batch) -> int:
        statement, arguments = batch_statement(batch)
        await self._run("SAVEPOINT batch")
        try:
            ((base,),) = await self._fetch(statement, *arguments)
        except asyncpg.PostgresError as error:
            await self._run("ROLLBACK TO SAVEPOINT batch")
            if is_occupied(error):
                raise Conflict(await occupied_keys(self._fetch, batch)) from None
            raise explain_failure(self._connections, batch, error) from error
        connection = self._connection
        try:
            await connection.execute("COMMIT")
        except BaseException as error:
            self._drop()
            meaning = self._connections.translate(error)
            if isinstance(meaning, ConnectionLost):
                raise CommitUnknown(str(meaning)) from error
            if meaning is error:
                raise
            raise meaning from error
        self._connection = None
        self._connections.release(connection)
        return int(base)

    async def end(self) -> None:
        """Roll back, unless it was committed or the connection is gone."""
        if self._connection is None:
            return
        try:
            await self._connection.execute("ROLLBACK")
        except Exception:
            self._drop()
        except BaseException:
            self._drop()
            raise
        else:
            self._connections.release(self._connection)
            self._connection = None

    async def _run(self, statement: str) -> None:
        with self._guarded() as connection:
            await connection.execute(statement)

    async def _fetch(self, statement: str, *arguments: object) -> list[Any]:
        with self._guarded() as connection:
            records: list[Any] = await connection.fetch(statement, *arguments)
            return records

    @contextmanager
    def _guarded(self) -> Iterator[Any]:
        """The connection for one statement before COMMIT: if it fails, nothing was changed."""
        if self._connection is None:
            raise StoreUnavailableException(
                f"a transaction on {self._connections.place} is over; nothing was changed"
            )
        try:
            yield self._connection
        except BaseException as error:
            meaning = self._connections.translate(error)
            if (
                isinstance(meaning, ConnectionLost)
                or isinstance(error, asyncpg.ReadOnlySQLTransactionError)
                or not isinstance(error, Exception)
            ):
                self._connections.give_back(self._connection, error)
                self._connection = None
            if isinstance(meaning, ConnectionLost):
                text = f"{meaning}; nothing was changed"
                raise StoreUnavailableException(text) from error
            if meaning is error:
                raise
            raise meaning from error

    def _drop(self) -> None:
        self._connections.discard(self._connection)
        self._connection = None


Fetch = Callable[..., Awaitable[list[Any]]]
"""Runs a statement with its arguments: by itself, or in a transaction."""


async def read_by(fetch: Fetch, reading: Reading) -> Found:
    """Read all of it in one statement."""
    if reading.is_empty():
        return Found()
    statement, arguments = read_statement(reading)
    return collect(reading, await fetch(statement, *arguments))


async def occupied_keys(fetch: Fetch, batch: Batch) -> list[Key]:
    """Which new keys are not new; all of them, if the culprit is gone by now."""
    new = new_keys(batch)
    found = await read_by(fetch, Reading(keys=new))
    return list(found.rows) or new


def is_occupied(error: BaseException) -> bool:
    """Whether a key that had to be new was there."""
    return isinstance(error, asyncpg.UniqueViolationError) and error.table_name == "records"


def explain_failure(connections: Connections, batch: Batch, error: BaseException) -> BaseException:
    """What it means that a commit failed."""
    meaning = connections.translate(error)
    if isinstance(meaning, ConnectionLost):
        return CommitUnknown(str(meaning))
    if not isinstance(error, asyncpg.PostgresError):
        return meaning
    if error.sqlstate == "CF002":
        return Fenced(f"{error}, or this batch was given up")
    if error.sqlstate == "CF001":
        detail = json.loads(error.detail)
        keys = keys_at(list(batch.reads), detail.get("reads", ()))
        if "replaced" in detail:
            keys = keys_at([put.key for put in batch.puts if put.replaces], detail["replaced"])
        clients = [batch.replies[n - 1].client_id for n in detail.get("repeated", ())]
        return Conflict(keys, detail.get("directories", ()), clients)
    if error.sqlstate.startswith("40"):
        keys = [*batch.reads, *batch.deletes, *(put.key for put in batch.puts)]
        return Conflict(keys, [touch.id for touch in batch.touches])
    return meaning


__all__ = ["PostgresStore", "PostgresTransaction", "format_database"]
