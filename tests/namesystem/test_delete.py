"""Deleting: what goes, who may, and what is reclaimed afterwards."""

from __future__ import annotations

import pytest

from cairnfs.errors import (
    AccessControlException,
    InvalidPathException,
    LeaseExpiredException,
    PathIsNotEmptyDirectoryException,
)
from cairnfs.namesystem import delete, reclaim
from cairnfs.namesystem.paths import FsPath
from cairnfs.testing.scratch import ScratchClient
from cairnfs.transaction.calls import CallKey


def test_delete_says_whether_there_was_anything(fs: ScratchClient) -> None:
    fs.write("/f", 10)
    assert fs.delete("/f")
    assert not fs.delete("/f")
    assert not fs.delete("/no/such/path")


def test_a_directory_that_is_not_empty_goes_only_with_everything(fs: ScratchClient) -> None:
    fs.write("/a/b/f", 10)
    with pytest.raises(PathIsNotEmptyDirectoryException, match="/a is non empty"):
        fs.delete("/a")
    assert fs.delete("/a", recursive=True)
    assert fs.names("/") == []
    assert fs.get_content_summary("/").inodes == 1


def test_an_empty_directory_goes_without_recursion(fs: ScratchClient) -> None:
    fs.mkdirs("/a")
    assert fs.delete("/a")


def test_the_root_stays(fs: ScratchClient) -> None:
    assert not fs.delete("/")
    assert not fs.delete("/", recursive=True)
    fs.mkdirs("/a")
    assert not fs.delete("/", recursive=True)
    with pytest.raises(PathIsNotEmptyDirectoryException):
        fs.delete("/")
    with pytest.raises(InvalidPathException):
        fs.delete("/.reserved")
    assert fs.names("/") == ["a"]


def test_a_name_can_be_used_again_at_once(fs: ScratchClient) -> None:
    fs.write("/a/f", 10)
    id = fs.info("/a").id
    fs.delete("/a", recursive=True)
    fs.mkdirs("/a")
    assert fs.info("/a").id != id
    assert fs.names("/a") == []


def test_a_writer_learns_that_its_file_is_gone(fs: ScratchClient) -> None:
    status = fs.create("/a/f")
    fs.add_block("/a/f")
    fs.delete("/a", recursive=True)
    with pytest.raises(FileNotFoundError, match="File does not exist: /a/f"):
        fs.complete("/a/f", file_id=status.id)
    fs.create("/a/f")
    with pytest.raises(LeaseExpiredException, match="is not the lease owner"):
        fs.user("ada").complete("/a/f")


def test_an_open_file_goes_with_its_lease(fs: ScratchClient) -> None:
    fs.create("/empty")
    fs.create("/f")
    fs.add_block("/f")
    assert fs.delete("/empty")
    assert fs.delete("/f")
    assert fs.get_content_summary("/").space_bytes == 0  # the fixture looks for leases of nothing


def test_reclaiming_removes_a_subtree_in_batches(
    fs: ScratchClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reclaim, "RECLAIM_BATCH", 2)
    for number in range(5):
        fs.write(f"/a/b/f{number}", 1, 1, 1)
        fs.create(f"/a/open{number}")
    fs.delete("/a", recursive=True)
    duties = fs.namenode.namenode.duties
    assert fs.namenode.wait(duties.reclaiming.step()) == 1
    assert fs.namenode.wait(duties.reclaiming.step()) > 0
    fs.reclaim()  # and the fixture checks that nothing is left over


def test_who_deletes_must_write_in_the_parent(fs: ScratchClient) -> None:
    fs.mkdirs("/a", 0o755)
    fs.write("/a/f", 1, mode=0o777)
    with pytest.raises(AccessControlException, match='access=WRITE, inode="/a":hdfs:'):
        fs.user("ada").delete("/a/f")
    fs.set_permission("/a", 0o777)
    fs.set_permission("/a/f", 0)
    assert fs.user("ada").delete("/a/f")


def test_who_deletes_a_tree_needs_all_rights_in_it_but_for_empty_directories(
    fs: ScratchClient,
) -> None:
    fs.mkdirs("/a/b/empty", 0o777)
    fs.mkdirs("/a/b/full", 0o777)
    fs.write("/a/b/full/f", 1)
    for path in ("/a", "/a/b", "/a/b/full"):
        fs.set_permission(path, 0o777)
    fs.set_permission("/a/b/empty", 0o700)
    fs.set_permission("/a/b/full", 0o755)
    ada = fs.user("ada")
    with pytest.raises(AccessControlException, match='access=ALL, inode="/a/b/full"'):
        ada.delete("/a/b", recursive=True)
    fs.set_permission("/a/b/full", 0o777)
    assert ada.delete("/a/b", recursive=True)


def test_in_a_sticky_directory_one_deletes_only_ones_own(fs: ScratchClient) -> None:
    fs.mkdirs("/tmp", 0o1777)
    ada, bob = fs.user("ada"), fs.user("bob")
    ada.write("/tmp/ada", 1)
    with pytest.raises(AccessControlException, match="Permission denied by sticky bit: user=bob"):
        bob.delete("/tmp/ada")
    assert ada.delete("/tmp/ada")
    ada.write("/tmp/ada", 1)
    assert fs.delete("/tmp/ada")


def test_the_sticky_bit_holds_inside_a_tree_that_is_deleted(fs: ScratchClient) -> None:
    fs.mkdirs("/a", 0o777)
    fs.mkdirs("/a/tmp", 0o1777)
    fs.user("ada").write("/a/tmp/ada", 1)
    fs.set_permission("/", 0o777)
    with pytest.raises(AccessControlException, match=r'sticky bit.*path="/a/tmp/ada"'):
        fs.user("bob").delete("/a", recursive=True)


def test_a_retry_is_answered_as_the_first_call_was(fs: ScratchClient) -> None:
    fs.mkdirs("/a")
    path, key = FsPath.parse("/a"), CallKey(b"a client", 7)
    namenode = fs.namenode.namenode
    assert fs.namenode.wait(namenode.call(delete.delete, fs.caller, path, False, key=key))
    again = namenode.call(delete.delete, fs.caller, path, False, key=key, is_retry=True)
    assert fs.namenode.wait(again)  # though it is gone
