"""What is to be done for a backup: whether to copy, read or keep each inode of the snapshot.

A full backup copies all.  One that goes on from an earlier one (its *base*) keeps the entries of
all that did not change, whose content stays where it is; of what was moved the entries are found
under their old paths.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cairnfs.jobs.changes import CREATED, MODIFIED, MOVED_IN
from cairnfs.jobs.entries import FILE, SCHEMA, TOP

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

COPY, READ, KEEP = "copy", "read", "keep"
"""Content and attributes; attributes alone; nothing: the entry of the base is still right."""

_FROM_SCAN = ("path", "kind", "length")


def plan_full(inodes: DataFrame) -> DataFrame:
    """All of it."""
    from pyspark.sql import functions as f

    return inodes.select(
        *_FROM_SCAN,
        f.when(f.col("kind") == FILE, COPY).otherwise(READ).alias("action"),
        f.col("length").alias("cost"),
        f.lit(0).alias("level"),
    )


def plan_incremental(
    inodes: DataFrame, changes: DataFrame, base: DataFrame, *, reads_all: bool
) -> DataFrame:
    """What changed since the base; with `reads_all`, the attributes of the rest are read anew."""
    from pyspark.sql import functions as f

    arrived = changes.where(f.col("change").isin(CREATED, MODIFIED, MOVED_IN))
    is_from_outside = (f.col("change") == MOVED_IN) & f.col("other").isNull()
    touched = arrived.groupBy("path").agg(
        f.max((f.col("change") == CREATED) | is_from_outside).alias("is_new"),
        f.max("is_rewritten").alias("is_rewritten"),
    )
    kept = base.select(*(f.col(name).alias(f"base_{name}") for name in SCHEMA.names))
    joined = (
        with_old_paths(inodes, arrived)
        .join(touched, "path", "left")
        .join(kept, f.col("old_path") == f.col("base_path"), "left")
    )
    is_known = f.col("base_kind") == f.col("kind")
    is_other = f.col("is_new") | f.col("is_rewritten") | (f.col("base_length") != f.col("length"))
    must_copy = ~f.coalesce(is_known, f.lit(False)) | f.coalesce(is_other, f.lit(False))
    must_read = must_copy | f.col("is_new").isNotNull() | (f.col("path") == TOP) | f.lit(reads_all)
    action = f.when((f.col("kind") == FILE) & must_copy, COPY).when(must_read, READ).otherwise(KEEP)
    entry = [f.col(f"base_{name}").alias(name) for name in SCHEMA.names if name not in _FROM_SCAN]
    planned = joined.select(*_FROM_SCAN, *entry, action.alias("action"), f.lit(0).alias("level"))
    cost = f.when(f.col("action") == COPY, f.col("length")).otherwise(0)
    return planned.withColumn("cost", cost.cast("bigint"))


def with_old_paths(inodes: DataFrame, arrived: DataFrame) -> DataFrame:
    """Where each was before, if it was there: it or a directory above it may have been moved."""
    from pyspark.sql import functions as f

    moves = arrived.where((f.col("change") == MOVED_IN) & f.col("other").isNotNull()).select(
        f.col("path").alias("moved_to"), f.col("other").alias("moved_from")
    )
    above = f.expr(
        "transform(sequence(1, size(split(path, '/'))),"
        " n -> array_join(slice(split(path, '/'), 1, n), '/'))"
    )
    nearest = (
        inodes.select("path", f.explode(above).alias("moved_to"))
        .join(moves, "moved_to")
        .groupBy("path")
        .agg(f.max_by(f.struct("moved_to", "moved_from"), f.length("moved_to")).alias("move"))
    )
    old_path = f.expr("concat(move.moved_from, substring(path, length(move.moved_to) + 1))")
    return (
        inodes.join(nearest, "path", "left")
        .withColumn("old_path", f.coalesce(old_path, f.col("path")))
        .drop("move")
    )
