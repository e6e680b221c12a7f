"""The packets that a block is sent in, and their acknowledgements.

A packet is

    int32   4 + length of checksums + length of data
    int16   length of the header
    header  PacketHeaderProto
    checksums, data
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Iterable
from typing import NamedTuple, cast

from cairnfs.wire.framing import ProtocolError, decode_varint, encode_delimited, encode_varint
from cairnfs.wire.proto import data_transfer_pb2 as pb
from cairnfs.wire.transfer import Status, TransferError, parse_message

PACKET_BYTES_MAX = 16 << 20
HEARTBEAT_SEQNO = -1
UNKNOWN_SEQNO = -2  # of an acknowledgement that belongs to no packet

LENGTHS = struct.Struct(">ih")  # of the payload and of the header
LENGTH_BYTES = 4  # a packet's length counts itself
# A packet's header is of fixed length so that it can be read without protobuf: tag and
# value of offset, sequence number, whether it is the last, length of data; then sync.
_HEADER = struct.Struct("<BqBqB?Bi")
PACKET_START_BYTES = LENGTHS.size + _HEADER.size
_HEADER_TAGS = (0x09, 0x11, 0x18, 0x25)
_SYNC_TAG = 0x28
_SYNC = bytes((_SYNC_TAG, True))
_SEQNO_TAG = b"\x08"  # of an acknowledgement: field 1
_STATUS_MASK = 0xF  # of a flag; the rest is about congestion


class Packet(NamedTuple):
    """A piece of a block; `raw` is all of it, to be passed on as it came."""

    offset: int
    seqno: int
    is_last: bool
    is_sync: bool
    sums: memoryview
    data: memoryview
    raw: memoryview

    @property
    def end(self) -> int:
        return self.offset + len(self.data)


def encode_packet_header(
    offset: int,
    seqno: int,
    *,
    data_bytes: int,
    sums_bytes: int,
    is_last: bool = False,
    is_sync: bool = False,
) -> bytes:
    """What comes before a packet's checksums and data."""
    offset_tag, seqno_tag, last_tag, length_tag = _HEADER_TAGS
    header = _HEADER.pack(
        offset_tag, offset, seqno_tag, seqno, last_tag, is_last, length_tag, data_bytes
    )
    if is_sync:
        header += _SYNC
    return LENGTHS.pack(LENGTH_BYTES + sums_bytes + data_bytes, len(header)) + header


def decode_packet_header(header: memoryview) -> tuple[int, int, bool, int, bool]:
    """Offset, sequence number, whether it is the last, length of data, whether to sync."""
    length = len(header)
    if length in (_HEADER.size, _HEADER.size + 2):
        tag1, offset, tag2, seqno, tag3, is_last, tag4, data_bytes = _HEADER.unpack_from(header)
        if (tag1, tag2, tag3, tag4) == _HEADER_TAGS:
            if length == _HEADER.size:
                return offset, seqno, is_last, data_bytes, False
            if header[-2] == _SYNC_TAG:
                return offset, seqno, is_last, data_bytes, bool(header[-1])
    message = parse_message(pb.PacketHeaderProto, header)
    return (
        message.offsetInBlock,
        message.seqno,
        message.lastPacketInBlock,
        message.dataLen,
        message.syncBlock,
    )


class PacketStart(NamedTuple):
    """What a packet begins with, for whoever wants the rest elsewhere than in a buffer."""

    offset: int
    is_last: bool
    data_bytes: int
    sums_bytes: int
    header_bytes: int  # of the header that follow its beginning


def decode_packet_start(start: memoryview) -> PacketStart:
    """The first `PACKET_START_BYTES` of a packet."""
    payload, header_bytes = LENGTHS.unpack_from(start)
    tag1, offset, tag2, _, tag3, is_last, tag4, data_bytes = _HEADER.unpack_from(
        start, LENGTHS.size
    )
    sums_bytes = payload - LENGTH_BYTES - data_bytes
    if (
        (tag1, tag2, tag3, tag4) != _HEADER_TAGS
        or header_bytes < _HEADER.size
        or data_bytes < 0
        or not 0 <= sums_bytes <= PACKET_BYTES_MAX
        or data_bytes > PACKET_BYTES_MAX
    ):
        raise TransferError(
            f"Invalid packet: payload length {payload}, header length {header_bytes}"
        )
    return PacketStart(offset, is_last, data_bytes, sums_bytes, header_bytes - _HEADER.size)


# Acknowledgements


class Ack(NamedTuple):
    """What became of a packet, at each DataNode from here on."""

    seqno: int
    statuses: tuple[pb.Status, ...]

    @property
    def is_success(self) -> bool:
        return not any(self.statuses)

    @property
    def is_out_of_band(self) -> bool:
        """Whether a DataNode announces something beside the packets, such as its restart."""
        return any(Status.OOB_RESTART <= each <= Status.OOB_RESERVED3 for each in self.statuses)


def encode_ack(seqno: int, statuses: Iterable[pb.Status]) -> bytes:
    """An acknowledgement; ours first, then those from downstream."""
    zigzag = seqno << 1 if seqno >= 0 else -seqno * 2 - 1
    return encode_delimited(_SEQNO_TAG + encode_varint(zigzag) + _encode_statuses(tuple(statuses)))


@functools.lru_cache(maxsize=256)
def _encode_statuses(statuses: tuple[pb.Status, ...]) -> bytes:
    """An acknowledgement from after its sequence number."""
    encoded = pb.PipelineAckProto(seqno=0, reply=statuses, flag=statuses).SerializeToString()
    assert encoded.startswith(_SEQNO_TAG + b"\0"), encoded
    return encoded[2:]


def decode_ack(body: bytes) -> Ack:
    """Most acknowledgements differ from the one before in nothing but their number."""
    if body[:1] == _SEQNO_TAG and len(body) > 2:
        try:
            zigzag, at = decode_varint(body, 1)
        except ProtocolError as error:
            raise TransferError(f"not a PipelineAckProto: {error}") from error
        return Ack((zigzag >> 1) ^ -(zigzag & 1), _decode_statuses(body[at:]))
    message = parse_message(pb.PipelineAckProto, memoryview(body))
    return Ack(message.seqno, _decode_statuses(body))


@functools.lru_cache(maxsize=256)
def _decode_statuses(rest: bytes) -> tuple[pb.Status, ...]:
    """The statuses of an acknowledgement, given from after its sequence number."""
    message = parse_message(pb.PipelineAckProto, memoryview(_SEQNO_TAG + b"\0" + rest))
    if not message.flag:
        return tuple(message.reply)
    return cast("tuple[pb.Status, ...]", tuple(flag & _STATUS_MASK for flag in message.flag))
