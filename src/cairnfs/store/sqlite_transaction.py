"""Transactions with locks on a SQLite store, for runners that lock before they compute."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from cairnfs.store.base import Found, LockMode, Reading, Row
from cairnfs.store.batches import Batch
from cairnfs.store.locks import LockTable
from cairnfs.store.schema import Key


class CommittingReads(Protocol):
    """What such a transaction asks of its store."""

    def row(self, key: Key) -> Row | None: ...

    def clock(self) -> int: ...

    async def read(self, reading: Reading) -> Found: ...

    def commit_now(self, batch: Batch) -> int: ...


_CLOCK = ("clock", True)


class SqliteTransaction:
    """See `store.base.StoreTransaction`.  Writes are one batch, applied at commit."""

    def __init__(self, store: CommittingReads, locks: LockTable) -> None:
        self._store = store
        self._locks = locks
        self._held: list[tuple[object, bool]] = []

    async def take_clock(self) -> int:
        if _CLOCK not in self._held:
            await self._locks.acquire("clock", exclusive=True)
            self._held.append(_CLOCK)
        return self._store.clock()

    async def lock(self, modes: Mapping[Key, LockMode]) -> dict[Key, Row]:
        for key in sorted(modes):
            if modes[key] is not LockMode.READ_COMMITTED:
                exclusive = modes[key] is LockMode.EXCLUSIVE
                await self._locks.acquire(key, exclusive=exclusive)
                self._held.append((key, exclusive))
        rows = ((key, self._store.row(key)) for key in modes)
        return {key: row for key, row in rows if row is not None}

    async def read(self, reading: Reading) -> Found:
        return await self._store.read(reading)

    async def commit(self, batch: Batch) -> int:
        await self.take_clock()
        return self._store.commit_now(batch)

    def release(self) -> None:
        while self._held:
            key, exclusive = self._held.pop()
            self._locks.release(key, exclusive=exclusive)
