"""The client's side of block transfer, for tests: writes pipelines, reads ranges."""

from __future__ import annotations

import itertools
import socket
from collections.abc import Sequence

from tests.datanode.namenode import POOL

from cairnfs.datanode.connection import Connection
from cairnfs.datanode.node import DataNode
from cairnfs.datanode.replica import Block
from cairnfs.errors import IOException
from cairnfs.network.address import Address
from cairnfs.wire.checksum import Checksum
from cairnfs.wire.packets import Ack, encode_packet_header
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
)

CLIENT = "DFSClient_test"
CRC32C = Checksum()

_opened: list[Connection] = []


def connect(node: DataNode) -> Connection:
    """A connection that ends with the test at the latest."""
    connection = Connection.connect(
        Address("127.0.0.1", node.port),
        connect_timeout_s=5,
        read_timeout_s=10,
        write_timeout_s=10,
    )
    _opened.append(connection)
    return connection


def close_connections() -> None:
    while _opened:
        _opened.pop().close()


def raw_socket(node: DataNode) -> socket.socket:
    return socket.create_connection(("127.0.0.1", node.port), 10)


def extended(block: Block, pool: str = POOL) -> hdfs_pb2.ExtendedBlockProto:
    return hdfs_pb2.ExtendedBlockProto(
        poolId=pool,
        blockId=block.id,
        generationStamp=block.generation_stamp,
        numBytes=block.length_bytes,
    )


def datanode_info(node: DataNode) -> hdfs_pb2.DatanodeInfoProto:
    return hdfs_pb2.DatanodeInfoProto(
        id=hdfs_pb2.DatanodeIDProto(
            ipAddr="127.0.0.1",
            hostName="localhost",
            datanodeUuid=node.uuid,
            xferPort=node.port,
            infoPort=0,
            ipcPort=node.ipc_port,
        )
    )


class BlockWriter:
    """One block through a pipeline; packets and acknowledgements one by one."""

    def __init__(
        self,
        pipeline: Sequence[DataNode],
        block: Block,
        *,
        stage: Stage = Stage.PIPELINE_SETUP_CREATE,
        new_stamp: int = 0,
        min_bytes: int = 0,
        max_bytes: int = 0,
        checksum: Checksum = CRC32C,
        client: str = CLIENT,
    ) -> None:
        self.block = block
        self.checksum = checksum
        self.offset = min_bytes
        self._seqno = itertools.count()
        self.connection = connect(pipeline[0])
        request = pb.OpWriteBlockProto(
            targets=[datanode_info(node) for node in pipeline[1:]],
            stage=stage,
            pipelineSize=len(pipeline),
            minBytesRcvd=min_bytes,
            maxBytesRcvd=max_bytes,
            latestGenerationStamp=new_stamp,
            requestedChecksum=encode_checksum(checksum),
        )
        request.header.clientName = client
        request.header.baseHeader.block.CopyFrom(extended(block))
        self.connection.send(encode_request(Op.WRITE_BLOCK, request))

    def setup(self) -> BlockWriter:
        """Wait until the pipeline stands."""
        response = self.connection.read_message(pb.BlockOpResponseProto)
        if response.status != Status.SUCCESS:
            raise IOException(f"{response.firstBadLink}: {response.message}")
        return self

    def send(
        self,
        data: bytes,
        *,
        sync: bool = False,
        last: bool = False,
        sums: bytes | None = None,
        offset: int | None = None,
    ) -> int:
        """Send one packet; returns its number."""
        seqno = next(self._seqno)
        at = self.offset if offset is None else offset
        sums = self.checksum.compute(data) if sums is None else sums
        header = pb.PacketHeaderProto(
            offsetInBlock=at,
            seqno=seqno,
            lastPacketInBlock=last,
            dataLen=len(data),
            syncBlock=sync,
        ).SerializeToString()
        prefix = (4 + len(sums) + len(data)).to_bytes(4, "big") + len(header).to_bytes(2, "big")
        self.connection.send(prefix + header + sums + data)
        self.offset = max(self.offset, at + len(data))
        return seqno

    def send_heartbeat(self) -> None:
        self.connection.send(encode_packet_header(0, -1, data_bytes=0, sums_bytes=0))

    def ack(self) -> Ack:
        return self.connection.read_ack()

    def write(self, data: bytes, *, sync: bool = False) -> None:
        """Send one packet and see it acknowledged by all."""
        seqno = self.send(data, sync=sync)
        ack = self.ack()
        assert (ack.seqno, ack.is_success) == (seqno, True), ack

    def close(self, *, sync: bool = False) -> None:
        """End the block, and see it acknowledged."""
        seqno = self.send(b"", last=True, sync=sync)
        ack = self.ack()
        assert (ack.seqno, ack.is_success) == (seqno, True), ack
        self.connection.close()


def write_block(
    pipeline: Sequence[DataNode],
    block: Block,
    data: bytes,
    *,
    packet_bytes: int = 64512,
    checksum: Checksum = CRC32C,
) -> None:
    """Write a whole block."""
    writer = BlockWriter(pipeline, block, checksum=checksum).setup()
    for start in range(0, len(data), packet_bytes):
        writer.write(data[start : start + packet_bytes])
    writer.close()


def read_block(
    node: DataNode, block: Block, offset: int, length: int, *, with_sums: bool = True
) -> bytes:
    """Read a range as a client does: checked, and without what was not asked for."""
    connection = connect(node)
    try:
        request = pb.OpReadBlockProto(offset=offset, len=length, sendChecksums=with_sums)
        request.header.clientName = CLIENT
        request.header.baseHeader.block.CopyFrom(extended(block))
        connection.send(encode_request(Op.READ_BLOCK, request))
        response = connection.read_message(pb.BlockOpResponseProto)
        if response.status != Status.SUCCESS:
            raise IOException(response.message)
        checksum = decode_checksum(response.readOpChecksumInfo.checksum)
        start = response.readOpChecksumInfo.chunkOffset
        received = bytearray()
        is_complete = False
        while not is_complete:
            for packet in connection.read_packets():
                assert packet.offset == start + len(received)
                assert checksum.matches(packet.data, packet.sums), "checksum error"
                received += packet.data
                is_complete = packet.is_last
        connection.send(encode_message(pb.ClientReadStatusProto(status=Status.CHECKSUM_OK)))
        return bytes(received[offset - start : offset - start + length])
    finally:
        connection.close()
