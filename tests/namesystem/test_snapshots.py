"""Snapshots: what they show stays as it was, whatever is done, and in the end nothing is left."""

from __future__ import annotations

import contextlib
import random
from pathlib import Path

import pytest

from cairnfs.config import Control
from cairnfs.errors import (
    AccessControlException,
    FileNotFoundException,
    HadoopIllegalArgumentException,
    HdfsError,
    InvalidPathException,
    SnapshotAccessControlException,
    SnapshotException,
)
from cairnfs.namesystem.rename import RenameOption
from cairnfs.testing.scratch import ScratchClient, scratch_namespace

Tree = dict[str, tuple[object, ...]]


def see(fs: ScratchClient, path: str, below: str = "") -> Tree:
    """Everything at and below a path, as callers see it."""
    status = fs.get_file_link_info(path)
    assert status is not None, f"{path} does not exist"
    shown = (
        *(status.kind, status.length_bytes, status.mode, status.owner, status.group),
        *(status.mtime_ms, status.replication, status.id, status.children),
    )
    tree: Tree = {below: shown}
    if status.is_directory:
        after = b""
        while True:
            listing = fs.get_listing(path, after)
            assert listing is not None
            for entry in listing.entries:
                name = entry.name.decode()
                tree.update(see(fs, f"{path}/{name}", f"{below}/{name}"))
            if not listing.remaining:
                break
            after = listing.entries[-1].name
    return tree


def build(fs: ScratchClient) -> None:
    fs.mkdirs("/d/x/deep")
    fs.mkdirs("/d/y")
    fs.mkdirs("/outside")
    fs.write("/d/a", 10, 20)
    fs.write("/d/x/b", 30)
    fs.write("/d/x/deep/c")
    fs.write("/d/y/e", 5)


def test_what_is_done_later_does_not_show(fs: ScratchClient) -> None:
    build(fs)
    fs.allow_snapshot("/d")
    assert fs.create_snapshot("/d", "s1") == "/d/.snapshot/s1"
    before = see(fs, "/d/.snapshot/s1")
    assert {path for path in before if path} == {path for path in see(fs, "/d") if path}
    fs.clock.advance(5000)
    fs.delete("/d/x", recursive=True)
    fs.rename("/d/y", "/outside/y")
    fs.set_permission("/d/a", 0o600)
    fs.set_permission("/d", 0o700)
    fs.write("/d/new", 7)
    fs.delete("/outside/y/e")
    fs.reclaim()
    assert see(fs, "/d/.snapshot/s1") == before
    assert fs.names("/d") == ["a", "new"]
    summary = fs.get_content_summary("/d/.snapshot/s1")
    assert (summary.files, summary.directories, summary.length_bytes) == (4, 4, 65)
    fs.delete_snapshot("/d", "s1")


def test_nested(fs: ScratchClient) -> None:
    build(fs)
    for path in ("/", "/d", "/d/x"):
        fs.allow_snapshot(path)
    seen = {}
    for number, path in enumerate(("/d/x", "/", "/d", "/d/x", "/d")):
        fs.create_snapshot(path, f"s{number}")
        where = f"{path}/.snapshot/s{number}".replace("//", "/")
        seen[path, f"s{number}"] = where, see(fs, where)
        fs.clock.advance(1000)
        fs.write(f"/d/x/new{number}", 1)
        fs.rename("/d/x/deep", f"/outside/deep{number}")
        fs.mkdirs("/d/x/deep")
    fs.reclaim()
    for where, tree in seen.values():
        assert see(fs, where) == tree
    for path, name in [("/d", "s2"), ("/", "s1"), ("/d/x", "s0"), ("/d", "s4"), ("/d/x", "s3")]:
        del seen[path, name]
        fs.delete_snapshot(path, name)
        fs.reclaim()
        for where, tree in seen.values():
            assert see(fs, where) == tree


def test_several_at_one_moment(fs: ScratchClient) -> None:
    build(fs)
    fs.allow_snapshot("/d/x")
    fs.allow_snapshot("/outside")
    fs.allow_snapshot("/d/a")
    paths = fs.create_snapshots(["/d/x", "/outside", "/d/a"], "all")
    assert paths == ("/d/x/.snapshot/all", "/outside/.snapshot/all", "/d/a/.snapshot/all")
    assert len({info.txid for path in ("/d/x", "/d/a") for info in fs.list_snapshots(path)}) == 1
    fs.delete_snapshot("/d/x", "all")
    fs.delete_snapshot("/outside", "all")
    before = fs.info("/d/a/.snapshot/all")
    fs.set_permission("/d/a", 0o600)
    assert fs.info("/d/a/.snapshot/all") == before
    with pytest.raises(SnapshotException):
        fs.delete("/d/a")
    fs.delete_snapshot("/d/a", "all")


def test_listing_and_renaming(fs: ScratchClient) -> None:
    build(fs)
    fs.allow_snapshot("/d")
    fs.allow_snapshot("/d")
    fs.create_snapshot("/d", "b")
    fs.create_snapshot("/d", "a")
    assert fs.names("/d/.snapshot") == ["a", "b"]
    fs.rename_snapshot("/d", "a", "c")
    assert fs.names("/d/.snapshot") == ["b", "c"]
    assert [info.name for info in fs.list_snapshots("/d")] == [b"b", b"c"]
    [info] = fs.list_snapshottable()
    assert (info.path, info.snapshots) == ("/d", 2)
    assert fs.create_snapshot("/d").startswith("/d/.snapshot/s")
    for listed in fs.list_snapshots("/d"):
        fs.delete_snapshot("/d", listed.name.decode())
    fs.disallow_snapshot("/d")
    assert fs.list_snapshottable() == []
    assert not fs.exists("/d/.snapshot")


