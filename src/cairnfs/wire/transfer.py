"""DataTransferProtocol, version 28: requests and answers.

A connection carries a request (version, op code, message), its answer, then packets in one
direction and acknowledgements in the other (`packets`).  `receive_buffer` takes all of them
from what has arrived.
"""

from __future__ import annotations

import enum
import struct
from typing import NamedTuple, TypeVar, cast

from google.protobuf.message import DecodeError, Message

from cairnfs.errors import IOException
from cairnfs.wire.checksum import Checksum, ChecksumType
from cairnfs.wire.framing import encode_delimited
from cairnfs.wire.proto import data_transfer_pb2 as pb
from cairnfs.wire.proto.hdfs_pb2 import ChecksumTypeProto

VERSION = 28
MESSAGE_BYTES_MAX = 1 << 20
REQUEST_START = struct.Struct(">hB")  # version and op code

_M = TypeVar("_M", bound=Message)
Status = pb.Status
Stage = pb.OpWriteBlockProto.BlockConstructionStage


class TransferError(IOException):
    """What a peer sent is not this protocol."""


class Op(enum.IntEnum):
    """What is asked for; Hadoop's codes."""

    WRITE_BLOCK = 80
    READ_BLOCK = 81
    READ_METADATA = 82
    REPLACE_BLOCK = 83
    COPY_BLOCK = 84
    BLOCK_CHECKSUM = 85
    TRANSFER_BLOCK = 86
    REQUEST_SHORT_CIRCUIT_FDS = 87
    RELEASE_SHORT_CIRCUIT_FDS = 88
    REQUEST_SHORT_CIRCUIT_SHM = 89
    BLOCK_GROUP_CHECKSUM = 90
    CUSTOM = 127


REQUEST_MESSAGES: dict[Op, type[Message]] = {
    Op.WRITE_BLOCK: pb.OpWriteBlockProto,
    Op.READ_BLOCK: pb.OpReadBlockProto,
    Op.REPLACE_BLOCK: pb.OpReplaceBlockProto,
    Op.COPY_BLOCK: pb.OpCopyBlockProto,
    Op.BLOCK_CHECKSUM: pb.OpBlockChecksumProto,
    Op.TRANSFER_BLOCK: pb.OpTransferBlockProto,
    Op.REQUEST_SHORT_CIRCUIT_FDS: pb.OpRequestShortCircuitAccessProto,
    Op.RELEASE_SHORT_CIRCUIT_FDS: pb.ReleaseShortCircuitAccessRequestProto,
    Op.REQUEST_SHORT_CIRCUIT_SHM: pb.ShortCircuitShmRequestProto,
    Op.BLOCK_GROUP_CHECKSUM: pb.OpBlockGroupChecksumProto,
    Op.CUSTOM: pb.OpCustomProto,
}


class Request(NamedTuple):
    """An operation asked for, with its arguments."""

    op: Op
    message: Message


def encode_request(op: Op, message: Message) -> bytes:
    """An operation, ready to be sent."""
    return REQUEST_START.pack(VERSION, op) + encode_message(message)


def encode_message(message: Message) -> bytes:
    """A message with its length before it."""
    return encode_delimited(message.SerializeToString())


def encode_response(
    status: pb.Status = Status.SUCCESS, message: str = "", first_bad_link: str | None = None
) -> bytes:
    """The answer to an operation."""
    response = pb.BlockOpResponseProto(status=status)
    if message:
        response.message = message
    if first_bad_link is not None:
        response.firstBadLink = first_bad_link
    return encode_message(response)


def decode_checksum(message: pb.ChecksumProto) -> Checksum:
    """What kind of checksums a peer means."""
    try:
        return Checksum(ChecksumType(message.type), message.bytesPerChecksum)
    except ValueError as error:
        raise TransferError(str(error)) from error


def encode_checksum(checksum: Checksum) -> pb.ChecksumProto:
    return pb.ChecksumProto(
        type=cast("ChecksumTypeProto", checksum.type.value),
        bytesPerChecksum=checksum.bytes_per_checksum,
    )


def parse_message(message_type: type[_M], body: memoryview) -> _M:
    """A message; TransferError if it is another."""
    message = message_type()
    try:
        message.ParseFromString(bytes(body))
    except DecodeError as error:
        raise TransferError(f"not a {message_type.DESCRIPTOR.name}: {error}") from error
    return message
