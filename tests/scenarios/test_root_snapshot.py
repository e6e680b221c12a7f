"""The root snapshot by several NameNodes, and as Hadoop's clients know it."""

from __future__ import annotations

from typing import Any

import pytest
from tests.scenarios.conftest import MakeCluster
from tests.scenarios.jvm import Jvm

import cairnfs
from cairnfs.testing.cluster import Cluster

FILES = 5


def read(fs: cairnfs.FileSystem, path: str) -> bytes:
    with fs.open(path) as file:
        data: bytes = file.read()
    return data


def test_another_namenode_goes_on(make_cluster: MakeCluster, postgres_dsn: str) -> None:
    """One takes it and dies, another one rolls back, finalizes, and does what is left to do."""
    cluster = make_cluster(namenodes=2, datanodes=1, store=postgres_dsn)
    first, second = cluster.namenodes
    with cairnfs.connect(f"hdfs://{first.address},{second.address}") as fs:
        for number in range(FILES):
            with fs.create(f"/d/{number}", replication=1) as file:
                file.write(b"old")
        fs.create_root_snapshot("upgrade")
        for number in range(FILES):
            with fs.append(f"/d/{number}") as file:
                file.write(b" and new")
        first.kill()
        safety = fs.rollback_root_snapshot()
        assert [read(fs, f"/d/{number}") for number in range(FILES)] == [b"old"] * FILES
        assert read(fs, f"/.snapshot/{safety}/d/0") == b"old and new"
        fs.delete("/d/0")
        assert fs.finalize_root_snapshot() == [safety, "upgrade"]
        cluster.wait_until(lambda: fs.snapshot_work().is_done, "everything is reclaimed")
        assert fs.snapshot_work().namenode == second.address
        assert [read(fs, f"/d/{number}") for number in range(1, FILES)] == [b"old"] * (FILES - 1)


@pytest.mark.java
def test_hadoop_knows_it_as_a_rolling_upgrade(cluster: Cluster, java: Jvm) -> None:
    """What `hdfs dfsadmin -rollingUpgrade query|prepare|finalize` calls."""
    actions = java.jvm.org.apache.hadoop.hdfs.protocol.HdfsConstants.RollingUpgradeAction

    def roll(action: Any) -> Any:
        return java.fs.rollingUpgrade(action)

    with cairnfs.connect(cluster.uri) as fs:
        fs.mkdirs("/kept")
        assert roll(actions.QUERY) is None
        assert roll(actions.FINALIZE) is None
        info = roll(actions.PREPARE)
        status = fs.root_snapshot_status()
        assert status is not None
        assert info.isStarted()
        assert not info.isFinalized()
        assert info.createdRollbackImages()
        assert info.getStartTime() == status.snapshot.created_ms
        assert roll(actions.PREPARE).getStartTime() == info.getStartTime()  # the same
        fs.delete("/kept")
        fs.rollback_root_snapshot()
        assert fs.exists("/kept")
        assert roll(actions.QUERY).getStartTime() == info.getStartTime()
        info = roll(actions.FINALIZE)
        assert info.isFinalized()
        assert info.getFinalizeTime() >= info.getStartTime()
        assert roll(actions.QUERY) is None
        assert fs.root_snapshot_status() is None
