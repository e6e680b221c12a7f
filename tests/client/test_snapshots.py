"""Snapshots through the Python client, on a real cluster."""

from __future__ import annotations

import re

import pytest
from tests.client.files import append, read, write

import cairnfs
from cairnfs.client.records import DiffEntry, SnapshotSchedule
from cairnfs.errors import (
    AccessControlException,
    IllegalArgumentException,
    InvalidPathException,
    SnapshotAccessControlException,
    SnapshotException,
)
from cairnfs.testing.cluster import Cluster


def find(fs: cairnfs.FileSystem, path: str) -> list[str]:
    """Everything below a directory, relative to it."""
    found = []
    for status in fs.list_status(path):
        found.append(status.name)
        if status.is_directory:
            found += [f"{status.name}/{each}" for each in find(fs, status.path)]
    return found


@pytest.fixture
def allowed(fs: cairnfs.FileSystem, request: pytest.FixtureRequest) -> str:
    """A directory of the test's own, of which snapshots may be taken."""
    path = f"/{request.node.name}"
    fs.mkdirs(path)
    fs.allow_snapshot(path)
    return path


def test_a_snapshot_stays_what_the_directory_was(fs: cairnfs.FileSystem, allowed: str) -> None:
    fs.mkdirs(f"{allowed}/sub")
    write(fs, f"{allowed}/sub/file", b"before")
    write(fs, f"{allowed}/log", b"one ")
    assert fs.create_snapshot(allowed, "s1") == f"{allowed}/.snapshot/s1"
    append(fs, f"{allowed}/log", b"two")
    fs.delete(f"{allowed}/sub", recursive=True)
    write(fs, f"{allowed}/new", b"after")

    then = f"{allowed}/.snapshot/s1"
    assert find(fs, then) == ["log", "sub", "sub/file"]
    assert find(fs, allowed) == ["log", "new"]
    assert read(fs, f"{then}/sub/file") == b"before"
    assert read(fs, f"{then}/log") == b"one "
    assert read(fs, f"{allowed}/log") == b"one two"
    assert fs.get_file_status(f"{then}/log").length_bytes == 4
    with fs.open(f"{then}/log") as file:
        assert file.pread(2, 100) == b"e "


def test_nothing_in_a_snapshot_can_be_changed(fs: cairnfs.FileSystem, allowed: str) -> None:
    write(fs, f"{allowed}/file", b"content")
    fs.create_snapshot(allowed, "s1")
    file = f"{allowed}/.snapshot/s1/file"
    for change in (
        lambda: fs.create(f"{allowed}/.snapshot/s1/new"),
        lambda: fs.create(file, overwrite=True),
        lambda: fs.append(file),
        lambda: fs.truncate(file, 1),
        lambda: fs.delete(file),
        lambda: fs.delete(f"{allowed}/.snapshot/s1", recursive=True),
        lambda: fs.mkdirs(f"{allowed}/.snapshot/s1/new"),
        lambda: fs.rename(file, f"{allowed}/moved", overwrite=False),
        lambda: fs.set_permission(file, 0o600),
        lambda: fs.set_owner(file, "ada"),
        lambda: fs.set_times(file, 1, 1),
        lambda: fs.set_replication(file, 2),
    ):
        with pytest.raises(SnapshotAccessControlException, match="read-only snapshot"):
            change()
    assert read(fs, file) == b"content"


def test_names_lists_and_ends(fs: cairnfs.FileSystem, allowed: str) -> None:
    by_time = fs.create_snapshot(allowed)
    assert re.fullmatch(rf"{allowed}/\.snapshot/s\d{{8}}-\d{{6}}\.\d{{3}}", by_time)
    fs.create_snapshot(allowed, "a")
    fs.rename_snapshot(allowed, "a", "z")
    listed = fs.list_snapshots(allowed)
    assert [each.status.path for each in listed] == [by_time, f"{allowed}/.snapshot/z"]
    assert len({each.id for each in listed}) == 2
    assert [each.path for each in fs.list_status(f"{allowed}/.snapshot")] == [
        each.status.path for each in listed
    ]
    [found] = [each for each in fs.get_snapshottable_directories() if each.status.path == allowed]
    assert found.snapshots == 2
    for refused, words in (
        (lambda: fs.create_snapshot(allowed, "z"), 'snapshot with the same name "z"'),
        (lambda: fs.rename_snapshot(allowed, "gone", "x"), "The snapshot gone does not exist"),
        (lambda: fs.delete_snapshot(allowed, "gone"), "Cannot delete snapshot gone from path"),
        (lambda: fs.disallow_snapshot(allowed), r"has snapshot\(s\)"),
        (lambda: fs.delete(allowed, recursive=True), "is snapshottable and already has snapshots"),
    ):
        with pytest.raises(SnapshotException, match=words):
            refused()
    for name in ("z", by_time.rpartition("/")[2]):
        fs.delete_snapshot(allowed, name)
    assert fs.list_snapshots(allowed) == []
    fs.disallow_snapshot(allowed)
    with pytest.raises(SnapshotException, match="not a snapshottable directory"):
        fs.create_snapshot(allowed, "s1")


