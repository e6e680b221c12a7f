"""Copies between DataNodes: to join a pipeline, to balance, and those that fail."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.datanode.client import (
    BlockWriter,
    connect,
    datanode_info,
    extended,
    read_block,
    write_block,
)
from tests.datanode.conftest import StartNode
from tests.datanode.namenode import FakeNameNode

from cairnfs.datanode.node import DataNode
from cairnfs.datanode.replica import Block, ReplicaState
from cairnfs.datanode.storage import StorageType
from cairnfs.errors import IOException
from cairnfs.wire.proto import data_transfer_pb2 as pb
from cairnfs.wire.proto import hdfs_pb2
from cairnfs.wire.transfer import Op, Stage, Status, encode_request

BLOCK = Block(1_073_741_825, 1001)
DATA = os.urandom(100_000)


def transfer(source: DataNode, target: DataNode, block: Block = BLOCK) -> pb.BlockOpResponseProto:
    connection = connect(source)
    request = pb.OpTransferBlockProto(targets=[datanode_info(target)])
    request.targetStorageTypes.append(hdfs_pb2.DISK)
    request.header.clientName = "c"
    request.header.baseHeader.block.CopyFrom(extended(block))
    connection.send(encode_request(Op.TRANSFER_BLOCK, request))
    return connection.read_message(pb.BlockOpResponseProto)


def test_a_datanode_joins_a_pipeline(start_node: StartNode) -> None:
    """A replica being written is copied; then both go on under a new generation."""
    first, joining = start_node("dn0"), start_node("dn1")
    writer = BlockWriter([first], BLOCK).setup()
    writer.write(DATA[:50_000])
    writer.connection.close()
    assert transfer(first, joining).status == Status.SUCCESS
    replica = joining.replicas.get(BLOCK.id)
    assert (replica.state, replica.visible_bytes) == (ReplicaState.RBW, 50_000)
    writer = BlockWriter(
        [first, joining],
        BLOCK,
        stage=Stage.PIPELINE_SETUP_STREAMING_RECOVERY,
        new_stamp=1002,
        min_bytes=50_000,
        max_bytes=50_000,
    ).setup()
    begin = 50_000 - 50_000 % 512
    writer.send(DATA[begin:], offset=begin)
    assert writer.ack().is_success
    writer.close()
    for node in (first, joining):
        assert read_block(node, Block(BLOCK.id, 1002), 0, len(DATA)) == DATA


def test_a_finalized_replica_is_transferred_as_such(start_node: StartNode) -> None:
    first, joining = start_node("dn0"), start_node("dn1")
    write_block([first], BLOCK, DATA)
    assert transfer(first, joining).status == Status.SUCCESS
    assert joining.replicas.get(BLOCK.id).state is ReplicaState.FINALIZED
    assert read_block(joining, BLOCK, 0, len(DATA)) == DATA


def test_a_stale_replica_is_not_transferred(start_node: StartNode) -> None:
    first, joining = start_node("dn0"), start_node("dn1")
    write_block([first], BLOCK, DATA)
    response = transfer(first, joining, Block(BLOCK.id, 1002))
    assert response.status == Status.ERROR
    assert "storedGS" in response.message


def test_a_newer_copy_replaces_an_older_replica(start_node: StartNode) -> None:
    first, joining = start_node("dn0"), start_node("dn1")
    write_block([joining], Block(BLOCK.id, 1000), b"old")
    write_block([first], BLOCK, DATA)
    assert transfer(first, joining).status == Status.SUCCESS
    assert read_block(joining, BLOCK, 0, len(DATA)) == DATA


def test_a_balancer_moves_a_replica(start_node: StartNode, namenode: FakeNameNode) -> None:
    source, target = start_node("dn0"), start_node("dn1")
    write_block([source], BLOCK, DATA)
    connection = connect(target)
    request = pb.OpReplaceBlockProto(delHint=source.uuid, source=datanode_info(source))
    request.header.block.CopyFrom(extended(BLOCK))
    connection.send(encode_request(Op.REPLACE_BLOCK, request))
    assert connection.read_message(pb.BlockOpResponseProto).status == Status.SUCCESS
    namenode.wait_until_received(target.uuid, BLOCK.id)
    assert namenode.received[target.uuid, BLOCK.id].deleteHint == source.uuid
    assert read_block(target, BLOCK, 0, len(DATA)) == DATA


def test_a_copy_of_something_corrupt_is_not_kept(start_node: StartNode) -> None:
    source, target = start_node("dn0"), start_node("dn1")
    write_block([source], BLOCK, DATA)
    with source.replicas.get(BLOCK.id).data_path.open("r+b") as file:
        file.seek(60_000)
        file.write(b"decay")
    assert transfer(source, target).status == Status.ERROR
    assert target.replicas.find(BLOCK.id) is None
    assert not list(target.volumes.good[0].tmp.iterdir())


def test_a_replica_moves_to_another_storage(
    start_node: StartNode, namenode: FakeNameNode, tmp_path: Path
) -> None:
    node = start_node(data=f"{tmp_path}/a,[SSD]{tmp_path}/b")
    write_block([node], BLOCK, DATA)
    old = node.replicas.get(BLOCK.id)
    connection = connect(node)
    request = pb.OpReplaceBlockProto(delHint=node.uuid, source=datanode_info(node))
    request.storageType = hdfs_pb2.SSD
    request.header.block.CopyFrom(extended(BLOCK))
    connection.send(encode_request(Op.REPLACE_BLOCK, request))
    assert connection.read_message(pb.BlockOpResponseProto).status == Status.SUCCESS
    new = node.replicas.get(BLOCK.id)
    assert new.volume.storage_type is StorageType.SSD
    assert read_block(node, BLOCK, 0, len(DATA)) == DATA
    assert not old.data_path.exists()
    assert old.volume.used_bytes == 0
    assert new.volume.used_bytes > len(DATA)
    node.stop()
    node = start_node(data=f"{tmp_path}/a,[SSD]{tmp_path}/b")
    assert read_block(node, BLOCK, 0, len(DATA)) == DATA


def test_what_is_corrupt_does_not_move(start_node: StartNode, tmp_path: Path) -> None:
    node = start_node(data=f"{tmp_path}/a,[SSD]{tmp_path}/b")
    write_block([node], BLOCK, DATA)
    with node.replicas.get(BLOCK.id).data_path.open("r+b") as file:
        file.write(b"decay")
    with pytest.raises(IOException, match="is corrupt at 0"):
        node.replicas.move(BLOCK, StorageType.SSD, "")
    assert node.replicas.get(BLOCK.id).volume.storage_type is StorageType.DISK
    assert not list(node.volumes.good[1].tmp.iterdir())
