"""Concat: blocks of some files become the end of another."""

from __future__ import annotations

import pytest

from cairnfs.errors import (
    AccessControlException,
    DSQuotaExceededException,
    FileNotFoundException,
    HadoopIllegalArgumentException,
    IllegalArgumentException,
    IOException,
)
from cairnfs.testing.scratch import ScratchClient

MIB = 1024 * 1024


def block_ids(fs: ScratchClient, path: str) -> list[int]:
    return [located.block.id for located in fs.get_block_locations(path).blocks]


def test_the_blocks_of_the_sources_follow_those_of_the_target(fs: ScratchClient) -> None:
    fs.write("/d/t", 10, 5)
    fs.write("/d/a", 7)
    fs.write("/d/b", 3, 4)
    expected = block_ids(fs, "/d/t") + block_ids(fs, "/d/b") + block_ids(fs, "/d/a")
    target = fs.info("/d/t")
    fs.clock.advance(4)
    fs.concat("/d/t", ["/d/b", "/d/a"])
    assert block_ids(fs, "/d/t") == expected
    found = fs.get_block_locations("/d/t")
    assert [block.offset_bytes for block in found.blocks] == [0, 10, 15, 18, 22]
    status = fs.info("/d/t")
    assert (status.id, status.length_bytes) == (target.id, 29)
    assert status.mtime_ms == fs.info("/d").mtime_ms == fs.clock.now_ms()
    assert fs.names("/d") == ["t"]


def test_nothing_is_left_to_reclaim(fs: ScratchClient) -> None:
    fs.write("/t", 1)
    fs.write("/a", 1)
    fs.concat("/t", ["/a"])
    duties = fs.namenode.namenode.duties
    assert fs.namenode.wait(duties.reclaiming.step()) == 0
    assert fs.info("/t").length_bytes == 2


def test_an_empty_file_can_be_filled(fs: ScratchClient) -> None:
    fs.write("/t")
    fs.write("/a", 5)
    fs.concat("/t", ["/a"])
    assert fs.info("/t").length_bytes == 5


def test_the_targets_replication_counts(fs: ScratchClient) -> None:
    fs.write("/d/t", 10, replication=2)
    fs.write("/d/a", 10, replication=5)
    fs.write("/d/b", 10, replication=1)
    fs.concat("/d/t", ["/d/a", "/d/b"])
    summary = fs.get_content_summary("/d")
    assert (summary.files, summary.length_bytes, summary.space_bytes) == (1, 30, 60)


def test_space_that_is_added_is_charged(fs: ScratchClient) -> None:
    fs.write("/d/t", 10, replication=3)
    fs.write("/d/a", 10, replication=1)
    fs.set_quota("/d", space_quota_bytes=50)
    before = fs.dump()
    with pytest.raises(DSQuotaExceededException):
        fs.concat("/d/t", ["/d/a"])
    assert fs.dump() == before
    fs.set_quota("/d", space_quota_bytes=60)
    fs.concat("/d/t", ["/d/a"])


def test_an_over_full_directory_may_still_be_concatenated(fs: ScratchClient) -> None:
    fs.write("/d/t", 10)
    fs.write("/d/a", 10)
    fs.set_quota("/d", 1, 1)
    fs.concat("/d/t", ["/d/a"])
    assert fs.get_quota_usage("/d").inodes == 2


def test_what_cannot_be_concatenated_is_refused_and_nothing_changes(fs: ScratchClient) -> None:
    fs.write("/d/t", 10, block_size_bytes=MIB)
    fs.write("/d/a", 10, block_size_bytes=MIB)
    fs.write("/d/empty", block_size_bytes=MIB)
    fs.write("/d/large", 1, block_size_bytes=2 * MIB)
    fs.write("/e/a", 10, block_size_bytes=MIB)
    fs.mkdirs("/d/sub")
    fs.create("/d/open", block_size_bytes=MIB)
    fs.add_block("/d/open")
    before = fs.dump()
    for target, sources, error, message in [
        ("/d/t", [], IllegalArgumentException, "No sources given"),
        ("/d/x", ["/d/a"], FileNotFoundException, "File does not exist: /d/x"),
        ("/d/sub", ["/d/a"], FileNotFoundException, "Path is not a file: /d/sub"),
        ("/d/open", ["/d/a"], HadoopIllegalArgumentException, "target file /d/open is under con"),
        ("/d/t", ["/d/x"], FileNotFoundException, "File does not exist: /d/x"),
        ("/d/t", ["/d/sub"], FileNotFoundException, "Path is not a file: /d/sub"),
        ("/d/t", ["/e/a"], HadoopIllegalArgumentException, "is not in the same directory with"),
        ("/d/t", ["/d/t"], HadoopIllegalArgumentException, "/d/t is the same with the target"),
        ("/d/t", ["/d/empty"], HadoopIllegalArgumentException, "invalid or empty or underConst"),
        ("/d/t", ["/d/open"], HadoopIllegalArgumentException, "invalid or empty or underConstr"),
        ("/d/t", ["/d/large"], HadoopIllegalArgumentException, "block size 2097152 which is gre"),
        ("/d/t", ["/d/a", "/d/a"], HadoopIllegalArgumentException, "at least two of the source"),
        ("/d/t", ["/d/a", "/d/x"], FileNotFoundException, "File does not exist: /d/x"),
        ("/d/t", ["/.reserved/raw/d/a"], IOException, "Concat operation doesn't support"),
        ("/.reserved/.inodes/5", ["/d/a"], IOException, "Concat operation doesn't support"),
    ]:
        with pytest.raises(error, match=message):
            fs.concat(target, sources)
    assert fs.dump() == before


