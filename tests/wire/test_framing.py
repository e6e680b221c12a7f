"""Frames and delimited messages, whole, cut anywhere, too long and without end."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cairnfs.wire.framing import (
    FRAME_LENGTH_MAX,
    FrameBuffer,
    ProtocolError,
    decode_delimited,
    decode_varint,
    encode_delimited,
    encode_frame,
    encode_varint,
)


def test_a_whole_frame_in_one_chunk() -> None:
    assert list(FrameBuffer().receive(b"\0\0\0\x03abc")) == [b"abc"]


def test_an_empty_frame() -> None:
    assert list(FrameBuffer().receive(bytes(4))) == [b""]


@given(st.lists(st.binary(max_size=20), max_size=6), st.data())
def test_frames_come_out_however_they_are_cut(frames: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(map(encode_frame, frames))
    cuts = data.draw(st.lists(st.integers(0, len(stream)), max_size=5).map(sorted))
    buffer = FrameBuffer()
    received = [
        frame
        for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True)
        for frame in buffer.receive(stream[start:end])
    ]
    assert received == frames


def test_frames_come_out_byte_by_byte() -> None:
    frames = [b"", b"abc", bytes(300)]
    buffer = FrameBuffer()
    stream = b"".join(map(encode_frame, frames))
    assert [f for i in range(len(stream)) for f in buffer.receive(stream[i : i + 1])] == frames


@pytest.mark.parametrize("length", [FRAME_LENGTH_MAX + 1, 1 << 31, (1 << 32) - 1])
def test_a_length_out_of_bounds(length: int) -> None:
    with pytest.raises(ProtocolError, match=str(length)):
        list(FrameBuffer().receive(length.to_bytes(4, "big")))


def test_the_longest_frame_and_one_longer() -> None:
    assert list(FrameBuffer(length_max=3).receive(encode_frame(b"abc"))) == [b"abc"]
    with pytest.raises(ProtocolError):
        list(FrameBuffer(length_max=3).receive(encode_frame(b"abcd")))


def test_frames_before_one_that_is_too_long_are_not_lost() -> None:
    frames = iter(FrameBuffer().receive(encode_frame(b"good") + b"\xff\xff\xff\xff"))
    assert next(frames) == b"good"
    with pytest.raises(ProtocolError):
        next(frames)


def test_a_promise_of_much_takes_no_memory() -> None:
    tracemalloc.start()
    try:
        assert not list(FrameBuffer().receive(FRAME_LENGTH_MAX.to_bytes(4, "big") + b"little"))
        assert tracemalloc.get_traced_memory()[1] < 10_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("value", "encoded"),
    [
        (0, "00"),
        (127, "7f"),
        (128, "8001"),
        (16_383, "ff7f"),
        (16_384, "808001"),
        ((1 << 32) - 1, "ffffffff0f"),
        ((1 << 64) - 1, "ffffffffffffffffff01"),
    ],
)
def test_varint(value: int, encoded: str) -> None:
    data = bytes.fromhex(encoded)
    assert encode_varint(value) == data
    assert decode_varint(data) == (value, len(data))
    assert decode_varint(b"-" + data + b"-", 1) == (value, 1 + len(data))


@pytest.mark.parametrize("data", [b"", b"\x80", b"\xff" * 9, b"\xff" * 10, b"\xff" * 1000])
def test_a_varint_that_does_not_end(data: bytes) -> None:
    with pytest.raises(ProtocolError):
        decode_varint(data)


@given(st.binary(max_size=300), st.binary(max_size=5))
def test_delimited(message: bytes, after: bytes) -> None:
    encoded = encode_delimited(message)
    assert decode_delimited(b"-" + encoded + after, 1) == (message, 1 + len(encoded))


@given(st.binary(min_size=1, max_size=300), st.data())
def test_a_delimited_message_that_is_cut(message: bytes, data: st.DataObject) -> None:
    encoded = encode_delimited(message)
    with pytest.raises(ProtocolError):
        decode_delimited(encoded[: data.draw(st.integers(0, len(encoded) - 1))])
