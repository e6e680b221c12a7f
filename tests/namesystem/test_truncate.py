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


def test_what_a_snapshot_needs_is_cut_by_a_pointer(fs: ScratchClient) -> None:
    """The row alone is shorter, however often it is cut; then an append has a block of its own."""
    fs.mkdirs("/d")
    fs.allow_snapshot("/d")
    fs.write("/d/f", MIB, 10, block_size_bytes=MIB)
    first, last = (each.block for each in fs.get_block_locations("/d/f").blocks)
    fs.create_snapshot("/d", "s")
    for length in (8, 5):
        assert fs.truncate("/d/f", MIB + length)
        kept, cut = (each.block for each in fs.get_block_locations("/d/f").blocks)
        assert kept == first
        assert (cut.id, cut.generation_stamp) == (last.id, last.generation_stamp)
        assert (cut.length_bytes, cut.replica_bytes) == (length, 10)
    appended = fs.append("/d/f").block
    assert appended is not None
    assert appended.block.id != last.id
    assert fs.complete("/d/f", appended.block.with_length(7))
    assert lengths(fs, "/d/f") == [MIB, 7]
    assert fs.get_content_summary("/d").length_bytes == MIB + 7
    assert lengths(fs, "/d/.snapshot/s/f") == [MIB, 10]
    past = fs.get_block_locations("/d/.snapshot/s/f")
    assert [each.block.id for each in past.blocks] == [first.id, last.id]
    assert (past.length_bytes, past.under_construction, past.last_is_complete) == (
        MIB + 10,
        False,
        True,
    )
    fs.delete_snapshot("/d", "s")


def test_an_older_snapshot_is_not_cut_by_what_came_later(fs: ScratchClient) -> None:
    fs.mkdirs("/d")
    fs.allow_snapshot("/d")
    fs.write("/d/f", 10)
    fs.create_snapshot("/d", "s")
    appended = fs.append("/d/f").block
    assert appended is not None
    fs.complete("/d/f", appended.block.with_length(20))
    (grown,) = (each.block for each in fs.get_block_locations("/d/f").blocks)
    assert grown.id == appended.block.id  # in place
    fs.truncate("/d/f", 15)
    (cut,) = (each.block for each in fs.get_block_locations("/d/f").blocks)
    assert cut.generation_stamp > grown.generation_stamp  # what is behind 15 is nobody's
    assert cut.replica_bytes == 15
    fs.truncate("/d/f", 5)
    (pointer,) = (each.block for each in fs.get_block_locations("/d/f").blocks)
    assert (pointer.length_bytes, pointer.replica_bytes) == (5, 15)
    assert lengths(fs, "/d/.snapshot/s/f") == [10]
    fs.delete_snapshot("/d", "s")
    fs.truncate("/d/f", 4)
    (cut,) = (each.block for each in fs.get_block_locations("/d/f").blocks)
    assert cut.replica_bytes == 4
