"""Extended attributes: who may see and set them, how many, and what keeps them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.namesystem.test_rollback import clean

from cairnfs.errors import (
    AccessControlException,
    FileNotFoundException,
    HadoopIllegalArgumentException,
    HdfsError,
    IllegalArgumentException,
    IOException,
    SnapshotAccessControlException,
    UnresolvedPathException,
    UnsupportedOperationException,
    XAttrNotFoundException,
)
from cairnfs.namesystem.snapshot_diff import DiffKind
from cairnfs.namesystem.xattrs import FLAG_CREATE, FLAG_REPLACE
from cairnfs.testing.scratch import ScratchClient

UNREADABLE = "security.hdfs.unreadable.by.superuser"


def test_attributes_are_set_read_and_removed(fs: ScratchClient) -> None:
    fs.write("/f", 10)
    assert fs.get_xattrs("/f") == {}
    assert fs.list_xattrs("/f") == []
    fs.set_xattr("/f", "user.colour", b"red")
    fs.set_xattr("/f", "user.author", b"\x00\xff")
    fs.set_xattr("/f", "trusted.empty")
    assert fs.get_xattrs("/f") == {
        "user.author": b"\x00\xff",
        "user.colour": b"red",
        "trusted.empty": b"",
    }
    assert fs.list_xattrs("/f") == ["user.author", "user.colour", "trusted.empty"]
    assert fs.get_xattrs("/f", ["trusted.empty", "user.colour"]) == {
        "trusted.empty": b"",
        "user.colour": b"red",
    }
    fs.remove_xattr("/f", "user.colour")
    assert fs.list_xattrs("/f") == ["user.author", "trusted.empty"]
    fs.remove_xattr("/f", "user.author")
    fs.remove_xattr("/f", "trusted.empty")
    assert fs.dump()["/f"].inode.xattrs is None


def test_a_name_space_is_written_as_one_likes_a_name_is_not(fs: ScratchClient) -> None:
    fs.mkdirs("/d")
    fs.set_xattr("/d", "USER.Colour", b"red")
    assert fs.get_xattrs("/d", ["user.Colour"]) == {"user.Colour": b"red"}
    with pytest.raises(XAttrNotFoundException):
        fs.get_xattrs("/d", ["user.colour"])


def test_neither_times_nor_children_change_with_an_attribute(fs: ScratchClient) -> None:
    fs.write("/d/f", 10)
    before = [fs.info("/d"), fs.info("/d/f")]
    fs.clock.advance(10_000)
    for path in ("/d", "/d/f"):
        fs.set_xattr(path, "user.a", b"1")
        fs.set_xattr(path, "user.b", b"2")
        fs.remove_xattr(path, "user.b")
    assert [fs.info("/d"), fs.info("/d/f")] == before
    fs.mkdirs("/d/new")
    assert fs.get_xattrs("/d/new") == {}


def test_flags_say_what_may_be_there(fs: ScratchClient) -> None:
    fs.mkdirs("/d")
    with pytest.raises(IOException, match=r"a does not exist\. The CREATE flag must be specified"):
        fs.set_xattr("/d", "user.a", b"1", FLAG_REPLACE)
    fs.set_xattr("/d", "user.a", b"1", FLAG_CREATE)
    with pytest.raises(IOException, match=r"a already exists\. The REPLACE flag must be specified"):
        fs.set_xattr("/d", "user.a", b"2", FLAG_CREATE)
    fs.set_xattr("/d", "user.a", b"2", FLAG_REPLACE)
    fs.set_xattr("/d", "user.a", b"3", FLAG_CREATE | FLAG_REPLACE)
    with pytest.raises(HadoopIllegalArgumentException, match="A flag must be specified"):
        fs.set_xattr("/d", "user.a", b"4", 0)
    assert fs.get_xattrs("/d") == {"user.a": b"3"}


def test_what_is_not_there_is_said(fs: ScratchClient) -> None:
    fs.mkdirs("/d")
    fs.set_xattr("/d", "user.a", b"1")
    with pytest.raises(XAttrNotFoundException, match="At least one of the attributes provided"):
        fs.get_xattrs("/d", ["user.a", "user.b"])
    with pytest.raises(IOException, match="No matching attributes found for remove operation"):
        fs.remove_xattr("/d", "user.b")
    for call in (
        lambda: fs.get_xattrs("/missing"),
        lambda: fs.list_xattrs("/missing"),
        lambda: fs.set_xattr("/missing", "user.a", b"1"),
        lambda: fs.remove_xattr("/missing", "user.a"),
    ):
        with pytest.raises(FileNotFoundException, match="cannot find /missing"):
            call()


def test_an_inode_has_no_more_than_32(fs: ScratchClient) -> None:
    fs.mkdirs("/d")
    for number in range(31):
        fs.set_xattr("/d", f"user.{number}", b"x")
    fs.set_xattr("/d", "trusted.last", b"x")
    for name in ("user.more", "trusted.more"):
        with pytest.raises(IOException, match="would exceed limit of 32"):
            fs.set_xattr("/d", name, b"x")
    fs.set_xattr("/d", "user.0", b"replaced")
    fs.set_xattr("/.reserved/raw/d", "raw.more", b"not counted")
    fs.remove_xattr("/d", "trusted.last")
    fs.set_xattr("/d", "user.more", b"x")
    assert len(fs.list_xattrs("/d")) == 32


def test_a_name_with_its_value_is_no_longer_than_16384_bytes(fs: ScratchClient) -> None:
    fs.mkdirs("/d")
    fs.set_xattr("/d", "user.abcd", b"x" * 16380)
    fs.set_xattr("/d", "user." + "ü" * 8192)
    too_big = (
        "The XAttr is too big. The maximum combined size of the name and value is 16384, but the"
        " total size is 16385"
    )
    for name, value in (("user.abcd", b"x" * 16381), ("user." + "ü" * 8192, b"x")):
        with pytest.raises(HadoopIllegalArgumentException, match=too_big):
            fs.set_xattr("/d", name, value)
    assert len(fs.get_xattrs("/d")["user.abcd"]) == 16380


@pytest.mark.parametrize(
    "wrong",
    [
        lambda fs: fs.set_xattr("/d", "colour", b"red"),
        lambda fs: fs.set_xattr("/d", "wrong.colour", b"red"),
        lambda fs: fs.set_xattr("/d", "user", b"red"),
        lambda fs: fs.set_xattr("/d", "user.", b"red"),
        lambda fs: fs.set_xattr("/d", ".colour", b"red"),
        lambda fs: fs.set_xattr("/d", "", b"red"),
        lambda fs: fs.get_xattrs("/d", ["colour"]),
        lambda fs: fs.remove_xattr("/d", "user."),
        lambda fs: fs.set_xattr("/d", "user.\ud800", b"red"),
        lambda fs: fs.set_xattr("/d", "user.a\0b", b"red"),
        lambda fs: fs.set_xattr("/d", "user.a", "text"),
        lambda fs: fs.set_xattr("/d", "user.a", 5),
    ],
)
def test_what_is_no_attribute_is_refused(fs: ScratchClient, wrong: Callable[[Any], Any]) -> None:
    fs.mkdirs("/d")
    before = fs.dump()
    with pytest.raises(IllegalArgumentException):
        wrong(fs)
    assert fs.dump() == before


# Who may


def test_user_attributes_are_for_those_who_may_read_and_write(fs: ScratchClient) -> None:
    ada, bob = fs.user("ada"), fs.user("bob")
    fs.mkdirs("/open", 0o777)
    ada.write("/open/f", 10, mode=0o644)
    ada.set_xattr("/open/f", "user.a", b"1")
    assert bob.get_xattrs("/open/f", ["user.a"]) == {"user.a": b"1"}
    for change in (
        lambda: bob.set_xattr("/open/f", "user.a", b"2"),
        lambda: bob.remove_xattr("/open/f", "user.a"),
    ):
        with pytest.raises(AccessControlException, match="user=bob, access=WRITE"):
            change()
    ada.set_permission("/open/f", 0o200)
    for look in (
        lambda: ada.get_xattrs("/open/f"),
        lambda: ada.list_xattrs("/open/f"),
        lambda: ada.get_xattrs("/open/f", ["user.missing"]),
    ):
        with pytest.raises(AccessControlException, match="user=ada, access=READ"):
            look()
    ada.set_xattr("/open/f", "user.a", b"2")
    assert fs.get_xattrs("/open/f") == {"user.a": b"2"}


def test_nobody_looks_through_a_directory_that_they_may_not_enter(fs: ScratchClient) -> None:
    bob = fs.user("bob")
    fs.mkdirs("/closed", 0o744)
    fs.write("/closed/f", 10, mode=0o666)
    for call in (
        lambda: bob.get_xattrs("/closed/f"),
        lambda: bob.list_xattrs("/closed/missing"),
        lambda: bob.set_xattr("/closed/f", "user.a", b"1"),
        lambda: bob.remove_xattr("/closed/f", "user.a"),
    ):
        with pytest.raises(AccessControlException, match="user=bob, access=EXECUTE"):
            call()


def test_of_a_sticky_directory_only_the_owner_sets_them(fs: ScratchClient) -> None:
    ada, bob = fs.user("ada"), fs.user("bob")
    fs.mkdirs("/d", 0o1777)
    fs.set_owner("/d", "ada", None)
    ada.set_xattr("/d", "user.a", b"1")
    for change in (
        lambda: bob.set_xattr("/d", "user.a", b"2"),
        lambda: bob.remove_xattr("/d", "user.a"),
    ):
        with pytest.raises(AccessControlException, match="user=bob is not the owner of inode=/d"):
            change()
    assert bob.get_xattrs("/d") == {"user.a": b"1"}
    fs.set_xattr("/d", "user.a", b"of the superuser")
    bob.write("/d/f", 10, mode=0o666)
    ada.set_xattr("/d/f", "user.a", b"not a directory")


def test_trusted_attributes_are_there_for_the_superuser_alone(fs: ScratchClient) -> None:
    ada = fs.user("ada")
    fs.write("/f", 10)
    fs.set_owner("/f", "ada", None)
    fs.set_xattr("/f", "trusted.a", b"1")
    fs.set_xattr("/f", "user.a", b"1")
    assert ada.list_xattrs("/f") == ["user.a"]
    assert ada.get_xattrs("/f") == {"user.a": b"1"}
    for call in (
        lambda: ada.get_xattrs("/f", ["user.a", "trusted.a"]),
        lambda: ada.set_xattr("/f", "trusted.a", b"2"),
        lambda: ada.remove_xattr("/f", "trusted.a"),
        lambda: ada.get_xattrs("/missing", ["trusted.a"]),
    ):
        with pytest.raises(AccessControlException, match=r"permission for xattr: trusted\.a"):
            call()


@pytest.mark.parametrize("name", ["system.a", "security.a", "raw.a"])
def test_the_other_name_spaces_are_for_nobody(fs: ScratchClient, name: str) -> None:
    fs.mkdirs("/d", 0o777)
    for client in (fs, fs.user("ada")):
        for call in (
            lambda client=client: client.set_xattr("/d", name, b"1"),
            lambda client=client: client.get_xattrs("/d", [name]),
            lambda client=client: client.remove_xattr("/d", name),
        ):
            with pytest.raises(AccessControlException, match=f"permission for xattr: {name}"):
                call()


def test_raw_attributes_are_those_below_reserved_raw(fs: ScratchClient) -> None:
    ada = fs.user("ada")
    fs.write("/d/f", 10, mode=0o666)
    fs.set_xattr("/.reserved/raw/d/f", "raw.a", b"1")
    fs.set_xattr("/.reserved/raw/d/f", "user.a", b"2")
    assert fs.get_xattrs("/d/f") == {"user.a": b"2"}
    assert fs.list_xattrs("/.reserved/raw/d/f") == ["user.a", "raw.a"]
    assert ada.get_xattrs("/.reserved/raw/d/f", ["raw.a"]) == {"raw.a": b"1"}
    for call in (
        lambda: ada.set_xattr("/.reserved/raw/d/f", "raw.a", b"2"),
        lambda: ada.set_xattr("/.reserved/raw/d/f", "user.a", b"3"),
        lambda: ada.remove_xattr("/.reserved/raw/d/f", "raw.a"),
    ):
        with pytest.raises(AccessControlException, match="Superuser privilege is required"):
            call()
    fs.set_xattr("/.reserved/raw", "raw.of-the-root")
    assert fs.list_xattrs("/.reserved/raw") == ["raw.of-the-root"]
    fs.remove_xattr("/.reserved/raw/d/f", "raw.a")
    with pytest.raises(FileNotFoundException):
        fs.set_xattr("/.reserved/raw/missing", "raw.a")
    with pytest.raises(FileNotFoundException):
        fs.list_xattrs("/.reserved")


def test_nothing_is_said_to_be_encrypted(fs: ScratchClient) -> None:
    fs.mkdirs("/d")
    with pytest.raises(IOException, match="non-encryption zone"):
        fs.set_xattr("/.reserved/raw/d", "raw.hdfs.crypto.file.encryption.info", b"1")
    with pytest.raises(UnsupportedOperationException, match="no encryption zones"):
        fs.set_xattr("/.reserved/raw/d", "raw.hdfs.crypto.encryption.zone", b"1")
    assert fs.list_xattrs("/.reserved/raw/d") == []


def test_a_file_can_be_kept_from_the_superuser(fs: ScratchClient) -> None:
    ada = fs.user("ada")
    fs.mkdirs("/open", 0o777)
    ada.write("/open/f", 10)
    fs.get_block_locations("/open/f")
    with pytest.raises(AccessControlException, match="Values are not allowed for this xattr"):
        ada.set_xattr("/open/f", UNREADABLE, b"1")
    with pytest.raises(IOException, match=r"Can only set '.*' on a file"):
        ada.set_xattr("/open", UNREADABLE)
    ada.set_xattr("/open/f", UNREADABLE)
    assert ada.get_xattrs("/open/f", [UNREADABLE]) == {UNREADABLE: b""}
    assert fs.list_xattrs("/open/f") == [UNREADABLE]
    with pytest.raises(AccessControlException, match="Access is denied for hdfs"):
        fs.get_block_locations("/open/f")
    assert ada.get_block_locations("/open/f").length_bytes == 10
    for client in (ada, fs):
        with pytest.raises(AccessControlException, match="can not be deleted"):
            client.remove_xattr("/open/f", UNREADABLE)
    ada.write("/open/other", 10)
    with pytest.raises(IOException, match="No matching attributes"):
        ada.remove_xattr("/open/other", UNREADABLE)


# What keeps them


def test_attributes_go_where_their_inode_goes(fs: ScratchClient) -> None:
    fs.mkdirs("/a/b")
    fs.mkdirs("/c")
    fs.set_xattr("/a/b", "user.a", b"1")
    fs.set_xattr("/a", "user.of-the-parent", b"1")
    fs.rename("/a/b", "/c/moved")
    assert fs.get_xattrs("/c/moved") == {"user.a": b"1"}
    fs.set_permission("/c/moved", 0o700)
    fs.set_owner("/c/moved", "ada", "staff")
    assert fs.get_xattrs("/c/moved") == {"user.a": b"1"}
    fs.delete("/c/moved")
    fs.mkdirs("/c/moved")
    assert fs.get_xattrs("/c/moved") == {}
    fs.write("/f", 10)
    fs.set_xattr("/f", "user.a", b"1")
    fs.create("/f", overwrite=True)
    assert fs.get_xattrs("/f") == {}


def test_a_file_keeps_them_while_it_is_written(fs: ScratchClient) -> None:
    fs.create("/f")
    fs.set_xattr("/f", "user.a", b"1")
    fs.complete("/f", fs.write_blocks("/f", 10))
    assert fs.get_xattrs("/f") == {"user.a": b"1"}


def test_a_link_is_to_be_followed(fs: ScratchClient) -> None:
    fs.mkdirs("/d")
    fs.create_symlink("/d", "/link")
    for call in (
        lambda: fs.set_xattr("/link", "user.a", b"1"),
        lambda: fs.get_xattrs("/link"),
        lambda: fs.remove_xattr("/link", "user.a"),
    ):
        with pytest.raises(UnresolvedPathException):
            call()


def test_a_snapshot_has_those_of_its_moment(fs: ScratchClient) -> None:
    fs.write("/d/sub/f", 10)
    fs.allow_snapshot("/d")
    for path in ("/d", "/d/sub", "/d/sub/f"):
        fs.set_xattr(path, "user.a", b"before")
    fs.create_snapshot("/d", "s1")
    fs.set_xattr("/d", "user.a", b"after")
    fs.remove_xattr("/d/sub", "user.a")
    fs.set_xattr("/d/sub/f", "user.b", b"after")
    for path in ("/d/.snapshot/s1", "/d/.snapshot/s1/sub", "/d/.snapshot/s1/sub/f"):
        assert fs.get_xattrs(path) == {"user.a": b"before"}
        for change in (
            lambda path=path: fs.set_xattr(path, "user.a", b"changed"),
            lambda path=path: fs.remove_xattr(path, "user.a"),
        ):
            with pytest.raises(SnapshotAccessControlException):
                change()
    with pytest.raises(FileNotFoundException):
        fs.list_xattrs("/d/.snapshot")
    fs.delete("/d/sub", recursive=True)
    assert fs.get_xattrs("/d/.snapshot/s1/sub/f") == {"user.a": b"before"}
    fs.delete_snapshot("/d", "s1")


def modified(fs: ScratchClient, old: str, new: str = "") -> list[str]:
    entries = list(fs.snapshot_diff("/d", old, new))
    assert {entry.kind for entry in entries} <= {DiffKind.MODIFIED}
    return [b"/".join(entry.path).decode() for entry in entries]


def test_a_diff_tells_whose_attributes_are_others(fs: ScratchClient) -> None:
    fs.write("/d/sub/f", 10)
    fs.mkdirs("/d/other")
    fs.set_xattr("/d/sub/f", "user.a", b"1")
    fs.allow_snapshot("/d")
    fs.create_snapshot("/d", "s1")
    fs.set_xattr("/d", "user.a", b"1")
    fs.set_xattr("/d/other", "user.a", b"1")
    fs.set_xattr("/d/sub/f", "user.a", b"2")
    fs.create_snapshot("/d", "s2")
    assert modified(fs, "s1", "s2") == ["", "other", "sub/f"]
    fs.remove_xattr("/d/other", "user.a")
    assert modified(fs, "s2") == ["other"]
    assert modified(fs, "s1") == ["", "sub/f"]


def test_a_roll_back_and_a_clone_bring_them_back(fs: ScratchClient) -> None:
    fs.write("/d/sub/f", 10)
    fs.set_xattr("/d/sub/f", "user.a", b"before")
    fs.set_xattr("/d", "user.a", b"before")
    fs.allow_snapshot("/d")
    fs.create_snapshot("/d", "s1")
    fs.set_xattr("/d/sub/f", "user.a", b"after")
    fs.set_xattr("/d", "user.a", b"after")
    fs.clone_snapshot("/d", "s1", "/clone")
    assert fs.get_xattrs("/clone/sub/f") == {"user.a": b"before"}
    fs.set_xattr("/clone/sub/f", "user.b", b"of the clone")
    assert fs.get_xattrs("/clone/sub/f") == {"user.a": b"before", "user.b": b"of the clone"}
    assert fs.get_xattrs("/d/.snapshot/s1/sub/f") == {"user.a": b"before"}
    fs.rollback_snapshot("/d", "s1")
    for path in ("/d", "/d/sub/f"):
        assert fs.get_xattrs(path) == {"user.a": b"before"}
    clean(fs)


def test_a_call_that_is_refused_leaves_everything_as_it_was(fs: ScratchClient) -> None:
    fs.mkdirs("/d")
    fs.set_xattr("/d", "user.a", b"1")
    before = fs.dump()
    for call in (
        lambda: fs.set_xattr("/d", "user.a", b"2", FLAG_CREATE),
        lambda: fs.set_xattr("/d", "system.a", b"2"),
        lambda: fs.remove_xattr("/d", "user.b"),
    ):
        with pytest.raises(HdfsError):
            call()
    assert fs.dump() == before
