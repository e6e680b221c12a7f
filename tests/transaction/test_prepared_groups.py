"""A group that is made ready while the one before it is on its way, which may end in any way."""

from __future__ import annotations

import enum
import logging
import time
from collections.abc import Iterator
from concurrent.futures import Future
from typing import Any

import pytest
from tests.transaction.audit import audit

from cairnfs.config import NameNodeSettings
from cairnfs.errors import FileNotFoundException, StoreUnavailableException
from cairnfs.namenode.embedded import make_namespace
from cairnfs.store.base import CommitUnknown, Store
from cairnfs.store.batches import Batch
from cairnfs.testing.faults import COMMIT, COMMITTED, PausingStore
from cairnfs.testing.peers import LocalPeer

WAIT_LIMIT_S = 20.0


class PreparingStore(PausingStore):
    """Counts what was made ready, and knows of each commit whether that was in vain."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self.prepared = 0
        self.were_prepared: list[bool] = []

    def prepare(self, batch: Batch) -> None:
        super().prepare(batch)
        self.prepared += 1

    async def step(self, name: str, batch: Batch | None = None) -> None:
        if name == COMMITTED and batch is not None:
            self.were_prepared.append(batch.encoded_changes is not None)
        await super().step(name, batch)


@pytest.fixture
def two(postgres_dsn: str) -> Iterator[tuple[LocalPeer, LocalPeer]]:
    """Two NameNodes on one database; what is there in the end is looked at, too."""
    make_namespace(postgres_dsn)
    settings = NameNodeSettings(postgres_dsn, duties=False)
    with LocalPeer(settings, PreparingStore) as first, LocalPeer(settings) as second:
        first.call("mkdirs", "/d")
        first.call("create", "/d/known")
        try:
            yield first, second
        finally:  # nobody is left standing
            first.resume(COMMIT)
            first.resume(COMMITTED)
    audit(postgres_dsn)


def start_next(peer: LocalPeer, method: str, *arguments: Any, **options: Any) -> Future[Any]:
    """Have a call run, and its group made ready, while the peer is paused at a commit."""
    before = peer.store.prepared
    started = peer.start(method, *arguments, **options)
    wait_until(lambda: peer.store.prepared > before)
    return started


def start_in_vain(peer: LocalPeer, method: str, *arguments: Any) -> Future[Any]:
    """Have a call run that joins a group which is ready, and is not made so again."""
    group = peer.thread.namenode.runner._committer.group
    before = len(group.runs)
    started = peer.start(method, *arguments)
    wait_until(lambda: len(group.runs) > before)
    return started


def wait_until(condition: Any) -> None:
    deadline_s = time.monotonic() + WAIT_LIMIT_S
    while not condition():
        assert time.monotonic() < deadline_s, "it has never come to that"
        time.sleep(0.005)


def test_a_row_that_the_group_before_makes_is_there(two: tuple[LocalPeer, LocalPeer]) -> None:
    """So it is replaced, not put as a new one, though it is not committed yet."""
    first, second = two
    first.pause_at(COMMIT)
    made = first.start("mkdirs", "/d/new")
    assert first.wait_until_paused(COMMIT)
    changed = start_next(first, "set_permission", "/d/new", 0o700)
    first.resume(COMMIT)
    assert made.result(WAIT_LIMIT_S)
    changed.result(WAIT_LIMIT_S)
    assert first.store.were_prepared[-1]
    assert not first.thread.statistics.conflicts
    assert second.call("get_file_info", "/d/new").mode == 0o700


def test_a_row_that_the_group_before_deletes_is_not(two: tuple[LocalPeer, LocalPeer]) -> None:
    first, second = two
    first.pause_at(COMMIT)
    gone = first.start("delete", "/d/known")
    assert first.wait_until_paused(COMMIT)
    made = start_next(first, "create", "/d/known")
    first.resume(COMMIT)
    assert gone.result(WAIT_LIMIT_S)
    status = made.result(WAIT_LIMIT_S)
    assert first.store.were_prepared[-1]
    assert not first.thread.statistics.conflicts
    assert second.call("get_file_info", "/d/known").id == status.id


def test_who_joins_later_is_committed_as_well(two: tuple[LocalPeer, LocalPeer]) -> None:
    first, second = two
    first.pause_at(COMMIT)
    first.start("mkdirs", "/d/new")
    assert first.wait_until_paused(COMMIT)
    calls = [start_next(first, "mkdirs", f"/d/{n}") for n in range(2)]  # twice as many as before
    calls.append(start_in_vain(first, "mkdirs", "/d/2"))
    first.resume(COMMIT)
    assert all(call.result(WAIT_LIMIT_S) for call in calls)
    assert not first.store.were_prepared[-1]
    assert first.store.prepared == 2
    listed = second.call("get_listing", "/d").entries
    assert [entry.name for entry in listed] == [*b"0 1 2 known new".split()]


def test_a_conflict_of_the_group_before_takes_along_who_has_relied_on_it(
    two: tuple[LocalPeer, LocalPeer],
) -> None:
    first, second = two
    first.pause_at(COMMIT)
    made = first.start("mkdirs", "/d/new", create_parents=False)
    assert first.wait_until_paused(COMMIT)
    below = start_next(first, "mkdirs", "/d/new/below", create_parents=False)
    second.call("delete", "/d", recursive=True)
    beside = start_next(first, "mkdirs", "/elsewhere")
    first.resume(COMMIT)
    for call in (made, below):
        with pytest.raises(FileNotFoundException):
            call.result(WAIT_LIMIT_S)
    assert beside.result(WAIT_LIMIT_S)
    assert first.thread.statistics.conflicts == {"mkdirs": 2}
    assert first.store.prepared == 2
    assert second.call("get_file_info", "/d") is None
    assert second.call("get_file_info", "/elsewhere") is not None


class Outcome(enum.Enum):
    """How a commit ends that nobody hears of as it should."""

    REFUSED = enum.auto()
    UNKNOWN_BUT_DONE = enum.auto()
    UNKNOWN_AND_NOT_DONE = enum.auto()


@pytest.mark.parametrize("outcome", Outcome)
def test_whatever_becomes_of_the_group_before(
    two: tuple[LocalPeer, LocalPeer], outcome: Outcome, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = two
    commit = first.store.inner.commit

    async def fail(batch: Batch) -> int:
        monkeypatch.setattr(first.store.inner, "commit", commit)
        if outcome is Outcome.REFUSED:
            raise StoreUnavailableException("the disk is full")
        if outcome is Outcome.UNKNOWN_BUT_DONE:
            await commit(batch)
        raise CommitUnknown

    monkeypatch.setattr(first.store.inner, "commit", fail)
    first.pause_at(COMMIT)
    made = first.start("mkdirs", "/d/new")
    assert first.wait_until_paused(COMMIT)
    below = start_next(first, "mkdirs", "/d/new/below")  # whichever of them runs again first
    first.resume(COMMIT)
    if outcome is Outcome.REFUSED:
        for call in (made, below):
            with pytest.raises(StoreUnavailableException, match="the disk is full"):
                call.result(WAIT_LIMIT_S)
    else:
        assert made.result(WAIT_LIMIT_S)
        assert below.result(WAIT_LIMIT_S)
    is_there = outcome is not Outcome.REFUSED
    assert (second.call("get_file_info", "/d/new/below") is not None) is is_there
    assert first.call("mkdirs", "/d/new/beside")


def test_what_others_change_between_two_groups_is_noticed(
    two: tuple[LocalPeer, LocalPeer],
) -> None:
    """The next group has read what the one before wrote: the version is known only afterwards."""
    first, second = two
    first.pause_at(COMMITTED)
    changed = first.start("set_permission", "/d", 0o711)
    assert first.wait_until_paused(COMMITTED)  # but nobody has been told
    made = start_next(first, "create", "/d/new", create_parents=False)
    assert second.call("rename", "/d", "/moved")
    first.resume(COMMITTED)
    changed.result(WAIT_LIMIT_S)
    with pytest.raises(FileNotFoundException):
        made.result(WAIT_LIMIT_S)
    assert sum(first.thread.statistics.conflicts.values()) == 1
    assert [e.name for e in second.call("get_listing", "/moved").entries] == [b"known"]


def test_a_group_that_can_not_be_made_ready_is_committed_all_the_same(
    two: tuple[LocalPeer, LocalPeer],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    first, second = two
    tried = []

    def fail(batch: Batch) -> None:
        tried.append(batch)
        raise ValueError("not yet")

    monkeypatch.setattr(first.store, "prepare", fail)
    caplog.set_level(logging.ERROR)
    first.pause_at(COMMIT)
    first.start("mkdirs", "/d/new")
    assert first.wait_until_paused(COMMIT)
    made = first.start("mkdirs", "/d/other")
    wait_until(lambda: tried)
    first.resume(COMMIT)
    assert made.result(WAIT_LIMIT_S)
    assert second.call("get_file_info", "/d/other") is not None
    assert "could not be prepared" in caplog.text


def test_who_commits_is_known_only_at_the_end(
    two: tuple[LocalPeer, LocalPeer], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A NameNode that was taken for dead meanwhile is another member, with a shard of its own."""
    first, _ = two
    first.pause_at(COMMITTED)
    first.start("mkdirs", "/d/new")
    assert first.wait_until_paused(COMMITTED)
    made = start_next(first, "mkdirs", "/d/other")
    membership = first.thread.namenode.membership
    shard = membership.shard + 7
    monkeypatch.setattr(membership, "shard", shard)
    first.resume(COMMITTED)
    assert made.result(WAIT_LIMIT_S)
    assert first.store.were_prepared[-1]
    rows = first.thread.wait(
        first.store.inner.fetch("SELECT count(*) FROM totals WHERE shard = $1", shard)
    )
    assert rows[0][0] > 0


def test_a_file_that_another_changes_between_two_looks(two: tuple[LocalPeer, LocalPeer]) -> None:
    """What is known is not told again: so it has to be told what is not as it was known."""
    first, second = two
    assert first.call("get_file_info", "/d/known").mode == 0o644
    second.call("set_permission", "/d/known", 0o600)
    assert first.call("get_file_info", "/d/known").mode == 0o600
    second.call("delete", "/d/known")
    assert first.call("get_file_info", "/d/known") is None
    status = second.call("create", "/d/known", 0o640)
    found = first.call("get_file_info", "/d/known")
    assert (found.id, found.mode) == (status.id, 0o640)
