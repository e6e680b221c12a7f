"""Truncate, of files whose data is kept elsewhere: what is cut is cut at once."""

from __future__ import annotations

import pytest

from cairnfs.errors import (
    AccessControlException,
    AlreadyBeingCreatedException,
    FileNotFoundException,
    HadoopIllegalArgumentException,
)
from cairnfs.namesystem.leases import SOFT_LIMIT_MS
from cairnfs.testing.scratch import ScratchClient

MIB = 1 << 20


def lengths(fs: ScratchClient, path: str) -> list[int]:
    return [each.block.length_bytes for each in fs.get_block_locations(path).blocks]


@pytest.mark.parametrize(
    ("length", "left"),
    [
        (0, []),
        (1, [1]),
        (MIB - 1, [MIB - 1]),
        (MIB, [MIB]),
        (MIB + 7, [MIB, 7]),
        (2 * MIB, [MIB, MIB]),
        (2 * MIB + 9, [MIB, MIB, 9]),
        (2 * MIB + 10, [MIB, MIB, 10]),
    ],
)
def test_a_file_is_cut(fs: ScratchClient, length: int, left: list[int]) -> None:
    fs.mkdirs("/d")
    fs.write("/d/f", MIB, MIB, 10, replication=2, block_size_bytes=MIB)
    fs.clock.advance(10)
    assert fs.truncate("/d/f", length)
    assert lengths(fs, "/d/f") == left
    status = fs.info("/d/f")
    assert (status.length_bytes, status.under_construction) == (length, False)
    assert (status.mtime_ms == fs.clock.now_ms()) == (length < 2 * MIB + 10)
    summary = fs.get_content_summary("/d")
    assert (summary.length_bytes, summary.space_bytes) == (length, 2 * length)
    assert fs.truncate("/d/f", length)


def test_a_block_that_is_cut_has_a_new_stamp(fs: ScratchClient) -> None:
    fs.write("/f", MIB, 10, block_size_bytes=MIB)
    first, last = (each.block for each in fs.get_block_locations("/f").blocks)
    fs.truncate("/f", MIB + 5)
    kept, cut = (each.block for each in fs.get_block_locations("/f").blocks)
    assert kept == first
    assert (cut.id, cut.length_bytes) == (last.id, 5)
    assert cut.generation_stamp > last.generation_stamp


def test_a_cut_file_is_appended_to(fs: ScratchClient) -> None:
    fs.write("/f", MIB, 10, block_size_bytes=MIB)
    fs.truncate("/f", 5)
    appended = fs.append("/f")
    assert appended.block is not None
    assert fs.complete("/f", appended.block.block.with_length(8))
    assert lengths(fs, "/f") == [8]


def test_lengths_that_are_refused(fs: ScratchClient) -> None:
    fs.write("/f", 10)
    with pytest.raises(
        HadoopIllegalArgumentException,
        match=r"to a larger file size. Current size: 10, truncate size: 11\.",
    ):
        fs.truncate("/f", 11)
    with pytest.raises(HadoopIllegalArgumentException, match="to a negative file size: -1"):
        fs.truncate("/f", -1)


def test_what_cannot_be_cut(fs: ScratchClient) -> None:
    fs.mkdirs("/d")
    with pytest.raises(FileNotFoundException, match="Path is not a file: /d"):
        fs.truncate("/d", 0)
    with pytest.raises(FileNotFoundException, match="File does not exist: /f"):
        fs.truncate("/f", 0)
    fs.write("/f", 1)
    with pytest.raises(AccessControlException, match='access=WRITE, inode="/f"'):
        fs.user("ada").truncate("/f", 0)


def test_a_file_that_is_being_written_is_cut_only_when_its_writer_is_gone(
    fs: ScratchClient,
) -> None:
    fs.write("/f", 10)
    fs.append("/f")
    other = fs.user("hdfs")
    with pytest.raises(AlreadyBeingCreatedException, match="Failed to TRUNCATE_FILE /f for"):
        other.truncate("/f", 5)
    fs.clock.advance(SOFT_LIMIT_MS + 1)
    assert other.truncate("/f", 5)
    assert lengths(fs, "/f") == [5]


def test_many_blocks_are_dropped_at_once_and_reclaimed_in_parts(fast_fs: ScratchClient) -> None:
    """What is left over is looked for when the test ends."""
    fast_fs.write("/f", *[1] * 250, block_size_bytes=MIB)
    assert fast_fs.truncate("/f", 3)
    assert lengths(fast_fs, "/f") == [1, 1, 1]
    fast_fs.reclaim()
    assert fast_fs.get_content_summary("/").length_bytes == 3
