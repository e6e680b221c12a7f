"""CairnProtocol: what HDFS has no calls for."""

from __future__ import annotations

import msgspec

from cairnfs.namenode import (
    balancer_calls,
    client_policies,
    inherited_xattrs,
    rolling_back,
    view_calls,
    work_calls,
)
from cairnfs.namenode.responses import encode_nothing
from cairnfs.namenode.rolling_back import parse_several
from cairnfs.namenode.service import IncomingCall, Service
from cairnfs.namenode.snapshot_messages import from_changes_cursor, to_changes
from cairnfs.namesystem import clones, job_output, schedules, snapshot_space, snapshots
from cairnfs.namesystem.paths import FsPath
from cairnfs.namesystem.schedules import Plan, Schedule, ScheduleInfo
from cairnfs.namesystem.snapshot_changes import snapshot_changes
from cairnfs.namesystem.snapshot_space import SnapshotSpace
from cairnfs.wire.proto import cairn_pb2
from cairnfs.wire.protocols import CAIRN_PROTOCOL, as_text

CALLS = Service(CAIRN_PROTOCOL)

_parse = FsPath.parse


@CALLS.handler
def create_snapshots(call: IncomingCall, request: cairn_pb2.CreateSnapshotsRequestProto) -> None:
    """Of several directories at one moment: all of them, or none."""
    call.run(
        snapshots.create_snapshots,
        lambda taken: cairn_pb2.CreateSnapshotsResponseProto(snapshotPaths=taken),
        parse_several(request.snapshotRoots, "createSnapshots"),
        as_text(request.snapshotName),
    )


@CALLS.handler
def clone_snapshot(call: IncomingCall, request: cairn_pb2.CloneSnapshotRequestProto) -> None:
    call.run(
        clones.clone_snapshot,
        encode_nothing,
        _parse(request.snapshotRoot),
        as_text(request.snapshotName),
        _parse(request.destination),
    )


@CALLS.handler
def get_snapshot_space(call: IncomingCall, request: cairn_pb2.GetSnapshotSpaceRequestProto) -> None:
    def encode(found: list[SnapshotSpace]) -> cairn_pb2.GetSnapshotSpaceResponseProto:
        response = cairn_pb2.GetSnapshotSpaceResponseProto()
        for each in found:
            added = response.snapshots.add()
            added.snapshotName = each.name.decode(errors="replace")
            added.referencedBytes = each.referenced_bytes
            added.exclusiveBytes = each.exclusive_bytes
        return response

    call.run(
        snapshot_space.snapshot_space,
        encode,
        _parse(request.snapshotRoot),
        tuple(map(as_text, request.snapshotNames)),
    )


@CALLS.handler
def get_snapshot_changes(
    call: IncomingCall, request: cairn_pb2.GetSnapshotChangesRequestProto
) -> None:
    call.run(
        snapshot_changes,
        to_changes,
        _parse(request.path),
        as_text(request.fromSnapshot),
        as_text(request.toSnapshot),
        from_changes_cursor(request.cursor),
    )


# Jobs


@CALLS.handler
def commit_output(call: IncomingCall, request: cairn_pb2.CommitOutputRequestProto) -> None:
    call.run(
        job_output.commit_output,
        lambda done: cairn_pb2.CommitOutputResponseProto(moved=done.moved, removed=done.removed),
        _parse(request.src),
        _parse(request.dst),
        request.mode,
    )


# Schedules


@CALLS.handler
def set_snapshot_schedule(
    call: IncomingCall, request: cairn_pb2.SetSnapshotScheduleRequestProto
) -> None:
    given = request.schedule
    call.run(schedules.set_schedule, encode_nothing, _parse(given.path), _from_schedule(given))


@CALLS.handler
def remove_snapshot_schedule(
    call: IncomingCall, request: cairn_pb2.RemoveSnapshotScheduleRequestProto
) -> None:
    call.run(schedules.remove_schedule, encode_nothing, _parse(request.path))


@CALLS.handler
def get_snapshot_schedules(
    call: IncomingCall, request: cairn_pb2.GetSnapshotSchedulesRequestProto
) -> None:
    def encode(found: list[ScheduleInfo]) -> cairn_pb2.GetSnapshotSchedulesResponseProto:
        response = cairn_pb2.GetSnapshotSchedulesResponseProto()
        for info in found:
            response.schedules.add(path=info.path, **msgspec.structs.asdict(info.schedule))
        return response

    call.run(schedules.list_schedules, encode)


@CALLS.handler
def preview_snapshot_schedule(
    call: IncomingCall, request: cairn_pb2.PreviewSnapshotScheduleRequestProto
) -> None:
    given = request.schedule

    def encode(plan: Plan) -> cairn_pb2.PreviewSnapshotScheduleResponseProto:
        return cairn_pb2.PreviewSnapshotScheduleResponseProto(kept=plan.kept, deleted=plan.deleted)

    call.run(schedules.preview_schedule, encode, _parse(given.path), _from_schedule(given))


def _from_schedule(message: cairn_pb2.SnapshotScheduleProto) -> Schedule:
    return Schedule(
        as_text(message.prefix),
        message.hourly,
        message.daily,
        message.weekly,
        message.monthly,
        message.yearly,
    )


CAIRN_SERVICE = Service.join(
    CALLS,
    rolling_back.CALLS,
    inherited_xattrs.CALLS,
    client_policies.CAIRN_CALLS,
    balancer_calls.CALLS,
    view_calls.CALLS,
    work_calls.CALLS,
)
