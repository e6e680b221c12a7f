"""The default store: one SQLite file, owned by one process.

The file is in WAL mode with `synchronous=FULL`: a commit that was answered is
on disk.  It is locked exclusively while open, so what this process has read
stays true until it changes it itself (`local`).
"""

from __future__ import annotations

import os
import struct
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import apsw

from cairnfs.errors import StoreUnavailableException
from cairnfs.store.base import (
    ABSENT,
    NO_TOTALS,
    Batch,
    Conflict,
    Count,
    Found,
    Key,
    LocalReads,
    LockMode,
    Member,
    Reading,
    Row,
    Scan,
    Totals,
    new_keys,
)
from cairnfs.store.locks import LockTable
from cairnfs.store.schema import REPLY_RETENTION_MS
from cairnfs.store.sqlite_schema import (
    COUNT_COLUMNS,
    INSERT,
    connect,
    explain,
    format_file,
    guard,
    migrate,
)

_SUM_COLUMNS = ", ".join(COUNT_COLUMNS)

_SELECT_ROW = "SELECT since, data FROM records WHERE t = ? AND a = ? AND b = ?"
_SELECT_SINCE = "SELECT since FROM records WHERE t = ? AND a = ? AND b = ?"
# Left alone, SQLite takes the primary key for it, and looks at every row of the table.
_SELECT_ID = (
    "SELECT t, a, b, since, data FROM records INDEXED BY records_by_id WHERE id = ? AND t = ?"
)
_SELECT_SCAN = (
    "SELECT b, since, data FROM records WHERE t = ? AND a = ? AND b > ? ORDER BY b LIMIT ?"
)
_SELECT_TOTALS = f"SELECT mtime_ms, touched, {_SUM_COLUMNS} FROM totals WHERE id = ?"
_DELETE = "DELETE FROM records WHERE t = ? AND a = ? AND b = ?"
_UPDATE = "UPDATE records SET id = ?, since = ?, data = ? WHERE t = ? AND a = ? AND b = ?"
_KEEP = (
    "INSERT INTO past (t, a, b, until, since, id, data)"
    " SELECT t, a, b, ?, since, id, data FROM records WHERE t = ? AND a = ? AND b = ?"
)
_TOUCH = (
    f"INSERT INTO totals (id, mtime_ms, touched, {_SUM_COLUMNS})"
    f" VALUES ({', '.join('?' * (3 + len(Count)))}) ON CONFLICT (id) DO UPDATE SET"
    " mtime_ms = iif(excluded.touched > 0, excluded.mtime_ms, mtime_ms),"
    " touched = max(touched, excluded.touched), "
    + ", ".join(f"{name} = {name} + excluded.{name}" for name in COUNT_COLUMNS)
)
_INSERT_REPLY = (
    "INSERT INTO replies (client_id, last_call, txid, first_call, expires_ms, calls, data)"
    " VALUES (?, ?, ?, ?, ?, ?, ?)"
)


