"""Settling: what came from a snapshot gets rows of its own, and nobody notices."""

from __future__ import annotations

import contextlib
import random
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.namesystem.test_rollback import clean, look
from tests.namesystem.test_root_snapshot import settle
from tests.namesystem.test_snapshots import build, change_something

from cairnfs.config import NameNodeSettings
from cairnfs.errors import HdfsError, SnapshotException
from cairnfs.namenode.embedded import NameNodeThread
from cairnfs.namesystem import layers
from cairnfs.namesystem.layers import LAYERS_MANY, count_layers
from cairnfs.testing.scratch import ScratchClient, scratch_namespace

STEPS = 60


def roll_back(fs: ScratchClient) -> None:
    """Make `/d` one that comes from a snapshot which nobody sees any more."""
    build(fs)
    fs.allow_snapshot("/d")
    fs.create_snapshot("/d", "s")
    fs.delete("/d/x", recursive=True)
    fs.rollback_snapshot("/d", "s")
    fs.clone_snapshot("/d", "s", "/copy")
    fs.delete_snapshot("/d", "s")


def own_rows(fs: ScratchClient, top: str) -> int:
    return sum(path.startswith(f"{top}/") for path in fs.dump())


def test_rows_are_given_once_the_snapshot_is_gone(fs: ScratchClient) -> None:
    build(fs)
    fs.allow_snapshot("/d")
    fs.create_snapshot("/d", "s")
    fs.rollback_snapshot("/d", "s")
    settle(fs)
    before = look(fs, "/")
    assert own_rows(fs, "/d") == 0  # as long as the snapshot is there, nothing is copied
    fs.delete_snapshot("/d", "s")
    settle(fs)
    assert own_rows(fs, "/d") == len([path for path in before if path.startswith("/d/")])
    assert look(fs, "/") == before
    clean(fs)


def test_what_snapshots_show_of_it_stays(fs: ScratchClient) -> None:
    """Also of the time when it came from elsewhere, and when it was half settled."""
    roll_back(fs)
    fs.delete("/d/y/e")
    fs.create_snapshot("/d", "virtual")
    shown = {"virtual": look(fs, "/d/.snapshot/virtual")}
    settle(fs)
    fs.create_snapshot("/d", "settled")
    shown["settled"] = look(fs, "/d/.snapshot/settled")
    assert list(fs.snapshot_diff("/d", "virtual", "settled")) == []
    fs.delete("/d/x", recursive=True)
    fs.delete("/copy/x", recursive=True)
    settle(fs)
    for name, tree in shown.items():
        assert look(fs, f"/d/.snapshot/{name}") == tree
        assert tree == shown["virtual"]
    fs.rollback_snapshot("/d", "virtual")
    assert look(fs, "/d") == shown["virtual"]
    clean(fs)


