"""Both rename calls: the old one, and the one with options.

Moving a file changes its row and those of nobody else.  Moving a directory
changes what every path below it means: it runs alone.
"""

from __future__ import annotations

import enum
from types import NoneType
from typing import Final

from msgspec.structs import replace

from cairnfs.errors import (
    FileAlreadyExistsException,
    FileNotFoundException,
    InvalidPathException,
    IOException,
    ParentNotDirectoryException,
    SnapshotException,
)
from cairnfs.namesystem import inheritance
from cairnfs.namesystem.delete import check_may_remove, detach
from cairnfs.namesystem.directories import add_inode, check_entry_name, put_inode
from cairnfs.namesystem.inodes import Inode, InodeId
from cairnfs.namesystem.layers import child_of, hide
from cairnfs.namesystem.lookup import (
    Lookup,
    check_ancestor_access,
    key_of,
    resolve_link_to_create,
    resolve_link_to_write,
    with_own_rows,
)
from cairnfs.namesystem.marks import forget_mark, is_marked, mark
from cairnfs.namesystem.paths import FsPath
from cairnfs.namesystem.permissions import Access, Caller, check_sticky, check_traverse
from cairnfs.namesystem.policy_changes import note_move
from cairnfs.namesystem.quotas import add_entry, remove_entry, subtree, touch
from cairnfs.namesystem.snapshots import check_without_snapshots
from cairnfs.store.base import Count
from cairnfs.store.schema import Table
from cairnfs.transaction.calls import operation
from cairnfs.transaction.transaction import Transaction


class RenameOption(enum.IntFlag):
    """Options of rename2; without OVERWRITE the destination must not exist."""

    NONE = 0
    OVERWRITE = 1
    TO_TRASH = 2


# Plain numbers, for the reason given in `files`.
_OVERWRITE: Final = RenameOption.OVERWRITE.value
_TO_TRASH: Final = RenameOption.TO_TRASH.value
_WRITE: Final = Access.WRITE.value


@operation(stored_reply=bool)
def rename(tx: Transaction, caller: Caller, src: FsPath, dst: FsPath) -> bool:
    """The old rename: into `dst` if that is a directory; False instead of most errors."""
    dst.check_length("rename")
    source = resolve_link_to_write(tx, caller, src)
    destination = resolve_link_to_create(tx, caller, dst)
    is_directory = destination.target is not None and destination.target.is_directory
    if is_directory and not source.path.is_root:
        destination = look_inside(tx, destination, source.path.name)
        check_traverse(caller, destination.ancestors, destination.path)
    _check_permissions(tx, caller, source, destination, to_trash=False)
    try:
        inode = _check_source(tx, source)
        if destination.path == source.path:
            return True
        _check_destination(source, destination, inode)
    except SnapshotException:
        raise
    except IOException:
        return False
    if destination.target is not None or destination.parent is None:
        return False
    move(tx, source, destination, inode)
    return True


@operation(stored_reply=NoneType)
def rename2(tx: Transaction, caller: Caller, src: FsPath, dst: FsPath, options: int) -> None:
    """Rename as POSIX does; every failure is an error that says why.

    `options` are those of RenameOption, added up.
    """
    options = int(options)
    dst.check_length("rename")
    source = resolve_link_to_write(tx, caller, src)
    destination = resolve_link_to_create(tx, caller, dst)
    to_trash = bool(options & _TO_TRASH)
    _check_permissions(tx, caller, source, destination, to_trash=to_trash)
    inode = _check_source(tx, source)
    if destination.path == source.path:
        raise FileAlreadyExistsException(
            f"The source {source.path} and destination {destination.path} are the same"
        )
    _check_destination(source, destination, inode)
    if destination.path.is_root:
        raise IOException("rename destination cannot be the root")
    replaced = destination.target
    if replaced is not None:
        _check_overwrite(tx, source, destination, inode, replaced, options)
        # HDFS forgets the sticky bit here: anybody could remove what others have in /tmp.
        check_sticky(caller, destination.deepest, replaced, destination.path)
    if len(destination.missing) > 1:
        raise FileNotFoundException(f"rename destination parent {destination.path} not found.")
    if not destination.deepest.is_directory:
        raise ParentNotDirectoryException(
            f"rename destination parent {destination.path} is a file."
        )
    if replaced is not None:
        check_without_snapshots(tx, destination, replaced)
        detach(tx, destination.ancestors, replaced)
    move(tx, source, destination, inode)


