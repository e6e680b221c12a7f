"""The half of the demo that runs in Spark, as a process that can be ended with its JVM.

    python -m cairnfs.demo_spark CLUSTER_DIRECTORY TABLE ROWS FIGURES_FILE

Writes a table to the cluster, reads it back, compares, and leaves its figures in a file.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from cairnfs.cli.local_cluster import LocalCluster

DAYS = 7
WARM_UP_ROWS = 20_000


class Content(msgspec.Struct, frozen=True):
    """What a table holds, in two numbers that change with any change to it."""

    rows: int
    checksum: int


class Figures(msgspec.Struct, frozen=True):
    """What Spark did."""

    content: Content
    write_s: float
    read_s: float
    calls: dict[str, int]  # of Hadoop's client, by name
    replicas: dict[str, int]  # by DataNode


def main(directory: str, table: str, rows: str, figures_file: str) -> int:
    from pyspark.sql import SparkSession

    cluster = LocalCluster(Path(directory))
    begin_s = time.monotonic()
    spark = SparkSession.builder.appName("CairnFS demo").getOrCreate()
    print(f"  Spark {spark.version} has started in {time.monotonic() - begin_s:.1f} s", flush=True)
    try:
        _warm_up(spark, f"{cluster.uri}{table}.warm-up")
        before = _replicas(cluster)
        figures = _write_and_read(spark, f"{cluster.uri}{table}", int(rows))
        figures = msgspec.structs.replace(figures, replicas=_replicas(cluster) - before)
    finally:
        spark.stop()
    Path(figures_file).write_bytes(msgspec.json.encode(figures))
    return 0


def _write_and_read(spark: Any, url: str, rows: int) -> Figures:
    calls = _client_calls(spark)
    events = _events(spark, rows)
    events.cache()
    written = _content(events)  # before the clock starts: what is measured is the file system
    write_s = _seconds(lambda: events.write.partitionBy("day").parquet(url))
    events.unpersist()
    print("  written", flush=True)
    back: list[Content] = []
    read_s = _seconds(lambda: back.append(_content(spark.read.parquet(url))))
    if back != [written]:
        sys.exit(f"what was read is not what was written: {back[0]}, not {written}")
    print(f"  read back: {written.rows:,} rows, and every value is what it was", flush=True)
    return Figures(written, write_s, read_s, _client_calls(spark) - calls, {})


def _warm_up(spark: Any, url: str) -> None:
    """Let Java load and compile what it needs, which would be measured otherwise."""
    _events(spark, WARM_UP_ROWS).write.partitionBy("day").parquet(url)
    _content(spark.read.parquet(url))


def _events(spark: Any, rows: int) -> Any:
    return spark.range(0, rows, 1, 2).selectExpr(
        "id",
        f"cast(id % {DAYS} as int) as day",
        "cast(id * 0.01 as decimal(18, 2)) as amount",
        "sha2(cast(id as string), 256) as token",
    )


def _content(table: Any) -> Content:
    count, checksum = table.selectExpr(
        "count(*)", "bit_xor(xxhash64(id, day, amount, token))"
    ).first()
    return Content(count, checksum)


def _client_calls(spark: Any) -> Counter[str]:
    """How often Hadoop's client was asked for what, by its own count."""
    statistics = spark._jvm.org.apache.hadoop.fs.FileSystem.getGlobalStorageStatistics()
    counts = statistics.get("DFSOpsCountStatistics").getLongStatistics()
    calls: Counter[str] = Counter()
    while counts.hasNext():
        count = counts.next()
        calls[count.getName().removeprefix("op_")] = count.getValue()
    return calls


def _replicas(cluster: LocalCluster) -> Counter[str]:
    """Finalized replicas on each DataNode's disk."""
    blocks = cluster.directory.glob("datanode-*/**/finalized/**/blk_*")
    found = (path.relative_to(cluster.directory).parts[0] for path in blocks if not path.suffix)
    return Counter(sorted(found))


def _seconds(action: Callable[[], object]) -> float:
    begin_s = time.monotonic()
    action()
    return time.monotonic() - begin_s


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
