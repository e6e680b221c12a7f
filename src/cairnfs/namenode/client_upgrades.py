"""ClientNamenodeProtocol: upgrades of the cluster.

NameNodes and DataNodes are replaced one by one, without preparation; what `hdfs dfsadmin
-rollingUpgrade` is for beyond that, to be able to give up everything since `prepare`, is what the
root snapshot does.  So they are the same: prepared is one that was taken, finalized one that is
gone.  Going back is a call of our own, while the NameNodes run; HDFS restarts them for it.
"""

from __future__ import annotations

from cairnfs.namenode.admin_protocols import check_superuser
from cairnfs.namenode.call_tasks import answer_with
from cairnfs.namenode.responses import NOTHING
from cairnfs.namenode.service import IncomingCall, Response, Service
from cairnfs.namesystem.root_snapshot import (
    RootStatus,
    create_root_snapshot,
    finalize_root_snapshot,
    get_root_snapshot_status,
)
from cairnfs.namesystem.snapshot_records import RootSnapshot
from cairnfs.wire.proto import client_namenode_pb2 as pb
from cairnfs.wire.protocols import CLIENT_PROTOCOL

CALLS = Service(CLIENT_PROTOCOL)


@CALLS.handler
def finalize_upgrade(call: IncomingCall, request: pb.FinalizeUpgradeRequestProto) -> bytes:
    """Of another kind of upgrade, for which HDFS keeps its old files; there are none here."""
    check_superuser(call)
    return NOTHING


@CALLS.handler
def upgrade_status(
    call: IncomingCall, request: pb.UpgradeStatusRequestProto
) -> pb.UpgradeStatusResponseProto:
    return pb.UpgradeStatusResponseProto(upgradeFinalized=True)


@CALLS.handler
def rolling_upgrade(call: IncomingCall, request: pb.RollingUpgradeRequestProto) -> None:
    check_superuser(call)
    answer_with(call, _roll(call, request.action))


async def _roll(call: IncomingCall, action: int) -> Response:
    """As of HDFS: what is prepared already is told again, and without any, nothing."""
    namenode = call.namenode
    status: RootStatus | None = await namenode.call(get_root_snapshot_status, call.caller)
    known = None if status is None else status.snapshot
    if action == pb.START and known is None:
        namenode.safe_mode.check_off("create_root_snapshot", ())
        known = await namenode.call(create_root_snapshot, call.caller, "")
    if known is None:
        return NOTHING
    finalized_ms = 0
    if action == pb.FINALIZE:
        namenode.safe_mode.check_off("finalize_root_snapshot", ())
        await namenode.call(finalize_root_snapshot, call.caller)
        finalized_ms = namenode.clock.now_ms()
    return _to_info(known, namenode.block_pool_id, finalized_ms)


def _to_info(
    known: RootSnapshot, block_pool_id: str, finalized_ms: int
) -> pb.RollingUpgradeResponseProto:
    response = pb.RollingUpgradeResponseProto()
    info = response.rollingUpgradeInfo
    info.status.blockPoolId = block_pool_id
    info.status.finalized = finalized_ms > 0
    info.startTime = known.created_ms
    info.finalizeTime = finalized_ms
    info.createdRollbackImages = True
    return response
