"""The bytes of block transfer: what goes out comes in, whole or byte by byte."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cairnfs.wire.checksum import Checksum, ChecksumType
from cairnfs.wire.packets import (
    HEARTBEAT_SEQNO,
    PACKET_BYTES_MAX,
    PACKET_START_BYTES,
    Packet,
    decode_packet_start,
    encode_ack,
    encode_packet_header,
)
from cairnfs.wire.proto import data_transfer_pb2 as pb
from cairnfs.wire.receive_buffer import ReceiveBuffer
from cairnfs.wire.transfer import (
    MESSAGE_BYTES_MAX,
    Op,
    Status,
    TransferError,
    decode_checksum,
    encode_checksum,
    encode_message,
    encode_request,
    encode_response,
)

# Captured: packets of Hadoop's client 3.5.0, answers of Hadoop's DataNode 3.3.6.
TEXT = b"hello, captured world"
PACKET = bytes.fromhex(
    "0000001d001909000000000000000011000000000000000018002515000000de942803"
    "68656c6c6f2c20636170747572656420776f726c64"
)
LAST_PACKET = bytes.fromhex("00000004001909150000000000000011010000000000000018012500000000")
ACK_OF_TWO = bytes.fromhex("0f08021000100018" "9ac68d05" "22020000")  # fmt: skip
PIPELINE_STANDS = bytes.fromhex("0408001200")


def fill(buffer: ReceiveBuffer, data: bytes) -> None:
    view = memoryview(data)
    while view:
        space = buffer.space()
        count = min(len(space), len(view))
        space[:count] = view[:count]
        buffer.received(count)
        view = view[count:]


def make_packet(data: bytes, seqno: int = 0, *, offset: int = 0, is_last: bool = False) -> bytes:
    sums = Checksum().compute(data)
    header = encode_packet_header(
        offset, seqno, data_bytes=len(data), sums_bytes=len(sums), is_last=is_last
    )
    return header + sums + data


def copy(packet: Packet) -> tuple[int, int, bool, bool, bytes, bytes, bytes]:
    return (*packet[:4], bytes(packet.sums), bytes(packet.data), bytes(packet.raw))


def test_packets_of_hadoop() -> None:
    buffer = ReceiveBuffer()
    fill(buffer, PACKET + LAST_PACKET)
    first, last = buffer.take_packets()
    assert copy(first) == (0, 0, False, False, Checksum().compute(TEXT), TEXT, PACKET)
    assert copy(last) == (len(TEXT), 1, True, False, b"", b"", LAST_PACKET)
    assert make_packet(TEXT) == PACKET
    assert make_packet(b"", 1, offset=len(TEXT), is_last=True) == LAST_PACKET


def test_an_acknowledgement_of_hadoop() -> None:
    buffer = ReceiveBuffer()
    fill(buffer, ACK_OF_TWO)
    assert buffer.take_ack() == (1, (Status.SUCCESS, Status.SUCCESS))


@settings(deadline=None)
@given(seqno=st.integers(-2, 1 << 40), statuses=st.lists(st.integers(0, 13), max_size=5))
def test_acknowledgements_come_back(seqno: int, statuses: list[int]) -> None:
    buffer = ReceiveBuffer()
    fill(buffer, encode_ack(seqno, statuses))  # type: ignore[arg-type]
    assert buffer.take_ack() == (seqno, tuple(statuses))


def test_an_answer_of_hadoop() -> None:
    assert encode_response(first_bad_link="") == PIPELINE_STANDS


def test_congestion_is_tolerated() -> None:
    message = pb.PipelineAckProto(
        seqno=HEARTBEAT_SEQNO,
        reply=[Status.SUCCESS, Status.ERROR],
        flag=[3 << 5 | Status.SUCCESS, 1 << 5 | Status.ERROR],
    )
    buffer = ReceiveBuffer()
    fill(buffer, encode_message(message))
    assert buffer.take_ack() == (HEARTBEAT_SEQNO, (Status.SUCCESS, Status.ERROR))


def test_a_restart_is_announced_out_of_band() -> None:
    buffer = ReceiveBuffer()
    fill(buffer, encode_ack(-2, (Status.SUCCESS, Status.OOB_RESTART)))
    ack = buffer.take_ack()
    assert ack is not None
    assert ack.is_out_of_band
    assert not ack.is_success


@pytest.mark.parametrize("capacity", [1, 7, 100, 65536])
def test_byte_by_byte(capacity: int) -> None:
    """Whatever arrives in whatever pieces, nothing comes out too early or changed."""
    request = pb.OpCopyBlockProto()
    request.header.block.poolId = "BP"
    request.header.block.blockId = 1
    request.header.block.generationStamp = 2
    stream = [
        encode_request(Op.COPY_BLOCK, request),
        make_packet(b"x" * 700),
        make_packet(b"", 1, offset=700, is_last=True),
        encode_ack(0, [Status.SUCCESS]),
        encode_response(Status.ERROR, "no", first_bad_link="1.2.3.4:5"),
    ]
    buffer = ReceiveBuffer(capacity)
    takes = [
        buffer.take_request,
        buffer.take_packet,
        buffer.take_packet,
        buffer.take_ack,
        lambda: buffer.take_message(pb.BlockOpResponseProto),
    ]
    for data, take in zip(stream, takes, strict=True):
        for index in range(len(data) - 1):
            fill(buffer, data[index : index + 1])
            assert take() is None
        fill(buffer, data[-1:])
        assert take() is not None
    assert len(buffer) == 0


@settings(deadline=None)
@given(
    lengths=st.lists(st.integers(0, 3000), min_size=1, max_size=12),
    cuts=st.lists(st.integers(1, 5000), min_size=1, max_size=20),
    capacity=st.integers(1, 4000),
)
def test_packets_in_any_pieces(lengths: list[int], cuts: list[int], capacity: int) -> None:
    packets = [make_packet(bytes([n % 256]) * n, seqno) for seqno, n in enumerate(lengths)]
    stream = b"".join(packets)
    buffer, at, taken, turn = ReceiveBuffer(capacity), 0, [], 0
    while at < len(stream):
        count = cuts[turn % len(cuts)]
        turn += 1
        space = buffer.space()
        piece = stream[at : at + min(count, len(space))]
        space[: len(piece)] = piece
        buffer.received(len(piece))
        at += len(piece)
        taken += [bytes(packet.raw) for packet in buffer.take_packets()]
    assert taken == packets


def test_packets_after_the_last_are_left() -> None:
    buffer = ReceiveBuffer()
    fill(buffer, make_packet(b"", is_last=True) + make_packet(b"next"))
    assert len(buffer.take_packets()) == 1
    assert len(buffer.take_packets()) == 1


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("001b50", "Version Mismatch .Expected: 28, Received: 27 ."),
        ("001c00", "Unknown op 0"),
        ("001c52", "Unknown op 82"),
        ("001c50ffffffff0f", "too long"),
        ("001c50ffffffffff", "too many digits"),
        ("001c5003010203", "not a OpWriteBlockProto"),
        ("474554202f", "Version Mismatch"),
    ],
)
def test_requests_that_are_none(data: str, text: str) -> None:
    buffer = ReceiveBuffer()
    fill(buffer, bytes.fromhex(data))
    with pytest.raises(TransferError, match=text):
        buffer.take_request()


@pytest.mark.parametrize(
    "data",
    [
        "000000030019",  # shorter than its own length
        "ffffffff0019",
        "00000004ffff",
        f"{PACKET_BYTES_MAX:08x}0019",
        "7fffffff7fff",
        "0000000400020901",  # no header
        "00000008" "0019" "090002000000000000110500000000000000180025ff00000061626364",
        "00000008" "0019" "09ffffffffffffffff110500000000000000180025040000006162636400",
    ],
)  # fmt: skip
def test_packets_that_are_none(data: str) -> None:
    buffer = ReceiveBuffer()
    fill(buffer, bytes.fromhex(data))
    with pytest.raises(TransferError):
        buffer.take_packet()


@settings(deadline=None)
@given(data=st.binary(max_size=200))
def test_garbage_is_an_error_or_the_beginning_of_something(data: bytes) -> None:
    for take in ("take_request", "take_packet", "take_ack"):
        buffer = ReceiveBuffer(16)
        fill(buffer, data)
        try:
            while getattr(buffer, take)() is not None:
                pass
        except TransferError:
            continue
        assert len(buffer.space()) <= PACKET_BYTES_MAX + MESSAGE_BYTES_MAX


def test_checksums_on_the_wire() -> None:
    checksum = Checksum(ChecksumType.CRC32, 1024)
    assert decode_checksum(encode_checksum(checksum)) == checksum
    with pytest.raises(TransferError):
        decode_checksum(pb.ChecksumProto(type=2, bytesPerChecksum=0))


@given(
    st.integers(0, 2**62),
    st.integers(-2, 2**62),
    st.integers(0, 16 << 20),
    st.booleans(),
    st.booleans(),
)
def test_packet_headers_are_those_of_protobuf(
    offset: int, seqno: int, data_bytes: int, is_last: bool, is_sync: bool
) -> None:
    header = encode_packet_header(
        offset, seqno, data_bytes=data_bytes, sums_bytes=8, is_last=is_last, is_sync=is_sync
    )
    message = pb.PacketHeaderProto(
        offsetInBlock=offset, seqno=seqno, lastPacketInBlock=is_last, dataLen=data_bytes
    )
    if is_sync:
        message.syncBlock = True
    assert header[6:] == message.SerializeToString()
    start = decode_packet_start(memoryview(header))
    assert start == (offset, is_last, data_bytes, 8, 2 if is_sync else 0)
    assert PACKET_START_BYTES + start.header_bytes == len(header)


@pytest.mark.parametrize(
    "change",
    [
        (0, b"\x7f"),  # longer than allowed
        (0, b"\xff"),
        (0, b"\0\0\0\x03"),  # shorter than its own length
        (0, b"\0\0\0\x10"),  # no room for the data
        (4, b"\0\x10"),  # a header of another length
        (6, b"\x08"),  # other fields
        (27, b"\xff\xff\xff\xff"),  # less than no data
    ],
)
def test_starts_of_packets_that_are_none(change: tuple[int, bytes]) -> None:
    at, changed = change
    start = bytearray(PACKET[:PACKET_START_BYTES])
    start[at : at + len(changed)] = changed
    with pytest.raises(TransferError):
        decode_packet_start(memoryview(start))
