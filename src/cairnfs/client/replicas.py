"""Which replica to read from: one after the other, until one of them works.

A DataNode that has failed is asked last from then on, and a replica found to be corrupt is
reported as soon as another one was good: if none is, it may well be this machine that is broken.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator

from cairnfs.client.block_reader import BlockReader, CorruptReplica
from cairnfs.client.locations import FileLocations
from cairnfs.client.namenode import NameNodes
from cairnfs.client.transfers import DataNodeConnections, address_of
from cairnfs.errors import BlockMissingException, EOFException, HdfsError
from cairnfs.wire.proto import client_namenode_pb2 as pb
from cairnfs.wire.proto import hdfs_pb2

log = logging.getLogger(__name__)

_ROUNDS_MAX = 3  # how often all replicas of a block are tried
_ROUND_PAUSE_S = 1.0


class Replicas:
    """The replicas of an open file, for any number of threads."""

    def __init__(
        self,
        namenodes: NameNodes,
        connections: DataNodeConnections,
        locations: FileLocations,
        client_name: str,
    ) -> None:
        self._namenodes = namenodes
        self._connections = connections
        self._locations = locations
        self._client_name = client_name
        self._failed: set[str] = set()  # DataNodes that could not be read from

    def begin(
        self, position: int, target: memoryview, window: int, failure: Failure | None = None
    ) -> tuple[int, BlockReader]:
        """Read at least one byte into `target`; how many, and who can go on.

        The reader goes up to `window` bytes on, within its block.  `failure` is what has
        happened at this position already.
        """
        attempts = _Attempts(self._locations.path)
        if failure is not None:
            self._note(attempts, failure)
        for datanode, block in self._candidates(position, attempts):
            offset = position - block.offset
            length = min(block.b.numBytes - offset, window)
            try:
                reader = BlockReader(
                    self._connections, block, datanode, offset, length, self._client_name
                )
            except OSError as error:
                self._note(attempts, Failure(block, datanode, error))
                continue
            try:
                count = reader.readinto(target)
                if not count:
                    raise EOFException("the replica is shorter than it should be")
            except OSError as error:
                reader.abort()
                self._note(attempts, Failure(block, datanode, error))
                continue
            except BaseException:
                reader.abort()
                raise
            self._report(attempts.corrupt)
            return count, reader
        raise attempts.missing(self._locations.find(position))

    def read(self, position: int, target: memoryview) -> None:
        """Fill `target` from `position` on."""
        at = 0
        while at < len(target):
            count, reader = self.begin(position + at, target[at:], len(target) - at)
            at += count
            try:
                while reader.position < reader.end:
                    at += reader.readinto(target[at:])
                reader.close()
            except OSError as error:
                log.info("%s: %s", self._locations.path, error)  # tried again from here
            finally:
                reader.abort()

    def _candidates(
        self, position: int, attempts: _Attempts
    ) -> Iterator[tuple[hdfs_pb2.DatanodeInfoProto, hdfs_pb2.LocatedBlockProto]]:
        """DataNodes to try, the best first; after a while all of them again."""
        block = self._locations.find(position)
        for rounds in range(_ROUNDS_MAX):
            if rounds:
                time.sleep(_ROUND_PAUSE_S * rounds)
                attempts.reasons.clear()
                block = self._locations.refresh(position)
            for datanode in sorted(block.locs, key=lambda each: _uuid(each) in self._failed):
                if _uuid(datanode) not in attempts.reasons:
                    yield datanode, block

    def _note(self, attempts: _Attempts, failure: Failure) -> None:
        log.info("%s: %s", self._locations.path, failure)
        self._failed.add(_uuid(failure.datanode))
        attempts.reasons[_uuid(failure.datanode)] = str(failure)
        if isinstance(failure.error, CorruptReplica):
            attempts.corrupt.append(failure)

    def _report(self, corrupt: list[Failure]) -> None:
        if not corrupt:
            return
        try:
            report_bad(self._namenodes, [(each.block, each.datanode) for each in corrupt])
        except (HdfsError, OSError) as error:
            log.warning("%s: not reported: %s: %s", self._locations.path, corrupt[0], error)


class Failure:
    """A replica that could not be read."""

    def __init__(
        self,
        block: hdfs_pb2.LocatedBlockProto,
        datanode: hdfs_pb2.DatanodeInfoProto,
        error: OSError,
    ) -> None:
        self.block = block
        self.datanode = datanode
        self.error = error

    def __str__(self) -> str:
        return f"{address_of(self.datanode)}: {self.error}"


class _Attempts:
    """What was tried at one position, and how it went."""

    def __init__(self, path: str) -> None:
        self.reasons: dict[str, str] = {}  # by DataNode
        self.corrupt: list[Failure] = []
        self._path = path

    def missing(self, block: hdfs_pb2.LocatedBlockProto) -> BlockMissingException:
        reasons = "; ".join(self.reasons.values()) or "no DataNode has it"
        return BlockMissingException(
            f"Could not obtain block: blk_{block.b.blockId} file={self._path}: {reasons}"
        )


def report_bad(
    namenodes: NameNodes,
    bad: Iterable[tuple[hdfs_pb2.LocatedBlockProto, hdfs_pb2.DatanodeInfoProto]],
) -> None:
    """Tell of replicas that are not what they should be."""
    blocks = [_only_at(block, datanode) for block, datanode in bad]
    request = pb.ReportBadBlocksRequestProto(blocks=blocks)
    namenodes.call("reportBadBlocks", request, pb.ReportBadBlocksResponseProto)


def _uuid(datanode: hdfs_pb2.DatanodeInfoProto) -> str:
    return datanode.id.datanodeUuid


def _only_at(
    block: hdfs_pb2.LocatedBlockProto, datanode: hdfs_pb2.DatanodeInfoProto
) -> hdfs_pb2.LocatedBlockProto:
    """The same block, as if no other DataNode had it."""
    only = hdfs_pb2.LocatedBlockProto()
    only.CopyFrom(block)
    index = [_uuid(each) for each in block.locs].index(_uuid(datanode))
    for field in ("locs", "storageIDs", "storageTypes", "isCached"):
        values = list(getattr(block, field))[index : index + 1]
        only.ClearField(field)
        getattr(only, field).extend(values)
    return only