def test_what_cannot_be_sent_is_refused(fs: cairnfs.FileSystem, allowed: str) -> None:
    with pytest.raises(InvalidPathException, match=r"path name '/\\ud800': it is not UTF-8"):
        fs.create_snapshot("/\ud800", "s1")
    for refused in (
        lambda: fs.create_snapshot(allowed, "s\ud800"),
        lambda: fs.create_snapshots([allowed], "s\ud800"),
        lambda: fs.rename_snapshot(allowed, "s", "s\ud800"),
        lambda: fs.delete_snapshot(allowed, "s\ud800"),
        lambda: list(fs.snapshot_diff(allowed, "s\ud800")),
        lambda: list(fs.snapshot_diff(allowed, "s", "s\ud800")),
        lambda: list(fs.snapshot_changes(allowed, "s\ud800")),
        lambda: fs.rollback_snapshot(allowed, "s", "s\ud800"),
        lambda: fs.rollback_snapshots([allowed], "s\ud800"),
        lambda: fs.clone_snapshot(allowed, "s\ud800", "/clone"),
        lambda: fs.snapshot_space(allowed, "s\ud800"),
        lambda: fs.create_root_snapshot("s\ud800"),
        lambda: fs.set_snapshot_schedule(SnapshotSchedule(allowed, hourly=1, prefix="s\ud800")),
    ):
        with pytest.raises(InvalidPathException, match=r"snapshot name 's\\ud800': it is not"):
            refused()
    for hourly in (-1, 2**40):
        with pytest.raises(IllegalArgumentException, match=f"{allowed} cannot keep .{hourly},"):
            fs.set_snapshot_schedule(SnapshotSchedule(allowed, hourly=hourly))
    with pytest.raises(IllegalArgumentException, match="is one name: give a list"):
        fs.explain_xattrs(allowed, "user.a")


def test_who_may(cluster: Cluster, fs: cairnfs.FileSystem, allowed: str) -> None:
    fs.create_snapshot(allowed, "s1")
    with cairnfs.connect(cluster.uri, user="ada") as ada:
        for refused in (
            lambda: ada.allow_snapshot("/"),
            lambda: ada.disallow_snapshot(allowed),
            lambda: ada.create_snapshot(allowed, "s2"),
            lambda: ada.rename_snapshot(allowed, "s1", "s2"),
            lambda: ada.delete_snapshot(allowed, "s1"),
        ):
            with pytest.raises(AccessControlException):
                refused()
        assert ada.get_snapshottable_directories() == []
        fs.set_owner(allowed, "ada")
        assert ada.create_snapshot(allowed, "mine") == f"{allowed}/.snapshot/mine"
        assert [each.status.path for each in ada.get_snapshottable_directories()] == [allowed]


def test_a_diff_of_more_than_one_page(fs: cairnfs.FileSystem, allowed: str) -> None:
    """The same as with HDFS (test_real_hdfs.py)."""
    outside = f"{allowed}-elsewhere"
    for path in ("here", "there", "deleted"):
        fs.mkdirs(f"{allowed}/{path}")
    fs.mkdirs(f"{outside}/in")
    fs.create_snapshot(allowed, "old")
    for number in range(1100):
        fs.mkdirs(f"{allowed}/here/d{number:04}")
    fs.create_snapshot(allowed, "between")
    for number in range(0, 1100, 2):
        fs.rename(f"{allowed}/here/d{number:04}", f"{allowed}/there/e{number:04}")
    fs.rename(f"{outside}/in", f"{allowed}/in")
    fs.rename(f"{allowed}/deleted", f"{outside}/deleted")
    fs.create_snapshot(allowed, "new")

    moved = [(f"here/d{number:04}", f"there/e{number:04}") for number in range(0, 1100, 2)]
    entries = list(fs.snapshot_diff(allowed, "between", "new"))
    assert sorted((each.path, each.target or "") for each in entries if each.kind == "R") == moved
    assert sorted((each.kind, each.path) for each in entries if each.kind != "R") == [
        ("+", "in"),
        ("-", "deleted"),
        ("M", "."),
        ("M", "here"),
        ("M", "there"),
    ]
    back = list(fs.snapshot_diff(allowed, "new", "between"))
    assert sorted((each.target or "", each.path) for each in back if each.kind == "R") == moved
    assert {("-", "in"), ("+", "deleted")} <= {(each.kind, each.path) for each in back}
    created = [each.path for each in fs.snapshot_diff(allowed, "old", "new") if each.kind == "+"]
    assert len(created) == 1101
    now = list(fs.snapshot_diff(allowed, "between"))
    assert sorted(now, key=str) == sorted(entries, key=str)


def test_diffs_of_little_and_of_nothing(fs: cairnfs.FileSystem, allowed: str) -> None:
    write(fs, f"{allowed}/file", b"1")
    fs.create_snapshot(allowed, "s1")
    assert list(fs.snapshot_diff(allowed, "s1")) == []
    assert list(fs.snapshot_diff(allowed, "s1", "s1")) == []
    append(fs, f"{allowed}/file", b"2")
    fs.create_snapshot(allowed, "s2")
    assert list(fs.snapshot_diff(allowed, "s1", "s2")) == [DiffEntry("M", "file")]
    assert list(fs.snapshot_diff(allowed, "s2")) == []
    for names in (("gone", "s1"), ("s1", "gone"), ("gone",)):
        with pytest.raises(SnapshotException, match="Cannot find the snapshot of directory"):
            list(fs.snapshot_diff(allowed, *names))


