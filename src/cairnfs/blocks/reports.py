"""What DataNodes say they have, reconciled with what there should be.

A replica that is reported is put down; one that belongs to no block, or is of an older
generation, is to be deleted; one that is not what its block should be is corrupt.  So
rows never claim more than a DataNode has said, and nothing is lost by saying it twice.

A change that may leave a block with too few or too many replicas leaves a row in
CHECKS, in the same transaction: the redundancy duty looks at those.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from cairnfs.blocks.records import (
    Block,
    BlockId,
    BlockState,
    Check,
    GenerationStamp,
    Invalidation,
    Replica,
    ReplicaStatus,
    StorageNumber,
    check_key,
    invalidation_key,
    replica_key,
)
from cairnfs.store.base import Key
from cairnfs.store.schema import NUMBER, Table
from cairnfs.transaction.calls import operation
from cairnfs.transaction.transaction import Transaction

REPLICAS_PAGE = 500  # rows looked at by one transaction


class ReportedReplica(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A replica as its DataNode describes it."""

    block_id: BlockId
    generation_stamp: GenerationStamp
    length_bytes: int
    is_finalized: bool = True


class Verdict(enum.IntEnum):
    """What became of a report."""

    STORED = 0
    KNOWN = 1  # it was there already
    BEING_WRITTEN = 2  # of use to its writer only
    UNWANTED = 3  # to be deleted
    CORRUPT = 4


@operation()
def receive_replicas(
    tx: Transaction, storage: StorageNumber, reported: Sequence[ReportedReplica]
) -> list[Verdict]:
    """A DataNode has new replicas."""
    _need_blocks(tx, storage, reported)
    return [_receive(tx, storage, replica) for replica in reported]


@operation()
def delete_replicas(tx: Transaction, storage: StorageNumber, block_ids: Sequence[BlockId]) -> None:
    """A DataNode has replicas no more, because it was told to delete them or lost them."""
    tx.need(key(storage, id) for id in block_ids for key in (replica_key, invalidation_key))
    for block_id in block_ids:
        if tx.get(invalidation_key(storage, block_id)) is not None:
            tx.delete(invalidation_key(storage, block_id))
        if tx.get(replica_key(storage, block_id)) is not None:
            tx.delete(replica_key(storage, block_id))
            put_check(tx, block_id)


@operation()
def reconcile_replicas(
    tx: Transaction,
    storage: StorageNumber,
    first: int,
    end: int,
    reported: Sequence[ReportedReplica],
) -> None:
    """Part of a full report: all that the storage has, of the blocks from `first` to `end`.

    A replica that was put down and is not reported is lost; one that was to be deleted is.
    """
    _need_blocks(tx, storage, reported)
    for replica in reported:
        _receive(tx, storage, replica)
    present = {replica.block_id for replica in reported}
    for key in _keys_between(tx, Table.REPLICAS, storage, first, end):
        if (block_id := _block_id_of(key)) not in present:
            tx.delete(key)
            put_check(tx, block_id)
    for key in _keys_between(tx, Table.INVALIDATIONS, storage, first, end):
        if _block_id_of(key) not in present:
            tx.delete(key)


@operation()
def mark_corrupt(tx: Transaction, storage: StorageNumber, block_id: BlockId) -> None:
    """A reader, a scanner or a writer has found that a replica is bad."""
    key = replica_key(storage, block_id)
    replica: Replica | None = tx.get(key)
    if replica is None or replica.status is ReplicaStatus.CORRUPT:
        return
    tx.put(key, msgspec.structs.replace(replica, status=ReplicaStatus.CORRUPT))
    put_check(tx, block_id)


@operation()
def put_checks(tx: Transaction, storage: StorageNumber, after: bytes) -> bytes:
    """Have a page of a storage's blocks looked at; returns where to go on, or nothing."""
    page = tx.scan(Table.REPLICAS, storage, after, REPLICAS_PAGE)
    tx.need(check_key(replica.block_id) for _, replica in page)
    for _, replica in page:
        put_check(tx, replica.block_id)
    return page[-1][0][2] if len(page) == REPLICAS_PAGE else b""


def put_check(tx: Transaction, block_id: BlockId, *, at_once: bool = False) -> None:
    """Leave a note that the replicas of a block have to be looked at.

    Reports that are on their way are given a moment, unless it is to be done `at_once`.
    """
    key = check_key(block_id)
    if at_once or tx.get(key) is None:
        tx.get(key)
        tx.put(key, Check(0 if at_once else tx.now_ms))


def good_replicas(tx: Transaction, block: Block) -> list[StorageNumber]:
    """The storages that have the block as it should be."""
    return [
        storage
        for storage, replica in replicas_of(tx, block.id)
        if replica.status is ReplicaStatus.GOOD
        and replica.generation_stamp == block.generation_stamp
    ]


