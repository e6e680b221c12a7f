"""Snapshots: what taking, listing, rolling back, comparing and having them costs.

The experiments of thesis 000, chapter 4: how long a snapshot takes by the size of the tree (section
4.1.2), listing a directory at a snapshot after more and more changes in the mix of figure 4.1, and
roll-back after the changes of figure 4.6.  And what users feel: ordinary calls in directories
with and without snapshots, and other callers while a snapshot is reclaimed.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

# As a script its own folder is on the path, not the one that holds the package.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.callers import Callers, Request
from benchmarks.command import Progress
from benchmarks.machine import describe_machine, percentile
from benchmarks.namespaces import POSTGRES, SQLITE, Namespaces, fill, open_namenode
from benchmarks.tables import table
from cairnfs.config import Control
from cairnfs.namenode.namenode import NameNode
from cairnfs.namesystem import attributes, delete, directories, files, rename, snapshots
from cairnfs.namesystem.paths import FsPath
from cairnfs.namesystem.rollback import clone_snapshot, rollback_snapshot
from cairnfs.namesystem.snapshot_diff import snapshot_diff
from cairnfs.store.base import Batch, Put
from cairnfs.testing.postgres_server import PostgresServer

PARTS = ("create", "listing", "overhead", "rollback", "diff", "reclaim")
RESULTS = Path(__file__).resolve().parent / "results" / "snapshots.json"
CALLERS = 32
TOP = "/bench"
# Thesis 000, figure 4.1: operations after the snapshot, and its seconds.
THESIS_LISTING_S = (3.72, 4.25, 7.98, 10.4, 12.03, 14.21, 17.48, 20.25, 23.35)
MIX = {"add": 5000, "delete": 5000, "move": 5000, "move in": 2500, "rename": 5000}
# Figure 4.6: deleted, left alone, modified, new, and its seconds.
THESIS_ROLLBACK = tuple(
    (450_000 - 50_000 * n, 450_000 - 50_000 * n, 100_000 * (n + 1), 100_000, seconds)
    for n, seconds in enumerate((21, 22, 23, 26, 27, 29, 32, 34, 36))
)


class Bench:
    """One namespace with a directory of files, and calls of its superuser."""

    def __init__(self, namenode: NameNode) -> None:
        self.namenode = namenode
        self._caller = namenode.caller(namenode.superuser)

    async def call(self, operation: Any, *arguments: Any) -> Any:
        return await self.namenode.call(operation, self._caller, *arguments)

    async def timed(self, operation: Any, *arguments: Any) -> float:
        start = time.perf_counter()
        await self.call(operation, *arguments)
        return time.perf_counter() - start

    async def snapshot(self, path: str, name: str) -> float:
        return await self.timed(snapshots.create_snapshots, (FsPath.parse(path),), name)

    async def run(self, requests: Sequence[Request]) -> float:
        """Make all calls, with many callers; the seconds that it took."""
        start = time.perf_counter()
        work = iter(requests)
        await Callers.of(self.namenode, CALLERS).finish(lambda _: next(work, None))
        return time.perf_counter() - start

    async def list_all(self, path: str) -> tuple[int, float]:
        """The entries of a directory, page by page, and the seconds that it took."""
        start, after, count = time.perf_counter(), b"", 0
        while True:
            page = await self.call(directories.get_listing, FsPath.parse(path), after)
            count += len(page.entries)
            if not page.remaining:
                return count, time.perf_counter() - start
            after = page.entries[-1].name


def path_of(number: int, directory: str = "files") -> FsPath:
    return FsPath.parse(f"{TOP}/{directory}/f{number:07d}")


def creation(path: FsPath) -> Request:
    flags = files.CreateFlag.CREATE.value
    return Request(files.create, (path, 0o644, None, "bench", flags, True, 3, 128 << 20))


def chmod(path: FsPath, mode: int) -> Request:
    return Request(attributes.set_permission, (path, mode))


def removal(path: FsPath) -> Request:
    return Request(delete.delete, (path, False))


def move(src: FsPath, dst: FsPath) -> Request:
    return Request(rename.rename2, (src, dst, rename.RenameOption.NONE))


async def with_files(namespaces: Namespaces, kind: str, count: int, work: Any) -> Any:
    """Do `work` on a new namespace with so many files in /bench/files."""
    url = await namespaces.fresh(kind)
    await fill(url, TOP[1:], [("files", count), ("elsewhere", 1)])
    namenode = await open_namenode(url, Control.OPTIMISTIC)
    try:
        bench = Bench(namenode)
        for directory in ("files", "elsewhere"):
            await bench.call(snapshots.allow_snapshot, FsPath.parse(f"{TOP}/{directory}"))
        return await work(bench)
    finally:
        await namenode.stop()
        namespaces.drop(url)


async def measure_create(namespaces: Namespaces, kind: str, sizes: Sequence[int]) -> list[Any]:
    async def work(bench: Bench) -> tuple[float, float]:
        took = [await bench.snapshot(f"{TOP}/files", f"s{n}") for n in range(20)]
        clones = []
        for n in range(20):
            destination = FsPath.parse(f"{TOP}/clone{n}")
            source = FsPath.parse(f"{TOP}/files")
            clones.append(await bench.timed(clone_snapshot, source, "s0", destination))
        return statistics.median(took) * 1000, statistics.median(clones) * 1000

    rows = []
    for size in sizes:
        snapshot_ms, clone_ms = await with_files(namespaces, kind, size, work)
        rows.append({"files": size, "snapshot_ms": snapshot_ms, "clone_ms": clone_ms})
    return rows


async def measure_listing(
    namespaces: Namespaces, kind: str, count: int, rounds: int, progress: Progress
) -> list[Any]:
    async def work(bench: Bench) -> list[Any]:
        await bench.snapshot(f"{TOP}/files", "s")
        rows = []
        used, moved = 0, 0
        for number in range(rounds + 1):
            if number:
                requests, used, moved = _changes(number, used, moved, count)
                await bench.run(requests)
            progress(f"listing, {kind}: after {number * sum(MIX.values()):,} changes")
            best_now = min([(await bench.list_all(f"{TOP}/files"))[1] for _ in range(3)])
            counted = [await bench.list_all(f"{TOP}/files/.snapshot/s") for _ in range(3)]
            assert all(found == count for found, _ in counted), counted
            best_then = min(seconds for _, seconds in counted)
            rows.append(
                {
                    "changes": number * sum(MIX.values()),
                    "now_s": best_now,
                    "snapshot_s": best_then,
                    "ratio": best_then / best_now,
                    "thesis_s": THESIS_LISTING_S[number - 1] if number else None,
                }
            )
        return rows

    return list(await with_files(namespaces, kind, count, work))


def _changes(number: int, used: int, moved: int, count: int) -> tuple[list[Request], int, int]:
    """The mix of figure 4.1, each on files that none of it has touched before."""
    scale = count / 1_000_000
    sizes = {name: max(1, int(size * scale)) for name, size in MIX.items()}
    requests = [creation(path_of(10_000_000 * number + n)) for n in range(sizes["add"])]
    for _ in range(sizes["delete"]):
        requests.append(removal(path_of(used)))
        used += 1
    for _ in range(sizes["rename"]):
        requests.append(move(path_of(used), path_of(100_000_000 + used)))
        used += 1
    outside = []
    for _ in range(sizes["move"]):
        outside.append(move(path_of(used), path_of(used, "elsewhere")))
        moved, used = used, used + 1
    requests += outside
    for n in range(sizes["move in"]):
        requests.append(move(path_of(moved - n, "elsewhere"), path_of(200_000_000 + moved - n)))
    return requests, used, moved


async def measure_overhead(namespaces: Namespaces, kind: str, count: int, rounds: int) -> list[Any]:
    """Ordinary calls where nothing is covered, and where a snapshot was taken just before."""

    async def work(bench: Bench) -> list[Any]:
        took: dict[tuple[str, bool], list[float]] = {}
        chance = random.Random(1)
        for number in range(rounds):
            for covered in (True, False) if number % 2 else (False, True):
                directory = "files" if covered else "plain"
                start = number * count
                paths = [path_of(10_000_000 + start + n, directory) for n in range(count)]
                chance.shuffle(paths)
                if covered:
                    await bench.snapshot(f"{TOP}/files", f"s{number}")
                stages = {
                    "create": [creation(path) for path in paths],
                    "chmod": [chmod(path, 0o600) for path in paths],
                    "stat": [Request(directories.get_file_info, (path,)) for path in paths],
                    "delete": [removal(path) for path in paths],
                }
                for name, requests in stages.items():
                    if covered and name in ("chmod", "delete"):
                        await bench.snapshot(f"{TOP}/files", f"s{number}{name}")
                    seconds = await bench.run(requests)
                    took.setdefault((name, covered), []).append(count / seconds)
        rows = []
        for name in ("create", "chmod", "stat", "delete"):
            plain = statistics.median(took[name, False])
            covered_rate = statistics.median(took[name, True])
            row = {"call": name, "plain_per_s": plain, "covered_per_s": covered_rate}
            rows.append({**row, "ratio": covered_rate / plain})
        return rows

    async def with_plain(bench: Bench) -> list[Any]:
        arguments = (FsPath.parse(f"{TOP}/plain"), 0o755, None, True)
        await bench.call(directories.mkdirs, *arguments)
        return await work(bench)

    return list(await with_files(namespaces, kind, 1000, with_plain))


async def measure_rollback(
    namespaces: Namespaces, kind: str, scale: float, progress: Progress
) -> list[Any]:
    """Figure 4.6: so many deleted, modified and new since the snapshot; and a bulk copy."""
    rows = []
    for deleted, alone, modified, new, thesis_s in THESIS_ROLLBACK:
        numbers = [int(number * scale) for number in (deleted, alone, modified, new)]
        progress(f"rollback, {kind}: {sum(numbers):,} rows")
        row = await with_files(
            namespaces, kind, sum(numbers[:3]), lambda bench, n=numbers: _roll_back(bench, *n)
        )
        rows.append({"rows": sum(numbers) + numbers[2], **row, "thesis_s": thesis_s})
    return rows


async def _roll_back(
    bench: Bench, deleted: int, alone: int, modified: int, new: int
) -> dict[str, float]:
    await bench.snapshot(f"{TOP}/files", "s")
    await bench.run([removal(path_of(n)) for n in range(deleted)])
    await bench.run([chmod(path_of(deleted + alone + n), 0o600) for n in range(modified)])
    await bench.run([creation(path_of(20_000_000 + n)) for n in range(new)])
    await bench.snapshot(f"{TOP}/files", "safety")
    seconds = await bench.timed(rollback_snapshot, FsPath.parse(f"{TOP}/files"), "s")
    count, _ = await bench.list_all(f"{TOP}/files")
    assert count == deleted + alone + modified, "not all of them are back"
    copied_s = await _bulk_copy(bench.namenode, deleted + modified + new)
    return {"seconds": seconds, "bulk_copy_s": copied_s}


async def _bulk_copy(namenode: NameNode, count: int) -> float:
    """Seconds that the store takes to write so many rows of an inode's size, in large batches."""
    data = bytes(90)
    start = time.perf_counter()
    for first in range(0, count, 5000):
        page = range(first, min(count, first + 5000))
        puts = [Put((99, 1, n.to_bytes(8, "big")), None, 1, data, False) for n in page]
        await namenode.store.commit(Batch(size=1, now_ms=0, puts=puts))
    return time.perf_counter() - start


