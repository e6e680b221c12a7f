"""How many blocks are in trouble is told by every NameNode, whoever works on them, and at once."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

from tests.namenode.datanodes import SERVICES, FakeCluster, fake_cluster, others
from tests.namenode.rpc import RpcClient
from tests.traces.clients import wait_until

from cairnfs.config import NameNodeSettings
from cairnfs.namenode.embedded import NameNodeThread
from cairnfs.namenode.server import RpcServer
from cairnfs.wire.proto import client_namenode_pb2 as pb

CALM = {"missing": 0, "low": 0, "one replica left": 0, "to be deleted": 0}


def told(rpc: RpcClient) -> dict[str, int]:
    """What both calls say; they must agree where they tell the same."""
    stats = rpc.call("getFsStats", pb.GetFsStatusRequestProto())
    blocks = rpc.call("getFsReplicatedBlockStats", pb.GetFsReplicatedBlockStatsRequestProto())
    assert stats.under_replicated == blocks.low_redundancy
    assert stats.missing_blocks == blocks.missing_blocks == blocks.corrupt_blocks
    assert stats.pending_deletion_blocks == blocks.pending_deletion_blocks
    return {
        "missing": blocks.missing_blocks,
        "low": blocks.low_redundancy,
        "one replica left": blocks.highest_prio_low_redundancy_blocks,
        "to be deleted": blocks.pending_deletion_blocks,
    }


def test_whoever_is_asked(postgres_dsn: str) -> None:
    with ExitStack() as stack:
        cluster = stack.enter_context(fake_cluster(postgres_dsn))
        idle = stack.enter_context(NameNodeThread(NameNodeSettings(postgres_dsn, duties=False)))
        server = RpcServer(idle.namenode, SERVICES)
        port = idle.wait(server.start("127.0.0.1", 0))
        stack.callback(lambda: idle.wait(server.stop()))
        asked = [stack.enter_context(RpcClient(each)) for each in (cluster.port, port)]

        def check_told(**figures: int) -> None:
            expected = CALM | {name.replace("_", " "): n for name, n in figures.items()}
            wait_until(lambda: [told(rpc) for rpc in asked] == [expected] * 2)

        cluster.add("a", "b", "c")
        for path in ("/f", "/g", "/h"):
            cluster.write(path)
        cluster.live(3)
        check_told()
        cluster.bury(*others(cluster, "a"))
        check_told(low=3, one_replica_left=3)
        cluster.client.set_replication("/f", 1)
        cluster.live(3)
        check_told(low=2, one_replica_left=2)
        cluster.bury(cluster.nodes["a"])
        check_told(missing=3)


def test_after_a_start_and_before_anything_is_done(tmp_path: Path) -> None:
    with fake_cluster(tmp_path) as cluster:
        cluster.add("a", "b")
        cluster.write("/f", replication=2)
        cluster.write("/g", replication=2)
        cluster.client.set_replication("/g", 1)
        cluster.live(2, seconds=0)
        cluster.bury(cluster.nodes["a"])
        before = told_by(cluster)
    with fake_cluster(tmp_path, format=False) as cluster:
        assert told_by(cluster) == before == CALM | {"low": 1, "one replica left": 1}


def test_what_is_to_be_deleted(tmp_path: Path) -> None:
    with fake_cluster(tmp_path) as cluster:
        cluster.add("a", "b")
        for path in ("/f", "/g"):
            cluster.write(path, replication=2)
        cluster.live(2)
        for path in ("/f", "/g"):
            cluster.client.set_replication(path, 1)
        cluster.pass_time(10)
        cluster.step()
        wait_until(lambda: told_by(cluster) == CALM | {"to be deleted": 2})
        cluster.live(3)
        wait_until(lambda: told_by(cluster) == CALM)


def told_by(cluster: FakeCluster) -> dict[str, int]:
    with RpcClient(cluster.port) as rpc:
        return told(rpc)
