"""The half of the demo that runs in Spark, as a process that can be ended with its JVM.

    python -m cairnfs.demo_spark CLUSTER_DIRECTORY WAREHOUSE ROWS FIGURES_FILE

Writes a table, takes snapshots, lets a bad job damage it, shows what has changed, goes back, checks
every value, and leaves its figures in a file.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

import cairnfs
from cairnfs.cli.local_cluster import LocalCluster
from cairnfs.cli.output import format_bytes
from cairnfs.client.records import ChangeKind
from cairnfs.demo_words import say, show_table, title
from cairnfs.jobs.usage import usage
from cairnfs.jobs.usage_page import format_change
from cairnfs.jobs.usage_tables import DIRECTORY
from cairnfs.spark import as_of, write_atomically

TABLE = "events"
DAYS = 7
WARM_UP_ROWS = 20_000
SHOWN_CHANGES_MAX = 12
OUTER, INNER = "monday", "before-the-job"  # the snapshots


class Content(msgspec.Struct, frozen=True):
    """What a table holds, in two numbers that change with any change to it."""

    rows: int
    checksum: int


class Figures(msgspec.Struct, frozen=True):
    """What Spark did, and what CairnFS did for it."""

    content: Content
    write_s: float
    read_s: float
    snapshot_s: float
    diff_s: float
    changes: int
    rollback_s: float
    verify_s: float
    calls: dict[str, int]  # of Hadoop's client, by name
    replicas: dict[str, int]  # by DataNode


def main(directory: str, warehouse: str, rows: str, figures_file: str) -> int:
    from pyspark.sql import SparkSession

    cluster = LocalCluster(Path(directory))
    begin_s = time.monotonic()
    spark = SparkSession.builder.appName("CairnFS demo").getOrCreate()
    say(f"Spark {spark.version} has started in {time.monotonic() - begin_s:.1f} s")
    try:
        with cairnfs.connect(cluster.uri) as fs:
            story = _Story(spark, fs, cluster, warehouse)
            figures = story.tell(int(rows))
    finally:
        spark.stop()
    Path(figures_file).write_bytes(msgspec.json.encode(figures))
    return 0


class _Story:
    """What happens to a table in a day."""

    def __init__(
        self, spark: Any, fs: cairnfs.FileSystem, cluster: LocalCluster, warehouse: str
    ) -> None:
        self._spark = spark
        self._fs = fs
        self._cluster = cluster
        self._warehouse = warehouse
        self._table = f"{warehouse}/{TABLE}"
        self._url = f"{cluster.uri}{self._table}"

    def tell(self, rows: int) -> Figures:
        self._warm_up()
        before = self._replicas()
        calls = self._client_calls()
        written, write_s = self._write(rows)
        read_s = self._check(written, "read back")
        calls = self._client_calls() - calls
        replicas = self._replicas() - before

        title("Two snapshots, one inside the other, whatever their size")
        snapshot_s = self._take_snapshots()
        title("A bad job: it damages one day, loses another, moves a third, and leaves rubbish")
        self._damage()
        title("What has changed since: `cairn snapshot diff`, as a table")
        changes, diff_s = self._diff()
        title(f"Back in place: `cairn snapshot rollback {self._table} {INNER}`")
        rollback_s = self._go_back()
        verify_s = self._check(written, "verified")
        title(f"Where the space goes: `cairn job usage {self._warehouse} --since {OUTER}`")
        self._show_usage()
        return Figures(
            content=written,
            write_s=write_s,
            read_s=read_s,
            snapshot_s=snapshot_s,
            diff_s=diff_s,
            changes=changes,
            rollback_s=rollback_s,
            verify_s=verify_s,
            calls=calls,
            replicas=replicas,
        )

    def _warm_up(self) -> None:
        """Let Java load and compile what it needs, which would be measured otherwise."""
        url = f"{self._cluster.uri}/warm-up"
        self._events(WARM_UP_ROWS).write.partitionBy("day").parquet(url)
        _content(self._spark.read.parquet(url))

    def _write(self, rows: int) -> tuple[Content, float]:
        events = self._events(rows)
        events.cache()
        written = _content(events)  # before the clock starts: what is measured is the file system
        seconds = _seconds(lambda: write_atomically(events, self._url, partition_by=["day"]))
        events.unpersist()
        say("written, and put in its place by one transaction")
        return written, seconds

    def _check(self, written: Content, done: str) -> float:
        """Read all of the table; it is what was written, or the demo ends here."""
        found: list[Content] = []
        seconds = _seconds(lambda: found.append(_content(self._spark.read.parquet(self._url))))
        if found != [written]:
            sys.exit(f"what was read is not what was written: {found[0]}, not {written}")
        say(f"{done} in {seconds:.1f} s: {written.rows:,} rows, and every value is what it was")
        return seconds

    def _take_snapshots(self) -> float:
        fs = self._fs
        for path in (self._warehouse, self._table):
            fs.allow_snapshot(path)
        seconds = _seconds(lambda: fs.create_snapshot(self._warehouse, OUTER))
        seconds += _seconds(lambda: fs.create_snapshot(self._table, INNER))
        say(f"{self._warehouse}/.snapshot/{OUTER} and {self._table}/.snapshot/{INNER}")
        say(f"took {seconds * 1000:.1f} ms together, and nothing was copied")
        return seconds

    def _damage(self) -> None:
        events = self._spark.read.parquet(f"{self._url}/day=0")
        worthless = events.selectExpr("id", "amount * 0 as amount", "token", "0 as day")
        mode = "overwrite-partitions"
        write_atomically(worthless, self._url, mode=mode, partition_by=["day"])
        fs = self._fs
        fs.delete(f"{self._table}/day=1", recursive=True)
        fs.rename(f"{self._table}/day=2", f"{self._table}/day=20", overwrite=False)
        left = self._spark.read.parquet(self._url)
        lost = self._spark.read.parquet(as_of(self._url, INNER)).count() - left.count()
        total = left.selectExpr("sum(amount)").first()[0]
        say(f"{lost:,} rows are gone; the sum of the amounts is {total:,} now")
        with fs.create(f"{self._table}/core.12345") as rubbish:
            rubbish.write(bytes(100_000))
        say("and since there is something in the table that is no Parquet, nobody can read it")

    def _diff(self) -> tuple[int, float]:
        begin_s = time.monotonic()
        changes = list(self._fs.snapshot_changes(self._table, INNER))
        seconds = time.monotonic() - begin_s
        rows = [["TRANSACTION", "WHAT", "PATH", ""]]
        for change in changes[:SHOWN_CHANGES_MAX]:
            arrow = "from" if change.kind is ChangeKind.MOVED_IN else "to"
            other = f"{arrow} {_short(change.other)}" if change.other else ""
            rows.append([str(change.txid), change.kind.value, _short(change.path), other])
        show_table(rows, right={0})
        if len(changes) > SHOWN_CHANGES_MAX:
            say(f"... and {len(changes) - SHOWN_CHANGES_MAX} more")
        return len(changes), seconds

    def _go_back(self) -> float:
        kept: list[str] = []
        seconds = _seconds(lambda: kept.append(self._fs.rollback_snapshot(self._table, INNER)))
        say(f"took {seconds * 1000:.1f} ms; no block was copied")
        say(f"what the job had left is in {self._table}/.snapshot/{kept[0]},")
        say("so that the roll-back can be undone as well")
        return seconds

    def _show_usage(self) -> None:
        report = usage(f"{self._cluster.uri}{self._warehouse}", spark=self._spark, since=OUTER)
        rows = [["DIRECTORY", "FILES", "BYTES", "WITH REPLICAS", f"SINCE {OUTER.upper()}"]]
        rows += [
            [
                row.name,
                f"{row.files}",
                format_bytes(row.bytes),
                format_bytes(row.space),
                format_change(row.growth),
            ]
            for row in report.tables[DIRECTORY]
        ]
        show_table(rows, right={1, 2, 3, 4})
        for held in report.snapshots:
            only = format_bytes(held.exclusive or 0)
            say(f"snapshot {held.name} of {held.path}: only it holds {only}")
        say(f"took {report.seconds:.1f} s; --html makes a page of it, with plots")

    def _events(self, rows: int) -> Any:
        return self._spark.range(0, rows, 1, 2).selectExpr(
            "id",
            f"cast(id % {DAYS} as int) as day",
            "cast(id * 0.01 as decimal(18, 2)) as amount",
            "sha2(cast(id as string), 256) as token",
        )

    def _client_calls(self) -> Counter[str]:
        """How often Hadoop's client was asked for what, by its own count."""
        hadoop = self._spark._jvm.org.apache.hadoop.fs.FileSystem
        counts = hadoop.getGlobalStorageStatistics().get("DFSOpsCountStatistics")
        counts = counts.getLongStatistics()
        calls: Counter[str] = Counter()
        while counts.hasNext():
            count = counts.next()
            calls[count.getName().removeprefix("op_")] = count.getValue()
        return calls

    def _replicas(self) -> Counter[str]:
        """Finalized replicas on each DataNode's disk."""
        directory = self._cluster.directory
        blocks = directory.glob("datanode-*/**/finalized/**/blk_*")
        found = (path.relative_to(directory).parts[0] for path in blocks if not path.suffix)
        return Counter(sorted(found))


def _content(table: Any) -> Content:
    count, checksum = table.selectExpr(
        "count(*)", "bit_xor(xxhash64(id, day, amount, token))"
    ).first()
    return Content(count, checksum)


def _short(path: str) -> str:
    """A path, with the names that Spark gives to files cut."""
    return "/".join(name if len(name) <= 16 else f"{name[:10]}..." for name in path.split("/"))


def _seconds(action: Callable[[], object]) -> float:
    begin_s = time.monotonic()
    action()
    return time.monotonic() - begin_s


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
