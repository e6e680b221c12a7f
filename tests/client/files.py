"""Reading and writing that tests of several clusters share."""

from __future__ import annotations

import random

import cairnfs

CHUNK = 512
PACKET = 256 << 10
MIB = 1 << 20

# Around the sizes at which something changes: chunks, packets, blocks of 1 MiB.
SIZES = [
    0,
    1,
    *(CHUNK + more for more in (-1, 0, 1)),
    *(PACKET + more for more in (-1, 0, 1)),
    *(MIB + more for more in (-1, 0, 1)),
    3 * MIB + 77,
]


def content(size_bytes: int) -> bytes:
    """Bytes no two parts of which are alike, always the same."""
    return random.Random(size_bytes).randbytes(size_bytes)


def write(
    fs: cairnfs.FileSystem, path: str, data: bytes, *, replication: int = 1, block_size: int = MIB
) -> None:
    with fs.create(path, overwrite=True, replication=replication, block_size=block_size) as file:
        assert file.write(data) == len(data)


def append(fs: cairnfs.FileSystem, path: str, data: bytes) -> None:
    with fs.append(path) as file:
        file.write(data)


def read(fs: cairnfs.FileSystem, path: str) -> bytes:
    with fs.open(path) as file:
        return file.read()
