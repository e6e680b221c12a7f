"""WebHDFS operations on snapshots."""

from __future__ import annotations

from aiohttp import web

from cairnfs.errors import IllegalArgumentException
from cairnfs.webhdfs import answers
from cairnfs.webhdfs.calls import WebCall
from cairnfs.webhdfs.changing import answer_nothing_to, told_the_path
from cairnfs.webhdfs.looking import Operation
from cairnfs.webhdfs.parameters import INT_MAX
from cairnfs.webhdfs.requests import answer_json, answer_nothing
from cairnfs.wire.proto import cairn_pb2
from cairnfs.wire.proto import client_namenode_pb2 as pb
from cairnfs.wire.protocols import CAIRN_PROTOCOL


async def create_snapshot(call: WebCall) -> web.Response:
    message = pb.CreateSnapshotRequestProto(
        snapshotRoot=call.path, snapshotName=call.parameters.text("snapshotname")
    )
    response = await call.rpc("createSnapshot", message)
    return answer_json({"Path": response.snapshotPath})


async def rename_snapshot(call: WebCall) -> web.Response:
    message = pb.RenameSnapshotRequestProto(
        snapshotRoot=call.path,
        snapshotOldName=call.required("oldsnapshotname"),
        snapshotNewName=call.required("snapshotname"),
    )
    return await answer_nothing_to(call, "renameSnapshot", message)


async def delete_snapshot(call: WebCall) -> web.Response:
    message = pb.DeleteSnapshotRequestProto(
        snapshotRoot=call.path, snapshotName=call.required("snapshotname")
    )
    return await answer_nothing_to(call, "deleteSnapshot", message)


# What HDFS cannot do


async def rollback_snapshot(call: WebCall) -> web.Response:
    message = cairn_pb2.RollbackSnapshotRequestProto(
        path=call.path, snapshotName=call.required("snapshotname")
    )
    response = await call.rpc("rollbackSnapshot", message, CAIRN_PROTOCOL)
    return answer_json({"SafetySnapshot": response.safetySnapshot})


async def clone_snapshot(call: WebCall) -> web.Response:
    message = cairn_pb2.CloneSnapshotRequestProto(
        snapshotRoot=call.path,
        snapshotName=call.required("snapshotname"),
        destination=call.parameters.absolute_path("destination") or call.required("destination"),
    )
    await call.rpc("cloneSnapshot", message, CAIRN_PROTOCOL)
    return answer_nothing()


async def get_snapshot_changes(call: WebCall) -> web.Response:
    """A page of what happened; it tells the cursor of the next one, if there is one."""
    message = cairn_pb2.GetSnapshotChangesRequestProto(
        path=call.path,
        fromSnapshot=call.parameters.text("oldsnapshotname") or "",
        toSnapshot=call.parameters.text("snapshotname") or "",
    )
    given = call.parameters.text("cursor") or ""
    try:
        message.cursor = bytes.fromhex(given)
    except ValueError:
        raise IllegalArgumentException(
            f"{given[:80]} is no cursor: it is that of the answer before"
        ) from None
    response = await call.rpc("getSnapshotChanges", message, CAIRN_PROTOCOL)
    return answer_json({"SnapshotChanges": answers.describe_changes(response)})


# Looking


async def get_snapshot_diff(call: WebCall) -> web.Response:
    response = await call.rpc(
        "getSnapshotDiffReport",
        pb.GetSnapshotDiffReportRequestProto(
            snapshotRoot=call.path,
            fromSnapshot=call.parameters.text("oldsnapshotname") or "",
            toSnapshot=call.parameters.text("snapshotname") or "",
        ),
    )
    return answer_json(answers.describe_differences(response.diffReport))


async def get_snapshot_diff_listing(call: WebCall) -> web.Response:
    """A page of what GETSNAPSHOTDIFF tells, behind a path and a place in its list."""
    index = call.parameters.number("snapshotdiffindex", least=-1, type_max=INT_MAX)
    message = pb.GetSnapshotDiffReportListingRequestProto(
        snapshotRoot=call.path,
        fromSnapshot=call.parameters.text("oldsnapshotname") or "",
        toSnapshot=call.parameters.text("snapshotname") or "",
    )
    message.cursor.startPath = (call.parameters.text("snapshotdiffstartpath") or "").encode()
    message.cursor.index = -1 if index is None else index
    response = await call.rpc("getSnapshotDiffReportListing", message)
    return answer_json(answers.describe_difference_page(response.diffReport))


async def get_snapshottable_directory_list(call: WebCall) -> web.Response:
    response = await call.rpc(
        "getSnapshottableDirListing", pb.GetSnapshottableDirListingRequestProto()
    )
    found = None
    if response.HasField("snapshottableDirList"):
        found = answers.describe_snapshottable(response.snapshottableDirList)
    return answer_json({"SnapshottableDirectoryList": found})


async def get_snapshot_list(call: WebCall) -> web.Response:
    response = await call.rpc(
        "getSnapshotListing", pb.GetSnapshotListingRequestProto(snapshotRoot=call.path)
    )
    return answer_json({"SnapshotList": answers.describe_snapshots(response.snapshotList)})


GET: dict[str, Operation] = {
    "GETSNAPSHOTDIFF": get_snapshot_diff,
    "GETSNAPSHOTDIFFLISTING": get_snapshot_diff_listing,
    "GETSNAPSHOTCHANGES": get_snapshot_changes,
    "GETSNAPSHOTTABLEDIRECTORYLIST": get_snapshottable_directory_list,
    "GETSNAPSHOTLIST": get_snapshot_list,
}
PUT: dict[str, Operation] = {
    "ALLOWSNAPSHOT": told_the_path("allowSnapshot", "snapshotRoot"),
    "DISALLOWSNAPSHOT": told_the_path("disallowSnapshot", "snapshotRoot"),
    "CREATESNAPSHOT": create_snapshot,
    "RENAMESNAPSHOT": rename_snapshot,
    "ROLLBACKSNAPSHOT": rollback_snapshot,
    "CLONESNAPSHOT": clone_snapshot,
}
DELETE: dict[str, Operation] = {"DELETESNAPSHOT": delete_snapshot}
