"""What changes the storage policy of a subtree, put down for the satisfier.

A policy that is set holds for everything below, and so does that of the directory into which
something is moved.  What is below is not touched for that; but its blocks may have to move.  So
whoever changes the policy of a subtree leaves a row that names it, in the same transaction:
`satisfying` works it off.

No row is left if nothing can have changed: the inode has the policy that it had, and below it
none was ever chosen.  The latter is known by *marks*: rows for the directories above each inode
for which one was.  They stay for good, and err only by having too much looked at.

Invariant: every file whose policy is another one than when its blocks were last queued is at or
below an inode with a row in POLICY_SCANS.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from cairnfs.blocks.placing import PlacementQueue
from cairnfs.blocks.policies import DEFAULT
from cairnfs.namesystem.attribute_rules import AttributeKind, resolve, take_step
from cairnfs.namesystem.inheritance import (
    STORAGE_POLICY,
    decide,
    decide_then,
    find_declaration,
    steps,
)
from cairnfs.namesystem.inodes import Inode
from cairnfs.namesystem.lookup import Lookup
from cairnfs.namesystem.paths import FsPath
from cairnfs.namesystem.policy_attribute import POLICY_UNSPECIFIED, policy_of
from cairnfs.namesystem.snapshot_records import Snapshot
from cairnfs.store.schema import NUMBER, Key, Table
from cairnfs.transaction.records import register
from cairnfs.transaction.transaction import Transaction
from cairnfs.trash_names import TRASH

_TRASH = TRASH.encode()


class PolicyScan(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """An inode at and below which blocks may have to move."""

    after: bytes = b""  # what was looked at already: up to this name, or index of a block
    requested_ms: int = 0


class PolicyMark(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A directory below which a policy was chosen at some time."""


register(Table.POLICY_SCANS, PolicyScan)
register(Table.POLICY_MARKS, PolicyMark)


def scan_key(inode_id: int) -> Key:
    return (int(Table.POLICY_SCANS), 0, NUMBER.pack(inode_id))


def mark_key(inode_id: int) -> Key:
    return (int(Table.POLICY_MARKS), 0, NUMBER.pack(inode_id))


# Looking.


def is_used(root: Inode) -> bool:
    """Whether a policy was ever chosen, for anything."""
    if not root.declared:
        return False
    declared = find_declaration(root, STORAGE_POLICY)
    return declared is not None and declared.is_used


def policy_id_of(lookup: Lookup) -> int:
    """The policy of the last inode that was found; POLICY_UNSPECIFIED if none was chosen."""
    return policy_of(lookup).id if is_used(lookup.inodes[0]) else POLICY_UNSPECIFIED


def policy_to_tell(lookup: Lookup) -> int:
    """What callers are told: a symbolic link has none."""
    if not lookup.inodes[0].declared or lookup.inodes[-1].is_symlink:
        return POLICY_UNSPECIFIED
    return policy_id_of(lookup)


def policies_of_page(directory: Lookup, children: Sequence[Inode]) -> tuple[int, ...]:
    """The same for some children of what was found; empty if none was ever chosen anywhere."""
    if not is_used(directory.inodes[0]):
        return ()
    above = decide(directory, STORAGE_POLICY, AttributeKind.FOLLOWS_PATH)
    found = []
    for child, step in zip(children, steps(children, STORAGE_POLICY), strict=True):
        value = take_step(AttributeKind.FOLLOWS_PATH, above, step).value
        found.append(value[0] if value and not child.is_symlink else POLICY_UNSPECIFIED)
    return tuple(found)


def policy_id_at(way: Iterable[Inode]) -> int:
    """The same for the last inode of a way from the root."""
    value = resolve(AttributeKind.FOLLOWS_PATH, steps(way, STORAGE_POLICY)).value
    return value[0] if value else POLICY_UNSPECIFIED


def is_same(a: int, b: int) -> bool:
    """Whether two policies are one: where none was chosen there is the default."""
    return (a or DEFAULT.id) == (b or DEFAULT.id)


# Writing.


def request_scan(tx: Transaction, inode: Inode) -> None:
    """Have everything at and below an inode looked at, from the beginning."""
    if inode.is_symlink or (inode.is_file and not inode.block_count):
        return
    key = scan_key(inode.id)
    known: PolicyScan | None = tx.get(key)
    if known is None or known.after:
        tx.put(key, PolicyScan(requested_ms=tx.now_ms))


