"""`reclaim`: what was deleted, trees and snapshots, is worked off by all NameNodes at once."""

from __future__ import annotations

import time
from typing import Unpack

import msgspec

from cairnfs.client.outstanding import RECLAIMING
from cairnfs.jobs.directories import Directory
from cairnfs.jobs.outstanding import ROWS_OF_A_TASK, describe_items, list_items, work_off
from cairnfs.jobs.plans import Plan, summarize
from cairnfs.jobs.sessions import Options, running
from cairnfs.jobs.stages import tell_of

_WHOLE = 1 << 62  # rows of a part: so that nothing is listed in parts


class ReclaimResult(msgspec.Struct, frozen=True):
    """What has been done."""

    rows: int  # looked at
    items: int  # deleted trees, files with blocks, deleted snapshots, directories
    rounds: int
    seconds: float


def reclaim(
    cluster: str, *, task_rows: int = ROWS_OF_A_TASK, **options: Unpack[Options]
) -> ReclaimResult:
    """Work off what deletions and roll-backs have left, until nothing of it is left.

    A task has `task_rows` rows looked at.
    """
    began_s = time.monotonic()
    where = Directory.parse(cluster, options.get("user"))
    with running("reclaim", options) as run:
        tell_of(run.tell, "looking for what was deleted")
        done = work_off(run, where, RECLAIMING, "reclaiming", rows=task_rows)
    return ReclaimResult(*done, time.monotonic() - began_s)


def plan_reclaim(cluster: str, **options: Unpack[Options]) -> Plan:
    """What `reclaim` would begin with; what is below is found on the way."""
    where = Directory.parse(cluster, options.get("user"))
    with running("reclaim", options) as run:
        items = list_items(run.spark, where, RECLAIMING, _WHOLE)
        return summarize(f"Reclaim what was deleted on {where.cluster}", describe_items(items))
