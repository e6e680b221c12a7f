"""A store that takes its time, before it does something and before it says so.

Calls that are made at the same time then really meet: what was read is old
when it is used, and a commit is seen by others before its own NameNode knows.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from cairnfs.store.base import Store, StoreTransaction

WAITS_S = (0.0, 0.0, 0.0005, 0.001, 0.003)


class Delays:
    """Waits a random moment around every call of the stores, while `active`."""

    def __init__(self, seed: int = 0) -> None:
        self.active = False
        self._generator = random.Random(seed)

    def reseed(self, seed: int) -> None:
        self._generator = random.Random(seed)

    def wrap(self, store: Store) -> None:
        """Slow one store down, in place."""
        slowed: Any = store
        slowed.read = self._slow(store.read)
        slowed.commit = self._slow(store.commit)
        slowed.transaction = self._slow_transaction(store.transaction)

    def _slow(self, call: Callable[..., Any]) -> Callable[..., Any]:
        async def slow(*arguments: Any) -> Any:
            await self._wait()
            try:
                return await call(*arguments)
            finally:
                await self._wait()

        return slow

    def _slow_transaction(self, begin: Callable[[], Any]) -> Callable[[], Any]:
        @asynccontextmanager
        async def transaction() -> AsyncIterator[StoreTransaction]:
            async with begin() as inner:
                slow: Any = _SlowTransaction()
                for name in ("take_clock", "lock", "read", "commit"):
                    setattr(slow, name, self._slow(getattr(inner, name)))
                yield slow

        return transaction

    async def _wait(self) -> None:
        if self.active:
            wait_s = self._generator.choice(WAITS_S)
            if wait_s:
                await asyncio.sleep(wait_s)


class _SlowTransaction:
    """Holds the methods of a slowed transaction."""
