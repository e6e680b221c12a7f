"""Replicas that have to be deleted: ordering it, telling DataNodes, and what they answer.

Invariant: a DataNode is told to delete a replica of a block that there is only while
another DataNode that lives has a good one, whatever has happened since it was ordered.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from cairnfs.blocks.checks import forget_checks, put_check
from cairnfs.blocks.holding import newest_row, pass_on
from cairnfs.blocks.records import (
    Block,
    BlockId,
    BlockState,
    Deletion,
    Invalidation,
    Replica,
    StorageNumber,
    check_key,
    deletion_key,
    invalidation_key,
    replica_key,
)
from cairnfs.store.schema import Table
from cairnfs.transaction.calls import operation
from cairnfs.transaction.transaction import Transaction

DELETIONS_KEPT_MS = 15 * 60_000  # longer than a full report can be on its way
DELETIONS_PAGE = 500  # rows looked at by one transaction
ORDERS_PAGE = 500

Order = tuple[StorageNumber, Invalidation]


@operation()
def take_invalidations(
    tx: Transaction,
    storages: Sequence[StorageNumber],
    told: Collection[tuple[int, int]],
    is_readable: Callable[[StorageNumber], bool],
    count_max: int,
) -> list[Order]:
    """What a DataNode with these storages is to be told to delete now.

    What it was `told` a short while ago is left out.  An order that would take the last
    readable replica of a block is void: the replica counts again.
    """
    rows = [
        (storage, order)
        for storage in storages
        for _, order in tx.scan(Table.INVALIDATIONS, storage, b"", count_max)
    ]
    due = [each for each in rows if (each[0], each[1].block_id) not in told][:count_max]
    tx.need(
        ids=[
            (int(table), order.block_id)
            for _, order in due
            for table in (Table.BLOCKS, Table.REPLICAS, Table.INVALIDATIONS)
        ]
    )
    orders = []
    for storage, order in due:
        found = newest_row(tx, order.block_id)
        if found is None or _is_elsewhere(tx, found[1], storages, is_readable):
            orders.append((storage, order))
        else:
            tx.delete(invalidation_key(storage, order.block_id))
            _restore(tx, storage, order)
            put_check(tx, order.block_id, at_once=True)
    return orders


@operation()
def void_orders(tx: Transaction, storage: StorageNumber, after: bytes) -> bytes:
    """Withdraw a page of the orders on a volume that a living DataNode lost; where to go on.

    Should it come back, it will report what it has, but not what of it is bad: that is kept
    as what it was before it was to be deleted.  Only for what nobody will delete any more: what
    is reported again counts, and another one may be deleted for it.
    """
    page = tx.scan(Table.INVALIDATIONS, storage, after, ORDERS_PAGE)
    ids = [order.block_id for _, order in page]
    tx.need(
        [key for id in ids for key in (check_key(id), replica_key(storage, id))],
        ids=[(int(Table.BLOCKS), id) for id in ids],
    )
    for key, order in page:
        tx.delete(key)
        if newest_row(tx, order.block_id) is None:
            continue
        if order.is_marked:
            _restore(tx, storage, order)
        put_check(tx, order.block_id, at_once=True)
    return page[-1][0][2] if len(page) == ORDERS_PAGE else b""


@operation()
def forget_deletions(tx: Transaction, storage: StorageNumber, after: bytes) -> bytes:
    """Remove notes of a page that no report can contradict any more; where to go on."""
    page = tx.scan(Table.DELETIONS, storage, after, DELETIONS_PAGE)
    for key, deletion in page:
        if tx.now_ms - deletion.deleted_ms > DELETIONS_KEPT_MS:
            tx.delete(key)
    return page[-1][0][2] if len(page) == DELETIONS_PAGE else b""


def invalidate(tx: Transaction, storage: StorageNumber, replica: Replica) -> None:
    """Have a DataNode delete a replica; it counts for nobody from now on."""
    key = replica_key(storage, replica.block_id)
    if tx.get(key) is not None:
        tx.delete(key)
    key = invalidation_key(storage, replica.block_id)
    order = Invalidation(
        replica.block_id, replica.generation_stamp, replica.length_bytes, replica.status
    )
    if tx.get(key) != order:
        tx.put(key, order)


def note_deletion(tx: Transaction, storage: StorageNumber, block_id: BlockId) -> None:
    """A replica is gone: a report that was under way then does not bring it back."""
    key = invalidation_key(storage, block_id)
    if tx.get(key) is not None:
        tx.delete(key)
    key = deletion_key(storage, block_id)
    tx.get(key)
    tx.put(key, Deletion(tx.now_ms))


def discard_replicas(tx: Transaction, block_id: BlockId) -> int:
    """Have all replicas of a block deleted that were reported; how many there were."""
    found = tx.list_by_id(Table.REPLICAS, block_id)
    for key, replica in found:
        invalidate(tx, StorageNumber(key[1]), replica)
    return len(found)


def discard_block(tx: Transaction, block: Block) -> None:
    """A block's row is removed: have its replicas deleted, unless another file has them.

    Of one that was being written, each DataNode of the pipeline may have a part, and nobody
    reports those.  And a replica may be reported at this very moment, unseen by us; so it is
    looked at once more.  A report of a complete one puts it into CHECKS, which we do see.
    """
    if pass_on(tx, block):
        return
    count = discard_replicas(tx, block.id)
    for storage in block.targets if block.state is not BlockState.COMPLETE else ():
        order: Invalidation | None = tx.get(invalidation_key(storage, block.id))
        if order is None or order.generation_stamp < block.last_stamp:
            invalidate(tx, storage, Replica(block.id, block.last_stamp, 0))
    forget_checks(tx, block.id)
    if block.state is not BlockState.COMPLETE and (block.targets or count):
        put_check(tx, block.id, at_once=True)


def _restore(tx: Transaction, storage: StorageNumber, order: Invalidation) -> None:
    """What was to be deleted counts again, for what it is."""
    key = replica_key(storage, order.block_id)
    tx.get(key)
    tx.put(key, order.replica)


def _is_elsewhere(
    tx: Transaction,
    block: Block,
    storages: Collection[StorageNumber],
    is_readable: Callable[[StorageNumber], bool],
) -> bool:
    """Whether others than these storages have a good replica that nobody has to delete."""
    deleting = {key[1] for key, _ in tx.list_by_id(Table.INVALIDATIONS, block.id)}
    return any(
        replica.is_good_for(block) and is_readable(StorageNumber(key[1]))
        for key, replica in tx.list_by_id(Table.REPLICAS, block.id)
        if key[1] not in deleting and key[1] not in storages
    )
