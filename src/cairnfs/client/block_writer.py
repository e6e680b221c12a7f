"""One block being written, over as many pipelines as it takes.

When a DataNode fails, the others go on under a new generation stamp: what they have not
acknowledged is sent again.  Invariant: `_unacked` are all packets, in order, that some DataNode
of the pipeline may lack; everything before them is in all of its DataNodes.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable

from cairnfs.client.file_calls import FileCalls
from cairnfs.client.packets import Packet, PacketPool
from cairnfs.client.pipeline import Pipeline, PipelineFailed, Setup, Target, targets_of
from cairnfs.client.transfers import ask, client_header, connect
from cairnfs.errors import HdfsError, IOException
from cairnfs.wire.proto import data_transfer_pb2 as pb
from cairnfs.wire.proto import hdfs_pb2
from cairnfs.wire.transfer import Op, Stage

log = logging.getLogger(__name__)

_SETUP_ATTEMPTS_MAX = 4
_RECOVERIES_MAX = 5  # without a packet acknowledged in between
_RESTART_PAUSE_S = 1.0  # for the only DataNode, which has announced to be back
_RESTARTS_MAX = 30
_REPLACED_FROM = 3  # replicas: with fewer, a DataNode that fails is not replaced, as in Hadoop


class BlockWriter:
    """A block that has DataNodes; from its first packet to its last."""

    def __init__(
        self,
        file: FileCalls,
        pool: PacketPool,
        block: hdfs_pb2.LocatedBlockProto,
        replication: int,
        window: int,
    ) -> None:
        self.acked_bytes = block.b.numBytes
        self.is_relied_on = False  # somebody was told that what was written is there
        self._file = file
        self._pool = pool
        self._block = block
        self._targets = targets_of(block)
        self._excluded: list[hdfs_pb2.DatanodeInfoProto] = []
        self._replication = replication
        self._window = window
        self._sent_bytes = block.b.numBytes
        self._unacked: deque[Packet] = deque()
        self._recoveries = 0
        self._pipeline: Pipeline | None = None

    @classmethod
    def begin(
        cls,
        file: FileCalls,
        pool: PacketPool,
        previous: hdfs_pb2.ExtendedBlockProto | None,
        replication: int,
        window: int,
    ) -> BlockWriter:
        """A new block, at DataNodes that take it."""
        excluded: list[hdfs_pb2.DatanodeInfoProto] = []
        attempts = 0
        while True:
            block = file.add_block(previous, excluded)
            writer = cls(file, pool, block, replication, window)
            try:
                writer._open(
                    Setup(
                        Stage.PIPELINE_SETUP_CREATE,
                        is_lazy=file.is_lazy,
                        room_bytes=file.block_size_bytes,
                    )
                )
                return writer
            except PipelineFailed as error:
                log.info("%s: %s", file.path, error)
                excluded.append(block.locs[error.bad])
                file.abandon_block(block.b)
                attempts += 1
                if attempts == _SETUP_ATTEMPTS_MAX:
                    raise IOException(
                        f"{file.path}: no DataNode takes a new block; the last failure: {error}"
                    ) from error

    @classmethod
    def resume(
        cls,
        file: FileCalls,
        pool: PacketPool,
        block: hdfs_pb2.LocatedBlockProto,
        replication: int,
        window: int,
    ) -> BlockWriter:
        """The last block of a file, to which is appended."""
        writer = cls(file, pool, block, replication, window)
        writer.is_relied_on = True
        try:
            writer._rebuild(Stage.PIPELINE_SETUP_APPEND)
        except PipelineFailed as error:
            writer._recover(error, Stage.PIPELINE_SETUP_APPEND_RECOVERY)
        return writer

    @property
    def block(self) -> hdfs_pb2.ExtendedBlockProto:
        """The block, as long as it is at all of its DataNodes."""
        block = hdfs_pb2.ExtendedBlockProto()
        block.CopyFrom(self._block.b)
        block.numBytes = self.acked_bytes
        return block

    # Packets

    def send(self, packet: Packet) -> None:
        """Send a packet; it is the pool's again when it has arrived.

        The last one of the block, which makes the replicas final, goes out alone: everything
        before it must have arrived.
        """
        assert not (packet.is_last and self._unacked)
        self._unacked.append(packet)
        self._sent_bytes = max(self._sent_bytes, packet.end)
        self._try(lambda pipeline: pipeline.send(packet))
        while len(self._unacked) >= self._window:
            self._try(Pipeline.wait)

    def wait_for_all(self) -> None:
        """Return when every DataNode has everything."""
        while self._unacked:
            self._try(Pipeline.wait)

    def keep_alive(self) -> None:
        """Keep DataNodes from giving up a writer that has nothing to write."""
        self._try(Pipeline.keep_alive)

    def close(self) -> None:
        """Let go of the connection, whatever was sent."""
        if self._pipeline is not None:
            self._pipeline.close()
            self._pipeline = None

    def _acked(self, packet: Packet) -> None:
        self.acked_bytes = max(self.acked_bytes, packet.end)
        self._recoveries = 0
        self._pool.put_back(packet)

    def _try(self, step: Callable[[Pipeline], None]) -> None:
        if self._pipeline is None:
            raise IOException(f"{self._file.path}: the last pipeline has failed")
        try:
            step(self._pipeline)
        except PipelineFailed as error:
            is_closing = bool(self._unacked) and self._unacked[0].is_last
            self._recover(
                error,
                Stage.PIPELINE_CLOSE_RECOVERY
                if is_closing
                else Stage.PIPELINE_SETUP_STREAMING_RECOVERY,
            )

    # Recovery

    def _recover(
        self, failure: PipelineFailed, stage: pb.OpWriteBlockProto.BlockConstructionStage
    ) -> None:
        """Go on without the DataNode that failed, and perhaps with another."""
        while True:
            log.info("%s: %s; the pipeline is built anew", self._file.path, failure)
            self.close()
            self._recoveries += 1
            self._leave_out(failure)
            if self._wants_replacement:
                self._add_datanode()
            try:
                self._rebuild(stage)
                return
            except PipelineFailed as error:
                failure = error

    def _leave_out(self, failure: PipelineFailed) -> None:
        bad = self._targets[failure.bad]
        if failure.restarts and len(self._targets) == 1 and self._recoveries <= _RESTARTS_MAX:
            time.sleep(_RESTART_PAUSE_S)
            return
        if len(self._targets) == 1 or self._recoveries > _RECOVERIES_MAX:
            names = ", ".join(str(target.address) for target in self._targets)
            raise IOException(
                f"All datanodes [{names}] of blk_{self._block.b.blockId} of {self._file.path} are"
                f" bad. Aborting... {failure}"
            ) from failure
        self._targets.remove(bad)
        self._excluded.append(bad.datanode)

    def _rebuild(self, stage: pb.OpWriteBlockProto.BlockConstructionStage) -> None:
        """The DataNodes at hand go on under a new generation stamp."""
        old = self.block
        renewed = self._file.update_block_for_pipeline(old)
        stamp = renewed.b.generationStamp
        self._block.blockToken.CopyFrom(renewed.blockToken)
        self._block.b.numBytes = self.acked_bytes
        self._open(Setup(stage, stamp, self.acked_bytes, self._sent_bytes))
        new = self.block
        new.generationStamp = stamp
        self._file.update_pipeline(old, new, self._targets)
        self._block.b.generationStamp = stamp
        if stage == Stage.PIPELINE_CLOSE_RECOVERY:
            self._acked(self._unacked.popleft())  # setting it up has made the replicas final
            return
        assert self._pipeline is not None
        for packet in list(self._unacked):
            self._pipeline.send(packet)

    def _open(self, setup: Setup) -> None:
        self._pipeline = Pipeline(
            self._block,
            self._targets,
            self._pool.checksum,
            self._file.client_name,
            setup,
            self._unacked,
            self._acked,
        )

    @property
    def _wants_replacement(self) -> bool:
        """Hadoop's default policy: not for few replicas, nor as long as most are there."""
        count = len(self._targets)
        if self._replication < _REPLACED_FROM or count >= self._replication:
            return False
        return count <= self._replication // 2 or self.is_relied_on

    def _add_datanode(self) -> None:
        """Have another DataNode copy what there is; if none can, go on without."""
        try:
            located = self._file.get_additional_datanode(self.block, self._targets, self._excluded)
            known = {target.uuid for target in self._targets}
            added = next((t for t in targets_of(located) if t.uuid not in known), None)
            if added is None:
                return
            self._copy_to(added)
            self._targets.append(added)
        except (HdfsError, OSError) as error:
            log.info("%s: no DataNode in place of the lost one: %s", self._file.path, error)

    def _copy_to(self, target: Target) -> None:
        source = self._targets[0]
        block = hdfs_pb2.LocatedBlockProto()
        block.CopyFrom(self._block)
        block.b.numBytes = self.acked_bytes
        request = pb.OpTransferBlockProto(
            header=client_header(block, self._file.client_name),
            targets=[target.datanode],
            targetStorageTypes=[target.storage_type],
            targetStorageIds=[target.storage_id],
        )
        sock = connect(source.address, 2)
        try:
            ask(
                sock,
                Op.TRANSFER_BLOCK,
                request,
                f"{source.address} cannot copy to {target.address}",
            )
        finally:
            sock.close()
