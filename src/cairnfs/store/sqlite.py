"""The default store: one SQLite file, owned by one process.

The file is in WAL mode with `synchronous=FULL`: a commit that was answered is
on disk.  It is locked exclusively while open, so what this process has read
stays true until it changes it itself (`local`).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import apsw

from cairnfs.store.base import (
    ABSENT,
    NO_TOTALS,
    Conflict,
    Found,
    LocalReads,
    PastLocalReads,
    PastRow,
    Reading,
    Row,
    Scan,
    Totals,
    encode_totals,
    totals_key,
)
from cairnfs.store.batches import Batch, Member
from cairnfs.store.known_calls import KnownCalls
from cairnfs.store.locks import LockTable
from cairnfs.store.schema import Key
from cairnfs.store.sqlite_backlog import Backlog
from cairnfs.store.sqlite_change import change_of
from cairnfs.store.sqlite_commits import Commits
from cairnfs.store.sqlite_past import PastReads
from cairnfs.store.sqlite_replies import find_stored, has_stored, last_stored
from cairnfs.store.sqlite_schema import COUNT_COLUMNS, format_file
from cairnfs.store.sqlite_settling import Settler
from cairnfs.store.sqlite_transaction import SqliteTransaction

_SUM_COLUMNS = ", ".join(COUNT_COLUMNS)

_SELECT_ROW = "SELECT since, data FROM records WHERE t = ? AND a = ? AND b = ?"
# Left alone, SQLite takes the primary key for it, and looks at every row of the table.
_SELECT_ID = (
    "SELECT t, a, b, since, data FROM records INDEXED BY records_by_id WHERE id = ? AND t = ?"
)
_SELECT_SCAN = (
    "SELECT b, since, data FROM records WHERE t = ? AND a = ? AND b > ? ORDER BY b LIMIT ?"
)
_SELECT_TOTALS = f"SELECT mtime_ms, touched, changed, {_SUM_COLUMNS} FROM totals WHERE id = ?"
_SCAN_PAST = (
    "SELECT t, a, b, until, since, id, data, holder FROM past INDEXED BY past_by_holder"
    " WHERE holder = ?7 AND until >= ?1 AND until <= ?5 AND (until, t, a, b) > (?1, ?2, ?3, ?4)"
    " ORDER BY until, t, a, b LIMIT ?6"
)
# From one to the next by the index: there are many rows for each.
_PAST_HOLDERS = (
    "WITH RECURSIVE found (holder) AS (SELECT min(holder) FROM past UNION ALL"
    " SELECT (SELECT min(p.holder) FROM past p WHERE p.holder > found.holder) FROM found"
    " WHERE found.holder IS NOT NULL) SELECT holder FROM found WHERE holder IS NOT NULL"
)
_SCAN_TABLE = (
    "SELECT a, b, since, data FROM records WHERE t = ? AND (a, b) > (?, ?) ORDER BY a, b LIMIT ?"
)
_SELECT_VERSION = "SELECT t, a, b, since FROM records WHERE t = ? AND a = ? AND b = ?"
_COUNT_REST = "SELECT count(*) FROM records WHERE t = ? AND (a, b) > (?, ?)"
_FIND_PAGE_END = (
    "SELECT a, b FROM records WHERE t = ? AND (a, b) > (?, ?) ORDER BY a, b LIMIT 1 OFFSET ? - 1"
)

_COUNT_EACH = "SELECT a, count(*) FROM records WHERE t = ? GROUP BY a"

_COUNT_IDS_REST = "SELECT count(DISTINCT id) FROM records WHERE t = ? AND id > ?"
_FIND_IDS_END = (
    "SELECT DISTINCT id FROM records WHERE t = ? AND id > ? ORDER BY id LIMIT 1 OFFSET ? - 1"
)

COUNTED_AT_ONCE = 1000
"""So many rows are counted before others have their turn."""


class SqliteStore:
    """See `store.base.Store`.

    With `shared`, several runners of this process use the one object: then
    none of them may take what it has read for true until it commits.

    What `commit` is given goes to the journal first, see `sqlite_commits`; what a
    transaction with locks commits, to the tables.
    """

    def __init__(self, path: Path, *, shared: bool = False) -> None:
        self._locks = LockTable()
        self._commits = Commits(path)
        self._file = self._commits.file
        self._connection = self._file.connection
        self._fetch = self._file.fetch
        self._known_calls = KnownCalls(self._find_last_calls)
        self._settler = Settler(self._commits)
        self.local: LocalReads | None = None if shared else self

    async def meta(self) -> dict[str, str]:
        """What was written down at formatting time, and the schema's version."""
        return dict(self._fetch("SELECT name, value FROM meta"))

    # Reading.

    def row(self, key: Key) -> Row | None:
        backlog = self._commits.backlog
        if backlog.knows(key):
            return backlog.row(key)
        found = self._fetch(_SELECT_ROW, key)
        return Row(key, *found[0]) if found else None

    def rows_of_id(self, table: int, id: int) -> list[Row]:
        found = self._fetch(_SELECT_ID, (id, table))
        rows = [Row((t, a, b), since, data) for t, a, b, since, data in found]
        return self._commits.backlog.rows_of_id(table, id, rows)

    def scan(self, scan: Scan) -> list[Row]:
        rows = self._commits.backlog.scan(scan, self._scan_tables)
        if self._commits.backlog.hinders_scans:
            self._settler.look()
        return rows

    def _scan_tables(self, scan: Scan) -> list[tuple[Key, Row]]:
        t, a = scan.table, scan.a
        found = self._fetch(_SELECT_SCAN, (t, a, scan.after, scan.limit))
        return [((t, a, b), Row((t, a, b), since, data)) for b, since, data in found]

    def totals(self, id: int) -> Totals:
        found = self._fetch(_SELECT_TOTALS, (id,))
        stored = Totals(found[0][3:], *found[0][:3]) if found else NO_TOTALS
        return self._commits.backlog.totals(id, stored)

    def at(self, txid: int) -> PastLocalReads:
        return PastReads(self, self._fetch, txid)

    @property
    def backlog(self) -> Backlog:
        return self._commits.backlog

    def clock(self) -> int:
        return self._commits.txid

    async def read(self, reading: Reading) -> Found:
        found = _read_all(self, reading)
        found.past = {txid: _read_all(self.at(txid), past) for txid, past in reading.past.items()}
        return found

    async def find_replies(self, client_id: bytes, call_id: int) -> list[bytes]:
        found = find_stored(self._fetch, client_id, call_id)
        return found + self._commits.backlog.find_replies(client_id, call_id)

    # Writing.

    def prepare(self, batch: Batch) -> None:
        """Nothing: a batch is never ready before it is committed."""

    async def commit(self, batch: Batch) -> int:
        await self._locks.acquire("clock", exclusive=True)
        try:
            base = self.commit_now(batch, journal=True)
        finally:
            self._locks.release("clock", exclusive=True)
        self._settler.look()
        return base

    def commit_now(self, batch: Batch, *, journal: bool = False) -> int:
        """`commit` without a loop: here it never waits for anybody else.

        With `journal` the batch may go there alone, unless it depends on the tables.
        """
        self._validate(batch)
        base = self._commits.txid
        change = change_of(batch, base, *self._kept(batch, base))
        if journal and not (batch.empties or batch.bounds):
            self._commits.journal(change, [put.key for put in batch.puts if not put.replaces])
        else:
            with self._commits.to_tables(change) as db:
                self._check_outcome(db, batch)
        for reply in batch.replies:
            self._known_calls.note(reply.client_id, reply.calls)
        return base

    def _kept(self, batch: Batch, base: int) -> tuple[list[PastRow], list[tuple[Key, int, int]]]:
        """What a batch supersedes and a snapshot needs.

        Of a version that the tables have, only when it ends, and for which snapshot it is kept.
        """
        backlog = self._commits.backlog
        past: list[PastRow] = []
        held: list[tuple[Key, int, int]] = []
        for key, order, holder in batch.keeps:
            if backlog.knows(key):
                version = backlog.version(key)
                if version is not None:
                    id, since, data = version
                    past.append(PastRow(key, base + order, since, id, data, holder))
            else:
                held.append((key, base + order, holder))
        covering = {touch.id: touch.covered for touch in batch.touches if touch.covered}
        for id, covered in covering.items():
            if backlog.totals_changed(id) > covered:
                continue
            totals = self.totals(id)
            if totals is not NO_TOTALS and totals.changed <= covered:
                row = PastRow(
                    totals_key(id), base + 1, totals.changed, None, encode_totals(totals), covered
                )
                past.append(row)
        return past, held

    async def settle(self, member: Member) -> int | None:
        raise AssertionError("a commit to a file of our own is never unknown")

    async def scan_past(
        self, holder: int, after: tuple[int, Key], until: int, limit: int
    ) -> list[PastRow]:
        self._write_past()
        from_until, key = after
        found = self._fetch(_SCAN_PAST, (from_until, *key, until, limit, holder))
        return [PastRow((t, a, b), *rest) for t, a, b, *rest in found]

    async def past_holders(self) -> list[int]:
        self._write_past()
        return [holder for (holder,) in self._fetch(_PAST_HOLDERS)]

    async def count_past(self) -> int:
        self._write_past()
        ((count,),) = self._fetch("SELECT count(*) FROM past")
        return int(count)

    async def scan_table(self, table: int, after: tuple[int, bytes], limit: int) -> list[Row]:
        self.write_backlog()
        found = self._fetch(_SCAN_TABLE, (table, *after, limit))
        return [Row((table, a, b), since, data) for a, b, since, data in found]

    async def count_rows(self, table: int) -> int:
        self.write_backlog()
        count, after = 0, (-1, b"")
        while page_end := self._fetch(_FIND_PAGE_END, (table, *after, COUNTED_AT_ONCE)):
            count, after = count + COUNTED_AT_ONCE, page_end[0]
            await asyncio.sleep(0)  # there is one thread for everybody
        ((rest,),) = self._fetch(_COUNT_REST, (table, *after))
        return count + int(rest)

    async def count_each(self, table: int) -> dict[int, int]:
        self.write_backlog()
        return dict(self._fetch(_COUNT_EACH, (table,)))

    async def count_ids(self, table: int) -> int:
        self.write_backlog()
        count, after = 0, -1
        while page_end := self._fetch(_FIND_IDS_END, (table, after, COUNTED_AT_ONCE)):
            count, after = count + COUNTED_AT_ONCE, page_end[0][0]
            await asyncio.sleep(0)
        ((rest,),) = self._fetch(_COUNT_IDS_REST, (table, after))
        return count + int(rest)

    async def last_txid(self) -> int:
        return self.clock()

    async def peek(self, counter: str) -> int:
        ((next,),) = self._fetch("SELECT next FROM counters WHERE name = ?", (counter,))
        return int(next)

    async def reserve(self, counter: str, count: int) -> int:
        with self._commits.writing() as db:
            first: Any = db.execute(
                "UPDATE counters SET next = next + ? WHERE name = ? RETURNING next - ?",
                (count, counter, count),
            ).get
        return int(first)

    async def drop_expired_replies(self, now_ms: int, limit: int) -> int:
        if self._commits.backlog.has_expired_replies(now_ms):
            self.write_backlog()
        if not self._fetch("SELECT 1 FROM replies WHERE expires_ms < ? LIMIT 1", (now_ms,)):
            return 0
        with self._commits.writing() as db:
            db.execute(
                "DELETE FROM replies WHERE (client_id, last_call, txid) IN (SELECT client_id,"
                " last_call, txid FROM replies WHERE expires_ms < ? LIMIT ?)",
                (now_ms, limit),
            )
            return db.changes()

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[SqliteTransaction]:
        transaction = SqliteTransaction(self, self._locks)
        try:
            yield transaction
        finally:
            transaction.release()

    @asynccontextmanager
    async def moment(self) -> AsyncIterator[SqliteTransaction]:
        async with self.transaction() as transaction:
            await transaction.take_clock()  # nobody else commits meanwhile
            yield transaction

    async def close(self) -> None:
        self._commits.close()

    # Inside.

    def write_backlog(self) -> None:
        """Bring the tables up to date."""
        if self._commits.backlog:
            self._commits.settle()

    def _write_past(self) -> None:
        """Have all past rows in their table, as they are now."""
        if self._commits.backlog.changes_past:
            self._commits.settle()

    def _validate(self, batch: Batch) -> None:
        """Raise Conflict if a row is not as it was when the batch was made."""
        changed = self._find_changed(batch.reads) if batch.reads else []
        if not batch.knows_its_rows and not changed:
            versions = self._versions([put.key for put in batch.puts])
            changed = [
                put.key
                for put in batch.puts
                if (versions[put.key] != ABSENT) is not put.replaces
                and (put.replaces or put.key not in batch.deletes)
            ]
        if changed:
            raise Conflict(keys=changed)
        if batch.replies:
            self._check_not_run_before(batch)

    def _find_changed(self, reads: dict[Key, int]) -> list[Key]:
        versions = self._versions(reads)
        return [key for key, version in reads.items() if versions[key] != version]

    def _versions(self, keys: Collection[Key]) -> dict[Key, int]:
        """The versions of rows; many are found by one statement."""
        versions = dict.fromkeys(keys, ABSENT)
        known = self._commits.backlog.versions(keys)
        asked = [key for key in keys if key not in known] if known else keys
        for t, a, b, since in self._file.fetch_many(_SELECT_VERSION, asked):
            versions[t, a, b] = since
        versions.update(known)
        return versions

    def _check_not_run_before(self, batch: Batch) -> None:
        clients = [
            reply.client_id
            for reply in batch.replies
            if not self._known_calls.are_new(reply.client_id, reply.calls)
            and (
                self._commits.backlog.has_replied(reply.client_id, reply.calls)
                or has_stored(self._fetch, reply.client_id, reply.calls)
            )
        ]
        if clients:
            raise Conflict(clients=clients)

    def _find_last_calls(self, client_id: bytes) -> list[int]:
        return last_stored(self._fetch, client_id) + self._commits.backlog.last_calls(client_id)

    @staticmethod
    def _check_outcome(db: apsw.Connection, batch: Batch) -> None:
        """Raise Conflict if the tables, as the batch has left them, are not as they must be."""
        occupied = [
            prefix
            for prefix in batch.empties
            if db.execute("SELECT 1 FROM records WHERE t = ? AND a = ? LIMIT 1", prefix).fetchone()
        ]
        exceeded = []
        for id, count, limit in batch.bounds:
            found = db.execute(_SELECT_TOTALS, (id,)).fetchone()
            if found and found[3 + count] > limit:
                exceeded.append(id)
        if occupied or exceeded:
            raise Conflict(directories=[a for _, a in occupied] + exceeded)


def _read_all(reads: LocalReads, reading: Reading) -> Found:
    rows = ((key, reads.row(key)) for key in reading.keys)
    return Found(
        rows={key: row for key, row in rows if row is not None},
        ids={pair: reads.rows_of_id(*pair) for pair in reading.ids},
        scans={scan: reads.scan(scan) for scan in reading.scans},
        totals={id: reads.totals(id) for id in reading.totals},
    )


__all__ = ["SqliteStore", "format_file"]
