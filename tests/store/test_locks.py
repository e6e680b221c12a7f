"""Locks whose waiters are cancelled, at every moment of their waiting."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from cairnfs.store.locks import LockTable

KEY = "key"


def run(check: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(check, 10))


async def waiter(locks: LockTable, *, exclusive: bool) -> asyncio.Task[None]:
    task = asyncio.create_task(locks.acquire(KEY, exclusive=exclusive))
    await asyncio.sleep(0)
    return task


async def is_usable(locks: LockTable) -> None:
    """Nobody holds it, nobody waits, and it works as on the first day."""
    assert locks._locks == {}
    await locks.acquire(KEY, exclusive=True)
    second = await waiter(locks, exclusive=False)
    assert not second.done()
    locks.release(KEY, exclusive=True)
    await second
    locks.release(KEY, exclusive=False)
    assert locks._locks == {}


@pytest.mark.parametrize("exclusive", [True, False])
@pytest.mark.parametrize("moment", range(4))
def test_a_cancelled_waiter_leaves_a_lock_that_works(exclusive: bool, moment: int) -> None:
    async def check() -> None:
        locks = LockTable()
        await locks.acquire(KEY, exclusive=True)
        cancelled = await waiter(locks, exclusive=exclusive)
        if moment == 0:  # it notices while the lock is still held
            cancelled.cancel()
            await asyncio.wait([cancelled])
            locks.release(KEY, exclusive=True)
        elif moment == 1:  # released before it has noticed
            cancelled.cancel()
            locks.release(KEY, exclusive=True)
        elif moment == 2:  # its turn has come, but it has not run yet
            locks.release(KEY, exclusive=True)
            cancelled.cancel()
        else:  # released, and taken anew by another, before it has noticed
            cancelled.cancel()
            locks.release(KEY, exclusive=True)
            await locks.acquire(KEY, exclusive=True)
            await asyncio.wait([cancelled])
            assert not locks._locks[KEY].is_free
            locks.release(KEY, exclusive=True)
        await asyncio.wait([cancelled])
        assert cancelled.cancelled()
        await is_usable(locks)

    run(check())


@pytest.mark.parametrize("notices", [True, False])
def test_those_behind_a_cancelled_waiter_are_admitted(notices: bool) -> None:
    async def check() -> None:
        locks = LockTable()
        await locks.acquire(KEY, exclusive=False)
        writer = await waiter(locks, exclusive=True)
        readers = [await waiter(locks, exclusive=False) for _ in range(3)]
        readers[1].cancel()
        writer.cancel()
        if notices:
            await asyncio.wait([writer])
        else:
            locks.release(KEY, exclusive=False)
        await asyncio.gather(readers[0], readers[2])
        for _ in range(3 if notices else 2):
            locks.release(KEY, exclusive=False)
        await is_usable(locks)

    run(check())


def test_the_holder_keeps_its_lock_when_waiters_are_cancelled() -> None:
    async def check() -> None:
        locks = LockTable()
        await locks.acquire(KEY, exclusive=True)
        waiters = [await waiter(locks, exclusive=bool(n % 2)) for n in range(6)]
        for each in waiters[:5]:
            each.cancel()
        await asyncio.wait(waiters[:5])
        assert not waiters[5].done()
        locks.release(KEY, exclusive=True)
        await waiters[5]
        locks.release(KEY, exclusive=True)
        await is_usable(locks)

    run(check())
