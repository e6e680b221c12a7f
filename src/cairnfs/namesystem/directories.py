"""Directories: making them, telling of them and summing them up.

Invariant: whatever is added to a directory goes through `add_inode`, which checks
the limits, and `quotas.add_entry`, which checks the quotas and adds to the totals; what
only changes its name there, through `check_entry_name`, `put_inode` and `quotas.touch`.
The directory's own row does not change, so siblings never conflict.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from cairnfs.errors import (
    AccessControlException,
    FileAlreadyExistsException,
    FileNotFoundException,
    MaxDirectoryItemsExceededException,
)
from cairnfs.namesystem.acls import inherit_default
from cairnfs.namesystem.answers import ContentSummary, FileStatus
from cairnfs.namesystem.inodes import Inode, InodeId, Kind, Quota
from cairnfs.namesystem.layers import totals_of
from cairnfs.namesystem.lookup import (
    ROOT_KEY,
    Lookup,
    check_ancestor_access,
    check_parent_exists,
    inode_key,
    key_of,
    resolve_link,
    resolve_to_create,
    resolve_to_read,
)
from cairnfs.namesystem.paths import (
    COMPONENT_BYTES_MAX,
    FsPath,
    check_component_length,
)
from cairnfs.namesystem.permissions import Access, Caller, valid_mode
from cairnfs.namesystem.policy_changes import policy_to_tell
from cairnfs.namesystem.quotas import ONE_DIRECTORY, add_chain, add_entry, data_of, reported_quota
from cairnfs.namesystem.status import status_of
from cairnfs.namesystem.subtree_access import check_subtree_access
from cairnfs.store.base import Count
from cairnfs.transaction.calls import operation
from cairnfs.transaction.transaction import Transaction

DIRECTORY_ITEMS_MAX = 1024 * 1024  # dfs.namenode.fs-limits.max-directory-items
ITEMS_MARGIN: Final = 100_000  # more than a directory can grow by while a number is peeked at

_CHILDREN: Final = int(Count.CHILDREN)
_DIRECTORY: Final = Kind.DIRECTORY
_WRITE: Final = Access.WRITE.value
_READ_EXECUTE: Final = Access.READ_EXECUTE.value


@operation()
def mkdirs(
    tx: Transaction,
    caller: Caller,
    path: FsPath,
    mode: int,
    unmasked: int | None,
    create_parents: bool,
) -> bool:
    """Create a directory; an existing directory counts as success."""
    path.check_length("mkdirs")
    mode = valid_mode(mode)
    lookup = resolve_to_create(tx, caller, path)
    if lookup.target is not None:
        if not lookup.target.is_directory:
            raise FileAlreadyExistsException(f"Path is not a directory: {path}")
        return True

    check_ancestor_access(caller, lookup, _WRITE)
    if not create_parents:
        check_parent_exists(lookup)

    parents = add_directories(tx, caller, lookup, implied_mode(mode), unmasked)
    add_directory(tx, caller, lookup.path, parents, lookup.missing[-1], mode, unmasked)
    return True


@operation(mutates=False)
def get_file_info(tx: Transaction, caller: Caller, path: FsPath) -> FileStatus | None:
    """The status of a path, or None if there is nothing."""
    return _file_info(tx, caller, path, resolve_to_read)


@operation(mutates=False)
def get_file_link_info(tx: Transaction, caller: Caller, path: FsPath) -> FileStatus | None:
    """As get_file_info, but of a link itself."""
    return _file_info(tx, caller, path, resolve_link)


@operation(mutates=False)
def get_content_summary(tx: Transaction, caller: Caller, path: FsPath) -> ContentSummary:
    """Everything at and below a path, from the totals that are kept up to date."""
    lookup = resolve_link(tx, caller, path)
    target = lookup.target
    if target is None:
        raise FileNotFoundException(f"File does not exist: {lookup.path}")
    if target.is_directory:
        # HDFS adds up only what the caller may list: the superuser alone is spared the walk.
        rows = lookup.rows
        check_subtree_access(rows, caller, lookup.path, target, _READ_EXECUTE, to_delete=False)
        counts = totals_of(rows, target).counts
        return ContentSummary(
            counts[Count.LENGTH_BYTES],
            counts[Count.FILES],
            counts[Count.DIRECTORIES] + 1,
            counts[Count.SYMLINKS],
            counts[Count.SPACE_BYTES],
            reported_quota(target),
            counts[Count.SSD_BYTES : Count.NVDIMM_BYTES + 1],
        )
    if target.is_symlink:
        return ContentSummary(0, 0, 0, 1, 0, Quota(), (0,) * 5)
    data = dict(data_of(target))
    types = tuple(data.get(count, 0) for count in range(Count.SSD_BYTES, Count.NVDIMM_BYTES + 1))
    space_bytes = data[Count.SPACE_BYTES]
    return ContentSummary(target.visible_bytes, 1, 0, 0, space_bytes, Quota(), types)


def implied_mode(mode: int) -> int:
    """Implied parents get u+wx, or the caller could not reach what it makes; never sticky."""
    return mode & 0o777 | 0o300


def add_directories(
    tx: Transaction, caller: Caller, lookup: Lookup, mode: int, unmasked: int | None
) -> Sequence[Inode]:
    """Make the missing directories above the path's last name; returns all above it."""
    parents = list(lookup.ancestors)
    for name in lookup.missing[:-1]:
        parents.append(_make_directory(tx, caller, lookup.path, parents, name, mode, unmasked))
    existing = len(lookup.ancestors)
    if existing < len(parents):
        add_chain(tx, lookup.path, lookup.ancestors, parents[existing:])
    return parents


