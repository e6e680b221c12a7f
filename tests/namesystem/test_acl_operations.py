"""The calls on access control lists; what the lists mean is in test_acls."""

from __future__ import annotations

import pytest

from cairnfs.errors import (
    AccessControlException,
    AclException,
    FileNotFoundException,
    HadoopIllegalArgumentException,
    IllegalArgumentException,
)
from cairnfs.namesystem.acls import format_spec
from cairnfs.namesystem.inodes import AclEntry
from cairnfs.testing.scratch import ScratchClient


def acl(fs: ScratchClient, path: str) -> str:
    return format_spec(fs.get_acl_status(path).entries)


def test_without_entries_a_status_tells_owner_and_mode(fs: ScratchClient) -> None:
    fs.mkdirs("/d", 0o1750)
    status = fs.get_acl_status("/d")
    assert (status.owner, status.group, status.mode) == ("hdfs", "supergroup", 0o1750)
    assert status.entries == ()
    assert status.is_sticky
    assert not fs.info("/d").has_acl


def test_entries_are_added_replaced_and_removed(fs: ScratchClient) -> None:
    fs.mkdirs("/d", 0o750)
    fs.modify_acl_entries("/d", "user:ada:rwx,default:user:bob:r--")
    assert acl(fs, "/d") == (
        "user:ada:rwx,group::r-x,default:user::rwx,default:user:bob:r--,default:group::r-x,"
        "default:mask::r-x,default:other::---"
    )
    assert fs.info("/d").mode == 0o770  # the group bits are the mask
    assert fs.info("/d").has_acl
    fs.remove_acl_entries("/d", "user:ada")
    fs.remove_default_acl("/d")
    # As in HDFS, a mask that was needed once stays until the ACL is removed.
    assert acl(fs, "/d") == "group::r-x"
    fs.remove_acl("/d")
    assert acl(fs, "/d") == ""
    assert fs.info("/d").mode == 0o750


def test_setting_an_acl_replaces_the_scope_it_speaks_of(fs: ScratchClient) -> None:
    fs.mkdirs("/d", 0o750)
    fs.set_acl("/d", "user::rwx,user:ada:r-x,group::---,other::---")
    fs.set_acl("/d", "default:user:bob:rwx")
    assert acl(fs, "/d").startswith("user:ada:r-x,group::---,default:user::rwx")
    fs.set_acl("/d", "user::rw-,group::r--,other::---")
    assert acl(fs, "/d").startswith("default:user::rwx")
    fs.set_acl("/d", [])
    assert acl(fs, "/d") == ""


def test_new_files_and_directories_inherit_the_default(fs: ScratchClient) -> None:
    fs.mkdirs("/d", 0o755)
    fs.modify_acl_entries("/d", "default:user:ada:rwx")
    fs.write("/d/sub/f", 1, mode=0o640)
    assert acl(fs, "/d/sub") == (
        "user:ada:rwx,group::r-x,default:user::rwx,default:user:ada:rwx,default:group::r-x,"
        "default:mask::rwx,default:other::r-x"
    )
    assert acl(fs, "/d/sub/f") == "user:ada:rwx,group::r-x"
    assert fs.info("/d/sub/f").mode == 0o640  # so ada may only read
    fs.user("ada").get_block_locations("/d/sub/f")
    with pytest.raises(AccessControlException):
        fs.user("ada").set_replication("/d/sub/f", 1)


def test_an_acl_moves_along_with_its_inode(fs: ScratchClient) -> None:
    fs.mkdirs("/d")
    fs.modify_acl_entries("/d", "group:staff:rwx")
    before = fs.get_acl_status("/d")
    fs.rename("/d", "/e")
    assert fs.get_acl_status("/e") == before


def test_a_file_has_no_default(fs: ScratchClient) -> None:
    fs.write("/f", 1)
    with pytest.raises(AclException, match="only directories may have a default ACL"):
        fs.modify_acl_entries("/f", "default:user:ada:rwx")
    assert not fs.info("/f").has_acl


def test_an_incomplete_acl_is_refused_and_nothing_changes(fs: ScratchClient) -> None:
    fs.mkdirs("/d")
    before = fs.dump()
    with pytest.raises(
        AclException, match=r"user, group and other entries are required\. Path: /d"
    ):
        fs.set_acl("/d", "user:ada:rwx")
    with pytest.raises(AclException, match="multiple entries with same scope"):
        fs.modify_acl_entries("/d", "user:ada:rwx,user:ada:r--")
    assert fs.dump() == before


def test_no_entries_change_nothing(fs: ScratchClient) -> None:
    fs.mkdirs("/d")
    before = fs.dump()
    fs.modify_acl_entries("/d", [])
    fs.remove_acl_entries("/d", [])
    fs.remove_acl("/d")
    fs.remove_default_acl("/d")
    assert fs.dump() == before


@pytest.mark.parametrize(
    "entry",
    [
        AclEntry(2, 0, "ada", 7),
        AclEntry(0, 4, "ada", 7),
        AclEntry(0, 0, "ada", 8),
        AclEntry(0, 0, "ada", -1),
    ],
)
def test_an_entry_that_is_none_is_refused(fs: ScratchClient, entry: AclEntry) -> None:
    with pytest.raises(HadoopIllegalArgumentException, match="Invalid ACL entry"):
        fs.modify_acl_entries("/", [entry])


def test_a_name_that_cannot_be_stored_is_refused(fs: ScratchClient) -> None:
    with pytest.raises(IllegalArgumentException):
        fs.modify_acl_entries("/", [AclEntry(0, 0, "\udcff", 7)])


def test_only_the_owner_changes_an_acl_and_everybody_reads_it(fs: ScratchClient) -> None:
    fs.mkdirs("/home", 0o777)
    fs.user("ada").mkdirs("/home/d", 0o700)
    bob = fs.user("bob")
    for call in (bob.modify_acl_entries, bob.remove_acl_entries, bob.set_acl):
        with pytest.raises(AccessControlException, match="user=bob is not the owner of inode=/ho"):
            call("/home/d", [])
    for remove in (bob.remove_acl, bob.remove_default_acl):
        with pytest.raises(AccessControlException, match="user=bob is not the owner"):
            remove("/home/d")
    assert bob.get_acl_status("/home/d").owner == "ada"
    fs.user("ada").modify_acl_entries("/home/d", "user:bob:rwx")
    assert bob.get_listing("/home/d") is not None


def test_what_does_not_exist_has_no_acl(fs: ScratchClient) -> None:
    with pytest.raises(FileNotFoundException, match="cannot find /x"):
        fs.get_acl_status("/x")
    with pytest.raises(FileNotFoundException, match="Directory/File does not exist /x"):
        fs.set_acl("/x", [])
