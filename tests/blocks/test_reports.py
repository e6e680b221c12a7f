"""What DataNodes say, page by page and change by change, as operations on rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cairnfs.blocks.invalidations import (
    DELETIONS_KEPT_MS,
    forget_deletions,
    invalidate,
    take_invalidations,
)
from cairnfs.blocks.records import (
    Block,
    BlockId,
    BlockState,
    GenerationStamp,
    Invalidation,
    Replica,
    ReplicaStatus,
    StorageNumber,
    block_key,
    check_key,
    deletion_key,
    invalidation_key,
    replica_key,
)
from cairnfs.blocks.reports import (
    REPLICAS_PAGE,
    ReplicaChange,
    ReportedReplica,
    ReportedState,
    Verdict,
    drop_unreported,
    mark_corrupt,
    receive_changes,
    receive_report,
)
from cairnfs.config import Control
from cairnfs.store.schema import Key, Table
from cairnfs.testing.scratch import ScratchClient, scratch_namespace
from cairnfs.transaction.calls import operation
from cairnfs.transaction.transaction import Transaction

DISK, OTHER = StorageNumber(1), StorageNumber(2)
ID, STAMP, LENGTH = BlockId(100), GenerationStamp(7), 10
IDS_END = 1000
UNDER_CONSTRUCTION, COMMITTED, COMPLETE, TRUNCATING = BlockState
GOOD, CORRUPT, UNFINISHED = ReplicaStatus


@operation()
def put_rows(tx: Transaction, rows: Sequence[tuple[Key, Any]]) -> None:
    for key, record in rows:
        tx.get(key)
        tx.put(key, record)


@operation(mutates=False)
def get_row(tx: Transaction, key: Key) -> Any:
    return tx.get(key)


@operation()
def order_deletion(tx: Transaction, storage: StorageNumber, replica: Replica) -> None:
    invalidate(tx, storage, replica)


class Rows:
    """Rows of an otherwise empty namespace."""

    def __init__(self, fs: ScratchClient) -> None:
        self.fs = fs

    def run(self, operation: Any, *arguments: Any) -> Any:
        return self.fs.namenode.wait(self.fs.namenode.namenode.call(operation, *arguments))

    def get(self, key: Key) -> Any:
        return self.run(get_row, key)

    def put(self, key: Key, record: Any) -> None:
        self.run(put_rows, [(key, record)])

    @property
    def txid(self) -> int:
        return self.fs.namenode.wait(self.fs.namenode.namenode.store.last_txid())

    def block(self, state: BlockState, stamp: int = STAMP, length: int = LENGTH) -> None:
        block = Block(ID, GenerationStamp(stamp), length, state, (DISK,))
        self.put(block_key(55, 0), block)

    def receive(self, stamp: int = STAMP, length: int = LENGTH, **more: Any) -> Verdict:
        replica = ReportedReplica(ID, GenerationStamp(stamp), length)
        [verdict] = self.run(receive_changes, [ReplicaChange(DISK, replica, **more)], IDS_END)
        return Verdict(verdict)

    def report(
        self, state: ReportedState, as_of: int, stamp: int = STAMP, length: int = LENGTH
    ) -> Verdict:
        replica = ReportedReplica(ID, GenerationStamp(stamp), length, state)
        [verdict] = self.run(receive_report, DISK, [replica], as_of, IDS_END)
        return Verdict(verdict)

    @property
    def replica(self) -> Replica | None:
        found: Replica | None = self.get(replica_key(DISK, ID))
        return found

    @property
    def order(self) -> Invalidation | None:
        found: Invalidation | None = self.get(invalidation_key(DISK, ID))
        return found

    @property
    def is_to_be_checked(self) -> bool:
        return self.get(check_key(ID)) is not None


@pytest.fixture(params=list(Control), ids=lambda control: control.value)
def rows(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Rows]:
    with scratch_namespace(tmp_path, request.param) as client:
        yield Rows(client)
        for table in (Table.BLOCKS, Table.REPLICAS, Table.CHECKS, Table.INVALIDATIONS):
            for a in (0, 1, 2, 55):
                client.namenode.wait(client.namenode.namenode.call(clear, table, a))


@operation()
def clear(tx: Transaction, table: Table, a: int) -> None:
    for key, _ in tx.scan(table, a, b"", 10_000):
        tx.delete(key)


@pytest.mark.parametrize(
    ("state", "stamp", "length", "is_good", "is_checked"),
    [
        (UNDER_CONSTRUCTION, STAMP, 3, True, False),
        (UNDER_CONSTRUCTION, STAMP - 1, 3, False, False),
        (UNDER_CONSTRUCTION, STAMP + 1, 3, False, False),
        (COMMITTED, STAMP, LENGTH, True, False),
        (COMMITTED, STAMP, LENGTH - 1, False, False),
        (COMMITTED, STAMP - 1, LENGTH, False, False),
        (COMPLETE, STAMP, LENGTH, True, True),
        (COMPLETE, STAMP, LENGTH + 1, False, True),
        (COMPLETE, STAMP - 1, LENGTH, False, True),
        (COMPLETE, STAMP + 1, LENGTH, False, True),
    ],
)
def test_a_replica_is_put_down_as_it_is(
    rows: Rows, state: BlockState, stamp: int, length: int, is_good: bool, is_checked: bool
) -> None:
    rows.block(state)
    assert rows.receive(stamp, length) is Verdict.STORED
    assert rows.replica == Replica(ID, GenerationStamp(stamp), length)
    assert rows.is_to_be_checked == is_checked
    assert rows.order is None
    block: Block = rows.get(block_key(55, 0))
    assert rows.replica.is_good_for(block) == is_good
    assert block.state is (COMPLETE if state is COMMITTED and is_good else state)
    assert rows.receive(stamp, length) is Verdict.KNOWN


def test_a_replica_of_no_block(rows: Rows) -> None:
    assert rows.receive() is Verdict.UNWANTED
    assert rows.order == Invalidation(ID, STAMP, LENGTH)
    before = rows.txid
    assert rows.receive() is Verdict.DELETING
    assert rows.txid == before
    foreign = ReportedReplica(BlockId(IDS_END), STAMP, LENGTH)
    [verdict] = rows.run(receive_changes, [ReplicaChange(DISK, foreign)], IDS_END)
    assert verdict is Verdict.FOREIGN
    assert rows.get(invalidation_key(DISK, IDS_END)) is None


@pytest.mark.parametrize("state", [ReportedState.RBW, ReportedState.RUR, ReportedState.TEMPORARY])
def test_what_is_being_written_is_no_replica(rows: Rows, state: ReportedState) -> None:
    for of_block in (UNDER_CONSTRUCTION, COMMITTED, TRUNCATING, COMPLETE):
        rows.block(of_block)
        assert rows.report(state, rows.txid, length=3) is Verdict.BEING_WRITTEN
        assert rows.replica is None
    # But of another generation than that of a complete block it never will be one.
    assert rows.report(state, rows.txid, stamp=STAMP - 1) is Verdict.STORED
    assert rows.replica == Replica(ID, GenerationStamp(STAMP - 1), LENGTH, UNFINISHED)


def test_what_its_writer_left_behind(rows: Rows) -> None:
    rows.block(COMMITTED)
    assert rows.report(ReportedState.RWR, rows.txid) is Verdict.BEING_WRITTEN
    rows.block(COMPLETE)
    assert rows.report(ReportedState.RWR, rows.txid) is Verdict.STORED
    assert rows.replica == Replica(ID, STAMP, LENGTH, UNFINISHED)
    assert rows.is_to_be_checked
    assert rows.report(ReportedState.RWR, rows.txid) is Verdict.KNOWN
    # It was finished after all.
    assert rows.receive() is Verdict.STORED
    assert rows.replica == Replica(ID, STAMP, LENGTH)


@pytest.mark.parametrize("state", list(ReportedState))
def test_an_older_report_does_not_change_a_newer_row(rows: Rows, state: ReportedState) -> None:
    rows.block(COMPLETE)
    as_of = rows.txid
    rows.receive()
    assert rows.report(state, as_of, stamp=STAMP - 1, length=3) is Verdict.KNOWN
    assert rows.replica == Replica(ID, STAMP, LENGTH)


def test_an_older_report_does_not_drop_a_newer_row(rows: Rows) -> None:
    rows.block(COMPLETE)
    as_of = rows.txid
    rows.receive()
    rows.run(order_deletion, DISK, Replica(BlockId(101), STAMP, 1))
    for table in (Table.REPLICAS, Table.INVALIDATIONS):
        assert rows.run(drop_unreported, DISK, table, b"", set(), as_of) == b""
    assert rows.replica is not None
    assert rows.get(invalidation_key(DISK, 101)) is not None
    as_of = rows.txid
    for table in (Table.REPLICAS, Table.INVALIDATIONS):
        rows.run(drop_unreported, DISK, table, b"", set(), as_of)
    assert rows.replica is None
    assert rows.is_to_be_checked
    assert rows.get(invalidation_key(DISK, 101)) is None


def test_what_has_to_be_deleted_never_counts_again(rows: Rows) -> None:
    rows.block(COMPLETE)
    rows.receive()
    assert rows.replica is not None
    rows.run(order_deletion, DISK, rows.replica)
    assert rows.replica is None
    assert rows.receive() is Verdict.DELETING
    assert rows.report(ReportedState.FINALIZED, rows.txid) is Verdict.DELETING
    assert rows.receive(STAMP - 1) is Verdict.DELETING
    assert rows.replica is None
    # One of a younger generation is another one.
    assert rows.receive(STAMP + 1) is Verdict.STORED
    assert rows.order is None


def test_an_older_report_does_not_bring_back_what_was_deleted(rows: Rows) -> None:
    rows.block(COMPLETE)
    rows.receive()
    as_of = rows.txid
    assert rows.receive(is_deleted=True) is Verdict.DELETED
    assert rows.replica is None
    assert rows.report(ReportedState.FINALIZED, as_of) is Verdict.DELETING
    assert rows.replica is None
    assert rows.report(ReportedState.FINALIZED, rows.txid) is Verdict.STORED
    assert rows.get(deletion_key(DISK, ID)) is None


def test_deletions_are_forgotten(rows: Rows) -> None:
    rows.block(COMPLETE)
    rows.receive(is_deleted=True)
    rows.run(forget_deletions, DISK, b"")
    assert rows.get(deletion_key(DISK, ID)) is not None
    rows.fs.clock.advance(DELETIONS_KEPT_MS + 1)
    rows.run(forget_deletions, DISK, b"")
    assert rows.get(deletion_key(DISK, ID)) is None


def test_a_replica_that_moves_within_one_report(rows: Rows) -> None:
    rows.block(COMPLETE)
    rows.receive()
    replica = ReportedReplica(ID, STAMP, LENGTH)
    for changes in (
        [ReplicaChange(OTHER, replica), ReplicaChange(DISK, replica, True)],
        [ReplicaChange(OTHER, replica, True), ReplicaChange(DISK, replica)],
    ):
        rows.run(receive_changes, changes, IDS_END)
        on = [rows.get(replica_key(each, ID)) is not None for each in (DISK, OTHER)]
        assert on == ([False, True] if changes[1].is_deleted else [True, False])


def test_corrupt_stays_corrupt_until_it_is_another(rows: Rows) -> None:
    rows.block(COMPLETE)
    rows.receive()
    rows.run(mark_corrupt, [DISK], ID, STAMP - 1)
    assert rows.replica == Replica(ID, STAMP, LENGTH)
    rows.run(mark_corrupt, [DISK], ID, STAMP)
    rows.run(mark_corrupt, [DISK], ID, STAMP)
    for _ in range(2):
        assert rows.replica == Replica(ID, STAMP, LENGTH, CORRUPT)
        rows.receive()
        rows.receive(length=LENGTH + 1)
        rows.receive()
    rows.receive(STAMP + 1)
    assert rows.replica == Replica(ID, GenerationStamp(STAMP + 1), LENGTH)
    rows.run(mark_corrupt, [OTHER], ID, STAMP)
    assert rows.get(replica_key(OTHER, ID)) is None


def test_what_is_to_be_deleted_is_marked_only_if_nothing_else_is_there(rows: Rows) -> None:
    """A DataNode has one replica of a block; whoever has read it does not know on which volume."""
    rows.block(COMPLETE)
    rows.receive()
    rows.put(invalidation_key(OTHER, ID), Invalidation(ID, STAMP, LENGTH))
    rows.run(mark_corrupt, [OTHER, DISK], ID, STAMP)
    assert rows.replica == Replica(ID, STAMP, LENGTH, CORRUPT)
    assert rows.get(invalidation_key(OTHER, ID)) == Invalidation(ID, STAMP, LENGTH)
    rows.run(mark_corrupt, [OTHER, DISK], ID, STAMP)
    assert rows.get(invalidation_key(OTHER, ID)) == Invalidation(ID, STAMP, LENGTH)
    rows.run(clear, Table.REPLICAS, DISK)
    rows.run(mark_corrupt, [OTHER, DISK], ID, STAMP)
    assert rows.get(invalidation_key(OTHER, ID)) == Invalidation(ID, STAMP, LENGTH, CORRUPT)


def test_reports_of_more_than_a_page(rows: Rows) -> None:
    count = REPLICAS_PAGE + 10
    blocks = [
        (block_key(55, n), Block(BlockId(n + 1), STAMP, LENGTH, COMPLETE)) for n in range(count)
    ]
    rows.run(put_rows, blocks)
    reported = [ReportedReplica(block.id, STAMP, LENGTH) for _, block in blocks]
    rows.run(receive_report, DISK, reported, rows.txid, IDS_END)
    present = {replica.block_id for replica in reported[::2]}
    as_of = rows.txid
    after = rows.run(drop_unreported, DISK, Table.REPLICAS, b"", present, as_of)
    assert after
    assert rows.run(drop_unreported, DISK, Table.REPLICAS, after, present, as_of) == b""
    left = [n for n in range(1, count + 1) if rows.get(replica_key(DISK, n)) is not None]
    assert left == sorted(present)


class TestTellingToDelete:
    def take(self, rows: Rows, *readable: int, told: Sequence[tuple[int, int]] = ()) -> list[Any]:
        taken: list[Any] = rows.run(
            take_invalidations, [DISK], frozenset(told), lambda number: number in readable, 10
        )
        return taken

    @pytest.fixture
    def ordered(self, rows: Rows) -> Rows:
        """A block with a replica that is to be deleted, and one on another storage."""
        rows.block(COMPLETE)
        rows.run(order_deletion, DISK, Replica(ID, STAMP, LENGTH))
        rows.put(replica_key(OTHER, ID), Replica(ID, STAMP, LENGTH))
        return rows

    def test_as_there_is_another(self, ordered: Rows) -> None:
        assert self.take(ordered, OTHER) == [(DISK, Invalidation(ID, STAMP, LENGTH))]
        assert self.take(ordered, OTHER, told=[(DISK, ID)]) == []
        assert ordered.order is not None

    def test_not_if_nobody_can_read_the_other(self, ordered: Rows) -> None:
        assert self.take(ordered) == []
        assert ordered.order is None
        assert ordered.replica == Replica(ID, STAMP, LENGTH)
        assert ordered.is_to_be_checked

    @pytest.mark.parametrize(
        "change",
        [{"status": CORRUPT}, {"generation_stamp": STAMP - 1}, {"length_bytes": LENGTH - 1}],
    )
    def test_not_if_the_other_is_bad(self, ordered: Rows, change: dict[str, Any]) -> None:
        bad = msgspec.structs.replace(Replica(ID, STAMP, LENGTH), **change)
        ordered.put(replica_key(OTHER, ID), bad)
        assert self.take(ordered, OTHER) == []
        assert ordered.replica is not None

    def test_not_if_the_other_is_to_be_deleted_too(self, ordered: Rows) -> None:
        ordered.put(invalidation_key(OTHER, ID), Invalidation(ID, STAMP, LENGTH))
        assert self.take(ordered, OTHER) == []
        assert ordered.replica is not None
        ordered.run(clear, Table.INVALIDATIONS, OTHER)

    def test_a_corrupt_one_is_corrupt_again(self, rows: Rows) -> None:
        rows.block(COMPLETE)
        rows.run(order_deletion, DISK, Replica(ID, STAMP, LENGTH, CORRUPT))
        assert self.take(rows) == []
        assert rows.replica == Replica(ID, STAMP, LENGTH, CORRUPT)

    def test_what_is_of_no_block_may_always_go(self, rows: Rows) -> None:
        rows.run(order_deletion, DISK, Replica(ID, STAMP, LENGTH))
        assert self.take(rows) == [(DISK, Invalidation(ID, STAMP, LENGTH))]
