"""A cluster that the tests of a module share, and file systems on it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import cairnfs
from cairnfs.testing.cluster import Cluster

MakeCluster = Callable[..., Cluster]


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


@pytest.fixture
def make_cluster(tmp_path: Path) -> Iterator[MakeCluster]:
    """Makes clusters to be harmed, and closes them whatever becomes of the test."""
    clusters: list[Cluster] = []

    def make(**options: object) -> Cluster:
        cluster = Cluster(tmp_path / f"cluster{len(clusters)}", **options)  # type: ignore[arg-type]
        clusters.append(cluster)
        cluster.start()
        return cluster

    try:
        yield make
    finally:
        for cluster in clusters:
            cluster.close()
