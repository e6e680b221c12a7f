"""The cluster: room, DataNodes, safe mode, open files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, TypeAlias

from cairnfs.client.calls import Calls, PathLike
from cairnfs.client.messages import (
    decode_datanode,
    decode_fs_status,
)
from cairnfs.client.records import (
    CorruptFiles,
    DatanodeInfo,
    FsStatus,
    OpenFile,
)
from cairnfs.errors import HadoopIllegalArgumentException
from cairnfs.wire.proto import client_namenode_pb2 as pb

DatanodeReportType: TypeAlias = Literal[
    "ALL", "LIVE", "DEAD", "DECOMMISSIONING", "ENTERING_MAINTENANCE", "IN_MAINTENANCE"
]
SafeModeAction: TypeAlias = Literal["enter", "leave", "get", "force_exit"]

_SAFE_MODE_ACTIONS = {
    "enter": pb.SAFEMODE_ENTER,
    "leave": pb.SAFEMODE_LEAVE,
    "get": pb.SAFEMODE_GET,
    "force_exit": pb.SAFEMODE_FORCE_EXIT,
}


class Administration(Calls):
    """The cluster."""

    def get_status(self) -> FsStatus:
        """How much room there is, and how much of it is used."""
        response = self._namenodes.call(
            "getFsStats", pb.GetFsStatusRequestProto(), pb.GetFsStatsResponseProto
        )
        return decode_fs_status(response)

    def get_datanode_report(self, type: DatanodeReportType = "ALL") -> list[DatanodeInfo]:
        """The DataNodes that the NameNode knows."""
        types = pb.DatanodeReportTypeProto.keys()
        if type not in types:
            raise HadoopIllegalArgumentException(f"{type!r} is not one of {', '.join(types)}")
        request = pb.GetDatanodeReportRequestProto(type=type)
        response = self._namenodes.call(
            "getDatanodeReport", request, pb.GetDatanodeReportResponseProto
        )
        return [decode_datanode(node) for node in response.di]

    def refresh_nodes(self) -> None:
        """Have the NameNode read its list of DataNodes that are to leave once more."""
        self._namenodes.call(
            "refreshNodes", pb.RefreshNodesRequestProto(), pb.RefreshNodesResponseProto
        )

    def set_safe_mode(self, action: SafeModeAction) -> bool:
        """Enter or leave safe mode, in which nothing can be changed; whether it is on then."""
        if action not in _SAFE_MODE_ACTIONS:
            raise HadoopIllegalArgumentException(
                f"{action!r} is not one of {', '.join(_SAFE_MODE_ACTIONS)}"
            )
        request = pb.SetSafeModeRequestProto(action=_SAFE_MODE_ACTIONS[action])
        return self._namenodes.call("setSafeMode", request, pb.SetSafeModeResponseProto).result

    def get_safe_mode(self) -> bool:
        """Whether safe mode is on."""
        return self.set_safe_mode("get")

    def list_open_files(self, path: PathLike = "/") -> Iterator[OpenFile]:
        """Files that are being written, at or below a path."""
        request = pb.ListOpenFilesRequestProto(
            id=0, types=[pb.ALL_OPEN_FILES], path=self.absolute_path(path)
        )
        while True:
            response = self._namenodes.call("listOpenFiles", request, pb.ListOpenFilesResponseProto)
            for entry in response.entries:
                yield OpenFile(entry.id, entry.path, entry.clientName, entry.clientMachine)
            if not response.hasMore or not response.entries:
                return
            request.id = response.entries[-1].id

    def list_corrupt_file_blocks(self, path: PathLike = "/", cookie: str = "") -> CorruptFiles:
        """Files with blocks of which no good replica is known; `cookie` is where to go on."""
        request = pb.ListCorruptFileBlocksRequestProto(path=self.absolute_path(path))
        if cookie:
            request.cookie = cookie
        response = self._namenodes.call(
            "listCorruptFileBlocks", request, pb.ListCorruptFileBlocksResponseProto
        )
        return CorruptFiles(list(response.corrupt.files), response.corrupt.cookie)
