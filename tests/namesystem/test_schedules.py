"""Schedules keep what they say, delete only their own, and take what is due."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cairnfs.errors import FileNotFoundException, IllegalArgumentException, SnapshotException
from cairnfs.namenode.scheduling import LOOK_MS
from cairnfs.namesystem.paths import FsPath
from cairnfs.namesystem.schedules import (
    Schedule,
    Taken,
    list_schedules,
    name_for,
    plan,
    preview_schedule,
    remove_schedule,
    set_schedule,
)
from cairnfs.testing.scratch import ScratchClient

HOUR_MS = 3_600_000
D = FsPath.parse("/d")


def test_keep_24_hourly_7_daily_4_weekly() -> None:
    schedule = Schedule("auto", hourly=24, daily=7, weekly=4)
    taken: list[Taken] = []
    for hour in range(24 * 60):
        now_ms = hour * HOUR_MS
        assert plan(schedule, taken, now_ms).is_due
        taken.append(Taken(name_for(schedule, now_ms), now_ms))
        wanted = plan(schedule, taken, now_ms)
        assert not wanted.is_due
        taken = [each for each in taken if each.name not in wanted.deleted]
    kept = [each.created_ms // HOUR_MS for each in reversed(taken)]
    assert kept[:24] == list(range(24 * 60 - 1, 24 * 59 - 1, -1))
    days = [hour // 24 for hour in kept if hour % 24 == 23]
    assert days[:7] == list(range(59, 52, -1))
    assert len(kept) <= 24 + 6 + 4


@given(
    hours=st.lists(st.integers(0, 24 * 800), unique=True),
    counts=st.tuples(*[st.integers(0, 5)] * 5).filter(any),
)
def test_what_is_kept_would_be_kept_again(hours: list[int], counts: tuple[int, ...]) -> None:
    schedule = Schedule("p", *counts)
    taken = [Taken(name_for(schedule, hour * HOUR_MS), hour * HOUR_MS) for hour in hours]
    first = plan(schedule, [*taken, Taken("by hand", 0), Taken("px", 0)], 0)
    assert sorted(first.kept + first.deleted) == sorted(each.name for each in taken)
    left = [each for each in taken if each.name in first.kept]
    again = plan(schedule, left, 0)
    assert again.deleted == []
    assert len(first.kept) <= sum(counts)
    if hours:
        assert first.kept[0] == max(taken, key=lambda each: each.created_ms).name


def test_the_duty(fs: ScratchClient) -> None:
    fs.mkdirs("/d")
    fs.allow_snapshot("/d")
    fs.create_snapshot("/d", "mine")
    schedule = Schedule("auto", hourly=2)
    fs._call(set_schedule, D, schedule)
    assert [info.path for info in fs._call(list_schedules)] == ["/d"]
    scheduling = fs.namenode.namenode.scheduling
    for _ in range(5):
        fs.clock.advance(HOUR_MS)
        fs.namenode.wait(scheduling.step())
        fs.clock.advance(LOOK_MS + 1)
        fs.namenode.wait(scheduling.step())
    names = [info.name.decode() for info in fs.list_snapshots("/d")]
    assert len(names) == 3
    assert "mine" in names
    assert fs._call(preview_schedule, D, Schedule("auto", yearly=1)).deleted
    fs._call(remove_schedule, D)
    with pytest.raises(FileNotFoundException):
        fs._call(remove_schedule, D)
    fs.clock.advance(HOUR_MS)
    fs.namenode.wait(scheduling.step())
    for name in names:
        fs.delete_snapshot("/d", name)


def test_what_is_refused(fs: ScratchClient) -> None:
    fs.mkdirs("/d")
    with pytest.raises(SnapshotException, match="not a snapshottable"):
        fs._call(set_schedule, D, Schedule("auto", hourly=1))
    fs.allow_snapshot("/d")
    with pytest.raises(IllegalArgumentException, match="/d that keeps nothing"):
        fs._call(set_schedule, D, Schedule("auto"))
    for schedule in (Schedule("", hourly=1), Schedule("p", hourly=-1), Schedule("p", 10**6)):
        with pytest.raises(IllegalArgumentException):
            fs._call(set_schedule, D, schedule)
    fs._call(set_schedule, D, Schedule("auto", hourly=1))
    fs.disallow_snapshot("/d")
    assert fs._call(list_schedules) == []
