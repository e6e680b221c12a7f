"""A cluster for each scenario, and Hadoop's client for it."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from tests.scenarios.hadoop import FsShell
from tests.scenarios.jvm import Jvm

from cairnfs.testing.cluster import Cluster

MakeCluster = Callable[..., Cluster]

PIECE_BYTES = 64 << 20


@pytest.fixture
def make_cluster(tmp_path: Path) -> Iterator[MakeCluster]:
    """Makes clusters, and closes them whatever becomes of the test."""
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


@pytest.fixture
def cluster(make_cluster: MakeCluster) -> Cluster:
    """A NameNode and three DataNodes."""
    return make_cluster()


@pytest.fixture
def shell(cluster: Cluster, tmp_path: Path) -> FsShell:
    return FsShell(cluster, tmp_path / "hadoop")


MakeJvm = Callable[..., Jvm]


@pytest.fixture
def make_java(tmp_path: Path) -> Iterator[MakeJvm]:
    """Starts clients of a cluster, each a JVM of its own, and ends them."""
    started: list[Jvm] = []

    def make(cluster: Cluster, settings: Mapping[str, str] | None = None) -> Jvm:
        started.append(Jvm(cluster, tmp_path / f"java{len(started)}", settings))
        return started[-1]

    try:
        yield make
    finally:
        for java in started:
            java.kill()


@pytest.fixture
def java(cluster: Cluster, make_java: MakeJvm) -> Jvm:
    """Hadoop's client, call by call."""
    return make_java(cluster)


@pytest.fixture
def content() -> Callable[[int], bytes]:
    """Makes bytes that no two parts of are alike, always the same."""

    def make(size_bytes: int) -> bytes:
        chooser = random.Random(size_bytes)
        pieces = [min(PIECE_BYTES, size_bytes - at) for at in range(0, size_bytes, PIECE_BYTES)]
        return b"".join(map(chooser.randbytes, pieces))

    return make
