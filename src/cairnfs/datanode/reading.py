"""Operations that read a replica: for a client, for another DataNode, for a checksum.

One that fails before its answer is answered with ERROR and the reason; one that fails
later ends the connection, from which the peer draws its conclusions.
"""

from __future__ import annotations

import logging

from cairnfs.datanode.connection import Connection, FileTooShort, is_disconnect
from cairnfs.datanode.figures import BYTES_READ, DataNodeFigures
from cairnfs.datanode.peers import Answering, Pool, describe
from cairnfs.datanode.replica import Block
from cairnfs.datanode.replicas import Replicas
from cairnfs.datanode.reports import Reports
from cairnfs.datanode.sender import BlockSender
from cairnfs.errors import UnsupportedOperationException
from cairnfs.network.throttle import Throttle
from cairnfs.wire.checksum import SUM_BYTES, Checksum, CompositeCrc, md5_of_sums
from cairnfs.wire.proto import data_transfer_pb2 as pb
from cairnfs.wire.proto import hdfs_pb2
from cairnfs.wire.transfer import Status, encode_checksum, encode_message, encode_response

log = logging.getLogger(__name__)

_SUMS_AT_ONCE = 16 << 10


class Reading:
    """Sends what is stored here."""

    def __init__(
        self, pool: Pool, replicas: Replicas, reports: Reports, figures: DataNodeFigures
    ) -> None:
        self._pool = pool
        self._replicas = replicas
        self._reports = reports
        self._figures = figures

    def read_block(self, message: pb.OpReadBlockProto, connection: Connection) -> bool:
        """Send a range; then the client says how it liked it."""
        block = self._pool.block_of(message.header.baseHeader)
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
                    Status.ERROR, f"opReadBlock {block} received exception {describe(error)}"
                )
            )
            raise
        with sender:
            self._send(sender, block, connection)
        connection.read_message(pb.ClientReadStatusProto)
        return True

    def send_whole(self, block: Block, connection: Connection, throttle: Throttle) -> None:
        """Send all of a replica to a DataNode that takes it over."""
        with Answering(connection):
            sender = BlockSender(self._replicas.open_for_read(block))
        with sender:
            self._send(sender, block, connection, throttle)

    def _send(
        self,
        sender: BlockSender,
        block: Block,
        connection: Connection,
        throttle: Throttle | None = None,
    ) -> None:
        info = pb.ReadOpChecksumInfoProto(
            checksum=encode_checksum(sender.checksum), chunkOffset=sender.offset
        )
        connection.send(
            encode_message(pb.BlockOpResponseProto(status=Status.SUCCESS, readOpChecksumInfo=info)),
            more=True,
        )
        try:
            sender.send(connection, throttle)
        except OSError as error:
            if isinstance(error, FileTooShort) or not is_disconnect(error):
                self._suspect(block, error)
            raise
        finally:
            self._figures.add(BYTES_READ, sender.sent_bytes)

    def _suspect(self, block: Block, error: OSError) -> None:
        """Reading a replica has failed: it is bad, or its volume, or it was just deleted."""
        replica = self._replicas.find(block.id)
        if replica is not None and self._replicas.volumes.check(replica.volume):
            log.warning("%s cannot be read: %s", replica, error)
            self._reports.bad(replica.block, replica.volume)

    def block_checksum(self, message: pb.OpBlockChecksumProto, connection: Connection) -> None:
        """The checksum of a block, of which a client makes that of a file."""
        block = self._pool.block_of(message.header)
        options = message.blockChecksumOptions
        composite = options.blockChecksumType == hdfs_pb2.COMPOSITE_CRC
        with Answering(connection), self._replicas.open_for_read(block) as reader:
            checksum = reader.checksum
            if not checksum.sum_bytes or 0 < options.stripeLength < reader.length_bytes:
                raise UnsupportedOperationException(f"{block} has no such checksum")
            length = min(block.length_bytes or reader.length_bytes, reader.length_bytes)
            partial = length % checksum.bytes_per_checksum
            step = checksum.bytes_per_checksum * _SUMS_AT_ONCE
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


def _digest(checksum: Checksum, pieces: list[bytes], partial: int, *, composite: bool) -> bytes:
    if not composite:
        return md5_of_sums(pieces)
    crc = CompositeCrc(checksum)
    for index, piece in enumerate(pieces):
        is_end = index == len(pieces) - 1
        crc.add(piece, partial if is_end and partial else None)
    return crc.digest()
