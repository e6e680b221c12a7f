"""Roll-back, in place, and clones: each is a directory that gets another one's past as its content.

Both take constant time, and readers see what was before or what is after.  What is replaced
by a roll-back becomes an orphan.  A snapshot shows it as it was just before: it is taken by the
very transaction that rolls back, so nothing that was acknowledged falls between the two.

Directories and files below that have snapshots of their own keep them: they are brought to where
they were, as they were.  A roll-back that would remove one of them is refused.  It may be that of
`/`, too, whose row stays as any other's.

A roll-back changes nothing that its user may not change (`guarded`), and is refused if a quota
would be exceeded by it.  Neither holds if the whole file system goes back to its root snapshot.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from cairnfs.blocks.records import block_key
from cairnfs.errors import (
    DSQuotaExceededException,
    NSQuotaExceededException,
    QuotaByStorageTypeExceededException,
    SnapshotException,
)
from cairnfs.namesystem import inheritance, leases
from cairnfs.namesystem.delete import detach_blocks
from cairnfs.namesystem.guarded import keep_guarded, keep_guarded_of
from cairnfs.namesystem.inodes import ROOT_ID, Inode, InodeId, Kind
from cairnfs.namesystem.layers import (
    Content,
    as_virtual,
    below_totals,
    check_layers,
    child_of,
    content_key,
    copied,
    forget_layered,
    materialize,
    note_layered,
    pin,
    share,
    shared_blocks,
    totals_of,
)
from cairnfs.namesystem.lookup import Lookup, key_of, resolve_owned
from cairnfs.namesystem.marks import GUARDED, forget_mark, is_marked, mark
from cairnfs.namesystem.nested import Nested, find_nested
from cairnfs.namesystem.orphans import Orphan, orphan_key
from cairnfs.namesystem.paths import DOT_SNAPSHOT, FsPath
from cairnfs.namesystem.permissions import Caller, check_superuser
from cairnfs.namesystem.policy_changes import note_rollback
from cairnfs.namesystem.quotas import (
    check_content,
    check_copied,
    check_quotas,
    difference,
    subtree,
)
from cairnfs.namesystem.snapshot_records import ROOT_SNAPSHOT_KEY, RootSnapshot, Snapshot
from cairnfs.namesystem.snapshots import (
    find_snapshot,
    forget_snapshottable,
    take_as_it_was,
)
from cairnfs.store.base import Count, Totals
from cairnfs.transaction.calls import operation
from cairnfs.transaction.moments import LATEST_KEY, Moment
from cairnfs.transaction.rows import PastRows, ask_all
from cairnfs.transaction.transaction import Counts, Transaction

_KEPT = (
    *("id", "parent_id", "name", "covered_txid", "is_snapshottable", "snapshots"),
    *("known_as", "places", "shown_at", "declared"),
)
_QUOTA_ERRORS = (
    NSQuotaExceededException,
    DSQuotaExceededException,
    QuotaByStorageTypeExceededException,
)


class Terms(NamedTuple):
    """On whose behalf a roll-back is made, and what limits it."""

    caller: Caller
    is_forced: bool = False  # quotas do not limit it
    is_whole: bool = False  # the whole file system goes back, with all that the superuser has set


@operation(stored_reply=str, solitary=True)
def rollback_snapshot(
    tx: Transaction,
    caller: Caller,
    path: FsPath,
    name: str,
    safety: str = "",
    is_forced: bool = False,
) -> str:
    """Bring a directory or file back to what it was in one of its snapshots.

    What is given up is kept in another snapshot, which `safety` names.  Returns the name of the
    snapshot that keeps it: another one, if nothing has changed since that was taken.  The
    superuser may force it, whatever quotas say.
    """
    if is_forced:
        check_superuser(caller, f"roll {path} back whatever quotas say")
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
    return roll_back(tx, lookup, inode, snapshot, safety, Terms(caller, is_forced))


@operation(stored_reply=tuple[str, ...], solitary=True)
def rollback_snapshots(
    tx: Transaction,
    caller: Caller,
    paths: tuple[FsPath, ...],
    name: str,
    safety: str,
    is_forced: bool = False,
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
        ask_all(
            lambda path: rollback_snapshot.function(tx, caller, path, name, safety, is_forced),
            paths,
        )
    )


def roll_back(
    tx: Transaction, lookup: Lookup, inode: Inode, snapshot: Snapshot, safety: str, terms: Terms
) -> str:
    """As `rollback_snapshot`, of what was found."""
    kept = _roll_back(tx, lookup, inode, snapshot, safety, terms)
    root: RootSnapshot | None = tx.get(ROOT_SNAPSHOT_KEY) if inode.id == ROOT_ID else None
    if root is not None:
        # If nothing had changed since another snapshot, that one serves, and is not ours.
        added = (kept.encode(),) if kept and kept == safety else ()
        when_ms = tx.now_ms if snapshot.txid == root.txid else 0
        noted = msgspec.structs.replace(root, rolled_back_ms=when_ms, safety=(*root.safety, *added))
        tx.put(ROOT_SNAPSHOT_KEY, noted)
    return kept


def check_allowed(
    tx: Transaction,
    lookup: Lookup,
    inode: Inode,
    snapshot: Snapshot,
    nested: Sequence[Nested],
    terms: Terms,
) -> None:
    """Raise an error if what was found cannot go back to a snapshot: nothing would be changed."""
    for each in nested:
        if each.hinders:
            raise SnapshotException(
                f"{lookup.path} cannot be rolled back: this would remove {each.path}, which has"
                " snapshots of its own; delete those first"
            )
    for below in (snapshot.root, *(each.way[-1] for each in nested if each.way)):
        check_layers(lookup.path.text, below.origin, "rolled back")
    if terms.is_forced or terms.is_whole:
        return
    try:
        _check_quotas(tx, lookup, inode, snapshot, nested)
    except _QUOTA_ERRORS as error:
        raise type(error)(
            f"{lookup.path} cannot be rolled back: {error} Nothing was changed. Have the quota"
            " raised, or have the superuser force the roll-back (cairn snapshot rollback --force)"
        ) from None


def _check_quotas(
    tx: Transaction, lookup: Lookup, inode: Inode, snapshot: Snapshot, nested: Sequence[Nested]
) -> None:
    """The quotas that there are now allow what a roll-back brings back, or it is no more."""
    rows = tx.at(snapshot.txid)
    if inode.is_file:
        then = _with_attributes_of(inode, snapshot.root.closed)
        changes = difference(subtree(tx, then), subtree(tx, inode))
    else:
        before, after = tx.totals(inode.id), copied(rows.totals(inode.id))
        if inode.quota is not None:
            check_content(lookup.path.text, inode.quota, before.counts, after.counts)
        changes = difference(below_totals(after), below_totals(before))
    check_quotas(tx, lookup.path, lookup.ancestors, changes)
    for each in nested:
        if each.way and each.inode.quota is not None:
            before, after = totals_of(tx, each.inode), copied(totals_of(rows, each.way[-1]))
            check_content(each.path.text, each.inode.quota, before.counts, after.counts)


def _roll_back(
    tx: Transaction, lookup: Lookup, inode: Inode, snapshot: Snapshot, safety: str, terms: Terms
) -> str:
    # What is below may be in later snapshots than the directory itself.
    latest: Moment = tx.get(LATEST_KEY)
    tx.cover(latest.txid)
    then = tx.at(snapshot.txid)
    nested = find_nested(tx, lookup, inode, snapshot)
    check_allowed(tx, lookup, inode, snapshot, nested, terms)
    if safety:
        inode, safety = take_as_it_was(tx, lookup, inode, safety)
    root = inheritance.rolled_back(lookup.inodes[0], snapshot, snapshot.root, tx.txid)
    if not terms.is_whole:
        root = keep_guarded_of(terms.caller, lookup, inode, root)
    if inode.is_file:
        restored = _restore_file(tx, inode, root, then)
        note_rollback(tx, lookup, snapshot, restored)
        _change_totals(tx, lookup, difference(subtree(tx, restored), subtree(tx, inode)))
        return safety
    before, after = tx.totals(inode.id), copied(then.totals(inode.id))
    restored = _restore_directory(tx, inode, root, snapshot.txid)
    note_rollback(tx, lookup, snapshot, restored)
    _bring_totals(tx, restored, before, after)
    _change_totals(tx, lookup, difference(below_totals(after), below_totals(before)))
    if is_marked(restored):
        mark(tx, (*lookup.ancestors, restored))
    # The upper ones first; those that are as deep have nothing to do with each other.
    by_depth = sorted(nested, key=lambda each: each.depth)
    for _, group in itertools.groupby(by_depth, key=lambda each: each.depth):
        ask_all(lambda each: _keep_nested(tx, restored, each, then, terms), group)
    return safety


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
    blocks = shared_blocks(tx, then if then.is_virtual else as_virtual(then, rows.txid))
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


def _keep_nested(tx: Transaction, top: Inode, nested: Nested, rows: PastRows, terms: Terms) -> None:
    """Have what is marked below keep what is its own, if it was there in the snapshot."""
    if nested.inode.is_snapshottable:
        _bring_back(tx, top, nested, rows, terms)
    elif nested.way is not None and not terms.is_whole:
        _leave_guarded(tx, top, nested, nested.way, terms)


def _bring_back(tx: Transaction, top: Inode, nested: Nested, rows: PastRows, terms: Terms) -> None:
    """Put what has snapshots of its own to where it was, as it was, if it was there."""
    now = nested.inode
    if nested.way is None:
        forget_snapshottable(tx, now)
        return
    *above, then = nested.way
    way = _walk(tx, top, above, now)
    for directory in way[1:]:
        tx.add(directory.id, ((int(Count.SNAPSHOTS), now.snapshots),))
    tx.delete(key_of(now))
    forget_mark(tx, now)
    directory = way[-1]
    place = msgspec.structs.replace(now, parent_id=InodeId(directory.children_id), name=then.name)
    key = key_of(place)
    tx.get(key)
    tx.put(key, place)
    restored = then if terms.is_whole else keep_guarded(terms.caller, now, then)
    if now.is_directory:
        before, after = tx.totals(now.id), copied(totals_of(rows, then))
        restored = _restore_directory(tx, place, restored, rows.txid)
        _bring_totals(tx, restored, before, after)
        # Those that it still has below it add theirs.
        tx.add(now.id, ((int(Count.SNAPSHOTS), -before.counts[Count.SNAPSHOTS]),))
    else:
        restored = _restore_file(tx, place, restored, rows)
    mark(tx, (*way, restored))


def _leave_guarded(
    tx: Transaction, top: Inode, nested: Nested, path: Sequence[Inode], terms: Terms
) -> None:
    """Leave to something below what only the superuser may set, as it is now."""
    *above, then = path
    way = _walk(tx, top, above, nested.inode)
    child = child_of(tx, way[-1], then.name)
    if child is None or child.kind is not nested.inode.kind:
        return  # what was brought back by its own snapshots has taken its place
    if keep_guarded(terms.caller, nested.inode, child) == child:
        return
    own = materialize(tx, (way[-1], child))[-1]
    kept = keep_guarded(terms.caller, nested.inode, own)
    tx.put(key_of(own), kept)
    mark(tx, (*way, kept), GUARDED)


def _walk(tx: Transaction, top: Inode, path: Sequence[Inode], sought: Inode) -> tuple[Inode, ...]:
    """The directories on the way that something had in the snapshot, each with its own row."""
    way = [top]
    for each in path:
        child = child_of(tx, way[-1], each.name)
        assert child is not None, f"{each.name!r} was on the way to inode {sought.id}"
        way.append(materialize(tx, (way[-1], child))[-1])
    return tuple(way)


def _with_attributes_of(now: Inode, then: Inode) -> Inode:
    kept = {field: getattr(now, field) for field in _KEPT}
    marks = now.marks | then.marks
    return msgspec.structs.replace(then, is_virtual=False, marks=marks, **kept)


def _bring_totals(tx: Transaction, restored: Inode, before: Totals, after: Totals) -> None:
    """A directory has what it had, and its time; snapshots below it stay."""
    changes = tuple(
        (count, after.counts[count] - number)
        for count, number in enumerate(before.counts)
        if count != Count.SNAPSHOTS
    )
    mtime_ms = after.mtime_ms if after.touched else restored.mtime_ms
    tx.add(restored.id, changes, mtime_ms=mtime_ms)


def _change_totals(tx: Transaction, lookup: Lookup, changes: Counts) -> None:
    """The directories above have more by it, or less."""
    if lookup.ancestors:
        check_copied(tx, lookup.path, lookup.ancestors, changes)
    tx.add_to_each([each.id for each in lookup.ancestors], changes)
