"""What is committed is found, wherever it waits: in the journal or in the tables."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import apsw
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.compiled.replacing import CompilableMonkeyPatch

from cairnfs.store import sqlite_backlog, sqlite_commits
from cairnfs.store.base import ABSENT, Conflict, Count, PastRow, Scan
from cairnfs.store.batches import Batch, Bound, Keep, Put, Rehold, StoredReply, Touch
from cairnfs.store.schema import Key, Table
from cairnfs.store.sqlite import SqliteStore, format_file
from cairnfs.store.sqlite_settling import REST_S

TABLES, PREFIXES, IDS, DIRECTORIES = (0, 1), (1, 2), (1, 2), (1, 2, 3)
KEYS: list[Key] = [(t, a, b) for t in TABLES for a in PREFIXES for b in (b"", b"x", b"y")]
HOLDERS = (3, 4, 5)  # snapshots for which past rows are kept
CLIENTS = (b"client", b"another", b"third")
CLIENT = CLIENTS[0]
SLICES_MAX = 12  # nearly always enough for all that waits


@dataclass
class Model:
    """A store that forgets nothing and is never killed."""

    rows: dict[Key, tuple[int | None, int, bytes]] = field(default_factory=dict)
    children: dict[int, int] = field(default_factory=dict)
    times: dict[int, tuple[int, int]] = field(default_factory=dict)  # mtime_ms, touched
    replies: dict[tuple[bytes, int], bytes] = field(default_factory=dict)
    past: list[PastRow] = field(default_factory=list)
    dropped: set[int] = field(default_factory=set)
    txid: int = 0

    def commit(self, batch: Batch) -> None:
        for key, order, holder in batch.keeps:
            id, since, data = self.rows[key]
            self.past.append(PastRow(key, self.txid + order, since, id, data, holder))
        for key in batch.deletes:
            del self.rows[key]
        for put in batch.puts:
            self.rows[put.key] = put.id, self.txid + put.order, put.data
        for touch in batch.touches:
            children = self.children.get(touch.id, 0)
            self.children[touch.id] = children + touch.counts[Count.CHILDREN]
            if touch.order:
                self.times[touch.id] = touch.mtime_ms, self.txid + touch.order
        for directory in batch.drops:
            self.dropped.add(directory)
            self.children.pop(directory, None)
            self.times.pop(directory, None)
        holders = {(key, until): holder for key, until, holder in batch.reholds}
        self.past = [
            row._replace(holder=holders.get((row.key, row.until), row.holder))
            for row in self.past
            if (row.key, row.until) not in batch.forgets
        ]
        for reply in batch.replies:
            (call_id,) = reply.calls
            self.replies[reply.client_id, call_id] = reply.data
        self.txid += batch.size


@dataclass(frozen=True)
class Change:
    """What a batch does to one key."""

    key: Key
    id: int | None
    data: bytes
    deletes: bool
    puts_again: bool  # what it deletes
    keeps: bool


changes = st.builds(
    Change,
    st.sampled_from(KEYS),
    st.sampled_from([None, *IDS]),
    st.binary(max_size=3),
    st.booleans(),
    st.booleans(),
    st.booleans(),
)
commits = st.tuples(
    st.just("commit"),
    st.lists(changes, min_size=1, max_size=5, unique_by=lambda change: change.key),
    st.dictionaries(
        st.sampled_from(DIRECTORIES), st.tuples(st.integers(-3, 3), st.booleans()), min_size=1
    ),
    st.sets(st.sampled_from(CLIENTS)),
    st.sampled_from([False] * 9 + [True]),  # whether it depends on the tables
    st.lists(st.tuples(st.integers(0, 9), st.sampled_from([0, *HOLDERS])), max_size=2),
    st.sampled_from([None] * 9 + [DIRECTORIES[-1]]),  # a directory that goes
)
turns = st.tuples(st.just("turn"), st.integers(1, 4))
places = st.sampled_from(["puts", "totals", "replies", "commit"])
failures = st.tuples(st.just("fail"), places, commits)
others = st.tuples(st.sampled_from(["settle", "look", "crash"]))
steps = st.one_of(commits, commits, commits, turns, failures, failures, others)


def batch_for(step: tuple, model: Model) -> Batch:
    """The batch of a commit; its calls are such that nobody has made before."""
    _, changes, touches, clients, is_direct, fates, dropped = step
    batch = Batch(size=1, now_ms=5)
    number = model.txid
    batch.replies = [StoredReply(id, (number,), b"%s %d" % (id, number)) for id in sorted(clients)]
    for change in changes:
        is_there = change.key in model.rows
        if is_there and change.keeps:
            batch.keeps.append(Keep(change.key, 1, HOLDERS[number % len(HOLDERS)]))
        deletes = is_there and change.deletes
        if deletes:
            batch.deletes.append(change.key)
        if not deletes or change.puts_again:
            replaces = is_there and not deletes
            batch.puts.append(Put(change.key, change.id, 1, change.data, replaces))
    for directory, (children, sets_time) in touches.items():
        counts = [children] + [0] * (len(Count) - 1)
        batch.touches.append(Touch(directory, counts, number + 1000, int(sets_time)))
    batch.touches = [touch for touch in batch.touches if touch.id not in model.dropped]
    batch.drops = [] if dropped is None else [dropped]
    for place, holder in fates:  # of past rows: they are kept for another snapshot, or go
        if place < len(model.past):
            row = model.past[place]
            if holder:
                batch.reholds.append(Rehold(row.key, row.until, holder))
            else:
                batch.forgets.append((row.key, row.until))
    if is_direct:
        batch.bounds = [Bound(99, 0, 1)]
    return batch


async def check(store: SqliteStore, model: Model) -> None:
    """Wherever it is by now, what is read is what was committed."""
    for key in KEYS:
        row = store.row(key)
        found = None if row is None else (row.since, row.data)
        assert found == (model.rows[key][1:] if key in model.rows else None)
    versions = {key: model.rows[key][1] if key in model.rows else ABSENT for key in KEYS}
    assert store._versions(KEYS) == versions
    for table in TABLES:
        for id in IDS:
            keys = [key for key, row in model.rows.items() if key[0] == table and row[0] == id]
            assert sorted(row.key for row in store.rows_of_id(table, id)) == sorted(keys)
        for a in PREFIXES:
            keys = sorted(key for key in model.rows if key[:2] == (table, a) and key[2])
            assert [row.key for row in store.scan(Scan(table, a, b"", 2))] == keys[:2]
    for directory in DIRECTORIES:
        totals = store.totals(directory)
        assert totals.counts[Count.CHILDREN] == model.children.get(directory, 0)
        assert (totals.mtime_ms, totals.touched) == model.times.get(directory, (0, 0))
    for (client_id, call_id), reply in model.replies.items():
        assert await store.find_replies(client_id, call_id) == [reply]
        again = Batch(size=1, now_ms=5, replies=[StoredReply(client_id, (call_id,), b"")])
        with pytest.raises(Conflict):
            store._validate(again)
    assert store.clock() == model.txid


async def check_past(store: SqliteStore, model: Model) -> None:
    for row in model.past:
        then = store.at(row.since).row(row.key)
        assert then is not None
        assert (then.since, then.data) == (row.since, row.data)
    past = sorted(model.past, key=lambda row: (row.until, row.key))
    assert await store.past_holders() == sorted({row.holder for row in past})
    for holder in HOLDERS:
        found = await store.scan_past(holder, (0, KEYS[0]), model.txid, len(past) + 1)
        assert found == [row for row in past if row.holder == holder]


async def crash(store: SqliteStore, path: Path) -> tuple[SqliteStore, Path]:
    """What another process finds if this one is killed now: its files, as they are."""
    after = Path(tempfile.mkdtemp(dir=path.parent.parent)) / path.name
    for file in path.parent.iterdir():
        shutil.copy(file, after.parent)
    await store.close()
    return SqliteStore(after), after


@contextmanager
def failing(store: SqliteStore, what: str) -> Iterator[None]:
    """Whatever goes to the tables meanwhile fails in one place."""
    with CompilableMonkeyPatch.context() as patch:
        if what == "puts":
            patch.setattr(sqlite_backlog, "_PUT", "nonsense")
        elif what == "totals":
            patch.setattr(sqlite_backlog, "_TOUCH", "nonsense")
        elif what == "replies":
            patch.setattr(sqlite_backlog, "insert_replies", lambda db, _: db.execute("nonsense"))
        else:
            store._connection.set_commit_hook(lambda: True)
        yield
        store._connection.set_commit_hook(None)


async def commit(store: SqliteStore, model: Model, step: tuple) -> None:
    batch = batch_for(step, model)
    await store.commit(batch)
    model.commit(batch)


async def play(script: list, path: Path) -> None:
    store, model = SqliteStore(path), Model()
    for step in script:
        match step:
            case "turn", count:
                for _ in range(count):
                    await asyncio.sleep(0)  # a slice goes to the tables, if any is due
                    await check(store, model)
            case "fail", what, overtaking:
                await asyncio.sleep(0)
                await commit(store, model, overtaking)
                with failing(store, what):
                    for _ in range(SLICES_MAX):
                        await asyncio.sleep(0)
                        await check(store, model)
            case ("settle",):
                store.write_backlog()
            case ("look",):
                await check_past(store, model)
            case ("crash",):
                store, path = await crash(store, path)
            case _:
                await commit(store, model, step)
        await check(store, model)
    store, path = await crash(store, path)
    await check(store, model)
    await check_past(store, model)
    await store.close()


@settings(max_examples=200, deadline=None)
@given(st.lists(steps, min_size=10, max_size=40), st.integers(1, 4), st.integers(1, 3))
def test_whatever_happens_the_store_is_what_was_committed(
    script: list, waiting_max: int, slice_rows: int
) -> None:
    """Also between two slices of what is on its way to the tables, and after one that failed."""
    with tempfile.TemporaryDirectory() as folder, CompilableMonkeyPatch.context() as patch:
        patch.setattr(sqlite_commits, "JOURNALED_CALLS_MAX", waiting_max)
        patch.setattr(sqlite_backlog, "SLICE_ROWS", slice_rows)
        patch.setattr(sqlite_backlog, "SLICE_CLIENTS", 1)
        path = Path(folder) / "first" / "namespace.db"
        format_file(path, {})
        asyncio.run(play(script, path))


@pytest.fixture
def store(tmp_path: Path) -> SqliteStore:
    format_file(tmp_path / "namespace.db", {})
    return SqliteStore(tmp_path / "namespace.db")


def put(key: Key, data: bytes = b"", *, replaces: bool = False) -> Batch:
    return Batch(size=1, now_ms=0, puts=[Put(key, None, 1, data, replaces)])


def test_what_waits_conflicts_as_what_is_in_the_tables_does(store: SqliteStore) -> None:
    async def run() -> None:
        await store.commit(put(KEYS[0]))
        with pytest.raises(Conflict) as taken:
            await store.commit(put(KEYS[0]))
        assert taken.value.keys == {KEYS[0]}
        await store.commit(Batch(size=1, now_ms=0, deletes=[KEYS[0]]))
        with pytest.raises(Conflict) as gone:
            await store.commit(put(KEYS[0], replaces=True))
        assert gone.value.keys == {KEYS[0]}
        await store.commit(put(KEYS[0]))
        assert store.clock() == 3
        await store.close()

    asyncio.run(run())


def test_a_call_whose_reply_waits_is_not_run_again(store: SqliteStore) -> None:
    async def run() -> None:
        first = put(KEYS[0])
        first.replies = [StoredReply(CLIENT, (7, 9), b"")]
        await store.commit(first)
        second = put(KEYS[1])
        second.replies = [StoredReply(CLIENT, (9,), b"")]
        with pytest.raises(Conflict) as conflict:
            await store.commit(second)
        assert conflict.value.clients == {CLIENT}
        await store.close()

    asyncio.run(run())


def test_calls_that_come_late_are_told_from_those_that_have_run(tmp_path: Path) -> None:
    path = tmp_path / "namespace.db"
    format_file(path, {})

    async def reply_to(store: SqliteStore, client: bytes, *calls: int) -> bool:
        """Whether these calls could be replied to, as none of them had a reply."""
        data = b"%d" % calls[0] if calls[0] else b"\xc1"  # as a row of several blobs begins
        replies = [StoredReply(client, calls, data)]
        try:
            await store.commit(Batch(size=1, now_ms=0, replies=replies))
        except Conflict:
            return False
        return True

    async def check(store: SqliteStore) -> None:
        for calls in (5, 6), (1,), (0, 20), (10, 30):
            assert not await reply_to(store, CLIENT, *calls)
        assert await store.find_replies(CLIENT, 1) == [b"\xc1", b"1"]
        assert await store.find_replies(CLIENT, 5) == [b"\xc1", b"4"]
        assert await store.find_replies(CLIENT, 6) == [b"\xc1"]
        assert await store.find_replies(CLIENT, 10) == [b"\xc1", b"10"]

    async def run() -> None:
        store = SqliteStore(path)
        for calls in (0, 20), (4, 5), (10,), (1,):
            assert await reply_to(store, CLIENT, *calls)
        assert await reply_to(store, b"another", 5)
        await check(store)
        store.write_backlog()
        assert store._fetch("SELECT count(*) FROM replies") == [(2,)]
        await check(store)
        await store.close()
        store = SqliteStore(path)
        await check(store)
        assert await reply_to(store, CLIENT, 6)
        assert await reply_to(store, CLIENT, 21)
        assert not await reply_to(store, CLIENT, 6)
        assert not await reply_to(store, CLIENT, 21)
        await store.close()

    asyncio.run(run())


def test_calls_go_to_the_tables_in_slices_once_enough_wait(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_commits, "JOURNALED_CALLS_MAX", 100)
    monkeypatch.setattr(sqlite_backlog, "SLICE_ROWS", 10)

    async def commit(number: int) -> None:
        await store.commit(put((0, number, b"")))
        await asyncio.sleep(0)  # what it leaves for later

    async def run() -> None:
        for number in range(100):
            await commit(number)
            assert in_tables(store) == 0
        for number in range(100, 110):
            assert in_tables(store) == (number - 100) * 10
            await commit(number)
        assert in_tables(store) == 100
        assert all(store.row((0, number, b"")) for number in range(110))
        store.write_backlog()
        assert in_tables(store) == 110
        await store.close()

    asyncio.run(run())


def test_they_do_once_they_are_large(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """However few they are: they are kept in memory, and are read into it after a crash."""
    monkeypatch.setattr(sqlite_commits, "JOURNALED_BYTES_MAX", 100_000)
    monkeypatch.setattr(sqlite_commits, "SETTLED_AT_REST_BYTES_MIN", 50_000)

    async def run() -> None:
        time = Time()
        for number in range(4):
            await store.commit(put((0, number, b""), bytes(10_000)))
        await time.passes(10 * REST_S)
        assert in_tables(store) == 0
        for number in range(4, 6):
            await store.commit(put((0, number, b""), bytes(10_000)))
        await turns_of_the_loop()
        assert in_tables(store) == 0
        for _ in range(2):
            await time.passes(REST_S)
        assert in_tables(store) == 6
        for number in range(6, 30):
            await store.commit(put((0, number, b""), bytes(10_000)))
            await turns_of_the_loop()
            assert number - in_tables(store) < 10
        await store.close()

    asyncio.run(run())


class Time:
    """Passes in the running event loop when it is told to."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self._now_s = loop.time()
        loop.time = lambda: self._now_s  # type: ignore[method-assign]

    async def passes(self, s: float) -> None:
        self._now_s += s
        await turns_of_the_loop()


