"""Roll-back after the nine rows of changes of thesis 000, figure 4.6; beside one bulk copy."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.command import Progress
from benchmarks.snapshots.bench import FILES, Row, Shelf, opened
from benchmarks.snapshots.bulk import change_files, copy_all_rows
from benchmarks.snapshots.published import RollbackRow
from cairnfs.namesystem.directories import get_content_summary
from cairnfs.namesystem.paths import FsPath
from cairnfs.namesystem.rollback import rollback_snapshot
from cairnfs.namesystem.snapshots import allow_snapshot


async def measure_rollback(
    shelf: Shelf, kind: str, figure: Sequence[RollbackRow], progress: Progress
) -> list[Row]:
    """Seconds of a roll-back as users call it, with the snapshot of what is given up."""
    rows = []
    for number, numbers in enumerate(figure):
        progress(f"rollback, {kind}: row {number + 1} of {len(figure)}, {numbers.rows:,} rows")
        url = await shelf.copy(kind, numbers.files)
        try:
            is_listed = number in (0, len(figure) - 1)
            measured = await _roll_back(shelf, url, numbers, is_listed=is_listed)
        finally:
            shelf.namespaces.drop(url)
        row: Row = {"rows": numbers.rows, "changes": numbers.changes, **measured}
        row["ratio"] = row["seconds"] / row["bulk_copy_s"]
        rows.append({**row, "thesis_s": numbers.clusterj_s})
    return rows


async def _roll_back(shelf: Shelf, url: str, numbers: RollbackRow, *, is_listed: bool) -> Row:
    path = FsPath.parse(FILES)
    async with opened(url) as bench:
        await bench.call(allow_snapshot, path)
        await bench.snapshot("s")
    await change_files(url, numbers)
    shelf.namespaces.settle(url)
    copied = await copy_all_rows(url)
    before_s = after_s = None
    async with opened(url) as bench:
        if is_listed:
            before, before_s = await bench.list_all(FILES)
            assert before == numbers.files_after, f"{before:,} files before"
        seconds = await bench.snapshot("safety") + await bench.timed(rollback_snapshot, path, "s")
        summary = await bench.call(get_content_summary, path)
        assert summary.files == numbers.files, f"{summary.files:,} files are back"
        if is_listed:
            count, after_s = await bench.list_all(FILES)
            assert count == numbers.files, f"{count:,} files are back"
    return {"seconds": seconds, **copied, "list_before_s": before_s, "list_after_s": after_s}