def look_inside(tx: Transaction, directory: Lookup, name: bytes) -> Lookup:
    """The place of `name` in a directory that was found."""
    assert directory.target is not None
    path = directory.path.child(name)
    child = child_of(tx, directory.target, name)
    if child is None:
        return Lookup(path, directory.inodes, (name,), directory.covered_txid, tx)
    inodes = (*directory.inodes, child)
    return with_own_rows(tx, Lookup(path, inodes, (), directory.covered_txid, tx))


def _check_permissions(
    tx: Transaction, caller: Caller, source: Lookup, destination: Lookup, *, to_trash: bool
) -> None:
    check_may_remove(tx, caller, source, with_subtree=to_trash)
    check_ancestor_access(caller, destination, _WRITE)


def _check_source(tx: Transaction, source: Lookup) -> Inode:
    if source.target is None:
        raise FileNotFoundException(f"rename source {source.path} is not found.")
    if source.path.is_root:
        raise IOException("rename source cannot be the root")
    check_without_snapshots(tx, source, source.target)
    return source.target


def _check_destination(source: Lookup, destination: Lookup, inode: Inode) -> None:
    if inode.is_symlink and destination.path.text == inode.target:
        raise FileAlreadyExistsException(
            f"Cannot rename symlink {source.path} to its target {destination.path}"
        )
    if source.path.is_ancestor_of(destination.path):
        raise IOException(
            f"Rename destination {destination.path} is a directory or file under source"
            f" {source.path}"
        )
    if source.path.is_exactly_reserved or destination.path.is_exactly_reserved:
        raise InvalidPathException("Invalid path name Cannot rename to or from /.reserved")


def _check_overwrite(
    tx: Transaction,
    source: Lookup,
    destination: Lookup,
    inode: Inode,
    replaced: Inode,
    options: int,
) -> None:
    if replaced.is_directory != inode.is_directory:
        raise IOException(
            f"Source {source.path} and destination {destination.path} must both be directories"
        )
    if not options & _OVERWRITE:
        raise FileAlreadyExistsException(f"rename destination {destination.path} already exists")
    if replaced.is_directory:
        if tx.totals(replaced.id).counts[Count.CHILDREN]:
            raise IOException(f"rename destination directory is not empty: {destination.path}")
        tx.expect_empty(Table.INODES, replaced.children_id)


def move(
    tx: Transaction,
    source: Lookup,
    destination: Lookup,
    inode: Inode,
    *,
    from_detached: bool = False,
) -> None:
    """Give the inode another place: in another directory, or under another name in its own.

    `from_detached`: the first one is no longer part of the tree, and counted nowhere.
    """
    if inode.is_directory:
        tx.require_alone()
    note_move(tx, source, destination, inode)
    old, new = source.ancestors, destination.ancestors
    parent = new[-1]
    tx.delete(key_of(inode))
    hide(tx, old[-1], inode.name, moved=inode.id)
    moved = replace(
        inheritance.moved(source, inode),
        parent_id=InodeId(parent.children_id),
        name=destination.path.name,
        covered_txid=source.covered_txid,  # the inode's own included
        entered=_entered(inode, source.covered_txid, destination.covered_txid),
    )
    if inode.parent_id != moved.parent_id:
        forget_mark(tx, inode)
    if old[-1].id == parent.id and not from_detached:  # nowhere is there more or less than before
        check_entry_name(destination.path, new, moved.name)
        put_inode(tx, moved)
        touch(tx, parent)
        return
    counts = subtree(tx, inode)
    shared = 0  # directories above both
    if not from_detached:
        for a, b in zip(old, new, strict=False):
            if a.id != b.id:
                break
            shared += 1
        remove_entry(tx, old, counts, skip=shared)
    add_inode(tx, destination.path, new, moved)
    add_entry(tx, destination.path, new, counts, skip=shared)
    if is_marked(moved):
        mark(tx, (*new, moved))


def _entered(inode: Inode, left: int, reached: int) -> tuple[int, int] | None:
    """Which snapshots see an inode come from outside, given the latest on either side."""
    before = inode.entered
    if reached <= left:
        return before
    if before is not None and before[1] >= left:
        left = min(left, before[0])
    return (left, reached)