def test_who_is_rolled_back_again_and_again_does_not_get_deeper(
    fs: ScratchClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though all snapshots are kept; a directory below that is changed in each of them, too."""
    monkeypatch.setattr(layers, "LAYERS_MANY", 3)
    build(fs)
    fs.allow_snapshot("/d")
    shown = {}
    for number in range(8):
        fs.write(f"/d/x/deep/{number}", number)
        fs.create_snapshot("/d", f"s{number}")
        shown[f"s{number}"] = look(fs, f"/d/.snapshot/s{number}")
        fs.delete(f"/d/x/deep/{number}")
        fs.rollback_snapshot("/d", f"s{number}")
        settle(fs)
        assert look(fs, "/d") == shown[f"s{number}"]
        rows = fs.dump()
        way = [rows[path].inode for path in ("/d", "/d/x", "/d/x/deep") if path in rows]
        assert max(count_layers(inode.origin) for inode in way) <= 3
    for name, tree in shown.items():
        assert look(fs, f"/d/.snapshot/{name}") == tree
    for name in ("s7", "s0", "s5"):
        fs.rollback_snapshot("/d", name)
        settle(fs)
        assert look(fs, "/d") == shown[name]
    clean(fs)


def test_layers_upon_layers_are_settled_though_their_snapshots_are_there(
    fs: ScratchClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else each roll-back to a snapshot of after the one before would make all look-ups longer."""
    many = 5
    monkeypatch.setattr(layers, "LAYERS_MANY", many)
    build(fs)
    fs.allow_snapshot("/d")
    fs.create_snapshot("/d", "s0")
    shown = {"s0": look(fs, "/d")}
    for n in range(1, many + 4):
        fs.rollback_snapshot("/d", f"s{n - 1}")
        fs.mkdirs(f"/d/x/new{n}")
        fs.create_snapshot("/d", f"s{n}")
        shown[f"s{n}"] = look(fs, f"/d/.snapshot/s{n}")
    assert layers_of(fs, "/d") == layers_of(fs, "/d/x") == many + 3
    before = look(fs, "/")
    settle(fs)
    assert layers_of(fs, "/d") == layers_of(fs, "/d/x") == 0
    assert look(fs, "/") == before
    for name in ("s0", "s3", f"s{many + 3}"):
        fs.rollback_snapshot("/d", name)
        settle(fs)
        assert look(fs, "/d") == look(fs, f"/d/.snapshot/{name}")
    assert {name: look(fs, f"/d/.snapshot/{name}") for name in shown if name != "s0"} == {
        name: tree for name, tree in shown.items() if name != "s0"
    }
    clean(fs)


@pytest.mark.parametrize("copies", [False, True])
def test_no_more_layers_are_added_than_can_be_read(
    fs: ScratchClient, monkeypatch: pytest.MonkeyPatch, copies: bool
) -> None:
    monkeypatch.setattr(layers, "LAYERS_MAX", LAYERS_MANY + 2)
    build(fs)

    def add_layer(n: int) -> str:
        path = f"/copy{n}" if copies else "/d"
        fs.allow_snapshot(path)
        fs.create_snapshot(path, f"s{n}")
        if copies:
            fs.clone_snapshot(path, f"s{n}", f"/copy{n + 1}")
            return f"/copy{n + 1}"
        fs.rollback_snapshot(path, f"s{n}")
        return path

    if copies:
        fs.rename("/d", "/copy0")
    last = LAYERS_MANY + 2
    for n in range(last):
        path = add_layer(n)
    before = look(fs, path)
    with pytest.raises(SnapshotException, match=rf"^{path} cannot be .* by this snapshot: .* 18"):
        add_layer(last)
    assert look(fs, path) == before
    fs.delete_snapshot(path, f"s{last}")
    settle(fs)
    assert look(fs, path) == before
    assert look(fs, add_layer(last)) == before
    clean(fs)


def layers_of(fs: ScratchClient, path: str) -> int:
    return count_layers(fs.dump()[path].inode.origin)


def test_another_namenode_settles_what_is_being_changed(tmp_path: Path, postgres_dsn: str) -> None:
    """The same changes, with and without it, have the same result."""
    with scratch_namespace(tmp_path) as fs:
        roll_back(fs)
        change_at_random(fs)
        expected = look(fs, "/")
        clean(fs)
    with scratch_namespace(tmp_path, url=postgres_dsn) as fs:
        roll_back(fs)
        is_over = threading.Event()
        settings = NameNodeSettings(postgres_dsn, duties=False, address="127.0.0.1:1")
        with NameNodeThread(settings, fs.clock) as other, ThreadPoolExecutor(1) as pool:

            def reclaim_all_the_time() -> None:
                while not is_over.is_set():
                    other.wait(other.namenode.duties.reclaim_everything())

            reclaiming = pool.submit(reclaim_all_the_time)
            try:
                change_at_random(fs)
            finally:
                is_over.set()
            reclaiming.result()
            assert other.namenode.statistics.committed > 0
        assert look(fs, "/") == expected
        clean(fs)


def change_at_random(fs: ScratchClient) -> None:
    chance = random.Random(4)
    for step in range(STEPS):
        fs.clock.advance(10)
        with contextlib.suppress(HdfsError):
            change_something(fs, chance, step)
