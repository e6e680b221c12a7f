"""What HDFS's own balancer asks of a NameNode."""

from __future__ import annotations

import pytest
from tests.namenode.datanodes import SUPERUSER, FakeCluster
from tests.namenode.rpc import RpcClient

from cairnfs.errors import (
    AccessControlException,
    HadoopIllegalArgumentException,
    IllegalArgumentException,
)
from cairnfs.wire.proto import hdfs_pb2, namenode_pb2
from cairnfs.wire.protocols import NAMENODE_PROTOCOL


def ask(uuid: str, size: int = 1 << 40, least: int = 0) -> namenode_pb2.GetBlocksRequestProto:
    node = hdfs_pb2.DatanodeIDProto(
        ipAddr="10.0.0.1", hostName="h", datanodeUuid=uuid, xferPort=1, infoPort=1, ipcPort=1
    )
    return namenode_pb2.GetBlocksRequestProto(datanode=node, size=size, minBlockSize=least)


def test_blocks_of_a_datanode_are_told_with_all_their_replicas(cluster: FakeCluster) -> None:
    cluster.add("a", "b", types=("DISK", "SSD"))
    blocks = {
        block.id: block for block in (cluster.write(f"/f{n}", 2, 1000 * (n + 1)) for n in range(5))
    }
    with RpcClient(cluster.port, SUPERUSER, protocol=NAMENODE_PROTOCOL) as client:
        found = client.call("getBlocks", ask("a")).blocks.blocks
        assert {each.block.blockId for each in found} == blocks.keys()
        for each in found:
            assert each.block.numBytes == blocks[each.block.blockId].length_bytes
            assert sorted(each.datanodeUuids) == ["a", "b"]
            assert sorted(each.storageUuids) == ["DS-a-0", "DS-b-0"]
            assert list(each.storageTypes) == [hdfs_pb2.DISK] * 2
        large = client.call("getBlocks", ask("a", least=4000)).blocks.blocks
        assert sorted(each.block.numBytes for each in large) == [4000, 5000]
        some = client.call("getBlocks", ask("a", size=1)).blocks.blocks
        assert len(some) == 1
        request = ask("a")
        request.storageType = hdfs_pb2.SSD
        assert not client.call("getBlocks", request).blocks.blocks
        keys = client.call("getBlockKeys", namenode_pb2.GetBlockKeysRequestProto()).keys
        assert not keys.isBlockTokenEnabled
        path = client.call("getNextSPSPath", namenode_pb2.GetNextSPSPathRequestProto())
        assert not path.HasField("spsPath")  # there is nothing to do for another satisfier


def test_mistakes(sqlite_cluster: FakeCluster) -> None:
    cluster = sqlite_cluster
    cluster.add("a")
    with RpcClient(cluster.port, SUPERUSER, protocol=NAMENODE_PROTOCOL) as client:
        with pytest.raises(HadoopIllegalArgumentException, match="Datanode x not found"):
            client.call("getBlocks", ask("x"))
        with pytest.raises(IllegalArgumentException, match="not positive size: 0"):
            client.call("getBlocks", ask("a", size=0))
    with (
        RpcClient(cluster.port, "somebody", protocol=NAMENODE_PROTOCOL) as client,
        pytest.raises(AccessControlException, match="required for operation getBlocks"),
    ):
        client.call("getBlocks", ask("a"))
