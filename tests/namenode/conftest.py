"""A NameNode with DataNodes that exist only as what they say, on each store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.namenode.datanodes import FakeCluster, FakeDataNode, fake_cluster
from tests.namenode.rpc import RpcClient


@pytest.fixture(params=["sqlite", "postgres"])
def cluster(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[FakeCluster]:
    """An empty cluster; it is checked afterwards that it does not contradict itself."""
    url = tmp_path if request.param == "sqlite" else request.getfixturevalue("postgres_dsn")
    with fake_cluster(url) as made:
        yield made
        made.check_invariants()


@pytest.fixture
def sqlite_cluster(tmp_path: Path) -> Iterator[FakeCluster]:
    """As `cluster`, on the default store only."""
    with fake_cluster(tmp_path) as made:
        yield made
        made.check_invariants()


@pytest.fixture
def nodes(cluster: FakeCluster) -> list[FakeDataNode]:
    return cluster.add("a", "b", "c")


@pytest.fixture
def rpc(cluster: FakeCluster) -> Iterator[RpcClient]:
    with RpcClient(cluster.port) as client:
        yield client
