"""Creates beside the raw grouped insert on PostgreSQL, in turns.

A machine may be twice as fast in one minute as in the next.  So short stretches of inserts and of
creates, in 64 directories and in one, follow each other, and what counts is the ratio of two that
are neighbours, in the median of all turns.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import Any

from benchmarks.callers import Callers, Request
from benchmarks.core import SPREAD, Progress, create_of, open_warm
from benchmarks.namespaces import POSTGRES, Namespaces
from benchmarks.raw import open_inserts
from cairnfs.config import Control

CALLERS = 32


async def measure_beside_raw(
    namespaces: Namespaces, *, turns: int, seconds: float, progress: Progress
) -> dict[str, Any]:
    """The rates of each turn, and the medians of their ratios."""
    rates: dict[str, list[float]] = {}
    namenode = await open_warm(await namespaces.fresh(POSTGRES), Control.OPTIMISTIC, CALLERS)
    try:
        callers = Callers.of(namenode, CALLERS)
        async with (
            open_inserts(namespaces, SPREAD) as inserts_in_many,
            open_inserts(namespaces, 1) as inserts_in_one,
        ):
            for turn in range(turns):
                progress(f"creates beside inserts: turn {turn + 1} of {turns}")
                for inserts, directories, name in (
                    (inserts_in_many, SPREAD, "many"),
                    (inserts_in_one, 1, "one"),
                ):
                    inserted = await inserts.measure(seconds)
                    requests = creates_in(f"/beside{turn}", directories)
                    created = await callers.measure(requests, seconds)
                    rates.setdefault(f"insert_{name}", []).append(inserted)
                    rates.setdefault(f"create_{name}", []).append(created.per_s)
    finally:
        await namenode.stop()
    return {
        "rates": {name: [round(rate) for rate in each] for name, each in rates.items()},
        "many_over_insert": _ratio(rates["create_many"], rates["insert_many"]),
        "one_over_insert": _ratio(rates["create_one"], rates["insert_one"]),
        "one_over_many": _ratio(rates["create_one"], rates["create_many"]),
    }


def creates_in(top: str, directories: int) -> Callable[[int], Request]:
    return lambda i: create_of(f"{top}/s{directories}/d{i % directories}/a{i:06d}")


def _ratio(over: list[float], under: list[float]) -> float:
    return statistics.median(a / b for a, b in zip(over, under, strict=True))
