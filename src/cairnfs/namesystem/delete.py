"""Deleting: one row is detached, whatever is below it; reclaiming comes later.

A detached inode that may have something below it, blocks or children, leaves a
row in ORPHANS.  `reclaim` removes such subtrees in bounded batches, each a
transaction of its own, so it can stop and go on anywhere.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from cairnfs.blocks.checks import need_checks, put_check
from cairnfs.blocks.holding import needed_bytes
from cairnfs.blocks.invalidations import discard_block
from cairnfs.blocks.records import Block, block_key
from cairnfs.blocks.reports import need_replicas
from cairnfs.errors import InvalidPathException, PathIsNotEmptyDirectoryException
from cairnfs.namesystem import leases
from cairnfs.namesystem.inodes import Inode, InodeId, Kind
from cairnfs.namesystem.lookup import (
    Lookup,
    check_subtree_access,
    key_of,
    resolve_link_to_write,
)
from cairnfs.namesystem.paths import FsPath
from cairnfs.namesystem.permissions import (
    Access,
    Caller,
    check_access,
    check_sticky,
)
from cairnfs.namesystem.quotas import remove_entry, subtree
from cairnfs.store.base import Count, Key
from cairnfs.store.schema import NUMBER, Table
from cairnfs.transaction.calls import operation
from cairnfs.transaction.records import register
from cairnfs.transaction.transaction import Transaction

RECLAIM_BATCH = 100  # rows removed by one transaction: other callers wait for it


class Orphan(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A detached inode; what is below it is still to be reclaimed."""

    kind: Kind
    covered_txid: int  # what was current then is needed by a snapshot
    inode: Inode | None = None  # what it was: the blocks of a file are still cared for


register(Table.ORPHANS, Orphan)


@operation(at_most_once=True)
def delete(tx: Transaction, caller: Caller, path: FsPath, recursive: bool) -> bool:
    """Remove a path; False if there is nothing to remove, or it is the root."""
    if path.is_exactly_reserved:
        raise InvalidPathException(f"Invalid path name {path}")
    lookup = resolve_link_to_write(tx, caller, path)
    target = lookup.target
    check_may_remove(tx, caller, lookup, with_subtree=True)
    if target is None:
        return False
    if target.is_directory:
        if tx.totals(target.id).counts[Count.CHILDREN]:
            if not recursive:
                raise PathIsNotEmptyDirectoryException(f"{lookup.path} is non empty")
            if lookup.path.is_root:
                return False
            tx.require_alone()
        else:
            tx.expect_empty(Table.INODES, target.id)
    if lookup.path.is_root:
        return False
    detach(tx, lookup.ancestors, target)
    return True


def check_may_remove(
    tx: Transaction, caller: Caller, lookup: Lookup, *, with_subtree: bool
) -> None:
    """What HDFS asks of whoever removes an entry from a directory."""
    if caller.is_superuser:
        return
    target, parent = lookup.target, lookup.parent
    if parent is not None and not lookup.path.is_root:
        if target is not None:
            check_sticky(caller, parent, target, lookup.path)
        check_access(caller, parent, Access.WRITE, lookup.path, len(lookup.ancestors) - 1)
    if with_subtree and target is not None:
        check_subtree_access(tx, caller, lookup.path, target, Access.ALL, to_delete=True)


def detach(tx: Transaction, ancestors: Sequence[Inode], target: Inode) -> None:
    """Take an inode out of its directory, with everything below it."""
    remove_entry(tx, ancestors, subtree(tx, target))
    tx.delete(key_of(target))
    if target.under_construction:
        leases.remove(tx, target.id)
    if target.is_directory or target.block_count:
        orphan(tx, target)


def orphan(tx: Transaction, inode: Inode) -> None:
    """Leave a note that the rows below a detached inode are to be reclaimed."""
    covered_txid = max(tx.covered, inode.covered_txid)
    tx.put_new(orphan_key(inode.id), Orphan(inode.kind, covered_txid, inode))
    if inode.has_open_block and covered_txid:  # DataNodes are to finish what was flushed
        put_check(tx, tx.get(block_key(inode.id, inode.block_count - 1)).id, at_once=True)


def detach_blocks(tx: Transaction, file: Inode, blocks: Sequence[tuple[Key, Block]]) -> None:
    """Take blocks out of a file, to be reclaimed as those of a deleted one are.

    Those that a snapshot needs are below an orphan that is kept as long as it does: their
    replicas are found, judged and copied by these rows.
    """
    held: list[Block] = []
    free: list[Block] = []
    for key, block in blocks:
        if held_bytes := needed_bytes(tx, key, block):
            held.append(msgspec.structs.replace(block, held_bytes=held_bytes))
        else:
            free.append(block)
        tx.delete(key)
    for rows, covered_txid in ((held, tx.covered), (free, 0)):
        if rows:
            id = InodeId(tx.next_inode_id())
            for index, block in enumerate(rows):
                tx.put_new(block_key(id, index), block)
            tx.put_new(orphan_key(id), Orphan(Kind.FILE, covered_txid, file))


def orphan_key(id: int) -> Key:
    return (Table.ORPHANS, 0, NUMBER.pack(id))


@operation()
def reclaim(tx: Transaction, id: InodeId) -> bool:
    """Remove up to a batch of rows below a detached inode; True when none is left.

    Nobody can reach these rows any more, so nobody conflicts over them.
    """
    found: Orphan | None = tx.get(orphan_key(id))
    if found is None:
        return True
    tx.cover(found.covered_txid)
    if found.kind is Kind.FILE:
        rows = tx.scan(Table.BLOCKS, id, b"", RECLAIM_BATCH)
        need_replicas(tx, [block.id for _, block in rows])
        need_checks(tx, [block.id for _, block in rows])
        for key, block in rows:
            tx.delete(key)
            if key not in tx.kept:  # else a snapshot needs its data
                discard_block(tx, block)
    else:
        rows = tx.scan(Table.INODES, id, b"", RECLAIM_BATCH)
        tx.need(leases.lease_key(inode.id) for _, inode in rows if inode.under_construction)
        for key, inode in rows:
            _reclaim_child(tx, key, inode)
    if len(rows) < RECLAIM_BATCH:
        tx.delete(orphan_key(id))
        if found.kind is Kind.DIRECTORY:
            tx.drop_totals(id)
        return True
    return False


def _reclaim_child(tx: Transaction, key: Key, inode: Inode) -> None:
    tx.delete(key)
    if inode.under_construction:
        leases.remove(tx, inode.id)
    if inode.is_directory or inode.block_count:
        orphan(tx, inode)
