"""mkdirs, status, listings and content summaries."""

from __future__ import annotations

import pytest

from cairnfs.errors import (
    AccessControlException,
    DirectoryListingStartAfterNotFoundException,
    FileAlreadyExistsException,
    FileNotFoundException,
    HadoopIllegalArgumentException,
    IllegalArgumentException,
    InvalidPathException,
    IOException,
    MaxDirectoryItemsExceededException,
    NSQuotaExceededException,
    ParentNotDirectoryException,
    PathComponentTooLongException,
)
from cairnfs.namesystem import directories
from cairnfs.namesystem.paths import FsPath
from cairnfs.namesystem.rename import RenameOption
from cairnfs.testing.scratch import ScratchClient
from cairnfs.transaction.calls import Call
from cairnfs.transaction.runner import run


def test_mkdirs_makes_missing_parents_that_the_caller_can_enter(fs: ScratchClient) -> None:
    assert fs.mkdirs("/a/b/c", 0o1444)
    assert fs.info("/a/b/c").mode == 0o1444
    assert fs.info("/a").mode == fs.info("/a/b").mode == 0o744  # u+wx, and never sticky


def test_a_new_directory_has_the_callers_name_and_its_parents_group(fs: ScratchClient) -> None:
    fs.mkdirs("/a", 0o777)
    fs.set_owner("/a", group="staff")
    fs.user("ada", "users").mkdirs("/a/b")
    assert (fs.info("/a/b").owner, fs.info("/a/b").group) == ("ada", "staff")


def test_mkdirs_of_what_is_there_changes_nothing(fs: ScratchClient) -> None:
    fs.mkdirs("/a", 0o700)
    before = fs.dump()
    assert fs.mkdirs("/a", 0o777)
    assert fs.mkdirs("/")
    assert fs.dump() == before


def test_mkdirs_refuses_a_file_in_its_place_or_on_its_way(fs: ScratchClient) -> None:
    fs.create("/file")
    with pytest.raises(FileAlreadyExistsException, match="Path is not a directory: /file"):
        fs.mkdirs("/file")
    with pytest.raises(ParentNotDirectoryException, match=r"/file \(is not a directory\)"):
        fs.mkdirs("/file/a/b")


def test_without_create_parents_the_parent_must_exist(fs: ScratchClient) -> None:
    with pytest.raises(FileNotFoundException, match="Parent directory doesn't exist: /a"):
        fs.mkdirs("/a/b", create_parents=False)
    assert fs.mkdirs("/a", create_parents=False)


def test_mkdirs_needs_to_write_only_where_it_adds(fs: ScratchClient) -> None:
    ada = fs.user("ada")
    with pytest.raises(AccessControlException, match='user=ada, access=WRITE, inode="/":hdfs:'):
        ada.mkdirs("/a/b")
    fs.mkdirs("/home", 0o777)
    assert ada.mkdirs("/home/ada/x")
    assert ada.mkdirs("/home")  # it is there


def test_nobody_passes_a_directory_without_execute(fs: ScratchClient) -> None:
    fs.mkdirs("/closed/open", 0o777)
    fs.set_permission("/closed", 0o766)
    ada = fs.user("ada")
    for call in (ada.get_file_info, ada.get_listing, ada.mkdirs, ada.delete, ada.create):
        with pytest.raises(AccessControlException, match='access=EXECUTE, inode="/closed"'):
            call("/closed/open")


def test_a_directorys_time_is_that_of_its_last_change(fs: ScratchClient) -> None:
    fs.mkdirs("/a")
    made_ms = fs.clock.now_ms()
    fs.clock.advance(5)
    fs.mkdirs("/a/b")
    assert fs.info("/a").mtime_ms == made_ms + 5
    assert fs.info("/").mtime_ms == made_ms
    fs.clock.advance(5)
    fs.delete("/a/b")
    assert fs.info("/a").mtime_ms == made_ms + 10