def test_who_concatenates_writes_the_target_reads_the_sources_and_removes_them(
    fs: ScratchClient,
) -> None:
    fs.mkdirs("/d", 0o777)
    fs.write("/d/t", 1, mode=0o644)
    fs.write("/d/a", 1, mode=0o600)
    ada = fs.user("ada")
    for path, mode, message in [
        ("/d/t", 0o666, 'access=WRITE, inode="/d/t"'),
        ("/d/a", 0o644, 'access=READ, inode="/d/a"'),
    ]:
        with pytest.raises(AccessControlException, match=message):
            ada.concat("/d/t", ["/d/a"])
        fs.set_permission(path, mode)
    fs.set_permission("/d", 0o1777)
    with pytest.raises(AccessControlException, match="Permission denied by sticky bit"):
        ada.concat("/d/t", ["/d/a"])
    fs.set_permission("/d", 0o755)
    with pytest.raises(AccessControlException, match='access=WRITE, inode="/d"'):
        ada.concat("/d/t", ["/d/a"])
    fs.set_permission("/d", 0o777)
    ada.concat("/d/t", ["/d/a"])


def test_a_concatenated_file_can_be_deleted_and_moved(fs: ScratchClient) -> None:
    fs.write("/d/t", 1, 1)
    fs.write("/d/a", 1, 1)
    fs.concat("/d/t", ["/d/a"])
    assert fs.rename("/d/t", "/t")
    assert fs.get_content_summary("/").length_bytes == 4
    assert fs.delete("/t")


def test_what_snapshots_have_stays_as_it_was(fs: ScratchClient) -> None:
    for name, lengths in {"t": (10, 5), "a": (7,), "b": (3, 4)}.items():
        fs.write(f"/d/{name}", *lengths)
    fs.allow_snapshot("/d")
    before = {name: block_ids(fs, f"/d/{name}") for name in "tab"}
    fs.create_snapshot("/d", "s")
    fs.concat("/d/t", ["/d/a", "/d/b"])
    fs.reclaim()
    for name, ids in before.items():
        assert block_ids(fs, f"/d/.snapshot/s/{name}") == ids
    assert [fs.info(f"/d/.snapshot/s/{name}").length_bytes for name in "tab"] == [15, 7, 7]
    joined = before["t"] + before["a"] + before["b"]
    assert block_ids(fs, "/d/t") == joined
    fs.delete("/d/t")
    fs.reclaim()
    for name, ids in before.items():
        assert block_ids(fs, f"/d/.snapshot/s/{name}") == ids
    fs.delete_snapshot("/d", "s")


def test_a_clone_follows_its_original_in_one_file(fs: ScratchClient) -> None:
    """A block is in the file twice, and goes with the last of the two."""
    fs.write("/d/f", 10, 5)
    fs.allow_snapshot("/d/f")
    fs.create_snapshot("/d/f", "s")
    fs.clone_snapshot("/d/f", "s", "/d/g")
    fs.delete_snapshot("/d/f", "s")
    fs.concat("/d/f", ["/d/g"])
    blocks = [each.block for each in fs.get_block_locations("/d/f").blocks]
    assert [block.length_bytes for block in blocks] == [10, 5, 10, 5]
    assert blocks[0].id == blocks[2].id
    fs.truncate("/d/f", 10)
    fs.reclaim()
    assert [each.block.id for each in fs.get_block_locations("/d/f").blocks] == [blocks[0].id]
    fs.disallow_snapshot("/d/f")
    fs.delete("/d", recursive=True)
