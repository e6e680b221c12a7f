"""Files with a writer, seen by a NameNode whose DataNodes exist only as what they say."""

from __future__ import annotations

from tests.namenode.datanodes import BLOCK_BYTES, FakeCluster, FakeDataNode

from cairnfs.blocks.records import Block
from cairnfs.wire.proto import datanode_pb2

OTHER = "another client"


def open_file(cluster: FakeCluster, path: str = "/f") -> Block:
    """A file with a block whose writer is about to go."""
    cluster.client.create(path, block_size_bytes=BLOCK_BYTES)
    return cluster.add_block(path)


def is_closed(cluster: FakeCluster, path: str = "/f") -> bool:
    return cluster.client.is_file_closed(path)


def length_of(cluster: FakeCluster, path: str = "/f") -> int:
    status = cluster.client.get_file_info(path)
    assert status is not None
    return status.length_bytes


def take_commands(
    cluster: FakeCluster, *nodes: FakeDataNode
) -> list[tuple[FakeDataNode, datanode_pb2.BlockRecoveryCommandProto]]:
    """The recoveries that DataNodes are told to lead with their next heartbeats, not done yet."""
    cluster.step()
    return [
        (node, command.recoveryCmd)
        for node in nodes
        for command in node.heartbeat().cmds
        if command.HasField("recoveryCmd")
    ]
