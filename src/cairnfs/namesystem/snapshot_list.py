"""All snapshots there are, of whatever directories and files, page by page."""

from __future__ import annotations

from typing import Annotated

import msgspec

from cairnfs.namesystem.inodes import Inode, InodeId
from cairnfs.namesystem.lookup import path_of
from cairnfs.namesystem.permissions import Caller
from cairnfs.namesystem.snapshot_records import Snapshot
from cairnfs.namesystem.snapshot_space import referenced_bytes
from cairnfs.store.base import Count
from cairnfs.store.schema import NUMBER, Table
from cairnfs.transaction.calls import operation
from cairnfs.transaction.transaction import Transaction

SNAPSHOTS_PAGE = 1000
_OWNERS_AT_ONCE = 100


class SnapshotPlace(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """How far the list was read: a snapshot of an inode; without a name, all of its."""

    inode_id: Annotated[int, msgspec.Meta(ge=0, lt=1 << 63)]
    name: bytes = b""


class SnapshotRow(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One snapshot, what it is of, and how much it shows."""

    path: str
    inode_id: InodeId
    name: bytes
    txid: int
    created_ms: int
    files: int
    directories: int
    length_bytes: int
    referenced_bytes: int  # with all replicas


class SnapshotListPage(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Some of the snapshots, and where to go on; None: that was all."""

    snapshots: list[SnapshotRow]
    resume: SnapshotPlace | None


@operation(mutates=False, walks=True)
def list_all_snapshots(
    tx: Transaction,
    caller: Caller,
    resume: SnapshotPlace | None = None,
    limit: int = SNAPSHOTS_PAGE,
) -> SnapshotListPage:
    """The snapshots of what is the caller's; the superuser sees all."""
    found: list[SnapshotRow] = []
    place = resume or SnapshotPlace(0)
    if place.name:  # in the middle of those of one inode
        found += _snapshots_of(tx, caller, place, limit)
        place = _last(found, place.inode_id, limit)
    while len(found) < limit:
        owners = tx.scan(
            Table.SNAPSHOTTABLE, 0, NUMBER.pack(place.inode_id), min(limit, _OWNERS_AT_ONCE)
        )
        if not owners:
            return SnapshotListPage(found, None)
        ids = [NUMBER.unpack(key[2])[0] for key, _ in owners]
        tx.need(ids=[(int(Table.INODES), id) for id in ids])
        for id in ids:
            found += _snapshots_of(tx, caller, SnapshotPlace(id), limit - len(found))
            place = _last(found, id, limit)
            if len(found) >= limit:
                break
    return SnapshotListPage(found, place)


def _last(found: list[SnapshotRow], inode_id: int, limit: int) -> SnapshotPlace:
    """Where to go on: with the same inode, if it may have more than there was room for."""
    is_cut = len(found) >= limit and found[-1].inode_id == inode_id
    return SnapshotPlace(inode_id, found[-1].name if is_cut else b"")


def _snapshots_of(
    tx: Transaction, caller: Caller, place: SnapshotPlace, limit: int
) -> list[SnapshotRow]:
    inode: Inode | None = tx.get_by_id(Table.INODES, place.inode_id)
    path = path_of(tx, InodeId(place.inode_id))
    if inode is None or path is None:  # deleted, and to be reclaimed
        return []
    if not caller.is_superuser and caller.user != inode.owner:
        return []
    page = tx.scan(Table.SNAPSHOTS, place.inode_id, place.name, limit)
    return [_row(tx, path.text, key[2], snapshot) for key, snapshot in page]


def _row(tx: Transaction, path: str, name: bytes, snapshot: Snapshot) -> SnapshotRow:
    root = snapshot.root
    files, directories, length_bytes = 1, 0, root.visible_bytes
    if root.is_directory:
        counts = tx.at(snapshot.txid).totals(root.id).counts
        files, directories = counts[Count.FILES], counts[Count.DIRECTORIES]
        length_bytes = counts[Count.LENGTH_BYTES]
    return SnapshotRow(
        path,
        root.id,
        name,
        snapshot.txid,
        snapshot.created_ms,
        files,
        directories,
        length_bytes,
        referenced_bytes(tx, snapshot),
    )
