"""Listings of directories, a page at a time.

As a module of its own since it is left as it is by who compiles the others: loops over thousands
of records, whose fields compiled code comes to by a longer way.
"""

from __future__ import annotations

from typing import Final

import msgspec

from cairnfs.errors import (
    DirectoryListingStartAfterNotFoundException,
    FileNotFoundException,
    IllegalArgumentException,
)
from cairnfs.namesystem.answers import FileStatus
from cairnfs.namesystem.directories import reserved_status
from cairnfs.namesystem.inodes import Inode, InodeId, Kind
from cairnfs.namesystem.layered_children import children_of
from cairnfs.namesystem.layers import totals_of
from cairnfs.namesystem.lookup import resolve, resolve_to_read
from cairnfs.namesystem.paths import DOT_INODES, RAW, FsPath
from cairnfs.namesystem.permissions import Access, Caller, check_access
from cairnfs.namesystem.policy_changes import policies_of_page, policy_to_tell
from cairnfs.namesystem.status import describe
from cairnfs.store.base import Count, Totals
from cairnfs.store.schema import Table
from cairnfs.transaction.calls import operation
from cairnfs.transaction.transaction import Transaction

LISTING_LIMIT: Final = 1000  # dfs.ls.limit

_CHILDREN: Final = int(Count.CHILDREN)
_DIRECTORY: Final = Kind.DIRECTORY
_READ_EXECUTE: Final = Access.READ_EXECUTE.value


class Listing(msgspec.Struct, frozen=True, gc=False):
    """A page of a directory, in order of the names' bytes."""

    entries: list[FileStatus]
    remaining: int


class Page(msgspec.Struct, frozen=True, gc=False):
    """The same as records; of each directory, what is kept apart from its own."""

    inodes: list[Inode]
    totals: dict[bytes, Totals]  # by name: what is shown by an origin may have the id of another
    remaining: int
    tells_names: bool = True  # or it is of a file, whose path the caller knows
    policies: tuple[int, ...] = ()  # of each inode, if any was ever chosen in the file system


@operation(mutates=False)
def get_listing(
    tx: Transaction, caller: Caller, path: FsPath, start_after: bytes, limit: int = LISTING_LIMIT
) -> Listing | None:
    """A page of a directory behind `start_after`; of a file, the file itself."""
    if path.is_exactly_reserved:
        _check_limit(limit)
        return Listing([reserved_status(tx, name) for name in (DOT_INODES, RAW)], 0)
    page: Page | None = get_listed_inodes.function(tx, caller, path, start_after, limit)
    if page is None:
        return None
    return Listing(describe_page(page), page.remaining)


def describe_page(page: Page) -> list[FileStatus]:
    """What callers are told of the inodes of a page."""
    policies = page.policies or (0,) * len(page.inodes)
    return [
        describe(
            inode, page.totals.get(inode.name), inode.name if page.tells_names else b"", policy
        )
        for inode, policy in zip(page.inodes, policies, strict=True)
    ]


@operation(mutates=False)
def get_listed_inodes(
    tx: Transaction, caller: Caller, path: FsPath, start_after: bytes, limit: int = LISTING_LIMIT
) -> Page | None:
    """What `get_listing` tells of, as records, for whoever describes them in their own way."""
    _check_limit(limit)
    limit = min(limit, LISTING_LIMIT)
    lookup = resolve_to_read(tx, caller, path)
    start_after = _name_to_start_after(tx, start_after)
    target = lookup.target
    if target is None:
        return None
    if not target.is_directory:
        return Page([target], {}, 0, tells_names=False, policies=(policy_to_tell(lookup),))
    check_access(caller, target, _READ_EXECUTE, lookup.path)
    if lookup.is_dot_snapshot:
        return _list_snapshots(tx, target.id, start_after, limit)
    rows = lookup.rows
    if lookup.snapshot is not None and not target.is_virtual:
        rows.need(totals=[target.id])  # or the page would have to be read once more for them
    inodes = children_of(rows, target, start_after, limit + 1)
    directories = [inode for inode in inodes if inode.kind is _DIRECTORY]
    rows.need(totals=[inode.id for inode in directories if not inode.is_virtual])
    totals = {inode.name: totals_of(rows, inode) for inode in directories}
    policies = policies_of_page(lookup, inodes[:limit])
    if len(inodes) <= limit:
        return Page(inodes, totals, 0, policies=policies)
    # How many are left matters to nobody, only whether there are: a count of
    # the names before `start_after` would cost a walk.
    children = totals_of(rows, target).counts[_CHILDREN]
    return Page(inodes[:limit], totals, max(1, children - limit), policies=policies)


def _list_snapshots(tx: Transaction, id: InodeId, start_after: bytes, limit: int) -> Page:
    """What is in `.snapshot`: each as its root was then, by the time it was taken."""
    found = tx.scan(Table.SNAPSHOTS, id, start_after, limit + 1)
    roots = [
        msgspec.structs.replace(
            snapshot.root, name=key[2], mtime_ms=snapshot.created_ms, is_snapshottable=False
        )
        for key, snapshot in found[:limit]
    ]
    return Page(roots, {}, len(found) - len(roots))


def _check_limit(limit: int) -> None:
    if type(limit) is not int or limit < 1:
        raise IllegalArgumentException(f"A listing of {limit} entries cannot be had")


def _name_to_start_after(tx: Transaction, start_after: bytes) -> bytes:
    """A listing may go on after an inode, whatever its name is by now."""
    if not start_after.startswith(b"/.reserved/"):
        return start_after
    path = FsPath.parse(start_after)
    try:
        return resolve(tx, path).path.name
    except FileNotFoundException:
        raise DirectoryListingStartAfterNotFoundException(f"Can't find startAfter {path}") from None
