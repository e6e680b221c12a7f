"""Snapshots: taking, listing, comparing; and what only CairnFS can do with them.

The calls of HDFS work with an Apache HDFS as well; the others go by a protocol of our own,
and are refused there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

from google.protobuf.message import Message

from cairnfs.client.calls import PathLike, check_text
from cairnfs.client.messages import (
    decode_diff_report,
    decode_snapshot,
    decode_snapshottable,
    join_path,
)
from cairnfs.client.namespace import Namespace
from cairnfs.client.records import (
    DiffEntry,
    SchedulePreview,
    Snapshot,
    SnapshotChange,
    SnapshotDiffReport,
    SnapshotSchedule,
    SnapshotSpace,
    SnapshottableDirectory,
)
from cairnfs.client.snapshot_messages import (
    DiffPages,
    decode_change,
    decode_schedule,
    decode_space,
    encode_schedule,
)
from cairnfs.errors import (
    IllegalArgumentException,
    RpcNoSuchMethodException,
    RpcNoSuchProtocolException,
    UnsupportedOperationException,
)
from cairnfs.wire.proto import cairn_pb2
from cairnfs.wire.proto import client_namenode_pb2 as pb
from cairnfs.wire.protocols import CAIRN_PROTOCOL

_M = TypeVar("_M", bound=Message)
_ROOT = "snapshotRoot"


class Snapshots(Namespace):
    """The snapshots of directories."""

    def allow_snapshot(self, path: PathLike) -> None:
        """Let snapshots be taken of a directory."""
        request = pb.AllowSnapshotRequestProto(snapshotRoot=self.absolute_path(path))
        self._namenodes.call_path("allowSnapshot", request, pb.AllowSnapshotResponseProto, _ROOT)

    def disallow_snapshot(self, path: PathLike) -> None:
        """No longer let them be taken; there must be none left."""
        request = pb.DisallowSnapshotRequestProto(snapshotRoot=self.absolute_path(path))
        self._namenodes.call_path(
            "disallowSnapshot", request, pb.DisallowSnapshotResponseProto, _ROOT
        )

    def create_snapshot(self, path: PathLike, name: str | None = None) -> str:
        """Take a snapshot; its path.  Without a name it is named by the time."""
        check_snapshot_names(name)
        request = pb.CreateSnapshotRequestProto(snapshotRoot=self.absolute_path(path))
        if name is not None:
            request.snapshotName = name
        return self._namenodes.call_path(
            "createSnapshot", request, pb.CreateSnapshotResponseProto, _ROOT
        ).snapshotPath

    def rename_snapshot(self, path: PathLike, old_name: str, new_name: str) -> None:
        """Give a snapshot another name."""
        check_snapshot_names(old_name, new_name)
        request = pb.RenameSnapshotRequestProto(
            snapshotRoot=self.absolute_path(path),
            snapshotOldName=old_name,
            snapshotNewName=new_name,
        )
        self._namenodes.call_path("renameSnapshot", request, pb.RenameSnapshotResponseProto, _ROOT)

    def delete_snapshot(self, path: PathLike, name: str) -> None:
        """Delete a snapshot."""
        check_snapshot_names(name)
        request = pb.DeleteSnapshotRequestProto(
            snapshotRoot=self.absolute_path(path), snapshotName=name
        )
        self._namenodes.call_path("deleteSnapshot", request, pb.DeleteSnapshotResponseProto, _ROOT)

    def get_snapshottable_directories(self) -> list[SnapshottableDirectory]:
        """The directories of which the user may take snapshots."""
        response = self._namenodes.call(
            "getSnapshottableDirListing",
            pb.GetSnapshottableDirListingRequestProto(),
            pb.GetSnapshottableDirListingResponseProto,
        )
        listing = response.snapshottableDirList.snapshottableDirListing
        return [decode_snapshottable(entry) for entry in listing]

    def list_snapshots(self, path: PathLike) -> list[Snapshot]:
        """The snapshots of a directory, by name."""
        request = pb.GetSnapshotListingRequestProto(snapshotRoot=self.absolute_path(path))
        try:
            response = self._namenodes.call_path(
                "getSnapshotListing", request, pb.GetSnapshotListingResponseProto, _ROOT
            )
        except RpcNoSuchMethodException:  # of an HDFS before 3.4
            listed = self.list_status(join_path(request.snapshotRoot, ".snapshot"))
            return [Snapshot(status, None, is_deleted=False) for status in listed]
        return [decode_snapshot(entry) for entry in response.snapshotList.snapshotListing]

    def find_snapshot(self, path: PathLike, name: str) -> Snapshot | None:
        """The snapshot of that name of a directory, if it has one."""
        for snapshot in self.list_snapshots(path):
            if snapshot.status.name == name and not snapshot.is_deleted:
                return snapshot
        return None

    # What has changed

    def get_snapshot_diff_report(
        self, path: PathLike, from_snapshot: str = "", to_snapshot: str = ""
    ) -> SnapshotDiffReport:
        """What changed between two snapshots of a directory, as one answer; "" is the present."""
        check_snapshot_names(from_snapshot, to_snapshot)
        request = pb.GetSnapshotDiffReportRequestProto(
            snapshotRoot=self.absolute_path(path),
            fromSnapshot=from_snapshot,
            toSnapshot=to_snapshot,
        )
        response = self._namenodes.call_path(
            "getSnapshotDiffReport", request, pb.GetSnapshotDiffReportResponseProto, _ROOT
        )
        return decode_diff_report(response.diffReport)

    def snapshot_diff(self, path: PathLike, old: str = "", new: str = "") -> Iterator[DiffEntry]:
        """What changed between two snapshots, however much that is; "" is the present.

        Of a clone on CairnFS, ":origin" is what it began as.
        It comes a page at a time, except where the present is compared: that may change from
        one page to the next, and so comes as one answer.
        """
        if not old or not new:
            yield from self.get_snapshot_diff_report(path, old, new).entries
            return
        check_snapshot_names(old, new)
        request = pb.GetSnapshotDiffReportListingRequestProto(
            snapshotRoot=self.absolute_path(path), fromSnapshot=old, toSnapshot=new
        )
        pages = DiffPages()
        while not pages.is_complete:
            request.cursor.CopyFrom(pages.cursor)
            response = self._namenodes.call_path(
                "getSnapshotDiffReportListing",
                request,
                pb.GetSnapshotDiffReportListingResponseProto,
                _ROOT,
            )
            yield from pages.read(response.diffReport)

    def snapshot_changes(self, path: PathLike, old: str, new: str = "") -> Iterator[SnapshotChange]:
        """The same in five categories, each with its transaction, in an order to apply.

        First what leaves its place, then what arrives or is different: what was moved out is
        to be kept aside until it is moved in (`apply_changes`).  It comes a page at a time, up
        to the present all at once.  Only on CairnFS.
        """
        check_snapshot_names(old, new)
        request = cairn_pb2.GetSnapshotChangesRequestProto(
            path=self.absolute_path(path), fromSnapshot=old, toSnapshot=new
        )
        while True:
            response = self._call_cairn(
                "getSnapshotChanges", request, cairn_pb2.GetSnapshotChangesResponseProto, "path"
            )
            yield from map(decode_change, response.changes)
            if not response.cursor:
                return
            request.cursor = response.cursor

    # What HDFS cannot do

    def create_snapshots(self, paths: Sequence[PathLike], name: str | None = None) -> list[str]:
        """Take a snapshot of each directory, all at one moment; their paths.  Only on CairnFS."""
        check_snapshot_names(name)
        request = cairn_pb2.CreateSnapshotsRequestProto(
            snapshotRoots=map(self.absolute_path, _several(paths))
        )
        if name is not None:
            request.snapshotName = name
        response = self._call_cairn(
            "createSnapshots", request, cairn_pb2.CreateSnapshotsResponseProto
        )
        return list(response.snapshotPaths)

    def rollback_snapshot(self, path: PathLike, name: str, safety: str | None = None) -> str:
        """Make a directory or file what it was in a snapshot, in place.  Only on CairnFS.

        What it was before is kept in a snapshot, whose name is returned: the one of that very
        moment if there is one, else `safety`, or a name that is made up.
        """
        check_snapshot_names(name, safety)
        request = cairn_pb2.RollbackSnapshotRequestProto(
            path=self.absolute_path(path), snapshotName=name, safetyName=safety
        )
        return self._call_cairn(
            "rollbackSnapshot", request, cairn_pb2.RollbackSnapshotResponseProto, "path"
        ).safetySnapshot

    def rollback_snapshots(self, paths: Sequence[PathLike], name: str) -> list[str]:
        """Roll several directories back together, each to its snapshot of that name.

        All of them, or none; what they were before is kept in snapshots, whose names are
        returned.  Only on CairnFS.
        """
        check_snapshot_names(name)
        request = cairn_pb2.RollbackSnapshotsRequestProto(
            paths=map(self.absolute_path, _several(paths)), snapshotName=name
        )
        response = self._call_cairn(
            "rollbackSnapshots", request, cairn_pb2.RollbackSnapshotsResponseProto
        )
        return list(response.safetySnapshots)

    def clone_snapshot(self, path: PathLike, name: str, destination: PathLike) -> None:
        """Make a directory that begins as a snapshot, and can be written.  Only on CairnFS."""
        check_snapshot_names(name)
        request = cairn_pb2.CloneSnapshotRequestProto(
            snapshotRoot=self.absolute_path(path),
            snapshotName=name,
            destination=self.absolute_path(destination),
        )
        self._call_cairn("cloneSnapshot", request, cairn_pb2.CloneSnapshotResponseProto, _ROOT)

    def snapshot_space(self, path: PathLike, *names: str) -> list[SnapshotSpace]:
        """What snapshots of a directory take, without names all of them.  Only on CairnFS."""
        check_snapshot_names(*names)
        request = cairn_pb2.GetSnapshotSpaceRequestProto(
            snapshotRoot=self.absolute_path(path), snapshotNames=names
        )
        response = self._call_cairn(
            "getSnapshotSpace", request, cairn_pb2.GetSnapshotSpaceResponseProto, _ROOT
        )
        return list(map(decode_space, response.snapshots))

    # Schedules

    def set_snapshot_schedule(self, schedule: SnapshotSchedule) -> None:
        """Have snapshots of a directory taken and deleted.  Only on CairnFS."""
        self._call_cairn(
            "setSnapshotSchedule",
            cairn_pb2.SetSnapshotScheduleRequestProto(schedule=self._encode_schedule(schedule)),
            cairn_pb2.SetSnapshotScheduleResponseProto,
        )

    def remove_snapshot_schedule(self, path: PathLike) -> None:
        """Take no more; those that there are stay.  Only on CairnFS."""
        request = cairn_pb2.RemoveSnapshotScheduleRequestProto(path=self.absolute_path(path))
        self._call_cairn(
            "removeSnapshotSchedule",
            request,
            cairn_pb2.RemoveSnapshotScheduleResponseProto,
            "path",
        )

    def get_snapshot_schedules(self) -> list[SnapshotSchedule]:
        """All that there are, of directories of the user.  Only on CairnFS."""
        response = self._call_cairn(
            "getSnapshotSchedules",
            cairn_pb2.GetSnapshotSchedulesRequestProto(),
            cairn_pb2.GetSnapshotSchedulesResponseProto,
        )
        return list(map(decode_schedule, response.schedules))

    def preview_snapshot_schedule(self, schedule: SnapshotSchedule) -> SchedulePreview:
        """What a schedule would keep and delete now; nothing is done.  Only on CairnFS."""
        response = self._call_cairn(
            "previewSnapshotSchedule",
            cairn_pb2.PreviewSnapshotScheduleRequestProto(schedule=self._encode_schedule(schedule)),
            cairn_pb2.PreviewSnapshotScheduleResponseProto,
        )
        return SchedulePreview(list(response.kept), list(response.deleted))

    def _encode_schedule(self, schedule: SnapshotSchedule) -> cairn_pb2.SnapshotScheduleProto:
        check_snapshot_names(schedule.prefix)
        return encode_schedule(schedule, self.absolute_path(schedule.path))

    def _call_cairn(
        self, name: str, request: Message, answer: type[_M], path_field: str | None = None
    ) -> _M:
        try:
            if path_field is None:
                return self._namenodes.call(name, request, answer, CAIRN_PROTOCOL)
            return self._namenodes.call_path(name, request, answer, path_field, CAIRN_PROTOCOL)
        except RpcNoSuchProtocolException:
            where = ",".join(map(str, self._namenodes.addresses))
            raise UnsupportedOperationException(
                f"{name} is not supported: what answers at {where} is no CairnFS"
            ) from None


def check_snapshot_names(*names: str | None) -> None:
    """They can be sent."""
    for name in names:
        check_text(name or "", "snapshot")


def _several(paths: Sequence[PathLike]) -> Sequence[PathLike]:
    if isinstance(paths, str):
        raise IllegalArgumentException(f"{paths!r} is one path: give a list of them")
    return paths
