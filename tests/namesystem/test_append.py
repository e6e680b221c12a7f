"""Append, and what a writer says while it writes: flushed, so long, given up."""

from __future__ import annotations

import msgspec
import pytest

from cairnfs.blocks.records import BlockState
from cairnfs.errors import (
    AccessControlException,
    AlreadyBeingCreatedException,
    DSQuotaExceededException,
    FileAlreadyExistsException,
    FileNotFoundException,
    IOException,
    LeaseExpiredException,
)
from cairnfs.namesystem.leases import SOFT_LIMIT_MS
from cairnfs.testing.scratch import ScratchClient

MIB = 1 << 20


def test_a_partial_last_block_is_written_again(fs: ScratchClient) -> None:
    fs.write("/f", MIB, 10, replication=2, block_size_bytes=MIB)
    before = fs.get_block_locations("/f").blocks[-1].block
    appended = fs.append("/f")
    assert appended.block is not None
    block = appended.block.block
    assert (block.id, block.generation_stamp) == (before.id, before.generation_stamp)
    assert (block.length_bytes, block.state) == (10, BlockState.UNDER_CONSTRUCTION)
    assert appended.block.offset_bytes == MIB
    assert appended.status.length_bytes == MIB + 10
    assert appended.status.under_construction

    # It is charged for the whole block until it is closed, and is as long as it was.
    summary = fs.get_content_summary("/")
    assert (summary.length_bytes, summary.space_bytes) == (MIB + 10, 4 * MIB)
    located = fs.get_block_locations("/f")
    assert (located.length_bytes, located.under_construction) == (MIB, True)
    assert not located.last_is_complete

    assert fs.complete("/f", block.with_length(25))
    summary = fs.get_content_summary("/")
    assert (summary.length_bytes, summary.space_bytes) == (MIB + 25, 2 * (MIB + 25))
    assert fs.info("/f").length_bytes == MIB + 25


@pytest.mark.parametrize("to_new_block", [False, True])
def test_a_full_last_block_is_followed_by_another(fs: ScratchClient, to_new_block: bool) -> None:
    fs.write("/f", MIB, block_size_bytes=MIB)
    appended = fs.append("/f", to_new_block=to_new_block)
    assert (appended.block is not None) == to_new_block
    previous = appended.block.block if appended.block is not None else None
    added = fs.add_block("/f", previous)
    assert added.offset_bytes == MIB
    assert fs.complete("/f", added.block.with_length(5))
    assert fs.info("/f").length_bytes == MIB + 5


def test_a_new_block_after_a_partial_one(fs: ScratchClient) -> None:
    fs.write("/f", 10)
    appended = fs.append("/f", to_new_block=True)
    assert appended.block is not None
    assert appended.block.storages == ()
    added = fs.add_block("/f", appended.block.block)
    assert fs.complete("/f", added.block.with_length(5))
    lengths = [each.block.length_bytes for each in fs.get_block_locations("/f").blocks]
    assert lengths == [10, 5]


def test_an_empty_file_is_appended_to(fs: ScratchClient) -> None:
    fs.write("/f")
    assert fs.append("/f").block is None
    assert fs.complete("/f", fs.write_blocks("/f", 3))
    assert fs.info("/f").length_bytes == 3


def test_who_appends_and_writes_nothing_leaves_the_file_as_it_was(fs: ScratchClient) -> None:
    fs.write("/f", 10)
    appended = fs.append("/f")
    assert appended.block is not None
    assert fs.complete("/f", appended.block.block)
    assert fs.info("/f").length_bytes == 10


def test_what_cannot_be_appended_to(fs: ScratchClient) -> None:
    fs.mkdirs("/d")
    with pytest.raises(FileAlreadyExistsException, match="Cannot append to directory /d; already"):
        fs.append("/d")
    with pytest.raises(
        FileNotFoundException, match=r"append to non-existent file /f for client 127\.0\.0\.1"
    ):
        fs.append("/f")
    fs.write("/f", 1)
    with pytest.raises(AccessControlException, match='access=WRITE, inode="/f"'):
        fs.user("ada").append("/f")


