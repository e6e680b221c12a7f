"""One block on its way through one pipeline of DataNodes.

Packets go out, acknowledgements come back on the same connection and are read when they are
there, or when the window is full and there is nothing else to do.  They are so few bytes that
a DataNode never waits for us to read them, hence no thread does.  A pipeline ends at the
first failure, and says which DataNode is to blame; `BlockWriter` builds the next one.
"""

from __future__ import annotations

import socket
from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

from cairnfs.client.packets import Packet
from cairnfs.client.transfers import address_of, client_header, connect, read_message
from cairnfs.errors import IOException
from cairnfs.network.address import Address
from cairnfs.network.sockets import receive_some, send_all
from cairnfs.wire.checksum import Checksum
from cairnfs.wire.packets import HEARTBEAT_SEQNO, Ack, encode_packet_header
from cairnfs.wire.proto import data_transfer_pb2 as pb
from cairnfs.wire.proto import hdfs_pb2
from cairnfs.wire.receive_buffer import ReceiveBuffer
from cairnfs.wire.transfer import Op, Status, encode_checksum, encode_request

_ACK_BUFFER_BYTES = 8 << 10
_HEARTBEAT = encode_packet_header(0, HEARTBEAT_SEQNO, data_bytes=0, sums_bytes=0)


class PipelineFailed(IOException):
    """A pipeline has ended; `bad` is the index of the DataNode at fault."""

    def __init__(self, message: str, bad: int, *, restarts: bool = False) -> None:
        super().__init__(message)
        self.bad = bad
        self.restarts = restarts  # it has announced to be back soon


class Target(NamedTuple):
    """A DataNode of a pipeline, with the storage that is to have the replica."""

    datanode: hdfs_pb2.DatanodeInfoProto
    storage_id: str
    storage_type: hdfs_pb2.StorageTypeProto

    @property
    def address(self) -> Address:
        return address_of(self.datanode)

    @property
    def uuid(self) -> str:
        return self.datanode.id.datanodeUuid


class Setup(NamedTuple):
    """How a pipeline begins."""

    stage: pb.OpWriteBlockProto.BlockConstructionStage
    generation_stamp: int = 0  # the new one, unless the block is new
    acked_bytes: int = 0
    sent_bytes: int = 0
    is_lazy: bool = False  # the first replica may be in memory for a while
    room_bytes: int = 0  # how much room a new block should find


def targets_of(block: hdfs_pb2.LocatedBlockProto) -> list[Target]:
    """The DataNodes that a block is to be written to."""
    types = list(block.storageTypes) or [hdfs_pb2.DISK] * len(block.locs)
    ids = list(block.storageIDs) or [""] * len(block.locs)
    return [Target(*each) for each in zip(block.locs, ids, types, strict=True)]


