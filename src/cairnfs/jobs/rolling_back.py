"""`rollback`: a directory becomes what it was, and what that leaves is worked off at once.

The roll-back itself is one transaction.  With it, a snapshot is taken of what is given up; as long
as the job is under way, it has a name by which the job, when it is run again, finds that the
roll-back has been done.  The last step gives it the name that it is to have.
"""

from __future__ import annotations

import hashlib
import os
import time
from typing import TYPE_CHECKING, Unpack

import msgspec

from cairnfs.client.filesystem import FileSystem
from cairnfs.client.outstanding import RECLAIMING
from cairnfs.errors import SnapshotException
from cairnfs.jobs.changes import CREATED, DELETED, MODIFIED, MOVED_IN, MOVED_OUT, changes
from cairnfs.jobs.directories import Directory
from cairnfs.jobs.outstanding import ROWS_OF_A_TASK, describe_items, list_items, work_off
from cairnfs.jobs.patience import patiently
from cairnfs.jobs.plans import Plan, summarize
from cairnfs.jobs.sessions import Options, Run, running
from cairnfs.jobs.stages import tell_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SAFETY_PREFIX = "before-rollback-"
UNFINISHED_PREFIX = "unfinished-rollback-"
_TOKEN_BYTES = 6


class RollbackResult(msgspec.Struct, frozen=True):
    """What has been done."""

    directory: str
    snapshot: str
    safety_snapshot: str  # by which it can be undone
    was_done: bool  # the roll-back itself, by a run that was ended
    rows: int  # looked at
    items: int
    rounds: int
    rollback_seconds: float  # until everybody saw the directory as it was
    seconds: float


def rollback(
    directory: str,
    snapshot: str,
    *,
    safety: str | None = None,
    task_rows: int = ROWS_OF_A_TASK,
    **options: Unpack[Options],
) -> RollbackResult:
    """Make a directory or file what it was in a snapshot, and work off what that leaves.

    What is given up is kept in a snapshot, by the name `safety` if one is given.
    """
    began_s = time.monotonic()
    where = Directory.parse(directory, options.get("user"))
    with where.connect() as fs:
        was_done = _check(fs, where, snapshot, safety)
        with running("rollback", options) as run:
            tell_of(run.tell, f"rolling {where.path} back")
            rolled_s = time.monotonic()
            kept = unfinished_name(snapshot)
            if not was_done:
                kept = fs.rollback_snapshot(where.path, snapshot, kept)
            rollback_seconds = time.monotonic() - rolled_s
            rows_total = patiently(lambda: _count(fs, where.snapshot(kept)))
            done = work_off(
                run, where, RECLAIMING, "reclaiming", rows=task_rows, rows_total=rows_total
            )
        kept = patiently(lambda: _finish(fs, where, kept, safety))
    seconds = time.monotonic() - began_s
    return RollbackResult(where.path, snapshot, kept, was_done, *done, rollback_seconds, seconds)


def plan_rollback(
    directory: str, snapshot: str, *, safety: str | None = None, **options: Unpack[Options]
) -> Plan:
    """What `rollback` would change."""
    where = Directory.parse(directory, options.get("user"))
    with where.connect() as fs:
        was_done = _check(fs, where, snapshot, safety)
    with running("rollback", options) as run:
        if was_done:
            items = list_items(run.spark, where, RECLAIMING, ROWS_OF_A_TASK)
            title = f"{where.path} is rolled back to {snapshot}: finish what that has left"
            return summarize(title, describe_items(items))
        return summarize(f"Roll {where.path} back to {snapshot}", _changes(run, where, snapshot))


def unfinished_name(snapshot: str) -> str:
    """What the snapshot of what is given up is called while the job is under way."""
    token = hashlib.blake2s(snapshot.encode(), digest_size=_TOKEN_BYTES).hexdigest()
    return f"{UNFINISHED_PREFIX}{token}"


def _check(fs: FileSystem, where: Directory, snapshot: str, safety: str | None) -> bool:
    """Whether it has been rolled back, by a run that was ended; or why it cannot be."""
    names = {each.status.name for each in fs.list_snapshots(where.path) if not each.is_deleted}
    was_done = unfinished_name(snapshot) in names
    if snapshot not in names and not was_done:
        there_are = f"there are {', '.join(sorted(names))}" if names else "there are none"
        raise SnapshotException(f"{where.path} has no snapshot {snapshot!r}; {there_are}")
    if safety in names:
        raise SnapshotException(f"{where.path} has a snapshot {safety!r} already")
    return was_done


def _count(fs: FileSystem, given_up: Directory) -> int:
    """How many rows there are to be looked at, at least."""
    summary = fs.get_content_summary(given_up.path)
    return summary.files + summary.directories


def _finish(fs: FileSystem, where: Directory, kept: str, safety: str | None) -> str:
    if not kept.startswith(UNFINISHED_PREFIX):
        return kept  # one that was there already shows the same
    name = safety or f"{SAFETY_PREFIX}{os.urandom(_TOKEN_BYTES).hex()}"
    fs.rename_snapshot(where.path, kept, name)
    return name


def _changes(run: Run, where: Directory, snapshot: str) -> DataFrame:
    """What the roll-back does about each change since; one within the directory is told once."""
    from pyspark.sql import functions as f

    found = changes(run.spark, where, snapshot, "")
    kind, is_within = f.col("change"), f.col("other").isNotNull()
    action = (
        f.when(kind == MODIFIED, "change back")
        .when((kind == MOVED_IN) & is_within, "move back")
        .when(kind.isin(CREATED, MOVED_IN), "remove")
        .when(kind.isin(DELETED, MOVED_OUT), "bring back")
    )
    return found.where(~((kind == MOVED_OUT) & is_within)).select(
        action.alias("action"), "kind", "path", f.lit(0).alias("cost")
    )
