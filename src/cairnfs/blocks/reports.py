"""What DataNodes say they have, reconciled with what there should be.

A replica that is reported is put down as it is; whether it is good follows from its block
(`Replica.is_good_for`), and what to do about one that is not is for the redundancy duty to
decide, which knows the others.  One that belongs to no block is to be deleted.

DataNodes report to every NameNode, each at its own pace, so a report may be processed after
a younger one.  A full report is therefore given a TxID, `as_of`, at which its DataNode had
not begun to make it: rows that are younger know better.
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterable, Sequence
from typing import Any

import msgspec

from cairnfs.blocks.checks import put_check
from cairnfs.blocks.holding import newest_row, put_block
from cairnfs.blocks.invalidations import invalidate, note_deletion
from cairnfs.blocks.records import (
    Block,
    BlockId,
    BlockState,
    GenerationStamp,
    Invalidation,
    Replica,
    ReplicaStatus,
    StorageNumber,
    check_key,
    deletion_key,
    invalidation_key,
    replica_key,
)
from cairnfs.store.schema import NUMBER, Key, Table
from cairnfs.transaction.calls import operation
from cairnfs.transaction.transaction import Transaction

REPLICAS_PAGE = 64  # rows looked at by one transaction: others are served between them


class ReportedState(enum.IntEnum):
    """How far a replica is; the numbers are Hadoop's ReplicaState."""

    FINALIZED = 0
    RBW = 1  # being written
    RWR = 2  # it was being written when its DataNode ended
    RUR = 3  # being recovered
    TEMPORARY = 4  # being copied


