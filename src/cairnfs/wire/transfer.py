"""DataTransferProtocol, version 28: requests, answers, packets, acknowledgements.

Bytes in, messages out; no socket.  A connection carries a request (version, op code,
message), its answer, then packets in one direction and acknowledgements in the other.
A packet is

    int32   4 + length of checksums + length of data
    int16   length of the header
    header  PacketHeaderProto
    checksums, data

What `ReceiveBuffer` hands out are views of its memory: they last until `space` is
called again.  Nothing that a peer sends makes it hold more than `PACKET_BYTES_MAX`.
"""

from __future__ import annotations

import enum
import functools
import struct
from collections.abc import Iterable
from typing import NamedTuple, TypeVar, cast

from google.protobuf.message import DecodeError, Message

from cairnfs.errors import IOException
from cairnfs.wire.checksum import Checksum, ChecksumType
from cairnfs.wire.framing import ProtocolError, decode_varint, encode_delimited, encode_varint
from cairnfs.wire.proto import data_transfer_pb2 as pb
from cairnfs.wire.proto.hdfs_pb2 import ChecksumTypeProto

VERSION = 28
PACKET_BYTES_MAX = 16 << 20
MESSAGE_BYTES_MAX = 1 << 20
HEARTBEAT_SEQNO = -1
UNKNOWN_SEQNO = -2  # of an acknowledgement that belongs to no packet

_REQUEST = struct.Struct(">hB")
_PACKET = struct.Struct(">ih")
_LENGTH_BYTES = 4  # a packet's length counts itself
# A packet's header is of fixed length so that it can be read without protobuf: tag and
# value of offset, sequence number, whether it is the last, length of data; then sync.
_HEADER = struct.Struct("<BqBqB?Bi")
PACKET_START_BYTES = _PACKET.size + _HEADER.size
_HEADER_TAGS = (0x09, 0x11, 0x18, 0x25)
_SYNC_TAG = 0x28
_SYNC = bytes((_SYNC_TAG, True))
_SEQNO_TAG = b"\x08"  # of an acknowledgement: field 1
_STATUS_MASK = 0xF  # of a flag; the rest is about congestion

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


