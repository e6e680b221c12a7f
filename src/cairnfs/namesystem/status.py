"""What callers are told about an inode: HDFS's file status.

Invariant: a directory's number of children is that of its totals, and so is its
modification time from its first change on; its row knows only when it was made.
No time is before 1970, whatever is stored: HDFS has no word for it.
"""

from __future__ import annotations

from typing import Final

from cairnfs.namesystem.answers import FileStatus
from cairnfs.namesystem.inodes import Inode, Kind
from cairnfs.namesystem.layers import totals_of
from cairnfs.store.base import Count, Totals
from cairnfs.transaction.rows import Rows

_CHILDREN: Final = int(Count.CHILDREN)
_DIRECTORY: Final = Kind.DIRECTORY


def status_of(tx: Rows, inode: Inode, name: bytes = b"", storage_policy: int = 0) -> FileStatus:
    """Describe an inode; of a directory, with the totals that are kept apart from it.

    Only listings tell names: a client appends the name to the path it asked about.
    """
    totals = totals_of(tx, inode) if inode.kind is _DIRECTORY else None
    return describe(inode, totals, name, storage_policy)


def describe(
    inode: Inode, totals: Totals | None, name: bytes = b"", storage_policy: int = 0
) -> FileStatus:
    """The same from records: a directory comes with its totals."""
    if totals is None:
        return _describe(inode, name, inode.mtime_ms, 0, storage_policy)
    mtime_ms = totals.mtime_ms if totals.touched else inode.mtime_ms
    return _describe(inode, name, mtime_ms, totals.counts[_CHILDREN], storage_policy)


def new_status(inode: Inode, storage_policy: int = 0) -> FileStatus:
    """Describe an inode that was just made: nothing is below it."""
    return _describe(inode, b"", inode.mtime_ms, 0, storage_policy)


def _describe(
    inode: Inode, name: bytes, mtime_ms: int, children: int, storage_policy: int = 0
) -> FileStatus:
    return FileStatus(
        inode.kind,
        name,
        inode.visible_bytes,
        inode.mode,
        inode.owner,
        inode.group,
        max(0, mtime_ms),
        max(0, inode.atime_ms),
        inode.target,
        inode.replication,
        inode.block_size_bytes,
        inode.id,
        children,
        inode.acl is not None,
        inode.under_construction,
        inode.is_snapshottable,
        storage_policy,
    )
