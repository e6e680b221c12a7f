"""What the open files of a file system share: connections, packets, the thread for leases."""

from __future__ import annotations

import threading

from cairnfs.client.checksums import file_checksum
from cairnfs.client.file_calls import FileCalls
from cairnfs.client.leases import LeaseKeeper
from cairnfs.client.locations import FileLocations
from cairnfs.client.namenode import NameNodes
from cairnfs.client.packets import PacketPool
from cairnfs.client.reader import InputStream
from cairnfs.client.records import FileChecksum, ServerDefaults
from cairnfs.client.transfers import DataNodeConnections
from cairnfs.client.verifying import BlockCheck, Pace, Verifier
from cairnfs.client.writer import WINDOW_PACKETS, OutputStream
from cairnfs.wire.checksum import Checksum, ChecksumType
from cairnfs.wire.proto import hdfs_pb2

# Of data.  What a packet costs in Python does not depend on its size, so that those which
# Hadoop's client sends, of 64 KiB, would take a third more time.
PACKET_BYTES_MIN = 256 << 10


class Streams:
    """Opens files for one client."""

    def __init__(self, namenodes: NameNodes, client_name: str, patience_s: float) -> None:
        self.client_name = client_name
        self._namenodes = namenodes
        self._patience_s = patience_s
        self._connections = DataNodeConnections()
        self._leases = LeaseKeeper(namenodes, client_name)
        self._lock = threading.Lock()
        self._pool: PacketPool | None = None

    def open(self, path: str, readahead_bytes: int) -> InputStream:
        return InputStream(
            self._namenodes, self._connections, path, self.client_name, readahead_bytes
        )

    def write(
        self,
        path: str,
        status: hdfs_pb2.HdfsFileStatusProto,
        defaults: ServerDefaults,
        *,
        previous: hdfs_pb2.LocatedBlockProto | None = None,
        appended: hdfs_pb2.LocatedBlockProto | None = None,
    ) -> OutputStream:
        """Go on with a file that the NameNode has opened for us."""
        stream = OutputStream(
            FileCalls(self._namenodes, self.client_name, path, status, self._patience_s),
            self._packets(defaults),
            block_size_bytes=status.blocksize,
            replication=status.block_replication,
            closed=self._leases.remove,
            previous=previous,
            appended=appended,
            position=status.length,
        )
        self._leases.add(stream)
        return stream

    def checksum(self, path: str) -> FileChecksum:
        locations = FileLocations(self._namenodes, path)
        return file_checksum(path, locations.all_blocks())

    def verify(self, path: str, offset: int, length: int, pace: Pace) -> list[BlockCheck]:
        verifier = Verifier(self._namenodes, self._connections, self.client_name, pace)
        return verifier.verify(path, offset, length)

    def close(self) -> None:
        """Close what is being written; raises the first failure when all is done."""
        try:
            self._leases.close_all()
        finally:
            self._connections.close()

    def disown(self) -> None:
        """In a forked child: all this is the parent's."""
        self._connections.disown()
        self._leases.disown()

    def _packets(self, defaults: ServerDefaults) -> PacketPool:
        with self._lock:
            if self._pool is None:
                checksum = Checksum(
                    ChecksumType[defaults.checksum_type], defaults.bytes_per_checksum
                )
                size = max(PACKET_BYTES_MIN, defaults.write_packet_bytes)
                self._pool = PacketPool(checksum, size, WINDOW_PACKETS)
            return self._pool
