"""Checksums by chunk, checked by packet."""

from __future__ import annotations

import hashlib
import random
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cairnfs.wire.checksum import (
    META_HEADER_BYTES,
    SUM_BYTES,
    Checksum,
    ChecksumType,
    CompositeCrc,
    decode_meta_header,
    encode_meta_header,
    md5_of_sums,
)

TYPES = [ChecksumType.CRC32, ChecksumType.CRC32C]
SIZES = [1, 3, 4, 100, 512, 516, 4096, 5000, 65536]


def test_known_values() -> None:
    digits = b"123456789"
    assert Checksum(ChecksumType.CRC32C, 512).compute(digits).hex() == "e3069283"
    assert Checksum(ChecksumType.CRC32, 512).compute(digits).hex() == "cbf43926"
    assert Checksum(ChecksumType.NULL, 512).compute(digits) == b""


@pytest.mark.parametrize("size", SIZES)
def test_each_chunk_has_its_sum(size: int) -> None:
    checksum = Checksum(ChecksumType.CRC32, size)
    data = random.Random(1).randbytes(10_001)
    chunks = [data[start : start + size] for start in range(0, len(data), size)]
    assert checksum.compute(data) == b"".join(
        zlib.crc32(chunk).to_bytes(SUM_BYTES, "big") for chunk in chunks
    )
    assert len(checksum.compute(data)) == checksum.sums_bytes(len(data))


@pytest.mark.parametrize("type", TYPES)
@pytest.mark.parametrize("size", SIZES)
def test_packets_match_unless_a_bit_is_changed(type: ChecksumType, size: int) -> None:
    checksum, chance = Checksum(type, size), random.Random(size)
    for length in (0, 1, size - 1, size, size + 1, 2 * size, 5 * size + 3, 140_000):
        data = chance.randbytes(length)
        sums = checksum.compute(data)
        assert checksum.matches(data, sums)
        assert checksum.first_mismatch(data, sums) is None
        assert not checksum.matches(data, sums + b"\0\0\0\0")
        for _ in range(4 if length else 0):
            changed, place = bytearray(data), chance.randrange(length)
            changed[place] ^= 1 << chance.randrange(8)
            assert not checksum.matches(changed, sums)
            assert checksum.first_mismatch(changed, sums) == place // size * size
            wrong = bytearray(sums)
            wrong[chance.randrange(len(sums))] ^= 1 << chance.randrange(8)
            assert not checksum.matches(data, wrong)


@settings(deadline=None)
@given(
    data=st.binary(max_size=5000),
    type=st.sampled_from(TYPES),
    size=st.integers(1, 700),
    damage=st.lists(st.tuples(st.integers(0, 10_000), st.integers(1, 255)), max_size=5),
)
def test_matching_by_packet_agrees_with_matching_by_chunk(
    data: bytes, type: ChecksumType, size: int, damage: list[tuple[int, int]]
) -> None:
    checksum = Checksum(type, size)
    sums = checksum.compute(data)
    both = bytearray(data + sums)
    for place, change in damage:
        if both:
            both[place % len(both)] ^= change
    changed, changed_sums = bytes(both[: len(data)]), bytes(both[len(data) :])
    assert checksum.matches(changed, changed_sums) == (checksum.compute(changed) == changed_sums)


@pytest.mark.parametrize("type", TYPES)
def test_two_errors_do_not_cancel_out(type: ChecksumType) -> None:
    """Chunks that change places change the sum of the whole, not only its parts."""
    checksum = Checksum(type, 512)
    first, second = b"a" * 512, b"b" * 512
    assert not checksum.matches(second + first, checksum.compute(first + second))


@settings(deadline=None)
@given(first=st.binary(max_size=600), second=st.binary(max_size=600), type=st.sampled_from(TYPES))
def test_a_chunk_can_grow(first: bytes, second: bytes, type: ChecksumType) -> None:
    checksum = Checksum(type, 4096)
    if first:
        grown = checksum.extend(checksum.compute(first), second)
        assert grown == checksum.compute(first + second)


@settings(deadline=None)
@given(data=st.binary(min_size=1, max_size=9000), size=st.integers(1, 700))
def test_the_composite_is_the_crc_of_all(data: bytes, size: int) -> None:
    checksum = Checksum(ChecksumType.CRC32, size)
    composite = CompositeCrc(checksum)
    composite.add(checksum.compute(data), len(data) % size or None)
    assert composite.digest() == zlib.crc32(data).to_bytes(SUM_BYTES, "big")


def test_the_composite_does_not_depend_on_pieces() -> None:
    checksum, data = Checksum(), random.Random(2).randbytes(512 * 1000 + 77)
    sums = checksum.compute(data)
    composite = CompositeCrc(checksum)
    for start in range(0, len(sums), 4 * 300):
        piece = sums[start : start + 4 * 300]
        composite.add(piece, 77 if start + len(piece) == len(sums) else None)
    whole = Checksum(ChecksumType.CRC32C, 1 << 20).compute(data)
    assert composite.digest() == whole


def test_md5_of_sums() -> None:
    assert md5_of_sums([b"ab", b"cd"]) == hashlib.md5(b"abcd", usedforsecurity=False).digest()


def test_a_meta_file_of_hadoop() -> None:
    """Captured from Hadoop's DataNode 3.3.6."""
    meta = bytes.fromhex("00010200000200de942803")
    assert decode_meta_header(meta) == Checksum()
    assert encode_meta_header(Checksum()) + Checksum().compute(b"hello, captured world") == meta


def test_meta_headers() -> None:
    header = encode_meta_header(Checksum(ChecksumType.CRC32C, 512))
    assert header.hex() == "00010200000200"
    assert len(header) == META_HEADER_BYTES
    assert decode_meta_header(header + b"more") == Checksum(ChecksumType.CRC32C, 512)


@pytest.mark.parametrize(
    "header", ["", "000102000002", "00020200000200", "00010900000200", "00010200000000"]
)
def test_bad_meta_headers(header: str) -> None:
    with pytest.raises(ValueError, match=r"meta file|not a valid|cannot be"):
        decode_meta_header(bytes.fromhex(header))