async def measure_diff(namespaces: Namespaces, kind: str, count: int) -> list[Any]:
    async def work(bench: Bench) -> list[Any]:
        rows = []
        done = 0
        for part in (0.01, 0.1):
            await bench.snapshot(f"{TOP}/files", f"s{part}")
            changes = int(count * part)
            await bench.run([chmod(path_of(done + n), 0o600) for n in range(changes)])
            done += changes
            start, entries = time.perf_counter(), 0
            resume: tuple[bytes, ...] | None = ()
            while resume is not None:
                arguments = (FsPath.parse(f"{TOP}/files"), f"s{part}", "", resume)
                page = await bench.call(snapshot_diff, *arguments)
                entries, resume = entries + len(page.entries), page.resume
            assert entries == changes, f"{entries} differences of {changes}"
            rows.append({"changes": changes, "seconds": time.perf_counter() - start})
        return rows

    return list(await with_files(namespaces, kind, count, work))


async def measure_reclaim(namespaces: Namespaces, kind: str, count: int) -> dict[str, Any]:
    """What another caller notices while a deleted snapshot is reclaimed."""

    async def work(bench: Bench) -> dict[str, Any]:
        await bench.snapshot(f"{TOP}/files", "s")
        await bench.run([removal(path_of(n)) for n in range(count // 2)])
        quiet = await _stats_until(bench, asyncio.create_task(asyncio.sleep(2.0)))
        await bench.call(snapshots.delete_snapshot, FsPath.parse(f"{TOP}/files"), "s")
        if bench.namenode.store.local is None:
            await asyncio.sleep(2.5)
        start = time.perf_counter()
        worker = asyncio.create_task(_reclaim(bench.namenode))
        busy = await _stats_until(bench, worker)
        await worker
        seconds = time.perf_counter() - start
        assert await bench.namenode.store.count_past() == 0
        quiet_ms, busy_ms = (percentile(times, 0.99) * 1000 for times in (quiet, busy))
        return {
            "rows_per_s": count / 2 / seconds,
            "quiet_p99_ms": quiet_ms,
            "busy_p99_ms": busy_ms,
            "ratio": busy_ms / quiet_ms,
        }

    return dict(await with_files(namespaces, kind, count, work))


async def _reclaim(namenode: NameNode) -> None:
    while await namenode.duties.reclaiming.step():
        await asyncio.sleep(0)


async def _stats_until(bench: Bench, task: asyncio.Task[Any]) -> list[float]:
    def work(i: int) -> Request | None:
        if task.done():
            return None
        return Request(directories.get_file_info, (path_of(0, "elsewhere"),))

    return (await Callers.of(bench.namenode, 1).finish(work)).latencies_s


async def measure(
    namespaces: Namespaces, kind: str, options: argparse.Namespace, progress: Progress
) -> dict[str, Any]:
    count = options.files
    results: dict[str, Any] = {}
    if "create" in options.only:
        sizes = [size for size in (1_000, 10_000, 100_000, 1_000_000) if size <= count]
        progress(f"create, {kind}: {sizes[-1]:,} files at most")
        results["create"] = await measure_create(namespaces, kind, sizes)
    if "listing" in options.only:
        results["listing"] = await measure_listing(
            namespaces, kind, count, options.rounds, progress
        )
    if "overhead" in options.only:
        progress(f"overhead, {kind}")
        results["overhead"] = await measure_overhead(namespaces, kind, 4000, options.rounds)
    if "rollback" in options.only:
        results["rollback"] = await measure_rollback(namespaces, kind, count / 1_000_000, progress)
    if "diff" in options.only:
        progress(f"diff, {kind}: {count:,} files")
        results["diff"] = await measure_diff(namespaces, kind, count)
    if "reclaim" in options.only:
        progress(f"reclaim, {kind}: {count // 10:,} files")
        results["reclaim"] = [await measure_reclaim(namespaces, kind, count // 10)]
    return results


def main() -> int:
    """Measure, print tables, write all figures down."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=1_000_000, help="of the large directory")
    parser.add_argument("--rounds", type=int, default=9, help="of changes, as in the thesis")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--store", choices=(SQLITE, POSTGRES, "all"), default="all")
    parser.add_argument("--json", type=Path, default=RESULTS)
    options = parser.parse_args()
    progress = Progress()
    results: dict[str, Any] = {}
    with contextlib.ExitStack() as stack:
        directory = stack.enter_context(tempfile.TemporaryDirectory())
        server = None
        if options.store != SQLITE:
            server = stack.enter_context(PostgresServer(durable=True))
        namespaces = Namespaces(Path(directory), server)
        results["machine"] = describe_machine(namespaces.directory, server)
        for kind in namespaces.kinds:
            if options.store in (kind, "all"):
                results[kind] = asyncio.run(measure(namespaces, kind, options, progress))
    progress.end()
    for kind in (SQLITE, POSTGRES):
        for part, rows in results.get(kind, {}).items():
            head = list(rows[0])
            print(f"\n## {part}, {kind}\n")
            print(table(head, [[row[name] for name in head] for row in rows]))
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps(results, indent=1) + "\n")
    print(f"\nAll figures: {options.json}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
