"""How long a snapshot takes, by the number of files (thesis 000, 4.1.2; paper 003, figure 8).

NameNodes over directories of every size take turns, so that a disturbance meets all of them.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from contextlib import AsyncExitStack

from benchmarks.command import Progress
from benchmarks.machine import percentile
from benchmarks.snapshots.bench import FILES, Row, Shelf
from cairnfs.namesystem.clones import clone_snapshot
from cairnfs.namesystem.paths import FsPath


async def measure_create(
    shelf: Shelf, kind: str, sizes: Sequence[int], repeats: int, progress: Progress
) -> list[Row]:
    """Milliseconds of a snapshot, and of a clone of one."""
    took: dict[tuple[str, int], list[float]] = {}
    async with AsyncExitStack() as stack:
        benches = {}
        for size in sizes:
            benches[size] = await stack.enter_async_context(shelf.open(kind, size))
        progress(f"create, {kind}: {repeats} snapshots and clones of each size")
        for number in range(repeats + 1):
            for size, bench in benches.items():
                destination = FsPath.parse(f"/clone{number}")
                taken_s = await bench.snapshot(f"s{number}")
                cloned_s = await bench.timed(
                    clone_snapshot, FsPath.parse(FILES), f"s{number}", destination
                )
                if number:  # the first one warms up
                    took.setdefault(("snapshot", size), []).append(taken_s * 1000)
                    took.setdefault(("clone", size), []).append(cloned_s * 1000)
    return [
        {
            "files": size,
            "snapshot_ms": statistics.median(took["snapshot", size]),
            "snapshot_p99_ms": percentile(took["snapshot", size], 0.99),
            "clone_ms": statistics.median(took["clone", size]),
        }
        for size in sizes
    ]
