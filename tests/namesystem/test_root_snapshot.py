"""The root snapshot: the whole file system goes back, exactly, and finalizing leaves nothing."""

from __future__ import annotations

import contextlib
import random
from pathlib import Path

import pytest
from tests.namesystem.test_rollback import clean, look
from tests.namesystem.test_snapshots import Tree, build, change_something

from cairnfs.errors import (
    AccessControlException,
    FileNotFoundException,
    HdfsError,
    InvalidPathException,
    SnapshotException,
)
from cairnfs.namenode.reclaiming import SETTLING_MS
from cairnfs.namesystem.settling import SETTLE_BATCH
from cairnfs.testing.invariants import check_no_past
from cairnfs.testing.scratch import ScratchClient, scratch_namespace


def settle(fs: ScratchClient) -> None:
    """Do all background work; what held something may itself have been held."""
    for _ in range(6):
        fs.clock.advance(SETTLING_MS)
        fs.reclaim()


def check_no_past_is_left(fs: ScratchClient) -> None:
    settle(fs)
    fs.namenode.wait(check_no_past(fs.namenode.namenode.store))


def change_everything(fs: ScratchClient) -> None:
    fs.clock.advance(1000)
    fs.delete("/d/x", recursive=True)
    fs.rename("/d/y", "/moved")
    fs.truncate("/d/a", 15)
    fs.write("/d/new/file", 7)
    fs.set_permission("/", 0o700)
    fs.set_quota("/", -1, -1)
    fs.set_quota("/d", 5, 1 << 40)


def test_it_goes_back_and_forth(fs: ScratchClient) -> None:
    build(fs)
    fs.set_quota("/", 100, 1 << 50)
    before, quota = look(fs, "/"), fs.get_content_summary("/").quota
    taken = fs.create_root_snapshot("upgrade")
    assert fs.names("/.snapshot") == ["upgrade"]
    change_everything(fs)
    after = look(fs, "/")
    assert fs.rollback_root_snapshot("given-up") == "given-up"
    assert look(fs, "/") == before
    assert look(fs, "/.snapshot/given-up") == after
    assert fs.get_content_summary("/").quota == quota
    fs.rollback_snapshot("/", "given-up", "undone")
    assert look(fs, "/") == after
    assert fs.get_content_summary("/d").quota.inodes == 5
    fs.rollback_root_snapshot("again")
    settle(fs)
    assert look(fs, "/") == before

    status = fs.get_root_snapshot_status()
    assert status is not None
    assert status.snapshot.txid == taken.txid
    assert status.snapshot.safety == (b"given-up", b"undone", b"again")
    assert status.then == status.now
    assert fs.finalize_root_snapshot() == ("given-up", "undone", "again", "upgrade")
    assert fs.get_root_snapshot_status() is None
    assert look(fs, "/") == before
    check_no_past_is_left(fs)
    assert look(fs, "/") == before
    assert fs.list_snapshottable() == []


def test_status_compares_with_now(fs: ScratchClient) -> None:
    build(fs)
    assert fs.get_root_snapshot_status() is None
    taken = fs.create_root_snapshot()
    assert taken.name.startswith(b"root-20231114-")  # by the tests' clock
    assert taken.user == "hdfs"
    fs.delete("/d/a")
    status = fs.get_root_snapshot_status()
    assert status is not None
    assert (status.then.files, status.then.directories, status.then.length_bytes) == (4, 5, 65)
    assert (status.now.files, status.now.length_bytes, status.now.space_bytes) == (3, 35, 105)
    fs.finalize_root_snapshot()
    check_no_past_is_left(fs)


def test_what_was_deleted_after_a_roll_back_is_released(fs: ScratchClient) -> None:
    """The restored tree does not hold the moment that it came from for ever."""
    build(fs)
    fs.create_root_snapshot("s")
    fs.rename("/d/x", "/x")
    fs.rollback_root_snapshot("before")
    fs.create_snapshot("/", "mine")
    fs.finalize_root_snapshot()
    settle(fs)
    fs.delete("/d/x", recursive=True)
    assert fs.names("/.snapshot/mine/d/x/deep") == ["c"]  # shown with what it came from
    settle(fs)
    assert fs.names("/.snapshot/mine/d/x/deep") == ["c"]
    fs.delete_snapshot("/", "mine")
    check_no_past_is_left(fs)
    assert fs.names("/d") == ["a", "y"]