def test_a_file_that_is_being_written_is_not_appended_to(fs: ScratchClient) -> None:
    fs.write("/f", 1)
    fs.append("/f")
    with pytest.raises(AlreadyBeingCreatedException, match="Failed to APPEND_FILE /f for DFSCl"):
        fs.append("/f")
    other = fs.user("hdfs")
    with pytest.raises(AlreadyBeingCreatedException, match="lease is currently owned by DFSCl"):
        other.append("/f")


def test_a_writer_that_fell_silent_loses_the_file_to_the_next(fs: ScratchClient) -> None:
    fs.write("/f", 10)
    appended = fs.append("/f")
    assert appended.block is not None
    fs.clock.advance(SOFT_LIMIT_MS + 1)
    other = fs.user("hdfs")
    assert other.append("/f").status.length_bytes == 10
    with pytest.raises(LeaseExpiredException, match="is not the lease owner"):
        fs.complete("/f", appended.block.block)
    fs.renew_lease()
    assert other.complete("/f", other.get_block_locations("/f").blocks[0].block)


def test_a_quota_counts_the_room_in_the_last_block(fs: ScratchClient) -> None:
    fs.mkdirs("/d")
    fs.write("/d/f", 10, replication=1, block_size_bytes=MIB)
    fs.set_quota("/d", -1, MIB - 1)
    with pytest.raises(DSQuotaExceededException):
        fs.append("/d/f")
    assert fs.is_file_closed("/d/f")
    fs.set_quota("/d", -1, MIB)
    fs.append("/d/f")


# What a writer says while it writes.


def test_what_was_flushed_is_seen_before_the_file_is_closed(fs: ScratchClient) -> None:
    fs.create("/f", block_size_bytes=MIB)
    block = fs.write_blocks("/f", MIB, 0)
    assert block is not None
    fs.fsync("/f", 100)
    assert fs.info("/f").length_bytes == fs.get_content_summary("/").length_bytes == MIB + 100
    located = fs.get_block_locations("/f")
    assert (located.length_bytes, located.blocks[-1].block.length_bytes) == (MIB, 100)
    for length in (-1, 50, MIB + 1):  # unknown, less than known, more than a block
        fs.fsync("/f", length)
        assert fs.info("/f").length_bytes == MIB + 100
    assert fs.complete("/f", block.with_length(120))
    assert fs.get_content_summary("/").length_bytes == MIB + 120


def test_a_block_with_flushed_data_is_not_given_back(fs: ScratchClient) -> None:
    fs.create("/f")
    block = fs.add_block("/f").block
    fs.fsync("/f")
    with pytest.raises(IOException, match="has acknowledged data"):
        fs.abandon_block("/f", block)
    fs.complete("/f", block.with_length(1))
    appended = fs.append("/f").block
    assert appended is not None
    with pytest.raises(IOException, match="has acknowledged data"):
        fs.abandon_block("/f", appended.block)


def test_who_does_not_hold_the_lease_flushes_nothing(fs: ScratchClient) -> None:
    fs.create("/f")
    fs.add_block("/f")
    with pytest.raises(LeaseExpiredException):
        fs.user("hdfs").fsync("/f", 10)


def test_a_deleted_file_is_written_no_more(fs: ScratchClient) -> None:
    fs.write("/f", 10)
    appended = fs.append("/f")
    assert appended.block is not None
    fs.delete("/f")
    grown = msgspec.structs.replace(appended.block.block, length_bytes=20)
    for file_id in (0, appended.status.id):
        with pytest.raises((FileNotFoundException, LeaseExpiredException)):
            fs.complete("/f", grown, file_id)


def test_a_renamed_file_keeps_its_writer(fs: ScratchClient) -> None:
    fs.mkdirs("/d")
    fs.write("/f", 10)
    appended = fs.append("/f")
    assert appended.block is not None
    fs.rename("/f", "/d/g")
    fs.fsync("/f", 15, appended.status.id)
    assert fs.info("/d/g").length_bytes == 15
    assert fs.complete("/f", appended.block.block.with_length(20), appended.status.id)
    assert fs.info("/d/g").length_bytes == 20