def test_a_status_has_no_name_but_in_a_listing(fs: ScratchClient) -> None:
    # A client appends the name to the path that it asked about.
    fs.mkdirs("/a/b")
    assert fs.create("/a/f").name == b""
    assert fs.info("/a/b").name == b""
    assert fs.names("/a") == ["b", "f"]
    listing = fs.get_listing("/a/f")
    assert listing is not None
    assert [entry.name for entry in listing.entries] == [b""]


def test_what_is_not_there_has_no_status(fs: ScratchClient) -> None:
    fs.create("/file")
    assert fs.get_file_info("/nothing") is None
    assert fs.get_listing("/nothing") is None
    # Below a file, HDFS says so only to the superuser.
    assert fs.get_file_info("/file/x") is None
    assert fs.get_file_link_info("/file/x") is None
    with pytest.raises(AccessControlException, match=r"/file \(is not a directory\)"):
        fs.user("ada").get_file_info("/file/x")


def test_listings_go_on_by_name_and_say_that_there_is_more(fs: ScratchClient) -> None:
    for name in ("b", "a", "é", "B", "aa"):
        fs.mkdirs(f"/d/{name}")
    seen = []
    after = b""
    while True:
        page = fs.get_listing("/d", after, 2)
        assert page is not None
        assert len(page.entries) <= 2
        seen += [entry.name for entry in page.entries]
        if not page.remaining:
            break
        after = seen[-1]
    assert seen == [b"B", b"a", b"aa", b"b", "é".encode()]  # in order of bytes


def test_a_listing_goes_on_after_a_name_that_is_gone(fs: ScratchClient) -> None:
    for name in "abc":
        fs.mkdirs(f"/d/{name}")
    fs.delete("/d/b")
    page = fs.get_listing("/d", b"b")
    assert page is not None
    assert [entry.name for entry in page.entries] == [b"c"]


def test_a_listing_goes_on_after_an_inode(fs: ScratchClient) -> None:
    for name in "abc":
        fs.mkdirs(f"/d/{name}")
    after = f"/.reserved/.inodes/{fs.info('/d/b').id}".encode()
    page = fs.get_listing("/d", after)
    assert page is not None
    assert [entry.name for entry in page.entries] == [b"c"]
    fs.delete("/d/b")
    with pytest.raises(DirectoryListingStartAfterNotFoundException, match="Can't find startAfter"):
        fs.get_listing("/d", after)


def test_a_listing_of_no_entries_is_refused(fs: ScratchClient) -> None:
    for limit in (0, -1):
        with pytest.raises(IllegalArgumentException):
            fs.get_listing("/", limit=limit)


def test_listing_needs_to_read_and_enter(fs: ScratchClient) -> None:
    fs.mkdirs("/a", 0o711)
    with pytest.raises(AccessControlException, match='access=READ_EXECUTE, inode="/a"'):
        fs.user("ada").get_listing("/a")
    fs.write("/a/f", 1, mode=0)
    listing = fs.user("ada").get_listing("/a/f")  # a file is listed for whoever reaches it
    assert listing is not None
    assert len(listing.entries) == 1


def test_a_summary_counts_everything_below(fs: ScratchClient) -> None:
    fs.write("/a/f", 100, replication=2)
    fs.write("/a/b/g", 7, 5)
    fs.create_symlink("/x", "/a/l")
    summary = fs.get_content_summary("/a")
    assert (summary.files, summary.directories, summary.symlinks) == (2, 2, 1)
    assert (summary.length_bytes, summary.space_bytes) == (112, 236)
    assert summary.type_bytes == (0, 236, 0, 0, 0)
    assert fs.get_content_summary("/a/f").space_bytes == 200
    with pytest.raises(FileNotFoundException, match="File does not exist: /nothing"):
        fs.get_content_summary("/nothing")


def test_a_summary_needs_to_read_every_directory_below(fs: ScratchClient) -> None:
    fs.mkdirs("/a/b/c")
    ada = fs.user("ada")
    assert ada.get_content_summary("/a").directories == 3
    fs.set_permission("/a/b/c", 0o700)
    with pytest.raises(AccessControlException, match='access=READ_EXECUTE, inode="/a/b/c"'):
        ada.get_content_summary("/a")
    assert fs.get_content_summary("/a").directories == 3