def add_directory(
    tx: Transaction,
    caller: Caller,
    path: FsPath,
    parents: Sequence[Inode],
    name: bytes,
    mode: int,
    unmasked: int | None,
) -> Inode:
    """Add one directory to the last of `parents`."""
    directory = _make_directory(tx, caller, path, parents, name, mode, unmasked)
    add_entry(tx, path, parents, ONE_DIRECTORY)
    return directory


def _make_directory(
    tx: Transaction,
    caller: Caller,
    path: FsPath,
    parents: Sequence[Inode],
    name: bytes,
    mode: int,
    unmasked: int | None,
) -> Inode:
    """Which nobody counts yet."""
    parent = parents[-1]
    mode, acl = inherit_default(parent.acl, mode, unmasked, is_directory=True)
    directory = Inode(
        id=InodeId(tx.next_inode_id()),
        parent_id=InodeId(parent.children_id),
        name=name,
        kind=_DIRECTORY,
        mode=mode,
        owner=caller.user,
        group=parent.group,
        mtime_ms=tx.now_ms,
        atime_ms=0,
        acl=acl,
    )
    add_inode(tx, path, parents, directory)
    return directory


def add_inode(tx: Transaction, path: FsPath, parents: Sequence[Inode], inode: Inode) -> None:
    """Write a new inode under a name that is free; limits are checked here."""
    check_limits(tx, path, parents, inode.name)
    put_inode(tx, inode)


def put_inode(tx: Transaction, inode: Inode) -> None:
    """Write an inode under a name that is free, and that was checked."""
    key = inode_key(inode.parent_id, inode.name)
    assert tx.get(key) is None, f"{key} is taken"
    tx.put(key, inode)


def check_limits(tx: Transaction, path: FsPath, parents: Sequence[Inode], name: bytes) -> None:
    """The name may be added to the last of `parents`: not reserved, not too long, not too many."""
    check_entry_name(path, parents, name)
    parent = parents[-1]
    if key_of(parent) in tx.writes:
        return  # made by this very call, hence empty
    # Far from the limit a number from a moment ago will do.
    if tx.peek_totals(parent.id).counts[_CHILDREN] >= DIRECTORY_ITEMS_MAX - ITEMS_MARGIN:
        items = tx.totals(parent.id).counts[_CHILDREN]
        items += tx.added(parent.id).get(_CHILDREN, 0)  # one may have been taken out by this call
        if items >= DIRECTORY_ITEMS_MAX:
            raise MaxDirectoryItemsExceededException(
                f"The directory item limit of {path.text_to(len(parents) - 1)} is exceeded:"
                f" limit={DIRECTORY_ITEMS_MAX} items={items}"
            )


def check_entry_name(path: FsPath, parents: Sequence[Inode], name: bytes) -> None:
    """An entry of the last of `parents` may have the name: not reserved, not too long."""
    if path.is_reserved or path.snapshot_index >= 0:
        path.check_not_reserved_for_creation()
    if len(name) > COMPONENT_BYTES_MAX:
        check_component_length(name, path.ancestor(len(parents) - 1))


def _file_info(
    tx: Transaction,
    caller: Caller,
    path: FsPath,
    resolve_path: Callable[[Transaction, Caller, FsPath], Lookup],
) -> FileStatus | None:
    if path.is_exactly_reserved:
        return reserved_status(tx, b"")
    try:
        lookup = resolve_path(tx, caller, path)
        target = lookup.target
    except AccessControlException:
        # Below a file there is nothing; HDFS says so to the superuser only.
        if caller.is_superuser:
            return None
        raise
    if lookup.is_dot_snapshot:
        return _status_without_inode(b"", mode=0o777, group="", time_ms=0)
    if target is None:
        return None
    return status_of(lookup.rows, target, storage_policy=policy_to_tell(lookup))


def reserved_status(tx: Transaction, name: bytes) -> FileStatus:
    """Of /.reserved and what is in it, which no inode stands for."""
    root: Inode = tx.get(ROOT_KEY)
    return _status_without_inode(name, mode=0o770, group=root.group, time_ms=max(0, root.mtime_ms))


def _status_without_inode(name: bytes, *, mode: int, group: str, time_ms: int) -> FileStatus:
    return FileStatus(
        kind=_DIRECTORY,
        name=name,
        length_bytes=0,
        mode=mode,
        owner="",
        group=group,
        mtime_ms=time_ms,
        atime_ms=time_ms,
        target=None,
        replication=0,
        block_size_bytes=0,
        id=InodeId(0),
        children=0,
        has_acl=False,
        under_construction=False,
    )
