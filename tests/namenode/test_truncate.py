"""Truncate: DataNodes cut a block where a client says."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from tests.namenode.datanodes import BLOCK_BYTES, FakeCluster, FakeDataNode, OnDisk, fake_cluster
from tests.namenode.open_files import OTHER, is_closed, length_of, take_commands
from tests.namenode.rpc import RpcClient

from cairnfs.blocks.records import Block, BlockState
from cairnfs.errors import (
    AlreadyBeingCreatedException,
    HadoopIllegalArgumentException,
    LeaseExpiredException,
    RecoveryInProgressException,
)
from cairnfs.namenode import client_open_files
from cairnfs.wire.proto import client_namenode_pb2 as pb
from cairnfs.wire.proto import datanode_pb2


def send_truncate(rpc: RpcClient, length: int, holder: str = OTHER) -> int:
    return rpc.send(
        "truncate", pb.TruncateRequestProto(src="/f", newLength=length, clientName=holder)
    )


def wait_until_cutting(cluster: FakeCluster, block: Block) -> None:
    for _ in range(500):
        found = cluster.block(block.id)
        if found is not None and found.state is BlockState.TRUNCATING:
            return
        time.sleep(0.01)
    raise AssertionError("nobody cuts it")


def test_truncate_within_a_block_waits_for_datanodes(
    cluster: FakeCluster, nodes: list[FakeDataNode], rpc: RpcClient
) -> None:
    block = cluster.write("/f")
    call_id = send_truncate(rpc, 4)
    wait_until_cutting(cluster, block)
    # Readers see the new end at once, and nobody writes.
    located = cluster.client.get_block_locations("/f")
    assert (located.length_bytes, located.last_is_complete) == (4, True)
    assert located.under_construction
    assert cluster.located("/f") == ["a", "b", "c"]
    assert length_of(cluster) == cluster.client.get_content_summary("/").length_bytes == 4
    assert cluster.client.get_content_summary("/").space_bytes == 12
    with pytest.raises(AlreadyBeingCreatedException, match="/f is being truncated"):
        cluster.client.truncate("/f", 3)
    with pytest.raises(RecoveryInProgressException):
        cluster.client.append("/f")
    with pytest.raises(LeaseExpiredException):
        cluster.add_block("/f", block)
    cluster.live(2)
    assert rpc.wait(call_id).result
    assert is_closed(cluster)
    cut = cluster.block(block.id)
    assert cut is not None
    assert cut.length_bytes == 4
    assert cut.generation_stamp > block.generation_stamp
    assert cluster.holders(cut) == cluster.located("/f") == ["a", "b", "c"]


def test_whoever_waits_for_a_cut_does_not_cut_again(
    cluster: FakeCluster,
    nodes: list[FakeDataNode],
    rpc: RpcClient,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(client_open_files, "RECOVERY_POLL_S", 1.0)
    block = cluster.write("/f")
    call_id = send_truncate(rpc, 4)
    wait_until_cutting(cluster, block)
    cluster.live(2)
    with RpcClient(cluster.port) as other:  # gets to it before the first one looks again
        monkeypatch.setattr(client_open_files, "RECOVERY_POLL_S", 0.05)
        shorter = send_truncate(other, 2, "a third one")
        wait_until_cutting(cluster, block)
        cluster.live(2)
        assert other.wait(shorter).result
    assert rpc.wait(call_id).result
    assert length_of(cluster) == 2


def test_truncate_is_answered_even_if_nobody_cuts(
    cluster: FakeCluster,
    nodes: list[FakeDataNode],
    rpc: RpcClient,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(client_open_files, "RECOVERY_WAIT_S", 0.3)
    cluster.write("/f")
    assert not rpc.wait(send_truncate(rpc, 4)).result
    assert not rpc.wait(send_truncate(rpc, 4)).result  # as a client that goes on asking
    cluster.live(2)
    assert rpc.wait(send_truncate(rpc, 4)).result


def test_truncate_to_the_end_of_a_block_is_done_at_once(
    cluster: FakeCluster, nodes: list[FakeDataNode], rpc: RpcClient
) -> None:
    cluster.client.create("/f", block_size_bytes=BLOCK_BYTES)
    first = cluster.add_block("/f")
    for storage in first.targets:
        cluster.finish(storage, first, BLOCK_BYTES)
    second = cluster.add_block("/f", first.with_length(BLOCK_BYTES))
    for storage in second.targets:
        cluster.finish(storage, second, 10)
    assert cluster.complete("/f", second, 10)
    assert rpc.wait(send_truncate(rpc, BLOCK_BYTES)).result
    cluster.thread.wait(cluster.namenode.duties.reclaim_everything())
    cluster.live(3)
    assert all(node.find(second.id) is None for node in nodes)
    assert all(node.find(first.id) is not None for node in nodes)
    with pytest.raises(HadoopIllegalArgumentException, match="Cannot truncate to a larger"):
        rpc.wait(send_truncate(rpc, BLOCK_BYTES + 1))


def test_a_block_that_is_cut_is_neither_removed_nor_of_another_length(
    cluster: FakeCluster, nodes: list[FakeDataNode], rpc: RpcClient
) -> None:
    block = cluster.write("/f")
    send_truncate(rpc, 4)
    wait_until_cutting(cluster, block)
    [(primary, command)] = take_commands(cluster, *nodes)
    cut = command.blocks[0]
    assert (cut.truncateBlock.numBytes, cut.truncateBlock.blockId) == (4, block.id)
    result = datanode_pb2.CommitBlockSynchronizationRequestProto(
        block=cut.block.b,
        newGenStamp=cut.newGenStamp,
        newLength=3,
        closeFile=True,
        deleteBlock=False,
    )
    primary.commit(result)
    result.newLength, result.deleteBlock = 0, True
    primary.commit(result)
    assert [text.split(" ")[2] for text in primary.refused] == ["/f", "not"]
    primary.recover(cut)
    assert is_closed(cluster)


def test_cutting_goes_on_after_a_namenode_has_died(tmp_path: Path) -> None:
    with fake_cluster(tmp_path) as before, RpcClient(before.port) as rpc:
        nodes = before.add("a", "b")
        block = before.write("/f", replication=2)
        send_truncate(rpc, 4)
        wait_until_cutting(before, block)
        disks = {node.name: node.disk for node in nodes}
    with fake_cluster(tmp_path, format=False) as cluster:
        for node in cluster.add("a", "b"):
            node.disk = disks[node.name]
        for node in cluster.nodes.values():
            node.report()
        for _ in range(500):  # safe mode ends
            if not cluster.namenode.safe_mode.is_on:
                break
            time.sleep(0.01)
        cluster.live(3)
        assert is_closed(cluster)
        assert length_of(cluster) == 4


def test_replicas_of_another_generation_are_not_read(
    cluster: FakeCluster, nodes: list[FakeDataNode]
) -> None:
    """Of DataNodes that were away: one has an older generation, one what was there long ago."""
    block = cluster.write("/f")
    nodes[0].die()
    with RpcClient(cluster.port) as rpc:
        call_id = send_truncate(rpc, 4)
        wait_until_cutting(cluster, block)
        cluster.live(11)
        rpc.wait(call_id)
    cluster.live(20)
    assert is_closed(cluster)
    prehistoric = block.id + 1
    nodes[0].disk["DS-a-0"][prehistoric] = OnDisk(5, 10)
    nodes[0].come()
    assert "a" not in cluster.located("/f")
    cluster.live(5)
    assert {block.id, prehistoric} <= set(nodes[0].told)
