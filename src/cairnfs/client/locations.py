"""Where the blocks of an open file are, asked for as far as a reader goes."""

from __future__ import annotations

import bisect
import threading
import time
from collections.abc import Iterable

from cairnfs.client.namenode import NameNodes
from cairnfs.errors import (
    FileNotFoundException,
    HdfsError,
    IOException,
    PathIsDirectoryException,
    UnsupportedOperationException,
)
from cairnfs.network.address import Address
from cairnfs.network.rpc_connection import RpcConnection, make_call_ids
from cairnfs.wire.proto import client_datanode_pb2, hdfs_pb2
from cairnfs.wire.proto import client_namenode_pb2 as pb
from cairnfs.wire.protocols import CLIENT_DATANODE_PROTOCOL

_PREFETCH_BYTES = 1280 << 20  # ten blocks of the usual size, as in Hadoop
_NOT_A_FILE = "Path is not a file"
_DATANODE_TIMEOUT_S = 30.0
_LENGTH_ATTEMPTS_MAX = 3
_LENGTH_PAUSE_S = 0.5


class FileLocations:
    """The blocks of one file; its length is as it was when the file was opened."""

    def __init__(self, namenodes: NameNodes, path: str) -> None:
        self.path = path
        self._namenodes = namenodes
        self._lock = threading.Lock()
        located = self._fetch(0)
        self._blocks = list(located.blocks)
        self._length = located.fileLength
        self._open_end = self._length  # from where on a block is being written
        if located.underConstruction and not located.isLastBlockComplete:
            self._add_open_block(located)

    @property
    def length(self) -> int:
        return self._length

    def find(self, position: int) -> hdfs_pb2.LocatedBlockProto:
        """The block that has the byte at `position`."""
        with self._lock:
            block = self._find_known(position)
            if block is None:
                self._merge(self._fetch(position).blocks)
                block = self._find_known(position)
        if block is None:
            raise IOException(f"{self.path} has no block at {position}: it has become shorter")
        return block

    def refresh(self, position: int) -> hdfs_pb2.LocatedBlockProto:
        """The same, asked for anew: replicas come and go."""
        located = self._fetch(position)
        with self._lock:
            self._merge(located.blocks)
        return self.find(position)

    def all_blocks(self) -> list[hdfs_pb2.LocatedBlockProto]:
        """Every block, in order."""
        blocks: list[hdfs_pb2.LocatedBlockProto] = []
        position = 0
        while position < self._length:
            block = self.find(position)
            blocks.append(block)
            position = block.offset + block.b.numBytes
        return blocks

    def _find_known(self, position: int) -> hdfs_pb2.LocatedBlockProto | None:
        index = bisect.bisect_right(self._blocks, position, key=_offset) - 1
        if index < 0:
            return None
        block = self._blocks[index]
        return block if position < block.offset + block.b.numBytes else None

    def _merge(self, blocks: Iterable[hdfs_pb2.LocatedBlockProto]) -> None:
        known = {block.offset: block for block in self._blocks}
        for block in blocks:
            # What was seen of a block that grows stays true: readers rely on the length.
            old = known.get(block.offset)
            if old is not None and block.offset >= self._open_end:
                block.b.numBytes = max(block.b.numBytes, old.b.numBytes)
            known[block.offset] = block
        self._blocks = sorted(known.values(), key=_offset)

    def _fetch(self, position: int) -> hdfs_pb2.LocatedBlocksProto:
        request = pb.GetBlockLocationsRequestProto(
            src=self.path, offset=position, length=_PREFETCH_BYTES
        )
        try:
            response = self._namenodes.call_path(
                "getBlockLocations", request, pb.GetBlockLocationsResponseProto
            )
        except FileNotFoundException as error:
            if _NOT_A_FILE in str(error):
                raise PathIsDirectoryException(f"`{self.path}': Is a directory") from None
            raise
        if not response.HasField("locations"):
            raise FileNotFoundException(f"File does not exist: {self.path}")
        located = response.locations
        for field, what in (("ecPolicy", "erasure coded"), ("fileEncryptionInfo", "encrypted")):
            if located.HasField(field):
                raise UnsupportedOperationException(f"{self.path} is {what}: not supported")
        return located

    # The last block of a file that is being written: only its DataNodes know how long it is.

    def _add_open_block(self, located: hdfs_pb2.LocatedBlocksProto) -> None:
        if not located.HasField("lastBlock"):
            return
        last = located.lastBlock
        self._open_end = last.offset
        visible = self._visible_length(last)
        last.b.numBytes = visible
        self._length = last.offset + visible
        self._blocks = [block for block in self._blocks if block.offset != last.offset]
        if visible:
            self._blocks.append(last)

    def _visible_length(self, block: hdfs_pb2.LocatedBlockProto) -> int:
        if not block.locs:
            return 0  # its first byte has not been written yet
        failure: Exception | None = None
        for attempt in range(_LENGTH_ATTEMPTS_MAX):
            not_found = 0
            for datanode in block.locs:
                try:
                    return self._ask_visible_length(datanode, block)
                except (HdfsError, OSError) as error:
                    failure = error
                    java_class = getattr(error, "java_class", "")
                    not_found += java_class.endswith("ReplicaNotFoundException")
            if not_found == len(block.locs):
                return 0  # the pipeline is about to be set up
            if attempt + 1 < _LENGTH_ATTEMPTS_MAX:
                time.sleep(_LENGTH_PAUSE_S)
        raise IOException(
            f"Cannot obtain block length for blk_{block.b.blockId} of {self.path}, which is being"
            f" written: {failure}"
        )

    def _ask_visible_length(
        self, datanode: hdfs_pb2.DatanodeInfoProto, block: hdfs_pb2.LocatedBlockProto
    ) -> int:
        connection = RpcConnection(
            Address(datanode.id.ipAddr, datanode.id.ipcPort),
            CLIENT_DATANODE_PROTOCOL,
            self._namenodes.client_id,
            self._namenodes.user,
            _DATANODE_TIMEOUT_S,
        )
        try:
            response = connection.call(
                next(_call_ids),
                CLIENT_DATANODE_PROTOCOL["getReplicaVisibleLength"],
                client_datanode_pb2.GetReplicaVisibleLengthRequestProto(block=block.b),
            )
        finally:
            connection.close()
        assert isinstance(response, client_datanode_pb2.GetReplicaVisibleLengthResponseProto)
        return response.length


_call_ids = make_call_ids()


def _offset(block: hdfs_pb2.LocatedBlockProto) -> int:
    return block.offset
