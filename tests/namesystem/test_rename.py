"""Both rename calls."""

from __future__ import annotations

import pytest

from cairnfs.errors import (
    AccessControlException,
    FileAlreadyExistsException,
    FileNotFoundException,
    HadoopIllegalArgumentException,
    InvalidPathException,
    IOException,
    NSQuotaExceededException,
    ParentNotDirectoryException,
    PathComponentTooLongException,
    SnapshotException,
)
from cairnfs.namesystem.rename import RenameOption
from cairnfs.testing.scratch import ScratchClient

OVERWRITE = RenameOption.OVERWRITE
TO_TRASH = RenameOption.TO_TRASH


def test_a_renamed_directory_takes_everything_along(fs: ScratchClient) -> None:
    fs.write("/a/b/f", 10)
    before = fs.info("/a/b/f")
    fs.mkdirs("/x/y")
    assert fs.rename("/a/b", "/x/y/z")
    assert fs.info("/x/y/z/f") == before
    assert fs.get_content_summary("/a").inodes == 1
    assert fs.get_content_summary("/x").length_bytes == 10


def test_a_renamed_inode_keeps_its_id_and_times_and_touches_both_parents(
    fs: ScratchClient,
) -> None:
    fs.write("/a/f", 1)
    fs.mkdirs("/b")
    before = fs.info("/a/f")
    fs.clock.advance(9)
    assert fs.rename("/a/f", "/b/g")
    assert fs.info("/b/g") == before
    assert fs.info("/a").mtime_ms == fs.info("/b").mtime_ms == fs.clock.now_ms()
    assert fs.info("/").mtime_ms == before.mtime_ms


@pytest.mark.parametrize("kind", ["file", "directory"])
def test_within_one_directory_nothing_changes_but_the_name_and_its_time(
    fs: ScratchClient, kind: str
) -> None:
    fs.write("/a/f" if kind == "file" else "/a/f/below", 7)
    before, summary, root = fs.info("/a/f"), fs.get_content_summary("/a"), fs.info("/")
    fs.clock.advance(9)
    assert fs.rename("/a/f", "/a/g")
    assert fs.names("/a") == ["g"]
    assert fs.info("/a/g") == before
    assert fs.info("/a").mtime_ms == fs.clock.now_ms()
    assert fs.get_content_summary("/a") == summary
    assert fs.info("/") == root


def test_the_old_rename_goes_into_a_directory(fs: ScratchClient) -> None:
    fs.write("/f", 1)
    fs.mkdirs("/d/e")
    assert fs.rename("/f", "/d")
    assert fs.rename("/d/e", "/")
    assert fs.names("/") == ["d", "e"]
    assert fs.names("/d") == ["f"]
    fs.mkdirs("/d/e")
    assert not fs.rename("/e", "/d")  # there is one already


def test_the_old_rename_of_a_path_to_itself_does_nothing(fs: ScratchClient) -> None:
    fs.write("/f", 1)
    before = fs.dump()
    assert fs.rename("/f", "/f")
    assert fs.dump() == before


def test_the_old_rename_says_false_where_the_new_one_says_why(fs: ScratchClient) -> None:
    fs.write("/f", 1)
    fs.write("/g", 1)
    fs.mkdirs("/d/e")
    before = fs.dump()
    for src, dst, error, message in [
        ("/nothing", "/x", FileNotFoundException, "rename source /nothing is not found."),
        ("/", "/x", IOException, "rename source cannot be the root"),
        ("/d", "/d/x", IOException, "Rename destination /d/x is a directory or file under source"),
        ("/d", "/d/e/x", IOException, "is a directory or file under source /d"),
        ("/f", "/g", FileAlreadyExistsException, "rename destination /g already exists"),
        ("/f", "/no/x", FileNotFoundException, "rename destination parent /no/x not found."),
    ]:
        assert not fs.rename(src, dst)
        with pytest.raises(error, match=message):
            fs.rename2(src, dst)
    assert fs.dump() == before


