"""Who knows that a version is needed: thesis 000, 3.2.6.1 and 3.2.6.2, and ours, side by side.

The thesis leaves this comparison as future work (5.2, number 2).  All three are here as it
describes them, over the same table of inodes in plain SQL, since neither of its own is part of
CairnFS:

- *joined* (3.2.6.1): an inode has the time at which it joined its directory.  It is in the
  snapshots of a directory above that are later than every join on the way.  What is moved
  takes along, for each inode of the subtree, the snapshots it was in (InodeSnapshotMap).
- *listed* (3.2.6.2): a snapshot writes a row for every inode below it.
- *carried* (ours): a directory's row has the time of its latest snapshot; what is moved takes
  along the greatest on its way.  A version is needed if the greatest on its way is not older.

Each change first reads the rows of its path, in one statement; what a way needs beyond them is
its cost.  *listed* is exact, and the others must never miss what it knows.
"""

from __future__ import annotations

import random
import statistics
import time
from bisect import bisect_left
from collections.abc import Sequence
from typing import Any, NamedTuple

from benchmarks.command import Progress
from benchmarks.namespaces import Namespaces
from benchmarks.snapshots.bench import Row
from benchmarks.snapshots.engines import Engine, empty_engine

DEPTH = 5  # directories on the way to a file; each of them has snapshots
ROOT = 1

_TABLES = """
CREATE TABLE inodes (id BIGINT PRIMARY KEY, parent BIGINT, joined BIGINT, since BIGINT,
                     covered BIGINT);
CREATE INDEX by_parent ON inodes (parent);
CREATE TABLE snaps (inode BIGINT, taken BIGINT, PRIMARY KEY (inode, taken));
CREATE TABLE moved (inode BIGINT, owner BIGINT, first BIGINT, last BIGINT);
CREATE INDEX by_inode ON moved (inode);
CREATE TABLE members (inode BIGINT, taken BIGINT, PRIMARY KEY (inode, taken))
"""
_BELOW = (
    "WITH RECURSIVE down AS (SELECT id, parent, joined FROM inodes WHERE id = $1 UNION ALL"
    " SELECT i.id, i.parent, i.joined FROM inodes i JOIN down ON i.parent = down.id)"
    " SELECT id, parent, joined FROM down"
)


class OnPath(NamedTuple):
    """An inode between the root and what is changed."""

    id: int
    joined: int
    since: int
    covered: int


Path = list[OnPath]  # from what is changed upwards


class Joined:
    """3.2.6.1."""

    name = "joined"

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def take(self, directory: int, now: int) -> int:
        await self._engine.query("INSERT INTO snaps VALUES ($1, $2)", directory, now)
        return 1

    async def is_covered(self, path: Path) -> bool:
        return bool(await self._snapshots(path)) or bool(
            await self._engine.query("SELECT 1 FROM moved WHERE inode = $1 LIMIT 1", path[0].id)
        )

    async def before_move(self, path: Path) -> int:
        """Each inode below may have joined later than the directory itself."""
        directory, *above = path
        marks = ", ".join(f"${n + 1}" for n in range(len(above)))
        snaps: dict[int, list[int]] = {}
        for owner, taken in await self._engine.query(
            f"SELECT inode, taken FROM snaps WHERE inode IN ({marks}) ORDER BY taken",
            *(inode.id for inode in above),
        ):
            snaps.setdefault(owner, []).append(taken)
        latest = {directory.id: directory.joined}  # join on the way, of all below
        rows = []
        for id, parent, joined in await self._engine.query(_BELOW, directory.id):
            latest[id] = joined_late = max(joined, latest.get(parent, 0))
            for inode in above:
                times = snaps.get(inode.id, [])
                first = bisect_left(times, joined_late)
                if first < len(times):
                    rows.append((id, inode.id, times[first], times[-1]))
                joined_late = max(joined_late, inode.joined)
        await self._engine.insert_all("moved", rows)
        return len(rows)

    async def _snapshots(self, path: Path) -> list[tuple[Any, ...]]:
        """Of each directory above the first and last snapshot that had what is changed."""
        conditions, values, joined = [], [], 0
        for number, inode in enumerate(path):
            conditions.append(f"inode = ${2 * number + 1} AND taken >= ${2 * number + 2}")
            values += [inode.id, joined]
            joined = max(joined, inode.joined)
        return await self._engine.query(
            f"SELECT inode, min(taken), max(taken) FROM snaps WHERE {' OR '.join(conditions)}"
            " GROUP BY inode",
            *values,
        )


class Listed:
    """3.2.6.2."""

    name = "listed"

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def take(self, directory: int, now: int) -> int:
        below = _BELOW.replace("$1", str(directory))
        with_time = below.replace(
            "SELECT id, parent, joined FROM down", f"SELECT id, {now} FROM down"
        )
        await self._engine.query(f"INSERT INTO members {with_time}")
        counted = await self._engine.query("SELECT count(*) FROM members WHERE taken = $1", now)
        return int(counted[0][0])

    async def is_covered(self, path: Path) -> bool:
        return bool(
            await self._engine.query("SELECT 1 FROM members WHERE inode = $1 LIMIT 1", path[0].id)
        )

    async def before_move(self, path: Path) -> int:
        return 0


