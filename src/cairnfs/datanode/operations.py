"""One method for each operation of DataTransferProtocol.

An operation that fails before its answer is answered with ERROR and the reason; one that
fails later ends the connection, from which the peer draws its conclusions.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress

from google.protobuf.message import Message

from cairnfs.datanode.connection import Connection, FileTooShort, is_disconnect
from cairnfs.datanode.errors import ReplicaNotFoundException
from cairnfs.datanode.pipeline import BlockReceiver, TransferWriter
from cairnfs.datanode.replica import Block, Replica, ReplicaState
from cairnfs.datanode.replicas import Replicas
from cairnfs.datanode.reports import Reports
from cairnfs.datanode.sender import BlockSender
from cairnfs.datanode.settings import Address, DataNodeSettings
from cairnfs.datanode.volumes import StorageType
from cairnfs.errors import IOException, UnsupportedOperationException
from cairnfs.wire.checksum import SUM_BYTES, Checksum, CompositeCrc, md5_of_sums
from cairnfs.wire.proto import data_transfer_pb2 as pb
from cairnfs.wire.proto import hdfs_pb2
from cairnfs.wire.transfer import (
    Op,
    Stage,
    Status,
    decode_checksum,
    encode_checksum,
    encode_message,
    encode_request,
    encode_response,
)

log = logging.getLogger(__name__)

TIMEOUT_EXTENSION_S = 5.0  # for each DataNode further down
_SUMS_PIECE_BYTES = 64 << 10  # data whose checksums are read at once, times 16


class Operations:
    """What this DataNode does for those who connect to it."""

    def __init__(
        self,
        replicas: Replicas,
        reports: Reports,
        settings: DataNodeSettings,
        *,
        block_pool_id: str,
        datanode_uuid: str,
    ) -> None:
        self._replicas = replicas
        self._reports = reports
        self._settings = settings
        self._block_pool_id = block_pool_id
        self._datanode_uuid = datanode_uuid

    def run(self, op: Op, message: Message, connection: Connection) -> bool:
        """Do it; True if another operation may follow on the connection."""
        if isinstance(message, pb.OpReadBlockProto):
            return self.read_block(message, connection)
        if isinstance(message, pb.OpWriteBlockProto):
            self.write_block(message, connection)
        elif isinstance(message, pb.OpTransferBlockProto):
            self.transfer_block(message, connection)
        elif isinstance(message, pb.OpBlockChecksumProto):
            self.block_checksum(message, connection)
        elif isinstance(message, pb.OpCopyBlockProto):
            self.copy_block(message, connection)
        elif isinstance(message, pb.OpReplaceBlockProto):
            self.replace_block(message, connection)
        else:
            return _refuse(op, connection)
        return False

    # Reading.

    def read_block(self, message: pb.OpReadBlockProto, connection: Connection) -> bool:
        """Send a range; then the client says how it liked it."""
        block = self._block(message.header.baseHeader)
        try:
            sender = BlockSender.open(
                self._replicas,
                block,
                message.offset,
                message.len,
                with_sums=message.sendChecksums,
            )
        except OSError as error:
            connection.send(
                encode_response(
                    Status.ERROR, f"opReadBlock {block} received exception {_describe(error)}"
                )
            )
            raise
        with sender:
            self._send(sender, block, connection)
        connection.read_message(pb.ClientReadStatusProto)
        return True

    def copy_block(self, message: pb.OpCopyBlockProto, connection: Connection) -> None:
        """Send a whole replica to a DataNode that takes it over."""
        block = self._block(message.header)
        with self._answering(connection):
            sender = BlockSender(self._replicas.open_for_read(block))
        with sender:
            self._send(sender, block, connection)
        connection.send(b"\0d")  # our thread is free again

    def _send(self, sender: BlockSender, block: Block, connection: Connection) -> None:
        info = pb.ReadOpChecksumInfoProto(
            checksum=encode_checksum(sender.checksum), chunkOffset=sender.offset
        )
        connection.send(
            encode_message(pb.BlockOpResponseProto(status=Status.SUCCESS, readOpChecksumInfo=info))
        )
        try:
            sender.send(connection)
        except OSError as error:
            if isinstance(error, FileTooShort) or not is_disconnect(error):
                self._suspect(block, error)
            raise

    def _suspect(self, block: Block, error: OSError) -> None:
        """Reading a replica has failed: it is bad, or its volume, or it was just deleted."""
        replica = self._replicas.find(block.id)
        if replica is not None and self._replicas.volumes.check(replica.volume):
            log.warning("%s cannot be read: %s", replica, error)
            self._reports.bad(replica.block, replica.volume)

    def block_checksum(self, message: pb.OpBlockChecksumProto, connection: Connection) -> None:
        """The checksum of a block, of which a client makes that of a file."""
        block = self._block(message.header)
        options = message.blockChecksumOptions
        composite = options.blockChecksumType == hdfs_pb2.COMPOSITE_CRC
        with self._answering(connection), self._replicas.open_for_read(block) as reader:
            checksum = reader.checksum
            if not checksum.sum_bytes or 0 < options.stripeLength < reader.length_bytes:
                raise UnsupportedOperationException(f"{block} has no such checksum")
            length = min(block.length_bytes or reader.length_bytes, reader.length_bytes)
            partial = length % checksum.bytes_per_checksum
            step = checksum.bytes_per_checksum * (_SUMS_PIECE_BYTES // SUM_BYTES)
            pieces = [
                reader.read_sums(offset, min(step, length - offset))
                for offset in range(0, length, step)
            ]
            if partial and length < reader.length_bytes:
                # The end asked for lies within a chunk: its checksum is for more than that.
                pieces[-1] = pieces[-1][:-SUM_BYTES] + reader.compute_sum(length - partial, partial)
            digest = _digest(checksum, pieces, partial, composite=composite)
            response = pb.OpBlockChecksumResponseProto(
                bytesPerCrc=checksum.bytes_per_checksum,
                crcPerBlock=checksum.sums_bytes(reader.length_bytes) // SUM_BYTES,
                blockChecksum=digest,
                crcType=encode_checksum(checksum).type,
                blockChecksumOptions=options,
            )
        connection.send(
            encode_message(
                pb.BlockOpResponseProto(status=Status.SUCCESS, checksumResponse=response)
            )
        )

    # Writing.

    def write_block(self, message: pb.OpWriteBlockProto, connection: Connection) -> None:
        """Take part in a pipeline, or take over a copy."""
        block = self._block(message.header.baseHeader)
        is_client = bool(message.header.clientName)
        is_transfer = message.stage in (Stage.TRANSFER_RBW, Stage.TRANSFER_FINALIZED)
        log.debug("write %s, %s", block, Stage.Name(message.stage))

        if is_client and message.stage == Stage.PIPELINE_CLOSE_RECOVERY:
            self._recover_close(message, block, connection)
            return

        with self._writing(connection) as (writer, cleanup):
            replica = self._open_replica(message, block, writer)
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
        )

    def _open_replica(
        self, message: pb.OpWriteBlockProto, block: Block, writer: TransferWriter
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
        address = _address(message.targets[0])
        is_client = bool(message.header.clientName)
        try:
            mirror = self.connect(address, further=len(message.targets))
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
                encode_response(Status.ERROR, _describe(error), first_bad_link=str(address))
            )
            raise

    def connect(self, address: Address, *, further: int = 1) -> Connection:
        """Connect to another DataNode, with `further` of them to wait for."""
        extension_s = TIMEOUT_EXTENSION_S * further
        return Connection.connect(
            address,
            connect_timeout_s=self._settings.socket_timeout_s,
            read_timeout_s=self._settings.socket_timeout_s + extension_s,
            write_timeout_s=self._settings.write_timeout_s + extension_s,
        )

    # Copying.

    def transfer_block(self, message: pb.OpTransferBlockProto, connection: Connection) -> None:
        """Copy our replica to DataNodes that join its pipeline."""
        block = self._block(message.header.baseHeader)
        with self._answering(connection):
            replica = self._replicas.get(block.id)
            if replica.generation_stamp < block.generation_stamp:
                raise IOException(
                    f"{replica.generation_stamp} = storedGS < b.getGenerationStamp(), b={block}"
                )
            if replica.state not in (ReplicaState.RBW, ReplicaState.FINALIZED):
                raise IOException(f"{block} is neither a RBW nor a Finalized, r={replica}")
            stage = (
                Stage.TRANSFER_RBW
                if replica.state is ReplicaState.RBW
                else Stage.TRANSFER_FINALIZED
            )
            self.send_copy(
                block._replace(
                    generation_stamp=replica.generation_stamp, length_bytes=replica.visible_bytes
                ),
                message.targets,
                message.targetStorageTypes,
                message.targetStorageIds,
                stage=stage,
                client_name=message.header.clientName,
            )
        connection.send(encode_response())

    def send_copy(
        self,
        block: Block,
        targets: Sequence[hdfs_pb2.DatanodeInfoProto],
        storage_types: Sequence[hdfs_pb2.StorageTypeProto],
        storage_ids: Sequence[str],
        *,
        stage: Stage = Stage.PIPELINE_SETUP_CREATE,
        client_name: str = "",
    ) -> None:
        """Write our replica to other DataNodes, as if we were its writer."""
        if not targets:
            return
        reader = self._replicas.open_for_read(block)
        with BlockSender(reader, 0, block.length_bytes) as sender, ExitStack() as cleanup:
            request = pb.OpWriteBlockProto(
                targets=targets[1:],
                stage=stage,
                pipelineSize=0,
                minBytesRcvd=0,
                maxBytesRcvd=0,
                latestGenerationStamp=0,
                requestedChecksum=encode_checksum(sender.checksum),
                storageType=storage_types[0] if storage_types else hdfs_pb2.DISK,
                targetStorageTypes=storage_types[1:],
                storageId=storage_ids[0] if storage_ids else None,
                targetStorageIds=storage_ids[1:],
            )
            request.header.clientName = client_name
            request.header.baseHeader.block.CopyFrom(self.extended(block))
            mirror = self.connect(_address(targets[0]), further=len(targets))
            cleanup.callback(mirror.close)
            mirror.send(encode_request(Op.WRITE_BLOCK, request))
            sender.send(mirror)
            if client_name:
                ack = mirror.read_message(pb.DNTransferAckProto)
                if ack.status != Status.SUCCESS:
                    raise IOException(f"Bad connect ack, targets={_address(targets[0])}")

    def replace_block(self, message: pb.OpReplaceBlockProto, connection: Connection) -> None:
        """Take over a replica from another DataNode, which may then drop its own."""
        block = self._block(message.header)
        source = _address(message.source)
        with self._answering(connection), ExitStack() as cleanup:
            if message.source.id.datanodeUuid == self._datanode_uuid:
                raise UnsupportedOperationException(
                    f"moving {block} between storages of one DataNode is not offered"
                )
            proxy = self.connect(source)
            cleanup.callback(proxy.close)
            proxy.send(encode_request(Op.COPY_BLOCK, pb.OpCopyBlockProto(header=message.header)))
            response = proxy.read_message(pb.BlockOpResponseProto)
            if response.status != Status.SUCCESS:
                raise IOException(f"copy block {block} from {source}: {response.message}")
            checksum = decode_checksum(response.readOpChecksumInfo.checksum)
            writer, ending = cleanup.enter_context(self._writing(proxy))
            replica = self._replicas.create_temporary(
                block,
                checksum,
                StorageType(message.storageType),
                message.storageId,
                writer,
                is_transfer=False,
            )
            ending.callback(self._replicas.release, replica, writer)
            receiver = self._receiver(replica, writer, checksum, acknowledges=False)
            receiver.receive()
            receiver.finalize(delete_hint=message.delHint)
            proxy.read_exactly(2)  # the source's thread is free again
        connection.send(encode_response())

    # Blocks, and answers.

    def extended(self, block: Block) -> hdfs_pb2.ExtendedBlockProto:
        return hdfs_pb2.ExtendedBlockProto(
            poolId=self._block_pool_id,
            blockId=block.id,
            generationStamp=block.generation_stamp,
            numBytes=block.length_bytes,
        )

    def _block(self, header: pb.BaseHeaderProto) -> Block:
        block = header.block
        if block.poolId != self._block_pool_id:
            raise ReplicaNotFoundException(
                f"Replica not found for {block.poolId}:blk_{block.blockId}: this DataNode serves"
                f" {self._block_pool_id}"
            )
        return Block(block.blockId, block.generationStamp, block.numBytes)

    def _answering(self, connection: Connection) -> _Answering:
        return _Answering(connection)


class _PipelineRefused(IOException):
    """A DataNode further down cannot; the client was told so."""


class _Answering:
    """What fails in here, before the answer, is answered with ERROR."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def __enter__(self) -> None: ...

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if isinstance(error, OSError | UnsupportedOperationException):
            with suppress(OSError):
                self._connection.send(encode_response(Status.ERROR, _describe(error)))


