"""CairnProtocol: back to a snapshot, and the root snapshot.

A roll-back is one transaction, with the snapshot of what is given up: whenever its NameNode dies,
it is done or has not begun, and a call that is repeated is answered alike by any of them.  What
it leaves to be done is a duty (`reclaiming`), which another NameNode takes over.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection

from cairnfs.errors import IllegalArgumentException
from cairnfs.namenode.call_tasks import answer_with
from cairnfs.namenode.service import IncomingCall, Service
from cairnfs.namenode.snapshot_work import measure_work
from cairnfs.namesystem import rollback, root_snapshot
from cairnfs.namesystem.paths import FsPath
from cairnfs.namesystem.root_snapshot import RootStatus, TreeCounts
from cairnfs.namesystem.snapshot_records import RootSnapshot
from cairnfs.transaction.calls import CallKey
from cairnfs.wire.proto import cairn_pb2
from cairnfs.wire.protocols import CAIRN_PROTOCOL, as_text

CALLS = Service(CAIRN_PROTOCOL)

SNAPSHOTS_AT_ONCE_MAX = 1000
SAFETY_PREFIX = "before-rollback-"
_TOKEN_BYTES = 6


@CALLS.handler
def rollback_snapshot(call: IncomingCall, request: cairn_pb2.RollbackSnapshotRequestProto) -> None:
    call.run(
        rollback.rollback_snapshot,
        lambda safety: cairn_pb2.RollbackSnapshotResponseProto(safetySnapshot=safety),
        FsPath.parse(request.path),
        as_text(request.snapshotName),
        as_text(request.safetyName) or name_safety_snapshot(call.key),
    )


@CALLS.handler
def rollback_snapshots(
    call: IncomingCall, request: cairn_pb2.RollbackSnapshotsRequestProto
) -> None:
    """Of several directories together: all of them, or none."""
    call.run(
        rollback.rollback_snapshots,
        lambda safety: cairn_pb2.RollbackSnapshotsResponseProto(safetySnapshots=safety),
        parse_several(request.paths, "rollbackSnapshots"),
        as_text(request.snapshotName),
        name_safety_snapshot(call.key),
    )


@CALLS.handler
def create_root_snapshot(
    call: IncomingCall, request: cairn_pb2.CreateRootSnapshotRequestProto
) -> None:
    def encode(taken: RootSnapshot) -> cairn_pb2.CreateRootSnapshotResponseProto:
        return cairn_pb2.CreateRootSnapshotResponseProto(snapshot=to_root_snapshot(taken))

    call.run(root_snapshot.create_root_snapshot, encode, as_text(request.snapshotName))


@CALLS.handler
def rollback_root_snapshot(
    call: IncomingCall, request: cairn_pb2.RollbackRootSnapshotRequestProto
) -> None:
    call.run(
        root_snapshot.rollback_root_snapshot,
        lambda safety: cairn_pb2.RollbackRootSnapshotResponseProto(safetySnapshot=safety),
        name_safety_snapshot(call.key),
    )


@CALLS.handler
def finalize_root_snapshot(
    call: IncomingCall, request: cairn_pb2.FinalizeRootSnapshotRequestProto
) -> None:
    call.run(
        root_snapshot.finalize_root_snapshot,
        lambda deleted: cairn_pb2.FinalizeRootSnapshotResponseProto(deletedSnapshots=deleted),
    )


@CALLS.handler
def get_root_snapshot_status(
    call: IncomingCall, request: cairn_pb2.GetRootSnapshotStatusRequestProto
) -> None:
    answer_with(call, _root_snapshot_status(call))


async def _root_snapshot_status(call: IncomingCall) -> cairn_pb2.GetRootSnapshotStatusResponseProto:
    namenode = call.namenode
    status: RootStatus | None = await namenode.call(
        root_snapshot.get_root_snapshot_status, call.caller
    )
    response = cairn_pb2.GetRootSnapshotStatusResponseProto()
    if status is not None:
        response.snapshot.CopyFrom(to_root_snapshot(status.snapshot))
        response.then.CopyFrom(_to_counts(status.then))
        response.now.CopyFrom(_to_counts(status.now))
        response.lastTxid = await namenode.store.last_txid()
        response.hindrances.extend(status.hindrances)
    return response


@CALLS.handler
def get_snapshot_work(call: IncomingCall, request: cairn_pb2.GetSnapshotWorkRequestProto) -> None:
    answer_with(call, measure_work(call.namenode))


def parse_several(paths: Collection[str], call: str) -> tuple[FsPath, ...]:
    """The directories of a call that is about several of them."""
    if not 0 < len(paths) <= SNAPSHOTS_AT_ONCE_MAX:
        raise IllegalArgumentException(
            f"{call} takes 1 to {SNAPSHOTS_AT_ONCE_MAX} directories, not {len(paths)}"
        )
    return tuple(map(FsPath.parse, paths))


def to_root_snapshot(taken: RootSnapshot) -> cairn_pb2.RootSnapshotProto:
    message = cairn_pb2.RootSnapshotProto(
        snapshotName=taken.name.decode(),
        txid=taken.txid,
        createdMs=taken.created_ms,
        user=taken.user,
        safetySnapshots=[name.decode() for name in taken.safety],
    )
    if taken.rolled_back_ms:
        message.rolledBackMs = taken.rolled_back_ms
    return message


def _to_counts(counts: TreeCounts) -> cairn_pb2.TreeCountsProto:
    return cairn_pb2.TreeCountsProto(
        files=counts.files,
        directories=counts.directories,
        lengthBytes=counts.length_bytes,
        spaceBytes=counts.space_bytes,
    )


def name_safety_snapshot(key: CallKey | None) -> str:
    """A name that no other call gives, and each repetition of this one does."""
    seed = os.urandom(16) if key is None else key.client_id + key.call_id.to_bytes(8, "big")
    return SAFETY_PREFIX + hashlib.blake2s(seed, digest_size=_TOKEN_BYTES).hexdigest()
