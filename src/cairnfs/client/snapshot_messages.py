"""From the messages about snapshots to `records`; pages of a diff, as they come."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from cairnfs.client.messages import decode_name
from cairnfs.client.records import (
    ChangeKind,
    DiffEntry,
    FileType,
    SnapshotChange,
    SnapshotSchedule,
    SnapshotSpace,
)
from cairnfs.errors import IllegalArgumentException
from cairnfs.wire.proto import cairn_pb2, hdfs_pb2

_NO_INDEX = -1
_COUNT_MAX = 2**31 - 1
_Page = hdfs_pb2.SnapshotDiffReportListingProto
_PageEntry = hdfs_pb2.SnapshotDiffReportListingEntryProto


class DiffPages:
    """The pages of getSnapshotDiffReportListing, one after the other, as entries of a diff.

    HDFS lists what was renamed twice, where it was (with where it is) and where it is.  The
    latter is held back until the former is seen: only so many entries are in memory as renames
    are known by one end.
    """

    def __init__(self) -> None:
        self.cursor = hdfs_pb2.SnapshotDiffReportCursorProto(startPath=b"", index=_NO_INDEX)
        self.is_complete = False
        self._arrived: dict[int, DiffEntry] = {}  # perhaps from where we will see it leave
        self._left: set[int] = set()  # to where we will see them arrive

    def read(self, page: _Page) -> Iterator[DiffEntry]:
        """The entries of the next page: of each directory, what is gone before what is new."""
        gone, come = _by_directory(page.deletedEntries), _by_directory(page.createdEntries)
        modified = {entry.dirId for entry in page.modifiedEntries}
        for id in (gone.keys() | come.keys()) - modified:  # a directory of the page before
            yield from self._tell(gone.get(id, ()), come.get(id, ()), page.isFromEarlier)
        for entry in page.modifiedEntries:
            yield DiffEntry("M", _path(entry.fullpath))
            if entry.isReference:  # a directory
                id = entry.dirId
                yield from self._tell(gone.get(id, ()), come.get(id, ()), page.isFromEarlier)
        self.cursor = page.cursor
        self.is_complete = not page.cursor.startPath and page.cursor.index == _NO_INDEX
        if self.is_complete:
            yield from self._arrived.values()  # from outside of the directory

    def _tell(
        self, gone: Iterable[_PageEntry], come: Iterable[_PageEntry], is_forward: bool
    ) -> Iterator[DiffEntry]:
        """What of one directory is not there on the later side, and on the earlier one."""
        for entry in gone:
            if entry.isReference and entry.HasField("targetPath"):
                self._match(entry.fileId)
                old, new = _path(entry.fullpath), _path(entry.targetPath)
                yield DiffEntry("R", old, new) if is_forward else DiffEntry("R", new, old)
            else:
                yield DiffEntry("-" if is_forward else "+", _path(entry.fullpath))
        for entry in come:
            found = DiffEntry("+" if is_forward else "-", _path(entry.fullpath))
            if not entry.isReference:
                yield found
            elif entry.fileId in self._left:
                self._left.remove(entry.fileId)
            else:
                self._arrived[entry.fileId] = found

    def _match(self, file_id: int) -> None:
        if self._arrived.pop(file_id, None) is None:
            self._left.add(file_id)


def _by_directory(entries: Iterable[_PageEntry]) -> dict[int, list[_PageEntry]]:
    found: dict[int, list[_PageEntry]] = {}
    for entry in entries:
        found.setdefault(entry.dirId, []).append(entry)
    return found


def _path(path: bytes) -> str:
    return decode_name(path) or "."


def decode_change(message: cairn_pb2.SnapshotChangeProto) -> SnapshotChange:
    return SnapshotChange(
        ChangeKind(cairn_pb2.SnapshotChangeProto.Kind.Name(message.kind)),
        _path(message.path),
        _path(message.otherPath) if message.HasField("otherPath") else None,
        message.txid,
        message.fileId,
        FileType(cairn_pb2.SnapshotChangeProto.FileType.Name(message.fileType)),
        message.contentChanged,
    )


def decode_space(message: cairn_pb2.SnapshotSpaceProto) -> SnapshotSpace:
    return SnapshotSpace(message.snapshotName, message.referencedBytes, message.exclusiveBytes)


def decode_schedule(message: cairn_pb2.SnapshotScheduleProto) -> SnapshotSchedule:
    return SnapshotSchedule(
        message.path,
        message.hourly,
        message.daily,
        message.weekly,
        message.monthly,
        message.yearly,
        message.prefix,
    )


def encode_schedule(schedule: SnapshotSchedule, path: str) -> cairn_pb2.SnapshotScheduleProto:
    counts = msgspec.structs.astuple(schedule)[1:-1]
    if any(not 0 <= count <= _COUNT_MAX for count in counts):
        raise IllegalArgumentException(f"A schedule of {path} cannot keep {counts} snapshots")
    return cairn_pb2.SnapshotScheduleProto(
        path=path,
        prefix=schedule.prefix,
        hourly=schedule.hourly,
        daily=schedule.daily,
        weekly=schedule.weekly,
        monthly=schedule.monthly,
        yearly=schedule.yearly,
    )
