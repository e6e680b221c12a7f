"""Two clusters and one Spark session for all tests of jobs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.scenarios.hadoop import hadoop_jars
from tests.spark.sessions import make_session

import cairnfs
from cairnfs.testing.cluster import Cluster

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


# There is little data, and much to be started for it: nothing is compiled that is soon over.
CHEAP = {
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Where data comes from."""
    with Cluster(tmp_path_factory.mktemp("jobs") / "cluster", datanodes=1) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def other_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Where it is brought to."""
    with Cluster(tmp_path_factory.mktemp("jobs-other") / "cluster", datanodes=1) as cluster:
        yield cluster


@pytest.fixture
def fs(cluster: Cluster) -> Iterator[cairnfs.FileSystem]:
    with cairnfs.connect(cluster.uri) as fs:
        yield fs
        remove_everything(fs)


@pytest.fixture
def other(other_cluster: Cluster) -> Iterator[cairnfs.FileSystem]:
    with cairnfs.connect(other_cluster.uri) as fs:
        yield fs
        remove_everything(fs)


@pytest.fixture(scope="module")  # a process has one at a time, and others have others
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Spark with two threads; jobs find it as the active session."""
    hadoop_jars()  # or the test is skipped
    session = make_session({}, tmp_path_factory.mktemp("spark-local"), CHEAP)
    try:
        yield session
    finally:
        session.stop()


@pytest.fixture
def backups(tmp_path: Path) -> str:
    """A local place for backups."""
    return f"file://{tmp_path}/backups"


def remove_everything(fs: cairnfs.FileSystem) -> None:
    for directory in fs.get_snapshottable_directories():
        for snapshot in fs.list_snapshots(directory.status.path):
            fs.delete_snapshot(directory.status.path, snapshot.status.name)
        fs.disallow_snapshot(directory.status.path)
    for status in fs.list_status("/"):
        fs.delete(status.path, recursive=True)
