"""What the engines give without us: the plain driver, rows of the same size, groups of 32.

`insert` is the bare grouped insert.  `create` is what a create cannot do
without: the 5 rows of each path are read, then, in one
transaction, the rows are inserted and the totals of their directories updated.
Both use the real tables, with their indexes, over one connection: group after
group, as a NameNode commits them.
"""

from __future__ import annotations

import statistics
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import apsw
import asyncpg

from benchmarks.machine import ServerCpu
from benchmarks.namespaces import BLOCK_SIZE_BYTES, POSTGRES, Namespaces
from cairnfs.namesystem.inodes import ROOT_ID, Inode, InodeId, Kind
from cairnfs.store.postgres_connections import SESSION_SETTINGS
from cairnfs.store.schema import Key
from cairnfs.store.sqlite_schema import COUNT_COLUMNS
from cairnfs.transaction.records import encode

GROUP = 32
FIRST_ID = 1_000_000

GROUPS_MAX = 3_000  # prepared before the clock starts: making rows is not the engine's work
GROUPS_PER_S_MAX = 4_000  # more than any engine inserts


class Group(NamedTuple):
    """What one transaction reads, inserts and adds up."""

    keys: list[Key]
    rows: list[tuple[int, int, bytes, int, int, bytes]]  # t, a, b, id, since, data
    added: dict[int, int]  # children, by directory


_PG_INSERT = (
    "INSERT INTO records (t, a, b, id, since, data) SELECT unnest($1::integer[]),"
    " unnest($2::bigint[]), unnest($3::bytea[]), unnest($4::bigint[]), unnest($5::bigint[]),"
    " unnest($6::bytea[])"
)
_PG_READ = (
    "SELECT u.n, r.since, r.data FROM (SELECT unnest($1::integer[]), unnest($2::bigint[]),"
    " unnest($3::bytea[]), generate_series(1, cardinality($1::integer[]))) u (t, a, b, n)"
    " JOIN records r ON r.t = u.t AND r.a = u.a AND r.b = u.b"
)
_PG_CREATE = (
    f"WITH added AS ({_PG_INSERT}) UPDATE totals SET children = children + u.n,"
    " mtime_ms = $9, touched = $10 FROM unnest($7::bigint[], $8::bigint[]) u (id, n)"
    " WHERE totals.id = u.id"
)
_TOTALS_COLUMNS = ["mtime_ms", "touched", "changed", *COUNT_COLUMNS]
_PG_TOTALS = (
    f"INSERT INTO totals (id, shard, {', '.join(_TOTALS_COLUMNS)})"
    f" SELECT id, 0{', 0' * len(_TOTALS_COLUMNS)} FROM unnest($1::bigint[]) u (id)"
)
_LITE_INSERT = "INSERT INTO records (t, a, b, id, since, data) VALUES (?, ?, ?, ?, ?, ?)"
_LITE_READ = "SELECT since, data FROM records WHERE t = ? AND a = ? AND b = ?"
_LITE_UPDATE = "UPDATE totals SET children = children + ?, mtime_ms = ?, touched = ? WHERE id = ?"
_LITE_TOTALS = (
    f"INSERT INTO totals (id, {', '.join(_TOTALS_COLUMNS)})"
    f" VALUES (?{', 0' * len(_TOTALS_COLUMNS)})"
)


