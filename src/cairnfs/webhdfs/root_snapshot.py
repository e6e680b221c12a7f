"""WebHDFS operations on the root snapshot; HDFS has none of them."""

from __future__ import annotations

from aiohttp import web

from cairnfs.errors import IllegalArgumentException
from cairnfs.webhdfs.calls import WebCall
from cairnfs.webhdfs.looking import Operation
from cairnfs.webhdfs.requests import answer_json
from cairnfs.wire.proto import cairn_pb2
from cairnfs.wire.protocols import CAIRN_PROTOCOL


async def create_root_snapshot(call: WebCall) -> web.Response:
    _check_root(call)
    message = cairn_pb2.CreateRootSnapshotRequestProto(
        snapshotName=call.parameters.text("snapshotname")
    )
    response = await call.rpc("createRootSnapshot", message, CAIRN_PROTOCOL)
    return answer_json({"RootSnapshot": _describe(response.snapshot)})


async def get_root_snapshot_status(call: WebCall) -> web.Response:
    _check_root(call)
    request = cairn_pb2.GetRootSnapshotStatusRequestProto()
    status = await call.rpc("getRootSnapshotStatus", request, CAIRN_PROTOCOL)
    work = await call.rpc(
        "getSnapshotWork", cairn_pb2.GetSnapshotWorkRequestProto(), CAIRN_PROTOCOL
    )
    found = None
    if status.HasField("snapshot"):
        found = {
            **_describe(status.snapshot),
            "then": _count(status.then),
            "now": _count(status.now),
            "lastTxid": status.lastTxid,
            "hindrances": list(status.hindrances),
        }
    return answer_json({"RootSnapshot": found, "Work": _describe_work(work)})


async def rollback_root_snapshot(call: WebCall) -> web.Response:
    _check_root(call)
    request = cairn_pb2.RollbackRootSnapshotRequestProto()
    response = await call.rpc("rollbackRootSnapshot", request, CAIRN_PROTOCOL)
    return answer_json({"SafetySnapshot": response.safetySnapshot})


async def finalize_root_snapshot(call: WebCall) -> web.Response:
    _check_root(call)
    request = cairn_pb2.FinalizeRootSnapshotRequestProto()
    response = await call.rpc("finalizeRootSnapshot", request, CAIRN_PROTOCOL)
    return answer_json({"DeletedSnapshots": list(response.deletedSnapshots)})


def _check_root(call: WebCall) -> None:
    if call.path != "/":
        raise IllegalArgumentException(
            f"{call.operation} is about the whole file system: its path is /, not {call.path}"
        )


def _describe(taken: cairn_pb2.RootSnapshotProto) -> dict[str, object]:
    return {
        "snapshotName": taken.snapshotName,
        "txid": taken.txid,
        "creationTime": taken.createdMs,
        "user": taken.user,
        "rollbackTime": taken.rolledBackMs if taken.HasField("rolledBackMs") else None,
        "safetySnapshots": list(taken.safetySnapshots),
    }


def _count(counts: cairn_pb2.TreeCountsProto) -> dict[str, object]:
    return {
        "fileCount": counts.files,
        "directoryCount": counts.directories,
        "length": counts.lengthBytes,
        "spaceConsumed": counts.spaceBytes,
    }


def _describe_work(work: cairn_pb2.GetSnapshotWorkResponseProto) -> dict[str, object]:
    return {
        "deletedTrees": work.deletedTrees,
        "deletedSnapshots": work.deletedSnapshots,
        "directoriesToSettle": work.directoriesToSettle,
        "nameNode": work.namenode if work.HasField("namenode") else None,
    }


GET: dict[str, Operation] = {"GETROOTSNAPSHOTSTATUS": get_root_snapshot_status}
PUT: dict[str, Operation] = {
    "CREATEROOTSNAPSHOT": create_root_snapshot,
    "ROLLBACKROOTSNAPSHOT": rollback_root_snapshot,
    "FINALIZEROOTSNAPSHOT": finalize_root_snapshot,
}
