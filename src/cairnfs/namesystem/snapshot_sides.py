"""From a path and the names of two snapshots to the states that are compared."""

from __future__ import annotations

import msgspec

from cairnfs.errors import FileNotFoundException, SnapshotException
from cairnfs.namesystem.counterparts import Names, Side
from cairnfs.namesystem.identity import Finder
from cairnfs.namesystem.inodes import Inode, Origin
from cairnfs.namesystem.layers import child_of, owner_of_content
from cairnfs.namesystem.lookup import Lookup, resolve_to_read
from cairnfs.namesystem.paths import FsPath
from cairnfs.namesystem.permissions import Access, Caller, check_access, check_traverse
from cairnfs.namesystem.snapshot_comparison import Comparison
from cairnfs.namesystem.snapshot_records import Snapshot, snapshot_key
from cairnfs.namesystem.subtree_access import check_subtree_access
from cairnfs.store.base import PRESENT
from cairnfs.store.schema import Table
from cairnfs.transaction.transaction import Transaction

_NOW = "."  # no snapshot has that name
ORIGIN = ":origin"  # nor this one; of a clone: what it began as


def compare(
    tx: Transaction, caller: Caller, path: FsPath, old: str, new: str, *, is_first: bool
) -> Comparison:
    """Two snapshots of `path`, a directory with snapshots or below one; an empty name means now.

    Of a clone, ORIGIN is what it began as, whether or not it has snapshots.

    Names are told of everything below, so the caller must be allowed to read all of it; pages
    after the first one look only at the directories that they come to.
    """
    lookup = resolve_to_read(tx, caller, path)
    before, after = _find_sides(tx, caller, lookup, (old, new))

    def check(directory: Inode, names: Names) -> None:
        where = lookup.path
        for name in names:
            where = where.child(name)
        check_access(caller, directory, Access.READ, where)

    for side in (before, after):
        check_access(caller, side.root, Access.READ, lookup.path)
        if is_first:
            check_subtree_access(
                side.rows, caller, lookup.path, side.root, Access.READ, to_delete=False
            )
    return Comparison(before, after, check)


def _find_sides(
    tx: Transaction, caller: Caller, lookup: Lookup, names: tuple[str, str]
) -> tuple[Side, Side]:
    """Both states of what is, or in one of them was, at a path."""
    owner = _clone(lookup) if ORIGIN in names else _owner_of_snapshots(lookup)
    target = lookup.target
    if target is not None:
        check_access(caller, target, Access.READ, lookup.path)
    tops = [_top(tx, lookup, owner, name) for name in names]
    below = lookup.path.components[_depth(lookup, owner) :]
    there = [_at(side, below, caller, lookup.path) for side in tops]
    lacking = ""
    for candidate in (target, *there):
        if candidate is None:
            continue
        sides = [_side_of(*each, candidate) for each in zip(tops, there, strict=True)]
        if sides[0] is not None and sides[1] is not None:
            return sides[0], sides[1]
        lacking = lacking or names[0 if sides[0] is None else 1] or _NOW
    if not lacking:
        raise FileNotFoundException(f"Directory does not exist: {lookup.path}")
    where = {_NOW: "is not there now", ORIGIN: "was not in the origin of the clone"}
    raise FileNotFoundException(
        f"{lookup.path} {where.get(lacking, f'was not in the snapshot {lacking}')}"
    )


def _owner_of_snapshots(lookup: Lookup) -> Inode:
    """The nearest directory at or above the path of which there are snapshots."""
    for inode in reversed(lookup.inodes):
        if inode.is_snapshottable:
            return inode
    if lookup.target is None:
        raise FileNotFoundException(f"Directory does not exist: {lookup.path}")
    raise SnapshotException(
        f"Directory is neither snapshottable nor under a snap root! It is {lookup.path}"
    )


def _clone(lookup: Lookup) -> Inode:
    """The nearest clone at or above the path."""
    for inode in reversed(lookup.inodes):
        # What a clone has below it knows its place there.
        if not inode.is_virtual and not inode.places and _origin_of(inode) is not None:
            return inode
    raise SnapshotException(
        f"{lookup.path} is not in a clone, or in one whose origin is gone: that is known as long as"
        " the snapshot is there that it was cloned from"
    )


def _origin_of(directory: Inode) -> Origin | None:
    """What a clone began as; roll-backs have put their own before it."""
    origin = directory.origin
    while origin is not None and origin.is_own:
        origin = origin.below
    return origin


def _depth(lookup: Lookup, owner: Inode) -> int:
    return next(i for i, inode in enumerate(lookup.inodes) if inode.id == owner.id)


def _top(tx: Transaction, lookup: Lookup, owner: Inode, name: str) -> Side:
    """The directory that has the snapshots, in one of them or now."""
    if not name:
        now = tx.at(PRESENT)
        return Side(now, now.get_by_id(Table.INODES, owner.id) or owner, PRESENT)
    if name == ORIGIN:
        return _at_birth(tx, owner)
    snapshot: Snapshot | None = tx.get(snapshot_key(owner.id, name.encode("utf-8", "replace")))
    if snapshot is None:
        raise SnapshotException(
            f"Cannot find the snapshot of directory {lookup.path} with name {name}"
        )
    return Side(tx.at(snapshot.txid), snapshot.root, snapshot.txid)


def _at_birth(tx: Transaction, clone: Inode) -> Side:
    """A clone as it began: with what its original was, and nothing of its own."""
    origin = _origin_of(clone)
    assert origin is not None
    rows = tx.at(origin.txid)
    original = owner_of_content(rows, origin.content_id)
    assert original is not None, f"{origin} is held, but has no directory"
    root = msgspec.structs.replace(
        original,
        id=clone.id,
        known_as=clone.known_as,
        places=(),
        shown_at=(),
        is_snapshottable=False,
        is_virtual=True,
        origin=origin,
        content_id=0,
    )
    return Side(rows, root, origin.txid, is_origin=True)


def _at(side: Side, names: Names, caller: Caller, path: FsPath) -> Inode | None:
    """What was at a path then, if the caller may go there."""
    way = [side.root]
    for name in names:
        child = child_of(side.rows, way[-1], name) if way[-1].is_directory else None
        if child is None:
            return None
        way.append(child)
    check_traverse(caller, tuple(way[:-1]), path)
    return way[-1]


def _side_of(top: Side, there: Inode | None, inode: Inode) -> Side | None:
    """The same moment, of something below: where it is now if it was there, or where it was."""
    if there is not None and there.identity == inode.identity:
        return top if there is top.root else Side(top.rows, there, top.txid)
    found = Finder(top.rows, top.root).find_before(inode)
    return Side(top.rows, found[-1], top.txid) if found else None
