"""A backup, restored, is what the snapshot was: to the byte, with all attributes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.jobs.trees import make_varied_tree, read_tree, write

import cairnfs
from cairnfs.jobs import BatchSize, backup, plan_backup, plan_restore, restore
from cairnfs.testing.cluster import Cluster

pytestmark = [pytest.mark.java, pytest.mark.usefixtures("spark")]

SMALL = BatchSize(items=7, bytes=1 << 20)  # so that there are many


def url(fs: cairnfs.FileSystem, path: str) -> str:
    return f"{fs.url}{path}"


def snapshot(fs: cairnfs.FileSystem, path: str, name: str) -> None:
    fs.allow_snapshot(path)
    fs.create_snapshot(path, name)


def test_everything_comes_back_on_another_cluster(
    fs: cairnfs.FileSystem, other: cairnfs.FileSystem, backups: str
) -> None:
    make_varied_tree(fs, "/data")
    with fs.create("/data/being written") as open_file:
        open_file.write(b"seen")
        open_file.flush()
        snapshot(fs, "/data", "s1")
        open_file.write(b" and not seen")
    done = backup(url(fs, "/data"), "s1", backups, batch=SMALL)
    assert (done.files, done.directories, done.symlinks) == (25, 6, 2)
    assert done.copied_bytes == done.bytes > 3 << 20
    expected = read_tree(fs, "/data/.snapshot/s1")
    assert expected["/being written"]["content"] == b"seen"
    fs.delete_snapshot("/data", "s1")
    fs.delete("/data", recursive=True)

    back = restore(backups, url(other, "/elsewhere/data"), batch=SMALL)
    assert (back.files, back.directories, back.symlinks) == (25, 6, 2)
    assert read_tree(other, "/elsewhere/data") == expected
    assert [each.name for each in other.list_status("/elsewhere")] == ["data"]


def test_a_backup_goes_on_from_the_last_one(
    fs: cairnfs.FileSystem, other: cairnfs.FileSystem, backups: str, tmp_path: Path
) -> None:
    for n in range(10):
        write(fs, f"/data/old/{n}", bytes([n]) * 1000)
    snapshot(fs, "/data", "s1")
    first = backup(url(fs, "/data"), "s1", backups)
    assert (first.base, first.copied_files, first.copied_bytes) == (None, 10, 10_000)
    again = backup(url(fs, "/data"), "s1", backups)
    assert (again.was_done, again.files, again.bytes) == (True, first.files, first.bytes)

    fs.rename("/data/old", "/data/moved")
    fs.rename("/data/moved/3", "/data/three")
    write(fs, "/data/moved/new", b"n" * 50)
    with fs.append("/data/moved/5") as file:
        file.write(b"more")
    fs.set_xattr("/data/moved/6", "user.a", b"1")
    fs.delete("/data/moved/7")
    fs.create_snapshot("/data", "s2")
    plan = plan_backup(url(fs, "/data"), "s2", backups)
    assert {(each.action, each.kind): (each.items, each.bytes) for each in plan.lines} == {
        ("copy", "file"): (2, 1054),
        ("keep", "file"): (6, 0),
        ("read", "directory"): (2, 0),
        ("read", "file"): (2, 0),
    }
    assert not (tmp_path / "backups" / "s2").exists()
    second = backup(url(fs, "/data"), "s2", backups)
    assert (second.base, second.files, second.copied_files) == ("s1", 10, 2)
    assert second.copied_bytes == 1054
    plan = plan_backup(url(fs, "/data"), "s2", backups, name="s2-full", full=True)
    assert (plan.lines[0].action, plan.lines[0].bytes) == ("copy", second.bytes)
    plan = plan_restore(backups, url(other, "/s2"), name="s2")
    assert sum(each.items for each in plan.lines) == second.files + second.directories
    assert other.list_status("/") == []
    restore(backups, url(other, "/s2"))
    assert read_tree(other, "/s2") == read_tree(fs, "/data/.snapshot/s2")


def test_backups_can_be_kept_on_a_cluster(
    fs: cairnfs.FileSystem, other: cairnfs.FileSystem
) -> None:
    make_varied_tree(fs, "/data")
    snapshot(fs, "/data", "s1")
    expected = read_tree(fs, "/data/.snapshot/s1")
    backup(url(fs, "/data"), "s1", url(other, "/backups"))
    assert [each.name for each in other.list_status("/backups/s1")] == [
        "data",
        "head.json",
        "manifest",
    ]
    fs.mkdirs("/again")  # an empty directory is as good as none
    restore(url(other, "/backups"), url(fs, "/again"))
    assert read_tree(fs, "/again") == expected


@pytest.fixture
def apart(tmp_path: Path) -> Iterator[cairnfs.FileSystem]:
    """A cluster of its own, since what is declared on one stays."""
    with Cluster(tmp_path / "cluster", datanodes=1) as cluster, cairnfs.connect(cluster.uri) as fs:
        yield fs


def test_inherited_attributes_and_policies_come_back(
    apart: cairnfs.FileSystem, backups: str
) -> None:
    fs = apart
    fs.declare_xattr("user.tier", "follow-path")
    fs.declare_xattr("user.origin", "stay-with-data")
    for path in ("/data/a/b/c", "/data/a/x", "/data/z"):
        write(fs, f"{path}/file", b"1")
    fs.set_xattr("/data", "user.tier", b"warm")
    fs.set_xattr("/data/a/b", "user.tier", b"hot")
    fs.remove_xattr("/data/a/b/c/file", "user.tier")
    fs.set_xattr("/data/a", "user.origin", b"here")
    fs.rename("/data/a/x", "/data/moved")
    fs.set_storage_policy("/data/z", "WARM")
    fs.set_storage_policy("/data/z/file", "HOT")
    fs.set_storage_policy("/data/a", "COLD")
    snapshot(fs, "/data", "s1")
    before = read_tree(fs, "/data/.snapshot/s1")
    assert before["/moved/file"]["xattrs"] == {"user.tier": b"warm", "user.origin": b"here"}
    assert "user.tier" not in before["/a/b/c/file"]["xattrs"]
    backup(url(fs, "/data"), "s1", backups)
    # What is inherited changes without a change to who inherits it.
    fs.set_xattr("/data/a", "user.tier", b"cold")
    fs.set_storage_policy("/data/a/b", "WARM")
    fs.create_snapshot("/data", "s2")
    after = read_tree(fs, "/data/.snapshot/s2")
    assert after["/a/b/c/file"]["xattrs"]["user.tier"] == b"cold"
    assert backup(url(fs, "/data"), "s2", backups).copied_files == 0
    for name, expected in (("s1", before), ("s2", after)):
        restore(backups, url(fs, f"/{name}"), name=name)
        assert read_tree(fs, f"/{name}") == expected
