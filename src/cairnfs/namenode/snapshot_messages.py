"""Snapshots and differences between them as Hadoop's messages, and as our own."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import msgspec

from cairnfs.errors import IllegalArgumentException
from cairnfs.namenode.responses import fill_status
from cairnfs.namesystem.counterparts import Names
from cairnfs.namesystem.paths import FsPath
from cairnfs.namesystem.snapshot_changes import ChangePage
from cairnfs.namesystem.snapshot_changes import Position as ChangePosition
from cairnfs.namesystem.snapshot_diff import DiffEntry, DiffKind, DiffPage, Position, turn
from cairnfs.namesystem.snapshots import SnapshotInfo, SnapshottableInfo
from cairnfs.wire.proto import cairn_pb2, hdfs_pb2
from cairnfs.wire.proto import client_namenode_pb2 as pb

_LABELS = {
    DiffKind.MODIFIED: "M",
    DiffKind.CREATED: "+",
    DiffKind.DELETED: "-",
    DiffKind.RENAMED: "R",
}
_NO_INDEX = -1
_ID_MASK = 2**31 - 1  # snapshots of HDFS have numbers; the last bits of a TxID will do for one


def to_snapshottable(
    found: Iterable[SnapshottableInfo],
) -> hdfs_pb2.SnapshottableDirectoryListingProto:
    message = hdfs_pb2.SnapshottableDirectoryListingProto()
    for info in found:
        added = message.snapshottableDirListing.add()
        fill_status(added.dirStatus, info.status)
        added.dirStatus.flags = 0  # as in HDFS: here they go without saying
        added.snapshot_quota = info.quota
        added.snapshot_number = info.snapshots
        parent = "" if info.path == "/" else info.path.rpartition("/")[0] or "/"
        added.parent_fullpath = parent.encode()
    return message


def to_snapshots(found: Iterable[SnapshotInfo], path: FsPath) -> hdfs_pb2.SnapshotListingProto:
    message = hdfs_pb2.SnapshotListingProto()
    for info in found:
        added = message.snapshotListing.add()
        fill_status(added.dirStatus, info.status)
        added.snapshotID = info.txid & _ID_MASK
        added.parent_fullpath = path.text.encode()
        added.isDeleted = False
    return message


# Differences


def to_diff_report(
    page: DiffPage, request: pb.GetSnapshotDiffReportRequestProto
) -> hdfs_pb2.SnapshotDiffReportProto:
    """One report of all there is, in the order of HDFS."""
    message = hdfs_pb2.SnapshotDiffReportProto()
    message.snapshotRoot = request.snapshotRoot
    message.fromSnapshot = request.fromSnapshot
    message.toSnapshot = request.toSnapshot
    entries = sorted(page.entries, key=_order)
    for entry in map(turn, entries) if page.is_turned else entries:
        added = message.diffReportEntries.add()
        added.modificationLabel = _LABELS[entry.kind]
        added.fullpath = _join(entry.path)
        if entry.target is not None:
            added.targetPath = _join(entry.target)
    return message


def _order(entry: DiffEntry) -> tuple[Names, int, Names]:
    """What is modified by its path; behind a directory what is new in it, then what is gone."""
    if entry.kind is DiffKind.MODIFIED:
        return entry.path, 0, ()
    return entry.path[:-1], 1 if entry.kind is DiffKind.CREATED else 2, entry.path[-1:]


def to_diff_page(page: DiffPage) -> hdfs_pb2.SnapshotDiffReportListingProto:
    """A page, of which clients make a report when they have all.

    They look for what was created and deleted in a directory by the directory's number, and tell
    it after the directory, which is why this has to be among what was modified.  What has the
    number of something renamed they take for that.  Numbers are not of inodes, since one may be
    shown twice, in a clone or after a roll-back; but of paths.
    """
    message = hdfs_pb2.SnapshotDiffReportListingProto()
    message.isFromEarlier = not page.is_turned  # else clients turn it round
    lists = {
        DiffKind.MODIFIED: message.modifiedEntries,
        DiffKind.CREATED: message.createdEntries,
        DiffKind.DELETED: message.deletedEntries,
        DiffKind.RENAMED: message.deletedEntries,  # and known by its target
    }
    for entry in page.entries:
        added = lists[entry.kind].add()
        added.fullpath = _join(entry.path)
        added.fileId = _number(_LABELS[entry.kind], entry.path)
        is_modified = entry.kind is DiffKind.MODIFIED
        added.dirId = _number("directory", entry.path if is_modified else entry.path[:-1])
        added.isReference = _is_reference(entry)
        if entry.target is not None:
            added.targetPath = _join(entry.target)
    fill_cursor(message.cursor, page.resume)
    return message


def _number(what: str, path: Names) -> int:
    """The same on every page, whichever NameNode it is asked from; Java's longs have a sign."""
    digest = hashlib.blake2s(_join(path), digest_size=8, key=what.encode()).digest()
    return int.from_bytes(digest) >> 1


def _is_reference(entry: DiffEntry) -> bool:
    """What HDFS says of directories that were modified, and of what was moved."""
    if entry.kind is DiffKind.MODIFIED:
        return entry.is_directory
    return entry.kind is DiffKind.RENAMED


def fill_cursor(cursor: hdfs_pb2.SnapshotDiffReportCursorProto, place: Position | None) -> None:
    """Where to go on, to be sent back as it is: a path, in which a name of a directory that was
    told to be modified has one more slash before it; the index is that of the last name."""
    if place is None:
        cursor.startPath, cursor.index = b"", _NO_INDEX
        return
    *above, last = place.told
    marked = (b"/" + name if told else name for name, told in zip(place.path, above, strict=True))
    cursor.startPath, cursor.index = b"/".join(marked), int(last)


def from_cursor(cursor: hdfs_pb2.SnapshotDiffReportCursorProto) -> Position | None:
    """Where to go on, as a page has said; None: from the beginning."""
    if not cursor.startPath and cursor.index == _NO_INDEX:
        return None
    names: list[bytes] = []
    told = []
    is_told = False
    for part in cursor.startPath.split(b"/"):
        if part:
            names.append(part)
            told.append(is_told)
        is_told = not part
    return Position(tuple(names), (*told, cursor.index > 0))


# Changes


def to_changes(page: ChangePage) -> cairn_pb2.GetSnapshotChangesResponseProto:
    message = cairn_pb2.GetSnapshotChangesResponseProto()
    for change in page.changes:
        added = message.changes.add(
            kind=cairn_pb2.SnapshotChangeProto.Kind.Name(change.kind),
            path=_join(change.path),
            txid=change.txid,
            fileId=change.inode_id,
            fileType=cairn_pb2.SnapshotChangeProto.FileType.Name(change.inode_kind),
        )
        if change.other is not None:
            added.otherPath = _join(change.other)
        if change.is_rewritten:
            added.contentChanged = True
    if page.resume is not None:
        message.cursor = msgspec.msgpack.encode(page.resume)
    return message


def from_changes_cursor(cursor: bytes) -> ChangePosition | None:
    """Where to go on with changes, as a page has said; None: from the beginning."""
    if not cursor:
        return None
    try:
        return msgspec.msgpack.decode(cursor, type=ChangePosition)
    except msgspec.MsgspecError:
        raise IllegalArgumentException(
            f"{cursor[:40].hex()} is no cursor of getSnapshotChanges: send back what the page"
            " before had, or none to begin with"
        ) from None


def _join(names: Names) -> bytes:
    return b"/".join(names)
