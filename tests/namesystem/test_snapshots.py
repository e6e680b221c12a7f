"""Snapshots: what they show stays as it was, whatever is done, and in the end nothing is left."""

from __future__ import annotations

import contextlib
import random
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from cairnfs.config import Control
from cairnfs.errors import (
    AccessControlException,
    FileNotFoundException,
    HadoopIllegalArgumentException,
    HdfsError,
    InvalidPathException,
    PathComponentTooLongException,
    SnapshotAccessControlException,
    SnapshotException,
)
from cairnfs.namesystem import snapshots
from cairnfs.namesystem.rename import RenameOption
from cairnfs.store.base import Reading, Row
from cairnfs.store.schema import Table
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


Act = Callable[[ScratchClient, str], object]

CHANGES: dict[str, Act] = {
    "mkdirs": lambda fs, path: fs.mkdirs(path),
    "create": lambda fs, path: fs.create(path),
    "overwrite": lambda fs, path: fs.create(path, overwrite=True),
    "append": lambda fs, path: fs.append(path),
    "truncate": lambda fs, path: fs.truncate(path, 0),
    "delete": lambda fs, path: fs.delete(path, recursive=True),
    "rename": lambda fs, path: fs.rename(path, "/elsewhere"),
    "rename to": lambda fs, path: fs.rename("/outside/f", path),
    "rename2": lambda fs, path: fs.rename2(path, "/elsewhere"),
    "rename2 to": lambda fs, path: fs.rename2("/outside/f", path, RenameOption.OVERWRITE),
    "link": lambda fs, path: fs.create_symlink("/outside", path),
    "concat": lambda fs, path: fs.concat("/outside/f", [path]),
    "concat to": lambda fs, path: fs.concat(path, ["/outside/f"]),
    "replication": lambda fs, path: fs.set_replication(path, 2),
    "permission": lambda fs, path: fs.set_permission(path, 0o700),
    "owner": lambda fs, path: fs.set_owner(path, "somebody"),
    "times": lambda fs, path: fs.set_times(path, 1, 1),
    "ACL": lambda fs, path: fs.set_acl(path, "user::rwx,group::r-x,other::---"),
    "ACL entries": lambda fs, path: fs.modify_acl_entries(path, "user:ada:r--"),
    "no ACL": lambda fs, path: fs.remove_acl(path),
    "quota": lambda fs, path: fs.set_quota(path, 5, 5),
    "allow": lambda fs, path: fs.allow_snapshot(path),
    "disallow": lambda fs, path: fs.disallow_snapshot(path),
    "snapshot": lambda fs, path: fs.create_snapshot(path, "t"),
    "rename snapshot": lambda fs, path: fs.rename_snapshot(path, "s", "t"),
    "delete snapshot": lambda fs, path: fs.delete_snapshot(path, "s"),
    "roll back": lambda fs, path: fs.rollback_snapshot(path, "s"),
    "clone to": lambda fs, path: fs.clone_snapshot("/d", "s", path),
    "recover lease": lambda fs, path: fs.recover_lease(path),
}


@pytest.mark.parametrize("change", CHANGES)
def test_nothing_can_be_changed_in_a_snapshot(fast_fs: ScratchClient, change: str) -> None:
    fs = fast_fs
    build(fs)
    fs.write("/outside/f", 3)
    for path in ("/d", "/outside"):
        fs.allow_snapshot(path)
    fs.create_snapshot("/d", "s")
    before = fs.dump()
    for path in (
        *("/d/.snapshot", "/d/.snapshot/s", "/d/.snapshot/s/a", "/d/.snapshot/s/x"),
        *("/d/.snapshot/s/new", "/d/.snapshot/nothing", "/outside/.snapshot"),
    ):
        with pytest.raises(SnapshotAccessControlException, match=re.escape(path)):
            CHANGES[change](fs, path)
        assert fs.dump() == before
    # Where there are none, there is no such directory, and none can be made.
    for path in ("/.snapshot", "/.snapshot/x", "/d/x/.snapshot", "/d/x/.snapshot/y"):
        with contextlib.suppress(HdfsError):
            assert CHANGES[change](fs, path) is False
        assert fs.dump() == before
    fs.delete_snapshot("/d", "s")