def test_what_is_refused(fs: ScratchClient) -> None:
    build(fs)
    with pytest.raises(SnapshotException, match="not a snapshottable directory: /d"):
        fs.create_snapshot("/d", "s")
    with pytest.raises(FileNotFoundException):
        fs.allow_snapshot("/nothing")
    fs.allow_snapshot("/d/x")
    fs.create_snapshot("/d/x", "s")
    with pytest.raises(SnapshotException, match="already a snapshot"):
        fs.create_snapshot("/d/x", "s")
    for name in (".snapshot", "..", "\0", ":"):
        with pytest.raises(InvalidPathException):
            fs.create_snapshot("/d/x", name)
    with pytest.raises(HadoopIllegalArgumentException):
        fs.create_snapshot("/d/x", "a/b")
    for path in ("/d", "/d/x"):
        with pytest.raises(SnapshotException):
            fs.delete(path, recursive=True)
        with pytest.raises(SnapshotException):
            fs.rename2(path, "/elsewhere")
    fs.mkdirs("/empty")
    with pytest.raises(HdfsError):
        fs.rename2("/empty", "/d/x", RenameOption.OVERWRITE)
    with pytest.raises(SnapshotException, match="has snapshot"):
        fs.disallow_snapshot("/d/x")
    for path in ("/d/x/.snapshot/s/new", "/d/x/.snapshot/s", "/d/x/.snapshot"):
        with pytest.raises(SnapshotAccessControlException):
            fs.mkdirs(path)
    for act in (
        lambda: fs.delete("/d/x/.snapshot/s/b"),
        lambda: fs.delete("/d/x/.snapshot/s"),
        lambda: fs.set_permission("/d/x/.snapshot/s/b", 0o600),
        lambda: fs.rename2("/d/x/.snapshot/s/b", "/d/b"),
        lambda: fs.rename2("/d/a", "/d/x/.snapshot/s/a"),
        lambda: fs.create("/d/x/.snapshot/s/new"),
    ):
        with pytest.raises(SnapshotAccessControlException):
            act()
    with pytest.raises(SnapshotException, match="does not exist"):
        fs.delete_snapshot("/d/x", "nothing")
    with pytest.raises(SnapshotException, match="does not exist"):
        fs.rename_snapshot("/d/x", "nothing", "other")
    stranger = fs.namenode.client("stranger")
    with pytest.raises(AccessControlException):
        stranger.create_snapshot("/d/x", "t")
    with pytest.raises(AccessControlException):
        stranger.allow_snapshot("/d")
    fs.delete_snapshot("/d/x", "s")


@pytest.mark.parametrize("control", Control)
@pytest.mark.parametrize("seed", range(4))
def test_random_changes(control: Control, seed: int, tmp_path: Path) -> None:
    """Snapshots everywhere, deleted in any order: the others never change."""
    chance = random.Random(seed)
    with scratch_namespace(tmp_path, control) as fs:
        build(fs)
        roots = ["/", "/d", "/d/x", "/outside"]
        for root in roots:
            fs.allow_snapshot(root)
        seen: dict[tuple[str, str], Tree] = {}
        for step in range(150):
            fs.clock.advance(10)
            with contextlib.suppress(HdfsError):
                change_something(fs, chance, step)
            if chance.random() < 0.15:
                root = chance.choice(roots)
                where = fs.create_snapshot(root, f"s{step}")
                seen[root, f"s{step}"] = see(fs, where)
            if seen and chance.random() < 0.12:
                root, name = chance.choice(sorted(seen))
                del seen[root, name]
                fs.delete_snapshot(root, name)
            if chance.random() < 0.3:
                fs.reclaim()
            if step % 10 == 0:
                for (root, name), tree in seen.items():
                    where = f"{root}/.snapshot/{name}".replace("//", "/")
                    assert see(fs, where) == tree, f"{where} has changed by step {step}"
        for root, name in seen:
            fs.delete_snapshot(root, name)
        fs.reclaim()
        assert fs.namenode.wait(fs.namenode.namenode.store.count_past()) == 0


def change_something(fs: ScratchClient, chance: random.Random, step: int) -> None:
    paths = [
        path
        for path in see(fs, "/")
        if path not in ("", "/d", "/d/x", "/outside") and "/.snapshot" not in path
    ] or ["/d"]
    some, other = chance.choice(paths), chance.choice([*paths, "/d", "/d/x", "/outside"])
    match chance.randrange(8):
        case 0:
            fs.write(f"{other}/f{step}", chance.randrange(1, 9))
        case 1:
            fs.mkdirs(f"{other}/d{step}")
        case 2:
            fs.delete(some, recursive=True)
        case 3 | 4:
            fs.rename2(some, f"{other}/{chance.choice('pqr')}", RenameOption.OVERWRITE)
        case 5:
            fs.set_permission(some, chance.choice((0o700, 0o755, 0o711)))
        case 6:
            fs.set_replication(some, chance.randrange(1, 5))
        case _:
            fs.truncate(some, 0)