class SqliteStore:
    """See `store.base.Store`.

    With `shared`, several runners of this process use the one object: then
    none of them may take what it has read for true until it commits.
    """

    def __init__(self, path: Path, *, shared: bool = False) -> None:
        self._path = path
        self._locks = LockTable()
        if not path.exists():
            raise StoreUnavailableException(
                f"namespace file {path} does not exist; format it first, or bring it back"
            )
        self._connection = connect(path)
        self._guard = guard(path, self._connection)
        try:
            migrate(self._connection, path)
        except BaseException:
            self._connection.close()
            os.close(self._guard)
            raise
        self._wal = Path(self._connection.filename_wal)
        self._files = _identity(self._path), _identity(self._wal)
        self.local: LocalReads | None = None if shared else self

    async def meta(self) -> dict[str, str]:
        """What was written down at formatting time, and the schema's version."""
        return dict(self._fetch("SELECT name, value FROM meta"))

    # Reading.

    def row(self, key: Key) -> Row | None:
        found = self._fetch(_SELECT_ROW, key)
        return Row(key, *found[0]) if found else None

    def rows_of_id(self, table: int, id: int) -> list[Row]:
        found = self._fetch(_SELECT_ID, (id, table))
        return [Row((t, a, b), since, data) for t, a, b, since, data in found]

    def scan(self, scan: Scan) -> list[Row]:
        t, a = scan.table, scan.a
        found = self._fetch(_SELECT_SCAN, (t, a, scan.after, scan.limit))
        return [Row((t, a, b), since, data) for b, since, data in found]

    def totals(self, id: int) -> Totals:
        found = self._fetch(_SELECT_TOTALS, (id,))
        if not found:
            return NO_TOTALS
        totals = found[0]
        return Totals(totals[2:], totals[0], totals[1])

    def clock(self) -> int:
        ((txid,),) = self._fetch("SELECT txid FROM clock")
        return int(txid)

    async def read(self, reading: Reading) -> Found:
        rows = ((key, self.row(key)) for key in reading.keys)
        return Found(
            rows={key: row for key, row in rows if row is not None},
            ids={pair: self.rows_of_id(*pair) for pair in reading.ids},
            scans={scan: self.scan(scan) for scan in reading.scans},
            totals={id: self.totals(id) for id in reading.totals},
        )

    async def find_replies(self, client_id: bytes, call_id: int) -> list[bytes]:
        found = self._fetch(
            "SELECT data FROM replies WHERE client_id = ? AND last_call >= ? AND first_call <= ?",
            (client_id, call_id, call_id),
        )
        return [data for (data,) in found]

    def _fetch(self, statement: str, arguments: Sequence[Any] = ()) -> list[Any]:
        try:
            return self._connection.execute(statement, arguments).fetchall()
        except apsw.Error as error:
            raise self._unavailable(error) from error

    # Writing.

    async def commit(self, batch: Batch) -> int:
        await self._locks.acquire("clock", exclusive=True)
        try:
            return self.commit_now(batch)
        finally:
            self._locks.release("clock", exclusive=True)

    def commit_now(self, batch: Batch) -> int:
        """`commit` without a loop: here it never waits for anybody else."""
        db = self._db_for_writing()
        try:
            db.execute("BEGIN IMMEDIATE")
            try:
                base = self._apply(db, batch)
                db.execute("COMMIT")
            except BaseException:
                if db.in_transaction:
                    db.execute("ROLLBACK")
                raise
        except apsw.ConstraintError:
            raise Conflict(keys=self._occupied(batch)) from None
        except apsw.Error as error:
            raise self._unavailable(error) from error
        return base

    async def settle(self, member: Member) -> int | None:
        raise AssertionError("a commit to a file of our own is never unknown")

    async def count_rows(self, table: int) -> int:
        ((count,),) = self._fetch("SELECT count(*) FROM records WHERE t = ?", (table,))
        return int(count)

    async def count_shared(self, table: int, other: int) -> int:
        statement = (
            "SELECT count(*) FROM records AS r WHERE t = ? AND EXISTS"
            " (SELECT 1 FROM records AS o WHERE o.t = ? AND o.a = r.a)"
        )
        ((count,),) = self._fetch(statement, (table, other))
        return int(count)

    async def last_txid(self) -> int:
        return self.clock()

    async def peek(self, counter: str) -> int:
        ((next,),) = self._fetch("SELECT next FROM counters WHERE name = ?", (counter,))
        return int(next)

    async def reserve(self, counter: str, count: int) -> int:
        db = self._db_for_writing()
        try:
            with db:
                first: Any = db.execute(
                    "UPDATE counters SET next = next + ? WHERE name = ? RETURNING next - ?",
                    (count, counter, count),
                ).get
        except apsw.Error as error:
            raise self._unavailable(error) from error
        return int(first)

    async def drop_expired_replies(self, now_ms: int, limit: int) -> int:
        db = self._db_for_writing()
        try:
            db.execute(
                "DELETE FROM replies WHERE (client_id, last_call, txid) IN (SELECT client_id,"
                " last_call, txid FROM replies WHERE expires_ms < ? LIMIT ?)",
                (now_ms, limit),
            )
        except apsw.Error as error:
            raise self._unavailable(error) from error
        return db.changes()

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[_SqliteTransaction]:
        transaction = _SqliteTransaction(self, self._locks)
        try:
            yield transaction
        finally:
            transaction.release()

    async def close(self) -> None:
        if self._files != (_identity(self._path), _identity(self._wal)):
            self._empty_wal()
        self._connection.close()
        if self._guard >= 0:
            os.close(self._guard)
            self._guard = -1

    # Inside.

    def _apply(self, db: apsw.Connection, batch: Batch) -> int:
        self._validate(db, batch)
        base: Any = db.execute(
            "UPDATE clock SET txid = txid + ? RETURNING txid - ?", (batch.size, batch.size)
        ).get
        if batch.keeps:
            db.executemany(_KEEP, [(base + order, *key) for key, order in batch.keeps])
        if batch.deletes:
            db.executemany(_DELETE, batch.deletes)
        new = [
            (*key, id, base + order, data) for key, id, order, data, old in batch.puts if not old
        ]
        if new:
            db.executemany(INSERT, new)
        if len(new) < len(batch.puts):
            changed = [
                (id, base + order, data, *key) for key, id, order, data, old in batch.puts if old
            ]
            before = db.total_changes()
            db.executemany(_UPDATE, changed)
            if db.total_changes() - before < len(changed):
                raise Conflict(keys=self._missing(batch))
        if batch.touches:
            touches = [
                (id, mtime_ms if order else 0, order and base + order, *counts)
                for id, counts, mtime_ms, order in batch.touches
            ]
            db.executemany(_TOUCH, touches)
        for id in batch.drops:
            db.execute("DELETE FROM totals WHERE id = ?", (id,))
        if batch.replies:
            self._check_not_run_before(db, batch)
            expires_ms = batch.now_ms + REPLY_RETENTION_MS
            rows = [
                (client, calls[-1], base + batch.size, calls[0], expires_ms, _pack(calls), data)
                for client, calls, data in batch.replies
            ]
            db.executemany(_INSERT_REPLY, rows)
        self._check_outcome(db, batch)
        return int(base)

    @staticmethod
    def _validate(db: apsw.Connection, batch: Batch) -> None:
        changed = []
        for key, version in batch.reads.items():
            found = db.execute(_SELECT_SINCE, key).fetchone()
            if (found[0] if found else ABSENT) != version:
                changed.append(key)
        if changed:
            raise Conflict(keys=changed)

    @staticmethod
    def _check_not_run_before(db: apsw.Connection, batch: Batch) -> None:
        clients = []
        for client, calls, _ in batch.replies:
            stored: Any = db.execute(
                "SELECT calls FROM replies"
                " WHERE client_id = ? AND last_call >= ? AND first_call <= ?",
                (client, calls[0], calls[-1]),
            )
            if any(not _unpack(packed).isdisjoint(calls) for (packed,) in stored):
                clients.append(client)
        if clients:
            raise Conflict(clients=clients)

    def _check_outcome(self, db: apsw.Connection, batch: Batch) -> None:
        occupied = [
            prefix
            for prefix in batch.empties
            if db.execute("SELECT 1 FROM records WHERE t = ? AND a = ? LIMIT 1", prefix).fetchone()
        ]
        exceeded = [
            id for id, count, limit in batch.bounds if self.totals(id).counts[count] > limit
        ]
        if occupied or exceeded:
            raise Conflict(directories=[a for _, a in occupied] + exceeded)

    def _missing(self, batch: Batch) -> list[Key]:
        return [put.key for put in batch.puts if put.replaces and not self.row(put.key)]

    def _occupied(self, batch: Batch) -> list[Key]:
        return [key for key in new_keys(batch) if self.row(key)]

    def _db(self) -> apsw.Connection:
        return self._connection

    def _db_for_writing(self) -> apsw.Connection:
        """The connection, after a look whether its files are still where we opened them.

        Else commits would go where nobody finds them again.  The connection stays open:
        it is why no other file can get the same inode, and a file that was brought back
        is the one we know.
        """
        file, wal = _identity(self._path), _identity(self._wal)
        if (file, wal) == self._files:
            return self._connection
        self._empty_wal()
        if file is None:
            problem = f"namespace file {self._path} is gone; bring it back"
        elif file != self._files[0]:
            problem = (
                f"namespace file {self._path} was replaced by another file; restart the NameNode"
            )
        elif wal is None:
            problem = f"{self._wal} is gone; bring it back, or restart the NameNode"
        else:
            problem = f"{self._wal} was replaced by another file; restart the NameNode"
        raise StoreUnavailableException(f"{problem}; nothing was changed")

    def _empty_wal(self) -> None:
        """Bring all commits into our file, wherever it is now.

        It is complete then without its log; and the log, if it was left behind, will not
        be taken for that of another file.
        """
        with suppress(apsw.Error):
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def _unavailable(self, error: apsw.Error) -> StoreUnavailableException:
        return StoreUnavailableException(f"{explain(error, self._path)}; nothing was changed")


