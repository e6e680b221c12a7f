"""A directory of a million files against one of ten: to rename, to delete, to reclaim.

Both take turns at each step, so that they meet the same disturbances.  After
a delete the directory is put back (`reattach`), as long as nothing below it
was reclaimed; so one million files serve for many deletes.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from typing import Any

from benchmarks.callers import Callers, Request
from benchmarks.core import Progress
from benchmarks.machine import percentile
from benchmarks.namespaces import Namespaces, fill, open_namenode
from cairnfs.config import Control
from cairnfs.namenode.namenode import NameNode
from cairnfs.namesystem import delete, reclaim, rename
from cairnfs.namesystem.directories import get_file_info
from cairnfs.namesystem.inodes import Inode
from cairnfs.namesystem.lookup import inode_key, resolve
from cairnfs.namesystem.orphans import orphan_key
from cairnfs.namesystem.paths import FsPath
from cairnfs.namesystem.quotas import add_entry, subtree
from cairnfs.transaction.calls import operation
from cairnfs.transaction.transaction import Transaction

SMALL = 10
STAT_CALLERS = 1
BIG, LITTLE, OTHER = "big", "little", "other"


async def measure_large(
    namespaces: Namespaces,
    kind: str,
    *,
    files: int,
    repeats: int,
    reclaim_s: float,
    progress: Progress,
) -> dict[str, Any]:
    """Times of rename and recursive delete; the pace of reclaiming, and of stat meanwhile."""
    progress(f"large, {kind}: filling a directory with {files:,} files")
    url = await namespaces.fresh(kind)
    start = time.perf_counter()
    await fill(url, "large", [(BIG, files), (LITTLE, SMALL), (OTHER, 1000)])
    result: dict[str, Any] = {"store": kind, "files": files, "small": SMALL, "repeats": repeats}
    result["filled_rows_per_s"] = round(files / (time.perf_counter() - start))
    namenode = await open_namenode(url, Control.OPTIMISTIC)
    try:
        progress(f"large, {kind}: renaming and deleting, {repeats} times each")
        result["rename"] = await _compare(namenode, _rename_and_back, repeats)
        result["delete"] = await _compare(namenode, _delete_and_reattach, repeats)
        progress(f"large, {kind}: reclaiming for at most {reclaim_s:.0f} s")
        result["reclaim"] = await _reclaim(namenode, files, reclaim_s)
    finally:
        await namenode.stop()
        namespaces.drop(url)
    return result


async def _compare(namenode: NameNode, step: Any, repeats: int) -> dict[str, float]:
    took_ms: dict[str, list[float]] = {BIG: [], LITTLE: []}
    for name in took_ms:
        await step(namenode, name)  # to know the path, as a NameNode at work does
    for _ in range(repeats):
        for name, times in took_ms.items():
            times.append(await step(namenode, name) * 1000)
    medians = {name: statistics.median(times) for name, times in took_ms.items()}
    return {
        "big_ms": round(medians[BIG], 3),
        "small_ms": round(medians[LITTLE], 3),
        "big_p99_ms": round(percentile(took_ms[BIG], 0.99), 3),
        "small_p99_ms": round(percentile(took_ms[LITTLE], 0.99), 3),
        "ratio": round(medians[BIG] / medians[LITTLE], 3),
    }


async def _rename_and_back(namenode: NameNode, name: str) -> float:
    """Seconds that one rename takes, of two."""
    here, there = FsPath.parse(f"/large/{name}"), FsPath.parse(f"/large/{name}_away")
    start = time.perf_counter()
    for src, dst in ((here, there), (there, here)):
        assert await _call(namenode, rename.rename, src, dst)
    return (time.perf_counter() - start) / 2


async def _delete_and_reattach(namenode: NameNode, name: str) -> float:
    """Seconds that the delete takes."""
    path = FsPath.parse(f"/large/{name}")
    inode = await namenode.call(inode_of, path)
    start = time.perf_counter()
    assert await _call(namenode, delete.delete, path, True)
    took_s = time.perf_counter() - start
    await namenode.call(reattach, path, inode)
    return took_s


async def _reclaim(namenode: NameNode, files: int, seconds: float) -> dict[str, Any]:
    """Delete the big directory for good and reclaim it while somebody else looks at files."""
    quiet = await _stat_until(namenode, asyncio.create_task(asyncio.sleep(1.0)))
    path = FsPath.parse(f"/large/{BIG}")
    id = (await namenode.call(inode_of, path)).id
    assert await _call(namenode, delete.delete, path, True)
    # Where two duties share the loop the others are not at work: this one is alone.
    worker = asyncio.create_task(_work_off(namenode, id, files, seconds))
    busy = await _stat_until(namenode, worker)
    rows, took_s = await worker
    return {
        "rows": rows,
        "rows_per_s": round(rows / took_s),
        "stat_p50_ms": round(percentile(busy, 0.5) * 1000, 3),
        "stat_p99_ms": round(percentile(busy, 0.99) * 1000, 3),
        "stat_max_ms": round(max(busy) * 1000, 3),
        "quiet_stat_p50_ms": round(percentile(quiet, 0.5) * 1000, 3),
        "quiet_stat_p99_ms": round(percentile(quiet, 0.99) * 1000, 3),
    }


async def _work_off(namenode: NameNode, id: int, files: int, seconds: float) -> tuple[int, float]:
    rows = 0
    start = time.perf_counter()
    while (took_s := time.perf_counter() - start) < seconds and rows < files:
        await namenode.call(reclaim.reclaim, id)
        rows = min(files, rows + reclaim.RECLAIM_BATCH)
    return rows, took_s


async def _stat_until(namenode: NameNode, task: asyncio.Task[Any]) -> list[float]:
    def work(i: int) -> Request | None:
        if task.done():
            return None
        return Request(get_file_info, (FsPath.parse(f"/large/{OTHER}/f{i % 1000:07d}"),))

    return (await Callers.of(namenode, STAT_CALLERS).finish(work)).latencies_s


async def _call(namenode: NameNode, operation: Any, *arguments: Any) -> Any:
    return await namenode.call(operation, namenode.caller(namenode.superuser), *arguments)


@operation(mutates=False)
def inode_of(tx: Transaction, path: FsPath) -> Inode:
    """The record itself, to put it back later."""
    found = resolve(tx, path).target
    assert found is not None
    return found


@operation()
def reattach(tx: Transaction, path: FsPath, inode: Inode) -> None:
    """Undo a delete of which nothing was reclaimed yet."""
    lookup = resolve(tx, path)
    assert lookup.missing == (inode.name,)
    tx.put(inode_key(lookup.deepest.id, inode.name), inode)
    key = orphan_key(inode.id)
    assert tx.get(key) is not None
    tx.delete(key)
    add_entry(tx, path, lookup.ancestors, subtree(tx, inode))
