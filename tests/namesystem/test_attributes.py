"""Permission, owner, times, and asking for access."""

from __future__ import annotations

import pytest

from cairnfs.errors import (
    AccessControlException,
    FileNotFoundException,
    IllegalArgumentException,
    InvalidPathException,
)
from cairnfs.namesystem.permissions import Access
from cairnfs.testing.scratch import ScratchClient

# Permission


@pytest.mark.parametrize("path", ["/", "/d", "/d/f"])
def test_a_mode_is_set_with_its_sticky_bit(fs: ScratchClient, path: str) -> None:
    fs.write("/d/f", 1)
    fs.set_permission(path, 0o1421)
    assert fs.info(path).mode == 0o1421


def test_bits_that_no_mode_has_are_dropped_and_negative_ones_refused(fs: ScratchClient) -> None:
    fs.set_permission("/", 0o17755)  # clients mark what has an ACL
    assert fs.info("/").mode == 0o1755
    with pytest.raises(IllegalArgumentException, match="Invalid permission"):
        fs.set_permission("/", -1)


def test_the_mode_of_what_has_an_acl_is_its_mask(fs: ScratchClient) -> None:
    fs.mkdirs("/d", 0o750)
    fs.modify_acl_entries("/d", "user:ada:rwx")
    fs.set_permission("/d", 0o740)
    with pytest.raises(AccessControlException):
        fs.user("ada").get_listing("/d")
    fs.set_permission("/d", 0o750)
    assert fs.user("ada").get_listing("/d") is not None


def test_only_the_owner_and_the_superuser_change_a_mode(fs: ScratchClient) -> None:
    fs.mkdirs("/home", 0o777)
    fs.user("ada").write("/home/f", 1, mode=0o666)
    with pytest.raises(
        AccessControlException,
        match=r"Permission denied\. user=bob is not the owner of inode=/home/f",
    ):
        fs.user("bob").set_permission("/home/f", 0o777)
    fs.user("ada").set_permission("/home/f", 0o600)
    fs.set_permission("/home/f", 0o644)
    assert fs.info("/home/f").mode == 0o644


def test_setting_what_is_set_writes_nothing(fs: ScratchClient) -> None:
    fs.write("/f", 1)
    before = fs.dump()
    fs.set_permission("/f", 0o644)
    fs.set_owner("/f", "hdfs", "supergroup")
    fs.set_owner("/f")
    fs.set_times("/f")
    assert fs.dump() == before


# Owner


def test_the_superuser_gives_to_anybody(fs: ScratchClient) -> None:
    fs.write("/f", 1)
    fs.set_owner("/f", "ada", "staff")
    assert (fs.info("/f").owner, fs.info("/f").group) == ("ada", "staff")
    fs.set_owner("/f", group="users")
    assert (fs.info("/f").owner, fs.info("/f").group) == ("ada", "users")


def test_an_owner_gives_only_to_groups_of_its_own(fs: ScratchClient) -> None:
    fs.mkdirs("/home", 0o777)
    ada = fs.user("ada", "staff")
    ada.write("/home/f", 1)
    ada.set_owner("/home/f", "ada", "staff")
    assert fs.info("/home/f").group == "staff"
    with pytest.raises(AccessControlException, match="User ada does not belong to wheel"):
        ada.set_owner("/home/f", group="wheel")
    with pytest.raises(AccessControlException, match="non-super user cannot change owner"):
        ada.set_owner("/home/f", "bob", "wheel")
    with pytest.raises(AccessControlException, match="user=bob is not the owner"):
        fs.user("bob", "staff").set_owner("/home/f", "bob")
    assert fs.info("/home/f").owner == "ada"


@pytest.mark.parametrize("name", ["a\0b", "\udcff", "x" * 1025])
def test_a_name_that_cannot_be_stored_is_refused(fs: ScratchClient, name: str) -> None:
    for arguments in ((name, None), (None, name)):
        with pytest.raises(IllegalArgumentException):
            fs.set_owner("/", *arguments)