def test_a_diff_of_a_tree_that_shows_an_inode_twice(fs: cairnfs.FileSystem, allowed: str) -> None:
    """Clients find what is in a directory by numbers, which those of inodes would confuse."""
    for name in ("x", "sub/moved"):
        write(fs, f"{allowed}/{name}", b"1")
    fs.create_snapshot(allowed, "s0")
    fs.clone_snapshot(allowed, "s0", f"{allowed}/c")
    fs.create_snapshot(allowed, "s1")
    for top in (allowed, f"{allowed}/c"):
        write(fs, f"{top}/sub/new", b"2")
        fs.rename(f"{top}/sub/moved", f"{top}/there")
    fs.delete(f"{allowed}/x")
    fs.create_snapshot(allowed, "s2")
    expected = [
        *(DiffEntry("M", "."), DiffEntry("-", "x"), DiffEntry("M", "sub"), DiffEntry("M", "c")),
        *(DiffEntry("+", "sub/new"), DiffEntry("R", "sub/moved", "there"), DiffEntry("M", "c/sub")),
        *(DiffEntry("+", "c/sub/new"), DiffEntry("R", "c/sub/moved", "c/there")),
    ]
    listed = list(fs.snapshot_diff(allowed, "s1", "s2"))
    assert sorted(listed, key=str) == sorted(expected, key=str)
    report = fs.get_snapshot_diff_report(allowed, "s1", "s2")
    assert sorted(report.entries, key=str) == sorted(expected, key=str)


# What HDFS cannot do


def test_several_directories_at_one_moment(fs: cairnfs.FileSystem, allowed: str) -> None:
    other = f"{allowed}-other"
    fs.mkdirs(other)
    fs.allow_snapshot(other)
    taken = fs.create_snapshots([allowed, other], "both")
    assert taken == [f"{allowed}/.snapshot/both", f"{other}/.snapshot/both"]
    assert fs.list_snapshots(allowed)[0].id == fs.list_snapshots(other)[0].id
    with pytest.raises(SnapshotException, match="same name"):
        fs.create_snapshots([other, allowed], "both")
    with pytest.raises(ValueError, match="is one path: give a list"):
        fs.create_snapshots(allowed)
    with pytest.raises(FileNotFoundError):
        fs.create_snapshots([allowed, "/missing"], "another")
    assert len(fs.list_snapshots(allowed)) == 1


def test_a_roll_back_and_back_again(fs: cairnfs.FileSystem, allowed: str) -> None:
    write(fs, f"{allowed}/file", b"as it was")
    write(fs, f"{allowed}/sub/deep", b"deep")
    fs.create_snapshot(allowed, "good")
    write(fs, f"{allowed}/file", b"ruined")
    write(fs, f"{allowed}/more", b"more")
    fs.delete(f"{allowed}/sub", recursive=True)
    safety = fs.rollback_snapshot(allowed, "good")
    assert find(fs, allowed) == ["file", "sub", "sub/deep"]
    assert read(fs, f"{allowed}/file") == b"as it was"
    assert read(fs, f"{allowed}/sub/deep") == b"deep"
    assert read(fs, f"{allowed}/.snapshot/{safety}/file") == b"ruined"
    append(fs, f"{allowed}/file", b", and more")
    assert read(fs, f"{allowed}/.snapshot/good/file") == b"as it was"
    fs.rollback_snapshot(allowed, safety)
    assert find(fs, allowed) == ["file", "more"]
    assert read(fs, f"{allowed}/file") == b"ruined"
    with pytest.raises(SnapshotException, match="gone"):
        fs.rollback_snapshot(allowed, "gone")


def test_a_clone_is_written_to(fs: cairnfs.FileSystem, allowed: str) -> None:
    write(fs, f"{allowed}/sub/file", b"shared")
    fs.create_snapshot(allowed, "s1")
    clone = f"{allowed}-clone"
    fs.clone_snapshot(allowed, "s1", clone)
    assert find(fs, clone) == ["sub", "sub/file"]
    append(fs, f"{clone}/sub/file", b", and more")
    write(fs, f"{clone}/sub/new", b"new")
    assert read(fs, f"{clone}/sub/file") == b"shared, and more"
    assert read(fs, f"{allowed}/sub/file") == read(fs, f"{allowed}/.snapshot/s1/sub/file")
    assert read(fs, f"{allowed}/sub/file") == b"shared"
    assert find(fs, allowed) == ["sub", "sub/file"]
    fs.delete_snapshot(allowed, "s1")
    assert read(fs, f"{clone}/sub/file") == b"shared, and more"
    fs.create_snapshot(allowed, "s2")
    with pytest.raises(FileExistsError):
        fs.clone_snapshot(allowed, "s2", clone)