_CLOCK = ("clock", True)


class _SqliteTransaction:
    """See `store.base.StoreTransaction`.  Writes are one batch, applied at commit."""

    def __init__(self, store: SqliteStore, locks: LockTable) -> None:
        self._store = store
        self._locks = locks
        self._held: list[tuple[object, bool]] = []

    async def take_clock(self) -> int:
        if _CLOCK not in self._held:
            await self._locks.acquire("clock", exclusive=True)
            self._held.append(_CLOCK)
        return self._store.clock()

    async def lock(self, modes: Mapping[Key, LockMode]) -> dict[Key, Row]:
        for key in sorted(modes):
            if modes[key] is not LockMode.READ_COMMITTED:
                exclusive = modes[key] is LockMode.EXCLUSIVE
                await self._locks.acquire(key, exclusive=exclusive)
                self._held.append((key, exclusive))
        rows = ((key, self._store.row(key)) for key in modes)
        return {key: row for key, row in rows if row is not None}

    async def read(self, reading: Reading) -> Found:
        return await self._store.read(reading)

    async def commit(self, batch: Batch) -> int:
        await self.take_clock()
        return self._store.commit_now(batch)

    def release(self) -> None:
        while self._held:
            key, exclusive = self._held.pop()
            self._locks.release(key, exclusive=exclusive)


def _pack(calls: Sequence[int]) -> bytes:
    return struct.pack(f">{len(calls)}q", *calls)


def _unpack(packed: bytes) -> set[int]:
    return {call for (call,) in struct.iter_unpack(">q", packed)}


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


__all__ = ["SqliteStore", "format_file"]