def test_the_new_rename_goes_into_no_directory(fs: ScratchClient) -> None:
    fs.write("/f", 1)
    fs.mkdirs("/d")
    fs.mkdirs("/full/x")
    for src, dst, options, error, message in [
        ("/f", "/d", OVERWRITE, IOException, "must both be directories"),
        ("/d", "/f", OVERWRITE, IOException, "must both be directories"),
        ("/d", "/full", OVERWRITE, IOException, "rename destination directory is not empty: /f"),
        ("/d", "/full", RenameOption.NONE, FileAlreadyExistsException, "already exists"),
        ("/f", "/f", OVERWRITE, FileAlreadyExistsException, "The source /f and destination /f"),
        ("/f", "/", OVERWRITE, IOException, "rename destination cannot be the root"),
    ]:
        with pytest.raises(error, match=message):
            fs.rename2(src, dst, options)


def test_overwriting_replaces_a_file_or_an_empty_directory(fs: ScratchClient) -> None:
    fs.write("/f", 10)
    fs.create("/open")
    fs.add_block("/open")
    fs.rename2("/f", "/open", OVERWRITE)
    assert fs.info("/open").length_bytes == 10
    fs.write("/a/f", 5)
    fs.mkdirs("/empty")
    fs.rename2("/a", "/empty", OVERWRITE)
    assert fs.names("/") == ["empty", "open"]
    assert fs.get_content_summary("/").length_bytes == 15


def test_a_file_and_a_link_may_replace_each_other(fs: ScratchClient) -> None:
    fs.write("/f", 1)
    fs.create_symlink("/x", "/l")
    fs.rename2("/f", "/l", OVERWRITE)
    fs.create_symlink("/x", "/m")
    fs.rename2("/m", "/l", OVERWRITE)
    assert fs.get_link_target("/l") == "/x"
    assert fs.names("/") == ["l"]


def test_below_a_file_nothing_is_put(fs: ScratchClient) -> None:
    fs.write("/f", 1)
    fs.mkdirs("/d")
    for call in (fs.rename, fs.rename2):
        with pytest.raises(ParentNotDirectoryException, match=r"/f \(is not a directory\)"):
            call("/d", "/f/d")
        with pytest.raises(AccessControlException, match=r"/f \(is not a directory\)"):
            call("/f/d", "/e")


def test_a_similar_name_is_not_below(fs: ScratchClient) -> None:
    fs.mkdirs("/a")
    assert fs.rename("/a", "/ab")
    fs.rename2("/ab", "/a")
    assert fs.names("/") == ["a"]


def test_reserved_and_impossible_names_are_no_destination(fs: ScratchClient) -> None:
    fs.mkdirs("/a")
    for call in (fs.rename, fs.rename2):
        with pytest.raises(InvalidPathException, match=r"Cannot rename to or from /\.reserved"):
            call("/a", "/.reserved")
        with pytest.raises(InvalidPathException, match="Invalid file name: /b:c"):
            call("/a", "/b:c")
        with pytest.raises(HadoopIllegalArgumentException, match="is a reserved name"):
            call("/a", "/.snapshot")
        with pytest.raises(PathComponentTooLongException):
            call("/a", "/" + "x" * 256)
        with pytest.raises(IOException, match="rename: Pathname too long"):
            call("/a", "/x" * 1001)
    assert fs.names("/") == ["a"]


def test_who_renames_must_write_in_both_directories(fs: ScratchClient) -> None:
    fs.mkdirs("/from", 0o755)
    fs.mkdirs("/to", 0o777)
    fs.write("/from/f", 1)
    ada = fs.user("ada")
    for call in (ada.rename, ada.rename2):
        with pytest.raises(AccessControlException, match='access=WRITE, inode="/from"'):
            call("/from/f", "/to/f")
    fs.set_permission("/from", 0o777)
    fs.set_permission("/to", 0o755)
    for call in (ada.rename, ada.rename2):
        with pytest.raises(AccessControlException, match='access=WRITE, inode="/to"'):
            call("/from/f", "/to/f")


def test_who_renames_into_a_directory_must_be_let_in(fs: ScratchClient) -> None:
    fs.mkdirs("/drop")
    fs.set_permission("/drop", 0o772)
    fs.mkdirs("/home", 0o777)
    fs.set_permission("/home", 0o777)
    ada = fs.user("ada")
    ada.write("/home/f", 1)
    for destination in ("/drop", "/drop/f"):
        with pytest.raises(AccessControlException, match='access=EXECUTE, inode="/drop"'):
            ada.rename("/home/f", destination)
    fs.set_permission("/drop", 0o773)
    assert ada.rename("/home/f", "/drop")


