"""A few threads that work through a queue, and do not keep a process from ending."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable
from contextlib import suppress

from cairnfs.errors import HdfsError

log = logging.getLogger(__name__)


class Workers:
    """Work that is submitted is done soon, in order, by at most `threads_max` threads."""

    def __init__(self, name: str, threads_max: int) -> None:
        self._name = name
        self._threads_max = threads_max
        self._queue: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []

    def submit(self, work: Callable[[], None]) -> None:
        """Called by one thread at a time."""
        self._queue.put(work)
        if len(self._threads) < self._threads_max:
            thread = threading.Thread(target=self._run, name=self._name, daemon=True)
            self._threads.append(thread)
            thread.start()

    def stop(self) -> None:
        """Begin nothing more; what is under way ends with its connections."""
        with suppress(queue.Empty):
            while True:
                self._queue.get_nowait()
        for _ in self._threads:
            self._queue.put(None)

    def _run(self) -> None:
        while (work := self._queue.get()) is not None:
            try:
                work()
            except (HdfsError, OSError) as error:
                log.warning("%s: %s", self._name, error)
            except Exception:
                log.exception("%s failed", self._name)
