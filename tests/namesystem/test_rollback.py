"""Roll-back and clones: constant work, exact results, and nothing left over."""

from __future__ import annotations

import contextlib
import itertools
import random
from pathlib import Path

import pytest
from tests.namesystem.test_snapshots import Tree, build, change_something, see

from cairnfs.config import Control
from cairnfs.errors import (
    AccessControlException,
    ClusterStorageCapacityExceededException,
    FileAlreadyExistsException,
    FileNotFoundException,
    HdfsError,
    SnapshotException,
)
from cairnfs.namenode.reclaiming import SETTLING_MS
from cairnfs.namesystem import quotas, subtree_access
from cairnfs.testing.scratch import ScratchClient, scratch_namespace


def look(fs: ScratchClient, path: str) -> Tree:
    """As `see`, without what a copy need not have: ids, and the times of directories."""
    return {
        below: (*shown[:5], None if shown[0] == 1 else shown[5], shown[6], shown[8])
        for below, shown in see(fs, path).items()
    }


def clean(fs: ScratchClient) -> None:
    """Delete all snapshots and what was made, so that nothing may be left."""
    for info in fs.list_snapshottable():
        for snapshot in fs.list_snapshots(info.path):
            fs.delete_snapshot(info.path, snapshot.name.decode())
    for name in fs.names("/"):
        fs.delete(f"/{name}", recursive=True)
    for _ in range(20):  # what held something may itself have been held
        fs.clock.advance(SETTLING_MS)
        fs.reclaim()
    assert fs.namenode.wait(fs.namenode.namenode.store.count_past()) == 0


def test_roll_back(fs: ScratchClient) -> None:
    build(fs)
    fs.allow_snapshot("/d")
    before = look(fs, "/d")
    fs.create_snapshot("/d", "good")
    fs.delete("/d/x", recursive=True)
    fs.rename("/d/y", "/outside/y")
    fs.write("/d/new", 3)
    fs.set_permission("/d", 0o700)
    after = look(fs, "/d")
    fs.create_snapshot("/d", "safety")
    fs.rollback_snapshot("/d", "good")
    assert look(fs, "/d") == before
    assert look(fs, "/d/.snapshot/safety") == after
    assert fs.names("/outside") == ["y"]
    fs.reclaim()
    assert look(fs, "/d") == before
    summary = fs.get_content_summary("/")
    assert (summary.files, summary.length_bytes) == (5, 70)
    fs.rollback_snapshot("/d", "safety")
    assert look(fs, "/d") == after
    fs.rollback_snapshot("/d", "good")
    fs.delete_snapshot("/d", "good")
    fs.delete_snapshot("/d", "safety")
    fs.reclaim()
    assert look(fs, "/d") == before
    clean(fs)


def test_what_is_done_after_a_roll_back(fs: ScratchClient) -> None:
    build(fs)
    fs.allow_snapshot("/d")
    fs.create_snapshot("/d", "good")
    fs.delete("/d/x", recursive=True)
    fs.rollback_snapshot("/d", "good")
    fs.write("/d/x/deep/more", 4)
    fs.delete("/d/a")
    fs.rename("/d/y", "/d/x/z")
    fs.set_permission("/d/x/b", 0o600)
    assert fs.names("/d") == ["x"]
    assert fs.names("/d/x") == ["b", "deep", "z"]
    assert fs.names("/d/x/deep") == ["c", "more"]
    assert fs.names("/d/x/z") == ["e"]
    assert fs.info("/d/x/b").mode == 0o600
    summary = fs.get_content_summary("/d")
    assert (summary.files, summary.directories, summary.length_bytes) == (4, 4, 39)
    fs.create_snapshot("/d", "later")
    fs.mkdirs("/d/a")
    assert fs.info("/d/a").is_directory
    fs.delete("/d/x", recursive=True)
    assert fs.names("/d/.snapshot/later/x/deep") == ["c", "more"]
    fs.rollback_snapshot("/d", "later")
    assert fs.names("/d/x/deep") == ["c", "more"]
    fs.rollback_snapshot("/d", "good")
    assert fs.names("/d") == ["a", "x", "y"]
    clean(fs)


