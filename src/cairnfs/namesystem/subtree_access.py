"""Whether a caller may do something in every directory of a subtree, as HDFS asks it of some calls.

It walks, more and more at a time: on a shared store an operation runs again, with all that it had
read, for what it lacks.  So what is read in the end is little more than twice what is there.
"""

from __future__ import annotations

import itertools
from typing import Final

from cairnfs.errors import AccessControlException
from cairnfs.modes import STICKY_BIT
from cairnfs.namesystem.inodes import Inode
from cairnfs.namesystem.layered_children import children_of
from cairnfs.namesystem.layers import totals_of
from cairnfs.namesystem.paths import FsPath
from cairnfs.namesystem.permissions import Caller, check_access, check_sticky
from cairnfs.store.base import Count
from cairnfs.transaction.rows import Rows, ask_all

DIRECTORIES_MAX = 1_000_000
ENTRIES_MAX: Final = 100_000_000
_PAGE = 1000  # entries of a directory that are read first
_BATCH = 1000  # directories looked into together at first


def check_subtree_access(
    tx: Rows, caller: Caller, path: FsPath, top: Inode, access: int, *, to_delete: bool
) -> None:
    """The caller may do this in every directory at and below `top`.

    Whoever deletes needs nothing in an empty directory, but must be let by
    the sticky bit of each one.  The superuser is spared it.
    """
    if caller.is_superuser or not top.is_directory:
        return
    _check_size(tx, path, top)
    waiting = [(top, path)]
    batch = _BATCH
    while waiting:
        some, waiting = waiting[:batch], waiting[batch:]
        batch *= 2
        ask_all(lambda each: totals_of(tx, each[0]), some)
        below = ask_all(
            lambda each: _check_directory(tx, caller, *each, access, to_delete=to_delete), some
        )
        waiting += itertools.chain.from_iterable(below)


def _check_size(tx: Rows, path: FsPath, top: Inode) -> None:
    """Others wait meanwhile; and clones can make of a few directories more than anybody can see."""
    counts = totals_of(tx, top).counts
    directories, entries = counts[Count.DIRECTORIES], counts[Count.INODES]
    if directories > DIRECTORIES_MAX or entries > ENTRIES_MAX:
        raise AccessControlException(
            f"Permission denied: {path} has {directories} directories and {entries} entries, and"
            " all would have to be looked at; ask for parts of it, or ask the superuser"
        )


def _check_directory(
    tx: Rows, caller: Caller, directory: Inode, path: FsPath, access: int, *, to_delete: bool
) -> list[tuple[Inode, FsPath]]:
    """The same for one of them; the directories in it, if it has any."""
    totals = totals_of(tx, directory).counts
    if totals[Count.CHILDREN] or not to_delete:
        check_access(caller, directory, access, path)
    check_children = bool(
        to_delete and directory.mode & STICKY_BIT and caller.user != directory.owner
    )
    found: list[tuple[Inode, FsPath]] = []
    if not totals[Count.CHILDREN] or not (check_children or totals[Count.DIRECTORIES]):
        return found
    after, limit = b"", _PAGE
    while page := children_of(tx, directory, after, limit):
        after = page[-1].name
        limit *= 2
        for child in page:
            if check_children:
                check_sticky(caller, directory, child, path.child(child.name))
            if child.is_directory:
                found.append((child, path.child(child.name)))
    return found