def replicas_of(tx: Transaction, block_id: BlockId) -> list[tuple[StorageNumber, Replica]]:
    """All replicas that were reported, with their storages."""
    return [
        (StorageNumber(key[1]), replica) for key, replica in tx.list_by_id(Table.REPLICAS, block_id)
    ]


def discard_replicas(tx: Transaction, block_id: BlockId) -> None:
    """The block is gone: have its replicas deleted."""
    for storage, replica in replicas_of(tx, block_id):
        tx.delete(replica_key(storage, block_id))
        invalidate(tx, storage, block_id, replica.generation_stamp)


def invalidate(
    tx: Transaction, storage: StorageNumber, block_id: BlockId, stamp: GenerationStamp
) -> None:
    """Have a DataNode delete a replica."""
    key = invalidation_key(storage, block_id)
    tx.get(key)
    tx.put(key, Invalidation(block_id, stamp))


def need_replicas(tx: Transaction, block_ids: Iterable[BlockId]) -> None:
    """Have the replicas of several blocks at hand with one read."""
    tx.need(ids=[(int(Table.REPLICAS), id) for id in block_ids])


def _keys_between(
    tx: Transaction, table: Table, storage: StorageNumber, first: int, end: int
) -> Iterator[Key]:
    """The rows of a storage, of the blocks from `first` to `end`."""
    after = NUMBER.pack(first - 1) if first > 0 else b""
    while page := tx.scan(table, storage, after, REPLICAS_PAGE):
        for key, _ in page:
            if _block_id_of(key) >= end:
                return
            yield key
        after = page[-1][0][2]


def _block_id_of(key: Key) -> BlockId:
    return BlockId(NUMBER.unpack(key[2])[0])


def _need_blocks(
    tx: Transaction, storage: StorageNumber, reported: Sequence[ReportedReplica]
) -> None:
    tx.need(
        [
            key(storage, replica.block_id)
            for replica in reported
            for key in (replica_key, invalidation_key)
        ],
        ids=[(int(Table.BLOCKS), replica.block_id) for replica in reported],
    )


def _receive(tx: Transaction, storage: StorageNumber, reported: ReportedReplica) -> Verdict:
    found = tx.list_by_id(Table.BLOCKS, reported.block_id)
    if not found:
        return _refuse(tx, storage, reported)
    (block_row, block), *_ = found
    if not reported.is_finalized:
        if block.state is BlockState.COMPLETE:
            return _receive_corrupt(tx, storage, reported)
        return Verdict.BEING_WRITTEN
    if reported.generation_stamp < block.generation_stamp:
        if block.state is BlockState.UNDER_CONSTRUCTION:
            return Verdict.BEING_WRITTEN  # recovery is about to give it the new stamp
        return _refuse(tx, storage, reported)
    is_finished = block.state is not BlockState.UNDER_CONSTRUCTION
    if is_finished and (
        reported.generation_stamp != block.generation_stamp
        or reported.length_bytes != block.length_bytes
    ):
        return _receive_corrupt(tx, storage, reported)
    return _store(tx, storage, reported, block_row, block)


def _store(
    tx: Transaction,
    storage: StorageNumber,
    reported: ReportedReplica,
    block_row: Key,
    block: Block,
) -> Verdict:
    key = replica_key(storage, reported.block_id)
    known: Replica | None = tx.get(key)
    replica = Replica(reported.block_id, reported.generation_stamp, reported.length_bytes)
    if known is not None and known.status is not ReplicaStatus.GOOD:
        # Whatever was wrong with it, its DataNode does not see it.
        replica = msgspec.structs.replace(replica, status=known.status)
    if known == replica:
        return Verdict.KNOWN
    tx.put(key, replica)
    if tx.get(invalidation_key(storage, block.id)) is not None:
        tx.delete(invalidation_key(storage, block.id))  # it came back, and is wanted again
    if block.state is BlockState.COMMITTED:
        tx.put(block_row, msgspec.structs.replace(block, state=BlockState.COMPLETE, targets=()))
    elif block.state is BlockState.COMPLETE:
        put_check(tx, block.id)
    return Verdict.STORED


def _receive_corrupt(tx: Transaction, storage: StorageNumber, reported: ReportedReplica) -> Verdict:
    key = replica_key(storage, reported.block_id)
    replica = Replica(
        reported.block_id,
        reported.generation_stamp,
        reported.length_bytes,
        ReplicaStatus.CORRUPT,
    )
    if tx.get(key) != replica:
        tx.put(key, replica)
        put_check(tx, reported.block_id)
    return Verdict.CORRUPT


def _refuse(tx: Transaction, storage: StorageNumber, reported: ReportedReplica) -> Verdict:
    if tx.get(replica_key(storage, reported.block_id)) is not None:
        tx.delete(replica_key(storage, reported.block_id))
    invalidate(tx, storage, reported.block_id, reported.generation_stamp)
    return Verdict.UNWANTED
