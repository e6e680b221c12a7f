"""Background work: one owner at a time, taken over when it dies, in bounded steps."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from cairnfs.config import NameNodeSettings
from cairnfs.namenode.opening import format_namespace
from cairnfs.namesystem.inodes import ROOT_ID, Inode, InodeId, Kind
from cairnfs.namesystem.lookup import inode_key
from cairnfs.namesystem.reclaim import RECLAIM_BATCH
from cairnfs.store.base import Count, Scan, Store
from cairnfs.store.base import Reading as StoreReading
from cairnfs.store.batches import Batch, Put, Touch
from cairnfs.store.schema import Table
from cairnfs.testing.faults import COMMIT, CountingStore
from cairnfs.testing.invariants import check_invariants, check_no_leftovers
from cairnfs.testing.peers import WAIT_LIMIT_S, LocalPeer, ProcessPeer
from cairnfs.transaction.records import encode

CHILDREN = 20_000


async def plant(store: Store, directory: int, count: int) -> range:
    """Put files into a directory of the root, many at once; returns their ids."""
    first = await store.reserve("inode id", count)
    puts = []
    for id in range(first, first + count):
        name = b"f%08d" % id
        file = Inode(InodeId(id), InodeId(directory), name, Kind.FILE, 0o644, "ada", "staff", 1, 1)
        puts.append(Put(inode_key(InodeId(directory), name), id, 1, encode(file), False))
    counts = [0] * len(Count)
    counts[Count.FILES] = counts[Count.INODES] = count
    touches = [Touch(int(ROOT_ID), list(counts), -1, 0)]
    counts[Count.CHILDREN] = count
    touches.append(Touch(directory, counts, 1, 1))
    await store.commit(Batch(size=1, now_ms=1, puts=puts, touches=touches))
    return range(first, first + count)


async def orphans_of(store: Store) -> int:
    scan = Scan(Table.ORPHANS, 0, b"", 10)
    return len((await store.read(StoreReading(scans=[scan]))).scans[scan])


def make_big(peer: LocalPeer, count: int) -> range:
    peer.call("mkdirs", "/big")
    ids: range = peer.thread.wait(plant(peer.store, peer.call("get_file_info", "/big").id, count))
    return ids


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    url = f"sqlite://{tmp_path}/namespace.db"
    if request.param == "postgres":
        url = request.getfixturevalue("postgres_dsn")
    asyncio.run(format_namespace(url))
    return url


def test_deleting_detaches_one_row_and_reclaiming_is_bounded(url: str) -> None:
    with LocalPeer(NameNodeSettings(url, duties=False), CountingStore) as peer:
        ids = make_big(peer, CHILDREN)
    # Another one, since this one has not noticed: what it has cached is of before.
    with LocalPeer(NameNodeSettings(url, duties=False), CountingStore) as peer:
        assert peer.call("get_content_summary", "/").files == CHILDREN
        assert peer.call("delete", "/big", recursive=True)
        (detached,) = peer.store.batches
        assert [key[2] for key in detached.deletes] == [b"big"]
        assert [put.key[0] for put in detached.puts] == [Table.ORPHANS]
        assert len(detached.touches) == 1
        assert peer.call("get_file_info", "/big") is None
        assert peer.call("get_content_summary", "/").inodes == 1

        peer.store.batches.clear()
        peer.thread.wait(peer.thread.namenode.duties.reclaim_everything())
        sizes = [len(batch.deletes) for batch in peer.store.batches]
        assert max(sizes) <= RECLAIM_BATCH + 1  # and the orphan's own row
        assert sum(sizes) == CHILDREN + 1
        assert len(sizes) >= CHILDREN // RECLAIM_BATCH
        peer.thread.wait(check_invariants(peer.store))
        peer.thread.wait(check_no_leftovers(peer.store, ids))


class Observer:
    """Watches who owns a duty, by the database's own clock."""

    def __init__(self, dsn: str, duty: str) -> None:
        self._dsn = dsn
        self._duty = duty
        self._done = threading.Event()
        self._thread = threading.Thread(target=asyncio.run, args=(self._watch(),))
        self.owners: list[tuple[int, int]] = []
        self.usurped: list[str] = []

    def __enter__(self) -> Observer:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._done.set()
        self._thread.join()

    async def _watch(self) -> None:
        connection = await asyncpg.connect(self._dsn)
        statement = (
            "SELECT member, epoch, expires, clock_timestamp() FROM cairnfs.duties WHERE name = $1"
        )
        expired: datetime | None = None
        while not self._done.is_set():
            rows = await connection.fetch(statement, self._duty)
            assert len(rows) <= 1
            for member, epoch, expires, now in rows:
                if not self.owners or self.owners[-1] != (member, epoch):
                    if expired is not None and now < expired:
                        self.usurped.append(f"{member} took over {expired - now} too early")
                    self.owners.append((member, epoch))
                expired = expires
            await asyncio.sleep(0.005)
        await connection.close()


@pytest.fixture
def two_processes(postgres_dsn: str) -> Iterator[tuple[ProcessPeer, ProcessPeer]]:
    asyncio.run(format_namespace(postgres_dsn))
    settings = NameNodeSettings(postgres_dsn, duty_interval_s=0.05)
    peers = ProcessPeer(settings), ProcessPeer(settings)
    yield peers
    for peer in peers:
        if peer.is_alive:
            peer.stop()


def test_reclaiming_is_taken_over_when_its_owner_is_killed(
    postgres_dsn: str, two_processes: tuple[ProcessPeer, ProcessPeer]
) -> None:
    children = 10 * RECLAIM_BATCH
    with LocalPeer(NameNodeSettings(postgres_dsn, duties=False)) as witness:
        ids = make_big(witness, children)
        for peer in two_processes:
            peer.pause_at(COMMIT, skip=3)
        with Observer(postgres_dsn, "reclaim") as observer:
            assert witness.call("delete", "/big", recursive=True)
            owner, other = await_owner(two_processes)
            assert witness.thread.wait(orphans_of(witness.store)) == 1
            assert not other.wait_until_paused(COMMIT, 0.05), "two reclaim at once"
            owner.kill()
            other.resume(COMMIT)
            await_that(lambda: witness.thread.wait(orphans_of(witness.store)) == 0)
        assert len(observer.owners) == 2
        assert observer.usurped == []
        witness.thread.wait(check_invariants(witness.store))
        witness.thread.wait(check_no_leftovers(witness.store, ids))


def await_owner(peers: tuple[ProcessPeer, ProcessPeer]) -> tuple[ProcessPeer, ProcessPeer]:
    """The one that was stopped in the middle of reclaiming, then the other."""
    one, two = peers
    limit_s = time.monotonic() + WAIT_LIMIT_S
    while time.monotonic() < limit_s:
        if one.wait_until_paused(COMMIT, 0.05):
            return one, two
        if two.wait_until_paused(COMMIT, 0.05):
            return two, one
    raise AssertionError("nobody reclaims")


def await_that(condition: Any) -> None:
    limit_s = time.monotonic() + WAIT_LIMIT_S
    while not condition():
        assert time.monotonic() < limit_s, "waited in vain"
        time.sleep(0.02)
