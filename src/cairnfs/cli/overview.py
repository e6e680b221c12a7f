"""What a NameNode says of its cluster, in two quick calls."""

from __future__ import annotations

import getpass
import os
from dataclasses import dataclass
from typing import TypeVar

from google.protobuf.message import Message

from cairnfs.datanode.calls import RpcCaller
from cairnfs.network.address import Address
from cairnfs.wire.proto import client_namenode_pb2 as pb
from cairnfs.wire.protocols import CLIENT_PROTOCOL

_M = TypeVar("_M", bound=Message)


@dataclass(frozen=True, slots=True)
class DataNodeReport:
    """One DataNode, from its last heartbeat."""

    heard_ms: int
    capacity_bytes: int
    used_bytes: int
    remaining_bytes: int


@dataclass(frozen=True, slots=True)
class Overview:
    """The cluster; DataNodes by the port that they transfer blocks on."""

    is_in_safe_mode: bool
    datanodes: dict[int, DataNodeReport]


class NameNodeClient:
    """Asks one NameNode; OSError or HdfsError if it does not answer."""

    def __init__(self, host: str, port: int, timeout_s: float) -> None:
        try:
            user = getpass.getuser()
        except (KeyError, OSError):  # a user without a name, as in some containers
            user = str(os.getuid())
        self._caller = RpcCaller(Address(host, port), CLIENT_PROTOCOL, user, timeout_s)

    def __enter__(self) -> NameNodeClient:
        return self

    def __exit__(self, *_: object) -> None:
        self._caller.close()

    def overview(self) -> Overview:
        report = self.call(
            "getDatanodeReport",
            pb.GetDatanodeReportRequestProto(type=pb.LIVE),
            pb.GetDatanodeReportResponseProto,
        )
        safe_mode = self.call(
            "setSafeMode",
            pb.SetSafeModeRequestProto(action=pb.SAFEMODE_GET),
            pb.SetSafeModeResponseProto,
        )
        datanodes = {
            each.id.xferPort: DataNodeReport(
                heard_ms=each.lastUpdate,
                capacity_bytes=each.capacity,
                used_bytes=each.dfsUsed,
                remaining_bytes=each.remaining,
            )
            for each in report.di
        }
        return Overview(safe_mode.result, datanodes)

    def call(self, method: str, request: Message, response_type: type[_M]) -> _M:
        response = self._caller.call(method, request)
        assert isinstance(response, response_type)
        return response