async def turns_of_the_loop() -> None:
    for _ in range(100):
        await asyncio.sleep(0)


def in_tables(store: SqliteStore) -> int:
    return int(store._fetch("SELECT count(*) FROM records")[0][0])


def test_calls_go_to_the_tables_when_nothing_else_is_to_be_done(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_commits, "SETTLED_AT_REST_MIN", 10)

    async def run() -> None:
        time = Time()
        for number in range(9):
            await store.commit(put((0, number, b"")))
        await time.passes(10 * REST_S)
        assert in_tables(store) == 0  # so few may wait as long as they like
        for number in range(9, 30):
            await store.commit(put((0, number, b"")))
            await time.passes(0.9 * REST_S)  # that is no rest
        assert in_tables(store) == 0
        await time.passes(REST_S)
        await time.passes(REST_S)
        assert in_tables(store) == 30
        await store.close()

    asyncio.run(run())


def test_so_do_those_that_come_while_others_are_brought_there(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_commits, "SETTLED_AT_REST_MIN", 10)
    monkeypatch.setattr(sqlite_backlog, "SLICE_ROWS", 1)

    async def run() -> None:
        time = Time()
        for number in range(10):
            await store.commit(put((0, number, b"")))
        store._settler._look_for_rest(store.clock())
        assert store._commits.is_settling
        for number in range(10, 20):
            await store.commit(put((0, number, b"")))
        assert in_tables(store) < 10
        await turns_of_the_loop()
        await time.passes(REST_S)
        assert in_tables(store) == 20
        await store.close()

    asyncio.run(run())


