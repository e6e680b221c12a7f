"""The root snapshot: one of the whole file system, to go back to when an upgrade has failed.

There is one at a time.  It is a snapshot of `/` as any other, so everything goes on while it is
there, quotas and files being written included.  *Rolling back* makes the file system what it was,
and may be repeated; *finalizing* says that nobody will: the snapshot is deleted, and those in which
roll-backs of `/` have kept what they gave up, and what only they needed is reclaimed.
"""

from __future__ import annotations

import msgspec

from cairnfs.errors import SnapshotException
from cairnfs.namesystem.inodes import ROOT_ID, Inode
from cairnfs.namesystem.lookup import ROOT_KEY, Lookup, key_of, resolve
from cairnfs.namesystem.nested import find_nested
from cairnfs.namesystem.paths import FsPath
from cairnfs.namesystem.permissions import Caller, check_superuser
from cairnfs.namesystem.rollback import Terms, roll_back
from cairnfs.namesystem.snapshot_records import (
    ROOT_SNAPSHOT_KEY,
    RootSnapshot,
    Snapshot,
    schedule_key,
)
from cairnfs.namesystem.snapshots import (
    check_may_add,
    check_name,
    default_name,
    find_snapshot,
    forget_snapshottable,
    note_allowed,
    note_latest,
    remove,
    take,
)
from cairnfs.store.base import Count, Totals
from cairnfs.transaction.calls import operation
from cairnfs.transaction.transaction import Transaction

_ROOT = FsPath.parse("/")
_PREFIX = "root-"


class TreeCounts(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """How much there is."""

    files: int
    directories: int
    length_bytes: int
    space_bytes: int  # with all replicas


class RootStatus(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The root snapshot, and what a roll-back would mean now."""

    snapshot: RootSnapshot
    then: TreeCounts
    now: TreeCounts
    hindrances: tuple[str, ...]  # what has snapshots of its own, and would be removed


@operation(stored_reply=RootSnapshot, solitary=True)
def create_root_snapshot(tx: Transaction, caller: Caller, name: str) -> RootSnapshot:
    """Take the root snapshot; without a name, named by the time."""
    check_superuser(caller, "createRootSnapshot")
    lookup, root = _find_root(tx)
    known: RootSnapshot | None = tx.get(ROOT_SNAPSHOT_KEY)
    if known is not None:
        raise SnapshotException(
            f"There is a root snapshot, {known.name.decode()} of transaction {known.txid}: finalize"
            " it before another one is taken"
        )
    name = name or _PREFIX + default_name(tx.now_ms).removeprefix("s")
    check_name(name, _ROOT)
    check_may_add(tx, lookup, root, name)
    take(tx, lookup, note_allowed(tx, lookup, root), name.encode())
    note_latest(tx, tx.txid)
    taken = RootSnapshot(name.encode(), tx.txid, tx.now_ms, caller.user, root.is_snapshottable)
    tx.put(ROOT_SNAPSHOT_KEY, taken)
    return taken


@operation(mutates=False)
def get_root_snapshot_status(tx: Transaction, caller: Caller) -> RootStatus | None:
    """The root snapshot and what has become of the file system since; None: there is none."""
    check_superuser(caller, "getRootSnapshotStatus")
    known: RootSnapshot | None = tx.get(ROOT_SNAPSHOT_KEY)
    if known is None:
        return None
    lookup, root = _find_root(tx)
    nested = find_nested(tx, lookup, root, _snapshot_of(tx, root, known))
    return RootStatus(
        known,
        _count(tx.at(known.txid).totals(ROOT_ID)),
        _count(tx.totals(ROOT_ID)),
        tuple(each.path.text for each in nested if each.hinders),
    )


@operation(stored_reply=str, solitary=True)
def rollback_root_snapshot(tx: Transaction, caller: Caller, safety: str) -> str:
    """Make the whole file system what it was; the name of what keeps what it has been."""
    check_superuser(caller, "rollbackRootSnapshot")
    known = _existing(tx, "rolled back to")
    lookup, root = _find_root(tx)
    terms = Terms(caller, is_whole=True)
    return roll_back(tx, lookup, root, _snapshot_of(tx, root, known), safety, terms)


@operation(stored_reply=tuple[str, ...], solitary=True)
def finalize_root_snapshot(tx: Transaction, caller: Caller) -> tuple[str, ...]:
    """Nobody will go back: delete the root snapshot, and what its roll-backs kept; their names."""
    check_superuser(caller, "finalizeRootSnapshot")
    known = _existing(tx, "finalized")
    lookup, root = _find_root(tx)
    # One that was renamed or deleted since is somebody's own business.
    names = [name for name in known.safety if find_snapshot(tx, root, name.decode()) is not None]
    names.append(known.name)
    for name in names:
        root = remove(tx, lookup, root, name)
    is_wanted = known.is_root_allowed or tx.get(schedule_key(ROOT_ID)) is not None
    if not root.snapshots and not is_wanted:
        tx.put(key_of(root), msgspec.structs.replace(root, is_snapshottable=False))
        forget_snapshottable(tx, root)
    tx.delete(ROOT_SNAPSHOT_KEY)
    return tuple(name.decode() for name in names)


def _find_root(tx: Transaction) -> tuple[Lookup, Inode]:
    lookup = resolve(tx, _ROOT)
    root: Inode = tx.get(ROOT_KEY)
    return lookup, root


def _existing(tx: Transaction, wanted: str) -> RootSnapshot:
    known: RootSnapshot | None = tx.get(ROOT_SNAPSHOT_KEY)
    if known is None:
        raise SnapshotException(
            f"There is no root snapshot of / to be {wanted}: it has to be taken before (cairn"
            " snapshot root create)"
        )
    return known


def _snapshot_of(tx: Transaction, root: Inode, known: RootSnapshot) -> Snapshot:
    snapshot = find_snapshot(tx, root, known.name.decode())
    assert snapshot is not None, f"the root snapshot {known} is gone"
    return snapshot


def _count(totals: Totals) -> TreeCounts:
    counts = totals.counts
    return TreeCounts(
        counts[Count.FILES],
        counts[Count.DIRECTORIES],
        counts[Count.LENGTH_BYTES],
        counts[Count.SPACE_BYTES],
    )
