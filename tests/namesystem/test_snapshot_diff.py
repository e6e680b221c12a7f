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
