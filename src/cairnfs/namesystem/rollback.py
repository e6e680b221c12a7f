"""Roll-back, in place, and clones: each is a directory that gets another one's past as its content.

Both take constant time, and readers see what was before or what is after.  What is replaced
by a roll-back becomes an orphan.  A snapshot shows it as it was just before: it is taken by the
very transaction that rolls back, so nothing that was acknowledged falls between the two.

Directories and files below that have snapshots of their own keep them: they are brought to where
they were, as they were.  A roll-back that would remove one of them is refused.  It may be that of
`/`, too, whose row stays as any other's.
"""

from __future__ import annotations

import itertools
from types import NoneType
from typing import NamedTuple

import msgspec

from cairnfs.blocks.records import block_key
from cairnfs.errors import (
    FileAlreadyExistsException,
    FileNotFoundException,
    SnapshotException,
)
from cairnfs.namesystem import inheritance, leases
from cairnfs.namesystem.delete import detach_blocks
from cairnfs.namesystem.directories import add_inode
from cairnfs.namesystem.identity import Finder
from cairnfs.namesystem.inodes import ROOT_ID, Inode, InodeId, Kind, Origin
from cairnfs.namesystem.layers import (
    LAYERS_MAX,
    Content,
    child_of,
    content_key,
    copied,
    copy_blocks,
    count_layers,
    forget_layered,
    materialize,
    note_layered,
    of_another,
    pin,
    share,
    shared_blocks,
    totals_of,
)
from cairnfs.namesystem.lookup import (
    Lookup,
    check_ancestor_access,
    check_parent_exists,
    key_of,
    paths_of,
    resolve_owned,
    resolve_to_create,
    resolve_to_read,
)
from cairnfs.namesystem.orphans import Orphan, orphan_key
from cairnfs.namesystem.paths import DOT_SNAPSHOT, FsPath
from cairnfs.namesystem.permissions import Access, Caller, check_access, check_superuser
from cairnfs.namesystem.policy_changes import note_clone, note_rollback
from cairnfs.namesystem.quotas import add_entry, check_copied, subtree
from cairnfs.namesystem.snapshot_records import ROOT_SNAPSHOT_KEY, RootSnapshot, Snapshot
from cairnfs.namesystem.snapshots import (
    find_snapshot,
    forget_snapshottable,
    take_as_it_was,
)
from cairnfs.store.base import Count, Totals
from cairnfs.store.schema import NUMBER, Table
from cairnfs.transaction.calls import operation
from cairnfs.transaction.moments import LATEST_KEY, Moment
from cairnfs.transaction.rows import PastRows, ask_all
from cairnfs.transaction.transaction import Counts, Transaction

_PAGE = 1000
_KEPT = (
    *("id", "parent_id", "name", "covered_txid", "is_snapshottable", "snapshots"),
    *("known_as", "places", "shown_at", "declared"),
)


@operation(stored_reply=str, solitary=True)
def rollback_snapshot(
    tx: Transaction, caller: Caller, path: FsPath, name: str, safety: str = ""
) -> str:
    """Bring a directory or file back to what it was in one of its snapshots.

    What is given up is kept in another one, which `safety` names; returned is what it is called.
    """
    lookup, inode = resolve_owned(tx, caller, path)
    if not inode.is_snapshottable:
        raise SnapshotException(
            f"Directory is not a snapshottable directory: {lookup.path}; it goes back with the"
            " one above whose snapshot it is in, or copy what it was from there (cairn fs -cp -p)"
        )
    snapshot = find_snapshot(tx, inode, name)
    if snapshot is None:
        raise SnapshotException(
            f"Cannot roll {lookup.path} back to snapshot {name}: it does not exist; those that do"
            f" are in {lookup.path.child(DOT_SNAPSHOT)}"
        )
    return roll_back(tx, lookup, inode, snapshot, safety)