class Carried:
    """Ours: what is needed is on the path, which has been read."""

    name = "carried"

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def take(self, directory: int, now: int) -> int:
        await self._engine.query(
            "UPDATE inodes SET covered = $1, since = $1 WHERE id = $2", now, directory
        )
        return 1

    async def is_covered(self, path: Path) -> bool:
        return max(inode.covered for inode in path) >= path[0].since

    async def before_move(self, path: Path) -> int:
        covered = max(inode.covered for inode in path)
        await self._engine.query(
            "UPDATE inodes SET covered = $1 WHERE id = $2", covered, path[0].id
        )
        return 0  # the row is written by the move anyhow


async def measure_coverage(
    namespaces: Namespaces, kind: str, files: int, snapshots: Sequence[int], progress: Progress
) -> list[Row]:
    """Costs of each way by the number of snapshots, all on the way to the same files."""
    rows = []
    for count in snapshots:
        progress(f"coverage, {kind}: {count} nested snapshots over {files:,} files")
        for way in (Joined, Listed, Carried):
            async with empty_engine(namespaces, kind) as engine:
                rows.append(await Experiment(engine, way(engine), files).run(count))
        _check_none_missed(rows[-3:])
    return rows


def _check_none_missed(rows: list[Row]) -> None:
    answers = {row["way"]: row.pop("answers") for row in rows}
    in_order = [answers[name] for name in ("listed", "joined", "carried")]
    for exact, *others in zip(*in_order, strict=True):
        assert not exact or all(others), "a version that a snapshot needs would be lost"


class Experiment:
    """One way, over a tree of its own: a chain of directories, the last one with all files."""

    def __init__(self, engine: Engine, way: Joined | Listed | Carried, files: int) -> None:
        self._engine = engine
        self._way = way
        self._files = range(100, 100 + files)
        self._chain = range(ROOT, ROOT + DEPTH)
        self._chance = random.Random(files)

    async def run(self, snapshots: int) -> Row:
        for statement in _TABLES.split(";"):
            await self._engine.query(statement)
        inodes = [(id, id - 1, 1, 1, 0) for id in self._chain]
        inodes += [(id, self._chain[-1], 1, 1, 0) for id in self._files]
        await self._engine.insert_all("inodes", inodes)
        await self._engine.query("ANALYZE")
        rows, took_s = 0, []
        for number in range(snapshots):
            start = time.perf_counter()
            rows += await self._way.take(self._chain[number % DEPTH], 10 + number)
            took_s.append(time.perf_counter() - start)
        new = range(self._files[-1] + 1, self._files[-1] + 1 + len(self._files) // 10)
        later = 10 + snapshots
        last = self._chain[-1]
        await self._engine.insert_all("inodes", [(id, last, later, later, 0) for id in new])
        changed = self._chance.sample([*self._files, *new], min(len(self._files) // 5, 2000))
        check_us, read_us, answers = await self._check(changed)
        move_s, move_rows = await self._move()
        return {
            "snapshots": snapshots,
            "way": self._way.name,
            "take_ms": statistics.median(took_s) * 1000,
            "rows_per_snapshot": rows / snapshots,
            "read_path_us": read_us,
            "check_us": check_us,
            "move_ms": move_s * 1000,
            "move_rows": move_rows,
            "answers": answers,
        }

    async def _check(self, ids: Sequence[int]) -> tuple[float, float, list[bool]]:
        """What one changed row costs beyond reading its path, and that reading itself."""
        paths = []
        start = time.perf_counter()
        for id in ids:
            paths.append(await read_path(self._engine, [id, *reversed(self._chain)]))
        between = time.perf_counter()
        answers = [await self._way.is_covered(path) for path in paths]
        end = time.perf_counter()
        each = 1e6 / len(ids)
        return (end - between) * each, (between - start) * each, answers

    async def _move(self) -> tuple[float, int]:
        """What moving the directory with the files takes beyond changing its one row."""
        path = await read_path(self._engine, [*reversed(self._chain)])
        start = time.perf_counter()
        rows = await self._way.before_move(path)
        return time.perf_counter() - start, rows


async def read_path(engine: Engine, ids: Sequence[int]) -> Path:
    """The rows of a path whose ids are known, as a NameNode remembers them."""
    marks = ", ".join(f"${n + 1}" for n in range(len(ids)))
    rows = await engine.query(
        f"SELECT id, joined, since, covered FROM inodes WHERE id IN ({marks})", *ids
    )
    found = {row[0]: OnPath(*row) for row in rows}
    return [found[id] for id in ids]
