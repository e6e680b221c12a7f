"""A file opened for reading: a seekable stream over its blocks, from whichever replica works."""

from __future__ import annotations

import io
import logging
import os
import threading
import time
from typing import TYPE_CHECKING

from cairnfs.client.block_reader import DRAIN_BYTES_MAX, BlockReader, CorruptReplica
from cairnfs.client.locations import FileLocations
from cairnfs.client.transfers import address_of
from cairnfs.errors import BlockMissingException, EOFException, HdfsError
from cairnfs.wire.proto import client_namenode_pb2 as pb
from cairnfs.wire.proto import hdfs_pb2

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

    from cairnfs.client.namenode import NameNodes
    from cairnfs.client.transfers import DataNodeConnections

log = logging.getLogger(__name__)

_PIECE_BYTES = 8 << 20  # that `read()` allocates at a time
_ROUNDS_MAX = 3  # how often all replicas of a block are tried
_ROUND_PAUSE_S = 1.0


class InputStream(io.BufferedIOBase):
    """A file's content; `read` returns as much as was asked for, but at the end.

    One thread at a time moves the position; `pread` does not, and any number of threads may
    use it.
    """

    def __init__(
        self,
        namenodes: NameNodes,
        connections: DataNodeConnections,
        path: str,
        client_name: str,
        readahead_bytes: int,
    ) -> None:
        self.name = path
        self.mode = "rb"
        self._namenodes = namenodes
        self._connections = connections
        self._client_name = client_name
        self._readahead_bytes = max(1, readahead_bytes)
        self._position = 0
        self._sequential_end = -1  # where a read would be that goes on
        self._window_bytes = self._readahead_bytes
        self._reader: BlockReader | None = None
        self._reader_block = 0  # offset in the file of what `_reader` reads
        self._lock = threading.RLock()
        self._locations = FileLocations(namenodes, path)

    # What a stream can do

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    @property
    def length(self) -> int:
        """How long the file was when it was opened."""
        return self._locations.length

    def tell(self) -> int:
        self._check_open()
        return self._position

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self._check_open()
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self.length}
        if whence not in start:
            raise ValueError(f"whence is 0, 1 or 2, not {whence}")
        if start[whence] + offset < 0:
            raise ValueError(f"{self.name}: cannot seek to {start[whence] + offset}")
        self._position = start[whence] + offset
        return self._position

    # Reading

    def read(self, size: int | None = -1, /) -> bytes:
        """So many bytes, or all that are left."""
        with self._lock:
            left = max(0, self.length - self._position)
            wanted = left if size is None or size < 0 else min(size, left)
            buffer = bytearray(wanted)
            self._fill(memoryview(buffer))
            return bytes(buffer)

    def read1(self, size: int = -1, /) -> bytes:
        return self.read(_PIECE_BYTES if size < 0 else size)

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        """Fill `buffer`, straight from the network where possible; how much of it."""
        with self._lock, memoryview(buffer) as view, view.cast("B") as target:
            return self._fill(target)

    readinto1 = readinto

    def pread(self, position: int, length: int) -> bytes:
        """`length` bytes from `position`, fewer only at the end; the stream's own stays."""
        self._check_open()
        if position < 0 or length < 0:
            raise ValueError(f"cannot read {length} bytes at {position}")
        buffer = bytearray(max(0, min(length, self.length - position)))
        view = memoryview(buffer)
        at = 0
        while at < len(view):
            reading = _ReplicaChoice(self, position + at)
            at += reading.run(view[at:], len(view) - at)[0]
        return bytes(buffer)

    def close(self) -> None:
        with self._lock:
            if not self.closed:
                self._drop_reader()
            super().close()

    def _check_open(self) -> None:
        if self.closed:
            raise ValueError(f"{self.name}: I/O operation on closed file")

    def _fill(self, target: memoryview) -> int:
        self._check_open()
        target = target[: max(0, self.length - self._position)]
        at = 0
        while at < len(target):
            count = self._read_some(target[at:])
            at += count
            self._position += count
        return at

    def _read_some(self, target: memoryview) -> int:
        """At least one byte at the position: from the reader at hand if that goes on there."""
        self._move_reader()
        reader = self._reader
        if reader is not None:
            try:
                return reader.readinto(target)
            except OSError as error:
                self._drop_reader()
                choice = _ReplicaChoice(self, self._position)
                choice.exclude(reader, error)
        else:
            choice = _ReplicaChoice(self, self._position)
        count, self._reader = choice.run(target, self._window(len(target)), keeps=True)
        self._reader_block = choice.block.offset
        return count

    def _window(self, wanted: int) -> int:
        """How much to ask for: more and more, as long as one read follows the other."""
        if self._position == self._sequential_end:
            self._window_bytes *= 8
        else:
            self._window_bytes = self._readahead_bytes
        return max(wanted, self._window_bytes)

    def _move_reader(self) -> None:
        """Have the reader at the position, or none."""
        reader = self._reader
        if reader is None:
            return
        at = self._reader_block + reader.position
        end = self._reader_block + reader.end
        self._sequential_end = end
        if at <= self._position < end and self._position - at <= DRAIN_BYTES_MAX:
            try:
                reader.skip(self._position - at)
                return
            except OSError as error:
                log.debug("%s: %s", self.name, error)
        self._drop_reader()

    def _drop_reader(self) -> None:
        if self._reader is not None:
            self._reader.close()
            self._reader = None


