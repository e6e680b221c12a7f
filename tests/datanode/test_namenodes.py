"""What DataNode and NameNode say to each other."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import pytest
from tests.datanode.client import BlockWriter, datanode_info, extended, read_block, write_block
from tests.datanode.conftest import StartNode
from tests.datanode.namenode import CLUSTER, POOL, FakeNameNode, Status, reported_blocks

from cairnfs.datanode.errors import InconsistentFSStateException
from cairnfs.datanode.node import DataNode
from cairnfs.datanode.replica import Block, ReplicaState
from cairnfs.datanode.storage import LAYOUT_VERSION
from cairnfs.wire.proto import datanode_pb2 as pb
from cairnfs.wire.proto import hdfs_pb2
from cairnfs.wire.transfer import Stage

BLOCK = Block(1_073_741_825, 1001)
Command = pb.DatanodeCommandProto


def block_command(
    action: pb.BlockCommandProto.Action, block: Block, targets: list[DataNode] | None = None
) -> Command:
    command = Command(cmdType=Command.BlockCommand)
    command.blkCmd.action = action
    command.blkCmd.blockPoolId = POOL
    command.blkCmd.blocks.add(
        blockId=block.id, genStamp=block.generation_stamp, numBytes=block.length_bytes
    )
    if targets:
        command.blkCmd.targets.add(datanodes=[datanode_info(node) for node in targets])
        command.blkCmd.targetStorageUuids.add(storageUuids=["" for _ in targets])
        command.blkCmd.targetStorageTypes.add(storageTypes=[hdfs_pb2.DISK for _ in targets])
    return command


def recovery_command(block: Block, nodes: list[DataNode], stamp: int) -> Command:
    command = Command(cmdType=Command.BlockRecoveryCommand)
    recovering = command.recoveryCmd.blocks.add(newGenStamp=stamp)
    recovering.block.b.CopyFrom(extended(block))
    recovering.block.offset = 0
    recovering.block.corrupt = False
    token = recovering.block.blockToken
    token.identifier = token.password = b""
    token.kind = token.service = ""
    recovering.block.locs.extend(datanode_info(node) for node in nodes)
    return command


def test_registration(node: DataNode, namenode: FakeNameNode) -> None:
    (registration,) = namenode.registrations
    assert registration.datanodeID.datanodeUuid == node.uuid
    assert registration.datanodeID.xferPort == node.port
    assert registration.datanodeID.ipcPort == node.ipc_port
    assert registration.storageInfo.clusterID == CLUSTER
    assert registration.storageInfo.layoutVersion == LAYOUT_VERSION & 0xFFFFFFFF
    namenode.wait_for(lambda: namenode.reports)
    assert namenode.reports[0].context.leaseId == 77
    (report,) = namenode.reports[0].reports
    assert report.storage.storageUuid == node.volumes.good[0].storage_id


def test_heartbeats_tell_of_space(node: DataNode, namenode: FakeNameNode) -> None:
    write_block([node], BLOCK, b"x" * 100_000)
    namenode.wait_for(lambda: namenode.heartbeats[-1].reports[0].dfsUsed > 100_000)
    (report,) = namenode.heartbeats[-1].reports
    assert report.capacity >= report.remaining > 0


def test_a_namenode_that_restarts_learns_all_again(node: DataNode, namenode: FakeNameNode) -> None:
    write_block([node], BLOCK, b"x" * 1000)
    namenode.wait_until_received(node.uuid, BLOCK.id)
    namenode.stop()
    write_block([node], Block(BLOCK.id + 1, 1002), b"y" * 2000)
    namenode.reports.clear()
    namenode.start()
    namenode.wait_for(lambda: len(namenode.registrations) == 2 and namenode.reports)
    blocks = reported_blocks(namenode.reports[-1])
    assert blocks == {BLOCK.id: (1000, 1001, 0), BLOCK.id + 1: (2000, 1002, 0)}


def test_a_report_that_fails_is_repeated(node: DataNode, namenode: FakeNameNode) -> None:
    namenode.failing.add("blockReceivedAndDeleted")
    write_block([node], BLOCK, b"x" * 1000)
    time.sleep(0.3)
    assert not namenode.received
    namenode.failing.clear()
    namenode.wait_until_received(node.uuid, BLOCK.id)


def test_several_namenodes_are_all_told(start_node: StartNode, namenode: FakeNameNode) -> None:
    other = FakeNameNode()
    try:
        node = start_node(namenodes=(namenode.address, other.address))
        write_block([node], BLOCK, b"x" * 1000)
        namenode.wait_until_received(node.uuid, BLOCK.id)
        other.wait_until_received(node.uuid, BLOCK.id)
        other.stop()
        write_block([node], Block(BLOCK.id + 1, 1002), b"x" * 1000)
        namenode.wait_until_received(node.uuid, BLOCK.id + 1)
        other.start()
        other.wait_for(lambda: other.reports and BLOCK.id + 1 in reported_blocks(other.reports[-1]))
    finally:
        other.stop()


def test_data_of_another_cluster_is_refused(start_node: StartNode, namenode: FakeNameNode) -> None:
    start_node("shared").stop()
    namenode.cluster = "CID-other"
    with pytest.raises(InconsistentFSStateException, match="Incompatible clusterIDs"):
        start_node("shared")


def test_data_of_another_namespace_is_refused(
    start_node: StartNode, namenode: FakeNameNode
) -> None:
    start_node("shared").stop()
    namenode.namespace_id = 8
    with pytest.raises(InconsistentFSStateException, match="Incompatible namespaceIDs"):
        start_node("shared")


def test_invalidate(node: DataNode, namenode: FakeNameNode) -> None:
    write_block([node], BLOCK, b"x" * 1000)
    paths = [node.replicas.get(BLOCK.id).data_path, node.replicas.get(BLOCK.id).meta_path]
    namenode.command(node.uuid, block_command(pb.BlockCommandProto.INVALIDATE, BLOCK))
    namenode.wait_for(lambda: namenode.status_of(node.uuid, BLOCK.id) == Status.DELETED)
    assert not any(path.exists() for path in paths)
    assert node.volumes.good[0].used_bytes == 0


def test_invalidate_does_not_touch_a_newer_generation(
    node: DataNode, namenode: FakeNameNode
) -> None:
    write_block([node], BLOCK, b"x" * 1000)
    stale = BLOCK._replace(generation_stamp=1000)
    namenode.command(node.uuid, block_command(pb.BlockCommandProto.INVALIDATE, stale))
    heartbeats = len(namenode.heartbeats)
    namenode.wait_for(lambda: len(namenode.heartbeats) > heartbeats + 3)
    assert read_block(node, BLOCK, 0, 1000) == b"x" * 1000


def test_invalidate_means_the_volume_that_has_it_when_it_is_told(
    start_node: StartNode, namenode: FakeNameNode, tmp_path: Path
) -> None:
    """It may be a while before its turn comes, and a good copy be on another volume by then."""
    node = start_node(data=f"{tmp_path}/a,{tmp_path}/b")
    write_block([node], BLOCK, b"x" * 1000)
    before = node.replicas.get(BLOCK.id).volume
    other = next(volume for volume in node.volumes.good if volume is not before)
    deleters, busy = node.commands._deleters, threading.Event()
    deleters.submit(busy.wait)  # type: ignore[arg-type]
    namenode.wait_for(deleters._queue.empty)
    namenode.command(node.uuid, block_command(pb.BlockCommandProto.INVALIDATE, BLOCK))
    namenode.wait_for(lambda: not deleters._queue.empty())
    node.replicas.move(BLOCK._replace(length_bytes=1000), other.storage_type, other.storage_id)
    busy.set()
    namenode.wait_for(deleters._queue.empty)
    heartbeats = len(namenode.heartbeats)
    namenode.wait_for(lambda: len(namenode.heartbeats) > heartbeats + 3)
    assert read_block(node, BLOCK, 0, 1000) == b"x" * 1000


def test_what_was_to_be_deleted_is_forgotten_with_a_new_registration(
    node: DataNode, namenode: FakeNameNode
) -> None:
    """It was given up meanwhile, and so may the others be: the NameNode knows better now."""
    write_block([node], BLOCK, b"x" * 1000)
    deleters, busy = node.commands._deleters, threading.Event()
    deleters.submit(busy.wait)  # type: ignore[arg-type]
    namenode.wait_for(deleters._queue.empty)
    namenode.command(node.uuid, block_command(pb.BlockCommandProto.INVALIDATE, BLOCK))
    namenode.wait_for(lambda: not deleters._queue.empty())
    namenode.command(node.uuid, Command(cmdType=Command.RegisterCommand))
    namenode.wait_for(lambda: len(namenode.registrations) == 2)
    busy.set()
    namenode.wait_for(deleters._queue.empty)
    assert read_block(node, BLOCK, 0, 1000) == b"x" * 1000
    namenode.command(node.uuid, block_command(pb.BlockCommandProto.INVALIDATE, BLOCK))
    namenode.wait_for(lambda: namenode.status_of(node.uuid, BLOCK.id) == Status.DELETED)


def test_transfer_to_two_others(start_node: StartNode, namenode: FakeNameNode) -> None:
    nodes = [start_node(f"dn{index}") for index in range(3)]
    data = os.urandom(300_000)
    write_block(nodes[:1], BLOCK, data)
    block = BLOCK._replace(length_bytes=len(data))
    namenode.command(nodes[0].uuid, block_command(pb.BlockCommandProto.TRANSFER, block, nodes[1:]))
    for node in nodes[1:]:
        namenode.wait_until_received(node.uuid, BLOCK.id)
        assert read_block(node, BLOCK, 0, len(data)) == data


def test_a_replica_too_short_to_transfer_is_reported(
    start_node: StartNode, namenode: FakeNameNode
) -> None:
    nodes = [start_node(f"dn{index}") for index in range(2)]
    write_block(nodes[:1], BLOCK, b"x" * 1000)
    block = BLOCK._replace(length_bytes=2000)
    namenode.command(nodes[0].uuid, block_command(pb.BlockCommandProto.TRANSFER, block, nodes[1:]))
    namenode.wait_for(lambda: namenode.bad == [BLOCK.id])


def test_recovery_chooses_what_all_have(start_node: StartNode, namenode: FakeNameNode) -> None:
    """Three replicas being written, of different lengths: the smallest is kept."""
    nodes = [start_node(f"dn{index}") for index in range(3)]
    data = os.urandom(5000)
    for node, length in zip(nodes, (5000, 3000, 4000), strict=True):
        BlockWriter([node], BLOCK).setup().write(data[:length])
    namenode.command(nodes[0].uuid, recovery_command(BLOCK, nodes, 2001))
    namenode.wait_for(lambda: namenode.synchronized)
    (result,) = namenode.synchronized
    assert (result.newLength, result.newGenStamp, result.deleteBlock) == (3000, 2001, False)
    assert len(result.newTaragets) == 3
    for node in nodes:
        replica = node.replicas.get(BLOCK.id)
        assert (replica.state, replica.received_bytes) == (ReplicaState.FINALIZED, 3000)
        assert read_block(node, Block(BLOCK.id, 2001), 0, 3000) == data[:3000]


def test_recovery_keeps_what_is_finalized(start_node: StartNode, namenode: FakeNameNode) -> None:
    nodes = [start_node(f"dn{index}") for index in range(2)]
    write_block(nodes[:1], BLOCK, b"x" * 700)
    BlockWriter(nodes[1:], BLOCK).setup().write(b"x" * 700)
    namenode.command(nodes[1].uuid, recovery_command(BLOCK, nodes, 2001))
    namenode.wait_for(lambda: namenode.synchronized)
    (result,) = namenode.synchronized
    assert (result.newLength, len(result.newTaragets)) == (700, 2)


def test_recovery_of_what_nobody_has_deletes_the_block(
    start_node: StartNode, namenode: FakeNameNode
) -> None:
    nodes = [start_node(f"dn{index}") for index in range(2)]
    namenode.command(nodes[0].uuid, recovery_command(BLOCK, nodes, 2001))
    namenode.wait_for(lambda: namenode.synchronized)
    assert namenode.synchronized[0].deleteBlock


def test_recovery_goes_on_without_a_dead_datanode(
    start_node: StartNode, namenode: FakeNameNode
) -> None:
    nodes = [start_node(f"dn{index}") for index in range(3)]
    for node in nodes:
        BlockWriter([node], BLOCK).setup().write(b"x" * 700)
    nodes[2].stop()
    namenode.command(nodes[0].uuid, recovery_command(BLOCK, nodes, 2001))
    namenode.wait_for(lambda: namenode.synchronized)
    assert len(namenode.synchronized[0].newTaragets) == 2


def test_recovery_does_not_delete_what_a_dead_datanode_may_have(
    start_node: StartNode, namenode: FakeNameNode
) -> None:
    nodes = [start_node(f"dn{index}") for index in range(2)]
    BlockWriter(nodes[1:], BLOCK).setup().write(b"x" * 700)
    nodes[1].stop()
    namenode.command(nodes[0].uuid, recovery_command(BLOCK, nodes, 2001))
    heartbeats = len(namenode.heartbeats)
    namenode.wait_for(lambda: len(namenode.heartbeats) > heartbeats + 5)
    assert not namenode.synchronized


def test_recovery_leaves_out_replicas_that_lack_what_was_acknowledged(
    start_node: StartNode, namenode: FakeNameNode
) -> None:
    nodes = [start_node(f"dn{index}") for index in range(3)]
    for node, length in zip(nodes, (400, 700, 800), strict=True):
        BlockWriter([node], BLOCK).setup().write(b"x" * length)
    known = BLOCK._replace(length_bytes=600)
    namenode.command(nodes[0].uuid, recovery_command(known, nodes, 2001))
    namenode.wait_for(lambda: namenode.synchronized)
    (result,) = namenode.synchronized
    assert (result.newLength, len(result.newTaragets)) == (700, 2)


def test_a_writer_who_lost_the_block_to_recovery_cannot_go_on(
    node: DataNode, namenode: FakeNameNode
) -> None:
    writer = BlockWriter([node], BLOCK).setup()
    writer.write(b"x" * 512)
    namenode.command(node.uuid, recovery_command(BLOCK, [node], 2001))
    namenode.wait_for(lambda: namenode.synchronized)
    with pytest.raises(OSError, match=r"closed|reset|pipe"):
        writer.write(b"y" * 512)
    with pytest.raises(OSError, match=r"closed|reset|pipe"):
        BlockWriter(
            [node],
            BLOCK,
            stage=Stage.PIPELINE_SETUP_STREAMING_RECOVERY,
            new_stamp=1002,
            min_bytes=512,
            max_bytes=512,
        ).setup()
    assert read_block(node, Block(BLOCK.id, 2001), 0, 512) == b"x" * 512
