"""`usage`: where space and files are, what snapshots hold, and what has grown.

All is added up by Spark; the driver sees the rows with most.
"""

from __future__ import annotations

import time
from contextlib import AbstractContextManager, ExitStack
from typing import TYPE_CHECKING, Unpack

import msgspec

from cairnfs.client.filesystem import FileSystem
from cairnfs.errors import IllegalArgumentException
from cairnfs.jobs import usage_tables
from cairnfs.jobs.directories import Directory
from cairnfs.jobs.places import Place
from cairnfs.jobs.saving import check_empty, save
from cairnfs.jobs.scans import Scan, find_past, scanning
from cairnfs.jobs.sessions import Options, Run, running
from cairnfs.jobs.usage_tables import CLASSES, TOTAL, Shape
from cairnfs.jobs.watching import watched

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row

DEPTH = 2
SMALL_BYTES = 1 << 20
TOP = 20
DEPTH_MAX = 20
SNAPSHOTS_MAX = 1000  # that are told of; the latest ones

_SNAPSHOT_COLUMNS = (
    "path string, name string, created timestamp, files bigint, length bigint, referenced bigint,"
    " exclusive bigint"
)


class UsageRow(msgspec.Struct, frozen=True):
    """What was added up for one directory, owner, class...; `before` is None if nobody asked."""

    key: str
    files: int = 0
    directories: int = 0
    symlinks: int = 0
    bytes: int = 0
    space: int = 0  # with all replicas
    blocks: int = 0
    small_files: int = 0
    small_bytes: int = 0
    files_before: int | None = None
    bytes_before: int | None = None
    space_before: int | None = None

    @property
    def name(self) -> str:
        """What is looked at is among its directories, too."""
        return self.key or "."

    @property
    def growth(self) -> int:
        """Of the space."""
        return self.space - (self.space_before or 0)


class HeldBySnapshot(msgspec.Struct, frozen=True):
    """What a snapshot shows, refers to and alone holds; the latter two with all replicas."""

    path: str
    name: str
    created_ms: int
    files: int
    bytes: int
    referenced: int
    exclusive: int | None  # None: it was deleted meanwhile


class UsageReport(msgspec.Struct, frozen=True):
    """The whole of it; `tables` are by what they are about."""

    directory: str
    moment_ms: int
    since: str | None
    small_bytes: int  # which files count as small
    total: UsageRow
    tables: dict[str, list[UsageRow]]
    snapshots: list[HeldBySnapshot]
    seconds: float = 0.0


def usage(
    directory: str,
    *,
    depth: int = DEPTH,
    small_bytes: int = SMALL_BYTES,
    top: int = TOP,
    since: str | None = None,
    until: str | None = None,
    output: str | None = None,
    **options: Unpack[Options],
) -> UsageReport:
    """Where space and files are below a directory: `usage("hdfs://namenode:8020/sales")`.

    `since` is a snapshot to compare with, `until` one to look at instead of now.  `top` rows are
    told of each table; all of them are put into `output`, as Parquet.
    """
    began_s = time.monotonic()
    if not 1 <= depth <= DEPTH_MAX or top < 1:
        raise IllegalArgumentException(
            f"a depth is from 1 to {DEPTH_MAX}, and at least one row is told: not {depth}, {top}"
        )
    where = Directory.parse(directory, options.get("user"))
    place = None if output is None else Place(output, where.user)
    if place is not None:
        check_empty(place)
    shape = Shape(depth, small_bytes)
    with ExitStack() as session:
        with ExitStack() as held:
            fs = held.enter_context(where.connect())
            now = held.enter_context(_scan(fs, where, until))
            then = None if since is None else held.enter_context(_scan(fs, where, since))
            run = session.enter_context(running("usage", options))
            with watched(run.spark.sparkContext, run.tell, "adding up"):
                before = None if then is None else usage_tables.tally(run.spark, then, shape)
                tallied = usage_tables.compare(usage_tables.tally(run.spark, now, shape), before)
                tables = _collect(tallied, top, place)
        # Not before: what we hold ourselves is not what a snapshot alone holds.
        with watched(run.spark.sparkContext, run.tell, "looking at snapshots"):
            snapshots = _snapshots(run, where)
    (total,) = tables.pop(TOTAL)
    return UsageReport(
        where.path,
        now.moment_ms,
        since,
        small_bytes,
        total,
        tables,
        snapshots,
        time.monotonic() - began_s,
    )


def _scan(
    fs: FileSystem, directory: Directory, snapshot: str | None
) -> AbstractContextManager[Scan]:
    """As the directory is, or was in a snapshot."""
    if snapshot is None:
        return scanning(directory)
    return scanning(*find_past(fs, directory, snapshot))


def _collect(tallied: DataFrame, top: int, place: Place | None) -> dict[str, list[UsageRow]]:
    """The rows with most, by report; all of them go to the place, if there is one."""
    tallied.persist()
    try:
        found = usage_tables.largest(tallied, top).collect()
        if place is not None:
            save(tallied, place)
    finally:
        tallied.unpersist()
    tables: dict[str, list[UsageRow]] = {}
    for row in sorted(found, key=lambda row: int(row["rank"])):
        tables.setdefault(row["report"], []).append(_row(row))
    for report, names in CLASSES.items():
        tables.get(report, []).sort(key=lambda each: names.index(each.key))
    return tables


def _row(row: Row) -> UsageRow:
    return UsageRow(**{name: row[name] for name in UsageRow.__struct_fields__})


def _snapshots(run: Run, directory: Directory) -> list[HeldBySnapshot]:
    """Of what is at and below the directory, in the order in which they were taken."""
    from pyspark.sql import functions as f

    found = (
        run.spark.read.format("cairn")
        .option("user", directory.user)
        .option("table", "snapshots")
        .schema(_SNAPSHOT_COLUMNS)
        .load(directory.url)
        .withColumn("created", f.unix_millis("created"))
    )
    latest = found.orderBy(f.desc("created"), f.desc("path")).limit(SNAPSHOTS_MAX).collect()
    return [HeldBySnapshot(*row) for row in reversed(latest)]
