"""Marks: rows that lead from a directory to what is special below it.

An inode is marked if snapshots may be taken of it, or if the superuser once set something on it
that its owner may not change (`GUARDED`).  A roll-back has to find all of these below a directory,
and must not look through the whole directory for that, nor through all such inodes of the
cluster.  So a marked inode, and each directory above it, has a row in MARKS under its parent's
content.  `nested` follows these rows downwards.

Invariant: an inode with `is_marked` has a row in MARKS, its parent has the flag `BELOW`, and so
has a row itself, up to the root.  A row may be left of an inode that is gone or no longer marked.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from cairnfs.namesystem.inodes import Inode
from cairnfs.store.schema import NUMBER, Key, Table
from cairnfs.transaction.records import register
from cairnfs.transaction.transaction import Transaction

BELOW: Final = 1  # flags of `Inode.marks`: rows in MARKS lead to something below the directory
GUARDED: Final = 2  # the inode itself has, or had, what only the superuser may change

_INODES = int(Table.INODES)
_MARKS = int(Table.MARKS)


class Mark(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A note that an inode is marked, or that something below it is.  Stored: append only."""


register(Table.MARKS, Mark)

MARKS_KEY: Key = (_MARKS, 0, b"")
"""The row that says that marks are complete; a namespace of an earlier version has none yet."""


def mark_key(content_id: int, inode_id: int) -> Key:
    """Where the mark of an inode is kept, in the directory that has its children under an id."""
    return (_MARKS, content_id, NUMBER.pack(inode_id))


def is_marked(inode: Inode) -> bool:
    """Whether an inode has a row in MARKS."""
    return inode.is_snapshottable or bool(inode.marks)


def put_mark(tx: Transaction, inode: Inode) -> None:
    """Write the row of one inode, if it has none; its parent is known to have the flag."""
    key = mark_key(inode.parent_id, inode.id)
    if tx.get(key) is None:
        tx.put(key, Mark())


def forget_mark(tx: Transaction, inode: Inode) -> None:
    """Remove the row of an inode that leaves its directory, or is no longer marked."""
    if is_marked(inode):
        key = mark_key(inode.parent_id, inode.id)
        if tx.get(key) is not None:
            tx.delete(key)


def mark(tx: Transaction, way: Sequence[Inode], flags: int = 0) -> Inode:
    """Mark the last inode of a way from the root, each of which has a row; return that inode.

    What this transaction itself has written to the rows is kept.
    """
    marked = _with_flags(tx, way[-1], flags)
    for parent, child in zip(reversed(way[:-1]), reversed(way), strict=False):
        put_mark(tx, child)
        before = _now(tx, parent).marks
        _with_flags(tx, parent, BELOW)
        if before & BELOW:
            break
    return marked


def _with_flags(tx: Transaction, inode: Inode, flags: int) -> Inode:
    now = _now(tx, inode)
    if flags & ~now.marks:
        now = msgspec.structs.replace(now, marks=now.marks | flags)
        tx.put((_INODES, now.parent_id, now.name), now)
    return now


def _now(tx: Transaction, inode: Inode) -> Inode:
    """The inode as this transaction has it."""
    found: Inode | None = tx.get((_INODES, inode.parent_id, inode.name))
    assert found is not None, f"inode {inode.id} is marked, but has no row"
    assert found.id == inode.id, f"inode {inode.id} is marked where inode {found.id} is"
    return found
