"""The differences between a snapshot and another, after 1 % and 10 % of the files have changed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

from benchmarks.callers import Request
from benchmarks.command import Progress
from benchmarks.snapshots.bench import (
    FILES,
    Bench,
    Row,
    Shelf,
    chmod,
    creation,
    move,
    path_of,
    removal,
)
from cairnfs.namesystem.paths import FsPath
from cairnfs.namesystem.snapshot_diff import Position, snapshot_diff


async def measure_diff(
    shelf: Shelf,
    kind: str,
    files: int,
    parts: Sequence[float],
    limit_s: float,
    progress: Progress,
) -> list[Row]:
    """Seconds of a diff, and of listing the directory, which whoever has no diff does twice.

    A diff that takes longer than the limit has no seconds, and no other is tried after it.
    """
    rows = []
    async with shelf.open(kind, files) as bench:
        changed = 0
        for part in parts:
            wanted = max(4, int(files * part))
            progress(f"diff, {kind}: {part:.0%} of {files:,} files, changes")
            await bench.snapshot(f"before{part}")
            await bench.run(changes(changed, wanted))
            changed += wanted
            await bench.snapshot(f"after{part}")
            progress(f"diff, {kind}: {part:.0%} of {files:,} files")
            _, listed_s = await bench.list_all(FILES)
            row: Row = {"changes": wanted, "seconds": None, "to_two_listings": None}
            rows.append({**row, "listing_s": listed_s, "limit_s": limit_s})
            try:
                diff = _diff(bench, f"before{part}", f"after{part}")
                entries, seconds = await asyncio.wait_for(diff, limit_s)
            except TimeoutError:
                break
            assert entries - wanted in (0, 1), f"{entries:,} differences of {wanted:,}"
            rows[-1].update(seconds=seconds, to_two_listings=seconds / (2 * listed_s))
    return rows


def changes(first: int, count: int) -> list[Request]:
    """A quarter each deleted, created, renamed and modified, as the HDFS of `peer` is given."""
    requests = []
    for n in range(first, first + count):
        match n % 4:
            case 0:
                requests.append(removal(path_of(n)))
            case 1:
                requests.append(creation(path_of(20_000_000 + n)))
            case 2:
                requests.append(move(path_of(n), path_of(40_000_000 + n)))
            case _:
                requests.append(chmod(path_of(n)))
    return requests


async def _diff(bench: Bench, old: str, new: str) -> tuple[int, float]:
    start, entries = time.perf_counter(), 0
    resume: Position | None = None
    while True:
        page = await bench.call(snapshot_diff, FsPath.parse(FILES), old, new, resume)
        entries, resume = entries + len(page.entries), page.resume
        if resume is None:
            return entries, time.perf_counter() - start
