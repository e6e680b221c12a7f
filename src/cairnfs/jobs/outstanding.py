"""Work that calls have left in a cluster, worked off by all of its NameNodes at once, in rounds.

A round lists what there is and deals it out to tasks; each asks a NameNode, preferably another one
than its neighbour, to do its items, until so many rows were looked at.  What there was no
time for, and what has come of it (the directories below one that was deleted), is for the next.

Nothing is noted but what the NameNodes note: a job that was ended is run again, and finds what is
left.  The duties of the NameNodes may do the same meanwhile.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from cairnfs.client.filesystem import FileSystem
from cairnfs.client.outstanding import WorkItem, WorkKind, WorkPage
from cairnfs.errors import IOException
from cairnfs.jobs.arrow import map_batches
from cairnfs.jobs.directories import Directory
from cairnfs.jobs.failures import explained
from cairnfs.jobs.patience import patiently
from cairnfs.jobs.progress import Meter
from cairnfs.jobs.sessions import Run

if TYPE_CHECKING:
    from pyspark import Accumulator
    from pyspark.sql import DataFrame, SparkSession

ROWS_OF_A_TASK = 100_000
ITEMS_OF_A_CALL = 200
ITEMS_OF_A_ROUND = 200_000
TASKS_MAX = 16  # of a round, or more for many cores: several for each, as some take longer
IDLE_ROUNDS_MAX = 60
PAUSE_S = 0.5

ITEMS = pa.schema(
    [
        ("kind", pa.string()),
        ("id", pa.int64()),
        ("txid", pa.int64()),
        ("begin", pa.int64()),
        ("end", pa.int64()),
    ]
)
_WORDS = {  # kind: action, kind as people call it, how one of them is named
    "DETACHED": ("reclaim", "deleted tree", "'inode ' || id"),
    "DELETED_SNAPSHOT": ("reclaim", "deleted snapshot", "'of inode ' || id || ' at ' || txid"),
    "TO_SETTLE": ("settle", "directory", "'inode ' || id"),
    "POLICY_SCAN": ("look through", "subtree", "'inode ' || id"),
}
_DONE = pa.schema([("items", pa.int64()), ("done", pa.int64()), ("rows", pa.int64())])


class WorkDone(NamedTuple):
    """What rounds have come to."""

    rows: int  # looked at
    items: int  # done: subtrees, files with blocks, snapshots or parts of them, directories
    rounds: int


def work_off(
    run: Run,
    cluster: Directory,
    kinds: Sequence[WorkKind],
    title: str,
    *,
    rows: int = ROWS_OF_A_TASK,
    rows_total: int = 0,
) -> WorkDone:
    """Until nothing of these kinds is left; tasks have about so many rows looked at."""
    total = WorkDone(0, 0, 0)
    idle = 0
    with Meter(run.spark.sparkContext, run.tell, title, rows_total, 0) as meter:
        while (ready := patiently(lambda: _count_ready(cluster, kinds))) is not None:
            if not ready:
                time.sleep(PAUSE_S)
                continue
            tasks = min(ready, max(TASKS_MAX, 4 * run.spark.sparkContext.defaultParallelism))
            dealt = list_items(run.spark, cluster, kinds, rows).repartition(tasks)
            items, done, looked = _do_all(dealt, _Task(cluster, rows, meter.items))
            total = WorkDone(total.rows + looked, total.items + done, total.rounds + 1)
            idle = 0 if done or looked else idle + 1
            if idle > IDLE_ROUNDS_MAX:
                raise IOException(
                    f"{items} items of work are listed, and none gets done: see the NameNodes' logs"
                )
            if idle:
                time.sleep(PAUSE_S)  # somebody else is doing it
    return total


def list_items(
    spark: SparkSession, cluster: Directory, kinds: Sequence[WorkKind], rows: int
) -> DataFrame:
    """What is to be done, as a table with the columns of `ITEMS`: one task reads it."""

    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        _drain(batches)
        with cluster.connect() as fs:
            left = ITEMS_OF_A_ROUND
            for page in patiently(lambda: _pages(fs, kinds, rows)):
                yield _to_batch(page.items)
                left -= len(page.items)
                if left <= 0:
                    return

    return map_batches(spark.range(0, 1, 1, 1), read, ITEMS)


def describe_items(items: DataFrame) -> DataFrame:
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


def _pages(fs: FileSystem, kinds: Sequence[WorkKind], rows: int) -> Iterator[WorkPage]:
    """What there is, page by page; the first one is there."""
    pages = fs.list_work(kinds, rows)
    return chain([next(pages)], pages)


def _count_ready(cluster: Directory, kinds: Sequence[WorkKind]) -> int | None:
    """How many items can be done now, of those on a page; None: there is nothing to be done."""
    not_yet = 0
    with cluster.connect() as fs:
        for page in fs.list_work(kinds):
            if page.items:
                return len(page.items)
            not_yet += page.not_yet
    return 0 if not_yet else None


def _do_all(items: DataFrame, task: _Task) -> tuple[int, int, int]:
    """How many items there were, how many of them are done, and how many rows were looked at."""
    from pyspark.sql import functions as f

    sums = [f.coalesce(f.sum(name), f.lit(0)) for name in _DONE.names]
    with explained():
        (found,) = map_batches(items, task, _DONE).agg(*sums).collect()
    return found[0], found[1], found[2]


class _Task:
    """Has its share of the items done."""

    def __init__(self, cluster: Directory, rows: int, meter: Accumulator[int]) -> None:
        self._cluster = cluster
        self._rows = rows
        self._meter = meter

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        items = (item for batch in batches for item in _from_batch(batch))
        count = done = rows = 0
        with _beginning_with(self._cluster, _partition()).connect() as fs:
            while chunk := list(islice(items, ITEMS_OF_A_CALL)):
                count += len(chunk)
                while chunk and rows < self._rows:
                    looked, finished, chunk = _do(fs, chunk, self._rows - rows)
                    self._meter.add(looked)
                    rows += looked
                    done += finished
        yield pa.RecordBatch.from_pylist([{"items": count, "done": done, "rows": rows}], _DONE)


def _do(fs: FileSystem, items: list[WorkItem], rows: int) -> tuple[int, int, list[WorkItem]]:
    return patiently(lambda: fs.do_work(items, rows))


def _partition() -> int:
    from pyspark import TaskContext

    context = TaskContext.get()
    return 0 if context is None else context.partitionId()


def _beginning_with(cluster: Directory, number: int) -> Directory:
    """The same cluster, with another of its NameNodes to be asked first."""
    scheme, _, hosts = cluster.cluster.partition("://")
    names = hosts.split(",")
    at = number % len(names)
    return cluster._replace(cluster=f"{scheme}://{','.join(names[at:] + names[:at])}")


def _to_batch(items: Sequence[WorkItem]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([item._asdict() for item in items], ITEMS)


def _from_batch(batch: pa.RecordBatch) -> Iterator[WorkItem]:
    columns = [batch.column(name).to_pylist() for name in ITEMS.names]
    return (WorkItem(*row) for row in zip(*columns, strict=True))


def _drain(batches: Iterable[pa.RecordBatch]) -> None:
    for _ in batches:
        pass
