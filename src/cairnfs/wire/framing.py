"""Where a message ends: frames of a stream, and delimited messages within a frame.

RPC puts four bytes of length before each frame; a message of protobuf that is not alone
follows a varint with its length, as in Java's `writeDelimitedTo`. Invariant: what is kept
from one chunk to the next is less than one frame, and its length was checked before any of
it was kept.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import Final

FRAME_LENGTH_MAX: Final = 128 << 20  # ipc.maximum.data.length

_LENGTH: Final = struct.Struct(">I")
encode_length = _LENGTH.pack  # the beginning of a frame

_VARINT_BITS_MAX: Final = 70  # ten bytes
_LAST_BYTES: Final = [bytes((value,)) for value in range(0x80)]
_FURTHER_BYTES: Final = [bytes((value | 0x80,)) for value in range(0x80)]


class ProtocolError(Exception):
    """The peer sent what no speaker of the protocol would."""


class FrameBuffer:
    """Cuts a stream into frames."""

    def __init__(self, length_max: int = FRAME_LENGTH_MAX) -> None:
        self._length_max = length_max
        self._pending = bytearray()  # the beginning of a frame
        self._needed = 0  # how long `_pending` must become before a look is worth while

    def receive(self, data: bytes) -> Iterable[bytes]:
        """The frames that are complete with `data`, without their lengths.

        Iterating raises ProtocolError where a frame is too long; nothing can follow it.
        """
        if not self._pending and len(data) >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(data)
            if length == len(data) - _LENGTH.size <= self._length_max:
                return (data[_LENGTH.size :],)
        return self._split(data)

    def _split(self, data: bytes) -> Iterator[bytes]:
        if self._pending:
            self._pending += data
            if len(self._pending) < self._needed:
                return
            data = bytes(self._pending)
            self._pending.clear()

        at, needed = 0, _LENGTH.size
        while len(data) - at >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(data, at)
            if length > self._length_max:  # Java sees the longest as negative
                raise ProtocolError(f"a frame of {length} bytes; {self._length_max} are allowed")
            end = at + _LENGTH.size + length
            if end > len(data):
                needed = end - at
                break
            yield data[at + _LENGTH.size : end]
            at = end
        if at < len(data):
            self._pending += data[at:]
            self._needed = needed


def encode_frame(*parts: bytes) -> bytes:
    """A frame made of parts that follow each other."""
    return b"".join((encode_length(sum(map(len, parts))), *parts))


def encode_delimited(message: bytes) -> bytes:
    """A message after its length."""
    return encode_varint(len(message)) + message


def decode_delimited(data: bytes, at: int = 0) -> tuple[bytes, int]:
    """The message whose length is at `at`, and where it ends."""
    if at < len(data) and data[at] < 0x80:
        length, start = data[at], at + 1
    else:
        length, start = decode_varint(data, at)
    end = start + length
    if end > len(data):
        raise ProtocolError(f"a message of {length} bytes where {len(data) - start} are left")
    return data[start:end], end


def encode_varint(value: int) -> bytes:
    """A number of 0 or more, seven bits to a byte, the lowest first."""
    if value < 0x80:
        return _LAST_BYTES[value]
    if value < 0x4000:
        return _FURTHER_BYTES[value & 0x7F] + _LAST_BYTES[value >> 7]
    encoded = _FURTHER_BYTES[value & 0x7F]
    value >>= 7
    while value >= 0x80:
        encoded += _FURTHER_BYTES[value & 0x7F]
        value >>= 7
    return encoded + _LAST_BYTES[value]


def decode_varint(data: bytes, at: int = 0) -> tuple[int, int]:
    """The number at `at`, and where it ends."""
    value = shift = 0
    try:
        while shift < _VARINT_BITS_MAX:
            byte = data[at]
            at += 1
            if byte < 0x80:
                return value | byte << shift, at
            value |= (byte & 0x7F) << shift
            shift += 7
    except IndexError:
        pass
    raise ProtocolError("a varint that does not end")
