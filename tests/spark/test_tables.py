"""Tables: formats, ways to write, committers, and what the scheduler is told."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from tests.spark.conftest import BLOCK_BYTES
from tests.spark.files import Files

from cairnfs.testing.cluster import Cluster

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.java

ROWS = 1000


def table(spark: SparkSession, first: int = 0, count: int = ROWS) -> DataFrame:
    """Rows with a number, its day of seven, and a text."""
    return spark.range(first, first + count, numPartitions=2).selectExpr(
        "id", "concat('day-', id % 7) AS day", "repeat(cast(id AS string), 3) AS text"
    )


def rows_of(frame: DataFrame) -> list[Any]:
    return sorted(frame.select("id", "day", "text").collect())


@pytest.mark.parametrize("format", ["parquet", "orc", "csv", "json"])
def test_what_was_written_is_read(spark: SparkSession, directory: str, format: str) -> None:
    written = table(spark)
    written.write.format(format).option("header", True).save(directory)
    read = spark.read.format(format).option("header", True).schema(written.schema).load(directory)
    assert rows_of(read) == rows_of(written)
    names = Files(spark).names(directory)
    assert "_SUCCESS" in names
    assert "_temporary" not in names


def test_append_adds_to_what_is_there(spark: SparkSession, directory: str) -> None:
    table(spark).write.parquet(directory)
    table(spark, ROWS).write.mode("append").parquet(directory)
    assert rows_of(spark.read.parquet(directory)) == rows_of(table(spark, 0, 2 * ROWS))


def test_overwrite_leaves_nothing_of_before(spark: SparkSession, directory: str) -> None:
    table(spark).write.parquet(directory)
    table(spark, 5000, 10).write.mode("overwrite").parquet(directory)
    assert rows_of(spark.read.parquet(directory)) == rows_of(table(spark, 5000, 10))


def test_error_if_there_is_something_already(spark: SparkSession, directory: str) -> None:
    from pyspark.errors import AnalysisException

    table(spark).write.parquet(directory)
    with pytest.raises(AnalysisException, match="PATH_ALREADY_EXISTS"):
        table(spark).write.parquet(directory)


def test_partitions_are_directories(spark: SparkSession, directory: str) -> None:
    table(spark).write.partitionBy("day").parquet(directory)
    assert Files(spark).names(directory) == {"_SUCCESS", *(f"day=day-{n}" for n in range(7))}
    found = spark.read.parquet(directory).where("day = 'day-3'")
    assert rows_of(found) == rows_of(table(spark).where("day = 'day-3'"))


@pytest.mark.parametrize("mode", ["static", "dynamic"])
def test_overwrite_of_a_partition(spark: SparkSession, directory: str, mode: str) -> None:
    """Dynamic replaces the partitions that are written; static, all of them."""
    table(spark).write.partitionBy("day").parquet(directory)
    new = table(spark, 7000, 70).where("day = 'day-3'")
    new.write.partitionBy("day").option("partitionOverwriteMode", mode).mode("overwrite").parquet(
        directory
    )
    kept = table(spark).where("day <> 'day-3'").union(new) if mode == "dynamic" else new
    assert rows_of(spark.read.parquet(directory)) == rows_of(kept)
    assert not {name for name in Files(spark).names(directory) if name.startswith(".spark-staging")}


@pytest.mark.parametrize("version", ["1", "2"])
def test_committers(spark: SparkSession, directory: str, version: str) -> None:
    key = "mapreduce.fileoutputcommitter.algorithm.version"
    frame = table(spark)
    frame.write.option(key, version).partitionBy("day").parquet(directory)
    assert rows_of(spark.read.parquet(directory)) == rows_of(frame)
    assert "_temporary" not in Files(spark).names(directory)
    # The same from below, where the configuration of Hadoop is all there is.
    texts = [f"line {n}" for n in range(100)]
    configuration = Files(spark).configuration
    configuration.set(key, version)
    try:
        spark.sparkContext.parallelize(texts, 4).saveAsTextFile(f"{directory}-text")
    finally:
        configuration.unset(key)
    assert sorted(spark.sparkContext.textFile(f"{directory}-text").collect()) == sorted(texts)
    assert Files(spark).names(f"{directory}-text") == {
        "_SUCCESS",
        *(f"part-{n:05}" for n in range(4)),
    }


@pytest.mark.parametrize("version", ["1", "2"])
def test_a_failed_job_leaves_no_result(spark: SparkSession, directory: str, version: str) -> None:
    from pyspark.errors import PySparkException

    frame = table(spark).selectExpr(f"if(id = {ROWS - 1}, raise_error('no more'), id) AS id")
    with pytest.raises(PySparkException, match="no more"):
        frame.write.option("mapreduce.fileoutputcommitter.algorithm.version", version).parquet(
            directory
        )
    assert not Files(spark).exists(f"{directory}/_SUCCESS")


def test_block_locations_reach_the_scheduler(
    spark: SparkSession, cluster: Cluster, directory: str
) -> None:
    """A file of several blocks: each part of it prefers the hosts that have it."""
    lines = [f"{n:0100}" for n in range(30_000)]
    spark.sparkContext.parallelize(lines, 1).saveAsTextFile(directory)
    locations = Files(spark).block_locations(f"{directory}/part-00000")
    assert [location.getOffset() for location in locations] == [0, BLOCK_BYTES, 2 * BLOCK_BYTES]
    ports = {str(node.port) for node in cluster.datanodes}
    for location in locations:
        assert {name.rpartition(":")[2] for name in location.getNames()} == ports
        assert len(location.getHosts()) == 3

    # What the scheduler asks for when it places the tasks of a stage.
    hosts = set(locations[0].getHosts())
    assert len(hosts) == 3
    context: Any = spark._jsc.sc()
    rdd: Any = spark.read.text(directory)._jdf.queryExecution().toRdd()
    preferred: set[str] = set()
    for index in range(rdd.getNumPartitions()):
        found = context.getPreferredLocs(rdd, index)
        preferred |= {found.apply(n).host() for n in range(found.size())}
    assert preferred == hosts