class ReportedReplica(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A replica as its DataNode describes it."""

    block_id: BlockId
    generation_stamp: GenerationStamp
    length_bytes: int
    state: ReportedState = ReportedState.FINALIZED


class ReplicaChange(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Part of an incremental report: a replica was finished, or is gone."""

    storage: StorageNumber
    replica: ReportedReplica
    is_deleted: bool = False
    delete_hint: str = ""  # the DataNode it was copied from, which may delete its own
    moved_from: tuple[StorageNumber, ...] = ()  # it was on one of these, and is no more


class Verdict(enum.IntEnum):
    """What became of a reported replica."""

    STORED = 0
    KNOWN = 1  # it was there already, or something newer is known of it
    BEING_WRITTEN = 2  # of use to its writer only
    DELETING = 3  # it has to be deleted, or was since
    UNWANTED = 4  # to be deleted: it belongs to no block
    FOREIGN = 5  # of a block that was never made here; it is left alone
    DELETED = 6


@operation()
def receive_changes(
    tx: Transaction, changes: Sequence[ReplicaChange], ids_end: int
) -> list[Verdict]:
    """A DataNode has new replicas, or has some no more, because it was told to or lost them.

    `ids_end` is an id that no block had when this was asked for.
    """
    _need_rows(
        tx,
        [
            (storage, change.replica.block_id)
            for change in changes
            for storage in (change.storage, *change.moved_from)
        ],
    )
    verdicts = []
    for change in changes:
        if change.is_deleted:
            verdicts.append(_delete(tx, change.storage, change.replica))
        else:
            verdict = _receive(tx, change.storage, change.replica, ids_end, None)
            for storage in change.moved_from:
                _leave(tx, storage, change.replica.block_id)
            if verdict is Verdict.STORED and change.delete_hint:
                put_check(tx, change.replica.block_id, delete_hint=change.delete_hint)
            verdicts.append(verdict)
    return verdicts


@operation()
def receive_report(
    tx: Transaction,
    storage: StorageNumber,
    reported: Sequence[ReportedReplica],
    as_of: int,
    ids_end: int,
) -> list[Verdict]:
    """A page of a full report: some of what the storage has."""
    # Nearly always all of them are known, and nothing else needs to be read.
    tx.need(replica_key(storage, replica.block_id) for replica in reported)
    news, marked = [], []
    for each in reported:
        known = _find_same(tx, storage, each)
        if known is None:
            news.append((storage, each.block_id))
        elif known.is_marked:
            marked.append(each.block_id)
    _need_rows(tx, news, marked)
    return [_receive(tx, storage, replica, ids_end, as_of) for replica in reported]


@operation()
def drop_unreported(
    tx: Transaction,
    storage: StorageNumber,
    table: Table,
    after: bytes,
    present: Collection[int],
    as_of: int,
) -> bytes:
    """After the last page of a full report: what was put down and is not `present` is lost.

    Looks at a page of REPLICAS, or of INVALIDATIONS; returns where to go on, or nothing.
    """
    page = tx.scan(table, storage, after, REPLICAS_PAGE)
    lost = [
        (key, BlockId(id))
        for key, _ in page
        if (id := NUMBER.unpack(key[2])[0]) not in present and not tx.changed_after(key, as_of)
    ]
    if table is Table.REPLICAS:
        tx.need(check_key(block_id) for _, block_id in lost)
    for key, block_id in lost:
        tx.delete(key)
        if table is Table.REPLICAS:
            put_check(tx, block_id)
    return page[-1][0][2] if len(page) == REPLICAS_PAGE else b""


@operation()
def mark_corrupt(
    tx: Transaction,
    storages: Sequence[StorageNumber],
    block_id: BlockId,
    stamp: GenerationStamp,
) -> None:
    """A reader, a scanner or a writer has found that a DataNode's replica is bad.

    It is on one of these storages.  If it is on none, one of them may have to delete it: that
    one counts again if the order is withdrawn.
    """
    replicas = [replica_key(storage, block_id) for storage in storages]
    orders = [invalidation_key(storage, block_id) for storage in storages]
    tx.need([*replicas, *orders, check_key(block_id)])
    found: list[tuple[Key, Replica | Invalidation]] = _present(tx, replicas) or _present(tx, orders)
    for key, row in found:
        # Of another generation, it is another replica, which was here before.
        if row.generation_stamp == stamp and not row.is_marked:
            tx.put(key, msgspec.structs.replace(row, status=ReplicaStatus.CORRUPT))
            put_check(tx, block_id)


def good_replicas(tx: Transaction, block: Block) -> list[StorageNumber]:
    """The storages that have the block as it should be."""
    return [storage for storage, replica in replicas_of(tx, block.id) if replica.is_good_for(block)]


def replicas_of(tx: Transaction, block_id: BlockId) -> list[tuple[StorageNumber, Replica]]:
    """All replicas that were reported, with their storages."""
    return [
        (StorageNumber(key[1]), replica) for key, replica in tx.list_by_id(Table.REPLICAS, block_id)
    ]


def need_replicas(tx: Transaction, block_ids: Iterable[BlockId]) -> None:
    """Have the replicas of several blocks at hand with one read."""
    tx.need(ids=[(int(Table.REPLICAS), id) for id in block_ids])


def _present(tx: Transaction, keys: Iterable[Key]) -> list[tuple[Key, Any]]:
    return [(key, row) for key in keys if (row := tx.get(key)) is not None]


def _need_rows(
    tx: Transaction,
    replicas: Sequence[tuple[StorageNumber, BlockId]],
    checked: Sequence[BlockId] = (),
) -> None:
    """With one read: what there is to know of some replicas, and notes of other blocks."""
    keys = (replica_key, invalidation_key, deletion_key)
    tx.need(
        [
            *(key(storage, id) for storage, id in replicas for key in keys),
            *(check_key(id) for _, id in replicas),
            *(check_key(id) for id in checked),
        ],
        ids=[(int(Table.BLOCKS), id) for _, id in replicas],
    )


def _find_same(
    tx: Transaction, storage: StorageNumber, reported: ReportedReplica
) -> Replica | None:
    """What is known of a replica, if it is reported just so."""
    known: Replica | None = tx.get(replica_key(storage, reported.block_id))
    is_same = (
        known is not None
        and known.generation_stamp == reported.generation_stamp
        and known.length_bytes == reported.length_bytes
        and (known.status is ReplicaStatus.UNFINISHED)
        == (reported.state is not ReportedState.FINALIZED)
    )
    return known if is_same else None


def _receive(
    tx: Transaction,
    storage: StorageNumber,
    reported: ReportedReplica,
    ids_end: int,
    as_of: int | None,
) -> Verdict:
    """Put down one replica; `as_of` is given if it is part of a full report."""
    key = replica_key(storage, reported.block_id)
    same = _find_same(tx, storage, reported)
    if same is not None:
        if as_of is not None and same.is_marked:
            put_check(tx, reported.block_id)  # it was away perhaps, and nobody waited for it
        return Verdict.KNOWN
    if as_of is not None and tx.get(key) is not None and tx.changed_after(key, as_of):
        return Verdict.KNOWN
    if _is_being_deleted(tx, storage, reported, as_of):
        return Verdict.DELETING
    found = newest_row(tx, reported.block_id)
    if found is None:
        return _refuse(tx, storage, reported, ids_end)
    block_row, block = found
    status = ReplicaStatus.GOOD
    if reported.state is not ReportedState.FINALIZED:
        # The report of a block that was just finished may still say that it is being written
        # (BlockManager.checkReplicaCorrupt, HDFS-2791).
        is_old_news = (
            reported.state is not ReportedState.RWR
            and reported.generation_stamp == block.generation_stamp
        )
        if block.state is not BlockState.COMPLETE or is_old_news:
            return Verdict.BEING_WRITTEN
        status = ReplicaStatus.UNFINISHED
    replica = Replica(reported.block_id, reported.generation_stamp, reported.length_bytes, status)
    store_replica(tx, storage, replica, block_row, block)
    return Verdict.STORED


def _is_being_deleted(
    tx: Transaction, storage: StorageNumber, reported: ReportedReplica, as_of: int | None
) -> bool:
    """Whether the replica has to be deleted, or was after the full report that speaks of it.

    Its DataNode may have been told already, and do it whenever it comes to it, so no report makes
    it count again, however long that DataNode was away (BlockManager.processReportedBlock).  Only
    whoever withdraws the order does: `take_invalidations` if it would be the last, `void_orders`
    if its volume is gone.  But one of a younger generation is another one.
    """
    order: Invalidation | None = tx.get(invalidation_key(storage, reported.block_id))
    if order is not None and reported.generation_stamp <= order.generation_stamp:
        return True
    key = deletion_key(storage, reported.block_id)
    return as_of is not None and tx.get(key) is not None and tx.changed_after(key, as_of)


def store_replica(
    tx: Transaction, storage: StorageNumber, replica: Replica, block_row: Key, block: Block
) -> None:
    """Put down a replica of a block; one that waited for its first is complete now."""
    key = replica_key(storage, block.id)
    known: Replica | None = tx.get(key)
    if known is not None and known.is_marked and known.generation_stamp == replica.generation_stamp:
        # Its DataNode does not see what a reader saw.
        replica = msgspec.structs.replace(replica, status=ReplicaStatus.CORRUPT)
    tx.put(key, replica)
    for other in (invalidation_key(storage, block.id), deletion_key(storage, block.id)):
        if tx.get(other) is not None:
            tx.delete(other)
    if block.state is BlockState.COMPLETE:
        put_check(tx, block.id)
    elif block.state is BlockState.COMMITTED and replica.is_good_for(block):
        put_block(tx, block_row, block.completed())


def _refuse(
    tx: Transaction, storage: StorageNumber, reported: ReportedReplica, ids_end: int
) -> Verdict:
    """A replica of no block.

    It is to be deleted, unless it is a copy that was ordered.  But one that was never made here
    is not ours to delete: the store may have been restored from a backup (HDFS's blocks in the
    future).
    """
    if reported.block_id >= ids_end:
        return Verdict.FOREIGN
    found = tx.list_by_id(Table.RECOVERIES, reported.generation_stamp)
    if any(wanted.copy_id == reported.block_id for _, wanted in found):
        return Verdict.BEING_WRITTEN  # a copy that is being made, and belongs to no file yet
    replica = Replica(reported.block_id, reported.generation_stamp, reported.length_bytes)
    invalidate(tx, storage, replica)
    return Verdict.UNWANTED


def _leave(tx: Transaction, storage: StorageNumber, block_id: BlockId) -> None:
    """A replica was moved to another volume of its DataNode, and is reported there."""
    key = replica_key(storage, block_id)
    if tx.get(key) is not None:
        note_deletion(tx, storage, block_id)
        tx.delete(key)


def _delete(tx: Transaction, storage: StorageNumber, reported: ReportedReplica) -> Verdict:
    key = replica_key(storage, reported.block_id)
    known: Replica | None = tx.get(key)
    if known is not None and known.generation_stamp > reported.generation_stamp:
        return Verdict.KNOWN  # one of a younger generation has come since
    note_deletion(tx, storage, reported.block_id)
    if known is not None:
        tx.delete(key)
        put_check(tx, reported.block_id)
    return Verdict.DELETED
