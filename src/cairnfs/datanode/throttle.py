"""How much of a DataNode's time and bandwidth goes into moving replicas from one place to another.

Moves are never urgent: readers and writers come first.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from cairnfs.errors import IOException

PIECE_S = 0.1  # who was idle may be ahead of the rate by as much


class Throttle:
    """Lets bytes pass at a rate, which may change at any time; all threads together."""

    def __init__(self, bytes_per_s: int) -> None:
        self.bytes_per_s = bytes_per_s
        self._lock = threading.Lock()
        self._free_s = 0.0  # when all that was let pass has passed, at this rate

    def wait(self, count: int) -> None:
        """Wait until so many bytes more may pass."""
        with self._lock:
            now_s = time.monotonic()
            begin_s = max(self._free_s, now_s - PIECE_S)
            self._free_s = begin_s + count / max(self.bytes_per_s, 1)
        if begin_s > now_s:
            time.sleep(begin_s - now_s)


class MoveLimits:
    """What moves may take of a DataNode: so much bandwidth, and so many of them at a time."""

    def __init__(self, bytes_per_s: int, moves_max: int) -> None:
        self.throttle = Throttle(bytes_per_s)
        self.moves_max = moves_max
        self._lock = threading.Lock()
        self._moves = 0

    @property
    def moves(self) -> int:
        """How many are under way."""
        return self._moves

    @contextmanager
    def move(self, what: str) -> Iterator[None]:
        """One move; IOException if there are as many as may be."""
        with self._lock:
            if self._moves >= self.moves_max:
                raise IOException(
                    f"Not able to {what} because threads quota={self.moves_max} is exceeded."
                )
            self._moves += 1
        try:
            yield
        finally:
            with self._lock:
                self._moves -= 1
