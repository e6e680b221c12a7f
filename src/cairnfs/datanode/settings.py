"""What an operator has a reason to choose about a DataNode."""

from __future__ import annotations

import socket
from dataclasses import dataclass, field

from cairnfs.datanode.storage import StorageLocation
from cairnfs.network.address import Address

SOFTWARE_VERSION = "3.4.1"  # the release of Hadoop whose protocols these are


@dataclass(frozen=True, slots=True)
class DataNodeSettings:
    """One DataNode.  Port 0 takes any that is free."""

    namenodes: tuple[Address, ...]
    data: tuple[StorageLocation, ...]
    host: str = "127.0.0.1"  # where to listen, and how others name this DataNode
    hostname: str = ""  # as NameNodes and clients see it; `host` unless set
    port: int = 9866  # block transfer
    ipc_port: int = 9867  # RPC
    http_port: int = 9864
    rack: str = ""
    reserved_bytes: int = 0  # of each volume, left to others
    capacity_bytes: int = 0  # of each volume, for replicas; 0: all that is not left to others
    failed_volumes_tolerated: int = 0
    transfer_threads_max: int = 4096
    socket_timeout_s: float = 60.0
    write_timeout_s: float = 480.0
    keep_alive_s: float = 4.0  # how long a connection may wait for its next operation
    heartbeat_interval_s: float = 3.0
    block_report_interval_s: float = 6 * 3600.0
    scan_bytes_per_s: int = 1 << 20  # 0: no scanner
    scan_period_s: float = 21 * 24 * 3600.0
    sync_on_close: bool = False
    move_bytes_per_s: int = 100 << 20  # for replicas that go from one place to another
    moves_max: int = 100  # of those, at a time
    lazy_persist_interval_s: float = 60.0  # how often replicas are taken from memory to disk
    user: str = field(default="hdfs")  # as whom to call NameNodes

    def __post_init__(self) -> None:
        if not self.namenodes:
            raise ValueError("a DataNode needs a NameNode")
        if not self.data:
            raise ValueError("a DataNode needs a data directory")
        if self.heartbeat_interval_s <= 0:
            raise ValueError("heartbeat_interval_s must be more than 0")

    @property
    def announced_ip(self) -> str:
        """What NameNodes tell clients to connect to."""
        if self.host in ("", "0.0.0.0", "::"):
            return socket.gethostbyname(socket.gethostname())
        return socket.gethostbyname(self.host)
