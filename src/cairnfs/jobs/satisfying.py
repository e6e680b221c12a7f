"""`satisfy`: subtrees are looked through for replicas that are not where their policies want them.

All NameNodes look through them at once; what is to be moved is a duty of one, which is waited for.
"""

from __future__ import annotations

import time
from typing import Unpack

import msgspec

from cairnfs.client.filesystem import FileSystem
from cairnfs.client.outstanding import SATISFYING
from cairnfs.client.records import StoragePolicyWork
from cairnfs.jobs.directories import Directory
from cairnfs.jobs.outstanding import ROWS_OF_A_TASK, describe_items, list_items, work_off
from cairnfs.jobs.patience import patiently
from cairnfs.jobs.plans import Plan, summarize
from cairnfs.jobs.progress import JobProgress, ProgressCallback
from cairnfs.jobs.sessions import Options, running
from cairnfs.jobs.stages import tell_of

INTERVAL_S = 0.5


class SatisfyResult(msgspec.Struct, frozen=True):
    """What has been done; of replicas, only if they were waited for."""

    rows: int  # files, directories and blocks looked at
    items: int  # subtrees
    rounds: int
    placed_blocks: int  # found or brought to where they belong, meanwhile
    waiting_blocks: int  # still to be moved, up to a bound
    unsatisfied_blocks: int  # that find no place, up to a bound; they are tried again
    reasons: dict[str, int]  # why, and how many of them
    seconds: float


def satisfy(
    cluster: str,
    path: str | None = None,
    *,
    wait: bool = True,
    task_rows: int = ROWS_OF_A_TASK,
    **options: Unpack[Options],
) -> SatisfyResult:
    """Look through all subtrees whose policy has changed, and wait until replicas are moved.

    With a path, what is there and below is looked through in any case.
    """
    began_s = time.monotonic()
    where = Directory.parse(cluster, options.get("user"))
    with where.connect() as fs:
        before = fs.storage_policy_work()
        with running("satisfy", options) as run:
            if path is not None:
                fs.satisfy_storage_policy(path)
            tell_of(run.tell, "looking for what is to be looked through")
            done = work_off(run, where, SATISFYING, "looking through", rows=task_rows)
            after = _wait(fs, run.tell) if wait else fs.storage_policy_work()
    return SatisfyResult(
        *done,
        after.placed_blocks - before.placed_blocks,
        after.blocks,
        after.unsatisfied_blocks,
        after.reasons,
        time.monotonic() - began_s,
    )


def plan_satisfy(cluster: str, path: str | None = None, **options: Unpack[Options]) -> Plan:
    """What `satisfy` would begin with."""
    where = Directory.parse(cluster, options.get("user"))
    also = "" if path is None else f"{path}, and "
    with running("satisfy", options) as run:
        items = list_items(run.spark, where, SATISFYING, ROWS_OF_A_TASK)
        return summarize(
            f"Look through {also}what has another storage policy now", describe_items(items)
        )


def _wait(fs: FileSystem, tell: ProgressCallback) -> StoragePolicyWork:
    """Until nothing is left but what cannot be done."""
    most = 0
    while not (work := patiently(fs.storage_policy_work)).is_done:
        most = max(most, work.blocks)
        tell(JobProgress("moving replicas", most - work.blocks, most))
        time.sleep(INTERVAL_S)
    return work
