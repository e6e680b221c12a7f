"""Space and files, added up by everything that a report is about: in one pass over the inodes.

Each inode counts once for every *facet* that it has: its owner, its size class, each directory
above it down to a depth, and so on.  What is added up is a row for each facet, whatever it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from cairnfs.jobs.scans import Scan

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

TOTAL, DIRECTORY, OWNER, SIZE = "total", "directory", "owner", "size"
AGE, TEMPERATURE, POLICY, SMALL = "age", "temperature", "storage policy", "small files"
GROWTH = "growth"

KEYS = ("report", "key")
SUMS = ("files", "directories", "symlinks", "bytes", "space")
MORE_SUMS = ("blocks", "small_files", "small_bytes")
COMPARED = ("files", "bytes", "space")

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
DAY_S = 86_400

# Up to which length, or for how long; None: whatever is left.
SIZES: dict[str, int | None] = {
    "empty": 0,
    "up to 64 KiB": 64 * KIB,
    "up to 1 MiB": MIB,
    "up to 16 MiB": 16 * MIB,
    "up to 128 MiB": 128 * MIB,
    "up to 1 GiB": GIB,
    "larger": None,
}
AGES: dict[str, int | None] = {
    "a day": DAY_S,
    "a week": 7 * DAY_S,
    "a month": 30 * DAY_S,
    "three months": 90 * DAY_S,
    "a year": 365 * DAY_S,
    "longer ago": None,
}
TEMPERATURES: dict[str, int | None] = {
    "hot": 7 * DAY_S,
    "warm": 30 * DAY_S,
    "cool": 365 * DAY_S,
    "cold": None,
}
CLASSES = {SIZE: list(SIZES), AGE: list(AGES), TEMPERATURE: list(TEMPERATURES)}

_COLUMNS = (
    "path string, parent string, kind string, owner string, length bigint, replication int,"
    " blocks int, modified timestamp, accessed timestamp, storage_policy string"
)


class Shape(NamedTuple):
    """How a report is cut."""

    depth: int  # of directories
    small_bytes: int  # a file that is shorter is small


def tally(spark: SparkSession, scan: Scan, shape: Shape) -> DataFrame:
    """All facets of a scan, with what was added up for each."""
    from pyspark.sql import functions as f

    counted = _with_facets(scan.table(spark, "inodes", _COLUMNS), scan, shape)
    sums = [f.sum(name).alias(name) for name in (*SUMS, *MORE_SUMS)]
    return counted.groupBy("facet.report", "facet.key").agg(*sums)


def compare(now: DataFrame, then: DataFrame | None) -> DataFrame:
    """What there is beside what there was; without that, nulls."""
    from pyspark.sql import functions as f

    if then is None:
        nothing = [f.lit(None).cast("bigint").alias(f"{name}_before") for name in COMPARED]
        return now.select("*", *nothing)
    before = then.select(*KEYS, *[f.col(name).alias(f"{name}_before") for name in COMPARED])
    both = now.join(before, list(KEYS), "full")
    known = [name for name in both.columns if name not in KEYS]
    return both.select(*KEYS, *[f.coalesce(name, f.lit(0)).alias(name) for name in known])


def largest(tallied: DataFrame, count: int) -> DataFrame:
    """Of each report the rows with most; of classes all."""
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    grown = f.abs(f.col("space") - f.col("space_before"))
    growth = tallied.where((f.col("report") == DIRECTORY) & (grown > 0))
    rows = tallied.unionByName(growth.withColumn("report", f.lit(GROWTH)))
    weight = (
        f.when(f.col("report") == SMALL, f.col("small_files"))
        .when(f.col("report") == GROWTH, grown)
        .otherwise(f.col("space"))
    )
    order = Window.partitionBy("report").orderBy(weight.desc(), f.desc("files"), "key")
    is_class = f.col("report").isin(*CLASSES, POLICY)
    ranked = rows.withColumn("rank", f.row_number().over(order))
    return ranked.where(is_class | (f.col("rank") <= count))


def _with_facets(inodes: DataFrame, scan: Scan, shape: Shape) -> DataFrame:
    from pyspark.sql import functions as f

    is_file, zero = f.col("kind") == "file", f.lit(0).cast("bigint")
    length = f.when(is_file, f.col("length")).otherwise(zero)
    is_small = is_file & (f.col("length") < shape.small_bytes)
    directory = _below(
        f.when(f.col("kind") == "directory", f.col("path")).otherwise(f.col("parent")), scan
    )
    named = inodes.select(
        "owner",
        "storage_policy",
        is_file.alias("is_file"),
        is_small.alias("is_small"),
        directory.alias("directory"),
        _class_of(f.col("length"), SIZES).alias("size"),
        _class_of(_since(f.col("modified"), scan), AGES).alias("age"),
        _class_of(_since(f.greatest("modified", "accessed"), scan), TEMPERATURES).alias(
            "temperature"
        ),
        is_file.cast("bigint").alias("files"),
        (f.col("kind") == "directory").cast("bigint").alias("directories"),
        (f.col("kind") == "symlink").cast("bigint").alias("symlinks"),
        length.alias("bytes"),
        (length * f.coalesce("replication", f.lit(0))).alias("space"),
        f.coalesce("blocks", f.lit(0)).cast("bigint").alias("blocks"),
        is_small.cast("bigint").alias("small_files"),
        f.when(is_small, length).otherwise(zero).alias("small_bytes"),
    )
    return named.select(f.explode(_facets(shape)).alias("facet"), *SUMS, *MORE_SUMS)


def _facets(shape: Shape) -> Column:
    from pyspark.sql import functions as f

    def facet(report: str, key: Column) -> Column:
        return f.struct(f.lit(report).alias("report"), key.alias("key"))

    of_all = f.array(facet(TOTAL, f.lit("")), facet(OWNER, f.col("owner")))
    of_files = f.array(
        facet(SIZE, f.col("size")),
        facet(AGE, f.col("age")),
        facet(TEMPERATURE, f.col("temperature")),
        facet(POLICY, f.col("storage_policy")),
    )
    nothing = f.filter(of_files, lambda _: f.lit(False))
    small = f.array(facet(SMALL, f.col("directory")))
    above = f.array_distinct(
        f.array(*[f.substring_index("directory", "/", n + 1) for n in range(shape.depth)])
    )
    directories = f.transform(
        f.filter(above, lambda each: each != ""), lambda each: facet(DIRECTORY, each)
    )
    return f.concat(
        of_all,
        directories,
        f.when(f.col("is_file"), of_files).otherwise(nothing),
        f.when(f.col("is_small"), small).otherwise(nothing),
    )


def _below(path: Column, scan: Scan) -> Column:
    """From the directory of the scan on; empty: itself, and what is above a file that it is."""
    from pyspark.sql import functions as f

    begin = len(scan.directory.path.rstrip("/")) + 2
    return f.coalesce(f.substring(path, begin, 2**31 - 1), f.lit(""))


def _since(time: Column, scan: Scan) -> Column:
    """Seconds."""
    from pyspark.sql import functions as f

    return (f.lit(scan.moment_ms) - f.unix_millis(time)) / 1000


def _class_of(value: Column, classes: dict[str, int | None]) -> Column:
    from pyspark.sql import functions as f

    names = list(classes)
    chosen = f.lit(names[-1])
    for name in reversed(names[:-1]):
        chosen = f.when(value <= classes[name], f.lit(name)).otherwise(chosen)
    return chosen
