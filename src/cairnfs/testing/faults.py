"""Faults, from outside: stores that wait, die, refuse or count at a chosen step.

`SteppedStore` wraps a store and passes every call on.  Before and after each it
announces a step; what happens there is up to a subclass.  The product knows nothing
of it.
"""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from cairnfs.clock import Clock
from cairnfs.store.base import (
    Conflict,
    Found,
    LocalReads,
    LockMode,
    PastRow,
    Reading,
    Row,
    Store,
    StoreMoment,
    StoreTransaction,
)
from cairnfs.store.batches import Batch, Member
from cairnfs.store.schema import Key
from cairnfs.transaction.runner import Membership

PAUSE_LIMIT_S = 60.0

READ = "read"
WAS_READ = "was read"
COMMIT = "commit"
COMMITTED = "committed"
TAKE_CLOCK = "take clock"
HAS_CLOCK = "has clock"
LOCK = "lock"
LOCKED = "locked"


class SteppedStore:
    """A store that announces what is about to be done, and what was done."""

    def __init__(self, inner: Store) -> None:
        self.inner = inner

    @property
    def local(self) -> LocalReads | None:
        return self.inner.local

    async def step(self, name: str, batch: Batch | None = None) -> None:
        """Somebody is at this step."""

    async def meta(self) -> dict[str, str]:
        return await self.inner.meta()

    async def read(self, reading: Reading) -> Found:
        await self.step(READ)
        found = await self.inner.read(reading)
        await self.step(WAS_READ)
        return found

    def prepare(self, batch: Batch) -> None:
        self.inner.prepare(batch)

    async def commit(self, batch: Batch) -> int:
        await self.step(COMMIT, batch)
        base = await self.inner.commit(batch)
        await self.step(COMMITTED, batch)
        return base

    async def settle(self, member: Member) -> int | None:
        return await self.inner.settle(member)

    def transaction(self) -> AbstractAsyncContextManager[StoreTransaction]:
        return self._transaction()

    @asynccontextmanager
    async def _transaction(self) -> AsyncIterator[StoreTransaction]:
        async with self.inner.transaction() as transaction:
            yield _SteppedTransaction(self, transaction)

    def moment(self) -> AbstractAsyncContextManager[StoreMoment]:
        return self.inner.moment()

    async def find_replies(self, client_id: bytes, call_id: int) -> list[bytes]:
        return await self.inner.find_replies(client_id, call_id)

    async def drop_expired_replies(self, now_ms: int, limit: int) -> int:
        return await self.inner.drop_expired_replies(now_ms, limit)

    async def count_rows(self, table: int) -> int:
        return await self.inner.count_rows(table)

    async def count_each(self, table: int) -> dict[int, int]:
        return await self.inner.count_each(table)

    async def count_ids(self, table: int) -> int:
        return await self.inner.count_ids(table)

    async def scan_past(
        self, holder: int, after: tuple[int, Key], until: int, limit: int
    ) -> list[PastRow]:
        return await self.inner.scan_past(holder, after, until, limit)

    async def scan_table(self, table: int, after: tuple[int, bytes], limit: int) -> list[Row]:
        return await self.inner.scan_table(table, after, limit)

    async def past_holders(self) -> list[int]:
        return await self.inner.past_holders()

    async def count_past(self) -> int:
        return await self.inner.count_past()

    async def last_txid(self) -> int:
        return await self.inner.last_txid()

    async def peek(self, counter: str) -> int:
        return await self.inner.peek(counter)

    async def reserve(self, counter: str, count: int) -> int:
        return await self.inner.reserve(counter, count)

    async def close(self) -> None:
        await self.inner.close()


class _SteppedTransaction:
    def __init__(self, store: SteppedStore, inner: StoreTransaction) -> None:
        self._store = store
        self._inner = inner

    async def take_clock(self) -> int:
        await self._store.step(TAKE_CLOCK)
        txid = await self._inner.take_clock()
        await self._store.step(HAS_CLOCK)
        return txid

    async def lock(self, modes: Mapping[Key, LockMode]) -> dict[Key, Row]:
        await self._store.step(LOCK)
        rows = await self._inner.lock(modes)
        await self._store.step(LOCKED)
        return rows

    async def read(self, reading: Reading) -> Found:
        await self._store.step(READ)
        found = await self._inner.read(reading)
        await self._store.step(WAS_READ)
        return found

    async def commit(self, batch: Batch) -> int:
        await self._store.step(COMMIT, batch)
        base = await self._inner.commit(batch)
        await self._store.step(COMMITTED, batch)
        return base