def test_the_sticky_bit_keeps_entries_in_and_from_being_replaced(fs: ScratchClient) -> None:
    fs.mkdirs("/tmp", 0o1777)
    fs.mkdirs("/home", 0o777)
    ada, bob = fs.user("ada"), fs.user("bob")
    ada.write("/tmp/ada", 1)
    bob.write("/tmp/bob", 1)
    for call in (bob.rename, bob.rename2):
        with pytest.raises(AccessControlException, match="Permission denied by sticky bit"):
            call("/tmp/ada", "/home/mine")
    with pytest.raises(AccessControlException, match="Permission denied by sticky bit"):
        bob.rename2("/tmp/bob", "/tmp/ada", OVERWRITE)
    assert not bob.rename("/tmp/bob", "/tmp/ada")
    assert bob.rename("/tmp/bob", "/home/bob")


def test_to_trash_asks_for_the_right_to_delete(fs: ScratchClient) -> None:
    fs.mkdirs("/home/a/sub", 0o777)
    fs.set_permission("/home", 0o777)
    fs.write("/home/a/sub/f", 1)
    fs.set_permission("/home/a", 0o777)
    fs.set_permission("/home/a/sub", 0o755)
    ada = fs.user("ada")
    with pytest.raises(AccessControlException, match='access=ALL, inode="/home/a/sub"'):
        ada.rename2("/home/a", "/home/b", TO_TRASH)
    ada.rename2("/home/a", "/home/b")
    fs.set_permission("/home/b/sub", 0o777)
    ada.rename2("/home/b", "/home/c", TO_TRASH)


def test_a_move_is_charged_where_it_arrives(fs: ScratchClient) -> None:
    fs.mkdirs("/a/b/c")
    fs.mkdirs("/limited")
    fs.set_quota("/limited", 2)
    fs.set_quota("/a", 3)
    assert fs.rename("/a/b/c", "/a/d")  # no more below /a than before
    with pytest.raises(NSQuotaExceededException, match="/limited is exceeded: quota=2 file cou"):
        fs.rename("/a", "/limited")
    assert fs.rename("/a/d", "/limited")
    assert fs.get_quota_usage("/a").inodes == 2


def test_replacing_needs_no_more_quota_than_there_was(fs: ScratchClient) -> None:
    fs.write("/f", 10)
    fs.write("/d/g", 10)
    fs.set_quota("/d", 1, 1)  # below what is used
    fs.rename2("/f", "/d/g", OVERWRITE)
    fs.write("/f", 10)
    with pytest.raises(NSQuotaExceededException):
        fs.rename2("/f", "/d/h", OVERWRITE)


def test_paths_by_inode_and_raw_mean_the_same_place(fs: ScratchClient) -> None:
    fs.mkdirs("/a/b")
    by_id = f"/.reserved/.inodes/{fs.info('/a/b').id}"
    with pytest.raises(FileAlreadyExistsException, match="The source /a/b and destination /a/b"):
        fs.rename2(by_id, "/a/b")
    with pytest.raises(IOException, match="is a directory or file under source /a"):
        fs.rename2("/.reserved/raw/a", "/a/b/x")
    assert fs.rename(by_id, "/z")
    assert fs.names("/") == ["a", "z"]


@pytest.mark.parametrize("is_directory", [False, True])
def test_rename_over_a_path_with_snapshots_is_refused(
    fs: ScratchClient, is_directory: bool
) -> None:
    for path in ("/source", "/target"):
        if is_directory:
            fs.mkdirs(path)
        else:
            fs.write(path, 10)
    fs.allow_snapshot("/target")
    fs.create_snapshot("/target", "s")
    ids = {path: fs.info(path).id for path in ("/source", "/target")}
    with pytest.raises(SnapshotException, match="/target cannot be deleted since /target is"):
        fs.rename2("/source", "/target", OVERWRITE)
    assert {path: fs.info(path).id for path in ids} == ids
    assert [snapshot.name for snapshot in fs.list_snapshots("/target")] == [b"s"]
    fs.delete_snapshot("/target", "s")
    fs.rename2("/source", "/target", OVERWRITE)
    assert fs.info("/target").id == ids["/source"]
