"""Symbolic links: made, read, met on the way, and moved."""

from __future__ import annotations

import pytest

from cairnfs.errors import (
    AccessControlException,
    FileAlreadyExistsException,
    FileNotFoundException,
    IllegalArgumentException,
    InvalidPathException,
    IOException,
    UnresolvedPathException,
)
from cairnfs.namesystem.inodes import Kind
from cairnfs.testing.scratch import ScratchClient


def test_a_link_says_where_it_points(fs: ScratchClient) -> None:
    fs.mkdirs("/a")
    fs.create_symlink("/b/c", "/a/link")
    assert fs.get_link_target("/a/link") == "/b/c"
    status = fs.info("/a/link")
    assert (status.kind, status.mode, status.length_bytes) == (Kind.SYMLINK, 0o777, 0)
    assert status.mtime_ms == status.atime_ms == fs.clock.now_ms()


def test_a_link_belongs_to_its_maker_and_to_the_directorys_group(fs: ScratchClient) -> None:
    fs.mkdirs("/a", 0o777)
    fs.set_owner("/a", group="staff")
    fs.user("ada", "users").create_symlink("/x", "/a/link")
    assert (fs.info("/a/link").owner, fs.info("/a/link").group) == ("ada", "staff")


def test_a_link_inherits_no_acl(fs: ScratchClient) -> None:
    fs.mkdirs("/a")
    fs.set_acl("/a", "user::rwx,group::r-x,other::r-x,default:user:ada:rwx")
    fs.create_symlink("/x", "/a/link")
    assert not fs.info("/a/link").has_acl
    assert fs.info("/a/link").mode == 0o777


def test_missing_parents_are_made_as_their_own_parent_is(fs: ScratchClient) -> None:
    fs.mkdirs("/a", 0o1570)
    fs.create_symlink("/x", "/a/b/link")
    assert fs.info("/a/b").mode == 0o770


def test_without_create_parents_the_parent_must_exist(fs: ScratchClient) -> None:
    with pytest.raises(FileNotFoundException, match="Parent directory doesn't exist: /a"):
        fs.create_symlink("/x", "/a/link", create_parents=False)


@pytest.mark.parametrize("taken", ["/file", "/directory", "/link"])
def test_a_name_that_is_taken_is_refused(fs: ScratchClient, taken: str) -> None:
    fs.create("/file")
    fs.mkdirs("/directory")
    fs.create_symlink("/x", "/link")
    with pytest.raises(IOException, match=f"failed to create link {taken} either because"):
        fs.create_symlink("/y", taken)


def test_below_a_file_there_is_no_place_for_a_link(fs: ScratchClient) -> None:
    fs.create("/file")
    with pytest.raises(AccessControlException, match=r"/file \(is not a directory\)"):
        fs.create_symlink("/x", "/file/link")


def test_who_may_not_write_makes_no_link(fs: ScratchClient) -> None:
    with pytest.raises(AccessControlException, match='user=ada, access=WRITE, inode="/"'):
        fs.user("ada").create_symlink("/x", "/link")


@pytest.mark.parametrize("target", ["", "/.reserved", "/.reserved/raw/a"])
def test_a_link_points_to_nothing_reserved(fs: ScratchClient, target: str) -> None:
    with pytest.raises(InvalidPathException, match="Invalid target name"):
        fs.create_symlink(target, "/link")


@pytest.mark.parametrize("target", ["a\0b", "\ud800", "x" * 8001])
def test_a_target_that_cannot_be_stored_is_refused(fs: ScratchClient, target: str) -> None:
    with pytest.raises(IllegalArgumentException):
        fs.create_symlink(target, "/link")
    assert not fs.exists("/link")


def test_a_link_that_is_too_deep_is_refused(fs: ScratchClient) -> None:
    with pytest.raises(IOException, match="Symlink path exceeds 8000 character limit"):
        fs.create_symlink("/x", "/d" * 1001)


def test_a_call_that_meets_a_link_tells_the_client_where_to_go(fs: ScratchClient) -> None:
    fs.create_symlink("/real", "/link")
    fs.create_symlink("sub/other", "/relative")
    for call in (fs.get_file_info, fs.mkdirs, fs.create, fs.get_listing, fs.is_file_closed):
        with pytest.raises(UnresolvedPathException, match=r"^/real$"):
            call("/link")
        with pytest.raises(UnresolvedPathException, match=r"^/real/a/b$"):
            call("/link/a/b")
        with pytest.raises(UnresolvedPathException, match=r"^/sub/other$"):
            call("/relative")
    assert fs.get_link_target("/link/a") == "/real/a"


def test_only_a_link_has_a_target(fs: ScratchClient) -> None:
    fs.create("/file")
    with pytest.raises(IOException, match="Path /file is not a symbolic link"):
        fs.get_link_target("/file")
    with pytest.raises(FileNotFoundException, match="File does not exist: /nothing"):
        fs.get_link_target("/nothing")


def test_delete_and_rename_mean_the_link_not_its_target(fs: ScratchClient) -> None:
    fs.mkdirs("/real")
    fs.create_symlink("/real", "/link")
    assert fs.rename("/link", "/moved")
    assert fs.get_link_target("/moved") == "/real"
    assert fs.delete("/moved")
    assert fs.names("/") == ["real"]


def test_a_link_is_not_renamed_to_its_own_target(fs: ScratchClient) -> None:
    fs.create_symlink("/target", "/link")
    assert not fs.rename("/link", "/target")
    with pytest.raises(FileAlreadyExistsException, match="Cannot rename symlink /link to its tar"):
        fs.rename2("/link", "/target")


def test_a_link_counts_as_one_inode(fs: ScratchClient) -> None:
    fs.mkdirs("/a")
    fs.set_quota("/a", 2)
    fs.create_symlink("/x", "/a/link")
    summary = fs.get_content_summary("/a")
    assert (summary.symlinks, summary.inodes, summary.length_bytes) == (1, 2, 0)
    assert fs.get_content_summary("/a/link").symlinks == 1
