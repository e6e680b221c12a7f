"""Changes of a directory under a snapshot, by the hundred thousand; and one bulk copy of rows.

Both go straight to the store, without a NameNode, which must not have it open.  The rows are
those that a NameNode would have written: versions that the snapshot needs go to the past.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from operator import attrgetter
from pathlib import Path

import apsw
import asyncpg
import msgspec

from benchmarks.namespaces import BULK_ROWS
from benchmarks.snapshots.bench import FILES, Row, opened
from benchmarks.snapshots.published import RollbackRow
from cairnfs.clock import SystemClock
from cairnfs.config import NameNodeSettings
from cairnfs.namenode.opening import open_store
from cairnfs.namesystem.inodes import Inode, InodeId
from cairnfs.namesystem.lookup import key_of, resolve
from cairnfs.namesystem.paths import FsPath
from cairnfs.store import sqlite_schema
from cairnfs.store.base import Count, Reading, Scan, Store
from cairnfs.store.batches import Batch, Keep, Put, Touch
from cairnfs.store.schema import Table
from cairnfs.transaction.calls import operation
from cairnfs.transaction.records import decode, encode
from cairnfs.transaction.transaction import Transaction


@operation(mutates=False)
def way_to(tx: Transaction, path: FsPath) -> list[Inode]:
    """A directory, and before it those above."""
    lookup = resolve(tx, path)
    assert lookup.target is not None
    return [*lookup.ancestors, lookup.target]


async def change_files(url: str, numbers: RollbackRow) -> None:
    """Of the files in `FILES`: delete the first ones, modify the last ones, and add new ones."""
    async with opened(url) as bench:
        way = await bench.namenode.call(way_to, FsPath.parse(FILES))
    store = await open_store(NameNodeSettings(url, duties=False))
    try:
        await _Changing(store.store, way, numbers).run()
    finally:
        await store.membership.leave()
        await store.store.close()


class _Changing:
    """One run of `change_files`."""

    def __init__(self, store: Store, way: list[Inode], numbers: RollbackRow) -> None:
        self._store = store
        self._directory = way[-1]
        self._above = [inode.id for inode in way]
        self._numbers = numbers
        self._now_ms = SystemClock().now_ms()

    async def run(self) -> None:
        """Nothing is read but the first file: `fill` has made the others like it, in order."""
        deleted, alone, modified, new = self._numbers[:4]
        scan = Scan(Table.INODES, self._directory.id, b"", 1)
        (row,) = (await self._store.read(Reading(scans=[scan]))).scans[scan]
        first: Inode = decode(Table.INODES, row.data)

        def files(numbers: range) -> list[Inode]:
            return [self._like(first, first.id + n, b"f%07d" % n) for n in numbers]

        for page in _pages(range(deleted)):
            await self._commit(deletes=files(page))
        for page in _pages(range(deleted + alone, deleted + alone + modified)):
            await self._commit(changes=files(page))
        new_id = await self._store.reserve("inode id", new)
        for page in _pages(range(new)):
            added = [self._like(first, new_id + n, b"n%07d" % n) for n in page]
            await self._commit(adds=added)

    def _like(self, file: Inode, id: int, name: bytes) -> Inode:
        return msgspec.structs.replace(file, id=InodeId(id), name=name)

    async def _commit(
        self,
        deletes: Iterable[Inode] = (),
        changes: Iterable[Inode] = (),
        adds: Iterable[Inode] = (),
    ) -> None:
        gone, new = [key_of(file) for file in deletes], list(adds)
        modified = [msgspec.structs.replace(file, mode=0o600) for file in changes]
        holder = await self._store.last_txid()  # of a snapshot, or the reclaim duty finds another
        keeps = [Keep(key, 1, holder) for key in sorted([*gone, *map(key_of, modified)])]
        puts = [self._put(file, replaces=True) for file in modified]
        puts += [self._put(file, replaces=False) for file in new]
        puts.sort(key=attrgetter("key"))
        touches = [self._touch(id, len(new) - len(gone)) for id in self._above]
        await self._store.commit(
            Batch(1, self._now_ms, deletes=gone, puts=puts, keeps=keeps, touches=touches)
        )

    def _put(self, file: Inode, *, replaces: bool) -> Put:
        return Put(key_of(file), file.id, 1, encode(file), replaces)

    def _touch(self, id: InodeId, more: int) -> Touch:
        counts = [0] * len(Count)
        counts[Count.FILES] = counts[Count.INODES] = more
        if id != self._directory.id:
            return Touch(id, counts, self._now_ms, 0)
        counts[Count.CHILDREN] = more
        return Touch(id, counts, self._now_ms, 1, covered=self._directory.covered_txid)


def _pages(numbers: range) -> Iterator[range]:
    for first in range(0, len(numbers), BULK_ROWS):
        yield numbers[first : first + BULK_ROWS]


_ALL_ROWS = (
    "INSERT INTO copied SELECT t, a, b, id, since, data FROM records"
    " UNION ALL SELECT t, a, b, id, since, data FROM past"
)
_INDEX = "CREATE INDEX copied_by_id ON copied (id, t) WHERE id IS NOT NULL"


async def copy_all_rows(url: str) -> Row:
    """The seconds that the engine takes to copy every row, of now and of the past, at once.

    In one statement of its own, into a table with the indexes of ours: no store could do it
    in less.
    """
    if not url.startswith("sqlite:"):
        return await _copy_in_postgres(url)
    connection = sqlite_schema.connect(Path(url.removeprefix("sqlite://")))
    try:
        connection.execute(
            "CREATE TABLE copied (t INTEGER NOT NULL, a INTEGER NOT NULL, b BLOB NOT NULL,"
            " id INTEGER, since INTEGER NOT NULL, data BLOB NOT NULL,"
            " PRIMARY KEY (t, a, b, since)) WITHOUT ROWID;" + _INDEX
        )
        start = time.perf_counter()
        connection.execute(_ALL_ROWS)
        return _copied(start, connection.changes())
    finally:
        connection.close()


async def _copy_in_postgres(url: str) -> Row:
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(
            "SET search_path = cairnfs; CREATE TABLE copied (t integer NOT NULL, a bigint NOT NULL,"
            " b bytea NOT NULL, id bigint, since bigint NOT NULL, data bytea NOT NULL,"
            " PRIMARY KEY (t, a, b, since));" + _INDEX
        )
        start = time.perf_counter()
        status = await connection.execute(_ALL_ROWS)
        return _copied(start, int(status.split()[-1]))
    finally:
        await connection.close()


def _copied(start: float, rows: int) -> Row:
    return {"bulk_copy_s": time.perf_counter() - start, "bulk_copy_rows": rows}


async def measure_rows(url: str) -> Row:
    """How many rows a namespace has, and how many bytes are in them."""
    size = "count(*), coalesce(sum(length(b) + length(data)), 0)"
    statements = [f"SELECT {size} FROM {table}" for table in ("records", "past")]
    if url.startswith("sqlite:"):
        connection = apsw.Connection(url.removeprefix("sqlite://"))
        found = [next(iter(connection.execute(statement))) for statement in statements]
        connection.close()
    else:
        server = await asyncpg.connect(url)
        await server.execute("SET search_path = cairnfs")
        found = [tuple(await server.fetchrow(statement)) for statement in statements]
        await server.close()
    return {
        "rows": sum(int(count) for count, _ in found),
        "bytes": sum(int(size_bytes) for _, size_bytes in found),
    }
