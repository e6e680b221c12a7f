"""What a snapshot takes by itself, and after some appends and truncates (paper 003, figure 9).

Rows and bytes in the store are counted exactly; the NameNode's memory is what Python has
allocated more, which is what a NameNode keeps beyond the caches of its store.
"""

from __future__ import annotations

import asyncio
import gc
import tracemalloc
from collections.abc import Sequence

from benchmarks.command import Progress
from benchmarks.snapshots.bench import FILES, Row, Shelf
from benchmarks.snapshots.bulk import measure_rows
from cairnfs.config import NameNodeSettings
from cairnfs.namenode.embedded import ClientProtocol, NameNodeThread

SNAPSHOTS = 10
WRITTEN_FILES = 20  # that the trace appends to and truncates: few, as in the paper's
BLOCK_BYTES = 1_000_000


async def measure_memory(
    shelf: Shelf, kind: str, sizes: Sequence[int], progress: Progress
) -> list[Row]:
    """For each number of files: what is more after a snapshot, and after the trace."""
    rows = []
    for size in sizes:
        progress(f"memory, {kind}: {size:,} files")
        url = await shelf.copy(kind, size)
        try:
            rows.append({"files": size, **await _measure(url)})
        finally:
            shelf.namespaces.drop(url)
    return rows


async def _measure(url: str) -> Row:
    # In threads: an embedded NameNode has an event loop of its own.
    await asyncio.to_thread(_prepare, url)
    before = await measure_rows(url)
    kept_bytes = await asyncio.to_thread(_take_snapshots, url)
    taken = await measure_rows(url)
    await asyncio.to_thread(_run_trace, url)
    changed = await measure_rows(url)
    return {
        "rows_per_snapshot": (taken["rows"] - before["rows"]) / SNAPSHOTS,
        "bytes_per_snapshot": (taken["bytes"] - before["bytes"]) / SNAPSHOTS,
        "namenode_bytes_per_snapshot": kept_bytes / SNAPSHOTS,
        "trace_rows": changed["rows"] - taken["rows"],
        "trace_bytes": changed["bytes"] - taken["bytes"],
    }


def _prepare(url: str) -> None:
    with _namenode(url) as namenode:
        client = namenode.client()
        client.allow_snapshot(FILES)
        for number in range(WRITTEN_FILES):
            _write(client, number)
        client.create_snapshot(FILES, "first")  # and with it the rows that are there once


def _take_snapshots(url: str) -> int:
    """Take some, and say how many bytes the NameNode has allocated and kept."""
    with _namenode(url) as namenode:
        client = namenode.client()
        client.create_snapshot(FILES, "second")  # and with it what is loaded once
        client.delete_snapshot(FILES, "second")
        tracemalloc.start()
        try:
            for number in range(SNAPSHOTS):
                client.create_snapshot(FILES, f"s{number}")
            gc.collect()
            kept_bytes, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        namenode.wait(namenode.namenode.duties.reclaim_everything())
    return kept_bytes


def _run_trace(url: str) -> None:
    with _namenode(url) as namenode:
        client = namenode.client()
        for number in range(WRITTEN_FILES):
            _append_and_truncate(client, number)


def _namenode(url: str) -> NameNodeThread:
    return NameNodeThread(NameNodeSettings(url, duties=False))


def _path(number: int) -> str:
    return f"{FILES}/log{number}"


def _write(client: ClientProtocol, number: int) -> None:
    status = client.create(_path(number), block_size_bytes=4 * BLOCK_BYTES)
    block = client.add_block(_path(number), None, status.id).block
    assert client.complete(_path(number), block.with_length(BLOCK_BYTES), status.id)


def _append_and_truncate(client: ClientProtocol, number: int) -> None:
    opened = client.append(_path(number))
    assert opened.block is not None
    longer = opened.block.block.with_length(BLOCK_BYTES + 1000)
    assert client.complete(_path(number), longer, opened.status.id)
    assert client.truncate(_path(number), BLOCK_BYTES + 500)