def summarise_raw(samples: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One figure for each thing measured: the median of its samples."""
    grouped: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for sample in samples:
        what = (sample["store"], sample["what"], sample["directories"])
        grouped.setdefault(what, []).append(sample)
    return [
        {
            **dict(zip(("store", "what", "directories"), what, strict=True)),
            "per_s": statistics.median(each["per_s"] for each in taken),
            "cpu_us": statistics.median(each["cpu_us"] for each in taken),
            "server_us": None
            if taken[0]["server_us"] is None
            else statistics.median(each["server_us"] for each in taken),
            "samples_per_s": [each["per_s"] for each in taken],
        }
        for what, taken in grouped.items()
    ]


async def measure_raw(
    namespaces: Namespaces, kind: str, *, spread: int, seconds: float
) -> list[dict[str, Any]]:
    """One sample of `insert` and `create`, spread over so many directories and in one."""
    results = []
    for directories in (spread, 1):
        for what in ("insert", "create"):
            url = await namespaces.fresh(kind)
            if kind == POSTGRES:
                cpu = namespaces.server_cpu(kind)
                assert cpu is not None
                figures = await _postgres(url, what, directories, seconds, cpu)
            else:
                figures = _sqlite(url, what, directories, seconds)
            namespaces.drop(url)
            results.append({"store": kind, "what": what, "directories": directories, **figures})
    return results


class RawInserts:
    """`insert` on PostgreSQL, a stretch at a time, into tables that grow; see `open_inserts`."""

    def __init__(self, connection: asyncpg.Connection, directories: int) -> None:
        self._connection = connection
        self._directories = directories
        self._groups: list[Group] = []
        self._made = 0

    async def measure(self, seconds: float) -> float:
        """Rows a second; what there is to be inserted is made before the clock starts."""
        missing = int(GROUPS_PER_S_MAX * seconds) - len(self._groups)
        self._groups += make_groups(self._directories, self._made, missing)
        self._made += missing
        statement = await self._connection.prepare(_PG_INSERT)
        start = time.perf_counter()
        rows, elapsed = 0, 0.0
        while elapsed < seconds and self._groups:
            await statement.fetch(*zip(*self._groups.pop().rows, strict=True))
            rows += GROUP
            elapsed = time.perf_counter() - start
        return rows / elapsed


@asynccontextmanager
async def open_inserts(namespaces: Namespaces, directories: int) -> AsyncIterator[RawInserts]:
    """Tables of their own for inserts into so many directories."""
    url = await namespaces.fresh(POSTGRES)
    connection = await asyncpg.connect(url, server_settings=SESSION_SETTINGS)
    try:
        yield RawInserts(connection, directories)
    finally:
        await connection.close()
        namespaces.drop(url)


def make_groups(directories: int, first: int = 0, count: int = GROUPS_MAX) -> list[Group]:
    """Files as rows, like those of a create, 32 at a time; the `first` groups are left out."""
    groups = []
    for n in range(first, first + count):
        rows = [_row(number, directories) for number in range(n * GROUP, (n + 1) * GROUP)]
        groups.append(Group(_keys_of(rows), rows, dict(Counter(row[1] for row in rows))))
    return groups


def _row(number: int, directories: int) -> tuple[int, int, bytes, int, int, bytes]:
    parent, name = FIRST_ID + number % directories, b"a%06d" % number
    inode = _inode(FIRST_ID + directories + number, parent, name, Kind.FILE)
    return (0, parent, name, inode.id, 1 + number, encode(inode))


def _inode(id: int, parent: int, name: bytes, kind: Kind) -> Inode:
    return Inode(
        id=InodeId(id),
        parent_id=InodeId(parent),
        name=name,
        kind=kind,
        mode=0o644,
        owner="root",
        group="supergroup",
        mtime_ms=1_700_000_000_000,
        atime_ms=1_700_000_000_000,
        replication=3,
        block_size_bytes=BLOCK_SIZE_BYTES,
        under_construction=kind is Kind.FILE,
    )


def _path_rows(directories: int) -> list[tuple[Any, ...]]:
    """The directories above the files: /bench/raw/d0, d1, ..."""
    names = [(ROOT_ID, b"bench", FIRST_ID - 2), (FIRST_ID - 2, b"raw", FIRST_ID - 1)]
    names += [(FIRST_ID - 1, b"d%d" % i, FIRST_ID + i) for i in range(directories)]
    return [(0, a, b, id, 1, encode(_inode(id, a, b, Kind.DIRECTORY))) for a, b, id in names]


def _keys_of(rows: list[tuple[int, int, bytes, int, int, bytes]]) -> list[Key]:
    """The rows of each path, the root's included: five for a file, shared ones once."""
    keys: dict[Key, None] = {}
    for t, a, b, *_ in rows:
        directory = (0, FIRST_ID - 1, b"d%d" % (a - FIRST_ID))
        above = [(0, 0, b""), (0, ROOT_ID, b"bench"), (0, FIRST_ID - 2, b"raw"), directory]
        keys.update(dict.fromkeys([*above, (t, a, b)]))
    return list(keys)


async def _postgres(
    url: str, what: str, directories: int, seconds: float, server: ServerCpu
) -> dict[str, Any]:
    connection = await asyncpg.connect(url, server_settings=SESSION_SETTINGS)
    try:
        ids = list(range(FIRST_ID, FIRST_ID + directories))
        await connection.execute(_PG_TOTALS, ids)
        await connection.execute(_PG_INSERT, *zip(*_path_rows(directories), strict=True))
        insert = await connection.prepare(_PG_INSERT)
        read = await connection.prepare(_PG_READ)
        create = await connection.prepare(_PG_CREATE)

        async def work(group: Group) -> None:
            columns = list(zip(*group.rows, strict=True))
            if what == "insert":
                await insert.fetch(*columns)
                return
            found = await read.fetch(*zip(*group.keys, strict=True))
            assert len(found) == len(group.keys) - GROUP, "only the files themselves are new"
            added = [list(group.added), list(group.added.values())]
            await create.fetch(*columns, *added, 1_700_000_000_000, group.rows[-1][4])

        source = iter(make_groups(directories))
        await work(next(source))
        before = server.sample()
        start, cpu = time.perf_counter(), time.process_time()
        rows = 0
        for group in source:
            await work(group)
            rows += GROUP
            if time.perf_counter() - start >= seconds:
                break
        elapsed, cpu = time.perf_counter() - start, time.process_time() - cpu
        return _figures(rows, elapsed, cpu, server.between(before, server.sample()))
    finally:
        await connection.close()


def _sqlite(url: str, what: str, directories: int, seconds: float) -> dict[str, Any]:
    db = apsw.Connection(str(Path(url.removeprefix("sqlite://"))))
    try:
        for setting in ("locking_mode = EXCLUSIVE", "synchronous = FULL", "cache_size = -65536"):
            db.execute(f"PRAGMA {setting}")
        ids = range(FIRST_ID, FIRST_ID + directories)
        db.executemany(_LITE_TOTALS, [(id,) for id in ids])
        db.executemany(_LITE_INSERT, _path_rows(directories))

        def work(group: Group) -> None:
            if what == "create":
                for key in group.keys:
                    db.execute(_LITE_READ, key).fetchone()
            db.execute("BEGIN IMMEDIATE")
            db.executemany(_LITE_INSERT, group.rows)
            if what == "create":
                touched = group.rows[-1][4]
                added = [(n, 1_700_000_000_000, touched, id) for id, n in group.added.items()]
                db.executemany(_LITE_UPDATE, added)
            db.execute("COMMIT")

        source = iter(make_groups(directories))
        work(next(source))
        start, cpu = time.perf_counter(), time.process_time()
        rows = 0
        for group in source:
            work(group)
            rows += GROUP
            if time.perf_counter() - start >= seconds:
                break
        elapsed, cpu = time.perf_counter() - start, time.process_time() - cpu
        return _figures(rows, elapsed, cpu, None)
    finally:
        db.close()


def _figures(rows: int, elapsed: float, cpu: float, server: float | None) -> dict[str, Any]:
    return {
        "per_s": round(rows / elapsed, 1),
        "cpu_us": round(cpu / rows * 1e6, 1),
        "server_us": None if server is None else round(server / rows * 1e6, 1),
        "rows": rows,
    }
