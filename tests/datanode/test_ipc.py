"""The RPC port: what clients and other DataNodes ask."""

from __future__ import annotations

import getpass
import socket
from collections.abc import Iterator

import pytest
from tests.datanode.client import BlockWriter, extended, write_block
from tests.datanode.namenode import POOL, FakeNameNode

from cairnfs.datanode.calls import RpcCaller
from cairnfs.datanode.errors import ReplicaNotFoundException
from cairnfs.datanode.node import DataNode
from cairnfs.datanode.replica import Block
from cairnfs.errors import (
    AccessControlException,
    IOException,
    RecoveryInProgressException,
    UnsupportedOperationException,
)
from cairnfs.network.address import Address
from cairnfs.wire.proto import client_datanode_pb2 as pb
from cairnfs.wire.proto import inter_datanode_pb2
from cairnfs.wire.protocols import CLIENT_DATANODE_PROTOCOL, INTER_DATANODE_PROTOCOL

BLOCK = Block(1_073_741_825, 1001)


@pytest.fixture
def client(node: DataNode) -> Iterator[RpcCaller]:
    address = Address("127.0.0.1", node.ipc_port)
    caller = RpcCaller(address, CLIENT_DATANODE_PROTOCOL, getpass.getuser(), 5)
    yield caller
    caller.close()


@pytest.fixture
def peer(node: DataNode) -> Iterator[RpcCaller]:
    caller = RpcCaller(Address("127.0.0.1", node.ipc_port), INTER_DATANODE_PROTOCOL, "u", 5)
    yield caller
    caller.close()


def visible(caller: RpcCaller, block: Block) -> int:
    response = caller.call(
        "getReplicaVisibleLength", pb.GetReplicaVisibleLengthRequestProto(block=extended(block))
    )
    assert isinstance(response, pb.GetReplicaVisibleLengthResponseProto)
    return response.length


def init_recovery(
    caller: RpcCaller, block: Block, stamp: int
) -> inter_datanode_pb2.InitReplicaRecoveryResponseProto:
    request = inter_datanode_pb2.InitReplicaRecoveryRequestProto()
    request.block.newGenStamp = stamp
    located = request.block.block
    located.b.CopyFrom(extended(block))
    located.offset, located.corrupt = 0, False
    located.blockToken.identifier = located.blockToken.password = b""
    located.blockToken.kind = located.blockToken.service = ""
    response = caller.call("initReplicaRecovery", request)
    assert isinstance(response, inter_datanode_pb2.InitReplicaRecoveryResponseProto)
    return response


def test_the_visible_length_is_what_was_acknowledged(node: DataNode, client: RpcCaller) -> None:
    writer = BlockWriter([node], BLOCK).setup()
    assert visible(client, BLOCK) == 0
    writer.write(b"x" * 700)
    assert visible(client, BLOCK) == 700
    writer.close()
    assert visible(client, BLOCK) == 700
    with pytest.raises(ReplicaNotFoundException):
        visible(client, Block(BLOCK.id + 1, 1))
    with pytest.raises(IOException, match="gen stamp"):
        visible(client, Block(BLOCK.id, 1002))


def test_a_later_recovery_overtakes_an_earlier_one(node: DataNode, peer: RpcCaller) -> None:
    write_block([node], BLOCK, b"x" * 700)
    found = init_recovery(peer, BLOCK, 2001)
    assert (found.replicaFound, found.block.numBytes, found.state) == (True, 700, 0)
    assert init_recovery(peer, BLOCK, 2003).replicaFound
    with pytest.raises(RecoveryInProgressException):
        init_recovery(peer, BLOCK, 2002)
    update = inter_datanode_pb2.UpdateReplicaUnderRecoveryRequestProto(
        block=extended(Block(BLOCK.id, 1001, 700)), recoveryId=2001, newLength=600
    )
    with pytest.raises(IOException, match="recoveryId = 2001"):
        peer.call("updateReplicaUnderRecovery", update)
    update.recoveryId = 2003
    peer.call("updateReplicaUnderRecovery", update)
    replica = node.replicas.get(BLOCK.id)
    assert (replica.received_bytes, replica.generation_stamp) == (600, 2003)