@pytest.mark.parametrize("name", ["/", ".", "..", "a/b", "x:y", "\0", "\udcff", ".snapshot"])
def test_names_that_are_refused(fast_fs: ScratchClient, name: str) -> None:
    fs = fast_fs
    build(fs)
    fs.allow_snapshot("/d")
    fs.create_snapshot("/d", "s")
    before = fs.dump()
    with pytest.raises(InvalidPathException, match=r"of /d$"):
        fs.create_snapshot("/d", name)
    with pytest.raises((InvalidPathException, HadoopIllegalArgumentException), match=r"of /d$"):
        fs.rename_snapshot("/d", "s", name)
    for act in (fs.delete_snapshot, fs.rollback_snapshot):
        with pytest.raises(SnapshotException, match="/d"):
            act("/d", name)
    with pytest.raises(SnapshotException, match="/d"):
        fs.clone_snapshot("/d", name, "/copy")
    with pytest.raises(PathComponentTooLongException, match="/d"):
        fs.create_snapshot("/d", "é" * 128)
    assert fs.dump() == before
    fs.delete_snapshot("/d", "s")


def test_no_more_than_the_limit(fs: ScratchClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshots, "SNAPSHOTS_MAX", 2)
    build(fs)
    for path in ("/d", "/outside"):
        fs.allow_snapshot(path)
    for name in ("s", "t"):
        fs.create_snapshot("/d", name)
    before = fs.dump()
    with pytest.raises(SnapshotException, match=r"already 2 snapshot.* of /d and .* quota is 2"):
        fs.create_snapshot("/d", "u")
    with pytest.raises(SnapshotException, match="already 2 snapshot"):
        fs.create_snapshots(["/outside", "/d"], "u")
    assert fs.dump() == before
    fs.delete_snapshot("/d", "s")
    fs.create_snapshot("/d", "u")
    for name in ("t", "u"):
        fs.delete_snapshot("/d", name)


def test_what_has_snapshots_below_says_which(fs: ScratchClient) -> None:
    build(fs)
    fs.allow_snapshot("/d/y")
    fs.allow_snapshot("/d/x/deep")
    fs.create_snapshot("/d/x/deep", "s")
    for act in (
        lambda: fs.delete("/d", recursive=True),
        lambda: fs.rename("/d", "/elsewhere"),
        lambda: fs.rename2("/d", "/elsewhere"),
    ):
        with pytest.raises(SnapshotException, match="/d cannot be deleted since /d/x/deep is"):
            act()
    fs.delete_snapshot("/d/x/deep", "s")
    assert fs.delete("/d", recursive=True)


def test_a_file_that_a_snapshot_has_is_overwritten(fs: ScratchClient) -> None:
    build(fs)
    fs.allow_snapshot("/d")
    fs.create_snapshot("/d", "s")
    then, blocks = see(fs, "/d/.snapshot/s"), blocks_of(fs, "/d/a")
    fs.create("/d/a", overwrite=True)
    fs.complete("/d/a", fs.write_blocks("/d/a", 1))
    fs.create_snapshot("/d", "t")
    later = see(fs, "/d/.snapshot/t")
    fs.create("/d/a", overwrite=True)  # and is being written
    fs.reclaim()
    assert see(fs, "/d/.snapshot/s") == then
    assert see(fs, "/d/.snapshot/t") == later
    assert blocks_of(fs, "/d/.snapshot/s/a") == blocks
    fs.delete_snapshot("/d", "s")
    fs.reclaim()
    assert see(fs, "/d/.snapshot/t") == later
    fs.delete_snapshot("/d", "t")
    fs.complete("/d/a")


