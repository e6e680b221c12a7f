"""What a NameNode says of its cluster, in two quick calls."""

from __future__ import annotations

from dataclasses import dataclass

from cairnfs.client.namenode import NameNodes
from cairnfs.config import FormatSettings
from cairnfs.network.address import Address
from cairnfs.wire.proto import client_namenode_pb2 as pb


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
    """Asks one NameNode, once; OSError or HdfsError if it does not answer."""

    def __init__(self, host: str, port: int, timeout_s: float) -> None:
        # Not HADOOP_USER_NAME: it is for this user that the cluster was made.
        user = FormatSettings().superuser
        self._namenodes = NameNodes(
            [Address(host, port)], user, timeout_s=timeout_s, patience_s=0.0
        )

    def __enter__(self) -> NameNodeClient:
        return self

    def __exit__(self, *_: object) -> None:
        self._namenodes.close()

    def overview(self) -> Overview:
        report = self._namenodes.call(
            "getDatanodeReport",
            pb.GetDatanodeReportRequestProto(type=pb.LIVE),
            pb.GetDatanodeReportResponseProto,
        )
        safe_mode = self._namenodes.call(
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
