"""Spark reads a directory as it was."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.spark.test_tables import ROWS, rows_of, table

import cairnfs
from cairnfs.testing.cluster import Cluster

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.java


def test_a_table_is_read_as_it_was(spark: SparkSession, cluster: Cluster, directory: str) -> None:
    """The snapshots are of what the table is in: to overwrite it, Spark deletes it."""
    now = f"{directory}/table"
    table(spark).write.partitionBy("day").parquet(now)
    with cairnfs.connect(cluster.uri) as fs:
        fs.allow_snapshot(directory)
        fs.create_snapshot(directory, "s1")
        table(spark, 5000, 10).write.mode("overwrite").partitionBy("day").parquet(now)
        fs.create_snapshot(directory, "s2")
        table(spark, 7000, 10).write.mode("append").partitionBy("day").parquet(now)

    for name, expected in (("s1", table(spark)), ("s2", table(spark, 5000, 10))):
        then = spark.read.parquet(f"{cluster.uri}{directory}/.snapshot/{name}/table")
        assert rows_of(then) == rows_of(expected)
    assert spark.read.parquet(now).count() == 20
    # What is gone now can be joined with what is there.
    before = spark.read.parquet(f"{directory}/.snapshot/s1/table")
    assert before.join(spark.read.parquet(now), "id", "left_anti").count() == ROWS