def test_large_directories_are_settled_in_steps(fast_fs: ScratchClient) -> None:
    fs = fast_fs
    names = [f"{number:03}" for number in range(2 * SETTLE_BATCH)]
    for name in names:
        fs.write(f"/d/{name}", 1)
    fs.create_root_snapshot()
    fs.mkdirs("/e")
    fs.rollback_root_snapshot("before")
    for name in names[::2]:
        fs.delete(f"/d/{name}")
    fs.finalize_root_snapshot()
    check_no_past_is_left(fs)
    assert fs.names("/d") == names[1::2]
    assert fs.get_content_summary("/").files == SETTLE_BATCH


def test_writers_lose_what_they_were_writing(fs: ScratchClient) -> None:
    """A file that was open then is closed, as far as it was; one that is open now is gone."""
    fs.create("/then")
    fs.create_root_snapshot()
    fs.complete("/then", fs.write_blocks("/then", 10))
    fs.create("/now")
    fs.add_block("/now", None)
    fs.rollback_root_snapshot("before")
    with pytest.raises(FileNotFoundException):
        fs.add_block("/now", None)
    assert fs.names("/") == ["then"]
    assert fs.info("/then").length_bytes == 0
    with pytest.raises(HdfsError, match="not open for writing"):
        fs.add_block("/then", None)
    fs.reclaim()
    fs.create("/now")  # nobody's any more
    fs.finalize_root_snapshot()
    check_no_past_is_left(fs)


def test_directories_below_keep_their_snapshots(fs: ScratchClient) -> None:
    build(fs)
    for path in ("/d", "/d/x"):
        fs.allow_snapshot(path)
    fs.create_snapshot("/d", "inner")
    inner, before = look(fs, "/d/.snapshot/inner"), look(fs, "/")
    fs.create_root_snapshot()
    fs.create_snapshot("/d/x", "later")
    fs.rename("/d/y", "/d/z")
    fs.mkdirs("/new/below")
    fs.allow_snapshot("/new/below")
    fs.create_snapshot("/new/below", "own")
    status = fs.get_root_snapshot_status()
    assert status is not None
    assert status.hindrances == ("/new/below",)
    now = look(fs, "/")
    with pytest.raises(SnapshotException, match=r"/ cannot .* would remove /new/below, which has"):
        fs.rollback_root_snapshot("before")
    assert look(fs, "/") == now
    assert [each.name for each in fs.list_snapshots("/")] == [status.snapshot.name]
    fs.delete_snapshot("/new/below", "own")
    fs.rollback_root_snapshot("before")
    settle(fs)
    assert look(fs, "/") == before
    assert look(fs, "/d/.snapshot/inner") == inner
    assert fs.names("/d/x/.snapshot") == ["later"]
    fs.finalize_root_snapshot()
    assert [each.path for each in fs.list_snapshottable()] == ["/d", "/d/x"]
    clean(fs)


def test_what_is_given_up_is_all_there_was(fs: ScratchClient) -> None:
    """The safety snapshot is of the transaction just before the roll-back."""
    fs.write("/f", 1)
    fs.create_root_snapshot()
    fs.write("/g", 1)
    last = fs.namenode.wait(fs.namenode.namenode.store.last_txid())
    fs.rollback_root_snapshot("before")
    [safety] = [each for each in fs.list_snapshots("/") if each.name == b"before"]
    assert safety.txid == last
    # Nothing has happened since: there is one such snapshot already, which will do.
    kept = fs.create_snapshot("/", "mine")
    assert fs.rollback_root_snapshot("unneeded") == "mine"
    assert fs.names(kept) == ["f"]
    assert fs.finalize_root_snapshot()[0] == "before"
    assert fs.names("/.snapshot") == ["mine"]
    clean(fs)


def test_clones_of_the_root(fs: ScratchClient) -> None:
    build(fs)
    fs.create_root_snapshot("s")
    before = look(fs, "/")
    fs.clone_snapshot("/", "s", "/d/x/copy")
    assert look(fs, "/d/x/copy") == before
    fs.rollback_root_snapshot("with-clone")
    assert look(fs, "/") == before
    assert look(fs, "/.snapshot/with-clone/d/x/copy") == before
    fs.clone_snapshot("/", "with-clone", "/outside/copy")
    fs.finalize_root_snapshot()
    settle(fs)
    assert look(fs, "/outside/copy/d/x/copy") == before
    fs.delete("/outside/copy/d", recursive=True)
    check_no_past_is_left(fs)


