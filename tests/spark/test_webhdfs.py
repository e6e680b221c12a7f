"""Spark over WebHDFS, as from behind a firewall."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cairnfs.testing.cluster import Cluster

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.java, pytest.mark.timeout(600)]


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    """Of a cluster whose DataNodes have names that can be looked up, as HTTP clients do."""
    with Cluster(tmp_path / "cluster", datanode_options=("--hostname", "localhost")) as cluster:
        yield cluster.namenodes[0].http_address


def test_parquet_over_webhdfs(spark: SparkSession, address: str) -> None:
    path = f"webhdfs://{address}/numbers"
    numbers = spark.range(0, 10_000, numPartitions=2).selectExpr("id", "id % 2 AS day")
    numbers.write.partitionBy("day").parquet(path)
    read = spark.read.parquet(path)
    assert read.count() == 10_000
    assert read.where("day = 1").selectExpr("sum(id)").first()[0] == sum(range(1, 10_000, 2))
    numbers.write.mode("overwrite").parquet(path)
    assert spark.read.parquet(path).count() == 10_000
