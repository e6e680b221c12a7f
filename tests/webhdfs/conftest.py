"""A cluster whose DataNodes can be reached by the names that they announce."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from cairnfs.testing.cluster import Cluster

DATANODE_OPTIONS = ("--hostname", "127.0.0.1")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    directory = tmp_path_factory.mktemp("webhdfs") / "cluster"
    with Cluster(directory, datanode_options=DATANODE_OPTIONS) as cluster:
        yield cluster