def test_names_need_not_be_ascii(fs: ScratchClient) -> None:
    fs.set_owner("/", "Åsa Ω", "группа\u200b")
    assert (fs.info("/").owner, fs.info("/").group) == ("Åsa Ω", "группа\u200b")


# Times


@pytest.mark.parametrize("path", ["/", "/d", "/d/f"])
def test_times_are_set_and_negative_ones_kept(fs: ScratchClient, path: str) -> None:
    fs.write("/d/f", 1)
    fs.set_times(path, 5, 7)
    assert (fs.info(path).mtime_ms, fs.info(path).atime_ms) == (5, 7)
    fs.set_times(path, -1, 9)
    assert (fs.info(path).mtime_ms, fs.info(path).atime_ms) == (5, 9)
    fs.set_times(path, 0)
    assert (fs.info(path).mtime_ms, fs.info(path).atime_ms) == (0, 9)
    fs.set_times(path, -2, -9)
    assert (fs.info(path).mtime_ms, fs.info(path).atime_ms) == (0, 9)


def test_a_directorys_time_moves_on_after_it_was_set(fs: ScratchClient) -> None:
    fs.mkdirs("/d")
    fs.set_times("/d", 2**62)
    assert fs.info("/d").mtime_ms == 2**62
    fs.create("/d/f")
    assert fs.info("/d").mtime_ms == fs.clock.now_ms()


def test_who_sets_times_must_write(fs: ScratchClient) -> None:
    fs.write("/f", 1, mode=0o646)
    ada = fs.user("ada")
    ada.set_times("/f", 1, 1)
    with pytest.raises(AccessControlException, match='access=WRITE, inode="/"'):
        ada.set_times("/", 1, 1)


def test_a_time_has_64_bits(fs: ScratchClient) -> None:
    for times in ((2**63, 0), (0, 2**63)):
        with pytest.raises(IllegalArgumentException):
            fs.set_times("/", *times)
    fs.set_times("/", 2**63 - 1, 2**63 - 1)


# Access


def test_access_is_told_as_other_calls_would_find_it(fs: ScratchClient) -> None:
    fs.write("/d/f", 1, mode=0o640)
    fs.set_owner("/d/f", "ada", "staff")
    bob = fs.user("bob", "staff")
    bob.check_access("/d/f", Access.READ)
    bob.check_access("/d/f", Access.NONE)
    with pytest.raises(AccessControlException, match='user=bob, access=READ_WRITE, inode="/d/f"'):
        bob.check_access("/d/f", Access.READ_WRITE)
    with pytest.raises(AccessControlException, match='user=eve, access=READ, inode="/d/f"'):
        fs.user("eve").check_access("/d/f", Access.READ)
    fs.check_access("/d/f", Access.ALL)
    fs.set_permission("/d", 0o700)
    with pytest.raises(AccessControlException, match='access=EXECUTE, inode="/d"'):
        bob.check_access("/d/f", Access.NONE)


def test_there_are_eight_kinds_of_access(fs: ScratchClient) -> None:
    for access in (-1, 8):
        with pytest.raises(IllegalArgumentException):
            fs.check_access("/", access)


# What is not there


def test_what_does_not_exist_has_no_attributes(fs: ScratchClient) -> None:
    with pytest.raises(FileNotFoundException, match="Directory/File does not exist /x"):
        fs.set_permission("/x", 0)
    with pytest.raises(FileNotFoundException, match="Directory/File does not exist /x/y"):
        fs.set_owner("/x/y", "ada")
    with pytest.raises(FileNotFoundException, match="File/Directory /x does not exist"):
        fs.set_times("/x", 1, 1)
    with pytest.raises(FileNotFoundException, match="Path not found: /x"):
        fs.check_access("/x", Access.READ)
    with pytest.raises(InvalidPathException, match=r"Invalid path name /\.reserved"):
        fs.set_permission("/.reserved", 0)
    with pytest.raises(InvalidPathException, match=r"Invalid path name /\.reserved"):
        fs.set_owner("/.reserved", "ada")
