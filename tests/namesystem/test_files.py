"""Files: create, blocks, leases, replication, block locations."""

from __future__ import annotations

import msgspec
import pytest

from cairnfs.blocks.records import Block, BlockId, BlockState, GenerationStamp
from cairnfs.errors import (
    AccessControlException,
    AlreadyBeingCreatedException,
    FileAlreadyExistsException,
    FileNotFoundException,
    IllegalArgumentException,
    InvalidPathException,
    IOException,
    LeaseExpiredException,
    ParentNotDirectoryException,
)
from cairnfs.namesystem import file_blocks
from cairnfs.namesystem.leases import SOFT_LIMIT_MS
from cairnfs.testing.scratch import ScratchClient

MIB = 1024 * 1024


def longer(block: Block, length_bytes: int) -> Block:
    return msgspec.structs.replace(block, length_bytes=length_bytes)


# create


def test_a_new_file_is_open_and_empty(fs: ScratchClient) -> None:
    status = fs.create("/f", 0o640, replication=2, block_size_bytes=MIB)
    assert status == fs.info("/f")
    assert status.under_construction
    assert (status.length_bytes, status.replication, status.block_size_bytes) == (0, 2, MIB)
    assert (status.mode, status.owner) == (0o640, "hdfs")
    assert status.mtime_ms == status.atime_ms == fs.clock.now_ms()
    assert not fs.is_file_closed("/f")


def test_create_makes_parents_as_their_own_parent_is(fs: ScratchClient) -> None:
    fs.mkdirs("/a", 0o1555)
    fs.create("/a/b/c/f", 0o600)
    assert fs.info("/a/b").mode == fs.info("/a/b/c").mode == 0o755
    with pytest.raises(FileNotFoundException, match="Parent directory doesn't exist: /x"):
        fs.create("/x/f", create_parents=False)


def test_a_file_is_not_created_over_another_unless_asked(fs: ScratchClient) -> None:
    old = fs.write("/f", 10)
    with pytest.raises(
        FileAlreadyExistsException, match=r"/f for client 127\.0\.0\.1 already exists"
    ):
        fs.create("/f")
    new = fs.create("/f", overwrite=True)
    assert new.id != old.id
    assert fs.get_content_summary("/").length_bytes == 0


def test_a_directory_is_never_overwritten(fs: ScratchClient) -> None:
    fs.mkdirs("/d")
    for path in ("/d", "/"):
        with pytest.raises(FileAlreadyExistsException, match="already exists as a directory"):
            fs.create(path, overwrite=True)
    with pytest.raises(FileAlreadyExistsException):
        fs.user("ada").create("/")


def test_nothing_is_created_below_a_file(fs: ScratchClient) -> None:
    fs.create("/f")
    with pytest.raises(ParentNotDirectoryException, match=r"/f \(is not a directory\)"):
        fs.create("/f/g")


def test_who_creates_must_write_in_the_nearest_directory(fs: ScratchClient) -> None:
    with pytest.raises(AccessControlException, match='access=WRITE, inode="/"'):
        fs.user("ada").create("/a/f")


def test_who_overwrites_must_write_the_file_and_the_directory(fs: ScratchClient) -> None:
    fs.mkdirs("/tmp", 0o1777)
    fs.write("/tmp/f", 1, mode=0o644)
    ada = fs.user("ada")
    with pytest.raises(AccessControlException, match='access=WRITE, inode="/tmp/f"'):
        ada.create("/tmp/f", overwrite=True)
    fs.set_permission("/tmp/f", 0o666)
    assert ada.create("/tmp/f", overwrite=True).owner == "ada"  # HDFS asks for no sticky bit here


def test_a_file_that_another_client_writes_is_refused_in_other_words(fs: ScratchClient) -> None:
    fs.create("/f")
    with pytest.raises(AlreadyBeingCreatedException, match="is already the current lease holder"):
        fs.create("/f")
    other = fs.user("hdfs")
    with pytest.raises(AlreadyBeingCreatedException, match="lease is currently owned by DFSCl"):
        other.create("/f")
    fs.clock.advance(SOFT_LIMIT_MS)
    fs.renew_lease()
    fs.clock.advance(SOFT_LIMIT_MS)
    with pytest.raises(AlreadyBeingCreatedException):
        other.create("/f")
    fs.clock.advance(1)
    with pytest.raises(FileAlreadyExistsException):  # it is closed first
        other.create("/f")
    assert fs.is_file_closed("/f")


