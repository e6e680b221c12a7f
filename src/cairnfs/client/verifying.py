"""Reads every replica of a block, each from its DataNode, and tells which are bad.

A bad one is reported if another is good: then the NameNode has it replaced.  If none is good, it
may be this machine that is broken, and somebody has to look.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import msgspec

from cairnfs.client.block_reader import BlockReader, CorruptReplica
from cairnfs.client.namenode import NameNodes
from cairnfs.client.replicas import report_bad
from cairnfs.client.transfers import DataNodeConnections, TransferRefused, address_of
from cairnfs.errors import FileNotFoundException
from cairnfs.wire.proto import client_namenode_pb2 as pb
from cairnfs.wire.proto import hdfs_pb2
from cairnfs.wire.transfer import TransferError

CORRUPT, UNREADABLE, UNREACHABLE = "corrupt", "unreadable", "unreachable"

_BUFFER_BYTES = 1 << 20

Pace: TypeAlias = Callable[[int], object]


class BadReplica(msgspec.Struct, frozen=True):
    """A replica that could not be read as what it should be.

    It is `corrupt`; or `unreadable`: its DataNode does not have it as it should; or `unreachable`:
    nobody knows what it is.
    """

    datanode: str
    storage_id: str
    kind: str
    reason: str


class BlockCheck(msgspec.Struct, frozen=True):
    """What became of reading all replicas of a block."""

    block: str
    offset_bytes: int
    good: int
    good_bytes: int
    bad: list[BadReplica]
    is_reported: bool  # the bad ones, as far as that helps


class _Failure(NamedTuple):
    """A replica that could not be read."""

    datanode: hdfs_pb2.DatanodeInfoProto
    storage_id: str
    kind: str
    reason: str


class Verifier:
    """Verifies blocks, one after the other."""

    def __init__(
        self, namenodes: NameNodes, connections: DataNodeConnections, client_name: str, pace: Pace
    ) -> None:
        self._namenodes = namenodes
        self._connections = connections
        self._client_name = client_name
        self._pace = pace
        self._buffer = memoryview(bytearray(_BUFFER_BYTES))

    def verify(self, path: str, offset: int, length: int) -> list[BlockCheck]:
        """The blocks of a range, but for one that is being written."""
        return [self._verify(path, block) for block in self._locate(path, offset, length)]

    def _locate(self, path: str, offset: int, length: int) -> list[hdfs_pb2.LocatedBlockProto]:
        request = pb.GetBlockLocationsRequestProto(src=path, offset=offset, length=length)
        response = self._namenodes.call_path(
            "getBlockLocations", request, pb.GetBlockLocationsResponseProto
        )
        if not response.HasField("locations"):
            raise FileNotFoundException(f"File does not exist: {path}")
        located = response.locations
        return [
            block
            for block in located.blocks
            if located.isLastBlockComplete or block.b.blockId != located.lastBlock.b.blockId
        ]

    def _verify(self, path: str, block: hdfs_pb2.LocatedBlockProto) -> BlockCheck:
        failures = self._read_all(block)
        good = len(block.locs) - len(failures)
        refused = [each for each in failures if each.kind == UNREADABLE]
        if refused:
            # It may have been moved or deleted just now: what the NameNode still tells of counts.
            still = self._places(path, block)
            failures = [each for each in failures if each not in refused or _place(each) in still]
        known = [each for each in failures if each.kind != UNREACHABLE]
        is_reported = bool(known and good)
        if is_reported:
            report_bad(self._namenodes, [(block, each.datanode) for each in known])
        return BlockCheck(
            f"blk_{block.b.blockId}_{block.b.generationStamp}",
            block.offset,
            good,
            good * block.b.numBytes,
            [BadReplica(str(address_of(each.datanode)), *each[1:]) for each in failures],
            is_reported,
        )

    def _read_all(self, block: hdfs_pb2.LocatedBlockProto) -> list[_Failure]:
        failures = []
        for datanode, storage_id in zip(block.locs, block.storageIDs, strict=True):
            try:
                self._read(block, datanode)
            except OSError as error:
                failures.append(_Failure(datanode, storage_id, _kind_of(error), str(error)))
        return failures

    def _read(
        self, block: hdfs_pb2.LocatedBlockProto, datanode: hdfs_pb2.DatanodeInfoProto
    ) -> None:
        length = block.b.numBytes
        reader = BlockReader(self._connections, block, datanode, 0, length, self._client_name)
        try:
            while reader.position < length:
                self._pace(min(len(self._buffer), length - reader.position))
                if not reader.readinto(self._buffer):
                    raise TransferError("the replica is shorter than it should be")
            reader.close()
        finally:
            reader.abort()

    def _places(self, path: str, block: hdfs_pb2.LocatedBlockProto) -> set[tuple[str, str]]:
        """Where the block is told to be now, if it is still the same."""
        try:
            located = self._locate(path, block.offset, 1)
        except FileNotFoundException:
            return set()
        return {
            (datanode.id.datanodeUuid, storage_id)
            for each in located
            if (each.b.blockId, each.b.generationStamp)
            == (block.b.blockId, block.b.generationStamp)
            for datanode, storage_id in zip(each.locs, each.storageIDs, strict=True)
        }


def _kind_of(error: OSError) -> str:
    if isinstance(error, CorruptReplica):
        return CORRUPT
    is_told = isinstance(error, TransferRefused | TransferError)
    return UNREADABLE if is_told else UNREACHABLE


def _place(failure: _Failure) -> tuple[str, str]:
    return failure.datanode.id.datanodeUuid, failure.storage_id
