"""Schedules: how many snapshots of a directory to keep, and so when to take and to delete them.

A schedule says how many to keep of each hour, day, week, month and year.  Of each period it keeps
the newest one; a snapshot stays as long as one of them wants it.  It knows its own snapshots by
their names' beginning, and leaves all others alone.  One that would keep nothing is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

import msgspec

from cairnfs.errors import FileNotFoundException, IllegalArgumentException
from cairnfs.namesystem.inodes import Inode, InodeId
from cairnfs.namesystem.lookup import paths_of, resolve_owned
from cairnfs.namesystem.paths import FsPath
from cairnfs.namesystem.permissions import Caller
from cairnfs.namesystem.snapshot_records import schedule_key
from cairnfs.namesystem.snapshots import check_name, check_snapshottable
from cairnfs.store.schema import NUMBER, Table
from cairnfs.transaction.calls import operation
from cairnfs.transaction.records import register
from cairnfs.transaction.transaction import Transaction

KEEP_MAX = 10_000
_PAGE = 1000


class Schedule(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """How many snapshots to keep of each period; their names begin with `prefix`."""

    prefix: str = "auto"
    hourly: int = 0
    daily: int = 0
    weekly: int = 0
    monthly: int = 0
    yearly: int = 0


class ScheduleInfo(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A schedule, and of what."""

    path: str
    schedule: Schedule


class Plan(NamedTuple):
    """What a schedule wants now; names of snapshots, the newest first."""

    is_due: bool
    kept: list[str]
    deleted: list[str]


class Taken(NamedTuple):
    """A snapshot and when it was taken."""

    name: str
    created_ms: int


register(Table.SCHEDULES, Schedule)


@operation()
def set_schedule(tx: Transaction, caller: Caller, path: FsPath, schedule: Schedule) -> None:
    """Have snapshots of a directory or file taken and deleted from now on."""
    check_schedule(schedule, path)
    inode = _snapshottable(tx, caller, path)
    key = schedule_key(inode.id)
    if tx.get(key) != schedule:
        tx.put(key, schedule)


@operation()
def remove_schedule(tx: Transaction, caller: Caller, path: FsPath) -> None:
    """Take and delete none any more; those that there are stay."""
    inode = _snapshottable(tx, caller, path)
    key = schedule_key(inode.id)
    if tx.get(key) is None:
        raise FileNotFoundException(f"There is no schedule for {path}")
    tx.delete(key)


@operation(mutates=False)
def list_schedules(tx: Transaction, caller: Caller) -> list[ScheduleInfo]:
    """All schedules of what belongs to the caller; the superuser sees all."""
    found = []
    after = b""
    while page := tx.scan(Table.SCHEDULES, 0, after, _PAGE):
        after = page[-1][0][2]
        ids = [InodeId(NUMBER.unpack(key[2])[0]) for key, _ in page]
        for (_, schedule), id, path in zip(page, ids, paths_of(tx, ids), strict=True):
            inode: Inode | None = tx.get_by_id(Table.INODES, id)
            if inode is None or path is None or not inode.is_snapshottable:
                continue
            if caller.is_superuser or caller.user == inode.owner:
                found.append(ScheduleInfo(path.text, schedule))
    return sorted(found, key=lambda info: info.path)


@operation(mutates=False)
def preview_schedule(tx: Transaction, caller: Caller, path: FsPath, schedule: Schedule) -> Plan:
    """What a schedule would do now; nothing is done."""
    check_schedule(schedule, path)
    inode = _snapshottable(tx, caller, path)
    taken = []
    after = b""
    while page := tx.scan(Table.SNAPSHOTS, inode.id, after, _PAGE):
        after = page[-1][0][2]
        taken += [Taken(key[2].decode(), snapshot.created_ms) for key, snapshot in page]
    return plan(schedule, taken, tx.now_ms)


def plan(schedule: Schedule, taken: Iterable[Taken], now_ms: int) -> Plan:
    """What to keep and what to delete of the snapshots there are (pure)."""
    own = [each for each in taken if each.name.startswith(f"{schedule.prefix}-")]
    own.sort(key=lambda each: each.created_ms, reverse=True)
    kept: set[str] = set()
    is_due = False
    for count, period in _periods(schedule):
        seen: set[object] = set()
        for each in own:
            bucket = period(_time(each.created_ms))
            if bucket not in seen:
                seen.add(bucket)
                if len(seen) > count:
                    break
                kept.add(each.name)
        is_due |= period(_time(now_ms)) not in seen
    return Plan(
        is_due,
        [each.name for each in own if each.name in kept],
        [each.name for each in own if each.name not in kept],
    )


def name_for(schedule: Schedule, now_ms: int) -> str:
    """What the snapshot that is taken now is called."""
    return f"{schedule.prefix}-{_time(now_ms):%Y%m%d-%H%M%S}"


def check_schedule(schedule: Schedule, path: FsPath) -> None:
    """It has a name for its snapshots, and keeps some."""
    check_name(name_for(schedule, 0), path)
    if not schedule.prefix:
        raise IllegalArgumentException(
            f"The names of the snapshots that a schedule takes of {path} have to begin somehow"
        )
    counts = msgspec.structs.astuple(schedule)[1:]
    if any(not 0 <= count <= KEEP_MAX for count in counts):
        raise IllegalArgumentException(
            f"A schedule of {path} keeps up to {KEEP_MAX} of each, not {counts}"
        )
    if not any(counts):
        raise IllegalArgumentException(
            f"A schedule of {path} that keeps nothing would delete everything: say how many to keep"
        )


def _snapshottable(tx: Transaction, caller: Caller, path: FsPath) -> Inode:
    lookup, inode = resolve_owned(tx, caller, path)
    check_snapshottable(lookup, inode)
    return inode


Period = Callable[[datetime], object]


def _periods(schedule: Schedule) -> Sequence[tuple[int, Period]]:
    periods: list[tuple[int, Period]] = [
        (schedule.hourly, lambda time: (time.date(), time.hour)),
        (schedule.daily, lambda time: time.date()),
        (schedule.weekly, lambda time: time.isocalendar()[:2]),
        (schedule.monthly, lambda time: (time.year, time.month)),
        (schedule.yearly, lambda time: time.year),
    ]
    return [(count, period) for count, period in periods if count]


def _time(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, tz=UTC)
