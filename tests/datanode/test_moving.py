"""Copies between DataNodes: to join a pipeline, to balance, and those that fail."""

from __future__ import annotations

import os
import time
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
from tests.datanode.namenode import POOL, FakeNameNode

from cairnfs.datanode.node import DataNode
from cairnfs.datanode.replica import Block, ReplicaState
from cairnfs.datanode.storage import StorageType
from cairnfs.errors import IOException
from cairnfs.wire.proto import data_transfer_pb2 as pb
from cairnfs.wire.proto import datanode_pb2 as dn_pb
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


def move_command(block: Block, target: DataNode, type: StorageType) -> dn_pb.DatanodeCommandProto:
    command = dn_pb.DatanodeCommandProto(cmdType=dn_pb.DatanodeCommandProto.BlockCommand)
    moves = command.blkCmd
    moves.action = dn_pb.BlockCommandProto.TRANSFER
    moves.blockPoolId, moves.isMove = POOL, True
    moves.blocks.add(blockId=block.id, genStamp=block.generation_stamp, numBytes=len(DATA))
    moves.targets.add(datanodes=[datanode_info(target)])
    moves.targetStorageTypes.add(storageTypes=[hdfs_pb2.StorageTypeProto.Value(type.name)])
    moves.targetStorageUuids.add(storageUuids=[""])
    return command


def test_a_namenode_has_a_replica_moved_to_another_datanode(
    start_node: StartNode, namenode: FakeNameNode, tmp_path: Path
) -> None:
    """It stays where it was as well, until the NameNode has it deleted."""
    source = start_node("dn0")
    target = start_node("dn1", data=f"{tmp_path}/a,[ARCHIVE]{tmp_path}/b")
    write_block([source], BLOCK, DATA)
    namenode.command(source.uuid, move_command(BLOCK, target, StorageType.ARCHIVE))
    namenode.wait_until_received(target.uuid, BLOCK.id)
    assert namenode.received[target.uuid, BLOCK.id].deleteHint == source.uuid
    assert target.replicas.get(BLOCK.id).volume.storage_type is StorageType.ARCHIVE
    for node in (source, target):
        assert read_block(node, BLOCK, 0, len(DATA)) == DATA


def test_a_namenode_has_a_replica_moved_to_another_volume(
    start_node: StartNode, namenode: FakeNameNode, tmp_path: Path
) -> None:
    node = start_node(data=f"{tmp_path}/a,[ARCHIVE]{tmp_path}/b")
    write_block([node], BLOCK, DATA)
    namenode.wait_until_received(node.uuid, BLOCK.id)
    namenode.command(node.uuid, move_command(BLOCK, node, StorageType.ARCHIVE))
    namenode.wait_for(lambda: namenode.received[node.uuid, BLOCK.id].deleteHint == node.uuid)
    assert node.replicas.get(BLOCK.id).volume.storage_type is StorageType.ARCHIVE
    assert len(node.replicas) == 1


def test_a_replica_does_not_move_to_a_type_that_is_not_there(
    start_node: StartNode, namenode: FakeNameNode
) -> None:
    node, other = start_node("dn0"), start_node("dn1")
    write_block([node], BLOCK, DATA)
    for target in (node, other):
        namenode.command(node.uuid, move_command(BLOCK, target, StorageType.SSD))
    seen = len(namenode.heartbeats)
    namenode.wait_for(lambda: len(namenode.heartbeats) > seen + 10)
    assert read_block(node, BLOCK, 0, len(DATA)) == DATA
    assert other.replicas.find(BLOCK.id) is None


def test_only_so_many_replicas_move_at_a_time(start_node: StartNode, tmp_path: Path) -> None:
    node = start_node(data=f"{tmp_path}/a,[SSD]{tmp_path}/b", moves_max=1)
    write_block([node], BLOCK, DATA)
    request = pb.OpReplaceBlockProto(delHint=node.uuid, source=datanode_info(node))
    request.storageType = hdfs_pb2.SSD
    request.header.block.CopyFrom(extended(BLOCK))
    with node.move_limits.move("test"):
        connection = connect(node)
        connection.send(encode_request(Op.REPLACE_BLOCK, request))
        response = connection.read_message(pb.BlockOpResponseProto)
        assert response.status == Status.ERROR
        assert "threads quota=1 is exceeded" in response.message
    connection = connect(node)
    connection.send(encode_request(Op.REPLACE_BLOCK, request))
    assert connection.read_message(pb.BlockOpResponseProto).status == Status.SUCCESS
    assert node.move_limits.moves == 0


def test_moves_keep_to_a_rate_that_a_namenode_sets(
    start_node: StartNode, namenode: FakeNameNode
) -> None:
    node = start_node()
    command = dn_pb.DatanodeCommandProto(
        cmdType=dn_pb.DatanodeCommandProto.BalancerBandwidthCommand
    )
    command.balancerCmd.bandwidth = 50_000
    namenode.command(node.uuid, command)
    throttle = node.move_limits.throttle
    namenode.wait_for(lambda: throttle.bytes_per_s == 50_000)
    began_s = time.monotonic()
    for _ in range(4):
        throttle.wait(10_000)
    assert (
        time.monotonic() - began_s >= 0.4
    )  # 40,000 bytes take 0.8 s; the last, and a piece, are not waited for