def test_truncate_to_a_copy(node: DataNode, peer: RpcCaller) -> None:
    """The block is shared with a snapshot, so the result is another block."""
    write_block([node], BLOCK, b"x" * 700)
    init_recovery(peer, BLOCK, 2001)
    update = inter_datanode_pb2.UpdateReplicaUnderRecoveryRequestProto(
        block=extended(Block(BLOCK.id, 1001, 700)),
        recoveryId=2001,
        newLength=600,
        newBlockId=BLOCK.id + 1,
    )
    peer.call("updateReplicaUnderRecovery", update)
    old, new = node.replicas.get(BLOCK.id), node.replicas.get(BLOCK.id + 1)
    assert (old.received_bytes, old.generation_stamp) == (700, 1001)
    assert (new.received_bytes, new.generation_stamp) == (600, 2001)
    assert node.scanner.scan(BLOCK.id + 1)


def test_other_calls(node: DataNode, client: RpcCaller, namenode: FakeNameNode) -> None:
    info = client.call("getDatanodeInfo", pb.GetDatanodeInfoRequestProto())
    assert isinstance(info, pb.GetDatanodeInfoResponseProto)
    assert info.localInfo.softwareVersion
    volumes = client.call("getVolumeReport", pb.GetVolumeReportRequestProto())
    assert isinstance(volumes, pb.GetVolumeReportResponseProto)
    assert len(volumes.volumeInfo) == 1
    client.call("refreshNamenodes", pb.RefreshNamenodesRequestProto())
    namenode.wait_for(lambda: namenode.reports)
    reports = len(namenode.reports)
    client.call("triggerBlockReport", pb.TriggerBlockReportRequestProto(incremental=False))
    namenode.wait_for(lambda: len(namenode.reports) > reports)
    with pytest.raises(IOException, match="still running"):
        client.call("deleteBlockPool", pb.DeleteBlockPoolRequestProto(blockPool=POOL, force=False))
    with pytest.raises(UnsupportedOperationException, match="is not offered"):
        client.call("evictWriters", pb.EvictWritersRequestProto())


def test_a_report_asked_for_during_a_report_follows_it(
    node: DataNode, client: RpcCaller, namenode: FakeNameNode
) -> None:
    namenode.wait_for(lambda: namenode.reports)
    second = iter([node.reports.request_full_report])
    namenode.during_report = lambda: next(second, lambda: None)()
    reports = len(namenode.reports)
    client.call("triggerBlockReport", pb.TriggerBlockReportRequestProto(incremental=False))
    namenode.wait_for(lambda: len(namenode.reports) >= reports + 2)


def test_only_those_who_run_it_stop_it(node: DataNode) -> None:
    address = Address("127.0.0.1", node.ipc_port)
    stranger = RpcCaller(address, CLIENT_DATANODE_PROTOCOL, "stranger", 5)
    with pytest.raises(AccessControlException, match="stranger"):
        stranger.call("shutdownDatanode", pb.ShutdownDatanodeRequestProto(forUpgrade=False))
    stranger.close()
    assert not node.stopped.is_set()


def test_shutdown(node: DataNode, client: RpcCaller) -> None:
    client.call("shutdownDatanode", pb.ShutdownDatanodeRequestProto(forUpgrade=False))
    assert node.stopped.wait(10)


def test_garbage_ends_its_own_connection(node: DataNode, client: RpcCaller) -> None:
    with socket.create_connection(("127.0.0.1", node.ipc_port), 5) as sock:
        sock.sendall(b"\xff" * 64)
        while sock.recv(4096):
            pass
    client.call("getDatanodeInfo", pb.GetDatanodeInfoRequestProto())