def note_choice(tx: Transaction, lookup: Lookup, before: int, after: int) -> None:
    """A policy is chosen for what was found, or not any more."""
    inode, above = lookup.inodes[-1], lookup.ancestors
    tx.need((*_marks_of((*above, inode)), scan_key(inode.id)))
    if not is_same(before, after) or _is_marked(tx, inode):
        request_scan(tx, inode)
    _mark(tx, above)


def note_move(tx: Transaction, source: Lookup, destination: Lookup, inode: Inode) -> None:
    """An inode is about to be moved: it takes the policy of the directory that it comes into.

    If it comes from where blocks have yet to be looked at, its own are looked at as well: those
    there may be done with where it goes.  What goes into the trash stays where it is, since it
    is likely to be deleted; so it is looked at when it comes out.
    """
    if not is_used(source.inodes[0]) or _is_trash(destination.path):
        return
    after = policy_id_at(destination.ancestors)
    pending = [scan_key(each.id) for each in source.inodes]
    tx.need((*_marks_of((inode,)), *pending))
    if (
        not is_same(policy_id_of(source), after)
        or _is_trash(source.path)
        or _is_marked(tx, inode)
        or any(tx.get(key) is not None for key in pending)
    ):
        request_scan(tx, inode)


def need_notes(tx: Transaction, source: Lookup, inodes: Sequence[Inode]) -> None:
    """Have at hand what `note_move` asks of several inodes in a directory that was found."""
    if is_used(source.inodes[0]):
        scans = [scan_key(inode.id) for inode in (*source.inodes, *inodes)]
        tx.need((*_marks_of(inodes), *scans))


def note_rollback(tx: Transaction, lookup: Lookup, snapshot: Snapshot, restored: Inode) -> None:
    """A directory or file has gone back to an earlier state, and with it what was chosen then.

    What was still to be looked at or moved below is known by inodes that are not there any more.
    """
    if not is_used(lookup.inodes[0]):
        return
    after = policy_id_at((*lookup.ancestors, restored))
    tx.need((*_marks_of(lookup.inodes), scan_key(restored.id)))
    if (
        not is_same(policy_id_of(lookup), after)
        or _may_have_moved(tx, lookup, snapshot)
        or _is_anything_left(tx)
    ):
        request_scan(tx, restored)


def note_clone(
    tx: Transaction, source: Lookup, snapshot: Snapshot, destination: Lookup, clone: Inode
) -> None:
    """What begins as a snapshot has the policy of the directory that it is made in."""
    if not is_used(source.inodes[0]):
        return
    then = decide_then(snapshot, STORAGE_POLICY, AttributeKind.FOLLOWS_PATH).value
    after = policy_id_at(destination.ancestors)
    tx.need((*_marks_of(source.inodes), scan_key(clone.id)))
    before = then[0] if then else POLICY_UNSPECIFIED
    if not is_same(before, after) or _may_have_moved(tx, source, snapshot):
        request_scan(tx, clone)


def _may_have_moved(tx: Transaction, lookup: Lookup, snapshot: Snapshot) -> bool:
    """Whether a policy held for a while, after a snapshot, of what was found or is below it.

    What was deleted meanwhile, and so is only in the snapshot, may be where that has wanted it.
    """
    inode = lookup.inodes[-1]
    chosen = decide(lookup, STORAGE_POLICY, AttributeKind.FOLLOWS_PATH).txid
    return max(chosen, inode.restored) > snapshot.txid or _is_marked(tx, inode)


def _is_trash(path: FsPath) -> bool:
    return _TRASH in path.components


def _mark(tx: Transaction, directories: Sequence[Inode]) -> None:
    for directory in directories:
        key = mark_key(directory.id)
        if tx.get(key) is None:
            tx.put(key, PolicyMark())


def _is_anything_left(tx: Transaction) -> bool:
    """Whether subtrees are to be looked at, or blocks to be moved, wherever that may be."""
    queues = [(Table.PLACEMENTS, int(queue)) for queue in PlacementQueue]
    return any(tx.scan(table, a, b"", 1) for table, a in [(Table.POLICY_SCANS, 0), *queues])


def _is_marked(tx: Transaction, inode: Inode) -> bool:
    return any(tx.get(key) is not None for key in _marks_of((inode,)))


def _marks_of(inodes: Iterable[Inode]) -> list[Key]:
    """Those of an inode that has got a row in a clone are under the id that it had before."""
    keys = []
    for inode in inodes:
        shown_as = [place.shown_as for place in inode.places[:1]]
        keys += [mark_key(id) for id in dict.fromkeys((inode.id, inode.known_as, *shown_as)) if id]
    return keys
