"""Deleting: one row is detached, whatever is below it; reclaiming comes later.

A detached inode that may have something below it, blocks or children, leaves a
row in ORPHANS; `reclaim` works these off.

Invariant: a block that is detached while it is being written is in CHECKS, from the same
transaction on, until it is finished or known not to be needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from cairnfs.blocks.checks import put_check
from cairnfs.blocks.holding import held_length
from cairnfs.blocks.records import Block, BlockState, block_key
from cairnfs.errors import InvalidPathException, PathIsNotEmptyDirectoryException
from cairnfs.namesystem import leases
from cairnfs.namesystem.inodes import Inode, InodeId, Kind
from cairnfs.namesystem.layers import forget_identity, hide
from cairnfs.namesystem.lookup import (
    Lookup,
    key_of,
    resolve_link_to_write,
)
from cairnfs.namesystem.marks import forget_mark
from cairnfs.namesystem.orphans import UNKNOWN, Orphan, orphan_key
from cairnfs.namesystem.paths import FsPath
from cairnfs.namesystem.permissions import (
    Access,
    Caller,
    check_access,
    check_sticky,
)
from cairnfs.namesystem.quotas import remove_entry, subtree
from cairnfs.namesystem.snapshots import check_without_snapshots, forget_snapshottable
from cairnfs.namesystem.subtree_access import check_subtree_access
from cairnfs.store.base import Count
from cairnfs.store.schema import Key, Table
from cairnfs.transaction.calls import operation
from cairnfs.transaction.transaction import Transaction

_CHILDREN: Final = int(Count.CHILDREN)
_INODES: Final = Table.INODES
_WRITE: Final = Access.WRITE.value


@operation(stored_reply=bool)
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
        if tx.totals(target.id).counts[_CHILDREN]:
            if not recursive:
                raise PathIsNotEmptyDirectoryException(f"{lookup.path} is non empty")
            if lookup.path.is_root:
                return False
            tx.require_alone()
        else:
            tx.expect_empty(_INODES, target.children_id)
    if lookup.path.is_root:
        return False
    check_without_snapshots(tx, lookup, target)
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
        check_access(caller, parent, _WRITE, lookup.path, len(lookup.ancestors) - 1)
    if with_subtree and target is not None:
        check_subtree_access(tx, caller, lookup.path, target, Access.ALL, to_delete=True)


def detach(tx: Transaction, ancestors: Sequence[Inode], target: Inode) -> None:
    """Take an inode out of its directory, with everything below it."""
    remove_entry(tx, ancestors, subtree(tx, target))
    tx.delete(key_of(target))
    forget_mark(tx, target)
    forget_identity(tx, target)
    hide(tx, ancestors[-1], target.name)
    if target.under_construction:
        leases.remove(tx, target.id)
    if target.is_snapshottable:
        forget_snapshottable(tx, target)
    if target.is_directory or target.block_count:
        orphan = Orphan(target.kind, inode=target, covered=_covered(tx))
        tx.put_new(orphan_key(target.children_id), orphan)
        detach_open_block(tx, target)


def detach_open_block(tx: Transaction, file: Inode) -> None:
    """Have the open block of a detached file finished, if it has one and it is needed."""
    if file.has_open_block:
        _finish_detached(tx, tx.get(block_key(file.id, file.block_count - 1)))


def detach_blocks(tx: Transaction, file: Inode, blocks: Sequence[tuple[Key, Block]]) -> None:
    """Take blocks out of a file, to be reclaimed as those of a deleted file are.

    A version that a snapshot needs stays behind as a past version.  The orphan's rows are those
    by which the replicas are judged from now on.
    """
    if not blocks:
        return
    id = InodeId(tx.next_inode_id())
    for index, (key, block) in enumerate(blocks):
        held_bytes = held_length(tx, key, block)
        tx.delete(key)
        detached = msgspec.structs.replace(block, held_bytes=held_bytes)
        tx.put_new(block_key(id, index), detached)
        _finish_detached(tx, detached)
    detached_file = msgspec.structs.replace(file, id=id)
    orphan = Orphan(Kind.FILE, inode=detached_file, covered=_covered(tx))
    tx.put_new(orphan_key(id), orphan)


def _covered(tx: Transaction) -> int:
    """The latest snapshot that can show what is detached; UNKNOWN if no path was resolved."""
    return UNKNOWN if tx.covered is None else tx.covered


def _finish_detached(tx: Transaction, block: Block) -> None:
    """Have a block that is no longer in a file, but was being written, looked at.

    Its writer has lost it.  If a snapshot or another file needs it, its DataNodes have to finish
    it (`block_recovery.recover_deleted`): no DataNode keeps an unfinished replica readable when
    it is started again.
    """
    if block.state is BlockState.UNDER_CONSTRUCTION:
        put_check(tx, block.id, at_once=True)
