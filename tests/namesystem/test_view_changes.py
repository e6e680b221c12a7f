"""What happened from one view to another: the same as between snapshots of the same moments."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.namesystem.test_rollback import clean as clean_snapshots
from tests.namesystem.test_snapshot_changes import Told, tell
from tests.namesystem.test_snapshots import build, change_something, see
from tests.namesystem.test_tree_scan import read_all, without_snapshot_times

from cairnfs.errors import (
    AccessControlException,
    FileNotFoundException,
    HdfsError,
    IllegalArgumentException,
    SnapshotException,
)
from cairnfs.namesystem.snapshot_changes import Change
from cairnfs.namesystem.views import VIEW_LIMIT_MAX_MS, View
from cairnfs.testing.scratch import ScratchClient, scratch_namespace


def changes(fs: ScratchClient, old: View, new: View, limit: int = 1000) -> Iterator[Change]:
    resume = None
    while True:
        page = fs.view_changes(old.number, new.number, resume, limit)
        yield from page.changes
        resume = page.resume
        if resume is None:
            return


def clean(fs: ScratchClient) -> None:
    for view in fs.list_views():
        fs.close_view(view.number)
    clean_snapshots(fs)


def told(fs: ScratchClient, old: View, new: View, limit: int = 1000) -> Told:
    return tell(changes(fs, old, new, limit))


def test_each_change_and_in_pages(fs: ScratchClient) -> None:
    build(fs)
    before = fs.open_view("/d")
    assert fs.is_view_current(before.number)
    fs.delete("/d/x", recursive=True)
    fs.rename("/d/y", "/d/z")
    fs.write("/d/new", 3)
    assert not fs.is_view_current(before.number)
    after = fs.open_view("/d")
    fs.write("/d/later", 3)
    wanted = {
        ("DELETED", "x"),
        ("MOVED_OUT", "y", "z"),
        ("MOVED_IN", "z", "y"),
        ("CREATED", "new"),
        ("MODIFIED", ""),
    }
    for limit in (1, 2, 1000):
        found = told(fs, before, after, limit)
        assert set(found) == wanted
        assert len(found) == len(wanted)
    turned = {"DELETED": "CREATED", "CREATED": "DELETED"}
    back = {(turned.get(kind, kind), *paths) for kind, *paths in told(fs, after, before)}
    assert {("CREATED", "new"), ("DELETED", "x"), ("MOVED_OUT", "z", "y")} <= back
    assert told(fs, before, before) == []
    clean(fs)


def test_random_histories_as_between_snapshots(tmp_path: Path) -> None:
    for seed in range(10):
        chance = random.Random(seed)
        with scratch_namespace(tmp_path / str(seed)) as fs:
            build(fs)
            fs.allow_snapshot("/d")
            views: list[tuple[View, str]] = []
            for step in range(60):
                with contextlib.suppress(HdfsError):
                    change_something(fs, chance, step)
                if step % 12 == 5:
                    fs.create_snapshot("/d", f"s{step}")
                    views.append((fs.open_view("/d"), f"s{step}"))
                if step == 40:
                    fs.rollback_snapshot("/d", views[0][1], "safety")
            for _ in range(6):
                (old, a), (new, b) = chance.choice(views), chance.choice(views)
                # Only the snapshot of `b` itself comes between it and its view.
                assert told(fs, old, new, chance.choice((1, 7, 1000))) == tell(
                    fs.snapshot_changes("/d", a, b)
                ), (seed, a, b)
            clean(fs)


def test_a_transaction_that_is_still_held(fs: ScratchClient) -> None:
    """As it was after the TxID of a snapshot, also of one above; and once it is gone, not."""
    build(fs)
    fs.allow_snapshot("/")
    fs.create_snapshot("/", "all")
    (info,) = fs.list_snapshots("/")
    expected = see(fs, "/.snapshot/all/d")
    fs.delete("/d/x", recursive=True)
    fs.write("/d/new", 1)
    view = fs.open_view("/d", info.txid)
    assert view.txid == info.txid
    fs.delete_snapshot("/", "all")
    fs.reclaim()
    seen = read_all(fs, view, 3, 2)
    assert without_snapshot_times(seen) == without_snapshot_times(expected)
    fs.close_view(view.number)
    with pytest.raises(SnapshotException, match=f"as it was after transaction {info.txid}"):
        fs.open_view("/d", info.txid)
    clean(fs)


def test_a_transaction_that_is_none(fast_fs: ScratchClient) -> None:
    build(fast_fs)
    for txid in (1 << 30, (1 << 64) - 1):
        with pytest.raises(IllegalArgumentException, match="/d cannot be read as it was after"):
            fast_fs.open_view("/d", txid)


def test_held_for_as_long_as_asked(fast_fs: ScratchClient) -> None:
    fs = fast_fs
    build(fs)
    for limit_ms in (-1, VIEW_LIMIT_MAX_MS + 1):
        with pytest.raises(IllegalArgumentException, match="/d is held for"):
            fs.open_view("/d", 0, limit_ms)
    view = fs.open_view("/d", 0, 1000)
    assert fs.is_view_current(view.number)
    fs.close_view(view.number)
    with pytest.raises(FileNotFoundException):
        fs.is_view_current(view.number)


def test_what_is_not_told(fs: ScratchClient) -> None:
    build(fs)
    fs.mkdirs("/d/x/secret", 0o700)
    alice = fs.user("alice")
    old = alice.open_view("/d")
    fs.write("/d/x/secret/file", 1)
    new = alice.open_view("/d")
    with pytest.raises(AccessControlException, match="/d/x/secret"):
        told(alice, old, new)
    with pytest.raises(AccessControlException, match="opened by alice"):
        told(fs.user("bob"), old, new)
    other = fs.open_view("/outside")
    with pytest.raises(SnapshotException, match="replaced by another one"):
        told(fs, old, other)
    clean(fs)
