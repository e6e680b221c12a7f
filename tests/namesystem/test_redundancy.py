"""Blocks and their replicas, from the side of files: what is put down to be looked at."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cairnfs.blocks import invalidations
from cairnfs.blocks.checks import CHECKS_PAGE, put_checks
from cairnfs.blocks.invalidations import void_orders
from cairnfs.blocks.records import (
    Block,
    BlockId,
    BlockState,
    CheckQueue,
    DataNode,
    Replica,
    ReplicaStatus,
    StorageNumber,
    check_key,
)
from cairnfs.blocks.registration import ReportedStorage, add_storages, register_datanode
from cairnfs.blocks.reports import (
    ReplicaChange,
    ReportedReplica,
    Verdict,
    mark_corrupt,
    receive_changes,
    receive_report,
)
from cairnfs.config import Control
from cairnfs.namesystem import file_blocks, files
from cairnfs.namesystem.inodes import InodeId
from cairnfs.namesystem.paths import FsPath
from cairnfs.namesystem.redundancy import (
    BlockFacts,
    drop_replicas,
    forget_block,
    forget_replicas,
    inspect_blocks,
    settle_checks,
)
from cairnfs.store.base import Reading, Row, Scan
from cairnfs.store.schema import Table
from cairnfs.testing.invariants import check_invariants
from cairnfs.testing.scratch import ScratchClient, scratch_namespace

LENGTH = 10
IDS_END = 1 << 40


class Cluster:
    """Three storages, and a client that writes to them."""

    def __init__(self, fs: ScratchClient) -> None:
        self.fs = fs
        node = DataNode("a", "10.0.0.1", "host", 9866, 9864, 9867, 0, "/rack", "3.5.0")
        self.storages = []
        for name in "abc":
            self.run(register_datanode, msgspec.structs.replace(node, uuid=name))
            [storage] = self.run(add_storages, name, [ReportedStorage(f"disk of {name}")]).storages
            self.storages.append(storage.number)

    def run(self, operation: Any, *arguments: Any) -> Any:
        return self.fs.namenode.wait(self.fs.namenode.namenode.call(operation, *arguments))

    def call(self, operation: Any, path: str, *arguments: Any) -> Any:
        fs = self.fs
        return self.run(operation, fs.caller, FsPath.parse(path), fs.client_name, *arguments)

    def begin(self, path: str, replication: int = 3, pipeline: int = 3) -> Block:
        self.fs.create(path, replication=replication)
        return self.extend(path, None, pipeline)

    def extend(self, path: str, previous: Block | None, pipeline: int = 3) -> Block:
        targets = tuple(self.storages[:pipeline])
        call = (file_blocks.add_block, path, previous, InodeId(0), lambda file, policy_id: targets)
        block: Block = self.call(*call).block
        return block

    def report(self, block: Block, *storages: int, length: int = LENGTH) -> None:
        replica = ReportedReplica(block.id, block.generation_stamp, length)
        changes = [ReplicaChange(StorageNumber(storage), replica) for storage in storages]
        self.run(receive_changes, changes, IDS_END)

    def complete(self, path: str, block: Block, *, wait_for_all: bool = False) -> bool:
        last = block.with_length(LENGTH)
        return bool(self.call(files.complete, path, last, InodeId(0), wait_for_all))

    def write(self, path: str, replication: int = 3) -> Block:
        block = self.begin(path, replication)
        self.report(block, *self.storages[:replication])
        assert self.complete(path, block)
        return block.with_length(LENGTH)

    def inspect(self, block: Block) -> BlockFacts:
        [facts] = self.run(inspect_blocks, [block.id])
        assert isinstance(facts, BlockFacts)
        return facts

    def rows(self, table: Table, a: int) -> list[Row]:
        scan = Scan(table, a, b"", 10_000)
        store = self.fs.namenode.namenode.store
        return list(self.fs.namenode.wait(store.read(Reading(scans=[scan]))).scans[scan])

    @property
    def checks(self) -> dict[CheckQueue, int]:
        counts = {queue: len(self.rows(Table.CHECKS, queue)) for queue in CheckQueue}
        return {queue: count for queue, count in counts.items() if count}

    def settle_all(self) -> None:
        for queue in CheckQueue:
            for row in self.rows(Table.CHECKS, queue):
                block_id = int.from_bytes(row.key[2], "big")
                [facts] = self.run(inspect_blocks, [block_id])
                if facts is not None:
                    self.run(settle_checks, [(block_id, facts.news, None)])


@pytest.fixture(params=list(Control), ids=lambda control: control.value)
def cluster(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Cluster]:
    with scratch_namespace(tmp_path, request.param) as client:
        yield Cluster(client)


def test_a_block_that_all_have_reported_needs_no_look(cluster: Cluster) -> None:
    cluster.write("/f")
    assert cluster.checks == {}


@pytest.mark.parametrize("pipeline", [1, 2])
def test_a_pipeline_that_was_too_short_is_put_down(cluster: Cluster, pipeline: int) -> None:
    block = cluster.begin("/f", pipeline=pipeline)
    cluster.report(block, *cluster.storages[:pipeline])
    assert cluster.complete("/f", block)
    assert cluster.checks == {CheckQueue.NEW: 1}


def test_a_block_of_the_wrong_length_or_generation_counts_for_nothing(cluster: Cluster) -> None:
    block = cluster.begin("/f", replication=1)
    cluster.report(block, cluster.storages[0], length=LENGTH - 1)
    assert not cluster.complete("/f", block)
    older = msgspec.structs.replace(block, generation_stamp=block.generation_stamp - 1)
    cluster.report(older, cluster.storages[1])
    assert not cluster.complete("/f", block)
    assert cluster.inspect(block).block.state is BlockState.COMMITTED
    cluster.fs.namenode.wait(check_invariants(cluster.fs.namenode.namenode.store))
    cluster.report(block, cluster.storages[2])
    assert cluster.inspect(block).block.state is BlockState.COMPLETE
    assert cluster.complete("/f", block)
    located = cluster.fs.get_block_locations("/f").blocks[0]
    assert located.storages == (cluster.storages[2],)
    assert cluster.checks == {CheckQueue.NEW: 1}


def test_who_can_wait_spares_the_look(cluster: Cluster) -> None:
    block = cluster.begin("/f")
    cluster.report(block, *cluster.storages[:2])
    assert not cluster.complete("/f", block, wait_for_all=True)
    assert cluster.checks == {}
    cluster.report(block, cluster.storages[2])
    assert cluster.complete("/f", block, wait_for_all=True)
    assert cluster.checks == {}


def test_the_block_before_may_be_reported_late(cluster: Cluster) -> None:
    first = cluster.begin("/f")
    second = cluster.extend("/f", first.with_length(LENGTH))
    cluster.fs.namenode.wait(check_invariants(cluster.fs.namenode.namenode.store))
    cluster.report(second, *cluster.storages)
    assert not cluster.complete("/f", second)
    cluster.report(first, *cluster.storages)
    assert cluster.complete("/f", second)
    assert cluster.checks == {CheckQueue.NEW: 1}
    cluster.settle_all()
    assert cluster.checks == {}


def test_a_block_that_is_settled_moves_or_goes(cluster: Cluster) -> None:
    block = cluster.write("/f")
    cluster.fs.set_replication("/f", 2)
    for queue in (CheckQueue.LOW_REDUNDANCY, CheckQueue.HIGHEST, CheckQueue.HIGHEST):
        settled = [(block.id, cluster.inspect(block).news, queue)]
        assert cluster.run(settle_checks, settled) == [True]
        assert cluster.checks == {queue: 1}
    cluster.fs.set_replication("/f", 3)
    assert cluster.checks == {CheckQueue.NEW: 1, CheckQueue.HIGHEST: 1}
    news = cluster.inspect(block).news
    cluster.fs.set_replication("/f", 2)
    assert cluster.run(settle_checks, [(block.id, news, None)]) == [False]
    assert cluster.run(settle_checks, [(block.id, None, None)]) == [False]
    assert cluster.checks == {CheckQueue.NEW: 1, CheckQueue.HIGHEST: 1}
    news = cluster.inspect(block).news
    assert cluster.run(settle_checks, [(block.id, news, None)]) == [True]
    assert cluster.checks == {}


def test_a_deletion_needs_what_it_was_planned_with(cluster: Cluster) -> None:
    block = cluster.write("/f")
    known = cluster.inspect(block).block
    a, b, c = cluster.storages
    for stale in (
        msgspec.structs.replace(known, generation_stamp=known.generation_stamp - 1),
        msgspec.structs.replace(known, id=BlockId(5)),
    ):
        assert not cluster.run(drop_replicas, stale, [a], [b, c])
    assert not cluster.run(drop_replicas, known, [a], [])
    assert not cluster.run(drop_replicas, known, [a], [b, StorageNumber(99)])
    assert cluster.run(drop_replicas, known, [a, StorageNumber(99)], [b, c])
    facts = cluster.inspect(block)
    assert [storage for storage, _ in facts.replicas] == [b, c]
    assert [storage for storage, _ in facts.deleting] == [a]
    assert cluster.checks == {CheckQueue.NEW: 1}


def test_what_was_given_up_is_forgotten_without_a_trace(cluster: Cluster) -> None:
    block = cluster.write("/f")
    cluster.fs.set_replication("/f", 1)
    silent, broken, left = cluster.storages
    cluster.run(forget_replicas, block.id, [silent, StorageNumber(99), broken])
    facts = cluster.inspect(block)
    assert facts.replicas == [(left, Replica(block.id, block.generation_stamp, LENGTH))]
    assert not facts.deleting


def test_what_was_bad_of_what_was_given_up_stays_known(cluster: Cluster) -> None:
    block = cluster.write("/f")
    bad, good, _ = cluster.storages
    cluster.run(mark_corrupt, [bad], block.id, block.generation_stamp)
    cluster.run(forget_replicas, block.id, [bad, good])
    facts = cluster.inspect(block)
    assert [replica.status for _, replica in facts.replicas] == [
        ReplicaStatus.CORRUPT,
        ReplicaStatus.GOOD,
    ]
    assert not facts.deleting


def test_a_full_report_of_what_is_bad_has_it_looked_at(cluster: Cluster) -> None:
    block = cluster.write("/f")
    bad, good, _ = cluster.storages
    cluster.run(mark_corrupt, [bad], block.id, block.generation_stamp)
    cluster.settle_all()
    reported = [ReportedReplica(block.id, block.generation_stamp, LENGTH)]
    assert cluster.run(receive_report, good, reported, 1, IDS_END) == [Verdict.KNOWN]
    assert cluster.checks == {}
    assert cluster.run(receive_report, bad, reported, 1, IDS_END) == [Verdict.KNOWN]
    assert cluster.checks == {CheckQueue.NEW: 1}


def test_orders_that_are_void_leave_what_is_bad(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(invalidations, "ORDERS_PAGE", 2)
    away, kept, _ = cluster.storages
    bad, good, gone = (cluster.write(f"/{name}") for name in ("bad", "good", "gone"))
    for block in (bad, good):
        known = cluster.inspect(block).block
        assert cluster.run(drop_replicas, known, [away], [kept])
    for block in (bad, gone):
        cluster.run(mark_corrupt, [away], block.id, block.generation_stamp)
    cluster.fs.delete("/gone")
    cluster.fs.reclaim()
    cluster.settle_all()
    assert len(cluster.rows(Table.INVALIDATIONS, away)) == 3
    after = cluster.run(void_orders, away, b"")
    assert after
    assert cluster.run(void_orders, away, after) == b""
    assert not cluster.rows(Table.INVALIDATIONS, away)
    replicas = {block.id: dict(cluster.inspect(block).replicas) for block in (bad, good)}
    assert replicas[bad.id][away].status is ReplicaStatus.CORRUPT
    assert away not in replicas[good.id]
    assert len(cluster.rows(Table.REPLICAS, away)) == 1
    assert cluster.checks == {CheckQueue.NEW: 2}


def test_deleting_takes_everything_along(cluster: Cluster) -> None:
    cluster.write("/closed")
    cluster.fs.set_replication("/closed", 2)
    written = cluster.begin("/open")
    cluster.report(written, cluster.storages[0])
    for path in ("/closed", "/open"):
        cluster.fs.delete(path)
    cluster.fs.reclaim()
    assert [len(cluster.rows(Table.REPLICAS, storage)) for storage in cluster.storages] == [0] * 3
    ordered = [len(cluster.rows(Table.INVALIDATIONS, storage)) for storage in cluster.storages]
    assert ordered == [2, 2, 2]  # of the open one there are parts, though only one is reported
    # Of the one that was open a report may be on its way: that is looked at once more.
    assert cluster.checks == {CheckQueue.NEW: 1}
    assert cluster.run(inspect_blocks, [written.id]) == [None]
    cluster.run(forget_block, written.id)
    assert cluster.checks == {}


def test_a_block_that_is_there_is_not_forgotten(cluster: Cluster) -> None:
    block = cluster.write("/f")
    cluster.fs.set_replication("/f", 2)
    cluster.run(forget_block, block.id)
    assert len(cluster.inspect(block).replicas) == 3
    assert cluster.checks == {CheckQueue.NEW: 1}


def test_all_blocks_of_a_storage_page_by_page(cluster: Cluster) -> None:
    blocks = [cluster.write(f"/f{n}") for n in range(3)]
    assert cluster.run(put_checks, cluster.storages[0], b"") == b""
    assert cluster.checks == {CheckQueue.NEW: 3}
    assert cluster.run(put_checks, cluster.storages[0], check_key(blocks[1].id)[2]) == b""
    assert CHECKS_PAGE > 3
    assert cluster.run(put_checks, StorageNumber(99), b"") == b""


def test_a_concatenated_file_has_one_replication(cluster: Cluster) -> None:
    cluster.write("/three")
    cluster.write("/also three")
    cluster.fs.concat("/three", ["/also three"])
    assert cluster.checks == {}
    cluster.write("/two", replication=2)
    cluster.fs.concat("/three", ["/two"])
    assert cluster.checks == {CheckQueue.NEW: 1}


def test_the_most_replicas_that_a_snapshot_asks_for(cluster: Cluster) -> None:
    """And no more once it is gone, whether the file is still there or not."""
    fs = cluster.fs
    fs.mkdirs("/d")
    fs.allow_snapshot("/d")
    blocks = [cluster.write("/d/kept"), cluster.write("/d/deleted")]
    for count, name in ((3, "three"), (2, "two"), (1, "one")):
        for path in ("/d/kept", "/d/deleted"):
            fs.set_replication(path, count)
        fs.create_snapshot("/d", name)
    fs.delete("/d/deleted")
    fs.reclaim()
    for expected, name in ((3, "three"), (2, "two"), (1, "one")):
        cluster.settle_all()
        assert [cluster.inspect(block).replication for block in blocks] == [expected] * 2
        fs.delete_snapshot("/d", name)
        fs.reclaim()
        if expected > 1:
            assert cluster.checks == {CheckQueue.NEW: 2}
    assert cluster.inspect(blocks[0]).replication == 1
    assert cluster.run(inspect_blocks, [blocks[1].id]) == [None]