@pytest.mark.parametrize("first", ["/d", "/other"])
def test_a_block_of_several_files_stays_as_long_as_one_of_them(
    fs: ScratchClient, first: str
) -> None:
    """Each of them only in a snapshot; whichever goes first, the other has its blocks."""
    build(fs)
    fs.mkdirs("/other")
    for path in ("/d", "/d/a", "/other"):
        fs.allow_snapshot(path)
    fs.create_snapshot("/d/a", "f")
    fs.clone_snapshot("/d/a", "f", "/other/a")
    fs.delete_snapshot("/d/a", "f")
    blocks = blocks_of(fs, "/d/a")
    assert blocks_of(fs, "/other/a") == blocks
    for directory in ("/d", "/other"):
        fs.create_snapshot(directory, "s")
    (other,) = {"/d", "/other"} - {first}
    fs.delete(f"{other}/a")
    fs.delete_snapshot(first, "s")
    fs.reclaim()
    assert blocks_of(fs, f"{other}/.snapshot/s/a") == blocks
    fs.delete(f"{first}/a")
    fs.reclaim()
    assert blocks_of(fs, f"{other}/.snapshot/s/a") == blocks
    # Rows of the blocks are there too: by them replicas are cared for.
    assert all(rows_of_block(fs, id) for id in blocks)
    fs.delete_snapshot(other, "s")
    fs.reclaim()
    assert not any(rows_of_block(fs, id) for id in blocks)


def test_by_the_id_of_an_inode(fs: ScratchClient) -> None:
    build(fs)
    fs.allow_snapshot("/d")
    ids = {path: fs.info(path).id for path in ("/d", "/d/x", "/d/a")}
    fs.create_snapshot("/d", "s")
    fs.set_permission("/d/a", 0o600)
    by_id = f"/.reserved/.inodes/{ids['/d']}/.snapshot/s"
    assert see(fs, by_id) == see(fs, "/d/.snapshot/s")
    assert fs.info(f"{by_id}/a").mode == 0o644
    assert blocks_of(fs, f"{by_id}/a") == blocks_of(fs, "/d/a")
    with pytest.raises(SnapshotAccessControlException):
        fs.delete(f"{by_id}/a")
    # An id is what it is now: also one of which a snapshot shows an earlier state.
    assert fs.info(f"/.reserved/.inodes/{ids['/d/a']}").mode == 0o600
    fs.delete("/d/x", recursive=True)
    with pytest.raises(FileNotFoundException, match="inode path"):
        fs.info(f"/.reserved/.inodes/{ids['/d/x']}")
    assert fs.info("/d/.snapshot/s/x").id == ids["/d/x"]
    fs.delete_snapshot("/d", "s")


def test_who_may_look_into_a_files_snapshots(fs: ScratchClient) -> None:
    fs.mkdirs("/p", 0o755)
    fs.write("/p/f", 10, mode=0o640)
    fs.set_owner("/p/f", "ada", "staff")
    fs.allow_snapshot("/p/f")
    ada, member, stranger = fs.user("ada"), fs.user("bob", "staff"), fs.user("eve")
    ada.create_snapshot("/p/f", "s")
    for reader in (fs, ada, member):
        assert reader.names("/p/f/.snapshot") == ["s"]
        assert blocks_of(reader, "/p/f/.snapshot/s") == blocks_of(fs, "/p/f")
    for look in (
        lambda: stranger.names("/p/f/.snapshot"),
        lambda: stranger.get_block_locations("/p/f/.snapshot/s"),
        lambda: stranger.get_file_info("/p/f/.snapshot/s"),
        lambda: stranger.list_snapshots("/p/f"),
        lambda: stranger.clone_snapshot("/p/f", "s", "/p/g"),
        lambda: stranger.rollback_snapshot("/p/f", "s"),
        lambda: member.rollback_snapshot("/p/f", "s"),
        lambda: member.delete_snapshot("/p/f", "s"),
        lambda: member.create_snapshot("/p/f", "t"),
    ):
        with pytest.raises(AccessControlException):
            look()
    # Whoever closes a file closes its snapshots, too.
    ada.set_permission("/p/f", 0o600)
    with pytest.raises(AccessControlException):
        member.get_block_locations("/p/f/.snapshot/s")
    ada.delete_snapshot("/p/f", "s")


def blocks_of(fs: ScratchClient, path: str) -> list[int]:
    return [located.block.id for located in fs.get_block_locations(path).blocks]


def rows_of_block(fs: ScratchClient, id: int) -> list[Row]:
    pair = (int(Table.BLOCKS), id)
    store = fs.namenode.namenode.store
    return fs.namenode.wait(store.read(Reading(ids=[pair]))).ids[pair]


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
