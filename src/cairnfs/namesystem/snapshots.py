"""Snapshots: taking, naming, listing and deleting them, in constant time.

A snapshot is a TxID and a row.  Taking one also writes its TxID into the directory's row:
from then on, whoever changes something below sees that versions up to it are needed, and
keeps them.  Deleting one removes its row; what only it needed is reclaimed later.
"""

from __future__ import annotations

from datetime import UTC, datetime
from types import NoneType

import msgspec

from cairnfs.errors import (
    FileNotFoundException,
    HadoopIllegalArgumentException,
    IllegalArgumentException,
    InvalidPathException,
    SnapshotException,
)
from cairnfs.namesystem import inheritance
from cairnfs.namesystem.answers import FileStatus
from cairnfs.namesystem.inodes import ROOT_ID, Inode, InodeId
from cairnfs.namesystem.lookup import (
    Lookup,
    key_of,
    paths_of,
    resolve_owned,
    resolve_to_read,
    resolve_to_write,
)
from cairnfs.namesystem.marks import forget_mark, is_marked, mark
from cairnfs.namesystem.paths import (
    DOT_RESERVED,
    DOT_SNAPSHOT,
    FsPath,
    check_component_length,
)
from cairnfs.namesystem.permissions import Access, Caller, check_access, check_superuser
from cairnfs.namesystem.quotas import touch
from cairnfs.namesystem.snapshot_records import (
    ROOT_SNAPSHOT_KEY,
    Removal,
    RootSnapshot,
    Snapshot,
    Snapshottable,
    removal_key,
    schedule_key,
    snapshot_key,
    snapshottable_key,
)
from cairnfs.namesystem.status import describe, status_of
from cairnfs.store.base import Count
from cairnfs.store.schema import NUMBER, Table
from cairnfs.transaction.calls import operation
from cairnfs.transaction.moments import LATEST_KEY, Moment, add_moment, moment_key, remove_moment
from cairnfs.transaction.transaction import Transaction

SNAPSHOTS_MAX = 65_536  # of one directory, as in HDFS
_SNAPSHOTS = int(Count.SNAPSHOTS)
_ONE = ((_SNAPSHOTS, 1),)
_ONE_LESS = ((_SNAPSHOTS, -1),)
_PAGE = 1000