def test_a_file_is_rolled_back(fs: ScratchClient) -> None:
    fs.write("/f", 10, 20)
    fs.allow_snapshot("/f")
    fs.create_snapshot("/f", "s")
    fs.truncate("/f", 5)
    fs.set_permission("/f", 0o600)
    fs.rollback_snapshot("/f", "s")
    assert fs.info("/f").length_bytes == 30
    assert fs.info("/f").mode == 0o644
    assert fs.get_content_summary("/").length_bytes == 30
    clean(fs)


def test_several_are_rolled_back_together_unless_one_is_in_another(fs: ScratchClient) -> None:
    paths = ["/d", "/d-x", "/e", "/d/sub"]  # by their text, another one comes between two of them
    for path in paths:
        fs.mkdirs(path)
        fs.allow_snapshot(path)
    for path in paths:
        fs.create_snapshot(path, "s")
        fs.write(f"{path}/new", 1)
    for order in itertools.permutations(paths):
        with pytest.raises(SnapshotException, match="/d and /d/sub cannot be rolled back together"):
            fs.rollback_snapshots(order, "s", "before")
    with pytest.raises(SnapshotException, match="/e and /e cannot"):
        fs.rollback_snapshots(["/e", "/d", "/e"], "s", "before")
    assert all(fs.exists(f"{path}/new") for path in paths)
    fs.rollback_snapshots(["/e", "/d/sub", "/d-x"], "s", "before")
    assert [path for path in paths if fs.exists(f"{path}/new")] == ["/d"]
    clean(fs)


def test_what_has_snapshots_keeps_them(fs: ScratchClient) -> None:
    build(fs)
    fs.allow_snapshot("/d")
    fs.allow_snapshot("/d/x/deep")
    fs.create_snapshot("/d/x/deep", "inner")
    fs.create_snapshot("/d", "outer")
    inner, outer = look(fs, "/d/x/deep/.snapshot/inner"), look(fs, "/d")
    fs.write("/d/x/deep/new", 1)
    fs.rollback_snapshot("/d", "outer")
    fs.reclaim()
    assert look(fs, "/d") == outer
    assert look(fs, "/d/x/deep/.snapshot/inner") == inner
    fs.rollback_snapshot("/d/x/deep", "inner")
    assert look(fs, "/d") == outer
    fs.mkdirs("/d/late")
    fs.allow_snapshot("/d/late")
    fs.create_snapshot("/d/late", "s")
    with pytest.raises(SnapshotException, match="would remove /d/late"):
        fs.rollback_snapshot("/d", "outer")
    assert fs.exists("/d/late")
    clean(fs)


def test_snapshots_in_between_do_not_change(fs: ScratchClient) -> None:
    """One of a directory between, taken after the last one of the directory that is rolled back."""
    fs.write("/d/m/n/f", 5)
    for path in ("/d", "/d/m", "/d/m/n", "/d/m/n/f"):
        fs.allow_snapshot(path)
    fs.create_snapshot("/d", "s")
    fs.set_permission("/d/m/n", 0o700)
    fs.truncate("/d/m/n/f", 3)
    fs.create_snapshot("/d/m/n/f", "file")
    fs.create_snapshot("/d/m", "between")
    before = look(fs, "/d/m/.snapshot/between")
    fs.rollback_snapshot("/d", "s")
    fs.reclaim()
    assert look(fs, "/d/m/.snapshot/between") == before
    assert fs.info("/d/m/n/f").length_bytes == 5
    assert fs.info("/d/m/n/f/.snapshot/file").length_bytes == 3
    clean(fs)


def test_clone(fs: ScratchClient) -> None:
    build(fs)
    fs.allow_snapshot("/d")
    fs.create_snapshot("/d", "s")
    original = look(fs, "/d")
    fs.clone_snapshot("/d", "s", "/copy")
    assert look(fs, "/copy") == original
    fs.write("/copy/x/new", 2)
    fs.delete("/copy/a")
    fs.rename("/copy/y", "/outside/y")
    assert look(fs, "/d") == original
    assert fs.names("/copy") == ["x"]
    assert fs.names("/outside/y") == ["e"]
    fs.delete_snapshot("/d", "s")
    fs.delete("/d", recursive=True)
    fs.reclaim()
    assert fs.names("/copy/x") == ["b", "deep", "new"]
    assert fs.names("/outside/y") == ["e"]
    fs.allow_snapshot("/copy")
    fs.create_snapshot("/copy", "again")
    fs.clone_snapshot("/copy", "again", "/second")
    fs.delete("/copy/x", recursive=True)
    fs.reclaim()
    assert fs.names("/second/x/deep") == ["c"]
    clean(fs)


