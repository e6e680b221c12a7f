"""Attributes of what exists: permission, owner, times; and asking what is allowed.

Invariant: a call that leaves an inode as it was writes no row, so it conflicts with
nobody; a directory's modification time goes to its totals, where children set it too.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from cairnfs.errors import (
    AccessControlException,
    FileNotFoundException,
    IllegalArgumentException,
    InvalidPathException,
)
from cairnfs.namesystem import permissions
from cairnfs.namesystem.inodes import Inode, InodeId
from cairnfs.namesystem.lookup import (
    key_of,
    resolve_owned,
    resolve_to_read,
    resolve_to_write,
)
from cairnfs.namesystem.paths import FsPath, check_text
from cairnfs.namesystem.permissions import Access, Caller
from cairnfs.store.schema import Table
from cairnfs.transaction.calls import operation
from cairnfs.transaction.transaction import Transaction

ACCESS_TIME_PRECISION_MS: Final = 3_600_000  # dfs.namenode.accesstime.precision
TIME_MAX_MS: Final = 2**63 - 1


@operation()
def set_permission(tx: Transaction, caller: Caller, path: FsPath, mode: int) -> None:
    """Change the mode; where there is an ACL, the group bits are its mask."""
    if path.is_exactly_reserved:
        raise InvalidPathException(f"Invalid path name {path}")
    mode = permissions.valid_mode(mode)
    _, inode = resolve_owned(tx, caller, path)
    _replace(tx, inode, mode=mode)


@operation()
def set_owner(
    tx: Transaction, caller: Caller, path: FsPath, owner: str | None, group: str | None
) -> None:
    """Give to another owner or group; None leaves either as it is.

    An owner who is not the superuser gives to nobody else, and only to groups
    of their own.
    """
    if path.is_exactly_reserved:
        raise InvalidPathException(f"Invalid path name {path}")
    for name in (owner, group):
        if name is not None:
            check_text(name, "user or group")
    _, inode = resolve_owned(tx, caller, path)
    if not caller.is_superuser:
        if owner is not None and owner != caller.user:
            raise AccessControlException(
                f"User {caller.user} is not a super user (non-super user cannot change owner)."
            )
        if group is not None and group not in caller.groups:
            raise AccessControlException(f"User {caller.user} does not belong to {group}")
    _replace(
        tx,
        inode,
        owner=inode.owner if owner is None else owner,
        group=inode.group if group is None else group,
    )


@operation()
def set_times(tx: Transaction, caller: Caller, path: FsPath, mtime_ms: int, atime_ms: int) -> None:
    """Set the times of modification and access; a negative one is left as it is."""
    for time_ms in (mtime_ms, atime_ms):
        if type(time_ms) is not int or time_ms > TIME_MAX_MS:
            raise IllegalArgumentException(f"{time_ms!r} is not a time in milliseconds")
    lookup = resolve_to_write(tx, caller, path)
    inode = lookup.target
    if inode is None:
        raise FileNotFoundException(f"File/Directory {lookup.path} does not exist.")
    permissions.check_access(caller, inode, Access.WRITE, lookup.path)

    if mtime_ms >= 0 and inode.is_directory:
        tx.add(inode.id, (), mtime_ms=mtime_ms)  # kept apart, see Totals
        mtime_ms = -1
    _replace(
        tx,
        inode,
        mtime_ms=mtime_ms if mtime_ms >= 0 else inode.mtime_ms,
        atime_ms=atime_ms if atime_ms >= 0 else inode.atime_ms,
    )


@operation()
def update_access_time(tx: Transaction, id: InodeId) -> None:
    """The file was read: note it, if what is noted is older than the precision."""
    inode: Inode | None = tx.get_by_id(Table.INODES, id)
    if inode is not None and access_time_is_stale(inode, tx.now_ms):
        _replace(tx, inode, atime_ms=tx.now_ms)


def access_time_is_stale(inode: Inode, now_ms: int) -> bool:
    return now_ms > inode.atime_ms + ACCESS_TIME_PRECISION_MS


@operation(mutates=False)
def check_access(tx: Transaction, caller: Caller, path: FsPath, access: int) -> None:
    """Raise AccessControlException unless the caller has `access` to the path."""
    if access not in range(8):
        raise IllegalArgumentException(f"There is no access {access}")
    lookup = resolve_to_read(tx, caller, path)
    if lookup.target is None:
        raise FileNotFoundException(f"Path not found: {lookup.path}")
    permissions.check_access(caller, lookup.target, access, lookup.path)


def _replace(tx: Transaction, inode: Inode, **changes: object) -> None:
    """Write the inode with other attributes, if they are other ones."""
    changed = replace(inode, **changes)
    if changed != inode:
        tx.put(key_of(inode), changed)
