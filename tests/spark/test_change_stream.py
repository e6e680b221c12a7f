"""The changes of a directory as a stream: each once, whatever dies in between."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.spark.drivers import run_driver

import cairnfs
from cairnfs.spark.views import View, list_views
from cairnfs.testing.cluster import Cluster

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.java, pytest.mark.timeout(600)]

RUN_LIMIT_S = 900.0
DRIVER = Path(__file__).parent / "change_stream_driver.py"

Changes = list[tuple[str, str]]
Stream = Callable[..., Changes]


@pytest.fixture
def fs(cluster: Cluster, directory: str) -> Iterator[cairnfs.FileSystem]:
    with cairnfs.connect(cluster.uri) as fs:
        fs.mkdirs(directory)
        yield fs
        for view in views_of(fs, directory):
            view.close()


@pytest.fixture
def stream(spark: SparkSession, cluster: Cluster, directory: str, tmp_path: Path) -> Stream:
    """Reads all that has happened, and goes on where it has ended before."""

    def stream(**options: str) -> Changes:
        found: Changes = []

        def take(batch: Any, number: int) -> None:
            rows = batch.orderBy("position").collect()
            found.extend((row.change, row.path.removeprefix(f"{directory}/")) for row in rows)

        query = (
            spark.readStream.format("cairn")
            .options(table="changes", **options)
            .load(f"{cluster.uri}{directory}")
            .writeStream.foreachBatch(take)
            .option("checkpointLocation", f"file://{tmp_path}/checkpoint")
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        return found

    return stream


def views_of(fs: cairnfs.FileSystem, directory: str) -> list[View]:
    return [view for view in list_views(fs) if view.path.startswith(directory)]


def test_spark_goes_on_where_it_has_ended(
    fs: cairnfs.FileSystem, stream: Stream, directory: str
) -> None:
    fs.mkdirs(f"{directory}/before")
    assert stream() == []
    fs.mkdirs(f"{directory}/a")
    fs.rename(f"{directory}/before", f"{directory}/a/after")
    assert stream() == [
        ("moved out", "before"),
        ("modified", directory),
        ("created", "a"),
        ("moved in", "a/after"),
    ]
    for view in views_of(fs, directory):
        view.close()
    fs.mkdirs(f"{directory}/b")
    with pytest.raises(Exception, match="were let go"):
        stream()


@pytest.mark.long
@pytest.mark.timeout(2 * RUN_LIMIT_S)
def test_a_driver_that_is_killed(
    fs: cairnfs.FileSystem, spark: SparkSession, cluster: Cluster, directory: str, tmp_path: Path
) -> None:
    """Changes go on meanwhile: those before, while and after a driver was there all come once.

    What Spark asks of the stream then is tested without it, in test_table_rows.
    """
    made: list[str] = []

    def make_one() -> None:
        made.append(f"{directory}/d{len(made):05d}")
        fs.mkdirs(made[-1])

    def batches() -> int:
        commits = tmp_path / "checkpoint" / "commits"
        return len([file for file in commits.glob("*") if file.name.isdigit()])

    def arguments(name: str, *, once: bool) -> Path:
        given = {
            "hadoop": cluster.hadoop_settings(),
            "url": f"{cluster.uri}{directory}",
            "local": str(tmp_path),
            "once": once,
        }
        path = tmp_path / name
        path.write_text(json.dumps(given))
        return path

    def has_done_some() -> bool:
        make_one()
        return batches() >= 2

    run_driver(DRIVER, arguments("killed", once=False), until=has_done_some, limit_s=RUN_LIMIT_S)
    make_one()
    run_driver(DRIVER, arguments("whole", once=True), until=None, limit_s=RUN_LIMIT_S)
    sink = spark.read.parquet(f"file://{tmp_path}/sink")
    created = sorted(row.path for row in sink.where("change = 'created'").collect())
    assert sink.where("change not in ('created', 'modified')").count() == 0
    # Of what was made before the stream had begun it tells nothing.
    assert created == [path for path in made if path >= created[0]]
    assert len(views_of(fs, directory)) <= 2