@operation(stored_reply=tuple[str, ...], solitary=True)
def rollback_snapshots(
    tx: Transaction, caller: Caller, paths: tuple[FsPath, ...], name: str, safety: str
) -> tuple[str, ...]:
    """The same for several, each to its snapshot of that name: all of them, or none."""
    found = [resolve_owned(tx, caller, path)[0].path for path in paths]
    found.sort(key=lambda path: path.components)  # what is below a directory comes next to it
    for above, below in itertools.pairwise(found):
        if above == below or above.is_ancestor_of(below):
            raise SnapshotException(
                f"{above} and {below} cannot be rolled back together: one is in the other"
            )
    # They have nothing to do with each other, so each may lack rows of its own: see `ask_all`.
    return tuple(
        ask_all(lambda path: rollback_snapshot.function(tx, caller, path, name, safety), paths)
    )


def roll_back(
    tx: Transaction, lookup: Lookup, inode: Inode, snapshot: Snapshot, safety: str
) -> str:
    """The same for what was found, whoever may do it."""
    kept = _roll_back(tx, lookup, inode, snapshot, safety)
    root: RootSnapshot | None = tx.get(ROOT_SNAPSHOT_KEY) if inode.id == ROOT_ID else None
    if root is not None:
        # If nothing had changed since another snapshot, that one serves, and is not ours.
        added = (kept.encode(),) if kept and kept == safety else ()
        when_ms = tx.now_ms if snapshot.txid == root.txid else 0
        noted = msgspec.structs.replace(root, rolled_back_ms=when_ms, safety=(*root.safety, *added))
        tx.put(ROOT_SNAPSHOT_KEY, noted)
    return kept


def _roll_back(
    tx: Transaction, lookup: Lookup, inode: Inode, snapshot: Snapshot, safety: str
) -> str:
    # What is below may be in later snapshots than the directory itself.
    latest: Moment = tx.get(LATEST_KEY)
    tx.cover(latest.txid)
    then = tx.at(snapshot.txid)
    nested = find_nested(tx, lookup, inode, snapshot)
    _check_nothing_hinders(lookup, nested)
    for then_below in (snapshot.root, *(each.way[-1] for each in nested if each.way)):
        _check_layers(lookup.path, then_below.origin, "rolled back")
    if safety:
        inode, safety = take_as_it_was(tx, lookup, inode, safety)
    root = inheritance.rolled_back(lookup.inodes[0], snapshot, snapshot.root, tx.txid)
    if inode.is_file:
        restored = _restore_file(tx, inode, root, then)
        note_rollback(tx, lookup, snapshot, restored)
        _change_totals(tx, lookup, inode, subtree(tx, inode), subtree(tx, restored))
        return safety
    before, after = tx.totals(inode.id), copied(then.totals(inode.id))
    restored = _restore_directory(tx, inode, root, snapshot.txid)
    note_rollback(tx, lookup, snapshot, restored)
    _bring_totals(tx, restored, before, after)
    _change_totals(tx, lookup, inode, _below(before), _below(after))
    # The upper ones first; those that are as deep have nothing to do with each other.
    by_depth = sorted(nested, key=lambda each: each.depth)
    for _, group in itertools.groupby(by_depth, key=lambda each: each.depth):
        ask_all(lambda each: _bring_back(tx, restored, each, then), group)
    return safety


class Nested(NamedTuple):
    """Something below a directory that snapshots may be taken of."""

    path: FsPath
    inode: Inode
    way: tuple[Inode, ...] | None  # to it from the directory in the snapshot, if it was there

    @property
    def depth(self) -> int:
        return len(self.way or ())

    @property
    def hinders(self) -> bool:
        """Whether the directory cannot be rolled back: it would go, with its snapshots."""
        return self.way is None and self.inode.snapshots > 0


def find_nested(tx: Transaction, lookup: Lookup, top: Inode, snapshot: Snapshot) -> list[Nested]:
    """What snapshots may be taken of below a directory that is to go back to this one."""
    in_snapshot = Finder(tx.at(snapshot.txid), snapshot.root)
    below: list[tuple[FsPath, Inode]] = []
    after = b""
    while top.is_directory and (page := tx.scan(Table.SNAPSHOTTABLE, 0, after, _PAGE)):
        after = page[-1][0][2]
        ids = [InodeId(NUMBER.unpack(key[2])[0]) for key, _ in page]
        below += [
            (path, tx.get_by_id(Table.INODES, id))
            for id, path in zip(ids, paths_of(tx, ids), strict=True)
            if path is not None and lookup.path.is_ancestor_of(path)
        ]
    ways = in_snapshot.find_all_before([inode for _, inode in below])
    return [Nested(*found, way) for found, way in zip(below, ways, strict=True)]


