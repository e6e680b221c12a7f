"""CairnProtocol: what HDFS has no calls for."""

from __future__ import annotations

from cairnfs.errors import IllegalArgumentException
from cairnfs.namenode.messages import encode_nothing
from cairnfs.namenode.rolling_back import RollBack
from cairnfs.namenode.service import IncomingCall, Service
from cairnfs.namesystem import rollback, snapshots
from cairnfs.namesystem.paths import FsPath
from cairnfs.wire.proto import cairn_pb2
from cairnfs.wire.protocols import CAIRN_PROTOCOL, as_text

CAIRN_SERVICE = Service(CAIRN_PROTOCOL)

SNAPSHOTS_AT_ONCE_MAX = 1000

_parse = FsPath.parse


@CAIRN_SERVICE.handler
def create_snapshots(call: IncomingCall, request: cairn_pb2.CreateSnapshotsRequestProto) -> None:
    """Of several directories at one moment: all of them, or none."""
    paths = tuple(map(_parse, request.snapshotRoots))
    if not 0 < len(paths) <= SNAPSHOTS_AT_ONCE_MAX:
        raise IllegalArgumentException(
            f"createSnapshots takes 1 to {SNAPSHOTS_AT_ONCE_MAX} directories, not {len(paths)}"
        )
    call.run(
        snapshots.create_snapshots,
        lambda taken: cairn_pb2.CreateSnapshotsResponseProto(snapshotPaths=taken),
        paths,
        as_text(request.snapshotName),
    )


@CAIRN_SERVICE.handler
def rollback_snapshot(call: IncomingCall, request: cairn_pb2.RollbackSnapshotRequestProto) -> None:
    RollBack(call, _parse(request.path), as_text(request.snapshotName)).begin()


@CAIRN_SERVICE.handler
def clone_snapshot(call: IncomingCall, request: cairn_pb2.CloneSnapshotRequestProto) -> None:
    call.run(
        rollback.clone_snapshot,
        encode_nothing,
        _parse(request.snapshotRoot),
        as_text(request.snapshotName),
        _parse(request.destination),
    )