_REQUEST_MESSAGES: dict[Op, type[Message]] = {
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


class ReceiveBuffer:
    """What was received and not yet taken.

    Whoever owns the connection fills it: `received(socket.recv_into(buffer.space()))`.
    A `take_` method answers None while more is needed.
    """

    def __init__(self, capacity: int = 64 << 10) -> None:
        self._view = memoryview(bytearray(capacity))
        self._start = 0
        self._end = 0
        self._needed = 1  # bytes that the next take cannot do without

    @classmethod
    def grown_from(cls, other: ReceiveBuffer, capacity: int) -> ReceiveBuffer:
        """A larger buffer that begins with what the other one holds."""
        grown = cls(max(capacity, len(other)))
        grown._view[: len(other)] = other._view[other._start : other._end]
        grown._end = len(other)
        return grown

    def __len__(self) -> int:
        return self._end - self._start

    def space(self) -> memoryview:
        """Where to put what comes next: never empty."""
        held = self._end - self._start
        if self._needed > len(self._view) or held == len(self._view):
            grown = memoryview(bytearray(max(self._needed, 2 * held)))
            grown[:held] = self._view[self._start : self._end]
            self._view, self._start, self._end = grown, 0, held
        elif held == 0:
            self._start = self._end = 0
        elif self._start + self._needed > len(self._view) or self._end == len(self._view):
            self._view[:held] = self._view[self._start : self._end]
            self._start, self._end = 0, held
        return self._view[self._end :]

    def received(self, count: int) -> None:
        """So many bytes were put there."""
        self._end += count

    def take_bytes(self, count: int) -> bytes | None:
        """So many bytes, whatever they are."""
        if not self._has(count):
            return None
        taken = bytes(self._view[self._start : self._start + count])
        self._start += count
        self._needed = 1
        return taken

    def take_request(self) -> Request | None:
        """The next operation; TransferError if it is none that is known."""
        if not self._has(_REQUEST.size):
            return None
        version, code = _REQUEST.unpack_from(self._view, self._start)
        if version != VERSION:
            raise TransferError(
                f"Version Mismatch (Expected: {VERSION}, Received: {version & 0xFFFF} )"
            )
        message_type = _REQUEST_MESSAGES.get(code)
        if message_type is None:
            raise TransferError(f"Unknown op {code} in data stream")
        body = self._take_delimited(_REQUEST.size)
        return None if body is None else Request(Op(code), _parse(message_type, body))

    def take_message(self, message_type: type[_M]) -> _M | None:
        """The next message with its length before it."""
        body = self._take_delimited(0)
        return None if body is None else _parse(message_type, body)

    def take_ack(self) -> Ack | None:
        """The next acknowledgement."""
        body = self._take_delimited(0)
        return None if body is None else _decode_ack(bytes(body))

    def take_packet(self) -> Packet | None:
        """The next packet; its parts lie in this buffer."""
        if not self._has(_PACKET.size):
            return None
        start = self._start
        payload, header_bytes = _PACKET.unpack_from(self._view, start)
        total = _PACKET.size - _LENGTH_BYTES + header_bytes + payload
        if payload < _LENGTH_BYTES or header_bytes < 0:
            raise TransferError(
                f"Invalid packet: payload length {payload}, header length {header_bytes}"
            )
        if total > PACKET_BYTES_MAX:
            raise TransferError(f"Incorrect value for packet payload size: {payload}")
        if not self._has(total):
            return None
        view = self._view
        body = start + _PACKET.size + header_bytes
        offset, seqno, is_last, data_bytes, is_sync = _decode_packet_header(
            view[start + _PACKET.size : body]
        )
        end = start + total
        data = end - data_bytes
        if not body <= data <= end or offset < 0:
            raise TransferError(
                f"Invalid packet: data length {data_bytes} at {offset}, payload length {payload}"
            )
        self._start = end
        self._needed = 1
        return Packet(
            offset, seqno, is_last, is_sync, view[body:data], view[data:end], view[start:end]
        )

    def take_packets(self) -> list[Packet]:
        """All packets that are complete."""
        packets = []
        while (packet := self.take_packet()) is not None:
            packets.append(packet)
            if packet.is_last:
                break
        return packets

    def _has(self, count: int) -> bool:
        if self._end - self._start >= count:
            return True
        self._needed = count
        return False

    def _take_delimited(self, skip: int) -> memoryview | None:
        at = self._start + skip
        length = shift = 0
        while True:
            if not self._has(at - self._start + 1):
                return None
            byte = self._view[at]
            at += 1
            length |= (byte & 0x7F) << shift
            if byte < 0x80:
                break
            shift += 7
            if shift > 28:
                raise TransferError("a message's length has too many digits")
        if length > MESSAGE_BYTES_MAX:
            raise TransferError(f"a message of {length} bytes is too long")
        if not self._has(at - self._start + length):
            return None
        self._start = at + length
        self._needed = 1
        return self._view[at : at + length]


def encode_request(op: Op, message: Message) -> bytes:
    """An operation, ready to be sent."""
    return _REQUEST.pack(VERSION, op) + encode_message(message)


def encode_message(message: Message) -> bytes:
    """A message with its length before it."""
    return encode_delimited(message.SerializeToString())


class PacketStart(NamedTuple):
    """What a packet begins with, for whoever wants the rest elsewhere than in a buffer."""

    offset: int
    is_last: bool
    data_bytes: int
    sums_bytes: int
    header_bytes: int  # of the header that follow its beginning


def decode_packet_start(start: memoryview) -> PacketStart:
    """The first `PACKET_START_BYTES` of a packet."""
    payload, header_bytes = _PACKET.unpack_from(start)
    tag1, offset, tag2, _, tag3, is_last, tag4, data_bytes = _HEADER.unpack_from(
        start, _PACKET.size
    )
    sums_bytes = payload - _LENGTH_BYTES - data_bytes
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
    return _PACKET.pack(_LENGTH_BYTES + sums_bytes + data_bytes, len(header)) + header


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


def _decode_packet_header(header: memoryview) -> tuple[int, int, bool, int, bool]:
    """Offset, sequence number, whether it is the last, length of data, whether to sync."""
    length = len(header)
    if length in (_HEADER.size, _HEADER.size + 2):
        tag1, offset, tag2, seqno, tag3, is_last, tag4, data_bytes = _HEADER.unpack_from(header)
        if (tag1, tag2, tag3, tag4) == _HEADER_TAGS:
            if length == _HEADER.size:
                return offset, seqno, is_last, data_bytes, False
            if header[-2] == _SYNC_TAG:
                return offset, seqno, is_last, data_bytes, bool(header[-1])
    message = _parse(pb.PacketHeaderProto, header)
    return (
        message.offsetInBlock,
        message.seqno,
        message.lastPacketInBlock,
        message.dataLen,
        message.syncBlock,
    )


def _decode_ack(body: bytes) -> Ack:
    """Most acknowledgements differ from the one before in nothing but their number."""
    if body[:1] == _SEQNO_TAG and len(body) > 2:
        try:
            zigzag, at = decode_varint(body, 1)
        except ProtocolError as error:
            raise TransferError(f"not a PipelineAckProto: {error}") from error
        return Ack((zigzag >> 1) ^ -(zigzag & 1), _decode_statuses(body[at:]))
    message = _parse(pb.PipelineAckProto, memoryview(body))
    return Ack(message.seqno, _decode_statuses(body))


@functools.lru_cache(maxsize=256)
def _decode_statuses(rest: bytes) -> tuple[pb.Status, ...]:
    """The statuses of an acknowledgement, given from after its sequence number."""
    message = _parse(pb.PipelineAckProto, memoryview(_SEQNO_TAG + b"\0" + rest))
    if not message.flag:
        return tuple(message.reply)
    return cast("tuple[pb.Status, ...]", tuple(flag & _STATUS_MASK for flag in message.flag))


def _parse(message_type: type[_M], body: memoryview) -> _M:
    message = message_type()
    try:
        message.ParseFromString(bytes(body))
    except DecodeError as error:
        raise TransferError(f"not a {message_type.DESCRIPTOR.name}: {error}") from error
    return message
