"""Other DataNodes, and what all operations on blocks share."""

from __future__ import annotations

from contextlib import suppress

from cairnfs.datanode.connection import Connection
from cairnfs.datanode.errors import ReplicaNotFoundException
from cairnfs.datanode.replica import Block
from cairnfs.datanode.settings import DataNodeSettings
from cairnfs.errors import UnsupportedOperationException
from cairnfs.network.address import Address
from cairnfs.wire.proto import data_transfer_pb2 as pb
from cairnfs.wire.proto import hdfs_pb2
from cairnfs.wire.transfer import Status, encode_response

TIMEOUT_EXTENSION_S = 5.0  # for each DataNode further down


class Pool:
    """The block pool that is served: names blocks as the wire does."""

    def __init__(self, id: str) -> None:
        self.id = id

    def encode(self, block: Block) -> hdfs_pb2.ExtendedBlockProto:
        return hdfs_pb2.ExtendedBlockProto(
            poolId=self.id,
            blockId=block.id,
            generationStamp=block.generation_stamp,
            numBytes=block.length_bytes,
        )

    def decode(self, block: hdfs_pb2.ExtendedBlockProto) -> Block:
        """The block meant; of another pool there are none here."""
        if block.poolId != self.id:
            raise ReplicaNotFoundException(
                f"Replica not found for {block.poolId}:blk_{block.blockId}: this DataNode serves"
                f" {self.id}"
            )
        return Block(block.blockId, block.generationStamp, block.numBytes)

    def block_of(self, header: pb.BaseHeaderProto) -> Block:
        return self.decode(header.block)


class Answering:
    """What fails in here, before the answer, is answered with ERROR."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def __enter__(self) -> None: ...

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if isinstance(error, OSError | UnsupportedOperationException):
            with suppress(OSError):
                self._connection.send(encode_response(Status.ERROR, describe(error)))


def connect(address: Address, settings: DataNodeSettings, *, further: int = 1) -> Connection:
    """Connect to another DataNode, with `further` of them to wait for."""
    extension_s = TIMEOUT_EXTENSION_S * further
    return Connection.connect(
        address,
        connect_timeout_s=settings.socket_timeout_s,
        read_timeout_s=settings.socket_timeout_s + extension_s,
        write_timeout_s=settings.write_timeout_s + extension_s,
    )


def address_of(target: hdfs_pb2.DatanodeInfoProto) -> Address:
    """Where a DataNode takes block transfers."""
    return Address(target.id.ipAddr, target.id.xferPort)


def describe(error: BaseException) -> str:
    """An error as a peer should see it."""
    java_class = getattr(error, "java_class", "java.io.IOException")
    return f"{java_class}: {error}"