def test_nothing_is_kept_for_a_clone_that_is_gone(fs: ScratchClient) -> None:
    fs.write("/d/a", 1)
    fs.allow_snapshot("/d")
    fs.create_snapshot("/d", "s")
    fs.clone_snapshot("/d", "s", "/copy")
    fs.delete_snapshot("/d", "s")
    fs.delete("/copy", recursive=True)
    for _ in range(5):
        fs.clock.advance(SETTLING_MS)
        fs.reclaim()
    fs.set_permission("/d/a", 0o600)
    assert fs.namenode.wait(fs.namenode.namenode.store.count_past()) == 0


def test_a_clone_of_a_file(fs: ScratchClient) -> None:
    fs.write("/f", 10, 20)
    fs.allow_snapshot("/f")
    fs.create_snapshot("/f", "s")
    fs.clone_snapshot("/f", "s", "/g")
    assert fs.info("/g").length_bytes == 30
    fs.delete_snapshot("/f", "s")
    fs.delete("/f")
    fs.reclaim()
    assert len(fs.get_block_locations("/g").blocks) == 2
    clean(fs)


def test_clones_of_clones_stay_countable(
    fs: ScratchClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each holds as much as all before it: forty of them would have 10^12 entries."""
    monkeypatch.setattr(quotas, "COPIED_INODES_MAX", 200)
    monkeypatch.setattr(subtree_access, "DIRECTORIES_MAX", 50)
    fs.mkdirs("/bob/d")
    fs.set_owner("/bob", "bob")
    fs.allow_snapshot("/bob")
    bob = fs.user("bob")
    for number in range(6):
        bob.create_snapshot("/bob", f"s{number}")
        bob.clone_snapshot("/bob", f"s{number}", f"/bob/c{number}")
    assert fs.get_quota_usage("/bob").inodes == 2**7
    assert bob.get_content_summary("/bob/c4").directories == 2**5
    with pytest.raises(AccessControlException, match="all would have to be looked at"):
        bob.get_content_summary("/bob/c5")
    with pytest.raises(AccessControlException, match="all would have to be looked at"):
        bob.delete("/bob/c5", recursive=True)
    bob.create_snapshot("/bob", "s6")
    with pytest.raises(ClusterStorageCapacityExceededException, match="c6 would have 128 files"):
        bob.clone_snapshot("/bob", "s6", "/bob/c6")
    assert fs.delete("/bob/c5", recursive=True)
    clean(fs)


def test_no_roll_back_brings_back_more_than_can_be_counted(
    fs: ScratchClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quotas, "COPIED_INODES_MAX", 6)
    for path in ("/d/1", "/d/2", "/d/3"):
        fs.mkdirs(path)
    fs.allow_snapshot("/d")
    fs.create_snapshot("/d", "s")
    for path in ("/d/1", "/d/2", "/d/3"):
        fs.delete(path, recursive=True)
    fs.mkdirs("/other/1/2/3")
    with pytest.raises(ClusterStorageCapacityExceededException, match="/d would have 3 files and"):
        fs.rollback_snapshot("/d", "s")
    fs.delete("/other", recursive=True)
    fs.rollback_snapshot("/d", "s")
    assert fs.get_quota_usage("/d").inodes == 4
    clean(fs)


def test_what_is_refused(fs: ScratchClient) -> None:
    build(fs)
    fs.allow_snapshot("/d")
    fs.create_snapshot("/d", "s")
    with pytest.raises(SnapshotException, match="roll /d back to snapshot nothing"):
        fs.rollback_snapshot("/d", "nothing")
    with pytest.raises(SnapshotException, match="goes back with the one above"):
        fs.rollback_snapshot("/outside", "s")
    with pytest.raises(SnapshotException, match="no snapshot s of /outside"):
        fs.clone_snapshot("/outside", "s", "/copy")
    with pytest.raises(FileAlreadyExistsException):
        fs.clone_snapshot("/d", "s", "/outside")
    with pytest.raises(FileNotFoundException):
        fs.clone_snapshot("/d", "s", "/no/where")
    stranger = fs.namenode.client("stranger")
    with pytest.raises(AccessControlException):
        stranger.rollback_snapshot("/d", "s")
    with pytest.raises(AccessControlException):
        stranger.clone_snapshot("/d", "s", "/copy")
    clean(fs)


@pytest.mark.parametrize(
    ("control", "seed"),
    [
        *((Control.OPTIMISTIC, seed) for seed in range(5)),
        (Control.PESSIMISTIC, 5),
        (Control.SYSTEM_LOCK, 6),
    ],
)
def test_random_changes(control: Control, seed: int, tmp_path: Path) -> None:
    with scratch_namespace(tmp_path, control) as fs:
        change_at_random(fs, seed)


@pytest.mark.parametrize("seed", range(2))
def test_random_changes_on_postgres(seed: int, tmp_path: Path, postgres_dsn: str) -> None:
    with scratch_namespace(tmp_path, url=postgres_dsn) as fs:
        change_at_random(fs, seed)


def change_at_random(fs: ScratchClient, seed: int) -> None:
    """Roll-backs and clones between all other changes: everything else never changes."""
    chance = random.Random(seed)
    build(fs)
    roots = ["/d", "/d/x", "/outside"]
    for root in roots:
        fs.allow_snapshot(root)
    seen: dict[tuple[str, str], Tree] = {}
    for step in range(100):
        fs.clock.advance(10)
        with contextlib.suppress(HdfsError):
            change_something(fs, chance, step)
        if chance.random() < 0.15:
            root = chance.choice(roots)
            seen[root, f"s{step}"] = look(fs, fs.create_snapshot(root, f"s{step}"))
        if seen and chance.random() < 0.1:
            root, name = chance.choice(sorted(seen))
            del seen[root, name]
            fs.delete_snapshot(root, name)
        if seen and chance.random() < 0.1:
            root, name = chance.choice(sorted(seen))
            fs.rollback_snapshot(root, name)
            assert look(fs, root) == seen[root, name], f"step {step}: {root} {name}"
        if seen and chance.random() < 0.05:
            root, name = chance.choice(sorted(seen))
            fs.clone_snapshot(root, name, f"/outside/clone{step}")
            assert look(fs, f"/outside/clone{step}") == seen[root, name]
        if chance.random() < 0.3:
            fs.reclaim()
        if step % 10 == 0:
            for (root, name), tree in seen.items():
                where = f"{root}/.snapshot/{name}"
                assert look(fs, where) == tree, f"{where} has changed by step {step}"
    clean(fs)


@pytest.mark.parametrize("is_moved_out", [False, True])
@pytest.mark.parametrize("name", ["x", "x/y", "x/f"])
def test_what_has_snapshots_is_known_where_a_roll_back_has_shown_it_again(
    fs: ScratchClient, name: str, is_moved_out: bool
) -> None:
    """The original is deleted or elsewhere: in the later snapshot it has no row."""
    fs.mkdirs("/d/x/y")
    fs.write("/d/x/f", 1)
    fs.allow_snapshot("/d")
    fs.create_snapshot("/d", "s1")
    if is_moved_out:
        fs.rename("/d/x", "/out")
    else:
        fs.delete("/d/x", recursive=True)
    fs.rollback_snapshot("/d", "s1")
    fs.create_snapshot("/d", "s2")
    shown = look(fs, "/d")
    fs.allow_snapshot(f"/d/{name}")
    fs.create_snapshot(f"/d/{name}", "own")
    fs.set_permission(f"/d/{name}", 0o700)
    fs.mkdirs("/d/x/new")
    fs.rollback_snapshot("/d", "s2")
    assert look(fs, "/d") == shown
    assert [snapshot.name for snapshot in fs.list_snapshots(f"/d/{name}")] == [b"own"]
    if not is_moved_out:  # else it is another one than the one outside, and than it was
        assert list(fs.snapshot_diff("/d", "s2")) == []
    clean(fs)


def test_what_was_brought_back_with_another_id_outlives_its_snapshots(fs: ScratchClient) -> None:
    """Of what is nested, the row is one of after a roll-back, and its content that of before."""
    fs.mkdirs("/d/x/y")
    fs.allow_snapshot("/d")
    fs.create_snapshot("/d", "s")
    fs.write("/d/x/y/new", 5)
    before = look(fs, "/")
    fs.rollback_snapshot("/d", "s", "safety")
    fs.allow_snapshot("/d/x")
    fs.rollback_snapshot("/d", "safety")
    assert look(fs, "/") == before
    for name in ("s", "safety"):
        fs.delete_snapshot("/d", name)
        fs.clock.advance(SETTLING_MS)
        fs.reclaim()
        assert look(fs, "/") == before
    clean(fs)


def test_what_is_nested_is_known_after_several_roll_backs(fs: ScratchClient) -> None:
    """It has had two rows since the snapshot, and the first of all is reclaimed."""
    fs.write("/d/f", 1)
    fs.allow_snapshot("/d")
    fs.create_snapshot("/d", "s1")
    fs.rename("/d/f", "/d/g")
    fs.rollback_snapshot("/d", "s1")
    fs.create_snapshot("/d", "s2")
    shown = look(fs, "/d")
    fs.set_permission("/d/f", 0o600)
    fs.create_snapshot("/d", "s3")
    fs.rollback_snapshot("/d", "s3")
    fs.reclaim()
    fs.allow_snapshot("/d/f")
    fs.create_snapshot("/d/f", "own")
    fs.rollback_snapshot("/d", "s2")
    assert look(fs, "/d") == shown
    assert [snapshot.name for snapshot in fs.list_snapshots("/d/f")] == [b"own"]
    clean(fs)


def test_what_is_nested_in_a_clone_is_known_after_a_roll_back(fs: ScratchClient) -> None:
    """The directory that it is in has got a row before the roll-back, and another one after it."""
    fs.mkdirs("/d/x/y")
    fs.allow_snapshot("/d")
    fs.create_snapshot("/d", "s1")
    fs.clone_snapshot("/d", "s1", "/d/copy")
    fs.create_snapshot("/d", "s2")
    fs.mkdirs("/d/copy/x/new")
    shown = look(fs, "/d")
    fs.rollback_snapshot("/d", "s2", "safety")
    fs.allow_snapshot("/d/copy/x/y")
    fs.create_snapshot("/d/copy/x/y", "own")
    fs.rollback_snapshot("/d", "safety")
    assert look(fs, "/d") == shown
    assert [snapshot.name for snapshot in fs.list_snapshots("/d/copy/x/y")] == [b"own"]
    clean(fs)


def test_what_is_nested_goes_back_to_where_it_had_been_moved(fs: ScratchClient) -> None:
    fs.write("/d/f", 1)
    fs.allow_snapshot("/d")
    fs.create_snapshot("/d", "s1")
    fs.clone_snapshot("/d", "s1", "/d/copy")
    fs.create_snapshot("/d", "s2")
    fs.rename("/d/copy/f", "/d/moved")
    shown = look(fs, "/d")
    fs.rollback_snapshot("/d", "s2", "safety")
    fs.allow_snapshot("/d/copy/f")
    fs.create_snapshot("/d/copy/f", "own")
    fs.rollback_snapshot("/d", "safety")
    assert look(fs, "/d") == shown
    assert [snapshot.name for snapshot in fs.list_snapshots("/d/moved")] == [b"own"]
    clean(fs)


def test_what_is_nested_goes_back_to_the_name_of_two_roll_backs_before(fs: ScratchClient) -> None:
    fs.write("/d/f", 1)
    fs.allow_snapshot("/d")
    fs.create_snapshot("/d", "s1")
    fs.set_permission("/d/f", 0o600)
    fs.rollback_snapshot("/d", "s1")
    fs.create_snapshot("/d", "s2")
    shown = look(fs, "/d")
    fs.rename("/d/f", "/d/g")
    fs.create_snapshot("/d", "s3")
    fs.set_permission("/d/g", 0o600)
    fs.rollback_snapshot("/d", "s3")
    fs.reclaim()
    fs.allow_snapshot("/d/g")
    fs.create_snapshot("/d/g", "own")
    fs.rollback_snapshot("/d", "s2")
    assert look(fs, "/d") == shown
    assert [snapshot.name for snapshot in fs.list_snapshots("/d/f")] == [b"own"]
    clean(fs)
