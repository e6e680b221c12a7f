"""Many at once in one directory, committed together: nobody notices the others."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.transaction.audit import audit

from cairnfs.config import NameNodeSettings
from cairnfs.namenode.namenode import NameNode
from cairnfs.namenode.opening import format_namespace
from cairnfs.namesystem.inodes import ROOT_ID
from cairnfs.namesystem.lookup import inode_key
from cairnfs.store.base import Conflict, Store
from cairnfs.store.batches import Batch
from cairnfs.store.schema import Key
from cairnfs.testing.faults import ConflictingStore
from cairnfs.testing.peers import LocalPeer, PendingCalls
from cairnfs.transaction.calls import Call, operation
from cairnfs.transaction.entries import NO_ENTRY, Entry
from cairnfs.transaction.group import Group, Run, build_batch, choose_thrown_out
from cairnfs.transaction.runner import CONFLICTS_BEFORE_ALONE_MAX
from cairnfs.transaction.transaction import Transaction

CREATORS = 1000


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    url = f"sqlite://{tmp_path}/namespace.db"
    asyncio.run(format_namespace(url))
    return url


# A thousand creators.


async def create_all(namenode: NameNode, names: list[str]) -> list[Any]:
    """Create files at once, each for a client of its own."""
    calls = [PendingCalls(namenode).create(f"/hot/{name}") for name in names]
    return await asyncio.gather(*calls)  # type: ignore[call-overload,no-any-return]


def check_created(peer: LocalPeer, created: list[Any]) -> None:
    assert len({status.id for status in created}) == CREATORS
    status = peer.call("get_file_info", "/hot")
    assert status.children == CREATORS
    summary = peer.call("get_content_summary", "/hot")
    assert (summary.files, summary.directories) == (CREATORS, 1)
    listing = peer.call("get_listing", "/hot")
    assert listing.remaining == 0
    assert {entry.id for entry in listing.entries} == {status.id for status in created}


def test_a_thousand_creators_on_sqlite(sqlite_url: str) -> None:
    with LocalPeer(NameNodeSettings(sqlite_url, duties=False)) as peer:
        peer.call("mkdirs", "/hot")
        names = [f"f{number}" for number in range(CREATORS)]
        created = peer.thread.wait(create_all(peer.thread.namenode, names))
        check_created(peer, created)
        assert not peer.thread.statistics.conflicts
    audit(sqlite_url)


def test_a_thousand_creators_on_two_namenodes(postgres_dsn: str) -> None:
    asyncio.run(format_namespace(postgres_dsn))
    settings = NameNodeSettings(postgres_dsn, duties=False)
    with LocalPeer(settings) as a, LocalPeer(settings) as b:
        a.call("mkdirs", "/hot")
        created: list[Any] = []

        def create_half(peer: LocalPeer, half: int) -> None:
            names = [f"f{number}" for number in range(half, CREATORS, 2)]
            created.extend(peer.thread.wait(create_all(peer.thread.namenode, names)))

        halves = [
            threading.Thread(target=create_half, args=(peer, half))
            for half, peer in enumerate((a, b))
        ]
        for thread in halves:
            thread.start()
        for thread in halves:
            thread.join()
        check_created(a, created)
        check_created(b, created)
        # Siblings never abort each other, whichever NameNode they come from.
        assert not a.thread.statistics.conflicts
        assert not b.thread.statistics.conflicts
    audit(postgres_dsn)


# Who is thrown out of a group.


@operation()
def nothing(tx: Transaction) -> None:
    """Never run here."""


def made(reads: dict[Key, Entry] | None = None, writes: dict[Key, str] | None = None) -> Run:
    """A run that has read and written this."""
    transaction = Transaction(None, 0, lambda counter: 0)  # type: ignore[arg-type]
    transaction.reads.update(reads or {})
    for key, record in (writes or {}).items():
        transaction.writes[key] = record
        transaction.written[key] = Entry(record, 0, transaction, NO_ENTRY)
    return Run(Call(nothing, (), lambda result, error: None), transaction, None, None)


A: Key = (0, 1, b"a")
B: Key = (0, 1, b"b")
C: Key = (0, 1, b"c")


def test_who_read_what_changed_goes_alone() -> None:
    stale, fresh = made({A: NO_ENTRY}), made({B: NO_ENTRY})
    assert choose_thrown_out([stale, fresh], Conflict([A])) == {stale}


def test_who_read_from_one_thrown_out_goes_too() -> None:
    first = made({A: NO_ENTRY}, {A: "a", B: "b"})
    second = made({B: first.transaction.written[B]}, {C: "c"})
    third = made({C: second.transaction.written[C]})
    bystander = made({(0, 2, b"x"): NO_ENTRY})
    runs = [first, second, bystander, third]
    assert choose_thrown_out(runs, Conflict([A])) == {first, second, third}


def test_who_was_there_before_stays() -> None:
    before = made({B: NO_ENTRY}, {B: "b"})
    after = made({A: NO_ENTRY, B: before.transaction.written[B]})
    assert choose_thrown_out([before, after], Conflict([A])) == {after}


def test_who_relied_on_totals_goes_with_whoever_added_to_them() -> None:
    adds = made({A: NO_ENTRY})
    adds.transaction.add(7, ((0, 1),))
    relies, other = made(), made()
    relies.transaction.totals_read.add(7)
    other.transaction.totals_read.add(8)
    assert choose_thrown_out([adds, relies, other], Conflict([A])) == {adds, relies}


def test_who_expected_a_directory_empty_goes() -> None:
    empties, other = made(), made()
    empties.transaction.emptied.append((0, 7))
    other.transaction.emptied.append((0, 8))
    assert choose_thrown_out([empties, other], Conflict(directories=[7])) == {empties}


@pytest.mark.parametrize("versions", [(5, 7), (7, 5), (5, 0), (0, 5)])
def test_two_who_read_two_versions_are_not_committed_together(versions: tuple[int, int]) -> None:
    """Whichever is current: the store is told of one version only."""
    entries = [Entry("a" if since else None, since) for since in versions]
    group = Group()
    group.append(made({A: entries[0]}))
    group.append(made({A: entries[1], B: NO_ENTRY}))
    group.append(made({C: NO_ENTRY}))
    with pytest.raises(Conflict) as raised:
        build_batch(group, 0, 0, None)
    assert raised.value.keys == {A}


# Groups, as the store sees them.


class Conflicts:
    """Calls a key changed in the first so many batches that rely on it."""

    def __init__(self, key: Key, times: int) -> None:
        self.key = key
        self.times = times

    def __call__(self, batch: Batch) -> list[Key]:
        relies = self.key in batch.reads or any(put.key == self.key for put in batch.puts)
        if not relies or not self.times:
            return []
        self.times -= 1
        return [self.key]


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest) -> Iterator[str]:
    if request.param == "sqlite":
        yield request.getfixturevalue("sqlite_url")
        return
    url = request.getfixturevalue("postgres_dsn")
    asyncio.run(format_namespace(url))
    yield url


def conflicting_peer(url: str, conflicts: Conflicts) -> LocalPeer:
    def wrap(store: Store) -> Store:
        return ConflictingStore(store, conflicts)

    return LocalPeer(NameNodeSettings(url, duties=False), wrap)


async def together(namenode: NameNode, *calls: tuple[str, str]) -> list[Any]:
    pending = PendingCalls(namenode)
    return await asyncio.gather(*(getattr(pending, method)(path) for method, path in calls))


def test_one_conflict_is_thrown_out_alone(url: str) -> None:
    conflicts = Conflicts(inode_key(ROOT_ID, b"odd"), times=1)
    with conflicting_peer(url, conflicts) as peer:
        names = ["a", "b", "odd", "c", "d"]
        calls = [("create", f"/{name}") for name in names]
        peer.thread.wait(together(peer.thread.namenode, ("mkdirs", "/warm")))
        peer.store.batches.clear()
        results = peer.thread.wait(together(peer.thread.namenode, *calls))
        assert [status.name for status in results] == [b""] * 5
        first, second = peer.store.batches
        assert (first.size, second.size) == (4, 1)
        assert b"odd" in {put.key[2] for put in second.puts}
        assert peer.thread.statistics.conflicts == {"create": 1}
    audit(url)


def test_dependents_go_with_it_and_the_rest_commits_at_once(url: str) -> None:
    conflicts = Conflicts(inode_key(ROOT_ID, b"d"), times=1)
    with conflicting_peer(url, conflicts) as peer:
        # So that both the directory and what is in it can be run in the first turn.
        peer.thread.wait(together(peer.thread.namenode, ("mkdirs", "/warm")))
        peer.store.batches.clear()
        calls = [
            ("create", "/a"),
            ("mkdirs", "/d"),
            ("create", "/d/x"),
            ("create", "/b"),
            ("mkdirs", "/d/y/z"),
            ("create", "/c"),
        ]
        peer.thread.wait(together(peer.thread.namenode, *calls))
        names = [{put.key[2] for put in batch.puts} for batch in peer.store.batches]
        assert {b"a", b"b", b"c"} <= names[0]
        assert not names[0] & {b"d", b"x", b"y", b"z"}
        assert peer.store.batches[0].size == 3
        assert {b"d", b"x", b"y", b"z"} <= set().union(*names[1:])
        assert peer.thread.statistics.conflicts == {"mkdirs": 2, "create": 1}
        assert peer.call("get_content_summary", "/d").inodes == 4
    audit(url)


def test_after_bounded_conflicts_a_call_runs_alone_and_succeeds(url: str) -> None:
    conflicts = Conflicts(inode_key(ROOT_ID, b"unlucky"), times=1_000_000)
    with conflicting_peer(url, conflicts) as peer:
        calls = [("create", "/unlucky"), ("create", "/lucky")]
        unlucky, lucky = peer.thread.wait(together(peer.thread.namenode, *calls))
        assert unlucky.id != lucky.id
        assert peer.thread.statistics.conflicts == {"create": CONFLICTS_BEFORE_ALONE_MAX + 1}
        assert peer.thread.statistics.ran_alone == 1
        assert peer.call("get_file_info", "/unlucky").id == unlucky.id
    audit(url)
