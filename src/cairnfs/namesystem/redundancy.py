"""What there is to know of a block's replicas, and what was decided about them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import msgspec

from cairnfs.blocks.checks import forget_checks, need_checks, put_check, settle_check
from cairnfs.blocks.holding import newest_row
from cairnfs.blocks.invalidations import discard_replicas, invalidate
from cairnfs.blocks.placing import Placement, find_placement, need_placements
from cairnfs.blocks.policies import DEFAULT
from cairnfs.blocks.records import (
    Block,
    BlockId,
    Check,
    CheckQueue,
    Invalidation,
    Replica,
    StorageNumber,
    check_key,
    replica_key,
)
from cairnfs.blocks.reports import replicas_of
from cairnfs.namesystem.inodes import Inode
from cairnfs.namesystem.lookup import ROOT_KEY, way_to
from cairnfs.namesystem.needs import TXID_MAX, Needs
from cairnfs.namesystem.orphans import Orphan
from cairnfs.namesystem.policy_attribute import POLICY_UNSPECIFIED
from cairnfs.namesystem.policy_changes import is_used, policy_id_at
from cairnfs.store.schema import Table
from cairnfs.transaction.calls import operation
from cairnfs.transaction.rows import ask_all
from cairnfs.transaction.transaction import Transaction

Settled = tuple[BlockId, Check | None, CheckQueue | None]
"""A block, what was new of it when it was looked at, and where it is to wait, if at all."""


class BlockFacts(msgspec.Struct, frozen=True, gc=False):
    """A block, and what DataNodes have of it or have to delete."""

    block: Block
    replication: int  # the most that a file or a snapshot which has the block asks for
    replicas: list[tuple[StorageNumber, Replica]]
    deleting: list[tuple[StorageNumber, Invalidation]]
    news: Check | None  # in the queue NEW
    policy_id: int | None = POLICY_UNSPECIFIED  # where its replicas belong; None: where they are
    placement: Placement | None = None  # they may not be there
    is_being_written: bool = False  # its file, whatever the block itself is


@operation(mutates=False)
def inspect_blocks(tx: Transaction, block_ids: Sequence[BlockId]) -> list[BlockFacts | None]:
    """What is known of some blocks; None: one is gone."""
    tables = (Table.BLOCKS, Table.REPLICAS, Table.INVALIDATIONS)
    root: Inode = tx.get(ROOT_KEY)
    has_policies = is_used(root)
    tx.need(
        [check_key(id) for id in block_ids],
        ids=[(int(table), id) for id in block_ids for table in tables],
    )
    files = [key[1] for id in block_ids for key, _ in tx.list_by_id(Table.BLOCKS, id)]
    tx.need(ids=[(int(Table.INODES), file) for file in dict.fromkeys(files)])
    need_placements(tx, block_ids)

    @functools.cache  # it looks through all snapshots, and is rarely asked
    def needs() -> Needs:
        return Needs(tx, TXID_MAX)

    return ask_all(lambda block_id: _inspect(tx, block_id, has_policies, needs), block_ids)


@operation()
def settle_checks(tx: Transaction, settled: Sequence[Settled]) -> list[bool]:
    """Blocks that are well, or cannot be helped now; whether that is still so, of each."""
    need_checks(tx, [block_id for block_id, _, _ in settled])
    return [settle_check(tx, *each) for each in settled]


@operation()
def forget_block(tx: Transaction, block_id: BlockId) -> None:
    """A block that is gone leaves nothing behind, not even what was reported meanwhile."""
    if not tx.list_by_id(Table.BLOCKS, block_id):
        discard_replicas(tx, block_id)
        forget_checks(tx, block_id)


@operation()
def drop_replicas(
    tx: Transaction,
    block: Block,
    storages: Sequence[StorageNumber],
    expected: Sequence[StorageNumber],
) -> bool:
    """Have some replicas deleted, as was planned when the good ones were `expected`.

    False, and nothing changes, if one of those is not good any more: what looked like one
    too many may be the last.
    """
    found = newest_row(tx, block.id)
    if found is None or not expected or found[1] != block:
        return False
    replicas = dict(replicas_of(tx, block.id))
    for storage in expected:
        if storage not in replicas or not replicas[storage].is_good_for(block):
            return False
    for storage in storages:
        if storage in replicas:
            invalidate(tx, storage, replicas[storage])
    put_check(tx, block.id, at_once=True)
    return True


@operation()
def forget_replicas(tx: Transaction, block_id: BlockId, storages: Sequence[StorageNumber]) -> None:
    """What was on DataNodes that were given up, and on volumes that broke.

    Should they come back, they will report what they have, but not what of it is bad: that stays
    known, or it would be taken for good, and a good one for one too many.
    """
    for storage in storages:
        key = replica_key(storage, block_id)
        replica: Replica | None = tx.get(key)
        if replica is not None and not replica.is_marked:
            tx.delete(key)


def _inspect(
    tx: Transaction, block_id: BlockId, has_policies: bool, needs: Callable[[], Needs]
) -> BlockFacts | None:
    newest = newest_row(tx, block_id)
    found = [_file_of(tx, key[1]) for key, _ in tx.list_by_id(Table.BLOCKS, block_id)]
    files = [file for file in found if file is not None]
    if newest is None or not files:
        return None  # deleted, and to be reclaimed
    deleting = [
        (StorageNumber(key[1]), order)
        for key, order in tx.list_by_id(Table.INVALIDATIONS, block_id)
    ]
    news: Check | None = tx.get(check_key(block_id))
    placement = find_placement(tx, block_id)
    policy_id: int | None = POLICY_UNSPECIFIED
    if has_policies or placement is not None:
        policy_id = _policy_of(tx, files, placement)
    replicas = replicas_of(tx, block_id)
    replication = max(file.replication for file in files)
    if any(file.held_replication > replication for file in files):
        wishes = needs().wishes_for_block(block_id)
        replication = max([replication, *(wish.replication for wish in wishes)])
    return BlockFacts(
        newest[1],
        replication,
        replicas,
        deleting,
        news,
        policy_id,
        placement,
        any(file.under_construction for file in files),
    )


def _policy_of(tx: Transaction, files: Sequence[Inode], placement: Placement | None) -> int | None:
    """The policy of a block's file; of several that share it, the one for what is used most.

    Their numbers are in that order.  What only snapshots have stays where it is.
    """
    found = [] if placement is None or not placement.policy_id else [placement.policy_id]
    for file in files:
        # One that was deleted is not where it was, though its directory may still be there.
        is_deleted = tx.get_by_id(Table.INODES, file.id) is None
        way = None if is_deleted else way_to(tx, file)
        if way is not None:
            found.append(policy_id_at(way) or DEFAULT.id)
    return max(found, default=None)


def _file_of(tx: Transaction, inode_id: int) -> Inode | None:
    """The file that has a block; also one that was deleted, if a snapshot needs it."""
    file: Inode | None = tx.get_by_id(Table.INODES, inode_id)
    if file is None:
        held: Orphan | None = tx.get_by_id(Table.HELD, inode_id)
        return None if held is None else held.inode
    return file
