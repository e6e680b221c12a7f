"""What ordinary calls cost where there are snapshots, beside where there are none.

Three directories take turns in each round.  One has no snapshot.  One has snapshots, and the
files that are worked with are newer: what users meet most of the time.  And in one a snapshot
is taken before each kind of call, so that every change is the first one after it, and keeps
a version: the worst case.
"""

from __future__ import annotations

import random
import statistics

from benchmarks.callers import Request
from benchmarks.command import Progress
from benchmarks.snapshots.bench import (
    TOP,
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
from cairnfs.namesystem import directories, snapshots
from cairnfs.namesystem.paths import FsPath

PLAIN, COVERED, EACH = "plain", "covered", "each"
SNAPSHOTS_BEFORE = 20
LISTED = 20  # listings of a round


async def measure_overhead(
    shelf: Shelf, kind: str, count: int, rounds: int, progress: Progress
) -> list[Row]:
    """Operations per second of each kind of call, and their ratios."""
    took: dict[tuple[str, str], list[float]] = {}
    async with shelf.open(kind, 1000) as bench:
        for where in (PLAIN, COVERED, EACH):
            path = FsPath.parse(_directory(where))
            await bench.call(directories.mkdirs, path, 0o755, None, True)
            if where != PLAIN:
                await bench.call(snapshots.allow_snapshot, path)
        for number in range(SNAPSHOTS_BEFORE):
            await bench.snapshot(f"old{number}", _directory(COVERED))
        for number in range(rounds + 1):
            progress(f"overhead, {kind}: round {number} of {rounds}")
            order = [PLAIN, COVERED, EACH]
            random.Random(number).shuffle(order)
            for name in _stages(PLAIN, 0, 0):
                for where in order:
                    rate = await _stage(bench, where, name, number, count)
                    if number:  # the first round warms up
                        took.setdefault((name, where), []).append(rate)
    return [_row(name, took) for name in _stages(PLAIN, 0, 0)]


async def _stage(bench: Bench, where: str, name: str, number: int, count: int) -> float:
    if where == EACH:
        await bench.snapshot(f"s{number}-{name}", _directory(where))
    requests = _stages(where, number, count)[name]
    random.Random(number).shuffle(requests)
    return (await bench.run(requests)).per_s


def _stages(where: str, number: int, count: int) -> dict[str, list[Request]]:
    directory = _directory(where)
    paths = [path_of(number * count + n, directory) for n in range(count)]
    renamed = [path_of(50_000_000 + number * count + n, directory) for n in range(count)]
    return {
        "create": [creation(path) for path in paths],
        "stat": [stat(path) for path in paths],
        "list of 1,000": [listing(FsPath.parse(directory)) for _ in range(min(count, LISTED))],
        "chmod": [chmod(path) for path in paths],
        "rename": [move(*both) for both in zip(paths, renamed, strict=True)],
        "delete": [removal(path) for path in renamed],
    }


def _directory(where: str) -> str:
    return f"/{TOP}/{where}"


def _row(name: str, took: dict[tuple[str, str], list[float]]) -> Row:
    """Ratios are medians of those of a round, in which all have met the same machine."""
    row: Row = {"call": name}
    for where in (PLAIN, COVERED, EACH):
        row[f"{where}_per_s"] = statistics.median(took[name, where])
    for where in (COVERED, EACH):
        pairs = zip(took[name, where], took[name, PLAIN], strict=True)
        row[f"{where}_ratio"] = statistics.median(rate / plain for rate, plain in pairs)
    return row
