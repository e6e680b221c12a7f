"""Deleting: one row is detached, whatever is below it; reclaiming comes later.

A detached inode that may have something below it, blocks or children, leaves a
row in ORPHANS; `reclaim` works these off.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from cairnfs.blocks.checks import put_check
from cairnfs.blocks.records import Block, block_key
from cairnfs.errors import InvalidPathException, PathIsNotEmptyDirectoryException
from cairnfs.namesystem import leases
from cairnfs.namesystem.inodes import Inode, InodeId, Kind
from cairnfs.namesystem.layers import forget_identity, hide
from cairnfs.namesystem.lookup import (
    Lookup,
    key_of,
    resolve_link_to_write,
)
from cairnfs.namesystem.orphans import Orphan, orphan_key
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
    forget_identity(tx, target)
    hide(tx, ancestors[-1], target.name)
    if target.under_construction:
        leases.remove(tx, target.id)
    if target.is_snapshottable:
        forget_snapshottable(tx, target)
    if target.is_directory or target.block_count:
        tx.put_new(orphan_key(target.children_id), Orphan(target.kind, inode=target))
        check_open_block(tx, target)


def check_open_block(tx: Transaction, file: Inode) -> None:
    """A file is deleted while it is written: DataNodes finish what snapshots need of it."""
    if file.has_open_block:
        last: Block = tx.get(block_key(file.id, file.block_count - 1))
        put_check(tx, last.id, at_once=True)


def detach_blocks(tx: Transaction, file: Inode, blocks: Sequence[tuple[Key, Block]]) -> None:
    """Take blocks out of a file, to be reclaimed as those of a deleted one are.

    What a snapshot needs stays behind as a past version; the replicas are those of the orphan.
    """
    if not blocks:
        return
    id = InodeId(tx.next_inode_id())
    for index, (key, block) in enumerate(blocks):
        tx.delete(key)
        tx.put_new(block_key(id, index), block)
    tx.put_new(orphan_key(id), Orphan(Kind.FILE, inode=msgspec.structs.replace(file, id=id)))
