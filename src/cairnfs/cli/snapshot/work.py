"""What is left to be done in the background once snapshots are deleted: told, or waited for."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from cairnfs.cli.progress import Waiting

if TYPE_CHECKING:
    from cairnfs.client.filesystem import FileSystem
    from cairnfs.client.records import SnapshotWork

INTERVAL_S = 0.2


def wait_until_reclaimed(fs: FileSystem) -> None:
    """Until nothing is left; how far it has come is shown to whoever looks at a terminal."""
    with Waiting("reclaiming") as waiting:
        while not (work := fs.snapshot_work()).is_done:
            waiting.what = f"reclaiming ({describe(work)})"
            time.sleep(INTERVAL_S)


def describe(work: SnapshotWork) -> str:
    """As people say it: 3 deleted trees, 1 deleted snapshot (40 % done)."""
    parts = []
    if work.deleted_trees:
        parts.append(_count(work.deleted_trees, "deleted tree", work))
    if work.deleted_snapshots:
        done = f" ({work.percent_of_snapshot} % done)" if work.deleted_snapshots == 1 else ""
        parts.append(_count(work.deleted_snapshots, "deleted snapshot", work) + done)
    if work.directories_to_settle:
        parts.append(_count(work.directories_to_settle, "directory", work, "directories"))
    return ", ".join(parts)


def _count(number: int, one: str, work: SnapshotWork, several: str = "") -> str:
    least = "at least " if number >= work.bound else ""
    return f"{least}{number} {one if number == 1 else several or one + 's'}"
