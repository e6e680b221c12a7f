"""Numbers that are counted while calls are served, and read only when somebody asks.

To count one call costs a fraction of a microsecond: a dict, a list and no lock, since every
call is answered by the one thread of the event loop.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from typing import Final, Protocol

BOUNDS_S: Final = (
    *(0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01),
    *(0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0),
)
"""Upper ends of the buckets of a histogram; the last bucket has none."""


class Named(Protocol):
    """A call of a protocol."""

    @property
    def protocol(self) -> str: ...

    @property
    def name(self) -> str: ...


class Histogram:
    """How long something took, in buckets."""

    __slots__ = ("counts", "sum_s")

    def __init__(self) -> None:
        self.counts = [0] * (len(BOUNDS_S) + 1)
        self.sum_s = 0.0

    def add(self, elapsed_s: float) -> None:
        self.counts[bisect_left(BOUNDS_S, elapsed_s)] += 1
        self.sum_s += elapsed_s

    @property
    def count(self) -> int:
        return sum(self.counts)


class CallFigures:
    """The calls that a server has answered, by method."""

    def __init__(self) -> None:
        self.by_method: dict[Named, Histogram] = {}
        self.errors: Counter[tuple[Named, str]] = Counter()  # by the class of the error, too

    def note(self, method: Named, elapsed_s: float) -> None:
        """A call was answered, with a result or an error."""
        histogram = self.by_method.get(method)
        if histogram is None:
            histogram = self.by_method[method] = Histogram()
        histogram.counts[bisect_left(BOUNDS_S, elapsed_s)] += 1
        histogram.sum_s += elapsed_s

    def note_error(self, method: Named, error: BaseException) -> None:
        """And this was the error."""
        self.errors[method, type(error).__name__] += 1

    def total(self) -> Histogram:
        """All calls together."""
        total = Histogram()
        for histogram in self.by_method.values():
            total.sum_s += histogram.sum_s
            for index, count in enumerate(histogram.counts):
                total.counts[index] += count
        return total