def _refuse(op: Op, connection: Connection) -> bool:
    """Say that something is not offered; the client does without."""
    text = f"{op.name} is not offered by this DataNode"
    match op:
        case Op.REQUEST_SHORT_CIRCUIT_SHM:
            answer: Message = pb.ShortCircuitShmResponseProto(
                status=Status.ERROR_UNSUPPORTED, error=text
            )
        case Op.RELEASE_SHORT_CIRCUIT_FDS:
            answer = pb.ReleaseShortCircuitAccessResponseProto(
                status=Status.ERROR_UNSUPPORTED, error=text
            )
        case _:
            answer = pb.BlockOpResponseProto(status=Status.ERROR_UNSUPPORTED, message=text)
    connection.send(encode_message(answer))
    return False


def _digest(checksum: Checksum, pieces: list[bytes], partial: int, *, composite: bool) -> bytes:
    if not composite:
        return md5_of_sums(pieces)
    crc = CompositeCrc(checksum)
    for index, piece in enumerate(pieces):
        is_end = index == len(pieces) - 1
        crc.add(piece, partial if is_end and partial else None)
    return crc.digest()


def _for_mirror(message: pb.OpWriteBlockProto) -> pb.OpWriteBlockProto:
    """The same request, as the next DataNode should see it."""
    onward = pb.OpWriteBlockProto()
    onward.CopyFrom(message)
    del onward.targets[0]
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


def _address(target: hdfs_pb2.DatanodeInfoProto) -> Address:
    return Address(target.id.ipAddr, target.id.xferPort)


def _describe(error: BaseException) -> str:
    java_class = getattr(error, "java_class", "java.io.IOException")
    return f"{java_class}: {error}"
