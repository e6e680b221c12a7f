"""Operations that write a replica: a client's pipeline, a copy; and what a move brings."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from cairnfs.datanode.connection import Connection
from cairnfs.datanode.figures import DataNodeFigures
from cairnfs.datanode.peers import Pool, address_of, connect, describe
from cairnfs.datanode.pipeline import BlockReceiver, TransferWriter
from cairnfs.datanode.replica import Block, Replica
from cairnfs.datanode.replicas import Replicas
from cairnfs.datanode.reports import Reports
from cairnfs.datanode.settings import DataNodeSettings
from cairnfs.datanode.storage import StorageType
from cairnfs.errors import IOException
from cairnfs.network.throttle import Throttle
from cairnfs.wire.checksum import Checksum
from cairnfs.wire.proto import data_transfer_pb2 as pb
from cairnfs.wire.transfer import (
    Op,
    Stage,
    Status,
    decode_checksum,
    encode_message,
    encode_request,
    encode_response,
)

log = logging.getLogger(__name__)


class Writing:
    """Takes part in pipelines, and takes over copies."""

    def __init__(
        self,
        pool: Pool,
        replicas: Replicas,
        reports: Reports,
        settings: DataNodeSettings,
        *,
        figures: DataNodeFigures,
    ) -> None:
        self._pool = pool
        self._replicas = replicas
        self._reports = reports
        self._settings = settings
        self._figures = figures

    def write_block(self, message: pb.OpWriteBlockProto, connection: Connection) -> None:
        """Take part in a pipeline, or take over a copy."""
        block = self._pool.block_of(message.header.baseHeader)
        is_client = bool(message.header.clientName)
        is_transfer = message.stage in (Stage.TRANSFER_RBW, Stage.TRANSFER_FINALIZED)
        log.debug("write %s, %s", block, Stage.Name(message.stage))

        if is_client and message.stage == Stage.PIPELINE_CLOSE_RECOVERY:
            self._recover_close(message, block, connection)
            return

        with self._writing(connection) as (writer, cleanup):
            is_lazy = message.allowLazyPersist and connection.is_local
            replica = self._open_replica(message, block, writer, is_lazy=is_lazy)
            cleanup.callback(self._replicas.release, replica, writer)
            acknowledges = is_client and not is_transfer
            if acknowledges:
                self._reports.receiving(replica.block, replica.volume)
            writer.mirror = self._connect_mirror(message, connection, cleanup)
            if acknowledges:
                connection.send(encode_response(first_bad_link=""))
            receiver = self._receiver(
                replica, writer, decode_checksum(message.requestedChecksum), acknowledges
            )
            receiver.receive()
            if message.stage == Stage.TRANSFER_RBW:
                self._replicas.convert_temporary_to_rbw(replica.block, replica.received_bytes)
            elif not acknowledges:
                receiver.finalize()
            if is_transfer:
                connection.send(encode_response())

    @contextmanager
    def _writing(self, upstream: Connection) -> Iterator[tuple[TransferWriter, ExitStack]]:
        """Be a replica's writer; others wait until all of this has ended."""
        writer = TransferWriter(upstream)
        with ExitStack() as cleanup:
            cleanup.callback(writer.finished)
            yield writer, cleanup

    def _receiver(
        self, replica: Replica, writer: TransferWriter, checksum: Checksum, acknowledges: bool
    ) -> BlockReceiver:
        return BlockReceiver(
            replica,
            writer,
            replicas=self._replicas,
            reports=self._reports,
            settings=self._settings,
            checksum=checksum,
            acknowledges=acknowledges,
            figures=self._figures,
        )

    def _open_replica(
        self,
        message: pb.OpWriteBlockProto,
        block: Block,
        writer: TransferWriter,
        *,
        is_lazy: bool,
    ) -> Replica:
        replicas, stamp = self._replicas, message.latestGenerationStamp
        checksum = decode_checksum(message.requestedChecksum)
        storage_type = StorageType(message.storageType)
        is_transfer = message.stage in (Stage.TRANSFER_RBW, Stage.TRANSFER_FINALIZED)
        if not message.header.clientName or is_transfer:
            return replicas.create_temporary(
                block, checksum, storage_type, message.storageId, writer, is_transfer=is_transfer
            )
        match message.stage:
            case Stage.PIPELINE_SETUP_CREATE:
                if stamp:
                    block = block._replace(generation_stamp=stamp)
                if is_lazy and replicas.volumes.has_room(StorageType.RAM_DISK, block.length_bytes):
                    storage_type = StorageType.RAM_DISK
                return replicas.create_rbw(
                    block, checksum, storage_type, message.storageId, writer, replace=bool(stamp)
                )
            case Stage.PIPELINE_SETUP_STREAMING_RECOVERY:
                return replicas.recover_rbw(
                    block, stamp, message.minBytesRcvd, message.maxBytesRcvd, writer
                )
            case Stage.PIPELINE_SETUP_APPEND:
                return replicas.append(block, stamp, message.minBytesRcvd, writer)
            case Stage.PIPELINE_SETUP_APPEND_RECOVERY:
                return replicas.recover_append(block, stamp, message.minBytesRcvd, writer)
        raise IOException(f"Unsupported stage {message.stage} while receiving block {block}")

    def _recover_close(
        self, message: pb.OpWriteBlockProto, block: Block, connection: Connection
    ) -> None:
        replica = self._replicas.recover_close(
            block, message.latestGenerationStamp, message.minBytesRcvd
        )
        with ExitStack() as cleanup:
            self._connect_mirror(message, connection, cleanup)
            connection.send(encode_response(first_bad_link=""))
        self._reports.received(replica.block, replica.volume)

    def _connect_mirror(
        self, message: pb.OpWriteBlockProto, upstream: Connection, cleanup: ExitStack
    ) -> Connection | None:
        """Set up the rest of the pipeline; if that fails, the client learns where."""
        if not message.targets:
            return None
        address = address_of(message.targets[0])
        is_client = bool(message.header.clientName)
        try:
            mirror = connect(address, self._settings, further=len(message.targets))
            cleanup.callback(mirror.close)
            mirror.send(encode_request(Op.WRITE_BLOCK, _for_mirror(message)))
            if is_client and message.stage not in (Stage.TRANSFER_RBW, Stage.TRANSFER_FINALIZED):
                response = mirror.read_message(pb.BlockOpResponseProto)
                if response.status != Status.SUCCESS:
                    response.firstBadLink = response.firstBadLink or str(address)
                    upstream.send(encode_message(response))
                    raise _PipelineRefused(f"{response.firstBadLink} refused the pipeline")
            return mirror
        except _PipelineRefused:
            raise
        except OSError as error:
            if not is_client:
                log.warning("no mirror %s: %s; going on without", address, error)
                return None
            upstream.send(
                encode_response(Status.ERROR, describe(error), first_bad_link=str(address))
            )
            raise

    def take_copy(
        self,
        block: Block,
        source: Connection,
        checksum: Checksum,
        storage_type: StorageType,
        storage_id: str,
        *,
        delete_hint: str,
        throttle: Throttle,
    ) -> None:
        """Receive a whole replica, which `source` has begun to send; the hint is for NameNodes."""
        with self._writing(source) as (writer, ending):
            replica = self._replicas.create_temporary(
                block, checksum, storage_type, storage_id, writer, is_transfer=False
            )
            ending.callback(self._replicas.release, replica, writer)
            receiver = self._receiver(replica, writer, checksum, acknowledges=False)
            receiver.receive(throttle)
            receiver.finalize(delete_hint=delete_hint)


class _PipelineRefused(IOException):
    """A DataNode further down cannot; the client was told so."""


def _for_mirror(message: pb.OpWriteBlockProto) -> pb.OpWriteBlockProto:
    """The same request, as the next DataNode should see it."""
    onward = pb.OpWriteBlockProto()
    onward.CopyFrom(message)
    del onward.targets[0]
    onward.ClearField("allowLazyPersist")  # one replica in memory is enough
    for first, rest in (
        ("storageType", onward.targetStorageTypes),
        ("storageId", onward.targetStorageIds),
        ("pinning", onward.targetPinnings),
    ):
        if rest:
            setattr(onward, first, rest[0])
            del rest[0]
        else:
            onward.ClearField(first)
    return onward
