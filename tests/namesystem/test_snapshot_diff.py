"""Differences between snapshots: what HDFS reports, page by page, and both ways round."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from cairnfs.errors import FileNotFoundException, SnapshotException
from cairnfs.testing.scratch import ScratchClient

SIGNS = "M+-R"


def diff(fs: ScratchClient, old: str, new: str = "", path: str = "/d", limit: int = 1000) -> set:
    found = []
    for entry in fs.snapshot_diff(path, old, new, limit):
        text = b"/".join(entry.path).decode()
        if entry.target is not None:
            text += " -> " + b"/".join(entry.target).decode()
        found.append(f"{SIGNS[entry.kind]} {text}")
    assert len(found) == len(set(found))
    return set(found)


@pytest.fixture
def tree(fs: ScratchClient) -> Iterator[ScratchClient]:
    fs.mkdirs("/d/x/deep")
    fs.mkdirs("/d/y")
    fs.mkdirs("/outside/from")
    fs.write("/d/a", 10)
    fs.write("/d/x/b", 30)
    fs.write("/d/x/deep/c")
    fs.write("/d/y/e", 5)
    fs.allow_snapshot("/d")
    fs.create_snapshot("/d", "s1")
    yield fs
    for snapshot in fs.list_snapshots("/d"):
        fs.delete_snapshot("/d", snapshot.name.decode())


def test_nothing_has_changed(tree: ScratchClient) -> None:
    tree.create_snapshot("/d", "s2")
    assert diff(tree, "s1") == diff(tree, "s1", "s2") == diff(tree, "s2", "s2") == set()
    tree.write("/outside/f", 1)
    assert diff(tree, "s1") == set()


def test_each_kind(tree: ScratchClient) -> None:
    tree.write("/d/x/new", 1)
    tree.delete("/d/a")
    tree.set_permission("/d/x/b", 0o600)
    tree.rename("/d/y", "/d/x/deep/z")
    tree.write("/d/x/deep/z/more", 1)
    tree.rename("/outside/from", "/d/from")
    changes = {"M ", "M x", "+ x/new", "- a", "M x/b", "M x/deep", "R y -> x/deep/z", "M y"}
    changes |= {"+ y/more", "+ from"}
    assert diff(tree, "s1") == changes
    tree.create_snapshot("/d", "s2")
    tree.delete("/d/x", recursive=True)
    assert diff(tree, "s1", "s2") == changes
    assert diff(tree, "s1", "s2", limit=1) == changes
    back = {"M ", "M x", "- x/new", "+ a", "M x/b", "M x/deep", "R x/deep/z -> y", "M y"}
    back |= {"- y/more", "- from"}  # with the paths of the earlier one, as HDFS has it
    assert diff(tree, "s2", "s1") == back
    assert diff(tree, "s1") == {"M ", "- x", "- a", "- y", "+ from"}


def test_below_the_directory(tree: ScratchClient) -> None:
    tree.write("/d/x/deep/new", 1)
    tree.write("/d/new", 1)
    assert diff(tree, "s1", path="/d/x") == {"M deep", "+ deep/new"}
    assert diff(tree, "s1", path="/d/x/deep") == {"M ", "+ new"}
    tree.mkdirs("/d/later")
    with pytest.raises(FileNotFoundException, match="was not in the snapshot"):
        diff(tree, "s1", path="/d/later")


def test_what_is_not_there(tree: ScratchClient) -> None:
    with pytest.raises(SnapshotException, match="nothing"):
        diff(tree, "nothing")
    with pytest.raises(SnapshotException, match="neither snapshottable nor under"):
        diff(tree, "s1", path="/outside")


def test_what_was_moved_out_of_what_is_gone_is_new(tree: ScratchClient) -> None:
    tree.rename("/d/x/deep", "/d/deep")
    tree.delete("/d/x", recursive=True)
    assert diff(tree, "s1") == {"M ", "- x", "+ deep"}


def test_directories_tell_of_changes_below_them_since_every_snapshot(tree: ScratchClient) -> None:
    """They are written but once for each snapshot: that must be enough for every pair."""
    for number in range(2, 6):
        for mode in (0o600, 0o640, 0o600 + number):
            tree.set_permission("/d/x/deep/c", mode)
        tree.create_snapshot("/d", f"s{number}")
    tree.delete_snapshot("/d", "s3")
    tree.set_permission("/d/x/deep/c", 0o666)
    names = ["s1", "s2", "s4", "s5", ""]
    for old, new in itertools.combinations(names, 2):
        assert diff(tree, old, new) == {"M x/deep/c"}, f"from {old} to {new}"


def test_what_a_clone_has_from_its_origin_is_moved_there(tree: ScratchClient) -> None:
    """Also what had no row of its own before, in a directory that had none, and that is moved."""
    tree.clone_snapshot("/d", "s1", "/c")
    tree.allow_snapshot("/c")
    tree.create_snapshot("/c", "t1")
    tree.rename("/c/a", "/c/b")
    tree.rename("/c/x/deep/c", "/c/y/c")
    tree.rename("/c/x", "/c/z")
    tree.write("/c/a", 7)
    expected = {"M ", "R a -> b", "+ a", "R x -> z", "M x/deep", "R x/deep/c -> y/c", "M y"}
    assert diff(tree, "t1", path="/c") == expected
    tree.create_snapshot("/c", "t2")
    assert diff(tree, "t1", "t2", path="/c") == diff(tree, "t1", "t2", "/c", 1) == expected
    moved = [
        (change.kind.name, b"/".join(change.path), b"/".join(change.other), change.inode_id)
        for change in tree.snapshot_changes("/c", "t2", "t1")
        if change.other is not None
    ]
    ids = {path: tree.info(f"/c/{path}").id for path in ("b", "y/c", "z")}
    assert moved == [
        ("MOVED_OUT", b"b", b"a", ids["b"]),
        ("MOVED_OUT", b"y/c", b"x/deep/c", ids["y/c"]),
        ("MOVED_OUT", b"z", b"x", ids["z"]),
        ("MOVED_IN", b"a", b"b", ids["b"]),
        ("MOVED_IN", b"x", b"z", ids["z"]),
        ("MOVED_IN", b"x/deep/c", b"y/c", ids["y/c"]),
    ]
    tree.rename("/c/b", "/c/a2")
    tree.rename("/c/a", "/c/b")
    tree.rename("/c/a2", "/c/a")
    tree.delete("/c/z", recursive=True)
    assert diff(tree, "t1", path="/c") == {"M ", "+ b", "- x", "+ y/c", "M y"}
    assert diff(tree, "s1") == set()
    tree.rollback_snapshot("/c", "t1")
    tree.rename("/c/a", "/c/other")
    assert diff(tree, "t1", path="/c") == {"M ", "R a -> other"}
    assert diff(tree, "t1", "t2", path="/c") == expected
    for snapshot in tree.list_snapshots("/c"):
        tree.delete_snapshot("/c", snapshot.name.decode())


def test_a_clone_of_what_was_rolled_back_takes_nothing_from_it(tree: ScratchClient) -> None:
    tree.rollback_snapshot("/d", "s1")
    tree.create_snapshot("/d", "s2")
    tree.clone_snapshot("/d", "s2", "/c")
    tree.set_permission("/c/x/b", 0o600)
    tree.set_permission("/d/x/b", 0o640)
    assert diff(tree, "s2") == {"M x/b"}
    tree.rename("/d/x/b", "/d/b")
    tree.rename("/c/x/b", "/c/b")
    assert diff(tree, "s2") == {"M ", "M x", "R x/b -> b", "M x/b"}
    assert diff(tree, ":origin", path="/c") == {"M ", "M x", "R x/b -> b", "M x/b"}
    tree.delete("/c", recursive=True)


def test_a_clone_and_its_origin(tree: ScratchClient) -> None:
    tree.clone_snapshot("/d", "s1", "/c")
    tree.delete("/d/a")
    tree.rename("/d/x", "/d/elsewhere")
    assert diff(tree, ":origin", path="/c") == set()
    assert list(tree.snapshot_changes("/c", ":origin", "")) == []
    tree.rename("/c/x/deep", "/c/deep")
    tree.write("/c/deep/new", 3)
    tree.delete("/c/y", recursive=True)
    tree.set_permission("/c/a", 0o600)
    changed = {"M ", "M x", "R x/deep -> deep", "M x/deep", "+ x/deep/new", "- y", "M a"}
    assert diff(tree, ":origin", path="/c") == changed
    assert diff(tree, ":origin", path="/c/deep") == {"M ", "+ new"}
    assert diff(tree, ":origin", path="/c/a") == {"M "}
    tree.allow_snapshot("/c")
    tree.create_snapshot("/c", "t1")
    tree.rollback_snapshot("/c", "t1")
    tree.delete_snapshot("/d", "s1")
    assert diff(tree, ":origin", "t1", path="/c") == changed
    assert diff(tree, ":origin", "t1", path="/c", limit=1) == changed
    with pytest.raises(FileNotFoundException, match="/c/deep/new was not in the origin"):
        diff(tree, ":origin", path="/c/deep/new")
    with pytest.raises(SnapshotException, match="/d is not in a clone"):
        diff(tree, ":origin")
    for snapshot in tree.list_snapshots("/c"):
        tree.delete_snapshot("/c", snapshot.name.decode())


def test_what_was_changed_in_a_clone_and_is_moved_there(tree: ScratchClient) -> None:
    tree.clone_snapshot("/d", "s1", "/d/c")
    tree.set_permission("/d/c/a", 0o600)
    tree.write("/d/c/x/deep/new", 1)
    tree.create_snapshot("/d", "s2")
    tree.rename("/d/c/a", "/d/c/y/a2")
    tree.rename("/d/c/x/deep", "/d/c/z")
    moved = {"M c", "M c/x", "M c/y", "R c/a -> c/y/a2", "R c/x/deep -> c/z"}
    assert diff(tree, "s2") == moved
    tree.create_snapshot("/d", "s3")
    assert diff(tree, "s2", "s3", limit=1) == moved
