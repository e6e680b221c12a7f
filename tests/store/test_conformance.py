"""Every store keeps every promise of `store.base`; and the suite can tell who doesn't."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path

import pytest

from cairnfs.store.base import Row, Store
from cairnfs.store.batches import Batch, Put
from cairnfs.store.postgres import PostgresStore, format_database
from cairnfs.store.sqlite import SqliteStore, format_file
from cairnfs.testing.conformance import FORMATTED_WITH, PROMISES, StoreConformance
from cairnfs.testing.conformance_concurrency import OrderObserver, watch_commits


@pytest.mark.parametrize("promise", PROMISES)
def test_sqlite(promise: str, tmp_path: Path) -> None:
    async def check() -> None:
        path = tmp_path / "namespace.db"
        format_file(path, FORMATTED_WITH)
        store = SqliteStore(path)
        try:
            await getattr(StoreConformance(store, store), promise)()
        finally:
            await store.close()

    asyncio.run(check())


@pytest.mark.parametrize("promise", PROMISES)
def test_postgres(promise: str, postgres_dsn: str) -> None:
    async def check() -> None:
        await format_database(postgres_dsn, FORMATTED_WITH)
        store = await PostgresStore.open(postgres_dsn)
        other = await PostgresStore.open(postgres_dsn)
        try:
            await getattr(StoreConformance(store, other), promise)()
        finally:
            await store.close()
            await other.close()

    asyncio.run(check())


class NaiveCommits:
    """Takes its number before the lock, as a sequence would hand it out."""

    def __init__(self, store: PostgresStore) -> None:
        self._store = store
        self._next = 0
        self.second_is_visible = asyncio.Event()

    async def commit(self, batch: Batch) -> int:
        self._next += 1
        number = self._next
        if number == 1:
            await self.second_is_visible.wait()  # any delay at all, made certain
        put = batch.puts[0]
        async with self._store.transaction() as transaction:
            await transaction.take_clock()
            await transaction._fetch(
                "INSERT INTO records VALUES ($1, $2, $3, $4, $5, $6)",
                *(*put.key, put.id, number, put.data),
            )
            await transaction.commit(Batch(size=1, now_ms=0))
        return number - 1


class Watcher(OrderObserver):
    """Lets the first naive commit go on once a later one was seen."""

    def __init__(self, naive: NaiveCommits) -> None:
        super().__init__()
        self._naive = naive

    def observe(self, rows: Iterable[Row]) -> None:
        super().observe(rows)
        if self.newest:
            self._naive.second_is_visible.set()


def test_the_suite_finds_numbers_taken_before_the_lock(postgres_dsn: str) -> None:
    async def check() -> None:
        await format_database(postgres_dsn, {})
        store = await PostgresStore.open(postgres_dsn)
        naive = NaiveCommits(store)
        try:
            with pytest.raises(AssertionError, match="became visible after"):
                await watch_commits(store, [naive.commit] * 8, 5, Watcher(naive))
        finally:
            await store.close()

    asyncio.run(check())


def test_shards_of_two_namenodes_add_up(postgres_dsn: str) -> None:
    """Counters and bounds are over all shards, whoever asks."""

    async def check(store: Store, other: Store) -> None:
        await StoreConformance(store, other).check_the_time_is_the_latest_txids_even_if_earlier()
        await other.commit(Batch(1, 0, puts=[Put((0, 1, b"a"), 1, 1, b"", False)]))

    async def main() -> None:
        await format_database(postgres_dsn, {})
        store = await PostgresStore.open(postgres_dsn)
        other = await PostgresStore.open(postgres_dsn)
        try:
            await check(store, other)
        finally:
            await store.close()
            await other.close()

    asyncio.run(main())
