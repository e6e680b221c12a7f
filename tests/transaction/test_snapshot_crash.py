"""Killed with SIGKILL at every step of a roll-back, a clone, the deletion of a snapshot, and of
reclaiming: another NameNode completes it, and everything is as if nothing had happened.

Everything is every row there is, of the present and of the past, totals and stored replies; only
which inode ids were taken may differ.  Readers see what was before or what is after.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import count, islice
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from cairnfs.clock import ManualClock
from cairnfs.config import Control, FormatSettings, NameNodeSettings
from cairnfs.namenode import reclaiming
from cairnfs.namenode.embedded import NameNodeThread
from cairnfs.namenode.opening import format_namespace
from cairnfs.namesystem import reclaim, settling
from cairnfs.store.base import Store
from cairnfs.store.postgres import PostgresStore
from cairnfs.store.sqlite_schema import JOURNAL_SUFFIXES
from cairnfs.testing.crashes import read_log
from cairnfs.testing.dumps import Dump, dump_store
from cairnfs.testing.invariants import check_invariants, check_no_past
from cairnfs.testing.postgres_server import PostgresServer
from cairnfs.testing.scratch import SUPERUSER, ScratchClient
from cairnfs.testing.snapshot_crashes import (
    CALL_ID,
    CASES,
    PAGE,
    PREPARED_MS,
    CasePlan,
    do_case,
    prepare,
    run_case,
)

FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["cairnfs.testing.snapshot_crashes", "cairnfs.store.postgres"])

KILLED = -9
KILLS = 3  # of each case, in a usual run
LARGE = ("reclaim the root snapshot",)  # which takes too long for a usual run
LARGEST = ("reclaim the root snapshot", "reclaim everything")  # hours, at each step on PostgreSQL
LARGEST_EVERY = 11
OTHERS = (Control.PESSIMISTIC, Control.SYSTEM_LOCK)


@pytest.fixture(autouse=True)
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in the processes that die."""
    monkeypatch.setattr(reclaim, "RECLAIM_BATCH", PAGE)
    monkeypatch.setattr(reclaiming, "PAST_PAGE", PAGE)
    monkeypatch.setattr(reclaiming, "SETTLING_PAGE", 1)
    monkeypatch.setattr(settling, "SETTLE_BATCH", PAGE)


class Files:
    """Namespaces in files, and copies of them."""

    is_shared = False

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._numbers = count()

    def new(self) -> str:
        return f"sqlite://{self._directory}/{next(self._numbers)}.db"

    def copy(self, url: str) -> str:
        copied = self.new()
        for suffix in ("", "-wal", *JOURNAL_SUFFIXES):
            file = Path(url.removeprefix("sqlite://") + suffix)
            if file.exists():
                shutil.copy(file, copied.removeprefix("sqlite://") + suffix)
        return copied

    def remove(self, url: str) -> None:
        for suffix in ("", "-wal", "-shm", *JOURNAL_SUFFIXES):
            Path(url.removeprefix("sqlite://") + suffix).unlink(missing_ok=True)


class Databases:
    """The same in a database server."""

    is_shared = True
    _numbers = count()

    def __init__(self, server: PostgresServer) -> None:
        self._server = server

    def new(self) -> str:
        return self._server.create_database(self._name())

    def copy(self, url: str) -> str:
        name = self._name()
        self._server.execute(f"CREATE DATABASE {name} TEMPLATE {self._name_of(url)}")
        return self._server.dsn_of(name)

    def remove(self, url: str) -> None:
        self._server.drop_database(self._name_of(url))

    def _name(self) -> str:
        return f"killed_{next(self._numbers)}"

    def _name_of(self, url: str) -> str:
        return url.partition("?")[0].rpartition("/")[2]


Place = Files | Databases


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Place:
    if request.param == "sqlite":
        return Files(tmp_path_factory.mktemp("namespaces"))
    return Databases(request.getfixturevalue("postgres_server"))