def test_a_directory_holds_so_many_entries_and_no_more(
    fs: ScratchClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    fs.mkdirs("/d")
    fs.create("/d/a")
    fs.create("/d/b")
    fs.create("/c")
    with monkeypatch.context() as patch:
        patch.setattr(directories, "DIRECTORY_ITEMS_MAX", 2)
        message = "The directory item limit of /d is exceeded: limit=2 items=2"
        with pytest.raises(MaxDirectoryItemsExceededException, match=message):
            fs.mkdirs("/d/x/y")
        for call in (fs.create, lambda link: fs.create_symlink("/", link)):
            with pytest.raises(MaxDirectoryItemsExceededException, match=message):
                call("/d/x")
        with pytest.raises(MaxDirectoryItemsExceededException, match=message):
            fs.rename("/c", "/d/c")
        fs.create("/d/a", overwrite=True)
        assert fs.rename("/d/a", "/d/z")  # in the same directory it is no more than before
        fs.rename2("/c", "/d/z", RenameOption.OVERWRITE)
    assert fs.names("/d") == ["b", "z"]


@pytest.mark.parametrize("name", ["x" * 256, "é" * 128])
def test_a_name_has_at_most_255_bytes(fs: ScratchClient, name: str) -> None:
    with pytest.raises(PathComponentTooLongException, match="limit=255 length=256"):
        fs.mkdirs(f"/a/{name}/b")
    with pytest.raises(PathComponentTooLongException):
        fs.create(f"/{name}")
    assert fs.names("/") == []
    assert fs.mkdirs("/" + name[:127])
    with pytest.raises(PathComponentTooLongException):
        fs.rename("/" + name[:127], f"/{name}")
    assert fs.names("/") == [name[:127]]


def test_a_path_has_at_most_1000_levels_and_8000_characters(fast_fs: ScratchClient) -> None:
    assert fast_fs.mkdirs("/d" * 1000)
    for path in ("/d" * 1001, "/" + "/".join(["x" * 250] * 32)):
        with pytest.raises(IOException, match="mkdirs: Pathname too long"):
            fast_fs.mkdirs(path)


def test_reserved_names_cannot_be_made(fs: ScratchClient) -> None:
    with pytest.raises(HadoopIllegalArgumentException, match=r'"\.snapshot" is a reserved name'):
        fs.mkdirs("/a/.snapshot")
    with pytest.raises(HadoopIllegalArgumentException, match=r'"\.reserved" is reserved'):
        fs.mkdirs("/.reserved")
    assert fs.mkdirs("/a/.reserved")  # only the root's is
    with pytest.raises(InvalidPathException, match="Invalid file name: /a:b"):
        fs.mkdirs("/a:b")
    with pytest.raises(IllegalArgumentException):
        fs.mkdirs("/m", -1)


def test_the_reserved_directory_is_seen_when_asked_for(fs: ScratchClient) -> None:
    assert fs.names("/") == []
    assert fs.info("/.reserved").mode == 0o770
    assert fs.names("/.reserved") == [".inodes", "raw"]


def test_an_inode_is_reached_by_its_id(fs: ScratchClient) -> None:
    fs.mkdirs("/a/b/c")
    id = fs.info("/a/b").id
    fs.rename("/a", "/z")
    path = f"/.reserved/.inodes/{id}"
    assert fs.info(path) == fs.info("/z/b")
    assert fs.info(f"{path}/..") == fs.info("/z")
    assert fs.info(f"/.reserved/.inodes/{fs.info('/').id}") == fs.info("/")
    fs.delete("/z", recursive=True)
    for gone in (path, "/.reserved/.inodes/9223372036854775807", "/.reserved/.inodes/x"):
        with pytest.raises(FileNotFoundException):
            fs.get_file_info(gone)


def test_below_an_inode_things_are_found_and_made(fs: ScratchClient) -> None:
    fs.mkdirs("/a/b")
    path = f"/.reserved/.inodes/{fs.info('/a').id}"
    assert fs.exists(f"{path}/b")
    assert not fs.exists(f"{path}/c")
    assert fs.mkdirs(f"{path}/d")
    assert fs.names("/a") == ["b", "d"]


def test_an_inodes_path_asks_for_the_same_permissions(fs: ScratchClient) -> None:
    fs.mkdirs("/closed/a")
    fs.set_permission("/closed", 0o700)
    path = f"/.reserved/.inodes/{fs.info('/closed/a').id}"
    with pytest.raises(AccessControlException, match='access=EXECUTE, inode="/closed"'):
        fs.user("ada").get_file_info(path)


def test_raw_paths_are_for_the_superuser_to_write_and_for_all_to_read(fs: ScratchClient) -> None:
    fs.mkdirs("/home", 0o777)
    ada = fs.user("ada")
    ada.mkdirs("/home/a")
    assert ada.info("/.reserved/raw/home/a") == fs.info("/home/a")
    for call in (ada.mkdirs, ada.create, ada.delete):
        with pytest.raises(AccessControlException, match="Superuser privilege is required"):
            call("/.reserved/raw/home/a")
    assert fs.mkdirs("/.reserved/raw/home/b")
    assert fs.names("/home") == ["a", "b"]


def test_a_listing_shows_every_change_before_it(fs: ScratchClient) -> None:
    """Pages that were listed before are kept at hand, until something in them changes."""

    def listed() -> dict[str, tuple[int, str]]:
        page = fs.get_listing("/d")
        assert page is not None
        return {entry.name.decode(): (entry.mode, entry.owner) for entry in page.entries}

    fs.mkdirs("/d")
    assert listed() == {}
    fs.write("/d/a", mode=0o644)
    assert listed() == {"a": (0o644, "hdfs")}
    fs.set_permission("/d/a", 0o600)
    assert listed() == {"a": (0o600, "hdfs")}
    fs.rename("/d/a", "/d/b")
    assert listed() == {"b": (0o600, "hdfs")}
    fs.set_owner("/d/b", "ada")
    assert listed() == {"b": (0o600, "ada")}
    fs.delete("/d/b")
    assert listed() == {}


def test_a_deep_path_costs_what_its_directories_do(fs: ScratchClient) -> None:
    """And not their number's square, as if each of them told all above of itself."""

    def additions(depth: int) -> int:
        path = FsPath.parse(f"/a/b/{depth}" + "/d" * (depth - 3))
        call = Call(directories.mkdirs, (fs.caller, path, 0o755, 0o755, True))
        fs.namenode.wait(run(fs.namenode.namenode.runner, call))
        return sum(len(ids) for ids, _, _ in call.transaction.touches)

    fs.mkdirs("/a/b")
    assert additions(400) < 2 * 400 + 10
    assert fs.get_content_summary("/a").directories == 400
    assert fs.get_content_summary("/a/b/400").directories == 398
    assert fs.get_content_summary("/a/b/400" + "/d" * 100).directories == 298
    fs.create("/a/b/f/g/h/i/file", create_parents=True)
    assert fs.get_content_summary("/a/b/f").directories == 4
    assert fs.get_content_summary("/a/b/f").files == 1


def test_missing_parents_count_for_the_quotas_above(fs: ScratchClient) -> None:
    fs.mkdirs("/q/a")
    fs.set_quota("/q", 6)
    fs.set_quota("/q/a", 20)
    before = fs.dump()
    told = "of directory /q is exceeded: quota=6 file count=7"
    for make in (
        lambda: fs.mkdirs("/q/a/b/c/d/e/f"),
        lambda: fs.create("/q/a/b/c/d/e/f", create_parents=True),
    ):
        with pytest.raises(NSQuotaExceededException, match=told):
            make()
        assert fs.dump() == before
    fs.mkdirs("/q/a/b/c/d/e")
    with pytest.raises(NSQuotaExceededException, match="quota=6 file count=7"):
        fs.mkdirs("/q/x")
