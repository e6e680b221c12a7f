"""Shared and exclusive locks on keys, for a store that has no row locks itself.

Waiters are served in order of arrival.  Whoever locks several keys locks them
in ascending order, so there are no cycles of waiting.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Hashable


class _Lock:
    __slots__ = ("readers", "waiting", "writer")

    def __init__(self) -> None:
        self.readers = 0
        self.writer = False
        self.waiting: deque[tuple[bool, asyncio.Future[None]]] = deque()

    def admits(self, exclusive: bool) -> bool:
        return not self.writer and not (exclusive and self.readers)

    def enter(self, exclusive: bool) -> None:
        if exclusive:
            self.writer = True
        else:
            self.readers += 1

    def leave(self, exclusive: bool) -> None:
        if exclusive:
            self.writer = False
        else:
            self.readers -= 1

    @property
    def is_free(self) -> bool:
        return not (self.writer or self.readers or self.waiting)


class LockTable:
    """Locks that exist while somebody holds or awaits them."""

    def __init__(self) -> None:
        self._locks: dict[Hashable, _Lock] = {}

    async def acquire(self, key: Hashable, *, exclusive: bool) -> None:
        lock = self._locks.get(key)
        if lock is None:
            lock = self._locks[key] = _Lock()
        if not lock.waiting and lock.admits(exclusive):
            lock.enter(exclusive)
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        lock.waiting.append((exclusive, turn))
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.release(key, exclusive=exclusive)  # it was our turn already
            elif (exclusive, turn) in lock.waiting:
                lock.waiting.remove((exclusive, turn))
                self._admit(key, lock)
            raise

    def release(self, key: Hashable, *, exclusive: bool) -> None:
        lock = self._locks[key]
        lock.leave(exclusive)
        self._admit(key, lock)

    def _admit(self, key: Hashable, lock: _Lock) -> None:
        while lock.waiting:
            exclusive, turn = lock.waiting[0]
            if not turn.done():  # else it was cancelled, and its waiter has yet to notice
                if not lock.admits(exclusive):
                    break
                lock.enter(exclusive)
                turn.set_result(None)
            lock.waiting.popleft()
        if lock.is_free:
            del self._locks[key]