class Pipeline:
    """DataNodes that take packets, from the set-up to the first failure or the last packet."""

    def __init__(
        self,
        block: hdfs_pb2.LocatedBlockProto,
        targets: Sequence[Target],
        checksum: Checksum,
        client_name: str,
        setup: Setup,
        unacked: deque[Packet],
        acked: Callable[[Packet], None],
    ) -> None:
        """`unacked` are the packets on their way, from which those are taken that arrived."""
        self._targets = targets
        self._unacked = unacked
        self._acked = acked
        self._buffer = ReceiveBuffer(_ACK_BUFFER_BYTES)
        request = _encode_setup(block, targets, checksum, client_name, setup)
        try:
            self._socket = connect(targets[0].address, len(targets))
        except OSError as error:
            raise self._failed(error) from error
        try:
            self._begin(request)
        except BaseException:
            self._socket.close()
            raise

    def _begin(self, request: bytes) -> None:
        try:
            send_all(self._socket, [request])
            response = read_message(self._socket, pb.BlockOpResponseProto)
        except OSError as error:
            raise self._failed(error) from error
        if response.status == Status.SUCCESS:
            return
        reason = response.message or Status.Name(response.status)
        raise PipelineFailed(
            f"{response.firstBadLink or self._targets[0].address} refused the pipeline: {reason}",
            self._find(response.firstBadLink),
            restarts=response.status == Status.OOB_RESTART,
        )

    def _find(self, bad_link: str) -> int:
        """Which DataNode was named by its address; the first if that is unknown."""
        for index, target in enumerate(self._targets):
            if bad_link in (
                str(target.address),
                f"{target.datanode.id.hostName}:{target.address.port}",
            ):
                return index
        return 0

    def send(self, packet: Packet) -> None:
        """Send one of those that are not acknowledged, and see which are by now."""
        self._exchange(packet.encode())

    def keep_alive(self) -> None:
        """Tell the DataNodes that we are still here."""
        self._exchange([_HEARTBEAT])

    def wait(self) -> None:
        """Wait for acknowledgements."""
        try:
            self._buffer.received(receive_some(self._socket, self._buffer.space()))
            self._settle_acks()
        except PipelineFailed:
            raise
        except OSError as error:
            raise self._failed(error) from error

    def close(self) -> None:
        self._socket.close()

    def _exchange(self, buffers: Sequence[bytes | memoryview]) -> None:
        try:
            send_all(self._socket, buffers)
        except OSError as error:
            self._take_acks()  # a DataNode may have said what was wrong
            raise self._failed(error) from error
        self._take_acks()

    def _take_acks(self) -> None:
        """Those that have arrived."""
        try:
            count = self._socket.recv_into(self._buffer.space(), 0, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return
        except OSError as error:
            raise self._failed(error) from error
        if count == 0:
            raise PipelineFailed(f"{self._targets[0].address} closed the connection", 0)
        self._buffer.received(count)
        self._settle_acks()

    def _settle_acks(self) -> None:
        while (ack := self._buffer.take_ack()) is not None:
            if not ack.is_success:
                raise self._told(ack)
            if ack.seqno == HEARTBEAT_SEQNO:
                continue
            if not self._unacked or ack.seqno != self._unacked[0].seqno:
                raise PipelineFailed(
                    f"{self._targets[0].address} acknowledged packet {ack.seqno}, which is not due",
                    0,
                )
            self._acked(self._unacked.popleft())

    def _told(self, ack: Ack) -> PipelineFailed:
        """What the DataNodes say is wrong; of several, the last knows best."""
        bad = max(index for index, status in enumerate(ack.statuses) if status != Status.SUCCESS)
        bad = min(bad, len(self._targets) - 1)
        return PipelineFailed(
            f"{self._targets[bad].address}: {Status.Name(ack.statuses[bad])}",
            bad,
            restarts=ack.statuses[bad] == Status.OOB_RESTART,
        )

    def _failed(self, error: OSError) -> PipelineFailed:
        return PipelineFailed(f"{self._targets[0].address}: {error}", 0)


def _encode_setup(
    block: hdfs_pb2.LocatedBlockProto,
    targets: Sequence[Target],
    checksum: Checksum,
    client_name: str,
    setup: Setup,
) -> bytes:
    first, *others = targets
    header = client_header(block, client_name)
    if setup.room_bytes:  # as Hadoop's client tells it
        header.baseHeader.block.numBytes = setup.room_bytes
    request = pb.OpWriteBlockProto(
        header=header,
        targets=[target.datanode for target in others],
        stage=setup.stage,
        pipelineSize=len(targets),
        minBytesRcvd=setup.acked_bytes,
        maxBytesRcvd=setup.sent_bytes,
        latestGenerationStamp=setup.generation_stamp,
        requestedChecksum=encode_checksum(checksum),
        storageType=first.storage_type,
        targetStorageTypes=[target.storage_type for target in others],
        storageId=first.storage_id,
        targetStorageIds=[target.storage_id for target in others],
        allowLazyPersist=setup.is_lazy or None,
    )
    return encode_request(Op.WRITE_BLOCK, request)
