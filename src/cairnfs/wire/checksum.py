"""CRC32C and CRC32 over chunks, the way HDFS checksums a block.

Data is cut into chunks of `bytes_per_checksum`, the last perhaps shorter; the sums
of the chunks, four bytes each, big-endian, travel and are stored beside it.

The cost in Python is the call, not the arithmetic, so that checking a packet must not
take a call per chunk.  A CRC is linear: the sum of a whole packet follows from the sums
of its chunks.  `Checksum.matches` computes the former in one call, folds the latter in
another, and compares; only a packet that fails is gone through chunk by chunk.
"""

from __future__ import annotations

import enum
import functools
import hashlib
import struct
import threading
from array import array
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from fastcrc import crc32 as _crc

Buffer: TypeAlias = bytes | bytearray | memoryview

SUM_BYTES = 4
META_VERSION = 1
META_HEADER_BYTES = 7
BYTES_PER_CHECKSUM_MAX = 16 << 20

_META_HEADER = struct.Struct(">hbi")  # version, type, bytes per checksum
_SUM = struct.Struct(">I")
_ONES = 0xFFFFFFFF
_WINDOW_BYTES = 128 << 10  # how much is folded at once
_CHUNK_FOLDED_MAX = 4096  # with longer chunks, a call for each costs little


class ChecksumType(enum.IntEnum):
    """Hadoop's numbers, on the wire and in meta files."""

    NULL = 0
    CRC32 = 1
    CRC32C = 2


_FUNCTIONS: dict[ChecksumType, Callable[..., int]] = {
    ChecksumType.CRC32: _crc.iso_hdlc,
    ChecksumType.CRC32C: _crc.iscsi,
}


