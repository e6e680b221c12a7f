"""Directories: making, listing and summing them up."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from cairnfs.errors import (
    AccessControlException,
    FileAlreadyExistsException,
    FileNotFoundException,
)
from cairnfs.namesystem.acls import inherit_default
from cairnfs.namesystem.inodes import Inode, InodeId, Kind, Quota
from cairnfs.namesystem.lookup import (
    Lookup,
    check_ancestor_access,
    check_parent_exists,
    inode_key,
    resolve_link,
    resolve_to_create,
    resolve_to_read,
)
from cairnfs.namesystem.paths import FsPath, check_component_length
from cairnfs.namesystem.permissions import Access, Caller, check_access
from cairnfs.namesystem.quotas import ONE_DIRECTORY, add_entry, charged_space
from cairnfs.namesystem.status import FileStatus, status_of
from cairnfs.store.base import Count
from cairnfs.store.schema import Table
from cairnfs.transaction.calls import operation
from cairnfs.transaction.transaction import Transaction

LISTING_LIMIT = 1000  # dfs.ls.limit
OWNER_WRITE_EXECUTE = 0o300


class Listing(msgspec.Struct, frozen=True, gc=False):
    """A page of a directory, in order of the names' bytes."""

    entries: list[FileStatus]
    remaining: int


class ContentSummary(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What is at and below a path."""

    length_bytes: int
    files: int
    directories: int
    symlinks: int
    space_bytes: int
    quota: Quota | None
    type_bytes: tuple[int, ...]  # SSD, DISK, ARCHIVE, PROVIDED, NVDIMM

    @property
    def inodes(self) -> int:
        """What counts against a namespace quota."""
        return self.files + self.directories + self.symlinks


@operation()
def mkdirs(
    tx: Transaction, caller: Caller, path: FsPath, mode: int, unmasked: int | None, create_parents: bool
) -> bool:
    """Create a directory; an existing directory counts as success."""
    path.check_length("mkdirs")
    lookup = resolve_to_create(tx, caller, path)
    if lookup.target is not None:
        if not lookup.target.is_directory:
            raise FileAlreadyExistsException(f"Path is not a directory: {path}")
        return True

    check_ancestor_access(caller, lookup, Access.WRITE)
    if not create_parents:
        check_parent_exists(lookup)

    # Implied parents get u+wx, or the caller could not reach its directory.
    parents = add_directories(
        tx, caller, lookup, mode | OWNER_WRITE_EXECUTE, unmasked and unmasked | OWNER_WRITE_EXECUTE
    )
    add_directory(tx, caller, lookup.path, parents, lookup.missing[-1], mode, unmasked)
    return True


@operation(mutates=False)
def get_file_info(tx: Transaction, caller: Caller, path: FsPath) -> FileStatus | None:
    """The status of a path, or None if there is nothing."""
    try:
        target = resolve_to_read(tx, caller, path).target
    except AccessControlException:
        # Below a file there is nothing; HDFS says so to the superuser only.
        if caller.is_superuser:
            return None
        raise
    return None if target is None else status_of(tx, target)


@operation(mutates=False)
def get_file_link_info(tx: Transaction, caller: Caller, path: FsPath) -> FileStatus | None:
    """As get_file_info, but of a link itself."""
    target = resolve_link(tx, caller, path).target
    return None if target is None else status_of(tx, target)


@operation(mutates=False)
def get_listing(
    tx: Transaction, caller: Caller, path: FsPath, start_after: bytes, limit: int = LISTING_LIMIT
) -> Listing | None:
    """A page of a directory behind `start_after`; of a file, the file itself."""
    lookup = resolve_link(tx, caller, path)
    target = lookup.target
    if target is None:
        return None
    if not target.is_directory:
        return Listing([status_of(tx, target)], 0)
    check_access(caller, target, Access.READ_EXECUTE, lookup.path)
    page = tx.scan(Table.INODES, target.id, start_after, limit + 1)
    entries = [status_of(tx, inode) for _, inode in page[:limit]]
    if len(page) <= limit:
        return Listing(entries, 0)
    # How many are left matters to nobody, only whether there are: a count of
    # the names before `start_after` would cost a walk.
    children = tx.totals(target.id).counts[Count.CHILDREN]
    return Listing(entries, max(1, children - len(entries)))


@operation(mutates=False)
def get_content_summary(tx: Transaction, caller: Caller, path: FsPath) -> ContentSummary:
    """Everything at and below a path, from the totals that are kept up to date."""
    lookup = resolve_link(tx, caller, path)
    target = lookup.target
    if target is None:
        raise FileNotFoundException(f"File does not exist: {path}")
    if target.is_directory:
        check_access(caller, target, Access.READ_EXECUTE, lookup.path)
        counts = tx.totals(target.id).counts
        return ContentSummary(
            counts[Count.LENGTH_BYTES],
            counts[Count.FILES],
            counts[Count.DIRECTORIES] + 1,
            counts[Count.SYMLINKS],
            counts[Count.SPACE_BYTES],
            target.quota,
            counts[Count.SSD_BYTES : Count.NVDIMM_BYTES + 1],
        )
    if target.is_symlink:
        return ContentSummary(0, 0, 0, 1, 0, None, (0,) * 5)
    space = charged_space(target)
    return ContentSummary(target.length_bytes, 1, 0, 0, space, None, (0, space, 0, 0, 0))


def add_directories(
    tx: Transaction, caller: Caller, lookup: Lookup, mode: int, unmasked: int | None
) -> Sequence[Inode]:
    """Make the missing directories above the path's last name; returns all above it."""
    parents = list(lookup.ancestors)
    for name in lookup.missing[:-1]:
        parents.append(add_directory(tx, caller, lookup.path, parents, name, mode, unmasked))
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
    parent = parents[-1]
    mode, acl = inherit_default(parent.acl, mode, unmasked, is_directory=True)
    directory = Inode(
        id=InodeId(tx.next_inode_id()),
        parent_id=parent.id,
        name=name,
        kind=Kind.DIRECTORY,
        mode=mode,
        owner=caller.user,
        group=parent.group,
        mtime_ms=tx.now_ms,
        atime_ms=0,
        acl=acl,
    )
    add_inode(tx, path, parents, directory)
    add_entry(tx, path, parents, ONE_DIRECTORY)
    return directory


def add_inode(tx: Transaction, path: FsPath, parents: Sequence[Inode], inode: Inode) -> None:
    """Write a new inode under a name that is free; limits are checked here."""
    if path.is_reserved or path.snapshot_index >= 0:
        path.check_not_reserved_for_creation()
    if len(inode.name) > 255:
        check_component_length(inode.name, path.ancestor(len(parents) - 1))
    key = inode_key(inode.parent_id, inode.name)
    assert tx.get(key) is None, f"{key} is taken"
    tx.put(key, inode)