class SnapshotInfo(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One snapshot of a directory or file."""

    name: bytes
    txid: int
    status: FileStatus  # of its root, as it was


class SnapshottableInfo(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A directory or file of which snapshots may be taken."""

    path: str
    status: FileStatus
    snapshots: int
    quota: int


@operation()
def allow_snapshot(tx: Transaction, caller: Caller, path: FsPath) -> None:
    """Let snapshots be taken of a directory or file, wherever others are."""
    check_superuser(caller, f"allow snapshots of {path}")
    lookup, inode = _existing(tx, caller, path)
    note_allowed(tx, lookup, inode)
    root = _root_snapshot_of(tx, inode)
    if root is not None:
        tx.put(ROOT_SNAPSHOT_KEY, msgspec.structs.replace(root, is_root_allowed=True))


@operation()
def disallow_snapshot(tx: Transaction, caller: Caller, path: FsPath) -> None:
    """Let no more snapshots be taken; there must be none."""
    check_superuser(caller, f"disallow snapshots of {path}")
    lookup, inode = _existing(tx, caller, path)
    if inode.snapshots:
        raise SnapshotException(
            f"The directory {lookup.path} has snapshot(s). Please redo the operation after"
            " removing all the snapshots."
        )
    if inode.is_snapshottable:
        disallowed = msgspec.structs.replace(inode, is_snapshottable=False)
        tx.put(key_of(inode), disallowed)
        forget_snapshottable(tx, inode)
        if not is_marked(disallowed):
            forget_mark(tx, inode)


@operation(stored_reply=tuple[str, ...], solitary=True)
def create_snapshots(
    tx: Transaction, caller: Caller, paths: tuple[FsPath, ...], name: str
) -> tuple[str, ...]:
    """Take snapshots of one name, all of the same moment; without a name, named by the time."""
    if not paths:
        raise IllegalArgumentException("no directory is named that snapshots are to be taken of")
    name = name or default_name(tx.now_ms)
    check_name(name, paths[0])
    taken: dict[InodeId, str] = {}
    found = [_owned(tx, caller, path) for path in paths]
    tx.need(snapshot_key(inode.id, name.encode()) for _, inode in found)
    for lookup, inode in found:
        if inode.id in taken:
            continue
        check_may_add(tx, lookup, inode, name)
        take(tx, lookup, inode, name.encode())
        taken[inode.id] = lookup.path.child(DOT_SNAPSHOT).child(name.encode()).text
    note_latest(tx, tx.txid)
    return tuple(taken.values())


@operation(stored_reply=NoneType)
def rename_snapshot(tx: Transaction, caller: Caller, path: FsPath, old: str, new: str) -> None:
    """Give a snapshot another name."""
    lookup, inode = _owned(tx, caller, path)
    _check_new_name(new, lookup.path)
    _check_not_root_snapshot(tx, inode, old, "renamed")
    snapshot = find_snapshot(tx, inode, old)
    if snapshot is None:
        raise SnapshotException(f"The snapshot {old} does not exist for directory {lookup.path}")
    if old == new:
        return
    key = snapshot_key(inode.id, new.encode())
    if tx.get(key) is not None:
        raise SnapshotException(
            f"The snapshot {new} already exists for directory {lookup.path}, so {old} cannot be"
            " renamed to it"
        )
    tx.delete(snapshot_key(inode.id, old.encode()))
    tx.put(key, snapshot)
    moment = moment_key(snapshot.txid, inode.id)
    tx.get(moment)
    tx.put(moment, Moment(snapshot.txid, inode.id, new.encode()))


@operation(stored_reply=NoneType, solitary=True)
def delete_snapshot(tx: Transaction, caller: Caller, path: FsPath, name: str) -> None:
    """Delete a snapshot; what only it needed is reclaimed in the background."""
    lookup, inode = _owned(tx, caller, path)
    _check_not_root_snapshot(tx, inode, name, "deleted")
    if find_snapshot(tx, inode, name) is None:
        raise SnapshotException(
            f"Cannot delete snapshot {name} from path {lookup.path}: the snapshot does not exist."
        )
    remove(tx, lookup, inode, name.encode())


@operation(mutates=False)
def list_snapshots(tx: Transaction, caller: Caller, path: FsPath) -> list[SnapshotInfo]:
    """The snapshots of a directory or file, by name."""
    lookup = resolve_to_read(tx, caller, path)
    inode = lookup.target
    if inode is None:
        raise FileNotFoundException(f"Directory does not exist: {lookup.path}")
    check_access(caller, inode, Access.READ, lookup.path)
    check_snapshottable(lookup, inode)
    infos = []
    after = b""
    while page := tx.scan(Table.SNAPSHOTS, inode.id, after, _PAGE):
        after = page[-1][0][2]
        for key, snapshot in page:
            root = msgspec.structs.replace(
                snapshot.root, mtime_ms=snapshot.created_ms, is_snapshottable=False
            )
            infos.append(SnapshotInfo(key[2], snapshot.txid, describe(root, None, key[2])))
    return infos


@operation(mutates=False)
def list_snapshottable(tx: Transaction, caller: Caller) -> list[SnapshottableInfo]:
    """What snapshots may be taken of, as far as it is the caller's; the superuser sees all."""
    infos = []
    after = b""
    while page := tx.scan(Table.SNAPSHOTTABLE, 0, after, _PAGE):
        after = page[-1][0][2]
        ids = [InodeId(NUMBER.unpack(key[2])[0]) for key, _ in page]
        tx.need(totals=ids)
        for id, path in zip(ids, paths_of(tx, ids), strict=True):
            inode: Inode | None = tx.get_by_id(Table.INODES, id)
            if inode is None or path is None:  # deleted, and to be reclaimed
                continue
            if caller.is_superuser or caller.user == inode.owner:
                status = status_of(tx, inode, inode.name)
                infos.append(SnapshottableInfo(path.text, status, inode.snapshots, SNAPSHOTS_MAX))
    return sorted(infos, key=lambda info: info.path)


def check_without_snapshots(tx: Transaction, lookup: Lookup, inode: Inode) -> None:
    """What has snapshots, or has something below it that has, stays where it is."""
    below = inode.is_directory and tx.totals(inode.id).counts[_SNAPSHOTS]
    if inode.snapshots or below:
        holder = lookup.path if inode.snapshots else _find_below(tx, lookup.path)
        raise SnapshotException(
            f"The directory {lookup.path} cannot be deleted since {holder or 'something below it'}"
            " is snapshottable and already has snapshots; delete those first"
        )


def _find_below(tx: Transaction, top: FsPath) -> FsPath | None:
    """One of those below a path that have snapshots, to be named."""
    after = b""
    while page := tx.scan(Table.SNAPSHOTTABLE, 0, after, _PAGE):
        after = page[-1][0][2]
        ids = [InodeId(NUMBER.unpack(key[2])[0]) for key, _ in page]
        for id, path in zip(ids, paths_of(tx, ids), strict=True):
            if path is not None and top.is_ancestor_of(path):
                found: Inode = tx.get_by_id(Table.INODES, id)
                if found.snapshots:
                    return path
    return None


def forget_snapshottable(tx: Transaction, inode: Inode) -> None:
    """No snapshots can be taken of it any more."""
    for key in (snapshottable_key(inode.id), schedule_key(inode.id)):
        if tx.get(key) is not None:
            tx.delete(key)


def default_name(now_ms: int) -> str:
    """As HDFS names a snapshot: by the time it is taken."""
    taken = datetime.fromtimestamp(now_ms / 1000, tz=UTC)
    return f"s{taken:%Y%m%d-%H%M%S}.{now_ms % 1000:03d}"


def check_name(name: str, path: FsPath) -> None:
    """A snapshot's name, of the directory at `path`, is the name of a directory."""
    encoded = name.encode("utf-8", "surrogatepass")
    is_text = not any("\ud800" <= c <= "\udfff" for c in name)  # else it was not UTF-8
    reserved = (b"", b".", b"..", DOT_SNAPSHOT, DOT_RESERVED)
    if not is_text or encoded in reserved or any(c in "/:\0" for c in name):
        shown = encoded.decode(errors="replace").replace("\0", "\\0")
        raise InvalidPathException(
            f"Invalid path name Invalid snapshot name: {shown}; it is for a snapshot of {path}"
        )
    check_component_length(encoded, path)


def _check_new_name(name: str, path: FsPath) -> None:
    """The same, in the words that HDFS has when a snapshot is renamed."""
    if "/" in name:
        raise HadoopIllegalArgumentException(
            f'Snapshot name cannot contain "/": {name}, for a snapshot of {path}'
        )
    if name.encode("utf-8", "surrogatepass") == DOT_SNAPSHOT:
        raise HadoopIllegalArgumentException(
            f'".snapshot" is a reserved name. It is for a snapshot of {path}'
        )
    check_name(name, path)


def note_allowed(tx: Transaction, lookup: Lookup, inode: Inode) -> Inode:
    """Let snapshots be taken of what was found; return the inode as it then is."""
    if inode.is_snapshottable:
        return inode
    allowed = msgspec.structs.replace(inode, is_snapshottable=True)
    tx.put(key_of(inode), allowed)
    tx.put_new(snapshottable_key(inode.id), Snapshottable(tx.now_ms))
    return mark(tx, (*lookup.ancestors, allowed))


def remove(tx: Transaction, lookup: Lookup, inode: Inode, name: bytes) -> Inode:
    """Delete one of the snapshots of an inode, which is returned as it then is."""
    key = snapshot_key(inode.id, name)
    snapshot: Snapshot = tx.get(key)
    tx.delete(key)
    remove_moment(tx, snapshot.txid, inode.id)
    left = msgspec.structs.replace(inode, snapshots=inode.snapshots - 1)
    tx.put(key_of(inode), left)
    tx.add_to_each([ancestor.id for ancestor in lookup.ancestors], _ONE_LESS)
    tx.put_new(removal_key(snapshot.txid, inode.id), Removal(tx.now_ms, until=snapshot.txid))
    return left


def take_as_it_was(tx: Transaction, lookup: Lookup, inode: Inode, name: str) -> tuple[Inode, str]:
    """Take a snapshot of what there was before this very transaction, which is solitary.

    The inode that knows of it is for the caller to write.  If one of that moment is there, its
    name is returned: it shows the same.
    """
    before = tx.txid - 1
    known: Moment | None = tx.get(moment_key(before, inode.id))
    if known is not None:
        return inode, known.name.decode()
    check_may_add(tx, lookup, inode, name)
    tx.covered = max(tx.covered or 0, before)
    taken = _note(tx, lookup, inode, name.encode(), before)
    note_latest(tx, before)
    return taken, name


def take(tx: Transaction, lookup: Lookup, inode: Inode, name: bytes) -> None:
    tx.put(key_of(inode), _note(tx, lookup, inode, name, tx.txid))
    if inode.is_directory:
        touch(tx, inode)


def _note(tx: Transaction, lookup: Lookup, inode: Inode, name: bytes, txid: int) -> Inode:
    """Write down a snapshot; the inode that knows of it."""
    taken = msgspec.structs.replace(inode, covered_txid=txid, snapshots=inode.snapshots + 1)
    snapshot = Snapshot(txid, tx.now_ms, taken, inheritance.entering(lookup))
    tx.put(snapshot_key(inode.id, name), snapshot)
    add_moment(tx, inode.id, Moment(txid, inode.id, name), is_new=txid == tx.known_txid)
    tx.add_to_each([ancestor.id for ancestor in lookup.ancestors], _ONE)
    return taken


def note_latest(tx: Transaction, txid: int) -> None:
    """No snapshot is later than this TxID."""
    known: Moment | None = tx.get(LATEST_KEY)
    if known is None or known.txid < txid:
        tx.put(LATEST_KEY, Moment(txid))


def check_may_add(tx: Transaction, lookup: Lookup, inode: Inode, name: str) -> None:
    if inode.snapshots >= SNAPSHOTS_MAX:
        raise SnapshotException(
            f"Failed to add snapshot: there are already {inode.snapshots} snapshot(s) of"
            f" {lookup.path} and the snapshot quota is {SNAPSHOTS_MAX}"
        )
    if tx.get(snapshot_key(inode.id, name.encode())) is not None:
        raise SnapshotException(
            f'Failed to add snapshot: there is already a snapshot with the same name "{name}".'
            f" It is of {lookup.path}."
        )


def _existing(tx: Transaction, caller: Caller, path: FsPath) -> tuple[Lookup, Inode]:
    lookup = resolve_to_write(tx, caller, path)
    if lookup.target is None:
        raise FileNotFoundException(f"Directory does not exist: {lookup.path}")
    if lookup.target.is_symlink:
        raise SnapshotException(f"{lookup.path} is a symbolic link, which has no snapshots")
    return lookup, lookup.target


def _owned(tx: Transaction, caller: Caller, path: FsPath) -> tuple[Lookup, Inode]:
    lookup, inode = resolve_owned(tx, caller, path)
    check_snapshottable(lookup, inode)
    return lookup, inode


def check_snapshottable(lookup: Lookup, inode: Inode) -> None:
    """Snapshots of it may be taken."""
    if not inode.is_snapshottable:
        raise SnapshotException(
            f"Directory is not a snapshottable directory: {lookup.path}; allow it first"
            " (cairn snapshot allow)"
        )


def _root_snapshot_of(tx: Transaction, inode: Inode) -> RootSnapshot | None:
    """The root snapshot, if this is the root and it has one."""
    found: RootSnapshot | None = tx.get(ROOT_SNAPSHOT_KEY) if inode.id == ROOT_ID else None
    return found


def _check_not_root_snapshot(tx: Transaction, inode: Inode, name: str, done: str) -> None:
    root = _root_snapshot_of(tx, inode)
    if root is not None and root.name == name.encode("utf-8", "surrogatepass"):
        raise SnapshotException(
            f"The snapshot {name} of / cannot be {done}: it is the root snapshot; finalize that"
            " when it is no longer needed (cairn snapshot root finalize)"
        )


def find_snapshot(tx: Transaction, inode: Inode, name: str) -> Snapshot | None:
    """The snapshot of this name, if there is one."""
    found: Snapshot | None = tx.get(snapshot_key(inode.id, name.encode("utf-8", "surrogatepass")))
    return found
