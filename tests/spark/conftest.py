"""One cluster and one Spark session for all tests with Spark."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from tests.scenarios.hadoop import hadoop_jars
from tests.spark.sessions import make_session

from cairnfs.testing.cluster import Cluster

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


BLOCK_BYTES = 1 << 20  # small, so that there are files of several


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A NameNode and three DataNodes."""
    with Cluster(tmp_path_factory.mktemp("spark") / "cluster", datanodes=3) as cluster:
        yield cluster


@pytest.fixture(scope="module")  # a process has one at a time, and others have others
def spark(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Spark with two threads, whose default file system is the cluster."""
    hadoop_jars()  # or the test is skipped
    settings = {**cluster.hadoop_settings(), "dfs.blocksize": str(BLOCK_BYTES)}
    session = make_session(settings, tmp_path_factory.mktemp("spark-local"))
    try:
        yield session
    finally:
        session.stop()


@pytest.fixture
def directory(request: pytest.FixtureRequest) -> str:
    """A directory of the test's own, on the cluster."""
    name = "".join(c if c.isalnum() else "_" for c in request.node.name)
    return f"/tests/{name}"