class PausingStore(SteppedStore):
    """Stops whoever comes to a chosen step until told to go on.

    `pause_at`, `wait_until_paused` and `resume` may be called from any thread.
    """

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self._pauses: dict[str, _Pause] = {}

    def pause_at(self, step: str, skip: int = 0) -> None:
        """The next one who comes to this step stops there; `skip` are let pass before."""
        self._pauses[step] = _Pause(skip)

    def wait_until_paused(self, step: str, limit_s: float = PAUSE_LIMIT_S) -> bool:
        """Whether somebody stands there now, or came there within the limit."""
        return self._pauses[step].reached.wait(limit_s)

    def resume(self, step: str) -> None:
        """Let go on whoever stands there; nobody will stop there any more."""
        pause = self._pauses.pop(step, None)
        if pause is not None:
            pause.release()

    async def step(self, name: str, batch: Batch | None = None) -> None:
        pause = self._pauses.get(name)
        if pause is not None and pause.is_for_us():
            await pause.stop()


class _Pause:
    def __init__(self, skip: int) -> None:
        self.reached = threading.Event()
        self._skip = skip
        self._lock = threading.Lock()
        self._released = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._go_on: asyncio.Event | None = None

    def is_for_us(self) -> bool:
        self._skip -= 1
        return self._skip == -1

    async def stop(self) -> None:
        with self._lock:
            self._loop = asyncio.get_running_loop()
            self._go_on = asyncio.Event()
            if self._released:
                return
        self.reached.set()
        await self._go_on.wait()

    def release(self) -> None:
        with self._lock:
            self._released = True
            if self._loop is not None and self._go_on is not None:
                self._loop.call_soon_threadsafe(self._go_on.set)


class CountingStore(SteppedStore):
    """Remembers every batch that was committed."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self.batches: list[Batch] = []

    async def step(self, name: str, batch: Batch | None = None) -> None:
        if name == COMMITTED and batch is not None:
            self.batches.append(batch)


class ConflictingStore(CountingStore):
    """Finds a conflict, whether there is one or not.

    `choose` is shown a batch that is to be committed outside of a transaction, and
    returns the keys to call changed, or none to let it pass.
    """

    def __init__(self, inner: Store, choose: Callable[[Batch], list[Key]]) -> None:
        super().__init__(inner)
        self.choose = choose

    async def commit(self, batch: Batch) -> int:
        keys = self.choose(batch)
        if keys:
            await asyncio.sleep(0)
            raise Conflict(keys)
        return await super().commit(batch)


class CarelessStore(SteppedStore):
    """Commits without a look at what has changed since, to show what validation is for."""

    async def step(self, name: str, batch: Batch | None = None) -> None:
        if name == COMMIT and batch is not None:
            batch.reads.clear()
            batch.bounds.clear()
            batch.empties.clear()


class ClocklessStore(SteppedStore):
    """Does not let anybody be alone: to take the clock is no more than a word.

    To show what would happen if the calls that have to run alone did not.
    """

    @asynccontextmanager
    async def _transaction(self) -> AsyncIterator[StoreTransaction]:
        yield _SteppedTransaction(self, _ClocklessTransaction(self.inner))


class _ClocklessTransaction:
    def __init__(self, store: Store) -> None:
        self._store = store

    async def take_clock(self) -> int:
        return 0

    async def lock(self, modes: Mapping[Key, LockMode]) -> dict[Key, Row]:
        raise NotImplementedError

    async def read(self, reading: Reading) -> Found:
        return await self._store.read(reading)

    async def commit(self, batch: Batch) -> int:
        return await self._store.commit(batch)


class KillSwitch:
    """Counts steps, and kills this process with SIGKILL at one of them."""

    def __init__(self, die_at: int = 0) -> None:
        self.die_at = die_at
        self.armed = False
        self.steps: list[str] = []

    def step(self, name: str) -> None:
        """We are here; perhaps no further."""
        if not self.armed:
            return
        self.steps.append(name)
        if len(self.steps) == self.die_at:
            os.kill(os.getpid(), signal.SIGKILL)


class DyingStore(SteppedStore):
    """Its steps are steps of a kill switch."""

    def __init__(self, inner: Store, switch: KillSwitch) -> None:
        super().__init__(inner)
        self._switch = switch

    async def step(self, name: str, batch: Batch | None = None) -> None:
        self._switch.step(name)


class DyingClock:
    """To look at the clock is a step: before each run of an operation and each commit."""

    def __init__(self, inner: Clock, switch: KillSwitch) -> None:
        self._inner = inner
        self._switch = switch

    def now_ms(self) -> int:
        self._switch.step("time")
        return self._inner.now_ms()


class DyingMembership:
    """To number a batch is a step: what is in it has been run."""

    def __init__(self, inner: Membership, switch: KillSwitch) -> None:
        self._inner = inner
        self._switch = switch

    def next_batch(self) -> Member | None:
        self._switch.step("number batch")
        return self._inner.next_batch()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)