def test_overwriting_an_open_file_takes_it_from_its_writer(fs: ScratchClient) -> None:
    old = fs.create("/f")
    block = fs.add_block("/f").block
    other = fs.user("hdfs")
    other.create("/f", overwrite=True)
    for file_id in (0, old.id):
        with pytest.raises((LeaseExpiredException, FileNotFoundException)):
            fs.complete("/f", block, file_id)
    assert other.complete("/f")


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"block_size_bytes": MIB - 1}, IOException, "is less than configured minimum value"),
        ({"block_size_bytes": -1}, IOException, "is less than configured minimum value"),
        ({"block_size_bytes": 2**48}, IllegalArgumentException, "PREFERRED_BLOCK_SIZE"),
        ({"replication": 0}, IOException, "less than the required minimum of 1"),
        ({"replication": -3}, IOException, "less than the required minimum of 1"),
        ({"replication": 513}, IOException, "exceeds maximum of 512 for /f, clientName=127"),
        ({"mode": -1}, IllegalArgumentException, "Invalid permission"),
    ],
)
def test_numbers_out_of_bounds_are_refused(
    fs: ScratchClient, arguments: dict[str, int], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        fs.create("/f", **arguments)  # type: ignore[arg-type]
    assert not fs.exists("/f")


def test_no_file_has_a_reserved_name(fs: ScratchClient) -> None:
    for path in ("/.reserved", "/.reserved/x", "/a:b"):
        with pytest.raises(InvalidPathException, match=f"Invalid path name {path}"):
            fs.create(path)


# Blocks


def test_blocks_are_charged_in_full_until_their_length_is_known(fs: ScratchClient) -> None:
    fs.create("/a/f", replication=2, block_size_bytes=MIB)
    first = fs.add_block("/a/f")
    assert (first.offset_bytes, first.block.state) == (0, BlockState.UNDER_CONSTRUCTION)
    assert fs.get_content_summary("/a").space_bytes == 2 * MIB
    second = fs.add_block("/a/f", longer(first.block, 1000))
    assert second.offset_bytes == 1000
    assert second.block.id != first.block.id
    assert second.block.generation_stamp != first.block.generation_stamp
    summary = fs.get_content_summary("/a")
    assert (summary.length_bytes, summary.space_bytes) == (1000, 2000 + 2 * MIB)
    fs.clock.advance(3)
    assert fs.complete("/a/f", longer(second.block, 24))
    summary = fs.get_content_summary("/a")
    assert (summary.length_bytes, summary.space_bytes) == (1024, 2048)
    status = fs.info("/a/f")
    assert (status.length_bytes, status.under_construction) == (1024, False)
    assert status.mtime_ms == fs.clock.now_ms()


def test_a_repeated_request_gets_the_same_block(fs: ScratchClient) -> None:
    fs.create("/f")
    first = fs.add_block("/f")
    assert fs.add_block("/f") == first
    second = fs.add_block("/f", longer(first.block, 5))
    assert fs.add_block("/f", longer(first.block, 5)) == second


def test_a_request_after_a_wrong_block_is_refused(fs: ScratchClient) -> None:
    fs.create("/f")
    stranger = Block(BlockId(1), GenerationStamp(1), 0, BlockState.COMPLETE)
    with pytest.raises(IOException, match=r"'previous' block blk_1_1 does not match .* null"):
        fs.add_block("/f", stranger)
    first = fs.add_block("/f").block
    with pytest.raises(IOException, match="'previous' block blk_1_1 does not match actual last"):
        fs.add_block("/f", stranger)
    fs.add_block("/f", longer(first, 5))
    with pytest.raises(IOException, match="does not match actual last block"):
        fs.add_block("/f")


@pytest.mark.parametrize("length_bytes", [-1, MIB + 1, 2**70])
def test_a_block_is_not_longer_than_its_size_nor_negative(
    fs: ScratchClient, length_bytes: int
) -> None:
    fs.create("/f", block_size_bytes=MIB)
    block = longer(fs.add_block("/f").block, length_bytes)
    for call in (fs.add_block, fs.complete):
        with pytest.raises(IOException, match="bytes long"):
            call("/f", block)
    assert fs.complete("/f", longer(block, MIB))


def test_only_the_last_block_completes_a_file(fs: ScratchClient) -> None:
    fs.create("/f")
    block = fs.add_block("/f").block
    assert not fs.complete("/f")  # nobody says how long the block is
    other = msgspec.structs.replace(block, id=BlockId(1))
    with pytest.raises(IOException, match="Trying to commit inconsistent block: id = 1"):
        fs.complete("/f", other)
    stale = msgspec.structs.replace(block, generation_stamp=GenerationStamp(1))
    with pytest.raises(IOException, match="Commit block with mismatching GS"):
        fs.complete("/f", stale)
    assert not fs.is_file_closed("/f")


def test_a_file_may_be_completed_twice_by_whoever_knows_its_last_block(fs: ScratchClient) -> None:
    fs.create("/f")
    block = longer(fs.add_block("/f").block, 5)
    assert fs.complete("/f", block)
    assert fs.complete("/f", block)
    with pytest.raises(LeaseExpiredException, match="File is not open for writing: /f"):
        fs.complete("/f")
    with pytest.raises(LeaseExpiredException, match="File is not open for writing: /f"):
        fs.add_block("/f", block)


def test_an_abandoned_block_is_charged_to_nobody(fs: ScratchClient) -> None:
    fs.create("/f", block_size_bytes=MIB)
    block = fs.add_block("/f").block
    fs.abandon_block("/f", block)
    assert fs.get_content_summary("/").space_bytes == 0
    fs.abandon_block("/f", block)  # it is nobody's any more
    again = fs.add_block("/f").block
    assert again.id != block.id
    assert fs.complete("/f", longer(again, 1))


def test_a_finished_block_is_not_abandoned(fs: ScratchClient) -> None:
    fs.create("/f")
    first = longer(fs.add_block("/f").block, 5)
    second = fs.add_block("/f", first).block
    fs.abandon_block("/f", first)
    fs.abandon_block("/f", second)
    assert fs.complete("/f", first)
    assert fs.info("/f").length_bytes == 5


def test_a_file_has_at_most_so_many_blocks(
    fs: ScratchClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_blocks, "BLOCKS_MAX", 2)
    fs.create("/f")
    last = fs.write_blocks("/f", 1, 1)
    with pytest.raises(IOException, match="File has reached the limit on maximum number of blo"):
        fs.add_block("/f", last)


def test_only_the_lease_holder_writes(fs: ScratchClient) -> None:
    id = fs.create("/f").id
    block = fs.add_block("/f").block
    other = fs.user("hdfs")
    for file_id in (0, id):
        with pytest.raises(LeaseExpiredException, match="is not the lease owner"):
            other.add_block("/f", block, file_id)
        with pytest.raises(LeaseExpiredException, match="is not the lease owner"):
            other.abandon_block("/f", block, file_id)
        with pytest.raises(LeaseExpiredException, match="is not the lease owner"):
            other.complete("/f", block, file_id)


def test_only_a_file_is_written(fs: ScratchClient) -> None:
    fs.mkdirs("/d")
    with pytest.raises(LeaseExpiredException, match="INode is not a regular file: /d"):
        fs.add_block("/d")
    for file_id in (0, 1, 2**63, 2**64 - 1, -5):
        with pytest.raises(FileNotFoundException, match=r"File does not exist: /nothing \(inode"):
            fs.add_block("/nothing", file_id=file_id)


def test_a_writer_keeps_its_file_through_renames_and_closed_doors(fs: ScratchClient) -> None:
    fs.mkdirs("/home", 0o777)
    ada = fs.user("ada")
    id = ada.create("/home/f").id
    block = ada.add_block("/home/f", file_id=id).block
    fs.rename("/home", "/away")
    fs.set_permission("/away", 0o700)
    fs.create("/home")  # a file is now where the directory was
    block = ada.add_block("/home/f", longer(block, 7), id).block
    assert ada.complete("/home/f", longer(block, 5), id)
    assert ada.complete("/home/f", longer(block, 5), id)
    assert fs.info("/away/f").length_bytes == 12


# Block locations


def located(fs: ScratchClient, path: str, offset: int, length: int) -> list[tuple[int, int]]:
    found = fs.get_block_locations(path, offset, length).blocks
    return [(block.offset_bytes, block.block.length_bytes) for block in found]


def test_the_blocks_of_a_range_are_those_that_hold_it(fs: ScratchClient) -> None:
    fs.write("/f", 10, 20, 30)
    everything = [(0, 10), (10, 20), (30, 30)]
    assert located(fs, "/f", 0, 2**63 - 1) == everything
    assert located(fs, "/f", 0, 0) == everything[:1]
    assert located(fs, "/f", 9, 2) == everything[:2]
    assert located(fs, "/f", 10, 20) == everything[1:2]
    assert located(fs, "/f", 59, 1) == everything[2:]
    assert located(fs, "/f", 60, 1) == []
    whole = fs.get_block_locations("/f", 60)
    assert (whole.length_bytes, whole.under_construction, whole.last_is_complete) == (60, 0, 1)
    assert whole.last is not None
    assert whole.last.offset_bytes == 30


def test_a_block_that_is_being_written_is_shown_but_not_in_the_length(fs: ScratchClient) -> None:
    fs.create("/f")
    assert fs.get_block_locations("/f").last is None
    first = fs.add_block("/f").block
    assert located(fs, "/f", 0, 1) == [(0, 0)]
    fs.add_block("/f", longer(first, 10))
    found = fs.get_block_locations("/f")
    assert (found.length_bytes, found.under_construction) == (10, True)
    assert [block.offset_bytes for block in found.blocks] == [0, 10]
    assert not found.last_is_complete


def test_negative_ranges_are_refused(fs: ScratchClient) -> None:
    fs.create("/f")
    with pytest.raises(IllegalArgumentException, match="Negative offset is not supported"):
        fs.get_block_locations("/f", -1)
    with pytest.raises(IllegalArgumentException, match="Negative length is not supported"):
        fs.get_block_locations("/f", 0, -1)


def test_who_reads_must_read_the_file_and_pass_its_directories(fs: ScratchClient) -> None:
    fs.write("/d/f", 1, mode=0o600)
    ada = fs.user("ada")
    with pytest.raises(AccessControlException, match='access=READ, inode="/d/f"'):
        ada.get_block_locations("/d/f")
    fs.set_permission("/d/f", 0o644)
    fs.set_permission("/d", 0o700)
    with pytest.raises(AccessControlException, match='access=EXECUTE, inode="/d"'):
        ada.get_block_locations("/d/f")
    with pytest.raises(AccessControlException, match='access=EXECUTE, inode="/d"'):
        ada.get_block_locations("/d/g")  # whether it exists is not for her to know
    for call in (fs.get_block_locations, fs.is_file_closed):
        with pytest.raises(FileNotFoundException, match="Path is not a file: /d"):
            call("/d")


def test_reading_is_noted_once_an_hour(fs: ScratchClient) -> None:
    fs.write("/f", 1)
    made_ms = fs.clock.now_ms()
    fs.clock.advance(3_600_000)
    fs.get_block_locations("/f")
    assert fs.info("/f").atime_ms == made_ms
    fs.clock.advance(1)
    fs.get_block_locations("/f")
    assert fs.info("/f").atime_ms == fs.clock.now_ms()
    assert fs.info("/f").mtime_ms == made_ms


# Replication


def test_more_replicas_take_more_space(fs: ScratchClient) -> None:
    fs.write("/a/f", 100, replication=3)
    assert fs.set_replication("/a/f", 5)
    assert fs.get_content_summary("/a").space_bytes == 500
    assert fs.set_replication("/a/f", 1)
    assert fs.get_content_summary("/").space_bytes == 100
    assert fs.info("/a/f").replication == 1


def test_an_open_block_is_charged_with_the_new_replication(fs: ScratchClient) -> None:
    fs.create("/f", block_size_bytes=MIB, replication=1)
    block = fs.add_block("/f").block
    fs.set_replication("/f", 4)
    assert fs.get_content_summary("/").space_bytes == 4 * MIB
    fs.complete("/f", longer(block, 10))
    assert fs.get_content_summary("/").space_bytes == 40


def test_only_files_have_replicas(fs: ScratchClient) -> None:
    fs.mkdirs("/d")
    assert not fs.set_replication("/d", 2)
    assert not fs.set_replication("/nothing", 2)
    for replication in (0, -1, 513):
        with pytest.raises(IOException, match="Requested replication factor"):
            fs.set_replication("/d", replication)


def test_who_sets_replication_must_write_the_file(fs: ScratchClient) -> None:
    fs.write("/f", 1)
    with pytest.raises(AccessControlException, match='access=WRITE, inode="/f"'):
        fs.user("ada").set_replication("/f", 2)