def test_what_is_refused(fs: ScratchClient) -> None:
    build(fs)
    for act in (fs.finalize_root_snapshot, lambda: fs.rollback_root_snapshot("b")):
        with pytest.raises(SnapshotException, match="There is no root snapshot of /"):
            act()
    for name in ("a/b", ".", ".snapshot", "a:b"):
        with pytest.raises(InvalidPathException):
            fs.create_root_snapshot(name)
    fs.create_root_snapshot("s")
    with pytest.raises(SnapshotException, match="There is a root snapshot, s of transaction"):
        fs.create_root_snapshot("t")
    with pytest.raises(SnapshotException, match="The snapshot s of / cannot be deleted"):
        fs.delete_snapshot("/", "s")
    with pytest.raises(SnapshotException, match="The snapshot s of / cannot be renamed"):
        fs.rename_snapshot("/", "s", "t")
    with pytest.raises(SnapshotException, match="The directory / has snapshot"):
        fs.disallow_snapshot("/")
    fs.mkdirs("/changed")
    with pytest.raises(SnapshotException, match='a snapshot with the same name "s"'):
        fs.rollback_root_snapshot("s")
    stranger = fs.user("stranger")
    for refused in (
        stranger.create_root_snapshot,
        stranger.get_root_snapshot_status,
        stranger.finalize_root_snapshot,
        lambda: stranger.rollback_root_snapshot("b"),
    ):
        with pytest.raises(AccessControlException, match="Superuser privilege"):
            refused()
    assert fs.names("/.snapshot") == ["s"]
    fs.finalize_root_snapshot()
    check_no_past_is_left(fs)


def test_the_root_stays_as_it_was_allowed(fs: ScratchClient) -> None:
    fs.create_root_snapshot()
    fs.allow_snapshot("/")
    fs.finalize_root_snapshot()
    assert [each.path for each in fs.list_snapshottable()] == ["/"]
    fs.create_snapshot("/", "mine")
    fs.create_root_snapshot()
    fs.finalize_root_snapshot()
    assert fs.names("/.snapshot") == ["mine"]
    fs.delete_snapshot("/", "mine")
    fs.disallow_snapshot("/")
    check_no_past_is_left(fs)


@pytest.mark.parametrize("seed", range(2))
def test_random_changes(seed: int, tmp_path: Path) -> None:
    with scratch_namespace(tmp_path) as fs:
        change_at_random(fs, seed)


def test_random_changes_on_postgres(tmp_path: Path, postgres_dsn: str) -> None:
    with scratch_namespace(tmp_path, url=postgres_dsn) as fs:
        change_at_random(fs, 2, steps=40)


def change_at_random(fs: ScratchClient, seed: int, steps: int = 80) -> None:
    """Roll-backs of `/` among all other changes, also once their snapshots are gone."""
    chance = random.Random(seed)
    build(fs)
    roots = ["/", "/d", "/outside"]
    seen: dict[tuple[str, str], Tree] = {}
    for step in range(steps):
        fs.clock.advance(10)
        with contextlib.suppress(HdfsError):
            change_something(fs, chance, step)
        if chance.random() < 0.2:
            root = chance.choice(roots)
            with contextlib.suppress(FileNotFoundException):
                fs.allow_snapshot(root)
                seen[root, f"s{step}"] = look(fs, fs.create_snapshot(root, f"s{step}"))
        if seen and chance.random() < 0.15:
            root, name = chance.choice(sorted(seen))
            safety, now = f"b{step}", look(fs, root)
            try:
                kept = fs.rollback_snapshot(root, name, safety)
            except SnapshotException:
                assert look(fs, root) == now
                continue
            assert look(fs, root) == seen[root, name], f"step {step}: {root} {name}"
            if kept == safety:
                seen[root, safety] = now
        if chance.random() < 0.05:
            now = look(fs, "/")
            for root, name in seen:
                fs.delete_snapshot(root, name)
            seen.clear()
            check_no_past_is_left(fs)
            assert look(fs, "/") == now, f"step {step}"
        if chance.random() < 0.3:
            fs.reclaim()
        for (root, name), tree in seen.items() if step % 5 == 0 else ():
            where = f"{root.rstrip('/')}/.snapshot/{name}"
            assert look(fs, where) == tree, f"{where} has changed by step {step}"
    clean(fs)