@operation(stored_reply=NoneType, solitary=True)
def clone_snapshot(
    tx: Transaction, caller: Caller, path: FsPath, name: str, destination: FsPath
) -> None:
    """Make a directory or file that starts as a snapshot of another one, and goes its own way."""
    source = resolve_to_read(tx, caller, path)
    origin = source.target
    if origin is None:
        raise FileNotFoundException(f"Directory does not exist: {source.path}")
    snapshot = find_snapshot(tx, origin, name) if origin.is_snapshottable else None
    if snapshot is None:
        raise SnapshotException(f"There is no snapshot {name} of {source.path} to be cloned")
    check_access(caller, snapshot.root, Access.READ, source.path)
    if not caller.is_superuser and caller.user != snapshot.root.owner:
        owner = snapshot.root.owner
        check_superuser(caller, f"clone snapshot {name} of {source.path}, which is {owner}'s")
    _check_layers(source.path, snapshot.root.origin, "cloned")
    destination.check_length("clone")
    lookup = resolve_to_create(tx, caller, destination)
    if lookup.target is not None:
        raise FileAlreadyExistsException(f"{lookup.path} already exists: nothing was cloned")
    check_parent_exists(lookup)
    check_ancestor_access(caller, lookup, Access.WRITE)
    clone = msgspec.structs.replace(
        snapshot.root.closed,
        id=InodeId(tx.next_inode_id()),
        parent_id=InodeId(lookup.deepest.children_id),
        name=lookup.path.name,
        covered_txid=0,
        is_snapshottable=False,
        snapshots=0,
        content_id=0,
        origin=None,
        known_as=0,
        places=(),
        shown_at=(),
        declared=(),
    )
    clone = inheritance.cloned(lookup.inodes[0], snapshot, clone, tx.txid)
    then = tx.at(snapshot.txid)
    if clone.is_directory:
        root = snapshot.root
        held = pin(tx, origin.id, root.children_id, snapshot.txid, of_another(root.origin))
        clone = msgspec.structs.replace(clone, origin=held)
        note_layered(tx, held, clone.id)
        totals = copied(then.totals(root.id))
        add_inode(tx, lookup.path, lookup.ancestors, clone)
        tx.add(clone.id, tuple(enumerate(totals.counts)), mtime_ms=tx.now_ms)
        own = ((int(Count.DIRECTORIES), 1), (int(Count.INODES), 1))
        counts = _sum(_below(totals), own)
    else:
        add_inode(tx, lookup.path, lookup.ancestors, clone)
        copy_blocks(tx, _as_virtual(snapshot.root, snapshot.txid), clone.id)
        counts = subtree(tx, clone)
    check_copied(tx, lookup.path, lookup.ancestors, counts)
    add_entry(tx, lookup.path, lookup.ancestors, counts)
    note_clone(tx, source, snapshot, lookup, clone)


def _restore_directory(tx: Transaction, now: Inode, then: Inode, txid: int) -> Inode:
    """Give a directory what it had: its attributes, and its content as an origin."""
    content = tx.next_inode_id()
    if then.origin is not None and then.is_virtual:
        origin = share(tx, then.origin)
    else:
        # By the id that it had: what is below was below that one.
        origin = pin(tx, then.id, then.children_id, txid, then.origin, is_own=True)
    restored = msgspec.structs.replace(_with_attributes_of(now, then), content_id=content)
    restored = msgspec.structs.replace(restored, origin=origin)
    if now.origin is not None:
        forget_layered(tx, now.origin, now.id)
    note_layered(tx, origin, now.id)
    tx.put(key_of(now), restored)
    tx.put_new(content_key(content), Content(now.id))
    orphan = Orphan(Kind.DIRECTORY, inode=now, is_content=True)
    key = orphan_key(now.children_id)
    tx.get(key)
    tx.put(key, orphan)
    return restored