@pytest.fixture(scope="module")
def prepared(place: Place) -> Iterator[tuple[str, int]]:
    """A namespace that all cases begin with, and its time."""
    url = place.new()
    clock = ManualClock(PREPARED_MS)
    asyncio.run(format_namespace(url, FormatSettings(SUPERUSER), clock))
    with open_namespace(url, clock) as fs:
        prepare(fs)
    yield url, clock.now_ms()
    place.remove(url)


@contextmanager
def open_namespace(
    url: str, clock: ManualClock, control: Control = Control.OPTIMISTIC
) -> Iterator[ScratchClient]:
    settings = NameNodeSettings(url, control=control, duties=False, safe_mode_threshold=0)
    with NameNodeThread(settings, clock) as namenode:
        caller = namenode.namenode.caller(SUPERUSER, (), "127.0.0.1")
        yield ScratchClient(namenode, caller, clock)


class Outcome(NamedTuple):
    """What came of a case: its answer, what everybody sees, and every row there is."""

    answer: str
    tree: dict[str, Any]
    dump: Dump


class Crashes:
    """One case, to be done as often as is wanted, each time in the same namespace."""

    def __init__(
        self, place: Place, prepared: tuple[str, int], case: str, control: Control, log: Path
    ) -> None:
        self._place = place
        self._name = case
        self._case = CASES[case]
        self._control = control
        self._log = log
        url, self._now_ms = prepared
        self._url = place.copy(url)
        with self._open(self._url) as fs:
            self._case.before(fs)
            self.before = tree_of(fs)
        self.undisturbed = self._do(lambda url: None, is_retry=False)

    def close(self) -> None:
        self._place.remove(self._url)

    def kill_at(self, step: int) -> list[str] | None:
        """Have it killed there, and done again by another; at 0, not killed: the steps."""

        def run(url: str) -> None:
            self._log.unlink(missing_ok=True)
            plan = CasePlan(url, self._control, self._name, self._now_ms, self._log, step)
            process = FORKS.Process(target=run_case, args=(plan,), daemon=True)
            process.start()
            process.join()
            answers, steps = read_log(self._log)
            assert process.exitcode == (0 if steps is not None else KILLED)
            assert answers.get(CALL_ID, self.undisturbed.answer) == self.undisturbed.answer

        found = self._do(run, is_retry=True)
        assert found.answer == self.undisturbed.answer, f"killed at {step}"
        assert found.tree == self.undisturbed.tree, f"killed at {step}"
        differences = self.undisturbed.dump.differences(found.dump)
        assert not differences, f"killed at {step}:\n" + "\n".join(differences)
        return read_log(self._log)[1]

    def _do(self, disturb: Callable[[str], None], *, is_retry: bool) -> Outcome:
        url = self._place.copy(self._url)
        if not self._place.is_shared:
            disturb(url)
        clock = ManualClock(self._now_ms)
        with self._open(url, clock) as fs:
            if self._place.is_shared:  # this one is there all the time, and has seen everything
                assert tree_of(fs) == self.before
                disturb(url)
                fs.namenode.wait(end_duties(fs.namenode.namenode.store))
            if is_retry:
                whole = self.before, self.undisturbed.tree
                assert tree_of(fs) in whole, "half of it is seen"
            namenode = fs.namenode.namenode
            answer = fs.namenode.wait(do_case(namenode, self._case, clock, is_retry=is_retry))
            tree = tree_of(fs)
            fs.namenode.wait(check_invariants(namenode.store))
            if self._name == "reclaim everything":
                fs.namenode.wait(check_no_past(namenode.store))
        dump = asyncio.run(dump_store(url))
        self._place.remove(url)
        return Outcome(answer, tree, dump)

    @contextmanager
    def _open(self, url: str, clock: ManualClock | None = None) -> Iterator[ScratchClient]:
        with open_namespace(url, clock or ManualClock(self._now_ms), self._control) as fs:
            yield fs


