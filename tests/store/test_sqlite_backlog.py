"""What is committed is found, wherever it waits: in the journal or in the tables."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cairnfs.store import sqlite_backlog, sqlite_commits
from cairnfs.store.base import (
    Batch,
    Conflict,
    Count,
    Keep,
    Key,
    PastRow,
    Put,
    Scan,
    StoredReply,
    Touch,
)
from cairnfs.store.sqlite import SqliteStore, format_file

KEYS: list[Key] = [(t, a, b) for t in (0, 1) for a in (1, 2) for b in (b"", b"x", b"y")]
IDS = [None, 1, 2]
CLIENT = b"client"


@dataclass
class Model:
    """A store that forgets nothing and is never killed."""

    rows: dict[Key, tuple[int | None, int, bytes]] = field(default_factory=dict)
    children: dict[int, int] = field(default_factory=dict)
    times: dict[int, tuple[int, int]] = field(default_factory=dict)  # mtime_ms, touched
    replies: dict[int, bytes] = field(default_factory=dict)
    past: list[PastRow] = field(default_factory=list)
    txid: int = 0

    def commit(self, batch: Batch) -> None:
        for key, order in batch.keeps:
            id, since, data = self.rows[key]
            self.past.append(PastRow(key, self.txid + order, since, id, data))
        for key in batch.deletes:
            del self.rows[key]
        for key, id, order, data, _ in batch.puts:
            self.rows[key] = id, self.txid + order, data
        for directory, counts, mtime_ms, order, _ in batch.touches:
            self.children[directory] = self.children.get(directory, 0) + counts[Count.CHILDREN]
            if order:
                self.times[directory] = mtime_ms, self.txid + order
        for _, calls, data in batch.replies:
            self.replies.update(dict.fromkeys(calls, data))
        self.txid += batch.size


steps = st.one_of(
    st.tuples(
        st.just("put"),
        st.sampled_from(KEYS),
        st.sampled_from(IDS),
        st.binary(max_size=3),
        st.booleans(),
    ),
    st.tuples(st.just("delete"), st.sampled_from(KEYS), st.booleans()),
    st.tuples(st.just("touch"), st.sampled_from([1, 2]), st.integers(-3, 3), st.booleans()),
    st.tuples(st.just("settle")),
    st.tuples(st.just("look")),
    st.tuples(st.just("crash")),
)


def batch_for(step: tuple, model: Model) -> Batch:
    """A batch that does one thing, and replies to a call that nobody has made before."""
    batch = Batch(size=1, now_ms=5)
    batch.replies = [StoredReply(CLIENT, (model.txid,), b"reply %d" % model.txid)]
    match step:
        case "put", key, id, data, keeps:
            batch.puts = [Put(key, id, 1, data, key in model.rows)]
            batch.keeps = [Keep(key, 1)] if keeps and key in model.rows else []
        case "delete", key, keeps if key in model.rows:
            batch.deletes = [key]
            batch.keeps = [Keep(key, 1)] if keeps else []
        case "touch", directory, change, sets_time:
            counts = [change] + [0] * (len(Count) - 1)
            batch.touches = [Touch(directory, counts, model.txid + 1000, int(sets_time))]
    return batch


def check(store: SqliteStore, model: Model) -> None:
    for key in KEYS:
        row = store.row(key)
        found = None if row is None else (row.since, row.data)
        assert found == (model.rows[key][1:] if key in model.rows else None)
    for table in (0, 1):
        for id in (1, 2):
            keys = [key for key, row in model.rows.items() if key[0] == table and row[0] == id]
            assert sorted(row.key for row in store.rows_of_id(table, id)) == sorted(keys)
    for directory in (1, 2):
        totals = store.totals(directory)
        assert totals.counts[Count.CHILDREN] == model.children.get(directory, 0)
        assert (totals.mtime_ms, totals.touched) == model.times.get(directory, (0, 0))
    assert store.clock() == model.txid


async def check_all(store: SqliteStore, model: Model) -> None:
    check(store, model)
    for number, reply in model.replies.items():
        assert await store.find_replies(CLIENT, number) == [reply]
    for prefix in {key[:2] for key in KEYS}:
        keys = sorted(key for key in model.rows if key[:2] == prefix)
        assert [row.key for row in store.scan(Scan(*prefix, b"", 2))] == [
            key for key in keys if key[2]
        ][:2]
    for row in model.past:
        then = store.at(row.since).row(row.key)
        assert then is not None
        assert (then.since, then.data) == (row.since, row.data)
    assert await store.scan_past((0, KEYS[0]), model.txid, len(model.past) + 1) == model.past
    check(store, model)


def crash(store: SqliteStore, path: Path) -> tuple[SqliteStore, Path]:
    """What another process finds if this one is killed now: its files, as they are."""
    after = Path(tempfile.mkdtemp(dir=path.parent.parent)) / path.name
    for file in path.parent.iterdir():
        shutil.copy(file, after.parent)
    asyncio.run(store.close())
    return SqliteStore(after), after


@settings(max_examples=60, deadline=None)
@given(st.lists(steps, max_size=40), st.integers(1, 6), st.integers(1, 3))
def test_whatever_happens_the_store_is_what_was_committed(
    script: list, waiting_max: int, slice_rows: int
) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(sqlite_commits, "JOURNALED_CALLS_MAX", waiting_max)
        patch.setattr(sqlite_backlog, "SLICE_ROWS", slice_rows)
        path = Path(folder) / "first" / "namespace.db"
        format_file(path, {})
        store, model = SqliteStore(path), Model()
        for step in script:
            if step[0] == "settle":
                store.write_backlog()
            elif step[0] == "look":
                asyncio.run(check_all(store, model))
            elif step[0] == "crash":
                store, path = crash(store, path)
            else:
                batch = batch_for(step, model)
                asyncio.run(store.commit(batch))
                model.commit(batch)
            check(store, model)
        store, path = crash(store, path)
        asyncio.run(check_all(store, model))
        asyncio.run(store.close())


@pytest.fixture
def store(tmp_path: Path) -> SqliteStore:
    format_file(tmp_path / "namespace.db", {})
    return SqliteStore(tmp_path / "namespace.db")


def put(key: Key, *, replaces: bool = False) -> Batch:
    return Batch(size=1, now_ms=0, puts=[Put(key, None, 1, b"", replaces)])


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

    def in_tables() -> int:
        return int(store._fetch("SELECT count(*) FROM records")[0][0])

    async def commit(number: int) -> None:
        await store.commit(put((0, number, b"")))
        await asyncio.sleep(0)  # what it leaves for later

    async def run() -> None:
        for number in range(100):
            await commit(number)
            assert in_tables() == 0
        for number in range(100, 110):
            assert in_tables() == (number - 100) * 10
            await commit(number)
        assert in_tables() == 100
        assert all(store.row((0, number, b"")) for number in range(110))
        store.write_backlog()
        assert in_tables() == 110
        await store.close()

    asyncio.run(run())
