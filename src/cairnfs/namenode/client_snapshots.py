"""ClientNamenodeProtocol: snapshots, and what has changed between them."""

from __future__ import annotations

from cairnfs.errors import IOException
from cairnfs.namenode.responses import NOTHING, encode_first_field, encode_nothing
from cairnfs.namenode.service import IncomingCall, Response, Service
from cairnfs.namenode.snapshot_messages import (
    from_cursor,
    to_diff_page,
    to_diff_report,
    to_snapshots,
    to_snapshottable,
)
from cairnfs.namesystem import snapshots
from cairnfs.namesystem.paths import FsPath
from cairnfs.namesystem.snapshot_diff import WHOLE_DIFF, DiffPage, snapshot_diff
from cairnfs.namesystem.snapshots import SnapshotInfo, SnapshottableInfo
from cairnfs.wire.proto import client_namenode_pb2 as pb
from cairnfs.wire.protocols import CLIENT_PROTOCOL, as_text

CALLS = Service(CLIENT_PROTOCOL)

_parse = FsPath.parse


@CALLS.handler
def allow_snapshot(call: IncomingCall, request: pb.AllowSnapshotRequestProto) -> None:
    call.run(snapshots.allow_snapshot, encode_nothing, _parse(request.snapshotRoot))


@CALLS.handler
def disallow_snapshot(call: IncomingCall, request: pb.DisallowSnapshotRequestProto) -> None:
    call.run(snapshots.disallow_snapshot, encode_nothing, _parse(request.snapshotRoot))


@CALLS.handler
def create_snapshot(call: IncomingCall, request: pb.CreateSnapshotRequestProto) -> None:
    path = _parse(request.snapshotRoot)
    path.check_length("createSnapshot")
    call.run(
        snapshots.create_snapshots,
        lambda paths: encode_first_field(paths[0].encode()),
        (path,),
        as_text(request.snapshotName),
    )


@CALLS.handler
def rename_snapshot(call: IncomingCall, request: pb.RenameSnapshotRequestProto) -> None:
    path = _parse(request.snapshotRoot)
    if not request.snapshotNewName:
        raise IOException(
            "The new snapshot name is null or empty."
            f" It is for snapshot {as_text(request.snapshotOldName)} of {path}."
        )
    call.run(
        snapshots.rename_snapshot,
        encode_nothing,
        path,
        as_text(request.snapshotOldName),
        as_text(request.snapshotNewName),
    )


@CALLS.handler
def delete_snapshot(call: IncomingCall, request: pb.DeleteSnapshotRequestProto) -> None:
    path = _parse(request.snapshotRoot)
    if not request.snapshotName:
        raise IOException(
            f"The snapshot name is null or empty. Name the one of {path} that is to be deleted."
        )
    call.run(
        snapshots.delete_snapshot,
        encode_nothing,
        path,
        as_text(request.snapshotName),
    )


@CALLS.handler
def get_snapshottable_dir_listing(
    call: IncomingCall, request: pb.GetSnapshottableDirListingRequestProto
) -> None:
    def encode(found: list[SnapshottableInfo]) -> Response:
        if not found:
            return NOTHING
        return pb.GetSnapshottableDirListingResponseProto(
            snapshottableDirList=to_snapshottable(found)
        )

    call.run(snapshots.list_snapshottable, encode)


@CALLS.handler
def get_snapshot_listing(call: IncomingCall, request: pb.GetSnapshotListingRequestProto) -> None:
    path = _parse(request.snapshotRoot)

    def encode(found: list[SnapshotInfo]) -> pb.GetSnapshotListingResponseProto:
        return pb.GetSnapshotListingResponseProto(snapshotList=to_snapshots(found, path))

    call.run(snapshots.list_snapshots, encode, path)


@CALLS.handler
def get_snapshot_diff_report(
    call: IncomingCall, request: pb.GetSnapshotDiffReportRequestProto
) -> None:
    """All at once, and so of one moment: clients ask for it where the present is compared."""

    def encode(page: DiffPage) -> pb.GetSnapshotDiffReportResponseProto:
        return pb.GetSnapshotDiffReportResponseProto(diffReport=to_diff_report(page, request))

    call.run(
        snapshot_diff,
        encode,
        _parse(request.snapshotRoot),
        as_text(request.fromSnapshot),
        as_text(request.toSnapshot),
        None,
        WHOLE_DIFF,
    )


@CALLS.handler
def get_snapshot_diff_report_listing(
    call: IncomingCall, request: pb.GetSnapshotDiffReportListingRequestProto
) -> None:
    def encode(page: DiffPage) -> pb.GetSnapshotDiffReportListingResponseProto:
        return pb.GetSnapshotDiffReportListingResponseProto(diffReport=to_diff_page(page))

    call.run(
        snapshot_diff,
        encode,
        _parse(request.snapshotRoot),
        as_text(request.fromSnapshot),
        as_text(request.toSnapshot),
        from_cursor(request.cursor),
    )
