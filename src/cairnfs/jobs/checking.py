"""`fsck`: whether everything below a directory is as it should be, as the NameNodes know it.

Blocks have enough good replicas, files are as long as their blocks, and what directories say of
what is below them is so.  All of it is of one moment; what then seems wrong with a block is looked
at once more, since replicas come and go.  To read the bytes of replicas is the work of `scrub`.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Unpack

import msgspec

from cairnfs.jobs import check_tables
from cairnfs.jobs.check_tables import KINDS, SEVERE
from cairnfs.jobs.directories import Directory
from cairnfs.jobs.places import Place
from cairnfs.jobs.saving import check_empty, save
from cairnfs.jobs.scans import Scan, scanning
from cairnfs.jobs.sessions import Options, Run, running
from cairnfs.jobs.watching import watched

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

TOP = 1000


class FsckProblem(msgspec.Struct, frozen=True):
    """Something that is not as it should be; `block` is empty where it is not about one."""

    kind: str
    path: str
    block: str
    offset_bytes: int
    replicas: int
    wanted: int
    detail: str

    @property
    def is_damage(self) -> bool:
        return self.kind in SEVERE


class FsckReport(msgspec.Struct, frozen=True):
    """What was looked at, and what is wrong: the worst, and how much there is of each kind."""

    directory: str
    directories: int
    files: int
    symlinks: int
    open_files: int
    blocks: int
    replicas: int
    length_bytes: int
    replica_bytes: int
    counts: dict[str, int]
    problems: list[FsckProblem]
    seconds: float = 0.0

    @property
    def is_healthy(self) -> bool:
        return not any(self.counts[kind] for kind in SEVERE)


def fsck(
    directory: str, *, top: int = TOP, output: str | None = None, **options: Unpack[Options]
) -> FsckReport:
    """Look at everything below a directory: `fsck("hdfs://namenode:8020/")`.

    The `top` worst problems are told; all of them are put into `output`, as Parquet.
    """
    began_s = time.monotonic()
    where = Directory.parse(directory, options.get("user"))
    place = None if output is None else Place(output, where.user)
    if place is not None:
        check_empty(place)
    with scanning(where) as scan, running("fsck", options) as run:
        report = _run(scan, run, top, place)
    return msgspec.structs.replace(report, seconds=time.monotonic() - began_s)


def _run(scan: Scan, run: Run, top: int, place: Place | None) -> FsckReport:
    spark = run.spark
    with watched(spark.sparkContext, run.tell, "looking at files and blocks"):
        files = check_tables.files(spark, scan).persist()
        try:
            seen = check_tables.count(files).collect()[0].asDict()
            problems = check_tables.problems(scan, files).persist()
            try:
                return _report(scan.directory, seen, problems, top, place)
            finally:
                problems.unpersist()
        finally:
            files.unpersist()


def _report(
    directory: Directory, seen: dict[str, int], problems: DataFrame, top: int, place: Place | None
) -> FsckReport:
    found = {row["kind"]: row["count"] for row in problems.groupBy("kind").count().collect()}
    if place is not None:
        save(problems.drop("severity"), place)
    worst = problems.orderBy("severity", "path", "offset_bytes").limit(top) if found else None
    rows = [] if worst is None else worst.drop("severity").collect()
    return FsckReport(
        directory.path,
        **seen,
        counts={kind: found.get(kind, 0) for kind in KINDS},
        problems=[FsckProblem(**row.asDict()) for row in rows],
    )
