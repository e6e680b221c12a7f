"""The checker of invariants finds what it is there to find."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import msgspec
import pytest

from cairnfs.blocks.records import (
    Block,
    BlockId,
    BlockState,
    Check,
    CheckQueue,
    DataNode,
    GenerationStamp,
    Invalidation,
    Replica,
    Storage,
    StorageNumber,
    StorageType,
    block_key,
    check_key,
    datanode_key,
    invalidation_key,
    replica_key,
)
from cairnfs.namesystem.lease_records import lease_key
from cairnfs.namesystem.lookup import key_of
from cairnfs.store.base import Count
from cairnfs.store.batches import Batch, Put, Touch
from cairnfs.store.schema import Key
from cairnfs.testing.invariants import check_invariants, check_no_leftovers
from cairnfs.testing.scratch import ScratchClient, scratch_namespace
from cairnfs.transaction.records import encode


@pytest.fixture
def fs(tmp_path: Path) -> Iterator[ScratchClient]:
    """A namespace to be damaged: it is not checked afterwards."""
    with suppress(_Damaged), scratch_namespace(tmp_path) as client:
        client.write("/d/f", 10, 20)
        client.create("/d/open")
        client.add_block("/d/open")
        client.mkdirs("/d/e")
        client.namenode.wait(check_invariants(client.namenode.namenode.store))
        yield client
        raise _Damaged


class _Damaged(Exception):
    pass


def damage(fs: ScratchClient, batch: Batch, message: str) -> None:
    store = fs.namenode.namenode.store
    fs.namenode.wait(store.commit(batch))
    with pytest.raises(AssertionError, match=message):
        fs.namenode.wait(check_invariants(store))


def test_totals_that_are_wrong_anywhere(fs: ScratchClient) -> None:
    for count in Count:
        changes = [0] * len(Count)
        changes[count] = 1
        touch = Touch(fs.info("/d").id, changes, -1, 0)
        damage(fs, Batch(1, 0, touches=[touch]), f"totals of /d: .*{count.name}")
        changes[count] = -1
        store = fs.namenode.namenode.store
        fs.namenode.wait(store.commit(Batch(1, 0, touches=[touch])))
    fs.namenode.wait(check_invariants(store))


def test_a_lease_without_an_open_file_and_the_other_way_round(fs: ScratchClient) -> None:
    damage(fs, Batch(1, 0, deletes=[lease_key(fs.info("/d/open").id)]), "its lease is None")


def test_a_file_that_is_open_without_saying_so(fs: ScratchClient) -> None:
    inode = fs.dump()["/d/open"].inode
    closed = msgspec.structs.replace(inode, under_construction=False)
    put = Put(key_of(inode), inode.id, 1, encode(closed), True)
    damage(fs, Batch(1, 0, puts=[put]), "/d/open is not under construction, but its lease")


def test_a_block_that_is_missing(fs: ScratchClient) -> None:
    deletes = [block_key(fs.info("/d/f").id, 0)]
    damage(fs, Batch(1, 0, deletes=deletes), r"/d/f has 2 blocks, but their rows are \[1\]")


def test_a_length_that_the_blocks_do_not_have(fs: ScratchClient) -> None:
    inode = fs.dump()["/d/f"].inode
    longer = msgspec.structs.replace(inode, length_bytes=31)
    put = Put(key_of(inode), inode.id, 1, encode(longer), True)
    damage(fs, Batch(1, 0, puts=[put]), "/d/f is 31 bytes long, its blocks 30")


def test_an_id_that_leads_elsewhere(fs: ScratchClient) -> None:
    inode = fs.dump()["/d/f"].inode
    put = Put(key_of(inode), 1, 1, encode(inode), True)
    damage(fs, Batch(1, 0, puts=[put]), "/d/f is found by its id under")


def test_two_inodes_with_one_id(fs: ScratchClient) -> None:
    inode = fs.dump()["/d/e"].inode
    twin = msgspec.structs.replace(inode, name=b"twin")
    put = Put(key_of(twin), inode.id, 1, encode(twin), False)
    damage(fs, Batch(1, 0, puts=[put]), "inode ids are used twice")


def test_rows_that_nobody_reaches(fs: ScratchClient) -> None:
    ids = {name: fs.info(f"/d/{name}").id for name in ("f", "open", "e")}
    store = fs.namenode.namenode.store
    node = fs.dump()["/d/open"]
    fs.delete("/d", recursive=True)
    with pytest.raises(AssertionError, match="orphans are left"):
        fs.namenode.wait(check_no_leftovers(store, ids.values()))
    fs.reclaim()
    fs.namenode.wait(check_no_leftovers(store, ids.values()))
    assert node.lease is not None
    for put, message in [
        (Put(lease_key(ids["open"]), 1, 1, encode(node.lease), False), "leases of nothing"),
        (Put(key_of(node.inode), ids["open"], 1, encode(node.inode), False), "unreachable inodes"),
        (Put(block_key(ids["f"], 0), 1, 1, encode(node.blocks[0][1]), False), "children or blocks"),
    ]:
        fs.namenode.wait(store.commit(Batch(1, 0, puts=[put])))
        with pytest.raises(AssertionError, match=message):
            fs.namenode.wait(check_no_leftovers(store, ids.values()))
        fs.namenode.wait(store.commit(Batch(1, 0, deletes=[put.key])))
    touch = Touch(ids["e"], [1] * len(Count), -1, 0)
    fs.namenode.wait(store.commit(Batch(1, 0, touches=[touch])))
    with pytest.raises(AssertionError, match="totals of nothing"):
        fs.namenode.wait(check_no_leftovers(store, ids.values()))


class TestReplicas:
    """A DataNode with one storage, and the first block of /d/f on it."""

    @pytest.fixture
    def block(self, fs: ScratchClient) -> Block:
        _, block = fs.dump()["/d/f"].blocks[0]
        storage = Storage(StorageNumber(1), "disk", StorageType.DISK)
        datanode = DataNode("a", "10.0.0.1", "a", 1, 2, 3, 4, "/rack", "3", (storage,))
        self.put(fs, datanode_key("a"), datanode)
        self.put(fs, check_key(block.id), Check(block.id, 0), block.id)
        self.put(fs, replica_key(1, block.id), self.replica(block), block.id)
        fs.namenode.wait(check_invariants(fs.namenode.namenode.store))
        return block

    def replica(self, block: Block) -> Replica:
        return Replica(block.id, block.generation_stamp, block.length_bytes)

    def put(self, fs: ScratchClient, key: Key, record: object, id: int | None = None) -> None:
        batch = Batch(1, 0, puts=[Put(key, id, 1, encode(record), False)])
        fs.namenode.wait(fs.namenode.namenode.store.commit(batch))

    def test_too_few_and_nobody_looks(self, fs: ScratchClient, block: Block) -> None:
        batch = Batch(1, 0, deletes=[check_key(block.id)])
        damage(fs, batch, "has 1 of 3 replicas, and nobody is to look at it")

    def test_of_no_block(self, fs: ScratchClient, block: Block) -> None:
        stray = Replica(BlockId(5), GenerationStamp(1), 1)
        put = Put(replica_key(1, 5), 5, 1, encode(stray), False)
        damage(fs, Batch(1, 0, puts=[put]), "of no block")

    def test_on_a_storage_that_is_nobodys(self, fs: ScratchClient, block: Block) -> None:
        put = Put(replica_key(2, block.id), block.id, 1, encode(self.replica(block)), False)
        damage(fs, Batch(1, 0, puts=[put]), "which is nobody's")

    def test_that_is_to_be_deleted(self, fs: ScratchClient, block: Block) -> None:
        order = Invalidation(block.id, block.generation_stamp)
        put = Put(invalidation_key(1, block.id), block.id, 1, encode(order), False)
        damage(fs, Batch(1, 0, puts=[put]), "counts, but is to be deleted")

    def test_in_two_queues(self, fs: ScratchClient, block: Block) -> None:
        keys = [check_key(block.id, queue) for queue in (CheckQueue.HIGHEST, CheckQueue.CORRUPT)]
        data = encode(Check(block.id, 0))
        puts = [Put(key, block.id, 1, data, False) for key in keys]
        damage(fs, Batch(1, 0, puts=puts), "waiting block")

    def test_a_storage_of_two(self, fs: ScratchClient, block: Block) -> None:
        storage = Storage(StorageNumber(1), "other", StorageType.DISK)
        datanode = DataNode("b", "10.0.0.2", "b", 1, 2, 3, 4, "/rack", "3", (storage,))
        put = Put(datanode_key("b"), None, 1, encode(datanode), False)
        damage(fs, Batch(1, 0, puts=[put]), "is used twice")

    def test_a_closed_file_with_a_block_that_nobody_has(
        self, fs: ScratchClient, block: Block
    ) -> None:
        committed = msgspec.structs.replace(block, state=BlockState.COMMITTED)
        key = block_key(fs.info("/d/f").id, 0)
        put = Put(key, block.id, 1, encode(committed), True)
        damage(fs, Batch(1, 0, puts=[put]), "/d/f: blocks are")
