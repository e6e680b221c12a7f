"""What reclaiming and roll-backs cost, and whether that depends on snapshots of other directories.

    python -m benchmarks.reclaiming [--against SRC] [--elsewhere 0,1000,10000,100000] [--quick]

Each case runs in a process of its own, on a new namespace on SQLite, and tells the CPU time of
that process.  `SRC` is the folder `src` of another checkout, whose cases run between ours.

- deleted: files of one block are made in a directory that never had a snapshot, and deleted one by
  one; CPU time per file until all of them are reclaimed.
- roll-back: a directory of ten files is rolled back again and again; CPU time per roll-back.
- Both with so many snapshots in other directories, 100 of each.
- rows: a directory of many files is rolled back, and then its snapshots are deleted; CPU time per
  row that reclaiming looks at (each file has two: the inode and its block).
- removals: directories with one snapshot and one change each; all snapshots are deleted; seconds
  until all of it is reclaimed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from cairnfs.blocks.records import Block
from cairnfs.config import NameNodeSettings
from cairnfs.namenode.embedded import ClientProtocol, NameNodeThread
from cairnfs.namenode.opening import format_namespace, sqlite_url

ELSEWHERE = (0, 1_000, 10_000, 100_000)
SNAPSHOTS_OF_A_DIRECTORY = 100
BARS = {"growth": 1.5, "us per row": 80.0}


def work(case: str, size: int, elsewhere: int) -> float:
    """Run one case, and return its figure."""
    with tempfile.TemporaryDirectory() as directory:
        url = sqlite_url(Path(directory) / "namespace")
        asyncio.run(format_namespace(url))
        with NameNodeThread(NameNodeSettings(url, duties=False)) as namenode:
            fs = namenode.client()
            make_snapshots(fs, elsewhere)
            if case == "deleted":
                return 1e6 * deleted(namenode, fs, size) / size
            if case == "roll-back":
                return 1e6 * rolled_back(fs, size) / size
            if case == "rows":
                return 1e6 * rows(namenode, fs, size) / (2 * size)
            assert case == "removals", f"there is no case {case}"
            return removals(namenode, fs, size)


def make_snapshots(fs: ClientProtocol, count: int) -> None:
    """Directories with snapshots, below one that has nothing to do with what is measured."""
    directories = [f"/elsewhere/d{n}" for n in range(count // SNAPSHOTS_OF_A_DIRECTORY)]
    for path in directories:
        fs.mkdirs(path)
        fs.allow_snapshot(path)
        for name in range(SNAPSHOTS_OF_A_DIRECTORY):
            fs.create_snapshot(path, f"s{name}")


def write(fs: ClientProtocol, path: str) -> None:
    fs.create(path)
    block: Block = fs.add_block(path).block
    fs.complete(path, block.with_length(1_000_000))


def deleted(namenode: NameNodeThread, fs: ClientProtocol, size: int) -> float:
    fs.mkdirs("/here")
    for n in range(size):
        write(fs, f"/here/f{n}")
    for n in range(size):
        fs.delete(f"/here/f{n}")
    return reclaim(namenode)


def rolled_back(fs: ClientProtocol, size: int) -> float:
    fs.mkdirs("/here/below")
    for n in range(10):
        write(fs, f"/here/below/f{n}")
    fs.allow_snapshot("/here")
    fs.create_snapshot("/here", "s")
    spent_s = 0.0
    for n in range(size):
        fs.mkdirs(f"/here/new{n}")
        began_s = time.process_time()
        fs.rollback_snapshot("/here", "s")
        spent_s += time.process_time() - began_s
    return spent_s


def rows(namenode: NameNodeThread, fs: ClientProtocol, size: int) -> float:
    fs.mkdirs("/here")
    for n in range(size):
        write(fs, f"/here/f{n}")
    fs.allow_snapshot("/here")
    fs.create_snapshot("/here", "s")
    fs.mkdirs("/here/new")
    kept = fs.rollback_snapshot("/here", "s", "before")
    for name in ("s", kept):
        fs.delete_snapshot("/here", name)
    return reclaim(namenode)


def removals(namenode: NameNodeThread, fs: ClientProtocol, size: int) -> float:
    for n in range(size):
        path = f"/here/d{n}"
        write(fs, f"{path}/f")
        fs.allow_snapshot(path)
        fs.create_snapshot(path, "s")
        fs.set_permission(f"{path}/f", 0o600)
    for n in range(size):
        fs.delete_snapshot(f"/here/d{n}", "s")
    began_s = time.monotonic()
    reclaim(namenode)
    return time.monotonic() - began_s


def reclaim(namenode: NameNodeThread) -> float:
    """Reclaim everything; the CPU time that it took."""
    time.sleep(0.1)  # until what was committed is in its tables
    began_s = time.process_time()
    namenode.wait(namenode.namenode.duties.reclaim_everything())
    spent_s = time.process_time() - began_s
    past = namenode.wait(namenode.namenode.store.count_past())
    assert not past or namenode.client().list_snapshottable(), f"{past} past rows are left"
    return spent_s


def run(source: Path, case: str, size: int, elsewhere: int) -> float:
    """Run one case of a version in a process of its own."""
    path = os.pathsep.join([str(source), str(Path(__file__).parents[1])])
    command = ["-m", "benchmarks.reclaiming", "--worker", case, str(size), str(elsewhere)]
    done = subprocess.run(
        [sys.executable, *command],
        env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    )
    return float(done.stdout)


def measure(sources: dict[str, Path], elsewhere: list[int], quick: bool) -> Iterator[str]:
    """Run all cases, and yield a line of each."""
    found: dict[str, list[float]] = {}
    cases = [
        *(("deleted", 500 if quick else 3000, count) for count in elsewhere),
        *(("roll-back", 20 if quick else 100, count) for count in elsewhere),
        ("rows", 1000 if quick else 20_000, 0),
        *(("removals", count, 0) for count in ((50, 100) if quick else (100, 200, 400, 800))),
    ]
    yield f"{'case':12}{'size':>8}{'elsewhere':>11}" + "".join(f"{name:>14}" for name in sources)
    for case, size, count in cases:
        line = f"{case:12}{size:8}{count:11}"
        for name, source in sources.items():
            figure = run(source, case, size, count)
            found.setdefault(f"{name} {case}", []).append(figure)
            unit = " s" if case == "removals" else " us"
            line += f"{figure:11.2f}{unit:3}" if case == "removals" else f"{figure:11.1f}{unit:3}"
        yield line
    for case in ("deleted", "roll-back"):
        figures = found[f"ours {case}"]
        growth = max(figures) / figures[0]
        yield _verdict(f"{case} with snapshots elsewhere over without", growth, BARS["growth"])
    yield _verdict("CPU us per reclaimed row", found["ours rows"][0], BARS["us per row"])


def _verdict(what: str, figure: float, bar: float) -> str:
    return f"{what}: {figure:.2f} (bar {bar}): {'met' if figure <= bar else 'NOT MET'}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--against", type=Path, metavar="SRC")
    parser.add_argument("--elsewhere", default=",".join(map(str, ELSEWHERE)))
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--worker", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.worker:
        case, size, elsewhere = given.worker
        print(json.dumps(work(case, int(size), int(elsewhere))))
        return
    sources = {"ours": Path(__file__).parents[1] / "src"}
    if given.against is not None:
        sources["other"] = given.against
    for line in measure(sources, [int(each) for each in given.elsewhere.split(",")], given.quick):
        print(line, flush=True)


if __name__ == "__main__":
    main()
