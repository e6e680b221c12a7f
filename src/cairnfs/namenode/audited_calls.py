"""Which calls of clients are put into the audit log, and what is said of them.

As FSNamesystem does: a call that succeeded is `allowed=true`, one that was refused for want of
rights is `allowed=false`, and one that failed for any other reason is not there at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeAlias

from cairnfs.errors import AccessControlException
from cairnfs.namenode.messages import to_signed
from cairnfs.namenode.responses import encode_bool
from cairnfs.namesystem.inodes import Inode
from cairnfs.namesystem.quota_operations import QUOTA_DONT_SET, QUOTA_RESET
from cairnfs.observe.audit import AuditLog
from cairnfs.store.schema import Table
from cairnfs.transaction.transaction import Transaction
from cairnfs.wire.proto import cairn_pb2
from cairnfs.wire.proto import client_namenode_pb2 as pb
from cairnfs.wire.protocols import CAIRN_PROTOCOL, CLIENT_PROTOCOL, Method, as_text
from cairnfs.wire.rpc import CallHeader

Event: TypeAlias = tuple[str, str | None, str | None]
"""Command, source, destination."""


class Audited(NamedTuple):
    """What is said of a call."""

    describe: Callable[[Any], Event]  # from the request
    has_status: bool = False  # with owner, group and mode of what was changed
    if_false: bool | None = True  # `allowed` where the answer was "no"; None: not a word
    find_dst: Callable[[bytes], str] | None = None  # in the response, where that decides it


def note_call(
    audit: AuditLog,
    *,
    method: Method,
    request: Any,
    header: CallHeader,
    ugi: str,
    address: str,
    proto: str,
    transaction: Transaction | None,
    response: bytes,
    error: BaseException | None,
) -> None:
    """Put down a call that is about to be answered, if it is one of those."""
    audited = AUDITED.get(method)
    if audited is None:
        return
    allowed = True if response != _FALSE else audited.if_false
    if error is not None:
        allowed = False if isinstance(error, AccessControlException) else None
    if allowed is None:
        return
    status = None
    if audited.has_status and error is None and transaction is not None:
        status = find_changed_inode(transaction)
    command, src, dst = audited.describe(request)
    if audited.find_dst is not None and error is None:
        dst = audited.find_dst(response)
    sources: Sequence[str | None] = [src]
    if method is _BATCHED_LISTING:
        sources = list(map(as_text, request.paths))
    for source in sources:
        audit.write(
            allowed=allowed,
            ugi=ugi,
            address=address,
            command=command,
            src=None if source is None else as_text(source),
            dst=None if dst is None else as_text(dst),
            status=status,
            proto=proto,
            caller_context=header.caller_context,
            caller_signature=header.caller_signature,
        )


def find_changed_inode(transaction: Transaction) -> Inode | None:
    """What a call was about: the inode written last, or, if it changed none, read last."""
    for key, record in reversed(transaction.writes.items()):
        if key[0] == Table.INODES and record is not None:
            found: Inode = record
            return found
    for key, entry in reversed(transaction.reads.items()):
        if key[0] == Table.INODES and entry.record is not None:
            found = entry.record
            return found
    return None


def _src(command: str) -> Callable[[Any], Event]:
    return lambda request: (command, request.src, None)


def _path(command: str) -> Callable[[Any], Event]:
    return lambda request: (command, request.path, None)


def _root(command: str) -> Callable[[Any], Event]:
    return lambda request: (command, request.snapshotRoot, None)


def _nothing(command: str) -> Callable[[Any], Event]:
    return lambda request: (command, None, None)


def _located_file_info(request: pb.GetLocatedFileInfoRequestProto) -> Event:
    # Whoever asks for tokens is about to read.
    return "open" if request.needBlockToken else "getfileinfo", request.src, None


def _rename2(request: pb.Rename2RequestProto) -> Event:
    # The order in which Hadoop's translator puts them.
    options = ["OVERWRITE"] if request.overwriteDest else []
    options += ["TO_TRASH"] if request.moveToTrash else []
    shown = ", ".join(options or ["NONE"])
    return f"rename (options=[{shown}])", request.src, request.dst


def _concat(request: pb.ConcatRequestProto) -> Event:
    return "concat", _several(request.srcs), request.trg


def _several(paths: Iterable[str]) -> str:
    return f"[{', '.join(map(as_text, paths))}]"


def _set_quota(request: pb.SetQuotaRequestProto) -> Event:
    of_names, of_space = to_signed(request.namespaceQuota), to_signed(request.storagespaceQuota)
    if of_names == QUOTA_RESET and of_space == QUOTA_DONT_SET:
        command = "clearQuota"
    elif of_names == QUOTA_DONT_SET and of_space == QUOTA_RESET:
        command = "clearSpaceQuota"
    else:
        command = "setQuota" if of_space == QUOTA_DONT_SET else "setSpaceQuota"
    return command, request.path, None


def _snapshot(root: str, name: str) -> str:
    """The path of a snapshot, or of the directory itself where no snapshot is named."""
    root, name = as_text(root), as_text(name)
    return f"{root.rstrip('/')}/.snapshot/{name}" if name else root


def _created_snapshot(response: bytes) -> str:
    return pb.CreateSnapshotResponseProto.FromString(response).snapshotPath


def _create_snapshots(request: cairn_pb2.CreateSnapshotsRequestProto) -> Event:
    return "createSnapshots", _several(request.snapshotRoots), None


def _created_snapshots(response: bytes) -> str:
    return _several(cairn_pb2.CreateSnapshotsResponseProto.FromString(response).snapshotPaths)


def _rename_snapshot(request: pb.RenameSnapshotRequestProto) -> Event:
    root = request.snapshotRoot
    old, new = request.snapshotOldName, request.snapshotNewName
    return "renameSnapshot", _snapshot(root, old), _snapshot(root, new)


def _delete_snapshot(request: pb.DeleteSnapshotRequestProto) -> Event:
    return "deleteSnapshot", _snapshot(request.snapshotRoot, request.snapshotName), None


def _snapshot_diff(
    request: pb.GetSnapshotDiffReportRequestProto | pb.GetSnapshotDiffReportListingRequestProto,
) -> Event:
    root = request.snapshotRoot
    old, new = request.fromSnapshot, request.toSnapshot
    return "computeSnapshotDiff", _snapshot(root, old), _snapshot(root, new)


def _snapshot_changes(request: cairn_pb2.GetSnapshotChangesRequestProto) -> Event:
    old, new = request.fromSnapshot, request.toSnapshot
    return "getSnapshotChanges", _snapshot(request.path, old), _snapshot(request.path, new)


def _rolling_upgrade(request: pb.RollingUpgradeRequestProto) -> Event:
    words = {pb.QUERY: "query", pb.START: "start", pb.FINALIZE: "finalize"}
    return f"{words[request.action]}RollingUpgrade", None, None


def _rollback_snapshot(request: cairn_pb2.RollbackSnapshotRequestProto) -> Event:
    return "rollbackSnapshot", _snapshot(request.path, request.snapshotName), request.path


def _rollback_snapshots(request: cairn_pb2.RollbackSnapshotsRequestProto) -> Event:
    sources = [_snapshot(path, request.snapshotName) for path in request.paths]
    return "rollbackSnapshots", _several(sources), _several(request.paths)


def _clone_snapshot(request: cairn_pb2.CloneSnapshotRequestProto) -> Event:
    source = _snapshot(request.snapshotRoot, request.snapshotName)
    return "cloneSnapshot", source, request.destination


def _set_safe_mode(request: pb.SetSafeModeRequestProto) -> Event:
    return pb.SafeModeActionProto.Name(request.action).lower(), None, None


def _restore_failed_storage(request: pb.RestoreFailedStorageRequestProto) -> Event:
    words = {"check": "checkRestoreFailedStorage", "true": "enableRestoreFailedStorage"}
    return words.get(request.arg, "disableRestoreFailedStorage"), None, None


_FALSE = encode_bool(False)
_BATCHED_LISTING = CLIENT_PROTOCOL["getBatchedListing"]

_CALLS = {
    # Looking.
    "getBlockLocations": Audited(_src("open")),
    "getFileInfo": Audited(_src("getfileinfo")),
    "getFileLinkInfo": Audited(_src("getfileinfo")),
    "getLocatedFileInfo": Audited(_located_file_info),
    "getListing": Audited(_src("listStatus")),
    "getBatchedListing": Audited(_nothing("listStatus")),
    "getContentSummary": Audited(_path("contentSummary")),
    "getQuotaUsage": Audited(_path("quotaUsage")),
    "getAclStatus": Audited(_src("getAclStatus")),
    "checkAccess": Audited(_path("checkAccess")),
    "isFileClosed": Audited(_src("isFileClosed"), if_false=None),
    # Making, moving and removing.
    "create": Audited(_src("create"), has_status=True),
    "append": Audited(_src("append")),
    "truncate": Audited(_src("truncate"), has_status=True),
    "concat": Audited(_concat, has_status=True),
    "mkdirs": Audited(_src("mkdirs"), has_status=True),
    "createSymlink": Audited(
        lambda request: ("createSymlink", request.link, request.target), has_status=True
    ),
    "rename": Audited(
        lambda request: ("rename", request.src, request.dst), has_status=True, if_false=None
    ),
    "rename2": Audited(_rename2, has_status=True),
    "delete": Audited(_src("delete"), if_false=False),
    # Attributes.
    "setPermission": Audited(_src("setPermission"), has_status=True),
    "setOwner": Audited(_src("setOwner"), has_status=True),
    "setTimes": Audited(_src("setTimes"), has_status=True),
    "setReplication": Audited(_src("setReplication"), if_false=None),
    "setQuota": Audited(_set_quota),
    "modifyAclEntries": Audited(_src("modifyAclEntries"), has_status=True),
    "removeAclEntries": Audited(_src("removeAclEntries"), has_status=True),
    "removeDefaultAcl": Audited(_src("removeDefaultAcl"), has_status=True),
    "removeAcl": Audited(_src("removeAcl"), has_status=True),
    "setAcl": Audited(_src("setAcl"), has_status=True),
    "setXAttr": Audited(_src("setXAttr"), has_status=True),
    "getXAttrs": Audited(_src("getXAttrs")),
    "listXAttrs": Audited(_src("listXAttrs")),
    "removeXAttr": Audited(_src("removeXAttr"), has_status=True),
    # Storage policies.
    "getStoragePolicy": Audited(_path("getStoragePolicy")),
    "getStoragePolicies": Audited(_nothing("getStoragePolicies")),
    "setStoragePolicy": Audited(_src("setStoragePolicy"), has_status=True),
    "unsetStoragePolicy": Audited(_src("unsetStoragePolicy"), has_status=True),
    "satisfyStoragePolicy": Audited(_src("satisfyStoragePolicy")),
    # Snapshots.
    "allowSnapshot": Audited(_root("allowSnapshot")),
    "disallowSnapshot": Audited(_root("disallowSnapshot")),
    "createSnapshot": Audited(_root("createSnapshot"), find_dst=_created_snapshot),
    "renameSnapshot": Audited(_rename_snapshot),
    "deleteSnapshot": Audited(_delete_snapshot),
    "getSnapshottableDirListing": Audited(_nothing("listSnapshottableDirectory")),
    "getSnapshotListing": Audited(_root("ListSnapshot")),
    "getSnapshotDiffReport": Audited(_snapshot_diff),
    "getSnapshotDiffReportListing": Audited(_snapshot_diff),
    # The cluster.
    "setSafeMode": Audited(_set_safe_mode),
    "getDatanodeReport": Audited(_nothing("datanodeReport")),
    "getDatanodeStorageReport": Audited(_nothing("getDatanodeStorageReport")),
    "getSlowDatanodeReport": Audited(_nothing("slowDataNodesReport")),
    "listOpenFiles": Audited(_nothing("listOpenFiles")),
    "saveNamespace": Audited(_nothing("saveNamespace")),
    "restoreFailedStorage": Audited(_restore_failed_storage),
    "refreshNodes": Audited(_nothing("refreshNodes")),
    "finalizeUpgrade": Audited(_nothing("finalizeUpgrade")),
    "rollingUpgrade": Audited(_rolling_upgrade),
    "setBalancerBandwidth": Audited(_nothing("setBalancerBandwidth")),
}

_CAIRN_CALLS = {
    "createSnapshots": Audited(_create_snapshots, find_dst=_created_snapshots),
    "rollbackSnapshot": Audited(_rollback_snapshot),
    "rollbackSnapshots": Audited(_rollback_snapshots),
    "commitOutput": Audited(lambda request: ("commitOutput", request.src, request.dst)),
    "getSnapshotChanges": Audited(_snapshot_changes),
    "cloneSnapshot": Audited(_clone_snapshot),
    "createRootSnapshot": Audited(_nothing("createRootSnapshot")),
    "getRootSnapshotStatus": Audited(_nothing("getRootSnapshotStatus")),
    "rollbackRootSnapshot": Audited(_nothing("rollbackRootSnapshot")),
    "finalizeRootSnapshot": Audited(_nothing("finalizeRootSnapshot")),
    "getSnapshotSpace": Audited(_root("getSnapshotSpace")),
    "setSnapshotSchedule": Audited(
        lambda request: ("setSnapshotSchedule", request.schedule.path, None)
    ),
    "removeSnapshotSchedule": Audited(_path("removeSnapshotSchedule")),
    "getSnapshotSchedules": Audited(_nothing("getSnapshotSchedules")),
    "declareXAttr": Audited(lambda request: ("declareXAttr", request.name, request.kind)),
    "getDeclaredXAttrs": Audited(_nothing("getDeclaredXAttrs")),
    "unsetXAttr": Audited(_src("unsetXAttr"), has_status=True),
    "explainXAttrs": Audited(_src("explainXAttrs")),
    "startBalancing": Audited(_nothing("startBalancing")),
    "stopBalancing": Audited(_nothing("stopBalancing")),
    "doWork": Audited(_nothing("doWork")),
    "openView": Audited(_path("openView")),
    "scanView": Audited(_nothing("scanView")),
    "getViewChanges": Audited(_nothing("getViewChanges")),
    "listAllSnapshots": Audited(_nothing("listAllSnapshots")),
    "listLeases": Audited(_nothing("listLeases")),
}

AUDITED: dict[Method, Audited] = {
    **{CLIENT_PROTOCOL[name]: each for name, each in _CALLS.items()},
    **{CAIRN_PROTOCOL[name]: each for name, each in _CAIRN_CALLS.items()},
}
