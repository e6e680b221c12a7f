"""A cluster that the tests of a module share, and file systems on it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.scenarios.conftest import MakeCluster, make_cluster

import cairnfs
from cairnfs.testing.cluster import Cluster

__all__ = ["MakeCluster", "make_cluster"]  # those make clusters that a test may harm


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A NameNode and three DataNodes, which no test of the module may harm."""
    with Cluster(tmp_path_factory.mktemp("shared") / "cluster") as cluster:
        yield cluster


@pytest.fixture
def fs(cluster: Cluster) -> Iterator[cairnfs.FileSystem]:
    with cairnfs.connect(cluster.uri) as fs:
        yield fs


@pytest.fixture
def folder(fs: cairnfs.FileSystem, request: pytest.FixtureRequest) -> Iterator[str]:
    """A directory of the test's own."""
    path = f"/{request.node.name.replace('[', '-').replace(']', '').replace('/', '-')}"
    fs.mkdirs(path)
    yield path
    fs.delete(path, recursive=True)
