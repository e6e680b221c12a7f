"""Time as a dependency: whoever needs it is given a clock."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Wall-clock time in milliseconds, as HDFS keeps its times."""

    def now_ms(self) -> int: ...


class SystemClock:
    """The machine's clock; before 1970 it is taken to be 1970, since HDFS has no earlier times."""

    def now_ms(self) -> int:
        return max(0, time.time_ns() // 1_000_000)


class ManualClock:
    """A clock that moves only when told to."""

    def __init__(self, now_ms: int = 1_700_000_000_000) -> None:
        self._now_ms = now_ms

    def now_ms(self) -> int:
        return self._now_ms

    def advance(self, milliseconds: int) -> None:
        self._now_ms += milliseconds