def _restore_file(tx: Transaction, now: Inode, then: Inode, rows: PastRows) -> Inode:
    """Give a file what it had: its attributes, and pointers to the blocks of then."""
    if now.under_construction:
        leases.remove(tx, now.id)
    blocks = shared_blocks(tx, then if then.is_virtual else _as_virtual(then, rows.txid))
    current = [block_key(now.id, index) for index in range(now.block_count)]
    tx.need(block_key(now.id, index) for index in range(max(now.block_count, len(blocks))))
    detach_blocks(tx, now, [(key, tx.get(key)) for key in current])
    for index, block in enumerate(blocks):
        key = block_key(now.id, index)
        tx.get(key)
        tx.put(key, block)
    restored = _with_attributes_of(now, then.closed)
    tx.put(key_of(now), restored)
    return restored


def _bring_back(tx: Transaction, top: Inode, nested: Nested, rows: PastRows) -> None:
    """Put what has snapshots of its own to where it was, as it was, if it was there."""
    now = nested.inode
    if nested.way is None:
        forget_snapshottable(tx, now)
        return
    *above, then = nested.way
    directory = top
    for each in above:
        child = child_of(tx, directory, each.name)
        assert child is not None, f"{each.name!r} was on the way to inode {now.id}"
        directory = materialize(tx, (directory, child))[-1]
        tx.add(directory.id, ((int(Count.SNAPSHOTS), now.snapshots),))
    tx.delete(key_of(now))
    place = msgspec.structs.replace(now, parent_id=InodeId(directory.children_id), name=then.name)
    key = key_of(place)
    tx.get(key)
    tx.put(key, place)
    if now.is_directory:
        before, after = tx.totals(now.id), copied(totals_of(rows, then))
        restored = _restore_directory(tx, place, then, rows.txid)
        _bring_totals(tx, restored, before, after)
        # Those that it still has below it add theirs.
        tx.add(now.id, ((int(Count.SNAPSHOTS), -before.counts[Count.SNAPSHOTS]),))
    else:
        _restore_file(tx, place, then, rows)


def _with_attributes_of(now: Inode, then: Inode) -> Inode:
    kept = {field: getattr(now, field) for field in _KEPT}
    return msgspec.structs.replace(then, is_virtual=False, **kept)


def _check_nothing_hinders(lookup: Lookup, nested: list[Nested]) -> None:
    for each in nested:
        if each.hinders:
            raise SnapshotException(
                f"{lookup.path} cannot be rolled back: this would remove {each.path}, which has"
                " snapshots of its own; delete those first"
            )


def _check_layers(path: FsPath, origin: Origin | None, done: str) -> None:
    if count_layers(origin) >= LAYERS_MAX:
        raise SnapshotException(
            f"{path} cannot be {done} by this snapshot: what it shows comes from {LAYERS_MAX}"
            " others that had it from each other; use an earlier one, or take one later: what the"
            " directory has from snapshots gets rows of its own in the background"
        )


def _below(totals: Totals) -> Counts:
    """What a directory's content counts for in the directories above."""
    return tuple(
        (count, number)
        for count, number in enumerate(totals.counts)
        if count not in (Count.CHILDREN, Count.SNAPSHOTS)
    )


def _bring_totals(tx: Transaction, restored: Inode, before: Totals, after: Totals) -> None:
    """A directory has what it had, and its time; snapshots below it stay."""
    changes = tuple(
        (count, after.counts[count] - number)
        for count, number in enumerate(before.counts)
        if count != Count.SNAPSHOTS
    )
    mtime_ms = after.mtime_ms if after.touched else restored.mtime_ms
    tx.add(restored.id, changes, mtime_ms=mtime_ms)


def _change_totals(
    tx: Transaction, lookup: Lookup, inode: Inode, before: Counts, after: Counts
) -> None:
    """The directories above have more by it, or less."""
    changes = _sum(after, tuple((count, -number) for count, number in before))
    if lookup.ancestors:
        check_copied(tx, lookup.path, lookup.ancestors, changes)
    tx.add_to_each([each.id for each in lookup.ancestors], changes)


def _sum(left: Counts, right: Counts) -> Counts:
    sums = dict(left)
    for count, number in right:
        sums[count] = sums.get(count, 0) + number
    return tuple(sums.items())


def _as_virtual(file: Inode, txid: int) -> Inode:
    return msgspec.structs.replace(file.closed, is_virtual=True, origin=Origin(file.id, txid, 0))
