"""A rate at which bytes may pass: for what is never urgent, and must not be in others' way."""

from __future__ import annotations

import threading
import time

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
