"""A cluster whose DataNodes have a directory of each common storage type."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.policies.clusters import TYPES

import cairnfs
from cairnfs.testing.cluster import Cluster


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A NameNode and three DataNodes, which no test of the module may harm."""
    with Cluster(tmp_path_factory.mktemp("policies") / "cluster", storage_types=TYPES) as cluster:
        yield cluster


@pytest.fixture
def fs(cluster: Cluster) -> Iterator[cairnfs.FileSystem]:
    with cairnfs.connect(cluster.uri) as fs:
        yield fs


@pytest.fixture
def folder(fs: cairnfs.FileSystem, request: pytest.FixtureRequest) -> Iterator[str]:
    """A directory of the test's own."""
    path = f"/{request.node.name.replace('[', '-').replace(']', '')}"
    fs.mkdirs(path)
    yield path
    fs.delete(path, recursive=True)
