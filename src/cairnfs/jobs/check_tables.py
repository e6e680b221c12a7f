"""What `fsck` compares, as DataFrames."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import reduce
from typing import TYPE_CHECKING

import pyarrow as pa

from cairnfs.client.block_health import (
    CORRUPT,
    MISSING,
    OVER_REPLICATED,
    UNDER_REPLICATED,
    judge,
)
from cairnfs.client.filesystem import FileSystem
from cairnfs.errors import FileNotFoundException
from cairnfs.jobs.arrow import map_batches
from cairnfs.jobs.scans import Scan

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

LENGTH, TOTALS, CORRUPT_REPLICA = "length", "totals", "corrupt replica"

# The worst first.
SEVERE = (MISSING, CORRUPT, LENGTH, TOTALS)
KINDS = (*SEVERE, CORRUPT_REPLICA, UNDER_REPLICATED, OVER_REPLICATED)

PROBLEM = pa.schema(
    [
        ("kind", pa.string()),
        ("path", pa.string()),
        ("block", pa.string()),
        ("offset_bytes", pa.int64()),
        ("replicas", pa.int32()),
        ("wanted", pa.int32()),
        ("detail", pa.string()),
    ]
)
_INODES = (
    "path string, parent string, kind string, length bigint, blocks int, is_open boolean,"
    " files_below bigint, directories_below bigint, length_below bigint"
)
_BLOCKS = (
    "path string, offset bigint, length bigint, block_id bigint, generation_stamp bigint,"
    " state string, replication int, live_replicas int, staying_replicas int,"
    " corrupt_replicas int"
)
_SUSPECT = (
    "state = 'complete' and (staying_replicas <> replication or live_replicas = 0"
    " or corrupt_replicas > 0)"
)


def files(spark: SparkSession, scan: Scan) -> DataFrame:
    """All inodes; files with what their blocks add up to, and those blocks that seem wrong."""
    from pyspark.sql import functions as f

    suspect = f.struct(
        f.format_string("blk_%d_%d", "block_id", "generation_stamp").alias("block"),
        f.col("offset").alias("offset_bytes"),
        "replication",
        "corrupt_replicas",
    )
    blocks = (
        scan.table(spark, "blocks", _BLOCKS)
        .groupBy("path")
        .agg(
            f.count("*").alias("block_count"),
            f.sum("length").alias("block_bytes"),
            f.sum("live_replicas").alias("replica_count"),
            f.sum(f.col("live_replicas") * f.col("length")).alias("replica_bytes"),
            f.collect_list(f.when(f.expr(_SUSPECT), suspect)).alias("suspects"),
        )
    )
    return scan.table(spark, "inodes", _INODES).join(blocks, "path", "left")


def count(files: DataFrame) -> DataFrame:
    """One row: how much there is."""
    from pyspark.sql import functions as f

    def number(condition: str, name: str) -> Column:
        return f.count_if(f.expr(condition)).alias(name)

    def total(column: str, name: str) -> Column:
        return f.coalesce(f.sum(column), f.lit(0)).cast("bigint").alias(name)

    return files.agg(
        number("kind = 'directory'", "directories"),
        number("kind = 'file'", "files"),
        number("kind = 'symlink'", "symlinks"),
        number("is_open", "open_files"),
        total("block_count", "blocks"),
        total("replica_count", "replicas"),
        total("length", "length_bytes"),
        total("replica_bytes", "replica_bytes"),
    )


def problems(scan: Scan, files: DataFrame) -> DataFrame:
    """Everything that is wrong, as PROBLEM with its `severity`: 0 is the worst."""
    from pyspark.sql import functions as f

    found = (_of_blocks(scan, files), _of_lengths(files), _of_totals(files))
    severity = f.array_position(f.array(*map(f.lit, KINDS)), f.col("kind"))
    return reduce(lambda a, b: a.unionByName(b), found).withColumn("severity", severity)


def _of_blocks(scan: Scan, files: DataFrame) -> DataFrame:
    """Each block that seems wrong is looked at as it is now, by the ordinary call."""
    from pyspark.sql import functions as f

    directory = scan.directory

    def look(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with directory.connect() as fs:
            for batch in batches:
                rows = [row for item in batch.to_pylist() for row in _look_at(fs, **item)]
                yield pa.RecordBatch.from_pylist(rows, PROBLEM)

    suspects = files.where("size(suspects) > 0").select("path", f.explode("suspects").alias("b"))
    return map_batches(suspects.select("path", "b.*"), look, PROBLEM)


def _look_at(
    fs: FileSystem,
    path: str,
    block: str,
    offset_bytes: int,
    replication: int,
    corrupt_replicas: int,
) -> Iterator[dict[str, object]]:
    try:
        located = fs.get_block_locations(path, offset_bytes, 1)
    except FileNotFoundException:
        return  # deleted or moved since
    for location in located:
        if f"blk_{location.block_id}_{location.generation_stamp}" != block:
            continue  # written to since
        problem = judge(path, replication, location)
        if problem is not None:
            yield {
                "kind": problem.kind,
                "path": path,
                "block": block,
                "offset_bytes": offset_bytes,
                "replicas": problem.replicas,
                "wanted": problem.wanted,
                "detail": f"{corrupt_replicas} corrupt replicas" if corrupt_replicas else "",
            }
        elif corrupt_replicas:
            yield {
                "kind": CORRUPT_REPLICA,
                "path": path,
                "block": block,
                "offset_bytes": offset_bytes,
                "replicas": len(location.datanodes),
                "wanted": replication,
                "detail": f"{corrupt_replicas} beside the good ones",
            }


def _of_lengths(files: DataFrame) -> DataFrame:
    """A file that nobody writes is as long as its blocks, and has as many as it says."""
    from pyspark.sql import functions as f

    compared = files.where("kind = 'file' and not is_open").select(
        "path",
        "length",
        "blocks",
        f.coalesce("block_bytes", f.lit(0)).alias("block_bytes"),
        f.coalesce("block_count", f.lit(0)).alias("block_count"),
    )
    wrong = compared.where("length <> block_bytes or blocks <> block_count")
    detail = f.format_string(
        "the file has %d bytes in %d blocks, its blocks are %d with %d bytes",
        "length",
        "blocks",
        "block_count",
        "block_bytes",
    )
    return _as_problems(wrong, LENGTH, detail)


def _of_totals(files: DataFrame) -> DataFrame:
    """What a directory says is the sum of what is in it, and of what directories in it say.

    If that is so of each, it is so of all that is below.  Of a file that is being written
    nobody knows how much counts.
    """
    from pyspark.sql import functions as f

    def added(entry: str, below: str) -> Column:
        return f.sum(f.expr(f"{entry} + coalesce({below}, 0)"))

    sums = (
        files.where("parent is not null")
        .groupBy(f.col("parent").alias("path"))
        .agg(
            added("int(kind = 'file')", "files_below").alias("files"),
            added("int(kind = 'directory')", "directories_below").alias("directories"),
            added("coalesce(length, 0)", "length_below").alias("bytes"),
            f.max(f.coalesce("is_open", f.lit(False))).alias("is_written"),
        )
    )
    names = ("files", "directories", "bytes")
    told = dict(zip(names, ("files_below", "directories_below", "length_below"), strict=True))
    directories = files.where("kind = 'directory'").select("path", *told.values())
    compared = directories.join(sums, "path", "left").na.fill(0, list(names))
    wrong = compared.where(
        "files_below <> files or directories_below <> directories"
        " or (length_below <> bytes and not coalesce(is_written, false))"
    )
    detail = f.format_string(
        "it says %d files, %d directories and %d bytes, there are %d, %d and %d",
        *told.values(),
        *names,
    )
    return _as_problems(wrong, TOTALS, detail)


def _as_problems(wrong: DataFrame, kind: str, detail: Column) -> DataFrame:
    from pyspark.sql import functions as f

    return wrong.select(
        f.lit(kind).alias("kind"),
        "path",
        f.lit("").alias("block"),
        f.lit(0).cast("bigint").alias("offset_bytes"),
        f.lit(0).alias("replicas"),
        f.lit(0).alias("wanted"),
        detail.alias("detail"),
    )
