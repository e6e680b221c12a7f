"""One replica of a block: its state, how far it is, where its files are.

Invariant: `acked <= on disk <= received`; the generation stamp never decreases; there is
at most one writer.
"""

from __future__ import annotations

import enum
import os
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol

from cairnfs.datanode.replica_files import (
    ReplicaFile,
    block_name,
    meta_name,
    read_checksum,
    sums_offset,
)
from cairnfs.datanode.volumes import Volume
from cairnfs.errors import IOException
from cairnfs.wire.checksum import META_HEADER_BYTES, SUM_BYTES, Checksum


class ReplicaState(enum.IntEnum):
    """Hadoop's numbers; the lower, the better for recovery."""

    FINALIZED = 0
    RBW = 1  # replica being written
    RWR = 2  # waiting to be recovered: its writer went with a restart
    RUR = 3  # under recovery
    TEMPORARY = 4  # being copied here


class Block(NamedTuple):
    """Which block, in which generation, how long as somebody says."""

    id: int
    generation_stamp: int
    length_bytes: int = 0

    def __str__(self) -> str:
        return f"blk_{self.id}_{self.generation_stamp}"


class Writer(Protocol):
    """Whoever writes a replica just now."""

    def stop(self, limit_s: float) -> bool:
        """Make it let go of the replica; False if it did not in time."""


@dataclass(eq=False, slots=True)
class Replica:
    """A replica; of a finalized one, a copy of what is known."""

    block_id: int
    generation_stamp: int
    state: ReplicaState
    volume: Volume
    received_bytes: int
    acked_bytes: int
    file: ReplicaFile | None = None
    on_disk_bytes_closed: int = 0  # on disk, while no file is open
    writer: Writer | None = None
    recovery_id: int = 0
    original_state: ReplicaState = ReplicaState.FINALIZED  # of one under recovery
    promised_bytes: int = 0
    used_bytes: int = 0  # as counted by the volume

    def __str__(self) -> str:
        return (
            f"{self.state.name}, blk_{self.block_id}_{self.generation_stamp}, received"
            f" {self.received_bytes}, on disk {self.on_disk_bytes}, acknowledged"
            f" {self.acked_bytes}, on {self.volume}"
        )

    @property
    def on_disk_bytes(self) -> int:
        return self.on_disk_bytes_closed if self.file is None else self.file.written[0]

    @property
    def visible_bytes(self) -> int:
        """How much a reader may see; -1 of a replica nobody should read."""
        if self.state is ReplicaState.RUR:
            return self.received_bytes if self.original_state <= ReplicaState.RBW else -1
        return self.acked_bytes if self.state <= ReplicaState.RBW else -1

    @property
    def directory(self) -> Path:
        state = self.original_state if self.state is ReplicaState.RUR else self.state
        if state is ReplicaState.FINALIZED:
            return self.volume.finalized_directory(self.block_id)
        return self.volume.tmp if state is ReplicaState.TEMPORARY else self.volume.rbw

    @property
    def data_path(self) -> Path:
        return self.directory / block_name(self.block_id)

    @property
    def meta_path(self) -> Path:
        return self.directory / meta_name(self.block_id, self.generation_stamp)

    @property
    def block(self) -> Block:
        return Block(self.block_id, self.generation_stamp, self.received_bytes)


class ReplicaReader:
    """Both files, opened for reading, and how much of them may be read.

    The checksum of the last chunk is kept: on disk it changes when the chunk grows.
    """

    def __init__(self, replica: Replica) -> None:
        self.block = replica.block
        self.volume = replica.volume
        self.state = replica.state
        self.data_fd = os.open(replica.data_path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            self.meta_fd = os.open(replica.meta_path, os.O_RDONLY | os.O_CLOEXEC)
        except BaseException:
            os.close(self.data_fd)
            raise
        try:
            self.checksum = read_checksum(self.meta_fd, replica.meta_path)
            if replica.file is not None:
                self.length_bytes, self.last_sum = replica.file.written
            else:
                self.length_bytes = replica.on_disk_bytes
                self.last_sum = self._read_last_sum()
        except BaseException:
            self.close()
            raise

    def read_sums(self, offset: int, length: int) -> bytes:
        """The checksums of a range that begins and ends with a chunk, or at the end."""
        if not self.checksum.sum_bytes or length <= 0:
            return b""
        wanted = self.checksum.sums_bytes(length)
        sums = os.pread(self.meta_fd, wanted, sums_offset(self.checksum, offset))
        if offset + length == self.length_bytes and self.last_sum:
            sums = sums[: wanted - SUM_BYTES] + self.last_sum
        if len(sums) < wanted:
            raise IOException(f"The checksum file of {self.block} ends before its data")
        return sums

    def compute_sum(self, offset: int, length: int) -> bytes:
        """The checksum of the beginning of a chunk."""
        return self.checksum.compute(os.pread(self.data_fd, length, offset))

    def close(self) -> None:
        os.close(self.data_fd)
        os.close(self.meta_fd)

    def _read_last_sum(self) -> bytes:
        if not self.length_bytes or not self.checksum.sum_bytes:
            return b""
        size = self.checksum.bytes_per_checksum
        last = (self.length_bytes - 1) // size * size
        return os.pread(self.meta_fd, SUM_BYTES, sums_offset(self.checksum, last))

    def __enter__(self) -> ReplicaReader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def size_with_sums(length: int) -> int:
    """What a replica takes on disk, with the usual checksums."""
    return length + META_HEADER_BYTES + Checksum().sums_bytes(length)
