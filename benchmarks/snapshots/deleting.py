"""What others notice while a snapshot is deleted, and what only it needed is reclaimed."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable

from benchmarks.callers import Callers, Measured, Request
from benchmarks.command import Progress
from benchmarks.snapshots.bench import (
    FILES,
    OTHER_FILES,
    OTHERS,
    Bench,
    Row,
    Shelf,
    chmod,
    creation,
    listing,
    move,
    path_of,
    removal,
    stat,
)
from cairnfs.namenode.reclaiming import SETTLING_MS
from cairnfs.namesystem import snapshots
from cairnfs.namesystem.paths import FsPath

OTHER_CALLERS = 4
ON_THE_WAY_MAX = 20 * OTHER_CALLERS
# What a cluster at work is asked, by and large: mostly to look.
MIX = {"stat": 70, "list": 5, "create": 10, "chmod": 5, "rename": 5, "delete": 5}


async def measure_delete(
    shelf: Shelf, kind: str, changes: int, quiet_s: float, progress: Progress
) -> list[Row]:
    """Latencies of others before, while and after the rows of a snapshot are reclaimed."""
    async with shelf.open(kind, changes) as bench:
        progress(f"delete, {kind}: {changes:,} files are deleted under a snapshot")
        await bench.snapshot("s")
        await bench.run([removal(path_of(n)) for n in range(changes)])
        others = Others()
        progress(f"delete, {kind}: others alone")
        before = await _others_until(bench, others, _after(quiet_s))
        deleted_s = await bench.timed(snapshots.delete_snapshot, FsPath.parse(FILES), "s")
        if bench.namenode.store.local is None:
            await asyncio.sleep(SETTLING_MS / 1000 + 0.1)
        past = await bench.namenode.store.count_past()
        progress(f"delete, {kind}: others while {past:,} versions are reclaimed")
        work = asyncio.create_task(_timed_reclaim(bench))
        busy = await _others_until(bench, others, work.done)
        reclaimed_s = await work
        after = await _others_until(bench, others, _after(quiet_s))
        assert await bench.namenode.store.count_past() == 0, "something was left"
    quiet_ms = (before.latency_ms(0.99) + after.latency_ms(0.99)) / 2
    return [
        {
            "versions": past,
            "delete_ms": deleted_s * 1000,
            "reclaimed_per_s": past / reclaimed_s,
            "quiet_p50_ms": before.latency_ms(0.5),
            "busy_p50_ms": busy.latency_ms(0.5),
            "quiet_p99_ms": quiet_ms,
            "busy_p99_ms": busy.latency_ms(0.99),
            "ratio": busy.latency_ms(0.99) / quiet_ms,
        }
    ]


async def _timed_reclaim(bench: Bench) -> float:
    start = time.perf_counter()
    await bench.namenode.duties.reclaim_everything()
    return time.perf_counter() - start


def _after(seconds: float) -> Callable[[], bool]:
    end = time.perf_counter() + seconds
    return lambda: time.perf_counter() >= end


async def _others_until(bench: Bench, others: Others, is_over: Callable[[], bool]) -> Measured:
    callers = Callers.of(bench.namenode, OTHER_CALLERS)
    return await callers.finish(lambda _: None if is_over() else others.next())


class Others:
    """A stream of calls, each on files of its own, so that none can fail."""

    def __init__(self) -> None:
        self._chance = random.Random(1)
        self._kinds = [name for name, weight in MIX.items() for _ in range(weight)]
        self._made = 0
        self._free: list[int] = []  # made by a call long enough ago to be answered

    def next(self) -> Request:
        kind = self._chance.choice(self._kinds)
        some = path_of(self._chance.randrange(OTHER_FILES), OTHERS)
        if kind == "list":
            return listing(FsPath.parse(OTHERS))
        if kind == "chmod":
            return chmod(some, 0o600 + self._chance.randrange(64))
        if kind == "create":
            self._made += 1
            self._free.append(self._made)
            return creation(self._own(self._made))
        # The last ones may still be on their way.
        if kind in ("rename", "delete") and len(self._free) > ON_THE_WAY_MAX:
            number = self._free.pop(0)
            if kind == "delete":
                return removal(self._own(number))
            return move(self._own(number), path_of(90_000_000 + number, OTHERS))
        return stat(some)

    def _own(self, number: int) -> FsPath:
        return path_of(80_000_000 + number, OTHERS)
