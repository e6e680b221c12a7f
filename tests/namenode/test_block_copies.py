"""Copies of last blocks, made by DataNodes before an append that must not write into them.

The DataNodes exist only as what they say (`FakeDataNode.recover`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.namenode.datanodes import SUPERUSER, FakeCluster, FakeDataNode, fake_cluster
from tests.namenode.rpc import RpcClient
from tests.namenode.test_block_recovery import take_commands

from cairnfs.blocks.records import Block, BlockState
from cairnfs.errors import RecoveryInProgressException
from cairnfs.namenode import taking_over
from cairnfs.namenode.block_recoveries import ATTEMPT_LIMIT_S
from cairnfs.namesystem.block_copies import begin_copy
from cairnfs.namesystem.paths import FsPath
from cairnfs.store.base import Found, Reading
from cairnfs.store.schema import Table
from cairnfs.wire.proto import client_namenode_pb2 as pb

WRITER = "a writer"
LENGTH, LEFT = 10, 4


@pytest.fixture
def nodes(cluster: FakeCluster) -> list[FakeDataNode]:
    return cluster.add("a", "b", "c")


@pytest.fixture
def rpc(cluster: FakeCluster) -> Iterator[RpcClient]:
    with RpcClient(cluster.port) as client:
        yield client


def cut_file(cluster: FakeCluster) -> Block:
    """A file that was cut after a snapshot was taken of it."""
    cluster.client.mkdirs("/d")
    cluster.client.allow_snapshot("/d")
    block = cluster.write("/d/f", length=LENGTH)
    cluster.client.create_snapshot("/d", "s")
    assert cluster.client.truncate("/d/f", LEFT)
    return block


def last_block(cluster: FakeCluster) -> Block:
    last = cluster.client.get_block_locations("/d/f").last
    assert last is not None
    return last.block


def send_append(rpc: RpcClient) -> int:
    return rpc.send("append", pb.AppendRequestProto(src="/d/f", clientName=WRITER))


def copies(cluster: FakeCluster) -> int:
    return len(cluster.rows(Table.RECOVERIES, 1))


def has_orders(cluster: FakeCluster) -> bool:
    """Whether somebody is going to be told to make a copy: a moment after there is a row for it."""
    return copies(cluster) == 1 and bool(cluster.namenode.block_recoveries._orders)


def wait_until(is_true: Callable[[], bool]) -> None:
    end_s = time.monotonic() + 10
    while not is_true():
        assert time.monotonic() < end_s
        time.sleep(0.01)


def test_a_cut_that_a_snapshot_outlives_is_a_pointer(
    cluster: FakeCluster, nodes: list[FakeDataNode], rpc: RpcClient
) -> None:
    block = cut_file(cluster)
    assert cluster.client.is_file_closed("/d/f")
    pointer = cluster.block(block.id)
    assert pointer is not None
    assert (pointer.length_bytes, pointer.replica_bytes, pointer.state) == (
        LEFT,
        LENGTH,
        BlockState.COMPLETE,
    )
    assert pointer.generation_stamp == block.generation_stamp
    request = pb.GetBlockLocationsRequestProto(src="/d/f", offset=0, length=1 << 40)
    located = rpc.call("getBlockLocations", request).locations
    assert (located.fileLength, located.blocks[0].b.numBytes) == (LEFT, LEFT)
    assert len(located.blocks[0].locs) == 3
    cluster.live(5)
    assert all(node.find(block.id) is not None for node in nodes)
    assert all(node.find(block.id).length == LENGTH for node in nodes)  # type: ignore[union-attr]
    cluster.check_calm()


def test_a_copy_that_was_made_meanwhile_is_not_begun_anew(
    cluster: FakeCluster, nodes: list[FakeDataNode]
) -> None:
    """By who was told that one is needed, a moment before it was there."""
    block = cut_file(cluster)
    caller, path = cluster.namenode.caller(SUPERUSER), FsPath.parse("/d/f")
    assert cluster.call(begin_copy, caller, path, block.id) is not None
    assert copies(cluster) == 1
    cluster.live(3)
    assert copies(cluster) == 0
    copy = last_block(cluster)
    assert copy.id != block.id
    assert cluster.call(begin_copy, caller, path, block.id) is None
    assert copies(cluster) == 0
    cluster.live(3)
    assert last_block(cluster).id == copy.id
    cluster.check_calm()


def test_a_new_replica_is_as_long_as_the_others(
    cluster: FakeCluster, nodes: list[FakeDataNode]
) -> None:
    block = cut_file(cluster)
    [other] = cluster.add("d")
    cluster.bury(nodes[0])
    cluster.live(5)
    found = other.find(block.id)
    assert found is not None
    assert found.length == LENGTH
    assert cluster.located("/d/f") == cluster.located("/d/.snapshot/s/f") == ["b", "c", "d"]


def test_an_append_waits_for_a_copy(
    cluster: FakeCluster, nodes: list[FakeDataNode], rpc: RpcClient
) -> None:
    block = cut_file(cluster)
    call = send_append(rpc)
    wait_until(lambda: copies(cluster) == 1)
    cluster.live(2)
    located = rpc.wait(call).block
    assert located.b.blockId != block.id
    assert (located.b.numBytes, located.offset, len(located.locs)) == (LEFT, 0, 3)
    assert copies(cluster) == 0
    for node in nodes:
        kept, copy = node.find(block.id), node.find(located.b.blockId)
        assert kept is not None
        assert copy is not None
        assert (kept.length, kept.stamp) == (LENGTH, block.generation_stamp)
        assert (copy.length, copy.stamp) == (LEFT, located.b.generationStamp)
    past = cluster.client.get_block_locations("/d/.snapshot/s/f").blocks
    assert [(each.block.id, each.block.length_bytes) for each in past] == [(block.id, LENGTH)]
    cluster.thread.wait(cluster.namenode.duties.reclaim_everything())
    cluster.live(5)
    assert all(node.find(block.id) is not None for node in nodes)

    cluster.client.delete_snapshot("/d", "s")
    for _ in range(5):  # what other NameNodes may still read is not touched
        cluster.live(2)
        cluster.thread.wait(cluster.namenode.duties.reclaim_everything())
    assert all(node.find(block.id) is None for node in nodes)
    assert all(node.find(located.b.blockId) is not None for node in nodes)


def test_a_primary_that_dies_is_followed_by_another(
    cluster: FakeCluster, nodes: list[FakeDataNode], rpc: RpcClient
) -> None:
    cut_file(cluster)
    call = send_append(rpc)
    wait_until(lambda: has_orders(cluster))
    [(first, command)] = take_commands(cluster, *nodes)
    cluster.pass_time(ATTEMPT_LIMIT_S)
    [(second, again)] = take_commands(cluster, *nodes)
    assert second is not first
    old, new = command.blocks[0].truncateBlock, again.blocks[0].truncateBlock
    assert new.blockId != old.blockId
    assert new.genStamp > old.genStamp
    first.recover(command.blocks[0])  # late: what it has made belongs to no block
    assert copies(cluster) == 1
    second.recover(again.blocks[0])
    assert rpc.wait(call).block.b.blockId == new.blockId
    cluster.live(3)
    assert all(node.find(old.blockId) is None for node in nodes)
    assert all(node.find(new.blockId) is not None for node in nodes)


def test_a_copy_that_is_begun_while_the_duty_reads_is_not_begun_again(
    cluster: FakeCluster,
    nodes: list[FakeDataNode],
    rpc: RpcClient,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    recoveries, store = cluster.namenode.block_recoveries, cluster.namenode.store

    class SlowReads:
        """By somebody who waits for a copy, and has it begun at once."""

        async def read(self, reading: Reading) -> Found:
            found = await store.read(reading)
            for row in found.scans[reading.scans[0]]:
                if not recoveries._is_under_way(row.key):
                    await recoveries._attempt(row.key)
            return found

    cut_file(cluster)
    monkeypatch.setattr(recoveries, "hurry", lambda inode_id: None)
    send_append(rpc)
    wait_until(lambda: copies(cluster) == 1)
    monkeypatch.setattr(recoveries, "_store", SlowReads())
    [(_, command)] = take_commands(cluster, *nodes)
    assert len(command.blocks) == 1


@pytest.mark.parametrize("change", ["delete", "truncate"])
def test_a_copy_that_nobody_wants_any_more(
    cluster: FakeCluster, nodes: list[FakeDataNode], rpc: RpcClient, change: str
) -> None:
    cut_file(cluster)
    send_append(rpc)
    wait_until(lambda: has_orders(cluster))
    [(primary, command)] = take_commands(cluster, *nodes)
    if change == "delete":
        cluster.client.delete("/d/f")
    else:
        assert cluster.client.truncate("/d/f", 0)
    primary.recover(command.blocks[0])
    cluster.live(3)
    assert copies(cluster) == 0
    copy_id = command.blocks[0].truncateBlock.blockId
    assert all(node.find(copy_id) is None for node in nodes)


def test_an_append_that_waits_in_vain_says_so(
    cluster: FakeCluster,
    nodes: list[FakeDataNode],
    rpc: RpcClient,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(taking_over, "COPY_WAIT_S", 0.3)
    block = cut_file(cluster)
    with pytest.raises(RecoveryInProgressException, match="is being copied"):
        rpc.wait(send_append(rpc))
    assert cluster.client.is_file_closed("/d/f")
    cluster.live(3)  # but it is made all the same, for whoever comes next
    assert last_block(cluster).id != block.id
    assert rpc.wait(send_append(rpc)).block.b.blockId == last_block(cluster).id


def test_a_copy_is_made_after_the_namenode_has_died(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(taking_over, "COPY_WAIT_S", 0.1)
    with fake_cluster(tmp_path) as before, RpcClient(before.port) as rpc:
        nodes = before.add("a", "b", "c")
        block = cut_file(before)
        with pytest.raises(RecoveryInProgressException):
            rpc.wait(send_append(rpc))
        disks = {node.name: node.disk for node in nodes}
    with fake_cluster(tmp_path, format=False) as cluster:
        for node in cluster.add("a", "b", "c"):
            node.disk = disks[node.name]
            node.report()
        wait_until(lambda: not cluster.namenode.safe_mode.is_on)
        cluster.live(3)
        assert copies(cluster) == 0
        assert last_block(cluster).id != block.id


def test_what_was_flushed_of_a_deleted_file_is_finished(
    cluster: FakeCluster, nodes: list[FakeDataNode]
) -> None:
    """A snapshot needs it; its writer is gone with the file, and could not finish it."""
    cluster.client.mkdirs("/d")
    cluster.client.allow_snapshot("/d")
    cluster.client.create("/d/f", block_size_bytes=1 << 20)
    block = cluster.add_block("/d/f")
    for node, length in zip(nodes, (9, 7, 12), strict=True):
        node.write(block, length)
    cluster.client.fsync("/d/f", 6)
    cluster.client.create_snapshot("/d", "s")
    cluster.client.delete("/d/f")
    cluster.thread.wait(cluster.namenode.duties.reclaim_everything())
    cluster.live(4)
    finished = cluster.block(block.id)
    assert finished is not None
    assert finished.state is BlockState.COMPLETE
    assert cluster.located("/d/.snapshot/s/f") == ["a", "b", "c"]
    located = cluster.client.get_block_locations("/d/.snapshot/s/f")
    assert (located.length_bytes, located.under_construction) == (6, False)
    assert [each.block.length_bytes for each in located.blocks] == [6]
    cluster.bury(nodes[0])
    [other] = cluster.add("d")
    cluster.live(5)
    assert other.find(block.id) is not None


@pytest.mark.parametrize("asked", ["now", "then"])
def test_as_many_replicas_as_a_snapshot_asks_for(
    cluster: FakeCluster, nodes: list[FakeDataNode], asked: str
) -> None:
    cluster.client.mkdirs("/d")
    cluster.client.allow_snapshot("/d")
    block = cluster.write("/d/f", replication=3 if asked == "then" else 1)
    cluster.client.create_snapshot("/d", "s")
    cluster.client.set_replication("/d/f", 1 if asked == "then" else 3)
    cluster.live(5)
    assert sum(node.find(block.id) is not None for node in nodes) == 3
    cluster.client.delete("/d/f")
    cluster.thread.wait(cluster.namenode.duties.reclaim_everything())
    cluster.live(5)
    assert sum(node.find(block.id) is not None for node in nodes) == 3
    if asked == "then":
        cluster.bury(nodes[0])
        [other] = cluster.add("d")
        cluster.live(5)
        assert other.find(block.id) is not None


def test_one_copy_after_another_for_the_same_file(
    cluster: FakeCluster, nodes: list[FakeDataNode], rpc: RpcClient
) -> None:
    """The second is not taken for the first, which was done."""
    seen = {cut_file(cluster).id}
    for length in range(LEFT, 0, -1):
        call = send_append(rpc)
        wait_until(lambda: copies(cluster) == 1)
        for _ in range(100):
            cluster.beat()
            if not copies(cluster):
                break
            time.sleep(0.01)
        last = rpc.wait(call).block.b
        assert (last.numBytes, last.blockId in seen) == (length, False)
        seen.add(last.blockId)
        complete = pb.CompleteRequestProto(src="/d/f", clientName=WRITER, last=last)
        assert rpc.call("complete", complete).result
        cluster.client.create_snapshot("/d", f"s{length}")
        assert cluster.client.truncate("/d/f", length - 1)
