"""Whole trees on a shared store: what one NameNode opens, another reads, while both change it."""

from __future__ import annotations

import contextlib
import random
from pathlib import Path

from tests.namesystem.test_rollback import clean
from tests.namesystem.test_snapshot_changes import tell
from tests.namesystem.test_snapshots import Tree, build, change_something, see
from tests.namesystem.test_tree_scan import read_all, without_snapshot_times
from tests.namesystem.test_view_changes import told

from cairnfs.config import NameNodeSettings
from cairnfs.errors import HdfsError
from cairnfs.namenode.embedded import NameNodeThread
from cairnfs.namesystem.views import View
from cairnfs.testing.scratch import SUPERUSER, ScratchClient, scratch_namespace


def test_two_namenodes(postgres_dsn: str, tmp_path: Path) -> None:
    chance = random.Random(7)
    with (
        scratch_namespace(tmp_path, url=postgres_dsn) as one,
        NameNodeThread(NameNodeSettings(postgres_dsn, duties=False), one.clock) as thread,
    ):
        caller = thread.namenode.caller(SUPERUSER, (), "127.0.0.1")
        both = (one, ScratchClient(thread, caller, one.clock))
        build(one)
        one.allow_snapshot("/d")
        views: list[tuple[View, Tree, str]] = []
        for step in range(40):
            fs = chance.choice(both)
            with contextlib.suppress(HdfsError):
                change_something(fs, chance, step)
            if step % 9 == 4:
                fs.create_snapshot("/d", f"s{step}")
                opener, other = chance.sample(both, 2)
                views.append((opener.open_view("/d"), see(other, "/d"), f"s{step}"))
            if step == 25:
                fs.rollback_snapshot("/d", views[0][2], "safety")
            if chance.random() < 0.2:
                one.reclaim()  # it has that duty
        for view, expected, _ in views:
            seen = read_all(chance.choice(both), view, chance.choice((2, 9)), 3)
            assert without_snapshot_times(seen) == without_snapshot_times(expected)
        (first, _, a), *_, (last, _, b) = views
        one_by_one = told(chance.choice(both), first, last, 2)
        assert one_by_one == tell(chance.choice(both).snapshot_changes("/d", a, b))
        for view in one.list_views():
            one.close_view(view.number)
        clean(one)
