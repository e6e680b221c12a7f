"""The two files of a replica: `blk_ID`, and `blk_ID_STAMP.meta` with its checksums.

A replica changes its state by moving its files, the meta file first.  So after a crash
the block file belongs where the meta file is (`reunite`).  Data is written before its
checksum: what a crash leaves behind is the longest prefix whose checksums are right
(`recover_length`).
"""

from __future__ import annotations

import errno
import logging
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from cairnfs.datanode.volumes import Volume
from cairnfs.errors import IOException
from cairnfs.wire.checksum import (
    META_HEADER_BYTES,
    SUM_BYTES,
    Checksum,
    decode_meta_header,
    encode_meta_header,
)

log = logging.getLogger(__name__)

_BLOCK_NAME = re.compile(r"blk_(\d+)")
_META_NAME = re.compile(r"blk_(\d+)_(\d+)\.meta")
_WINDOW_BYTES = 1 << 20


class Found(NamedTuple):
    """A replica as its files tell."""

    block_id: int
    generation_stamp: int
    length_bytes: int


def block_name(block_id: int) -> str:
    return f"blk_{block_id}"


def meta_name(block_id: int, generation_stamp: int) -> str:
    return f"blk_{block_id}_{generation_stamp}.meta"


class ReplicaFile:
    """Both files, opened for writing; used by one thread at a time.

    `written` is how much is on disk and the checksum of its last chunk: one pair,
    replaced at once, so that a reader in another thread never sees one without the other.
    """

    def __init__(self, volume: Volume, data_fd: int, meta_fd: int, checksum: Checksum) -> None:
        self.checksum = checksum
        self.written: tuple[int, bytes] = (0, b"")
        self._volume = volume
        self._data_fd = data_fd
        self._meta_fd = meta_fd

    @classmethod
    def create(cls, volume: Volume, data: Path, meta: Path, checksum: Checksum) -> ReplicaFile:
        """Make both files; neither may exist."""
        data_fd = volume.disk.open_for_write(data, create=True)
        try:
            meta_fd = volume.disk.open_for_write(meta, create=True)
        except BaseException:
            os.close(data_fd)
            raise
        file = cls(volume, data_fd, meta_fd, checksum)
        try:
            file._pwrite_all(meta_fd, [encode_meta_header(checksum)], 0)
        except BaseException:
            file.close()
            raise
        return file

    @classmethod
    def reopen(cls, volume: Volume, data: Path, meta: Path, length: int) -> ReplicaFile:
        """Go on at a length; beyond it may be what a writer who failed did not finish.

        The last chunk must be right if it is to grow.
        """
        data_fd = volume.disk.open_for_write(data, create=False)
        try:
            meta_fd = volume.disk.open_for_write(meta, create=False)
        except BaseException:
            os.close(data_fd)
            raise
        try:
            checksum = read_checksum(meta_fd, meta)
            file = cls(volume, data_fd, meta_fd, checksum)
            file._take_up(length)
        except BaseException:
            os.close(data_fd)
            os.close(meta_fd)
            raise
        return file

    def write_all(self, pieces: Iterable[tuple[int, memoryview, memoryview | None]]) -> None:
        """Write what `write` would, piece by piece; whole chunks in a row by one call."""
        size = self.checksum.bytes_per_checksum
        start = end = self.written[0]
        data_run: list[bytes | memoryview] = []
        sums_run: list[bytes | memoryview] = []
        for offset, data, sums in pieces:
            if sums is not None and offset == end and offset % size == 0:
                data_run.append(data)
                sums_run.append(sums)
                end += len(data)
                continue
            self._write_run(start, end, data_run, sums_run)
            self.write(offset, data, sums)
            start = end = self.written[0]
            data_run, sums_run = [], []
        self._write_run(start, end, data_run, sums_run)

    def _write_run(
        self,
        start: int,
        end: int,
        data: list[bytes | memoryview],
        sums: list[bytes | memoryview],
    ) -> None:
        if data:
            self._pwrite_all(self._data_fd, data, start)
            self._pwrite_all(self._meta_fd, sums, sums_offset(self.checksum, start))
            self.written = (end, bytes(sums[-1][-SUM_BYTES:]))

    def write(self, offset: int, data: memoryview, sums: memoryview | None) -> None:
        """Add what of this is new.  `sums` are its checksums, or None to compute them.

        A packet may begin before the end of what is there, and may go on in the middle
        of a chunk: then its first checksum covers only a part of that chunk.
        """
        on_disk, last_sum = self.written
        assert offset <= on_disk
        new = data[on_disk - offset :]
        if not new:
            return
        size = self.checksum.bytes_per_checksum
        partial = on_disk % size
        boundary = on_disk - partial
        new_sums: bytes | memoryview
        if sums is not None and offset % size == 0:
            new_sums = sums[(boundary - offset) // size * self.checksum.sum_bytes :]
        else:
            head = size - partial if partial else 0
            new_sums = self.checksum.compute(new[head:])
            if partial:
                new_sums = self.checksum.extend(last_sum, new[:head]) + new_sums
        self._pwrite_all(self._data_fd, [new], on_disk)
        if self.checksum.sum_bytes:
            self._pwrite_all(self._meta_fd, [new_sums], sums_offset(self.checksum, boundary))
        self.written = (on_disk + len(new), bytes(new_sums[-SUM_BYTES:]))

    def truncate(self, length: int) -> None:
        """Cut to a length, with the checksum of a last chunk that becomes shorter."""
        on_disk, last_sum = self.written
        if length >= on_disk:
            return
        boundary = length - length % self.checksum.bytes_per_checksum
        kept_sums = sums_offset(self.checksum, boundary)
        last_sum = b""
        if length > boundary:
            chunk = os.pread(self._data_fd, length - boundary, boundary)
            last_sum = self.checksum.compute(chunk)
        elif length:
            last_sum = os.pread(self._meta_fd, self.checksum.sum_bytes, kept_sums - SUM_BYTES)
        # The checksum first: after a crash, `recover_length` finds the prefix it is for.
        if length > boundary and last_sum:
            self._pwrite_all(self._meta_fd, [last_sum], kept_sums)
            kept_sums += len(last_sum)
        self._volume.disk.truncate(self._data_fd, length)
        self._volume.disk.truncate(self._meta_fd, kept_sums)
        self.written = (length, last_sum)

    def sync(self) -> None:
        """Bring both files to the disk."""
        self._volume.disk.fsync(self._data_fd)
        self._volume.disk.fsync(self._meta_fd)

    def close(self) -> None:
        for fd in (self._data_fd, self._meta_fd):
            if fd >= 0:
                os.close(fd)
        self._data_fd = self._meta_fd = -1

    def _take_up(self, length: int) -> None:
        if os.fstat(self._data_fd).st_size < length:
            raise IOException(f"the block file is shorter than {length} bytes")
        self._volume.disk.truncate(self._data_fd, length)
        size = self.checksum.bytes_per_checksum
        partial = length % size
        boundary = length - partial
        last_sum = b""
        if self.checksum.sum_bytes and length:
            offset = sums_offset(self.checksum, boundary if partial else length - size)
            last_sum = os.pread(self._meta_fd, SUM_BYTES, offset)
        if partial and last_sum != self.checksum.compute(
            os.pread(self._data_fd, partial, boundary)
        ):
            raise IOException(
                "Partial CRC of the last chunk does not match the value in the checksum file"
            )
        self.written = (length, last_sum)

    def _pwrite_all(self, fd: int, buffers: list[bytes | memoryview], offset: int) -> None:
        total = sum(map(len, buffers))
        done = self._volume.disk.pwritev(fd, buffers, offset)
        while done < total:  # a full disk takes a part, then refuses
            rest = memoryview(b"".join(buffers))[done:]
            count = self._volume.disk.pwritev(fd, [rest], offset + done)
            if count == 0:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            done += count


def sums_offset(checksum: Checksum, boundary: int) -> int:
    """Where in the meta file the checksum of the chunk at `boundary` is."""
    return META_HEADER_BYTES + boundary // checksum.bytes_per_checksum * checksum.sum_bytes


def read_checksum(meta_fd: int, path: Path) -> Checksum:
    """What kind of checksums a meta file holds; IOException if it is none."""
    try:
        return decode_meta_header(os.pread(meta_fd, META_HEADER_BYTES, 0))
    except ValueError as error:
        raise IOException(f"{path}: {error}") from error


# What is found at start.


def reunite(volume: Volume) -> None:
    """Finish moves that a crash has cut short, and forget copies that were under way."""
    for entry in os.scandir(volume.tmp):
        if entry.is_file(follow_symlinks=False):
            os.unlink(entry.path)
    names = {entry.name for entry in os.scandir(volume.rbw)}
    for name in names:
        if match := _META_NAME.fullmatch(name):
            block = block_name(int(match[1]))
            elsewhere = volume.finalized_directory(int(match[1])) / block
            if block not in names and elsewhere.exists():
                log.warning("%s: %s follows its meta file to rbw", volume, block)
                os.rename(elsewhere, volume.rbw / block)
        elif match := _BLOCK_NAME.fullmatch(name):
            directory = volume.finalized_directory(int(match[1]))
            if any(each.startswith(f"{name}_") for each in names) or not directory.is_dir():
                continue
            if any(directory.glob(f"{name}_*.meta")):
                log.warning("%s: %s follows its meta file to finalized", volume, name)
                os.rename(volume.rbw / name, directory / name)


def find_finalized(volume: Volume) -> Iterator[Found]:
    """Every replica below `finalized`.  A block file without a meta file is not one."""
    pending = [str(volume.finalized)]
    while pending:
        lengths: dict[int, int] = {}
        stamps: dict[int, int] = {}
        with os.scandir(pending.pop()) as entries:
            for entry in entries:
                if match := _META_NAME.fullmatch(entry.name):
                    block_id = int(match[1])
                    stamps[block_id] = max(int(match[2]), stamps.get(block_id, 0))
                elif match := _BLOCK_NAME.fullmatch(entry.name):
                    lengths[int(match[1])] = entry.stat().st_size
                elif entry.is_dir(follow_symlinks=False):
                    pending.append(entry.path)
        for block_id, length in lengths.items():
            if block_id in stamps:
                yield Found(block_id, stamps[block_id], length)
            else:
                log.warning("%s: blk_%d has no meta file; it is left alone", volume, block_id)


def find_unfinished(volume: Volume) -> Iterator[Found]:
    """Every replica in `rbw`, cut to what is right of it."""
    stamps: dict[int, int] = {}
    blocks: set[int] = set()
    for entry in os.scandir(volume.rbw):
        if match := _META_NAME.fullmatch(entry.name):
            block_id = int(match[1])
            stamps[block_id] = max(int(match[2]), stamps.get(block_id, 0))
        elif match := _BLOCK_NAME.fullmatch(entry.name):
            blocks.add(int(match[1]))
    for block_id in blocks & stamps.keys():
        data = volume.rbw / block_name(block_id)
        meta = volume.rbw / meta_name(block_id, stamps[block_id])
        yield Found(block_id, stamps[block_id], recover_length(data, meta))


def recover_length(data: Path, meta: Path) -> int:
    """Cut both files to the longest prefix whose checksums are right."""
    data_fd, meta_fd = os.open(data, os.O_RDWR), os.open(meta, os.O_RDWR)
    try:
        try:
            checksum = read_checksum(meta_fd, meta)
        except IOException as error:
            log.warning("%s; nothing of the block is left", error)
            return 0  # the files stay for whoever wants to look
        length = longest_valid_prefix(data_fd, meta_fd, checksum)
        os.ftruncate(data_fd, length)
        os.ftruncate(meta_fd, META_HEADER_BYTES + checksum.sums_bytes(length))
        return length
    finally:
        os.close(data_fd)
        os.close(meta_fd)


def longest_valid_prefix(data_fd: int, meta_fd: int, checksum: Checksum) -> int:
    """How much of the data has checksums that are right."""
    if not checksum.sum_bytes:
        return os.fstat(data_fd).st_size
    size = checksum.bytes_per_checksum
    step = max(1, _WINDOW_BYTES // size) * size
    offset = 0
    while True:
        data = os.pread(data_fd, step, offset)
        sums = os.pread(meta_fd, checksum.sums_bytes(step), sums_offset(checksum, offset))
        data = data[: len(sums) // SUM_BYTES * size]
        sums = sums[: checksum.sums_bytes(len(data))]
        if not data:
            return offset
        wrong = checksum.first_mismatch(data, sums)
        if wrong is not None:
            at = wrong // size * SUM_BYTES
            chunk = data[wrong : wrong + size]
            return offset + wrong + _covered(checksum, chunk, sums[at : at + SUM_BYTES])
        offset += len(data)
        if len(data) < step:
            return offset


def _covered(checksum: Checksum, chunk: bytes, chunk_sum: bytes) -> int:
    """How much of a chunk its checksum is for, if it was grown but not its checksum."""
    covered, value = 0, checksum.compute(chunk[:1])
    for length in range(1, len(chunk)):
        if value == chunk_sum:
            covered = length
        value = checksum.extend(value, chunk[length : length + 1])
    return covered
