"""Traces through clients of a real cluster: the Python client, and messages written here."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeVar

from google.protobuf.message import Message
from tests.traces.adapter import REPLICATION, Adapter, Entry
from tests.traces.trace import Entries

import cairnfs
from cairnfs.datanode.calls import RpcCaller
from cairnfs.errors import FileAlreadyExistsException, FileNotFoundException
from cairnfs.wire.proto import client_namenode_pb2 as pb
from cairnfs.wire.proto import hdfs_pb2

TRUNCATE_LIMIT_S = 60.0
TRUNCATE_POLL_S = 0.02

_M = TypeVar("_M", bound=Message)


class ClientAdapter(Adapter):
    """The Python client."""

    def __init__(self, fs: cairnfs.FileSystem) -> None:
        self._fs = fs

    def mkdir(self, path: str) -> None:
        if self._fs.exists(path):
            raise FileAlreadyExistsException(path)  # to HDFS it would not matter
        self._fs.mkdirs(path, create_parents=False)

    def create(self, path: str, text: str, overwrite: bool) -> None:
        with self._fs.create(
            path, overwrite=overwrite, replication=REPLICATION, create_parents=False
        ) as file:
            file.write(text.encode())

    def append(self, path: str, text: str) -> None:
        with self._fs.append(path) as file:
            file.write(text.encode())

    def truncate(self, path: str, length: int) -> None:
        if not self._fs.truncate(path, length):
            wait_until(lambda: self._fs.is_file_closed(path))

    def chmod(self, path: str, mode: int) -> None:
        self._fs.set_permission(path, mode)

    def setrep(self, path: str, replication: int) -> None:
        if not self._fs.set_replication(path, replication):
            raise FileNotFoundException(path)

    def delete(self, path: str, recursive: bool) -> None:
        if not self._fs.delete(path, recursive=recursive):
            raise FileNotFoundException(path)

    def rename(self, source: str, destination: str, overwrite: bool) -> None:
        self._fs.rename(source, destination, overwrite=overwrite)

    def allow(self, path: str) -> None:
        self._fs.allow_snapshot(path)

    def disallow(self, path: str) -> None:
        self._fs.disallow_snapshot(path)

    def create_snapshot(self, path: str, name: str) -> None:
        self._fs.create_snapshot(path, name)

    def delete_snapshot(self, path: str, name: str) -> None:
        self._fs.delete_snapshot(path, name)

    def rename_snapshot(self, path: str, old: str, new: str) -> None:
        self._fs.rename_snapshot(path, old, new)

    def rollback(self, path: str, name: str) -> None:
        self._fs.rollback_snapshot(path, name)

    def diff(self, path: str, old: str, new: str) -> Entries:
        return {
            _entry(entry.kind, entry.path, entry.target)
            for entry in self._fs.snapshot_diff(path, old, new)
        }

    def read(self, path: str) -> bytes:
        with self._fs.open(path) as file:
            return file.read()

    def status(self, path: str) -> Entry:
        return _of_status(self._fs.get_file_status(path))

    def children(self, path: str) -> list[Entry]:
        return [_of_status(each) for each in self._fs.list_status(path)]

    def snapshottable(self) -> dict[str, list[str]]:
        return {
            each.status.path: [
                snapshot.status.name for snapshot in self._fs.list_snapshots(each.status.path)
            ]
            for each in self._fs.get_snapshottable_directories()
        }


class RpcAdapter(ClientAdapter):
    """Calls of ClientNamenodeProtocol as bytes go over the wire; only data by the client."""

    def __init__(self, fs: cairnfs.FileSystem, caller: RpcCaller) -> None:
        super().__init__(fs)
        self._caller = caller

    def mkdir(self, path: str) -> None:
        if self._info(path).HasField("fs"):
            raise FileAlreadyExistsException(path)
        request = pb.MkdirsRequestProto(src=path, createParent=False)
        request.masked.perm = 0o755
        self._call("mkdirs", request, pb.MkdirsResponseProto)

    def chmod(self, path: str, mode: int) -> None:
        request = pb.SetPermissionRequestProto(src=path)
        request.permission.perm = mode
        self._call("setPermission", request, pb.SetPermissionResponseProto)

    def setrep(self, path: str, replication: int) -> None:
        request = pb.SetReplicationRequestProto(src=path, replication=replication)
        if not self._call("setReplication", request, pb.SetReplicationResponseProto).result:
            raise FileNotFoundException(path)

    def delete(self, path: str, recursive: bool) -> None:
        request = pb.DeleteRequestProto(src=path, recursive=recursive)
        if not self._call("delete", request, pb.DeleteResponseProto).result:
            raise FileNotFoundException(path)

    def rename(self, source: str, destination: str, overwrite: bool) -> None:
        request = pb.Rename2RequestProto(src=source, dst=destination, overwriteDest=overwrite)
        self._call("rename2", request, pb.Rename2ResponseProto)

    def allow(self, path: str) -> None:
        request = pb.AllowSnapshotRequestProto(snapshotRoot=path)
        self._call("allowSnapshot", request, pb.AllowSnapshotResponseProto)

    def disallow(self, path: str) -> None:
        request = pb.DisallowSnapshotRequestProto(snapshotRoot=path)
        self._call("disallowSnapshot", request, pb.DisallowSnapshotResponseProto)

    def create_snapshot(self, path: str, name: str) -> None:
        request = pb.CreateSnapshotRequestProto(snapshotRoot=path, snapshotName=name)
        self._call("createSnapshot", request, pb.CreateSnapshotResponseProto)

    def delete_snapshot(self, path: str, name: str) -> None:
        request = pb.DeleteSnapshotRequestProto(snapshotRoot=path, snapshotName=name)
        self._call("deleteSnapshot", request, pb.DeleteSnapshotResponseProto)

    def rename_snapshot(self, path: str, old: str, new: str) -> None:
        request = pb.RenameSnapshotRequestProto(
            snapshotRoot=path, snapshotOldName=old, snapshotNewName=new
        )
        self._call("renameSnapshot", request, pb.RenameSnapshotResponseProto)

    def diff(self, path: str, old: str, new: str) -> Entries:
        request = pb.GetSnapshotDiffReportRequestProto(
            snapshotRoot=path, fromSnapshot=old, toSnapshot=new
        )
        answer = self._call("getSnapshotDiffReport", request, pb.GetSnapshotDiffReportResponseProto)
        return {
            _entry(
                entry.modificationLabel,
                entry.fullpath.decode(),
                entry.targetPath.decode() if entry.HasField("targetPath") else None,
            )
            for entry in answer.diffReport.diffReportEntries
        }

    def status(self, path: str) -> Entry:
        answer = self._info(path)
        if not answer.HasField("fs"):
            raise FileNotFoundException(path)
        return _of_message(answer.fs)

    def children(self, path: str) -> list[Entry]:
        request = pb.GetListingRequestProto(src=path, startAfter=b"", needLocation=False)
        entries: list[Entry] = []
        while True:
            answer = self._call("getListing", request, pb.GetListingResponseProto)
            if not answer.HasField("dirList"):
                raise FileNotFoundException(path)
            entries += map(_of_message, answer.dirList.partialListing)
            if not answer.dirList.remainingEntries:
                return entries
            request.startAfter = answer.dirList.partialListing[-1].path

    def _info(self, path: str) -> pb.GetFileInfoResponseProto:
        request = pb.GetFileInfoRequestProto(src=path)
        return self._call("getFileInfo", request, pb.GetFileInfoResponseProto)

    def _call(self, method: str, request: Message, answer: type[_M]) -> _M:
        response = self._caller.call(method, request)
        assert isinstance(response, answer)
        return response


def wait_until(is_true: Callable[[], bool]) -> None:
    """Until a file that was cut is closed again."""
    deadline_s = time.monotonic() + TRUNCATE_LIMIT_S
    while not is_true():
        if time.monotonic() > deadline_s:
            raise TimeoutError("a file that was cut is still open")
        time.sleep(TRUNCATE_POLL_S)


def _entry(kind: str, path: str, target: str | None) -> tuple[str, ...]:
    path = "" if path == "." else path
    return (kind, path) if target is None else (kind, path, target)


def _of_status(status: Any) -> Entry:
    return Entry(
        status.name,
        status.is_directory,
        status.mode,
        status.replication,
        status.length_bytes,
        (status.id, status.mtime_ms, status.length_bytes),
    )


def _of_message(status: hdfs_pb2.HdfsFileStatusProto) -> Entry:
    return Entry(
        status.path.decode(),
        status.fileType == hdfs_pb2.HdfsFileStatusProto.IS_DIR,
        status.permission.perm,
        status.block_replication,
        status.length,
        (status.fileId, status.modification_time, status.length),
    )
