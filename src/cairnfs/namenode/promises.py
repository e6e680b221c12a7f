"""Room on storages that was promised: to writers, and to copies that were ordered.

A block that is being written may grow to its full size, and a heartbeat does not know of
it yet.  What nobody has claimed after one to two periods is forgotten, as in HDFS.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

PERIOD_S = 600.0


@dataclass(slots=True, eq=False)
class _Promised:
    blocks: int = 0
    bytes: int = 0


class Promises:
    """How many bytes each storage was promised to take."""

    def __init__(self, now_s: Callable[[], float]) -> None:
        self._now_s = now_s
        self._begun_s = now_s()
        self._recent: dict[int, _Promised] = {}  # by storage
        self._older: dict[int, _Promised] = {}

    def add(self, storage: int, size_bytes: int) -> None:
        promised = self._recent.setdefault(storage, _Promised())
        promised.blocks += 1
        promised.bytes += size_bytes

    def keep(self, storage: int) -> None:
        """One block has arrived; of which size it might have been is not known."""
        for promises in (self._older, self._recent):
            promised = promises.get(storage)
            if promised is not None and promised.blocks:
                promised.bytes -= promised.bytes // promised.blocks
                promised.blocks -= 1
                return

    def withdraw(self, storage: int, size_bytes: int) -> None:
        """A promise that nobody was told of."""
        promised = self._recent.get(storage)
        if promised is not None and promised.blocks:
            promised.blocks -= 1
            promised.bytes = max(0, promised.bytes - size_bytes)

    def bytes_on(self, storage: int) -> int:
        found = (promises.get(storage) for promises in (self._recent, self._older))
        return sum(promised.bytes for promised in found if promised is not None)

    def expire(self) -> None:
        """Forget what is older than two periods; to be called now and then."""
        now_s = self._now_s()
        if now_s - self._begun_s >= PERIOD_S:
            self._older, self._recent = self._recent, {}
            self._begun_s = now_s
