"""`reclaim`: what was deleted, trees and snapshots, is worked off by all NameNodes at once."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Unpack

import msgspec

from cairnfs.client.outstanding import RECLAIMING
from cairnfs.jobs.directories import Directory
from cairnfs.jobs.outstanding import ROWS_OF_A_TASK, list_items, work_off
from cairnfs.jobs.plans import Plan, summarize
from cairnfs.jobs.sessions import Options, running
from cairnfs.jobs.stages import tell_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_WHOLE = 1 << 62  # rows of a part: so that nothing is listed in parts
_WORDS = {  # kind: action, kind as people call it, how one of them is named
    "DETACHED": ("reclaim", "deleted tree", "'inode ' || id"),
    "DELETED_SNAPSHOT": ("reclaim", "deleted snapshot", "'of inode ' || id || ' at ' || txid"),
    "TO_SETTLE": ("settle", "directory", "'inode ' || id"),
    "POLICY_SCAN": ("look through", "subtree", "'inode ' || id"),
}


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
        return summarize(f"Reclaim what was deleted on {where.cluster}", describe(items))


def describe(items: DataFrame) -> DataFrame:
    """Items as `summarize` takes them."""
    from pyspark.sql import functions as f

    def choose(place: int, *, is_code: bool = False) -> str:
        cases = (
            f"WHEN '{kind}' THEN {words[place] if is_code else repr(words[place])}"
            for kind, words in _WORDS.items()
        )
        return f"CASE kind {' '.join(cases)} END"

    return items.select(
        f.expr(choose(0)).alias("action"),
        f.expr(choose(1)).alias("kind"),
        f.expr(choose(2, is_code=True)).alias("path"),
        f.lit(0).alias("cost"),
    )
