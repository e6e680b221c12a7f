"""How much of a DataNode's time and bandwidth goes into moving replicas from one place to another.

Moves are never urgent: readers and writers come first.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from cairnfs.errors import IOException
from cairnfs.network.throttle import Throttle


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
