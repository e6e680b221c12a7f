"""`scrub`: every replica is read from its DataNode and compared with its checksums.

What is bad is reported to the NameNode, which has it replaced by a copy of a good one.  What only
snapshots still show is read, too.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from functools import reduce
from typing import TYPE_CHECKING, Unpack

import msgspec
import pyarrow as pa

from cairnfs.client.verifying import UNREACHABLE, BlockCheck
from cairnfs.errors import FileNotFoundException, IllegalArgumentException
from cairnfs.jobs.directories import Directory
from cairnfs.jobs.places import Place
from cairnfs.jobs.plans import Plan, summarize
from cairnfs.jobs.scans import Scan, check_directory, list_pasts, scanning
from cairnfs.jobs.sessions import Options, Run, running
from cairnfs.jobs.stages import Stage, Work, tell_of
from cairnfs.network.throttle import Throttle

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

BAD_MAX = 1000  # that are told of; all are counted
_OF_BATCH_MAX = 100

_COLUMNS = (
    "path string, offset bigint, length bigint, block_id bigint, state string, live_replicas int"
)


class BadBlock(msgspec.Struct, frozen=True):
    """A replica that is not what it should be; without a good one, its block is lost."""

    path: str
    block: str
    offset_bytes: int
    datanode: str
    kind: str  # corrupt, unreadable or unreachable
    reason: str
    good: int  # other replicas of the block
    is_reported: bool


class Scrubbed(msgspec.Struct, frozen=True):
    """What has come of some blocks."""

    blocks: int = 0
    replicas: int = 0
    bytes: int = 0
    gone: int = 0  # blocks of files that were deleted or moved since it was planned
    bad: int = 0
    unreachable: int = 0
    reported: int = 0
    lost: int = 0  # blocks of which no replica is good
    listed: list[BadBlock] = []


class ScrubResult(msgspec.Struct, frozen=True):
    """What has come of all of them."""

    directory: str
    found: Scrubbed
    seconds: float

    @property
    def is_healthy(self) -> bool:
        return not self.found.lost


class ScrubJob(msgspec.Struct, frozen=True):
    """What is under way, as it is noted."""

    directory: str
    snapshots: bool


def scrub(
    directory: str,
    *,
    snapshots: bool = True,
    bytes_per_s: int | None = None,
    state: str | None = None,
    **options: Unpack[Options],
) -> ScrubResult:
    """Verify all replicas of what is below a directory, and have bad ones replaced.

    All tasks together read `bytes_per_s`.  `state` is where it is noted how far it is: beside the
    directory, if nothing else is said.  Run again, it goes on where it was.
    """
    began_s = time.monotonic()
    if bytes_per_s is not None and bytes_per_s < 1:
        raise IllegalArgumentException(f"{bytes_per_s} bytes in a second would take forever")
    where = Directory.parse(directory, options.get("user"))
    work = Work(_place_of(where, state))
    job = ScrubJob(where.url, snapshots)
    stage = Stage(work, "blocks", "verifying", Scrubbed)
    with where.connect() as fs:
        check_directory(fs, where)
    begun = work.find(ScrubJob)
    if begun is None:
        work.begin(job)
    elif begun != job:
        raise IllegalArgumentException(
            f"{work.place} is of another scrub, of {begun.directory}: finish or remove it"
        )
    with running("scrub", options) as run:
        tell_of(run.tell, "planning")
        with ExitStack() as stack:
            planned = stage.plan(
                lambda: _plan(where, run, stack, with_snapshots=snapshots), run.batch
            )
        tasks = max(1, min(len(planned), run.spark.sparkContext.defaultParallelism))
        task = _Scrub(where, None if bytes_per_s is None else max(1, bytes_per_s // tasks))
        done = stage.apply(run.spark, task, run.tell)
    work.end()
    return ScrubResult(where.path, _add_up(done, BAD_MAX), time.monotonic() - began_s)


def plan_scrub(directory: str, *, snapshots: bool = True, **options: Unpack[Options]) -> Plan:
    """What `scrub` would read."""
    where = Directory.parse(directory, options.get("user"))
    with running("scrub", options) as run, ExitStack() as stack:
        items = _plan(where, run, stack, with_snapshots=snapshots)
        return summarize(f"Verify all replicas below {where.path}", items)


class _Scrub:
    """Verifies the blocks of a batch."""

    def __init__(self, directory: Directory, bytes_per_s: int | None) -> None:
        self._directory = directory
        self._bytes_per_s = bytes_per_s

    def __call__(self, items: pa.Table) -> Scrubbed:
        throttle = None if self._bytes_per_s is None else Throttle(self._bytes_per_s)
        found = []
        with self._directory.connect() as fs:
            for path, offset in _places(items):
                try:
                    checks = fs.verify_replicas(
                        path, offset, 1, pace=_at_once if throttle is None else throttle.wait
                    )
                except FileNotFoundException:
                    found.append(Scrubbed(gone=1))
                else:
                    found += [_count(path, check) for check in checks]
        return _add_up(found, _OF_BATCH_MAX)


def _places(items: pa.Table) -> Iterator[tuple[str, int]]:
    paths, offsets = (items.column(name).to_pylist() for name in ("path", "offset"))
    yield from zip(paths, offsets, strict=True)


def _at_once(count: int) -> None:
    """As fast as it goes."""


def _count(path: str, check: BlockCheck) -> Scrubbed:
    unreachable = sum(each.kind == UNREACHABLE for each in check.bad)
    bad = len(check.bad) - unreachable
    return Scrubbed(
        blocks=1,
        replicas=check.good + len(check.bad),
        bytes=check.good_bytes,
        bad=bad,
        unreachable=unreachable,
        reported=bad if check.is_reported else 0,
        lost=int(not check.good),
        listed=[
            BadBlock(
                path,
                check.block,
                check.offset_bytes,
                each.datanode,
                each.kind,
                each.reason,
                check.good,
                check.is_reported and each.kind != UNREACHABLE,
            )
            for each in check.bad
        ],
    )


def _add_up(parts: list[Scrubbed], listed_max: int) -> Scrubbed:
    numbers = [name for name in Scrubbed.__struct_fields__ if name != "listed"]
    sums = {name: sum(getattr(part, name) for part in parts) for name in numbers}
    listed = sorted(
        (bad for part in parts for bad in part.listed), key=lambda bad: (bad.good, bad.path)
    )
    return Scrubbed(**sums, listed=listed[:listed_max])


def _place_of(directory: Directory, state: str | None) -> Place:
    if state is not None:
        return Place(state, directory.user)
    name = f".cairn-scrub-{directory.name}".rstrip("-")
    return (directory.parent / name).as_place()


def _plan(where: Directory, run: Run, stack: ExitStack, *, with_snapshots: bool) -> DataFrame:
    """A row for each block: where to find it, and how much is to be read."""
    from pyspark.sql import functions as f

    scans = [stack.enter_context(scanning(where))]
    if with_snapshots:
        with where.connect() as fs:
            scans += [stack.enter_context(scanning(past)) for past in list_pasts(fs, where)]
    blocks = reduce(lambda a, b: a.unionByName(b), (_blocks(run, scan) for scan in scans))
    if len(scans) > 1:
        # Most are in all of them; the longest that anybody sees of a block is what is read.
        found = f.max(f.struct("length", "path", "offset", "cost")).alias("found")
        blocks = blocks.groupBy("block_id").agg(found).select("found.*")
    return blocks.select(
        f.lit("verify").alias("action"),
        f.lit("block").alias("kind"),
        "path",
        "offset",
        "cost",
        f.lit(0).alias("level"),
    )


def _blocks(run: Run, scan: Scan) -> DataFrame:
    """Those that are whole; what is being written is verified while it is."""
    from pyspark.sql import functions as f

    blocks = scan.table(run.spark, "blocks", _COLUMNS).where("state = 'complete'")
    return blocks.withColumn("cost", f.col("length") * f.col("live_replicas"))