@dataclass(frozen=True, slots=True)
class Checksum:
    """How data is checksummed: by which function, in chunks of which size."""

    type: ChecksumType = ChecksumType.CRC32C
    bytes_per_checksum: int = 512

    def __post_init__(self) -> None:
        if not 0 < self.bytes_per_checksum <= BYTES_PER_CHECKSUM_MAX:
            raise ValueError(f"chunks of {self.bytes_per_checksum} bytes cannot be checksummed")

    @property
    def sum_bytes(self) -> int:
        """The size of one sum."""
        return 0 if self.type is ChecksumType.NULL else SUM_BYTES

    def sums_bytes(self, data_bytes: int) -> int:
        """The size of the sums of so much data."""
        return -(-data_bytes // self.bytes_per_checksum) * self.sum_bytes

    def compute(self, data: Buffer) -> bytes:
        """The sums of all chunks."""
        if self.type is ChecksumType.NULL:
            return b""
        size = self.bytes_per_checksum
        view = memoryview(data)
        return self.compute_each([view[at : at + size] for at in range(0, len(view), size)])

    def compute_each(self, chunks: Sequence[Buffer]) -> bytes:
        """The same, of chunks that were cut before."""
        if self.type is ChecksumType.NULL:
            return b""
        return struct.pack(f">{len(chunks)}I", *map(_FUNCTIONS[self.type], chunks))

    def extend(self, chunk_sum: bytes, more: Buffer) -> bytes:
        """The sum of a chunk that has grown."""
        if self.type is ChecksumType.NULL:
            return b""
        (value,) = _SUM.unpack(chunk_sum)
        return _SUM.pack(_FUNCTIONS[self.type](memoryview(more), value))

    def matches(self, data: Buffer, sums: Buffer) -> bool:
        """Whether these are the sums of this data."""
        if len(sums) != self.sums_bytes(len(data)):
            return False
        if self.type is ChecksumType.NULL:
            return True
        size = self.bytes_per_checksum
        whole = len(data) // size
        if whole < 2 or not _can_fold(size):
            return self.compute(data) == sums
        data, sums = memoryview(data), memoryview(sums)
        rest = len(data) - whole * size
        if rest and self.compute(data[-rest:]) != sums[-SUM_BYTES:]:
            return False
        step = _WINDOW_BYTES // size
        return all(
            self._window_matches(
                data[start * size : min(start + step, whole) * size],
                sums[start * SUM_BYTES : min(start + step, whole) * SUM_BYTES],
            )
            for start in range(0, whole, step)
        )

    def first_mismatch(self, data: Buffer, sums: Buffer) -> int | None:
        """Where the first chunk begins whose sum is wrong or lacking; None if all is well."""
        if self.matches(data, sums):
            return None
        right = self.compute(data)
        for start in range(0, len(right), SUM_BYTES):
            if right[start : start + SUM_BYTES] != bytes(sums[start : start + SUM_BYTES]):
                return start // SUM_BYTES * self.bytes_per_checksum
        return len(data)  # more sums than data

    def _window_matches(self, data: memoryview, sums: memoryview) -> bool:
        function = _FUNCTIONS[self.type]
        count = len(sums) // SUM_BYTES
        # What remains does not depend on the data: it is the same for zeros.
        remainder = function(data) ^ _fold(self.type, self.bytes_per_checksum, sums)
        return remainder == _remainder_of_zeros(self.type, self.bytes_per_checksum, count)


def encode_meta_header(checksum: Checksum) -> bytes:
    """The beginning of a block's meta file; the sums follow."""
    return _META_HEADER.pack(META_VERSION, checksum.type, checksum.bytes_per_checksum)


def decode_meta_header(header: Buffer) -> Checksum:
    """The inverse; ValueError if this is no header of a meta file."""
    if len(header) < META_HEADER_BYTES:
        raise ValueError(f"a meta file of {len(header)} bytes has no header")
    version, type, bytes_per_checksum = _META_HEADER.unpack_from(header)
    if version != META_VERSION:
        raise ValueError(f"meta file of unknown version {version}")
    return Checksum(ChecksumType(type), bytes_per_checksum)


# Checksums of blocks, for getFileChecksum.


def md5_of_sums(pieces: Iterable[Buffer]) -> bytes:
    """MD5 over the sums of a block: Hadoop's MD5CRC."""
    digest = hashlib.md5(usedforsecurity=False)
    for piece in pieces:
        digest.update(piece)
    return digest.digest()


class CompositeCrc:
    """The CRC of data, from the sums of its chunks: Hadoop's COMPOSITE_CRC."""

    def __init__(self, checksum: Checksum) -> None:
        if checksum.type is ChecksumType.NULL:
            raise ValueError("without checksums there is no composite CRC")
        self._checksum = checksum
        self._value = 0

    def add(self, sums: Buffer, last_chunk_bytes: int | None = None) -> None:
        """Go on with these chunks, all whole but perhaps the last."""
        view = memoryview(sums)
        if last_chunk_bytes is not None:
            view, last = view[:-SUM_BYTES], view[-SUM_BYTES:]
        size = self._checksum.bytes_per_checksum
        step = max(1, _WINDOW_BYTES // size) if _can_fold(size) else 1
        for start in range(0, len(view), step * SUM_BYTES):
            window = view[start : start + step * SUM_BYTES]
            value = _fold(self._checksum.type, size, window)
            self._append(value, len(window) // SUM_BYTES * size)
        if last_chunk_bytes is not None:
            self._append(_SUM.unpack(last)[0], last_chunk_bytes)

    def digest(self) -> bytes:
        """The value so far, as Hadoop sends it."""
        return _SUM.pack(self._value)

    def _append(self, value: int, length: int) -> None:
        self._value = _shift(self._checksum.type, self._value, length) ^ value


# Arithmetic.  A CRC's bits are the coefficients of a polynomial, its lowest bit those
# of the highest power; to append n zero bytes multiplies it by x to the 8n.


def _can_fold(size: int) -> bool:
    return size <= _CHUNK_FOLDED_MAX and size % SUM_BYTES == 0


def _shift(type: ChecksumType, value: int, length: int) -> int:
    """The sum's own share in the sum of what it covers followed by `length` bytes."""
    if length < SUM_BYTES:
        # Too short to hold the value: a register of `value`, fed with zeros.
        return _FUNCTIONS[type](bytes(length), value ^ _ONES) ^ _ONES
    head = value.to_bytes(SUM_BYTES, "little")
    register = _FUNCTIONS[type](head, _ONES)
    return _FUNCTIONS[type](_zeros(length - SUM_BYTES), register) ^ _ONES


def _fold(type: ChecksumType, size: int, sums: memoryview) -> int:
    """Every sum shifted by the chunks that follow it, added up.

    The sums are laid out `size` bytes apart among zeros: the CRC of that is the fold
    of all but the last, which stays where it is.
    """
    (last,) = _SUM.unpack(sums[-SUM_BYTES:])
    if len(sums) == SUM_BYTES:
        return int(last)
    words = array("I", bytes(sums[:-SUM_BYTES]))
    words.byteswap()  # a sum is stored highest byte first, the CRC takes its lowest first
    spread, slots = _spread_buffer(size)
    slots[: len(words)] = memoryview(words)
    return _FUNCTIONS[type](spread[: len(words) * size], _ONES) ^ _ONES ^ int(last)


_scratch = threading.local()


def _spread_buffer(size: int) -> tuple[memoryview, memoryview]:
    """Zeros, and the first word of each chunk of them: this thread's, used again."""
    buffers: dict[int, tuple[memoryview, memoryview]] = _scratch.__dict__.setdefault("spread", {})
    if size not in buffers:
        view = memoryview(bytearray(_WINDOW_BYTES // size * size))
        buffers[size] = (view, view.cast("I")[:: size // SUM_BYTES])
    return buffers[size]


@functools.lru_cache(maxsize=1024)
def _remainder_of_zeros(type: ChecksumType, size: int, count: int) -> int:
    sum_of_chunk = _SUM.pack(_FUNCTIONS[type](bytes(size)))
    return _FUNCTIONS[type](bytes(size * count)) ^ _fold(
        type, size, memoryview(sum_of_chunk * count)
    )


@functools.lru_cache(maxsize=8)
def _zeros(length: int) -> bytes:
    return bytes(length)
