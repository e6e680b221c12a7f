"""Copies of our replicas on other DataNodes: for a pipeline, or as a NameNode commands."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

from cairnfs.datanode.connection import Connection
from cairnfs.datanode.figures import BLOCKS_COPIED, BYTES_COPIED, DataNodeFigures
from cairnfs.datanode.peers import Answering, Pool, address_of, connect
from cairnfs.datanode.replica import Block, ReplicaState
from cairnfs.datanode.replicas import Replicas
from cairnfs.datanode.sender import BlockSender
from cairnfs.datanode.settings import DataNodeSettings
from cairnfs.errors import IOException
from cairnfs.wire.proto import data_transfer_pb2 as pb
from cairnfs.wire.proto import hdfs_pb2
from cairnfs.wire.transfer import (
    Op,
    Stage,
    Status,
    encode_checksum,
    encode_request,
    encode_response,
)


class Copying:
    """Writes our replicas to other DataNodes, as if we were their client."""

    def __init__(
        self,
        pool: Pool,
        replicas: Replicas,
        settings: DataNodeSettings,
        figures: DataNodeFigures,
    ) -> None:
        self._pool = pool
        self._replicas = replicas
        self._settings = settings
        self._figures = figures

    def transfer_block(self, message: pb.OpTransferBlockProto, connection: Connection) -> None:
        """Copy our replica to DataNodes that join its pipeline."""
        block = self._pool.block_of(message.header.baseHeader)
        with Answering(connection):
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
            request.header.baseHeader.block.CopyFrom(self._pool.encode(block))
            mirror = connect(address_of(targets[0]), self._settings, further=len(targets))
            cleanup.callback(mirror.close)
            mirror.send(encode_request(Op.WRITE_BLOCK, request))
            cleanup.callback(lambda: self._figures.add(BYTES_COPIED, sender.sent_bytes))
            sender.send(mirror)
            if client_name:
                ack = mirror.read_message(pb.DNTransferAckProto)
                if ack.status != Status.SUCCESS:
                    raise IOException(f"Bad connect ack, targets={address_of(targets[0])}")
            self._figures.add(BLOCKS_COPIED)