async def end_duties(store: Store) -> None:
    """As if so much time had passed that nobody waits for who had them and died.

    With leases as short as a test could wait for, a busy machine would lose them all the time.
    """
    assert isinstance(store, PostgresStore)
    await store.fetch("UPDATE duties SET expires = clock_timestamp() RETURNING 1")


def tree_of(fs: ScratchClient) -> dict[str, Any]:
    """All that readers see: everything there is, and everything in snapshots.

    Without those of a schedule: it takes and deletes them one by one.
    """
    tree: dict[str, Any] = {}
    names = [info.path for info in fs.list_snapshottable()]
    tops = ["/"] + [
        f"{path}/.snapshot/{snapshot.name.decode()}"
        for path in names
        for snapshot in fs.list_snapshots(path)
        if not snapshot.name.startswith(b"auto")
    ]
    for top in tops:
        tree[top] = fs.get_content_summary(top)
        _walk(fs, top, tree)
    return tree


def _walk(fs: ScratchClient, directory: str, tree: dict[str, Any]) -> None:
    listing = fs.get_listing(directory)
    assert listing is not None
    for entry in listing.entries:
        path = f"{directory.rstrip('/')}/{entry.name.decode()}".rstrip("/")
        status = (entry.kind, entry.mode, entry.owner, entry.length_bytes, entry.replication)
        tree[path] = (*status, entry.mtime_ms)
        if entry.is_directory:
            _walk(fs, path, tree)


def is_reading(step: str) -> bool:
    """A step before which nothing was begun that could be torn."""
    return step.startswith(("sql SELECT", "read", "was read"))


def outside_readings(steps: list[str]) -> Iterator[int]:
    """The numbers of the steps but for those by which the database is asked for something."""
    is_inside = False
    for number, step in enumerate(steps, 1):
        if not is_inside:
            yield number
        is_inside = step == "read" or (is_inside and step != "was read")


@contextmanager
def crashes_of(
    place: Place, prepared: tuple[str, int], case: str, control: Control, directory: Path
) -> Iterator[Crashes]:
    crashes = Crashes(place, prepared, case, control, directory / "log")
    try:
        yield crashes
    finally:
        crashes.close()


@pytest.mark.parametrize("case", [case for case in CASES if case not in LARGE])
def test_killed_at_some_steps(
    place: Place, prepared: tuple[str, int], tmp_path: Path, case: str
) -> None:
    with crashes_of(place, prepared, case, Control.OPTIMISTIC, tmp_path) as crashes:
        steps = crashes.kill_at(0)
        assert steps is not None
        points = [number for number, step in enumerate(steps, 1) if not is_reading(step)]
        for kill in range(KILLS):
            crashes.kill_at(points[(2 * kill + 1) * len(points) // (2 * KILLS)])


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("case", CASES)
def test_killed_at_each_step(
    place: Place, prepared: tuple[str, int], tmp_path: Path, case: str
) -> None:
    """On PostgreSQL, where to be killed while asking is to be killed before: nothing was begun.

    The largest cases there are killed at every eleventh of the other steps.
    """
    with crashes_of(place, prepared, case, Control.OPTIMISTIC, tmp_path) as crashes:
        steps = crashes.kill_at(0)
        assert steps is not None
        points: Iterable[int] = range(1, len(steps) + 1)
        if place.is_shared:
            every = LARGEST_EVERY if case in LARGEST else 1
            points = islice(outside_readings(steps), None, None, every)
        for number in points:
            crashes.kill_at(number)


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("control", OTHERS)
@pytest.mark.parametrize("case", CASES)
def test_killed_under_the_other_controls(
    place: Place, prepared: tuple[str, int], tmp_path: Path, case: str, control: Control
) -> None:
    with crashes_of(place, prepared, case, control, tmp_path) as crashes:
        steps = crashes.kill_at(0)
        assert steps is not None
        for number in range(1, len(steps) + 1, 11):
            crashes.kill_at(number)
