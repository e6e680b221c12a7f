"""Blocking work for an event loop: one step after the other, each in a thread.

The client of the file system blocks.  A transfer runs its steps in threads that it shares with the
others; between two steps, while its HTTP client is slow, it has none.
"""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


class Threads:
    """Runs steps in the order in which they come, by at most `threads_max` threads.

    Unlike those of an executor of Python's, its threads do not keep the process from ending.
    """

    def __init__(self, name: str, threads_max: int) -> None:
        self._name = name
        self._threads_max = threads_max
        self._steps: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._idle = threading.Semaphore(0)  # so many threads have nothing to do

    def submit(self, step: Callable[[], R]) -> Future[R]:
        """Called by one thread, that of the event loop."""
        future: Future[R] = Future()

        def run() -> None:
            try:
                future.set_result(step())
            except BaseException as error:  # whoever waits for the step is told
                future.set_exception(error)

        self._steps.put(run)
        if not self._idle.acquire(blocking=False) and len(self._threads) < self._threads_max:
            thread = threading.Thread(target=self._run, name=self._name, daemon=True)
            self._threads.append(thread)
            thread.start()
        return future

    def stop(self, limit_s: float) -> None:
        """Let everything that was submitted come to its end, if that does not take too long."""
        end_s = time.monotonic() + limit_s
        for _ in self._threads:
            self._steps.put(None)
        for thread in self._threads:
            thread.join(max(0.0, end_s - time.monotonic()))

    def _run(self) -> None:
        while (run := self._steps.get()) is not None:
            run()
            del run  # it has the step's data
            self._idle.release()


class Lane:
    """The steps of one transfer.  No two of them run at once, even if nobody waits any more."""

    def __init__(self, threads: Threads) -> None:
        self._threads = threads
        self._last: Future[Any] | None = None

    async def run(self, step: Callable[P, R], *arguments: P.args, **options: P.kwargs) -> R:
        """Run a step and wait for it; whoever is cancelled meanwhile leaves it to its end."""
        assert self._last is None or self._last.done(), "one step at a time"
        self._last = future = self._threads.submit(lambda: step(*arguments, **options))
        return await asyncio.shield(asyncio.wrap_future(future))

    def leave(self, last_step: Callable[[], None]) -> None:
        """Run a last step when the one under way has ended; nobody waits for it.

        Submitted at once, so that it is done too when the threads are stopped.  It waits in a
        thread of its own for a step that was submitted before, and so has one.
        """
        under_way = [] if self._last is None else [self._last]

        def run() -> None:
            wait(under_way)
            last_step()

        self._threads.submit(run)
