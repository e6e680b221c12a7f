"""Blocking work for an event loop: one step after the other, each in a thread.

The client of the file system blocks.  A transfer runs its steps in threads that it shares with the
others; between two steps, while its HTTP client is slow, it has none.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


class Lane:
    """The steps of one transfer.  No two of them run at once, even if nobody waits any more."""

    def __init__(self, threads: ThreadPoolExecutor) -> None:
        self._threads = threads
        self._last: Future[Any] | None = None

    async def run(self, step: Callable[P, R], *arguments: P.args, **options: P.kwargs) -> R:
        """Run a step and wait for it; whoever is cancelled meanwhile leaves it to its end."""
        assert self._last is None or self._last.done(), "one step at a time"
        self._last = future = self._threads.submit(step, *arguments, **options)
        return await asyncio.shield(asyncio.wrap_future(future))

    def leave(self, last_step: Callable[[], None]) -> None:
        """Run a last step when the one under way has ended; nobody waits for it."""
        if self._last is None or self._last.done():
            self._threads.submit(last_step)
        else:
            self._last.add_done_callback(lambda _: last_step())  # in the same thread
