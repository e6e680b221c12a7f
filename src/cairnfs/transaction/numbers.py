"""Ids and generation stamps, taken from the store in ranges.

A range belongs to one NameNode; what it has not used when it dies is lost.
"""

from __future__ import annotations

import asyncio
from typing import Final

from cairnfs.store.base import Store
from cairnfs.transaction.entries import OutOfNumbers

RANGE: Final = 10_000


class Numbers:
    """Hands out numbers from memory; `reserve` fetches the next range."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._ranges: dict[str, tuple[int, int]] = {}  # next, end
        self._reserving = asyncio.Lock()

    def take(self, counter: str) -> int:
        next, end = self._ranges.get(counter, (0, 0))
        if next >= end:
            raise OutOfNumbers(counter)
        self._ranges[counter] = (next + 1, end)
        return next

    async def reserve(self, counter: str) -> None:
        await self._reserving.acquire()
        try:
            next, end = self._ranges.get(counter, (0, 0))
            if next >= end:  # nobody else fetched one while we waited
                first = await self._store.reserve(counter, RANGE)
                self._ranges[counter] = (first, first + RANGE)
        finally:
            self._reserving.release()