class _ReplicaChoice:
    """Reads at one position, from one replica after the other until one of them works."""

    def __init__(self, stream: InputStream, position: int) -> None:
        self.block = stream._locations.find(position)
        self._stream = stream
        self._position = position
        self._failed: dict[str, str] = {}  # DataNodes that could not, and why
        self._corrupt: list[hdfs_pb2.LocatedBlockProto] = []  # each with one bad replica

    def exclude(self, reader: BlockReader, error: OSError) -> None:
        """This replica was being read when it failed."""
        self._note_failure(reader.datanode, error)

    def run(
        self, target: memoryview, window: int, *, keeps: bool = False
    ) -> tuple[int, BlockReader | None]:
        """At least one byte; the reader too if the caller `keeps` it."""
        for rounds in range(_ROUNDS_MAX):
            if rounds:
                time.sleep(_ROUND_PAUSE_S * rounds)
                self._failed.clear()
                self.block = self._stream._locations.refresh(self._position)
            for datanode in self.block.locs:
                if datanode.id.datanodeUuid in self._failed:
                    continue
                try:
                    count, reader = self._read(datanode, target, window)
                except OSError as error:
                    self._note_failure(datanode, error)
                    continue
                self._report_corrupt()
                if not keeps:
                    reader.close()
                return count, reader
        raise self._missing()

    def _read(
        self, datanode: hdfs_pb2.DatanodeInfoProto, target: memoryview, window: int
    ) -> tuple[int, BlockReader]:
        offset = self._position - self.block.offset
        left = self.block.b.numBytes - offset
        reader = BlockReader(
            self._stream._connections,
            self.block,
            datanode,
            offset,
            min(left, window),
            self._stream._client_name,
        )
        try:
            count = reader.readinto(target)
            if not count:
                raise EOFException("the replica is shorter than it should be")
        except BaseException:
            reader.abort()
            raise
        return count, reader

    def _note_failure(self, datanode: hdfs_pb2.DatanodeInfoProto, error: OSError) -> None:
        log.info("%s: %s cannot be read from: %s", self._stream.name, address_of(datanode), error)
        self._failed[datanode.id.datanodeUuid] = f"{address_of(datanode)}: {error}"
        if isinstance(error, CorruptReplica):
            self._corrupt.append(_only_at(self.block, datanode))

    def _report_corrupt(self) -> None:
        """Another replica was good: so it is theirs that are bad, and not this machine."""
        if not self._corrupt:
            return
        request = pb.ReportBadBlocksRequestProto(blocks=self._corrupt)
        try:
            self._stream._namenodes.call(
                "reportBadBlocks", request, pb.ReportBadBlocksResponseProto
            )
        except (HdfsError, OSError) as error:
            log.warning("%s: bad replicas could not be reported: %s", self._stream.name, error)
        self._corrupt.clear()

    def _missing(self) -> BlockMissingException:
        reasons = "; ".join(self._failed.values()) or "no DataNode has it"
        return BlockMissingException(
            f"Could not obtain block: blk_{self.block.b.blockId} file={self._stream.name}:"
            f" {reasons}"
        )


def _only_at(
    block: hdfs_pb2.LocatedBlockProto, datanode: hdfs_pb2.DatanodeInfoProto
) -> hdfs_pb2.LocatedBlockProto:
    """The same block, as if no other DataNode had it."""
    only = hdfs_pb2.LocatedBlockProto()
    only.CopyFrom(block)
    uuids = [each.id.datanodeUuid for each in block.locs]
    index = uuids.index(datanode.id.datanodeUuid)
    for field in ("locs", "storageIDs", "storageTypes", "isCached"):
        values = list(getattr(block, field))[index : index + 1]
        only.ClearField(field)
        getattr(only, field).extend(values)
    return only