def test_a_listing_is_not_slow_for_long(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_backlog, "SCANNED_OVER_MAX", 5)

    async def run() -> None:
        for number in range(6):
            await store.commit(put((Table.INODES, 1, b"%d" % number)))
        await turns_of_the_loop()
        assert in_tables(store) == 0
        assert len(store.scan(Scan(Table.INODES, 1, b"", 10))) == 6
        await turns_of_the_loop()
        assert in_tables(store) == 6
        await store.close()

    asyncio.run(run())


def test_what_makes_no_listing_slow_may_wait(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Leases, which a duty looks at; and what is gone again."""
    monkeypatch.setattr(sqlite_backlog, "SCANNED_OVER_MAX", 5)
    leases, names = Scan(Table.LEASES, 0, b"", 10), Scan(Table.INODES, 1, b"", 10)

    async def run() -> None:
        for number in range(6):
            await store.commit(put((Table.LEASES, 0, b"%d" % number)))
        assert len(store.scan(leases)) == 6
        for number in range(6):
            key = (int(Table.INODES), 1, b"%d" % number)
            await store.commit(put(key))
            await store.commit(Batch(size=1, now_ms=0, deletes=[key]))
        assert store.scan(names) == []
        await turns_of_the_loop()
        assert in_tables(store) == 0
        await store.close()

    asyncio.run(run())


def test_what_is_gone_before_its_time_never_gets_to_the_tables(store: SqliteStore) -> None:
    deleted: list[Key] = []

    class Counting:
        """The connection, with an eye on what is deleted."""

        def executemany(self, sql: str, rows: list[Key]) -> object:
            if sql == sqlite_backlog._DELETE:
                deleted.extend(rows)
            return store._connection.executemany(sql, rows)

    async def run() -> None:
        lasting, passing = (0, 1, b"lasting"), (0, 1, b"passing")
        await store.commit(put(lasting))
        store.write_backlog()
        await store.commit(put(passing))
        await store.commit(Batch(size=1, now_ms=0, deletes=[passing, lasting]))
        assert store.row(passing) is None
        assert store.row(lasting) is None
        assert not store.scan(Scan(0, 1, b"", 10))
        for _ in store.backlog.write_in_slices(cast(apsw.Connection, Counting())):
            pass
        store.backlog.keep_all()
        assert deleted == [lasting]
        assert in_tables(store) == 0
        await store.close()

    asyncio.run(run())


def test_what_may_have_got_to_the_tables_is_deleted_there(store: SqliteStore) -> None:
    """If they fail, it is not known what they have."""
    key = (0, 1, b"")
    delete = Batch(size=1, now_ms=0, deletes=[key])

    async def run() -> None:
        await store.commit(put(key))
        for _ in store.backlog.write_in_slices(store._connection):
            pass
        store.backlog.keep_all()  # though it is there
        await store.commit(delete)
        store.write_backlog()
        assert in_tables(store) == 0

        await store.commit(put(key))
        store.write_backlog()
        await store.commit(delete)
        store.backlog.write_in_slices(store._connection)
        await store.commit(put(key))
        store.backlog.keep_all()  # it is there as it was at first
        await store.commit(delete)
        store.write_backlog()
        assert in_tables(store) == 0
        await store.close()

    asyncio.run(run())
