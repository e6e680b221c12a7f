"""Every operation with every kind of bad path: the right error, and nothing changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from cairnfs.blocks.records import Block, BlockId, BlockState, GenerationStamp
from cairnfs.errors import (
    AccessControlException,
    FileNotFoundException,
    HadoopIllegalArgumentException,
    HdfsError,
    InvalidPathException,
    IOException,
    ParentNotDirectoryException,
    PathComponentTooLongException,
)
from cairnfs.namenode.embedded import ClientProtocol
from cairnfs.namenode.embedded_snapshots import SnapshotCalls
from cairnfs.namesystem.rename import RenameOption
from cairnfs.testing.scratch import ScratchClient

BLOCK = Block(BlockId(1), GenerationStamp(1), 0, BlockState.COMPLETE)

Operation = Callable[[ScratchClient, str], Any]

CREATING: dict[str, Operation] = {
    "mkdirs": lambda fs, path: fs.mkdirs(path),
    "create": lambda fs, path: fs.create(path),
    "create overwriting": lambda fs, path: fs.create(path, overwrite=True),
    "rename to": lambda fs, path: fs.rename("/d/f", path),
    "rename2 to": lambda fs, path: fs.rename2("/d/f", path),
    "commit_output to": lambda fs, path: fs.commit_output("/output", path),
    "rename2 over": lambda fs, path: fs.rename2("/d/f", path, RenameOption.OVERWRITE),
}
LINKING: dict[str, Operation] = {
    "create_symlink": lambda fs, path: fs.create_symlink("/x", path),
}
WRITING: dict[str, Operation] = {
    "delete": lambda fs, path: fs.delete(path, recursive=True),
    "rename from": lambda fs, path: fs.rename(path, "/d/new"),
    "rename2 from": lambda fs, path: fs.rename2(path, "/d/new"),
    "commit_output from": lambda fs, path: fs.commit_output(path, "/d/new"),
    "add_block": lambda fs, path: fs.add_block(path),
    "abandon_block": lambda fs, path: fs.abandon_block(path, BLOCK),
    "complete": lambda fs, path: fs.complete(path),
    "append": lambda fs, path: fs.append(path),
    "fsync": lambda fs, path: fs.fsync(path),
    "truncate": lambda fs, path: fs.truncate(path, 0),
    "recover_lease": lambda fs, path: fs.recover_lease(path),
    "set_replication": lambda fs, path: fs.set_replication(path, 2),
    "set_permission": lambda fs, path: fs.set_permission(path, 0o777),
    "set_owner": lambda fs, path: fs.set_owner(path, "eve"),
    "set_times": lambda fs, path: fs.set_times(path, 1, 1),
    "modify_acl_entries": lambda fs, path: fs.modify_acl_entries(path, "user:eve:rwx"),
    "remove_acl_entries": lambda fs, path: fs.remove_acl_entries(path, "user:eve"),
    "remove_default_acl": lambda fs, path: fs.remove_default_acl(path),
    "remove_acl": lambda fs, path: fs.remove_acl(path),
    "set_acl": lambda fs, path: fs.set_acl(path, []),
    "set_xattr": lambda fs, path: fs.set_xattr(path, "user.a", b"1"),
    "remove_xattr": lambda fs, path: fs.remove_xattr(path, "user.a"),
    "unset_xattr": lambda fs, path: fs.unset_xattr(path, "user.a"),
}
CONCATENATING: dict[str, Operation] = {
    "concat to": lambda fs, path: fs.concat(path, ["/d/f"]),
    "concat from": lambda fs, path: fs.concat("/d/f", [path]),
}
ADMINISTERING: dict[str, Operation] = {
    "set_quota": lambda fs, path: fs.set_quota(path, 5),
    "allow_snapshot": lambda fs, path: fs.allow_snapshot(path),
    "disallow_snapshot": lambda fs, path: fs.disallow_snapshot(path),
}
SNAPSHOTS: dict[str, Operation] = {
    "create_snapshot": lambda fs, path: fs.create_snapshot(path, "s"),
    "create_snapshots": lambda fs, path: fs.create_snapshots([path], "s"),
    "rename_snapshot": lambda fs, path: fs.rename_snapshot(path, "s", "t"),
    "delete_snapshot": lambda fs, path: fs.delete_snapshot(path, "s"),
    "list_snapshots": lambda fs, path: fs.list_snapshots(path),
    "rollback_snapshot": lambda fs, path: fs.rollback_snapshot(path, "s"),
    "rollback_snapshots": lambda fs, path: fs.rollback_snapshots([path], "s", "t"),
    "clone_snapshot": lambda fs, path: fs.clone_snapshot(path, "s", "/d/new"),
    "snapshot_diff": lambda fs, path: list(fs.snapshot_diff(path, "s")),
    "snapshot_changes": lambda fs, path: list(fs.snapshot_changes(path, "s")),
}
READING: dict[str, Operation] = {
    "open_view": lambda fs, path: fs.open_view(path),
    "get_file_info": lambda fs, path: fs.get_file_info(path),
    "get_file_link_info": lambda fs, path: fs.get_file_link_info(path),
    "get_link_target": lambda fs, path: fs.get_link_target(path),
    "get_listing": lambda fs, path: fs.get_listing(path),
    "get_content_summary": lambda fs, path: fs.get_content_summary(path),
    "get_quota_usage": lambda fs, path: fs.get_quota_usage(path),
    "get_block_locations": lambda fs, path: fs.get_block_locations(path),
    "is_file_closed": lambda fs, path: fs.is_file_closed(path),
    "check_access": lambda fs, path: fs.check_access(path, 1),
    "get_acl_status": lambda fs, path: fs.get_acl_status(path),
    "get_xattrs": lambda fs, path: fs.get_xattrs(path),
    "list_xattrs": lambda fs, path: fs.list_xattrs(path),
    "explain_xattrs": lambda fs, path: fs.explain_xattrs(path),
}
CHANGING = WRITING | CONCATENATING | ADMINISTERING
EVERY = CREATING | LINKING | CHANGING | READING | SNAPSHOTS


@pytest.fixture
def tree(fast_fs: ScratchClient) -> Iterator[ScratchClient]:
    """Something of everything; no test may change any of it."""
    fs = fast_fs
    fs.write("/d/f", 10)
    fs.create("/d/open")
    fs.create_symlink("/x", "/d/link")
    fs.mkdirs("/output")
    fs.modify_acl_entries("/d", "default:user:ada:rwx")
    before = fs.dump()
    yield fs
    assert fs.dump() == before


def test_every_call_with_a_path_is_tried_here() -> None:
    calls = {*vars(SnapshotCalls), *vars(ClientProtocol)}
    calls = {name for name in calls if not name.startswith("_")}
    calls -= {"renew_lease", "list_snapshottable", "declare_xattr", "list_declared_xattrs"}
    calls -= {"renew_view", "close_view", "list_views", "split_part", "scan_part"}
    calls -= {"view_changes", "is_view_current"}
    calls = {name for name in calls if "root_snapshot" not in name}
    assert {name.split()[0] for name in EVERY} == calls


def check(fs: ScratchClient, operation: Operation, path: str, error: type[HdfsError]) -> None:
    with pytest.raises(error) as raised:
        operation(fs, path)
    assert type(raised.value) is error
    assert str(raised.value)


@pytest.mark.parametrize("name", EVERY)
def test_a_malformed_path_is_invalid(tree: ScratchClient, name: str) -> None:
    for path in (
        "",
        "d",
        "d/f",
        "hdfs://host/d",
        "/.",
        "/..",
        "/d/../f",
        "/d/./f",
        "/d/f/..",
        "/d/\0",
        "/d/\ud800",
        b"/d/\xff",
        b"/d/\xc0\xaf",
        "/.reserved/.inodes/16386/x/..",
    ):
        check(tree, EVERY[name], path, InvalidPathException)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", EVERY)
def test_an_inode_that_is_none_is_not_found(tree: ScratchClient, name: str) -> None:
    expected = IOException if name in CONCATENATING else FileNotFoundException
    for id in ("x", "1", "-5", "99999999999999999999999", "9223372036854775807", "16386.0", "0x10"):
        check(tree, EVERY[name], f"/.reserved/.inodes/{id}", expected)


@pytest.mark.parametrize("name", EVERY)
def test_below_a_file_there_is_nothing(tree: ScratchClient, name: str) -> None:
    expected = ParentNotDirectoryException if name in CREATING else AccessControlException
    user = tree if name in ADMINISTERING else tree.user("ada", "supergroup")
    for path in ("/d/f/x", "/d/f/x/y", "/d/open/x"):
        if name.startswith("get_") and "info" in name:
            assert EVERY[name](user, path) is None  # what HDFS tells the superuser
        elif name == "get_link_target":
            check(user, EVERY[name], path, FileNotFoundException)
        else:
            check(user, EVERY[name], path, expected)


@pytest.mark.parametrize("name", CREATING | LINKING)
def test_names_that_cannot_be_made(tree: ScratchClient, name: str) -> None:
    operation = EVERY[name]
    check(tree, operation, "/d/a:b", InvalidPathException)
    check(tree, operation, "/d/" + "x" * 256, PathComponentTooLongException)
    check(tree, operation, "/d/" + "é" * 128, PathComponentTooLongException)
    check(tree, operation, "/d/.snapshot", HadoopIllegalArgumentException)
    check(tree, operation, "/y" * 1001, IOException)
    check(tree, operation, "/d/" + "/".join(["z" * 200] * 40), IOException)


@pytest.mark.parametrize("name", CREATING | LINKING)
def test_the_reserved_directory_is_not_made(tree: ScratchClient, name: str) -> None:
    with pytest.raises(HadoopIllegalArgumentException):
        EVERY[name](tree, "/.reserved")


@pytest.mark.parametrize("name", CREATING | LINKING | WRITING)
def test_raw_paths_are_not_changed_by_users(tree: ScratchClient, name: str) -> None:
    check(tree.user("ada"), EVERY[name], "/.reserved/raw/d/f", AccessControlException)


@pytest.mark.parametrize("name", WRITING | READING | SNAPSHOTS)
def test_what_is_not_there_is_told_apart_from_what_may_not_be_seen(
    tree: ScratchClient, name: str
) -> None:
    operation = EVERY[name]
    answers_without_error = {
        "delete": False,
        "rename from": False,
        "set_replication": False,
        "get_file_info": None,
        "get_file_link_info": None,
        "get_listing": None,
    }
    for path in ("/nothing", "/d/nothing", "/no/thing", "/d/.snapshot", "/d/.snapshot/s"):
        if name in answers_without_error:
            assert operation(tree, path) is answers_without_error[name]
        else:
            check(tree, operation, path, FileNotFoundException)


def test_slashes_too_many_do_not_matter(tree: ScratchClient) -> None:
    assert tree.get_file_info("//d///f/") == tree.get_file_info("/d/f")
    assert tree.mkdirs("/d//")
