"""What there is to know of a block's replicas, and what was decided about them."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from cairnfs.blocks.records import (
    Block,
    BlockId,
    Replica,
    ReplicaStatus,
    StorageNumber,
    check_key,
    replica_key,
)
from cairnfs.blocks.reports import invalidate, replicas_of
from cairnfs.namesystem.inodes import Inode
from cairnfs.store.schema import Table
from cairnfs.transaction.calls import operation
from cairnfs.transaction.transaction import Transaction


class BlockFacts(msgspec.Struct, frozen=True, gc=False):
    """A block, how many replicas its file wants, and those that were reported."""

    block: Block
    file: Inode
    replicas: list[tuple[StorageNumber, Replica]]
    deleting: list[StorageNumber]  # that still have to delete one they had


@operation(mutates=False)
def inspect_block(tx: Transaction, block_id: BlockId) -> BlockFacts | None:
    """None: the block is gone."""
    found = tx.list_by_id(Table.BLOCKS, block_id)
    if not found:
        return None
    key, block = found[0]
    file: Inode | None = tx.get_by_id(Table.INODES, key[1])
    if file is None:
        return None  # deleted, and to be reclaimed
    deleting = [StorageNumber(key[1]) for key, _ in tx.list_by_id(Table.INVALIDATIONS, block_id)]
    return BlockFacts(block, file, replicas_of(tx, block_id), deleting)


@operation()
def finish_check(tx: Transaction, block_id: BlockId) -> None:
    """The block is well, or gone."""
    if tx.get(check_key(block_id)) is not None:
        tx.delete(check_key(block_id))


@operation()
def drop_replicas(
    tx: Transaction,
    block_id: BlockId,
    storages: Sequence[StorageNumber],
    expected: Sequence[StorageNumber],
) -> bool:
    """Have some replicas deleted, as was planned when the good ones were `expected`.

    False, and nothing changes, if one of those is not good any more: what looked like one
    too many may be the last.
    """
    replicas = dict(replicas_of(tx, block_id))
    for storage in expected:
        replica = replicas.get(storage)
        if replica is None or replica.status is not ReplicaStatus.GOOD:
            return False
    for storage in storages:
        replica = replicas.get(storage)
        if replica is not None:
            tx.delete(replica_key(storage, block_id))
            invalidate(tx, storage, block_id, replica.generation_stamp)
    return True
