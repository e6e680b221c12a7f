"""The bars of `make bench-snapshots`, from the figures of a run (pure)."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from typing import Any

from benchmarks.bars import SAME_TIME, Bar

LISTING_MAX = 1.5
OVERHEAD_MIN = 1 / 1.1  # at most 10 % more time for the same calls
BULK_COPY_MAX = 2.0
P99_MAX = 2.0

Rows = list[dict[str, Any]]


def judge(results: dict[str, Any]) -> list[Bar]:
    """Every bar whose part was run, for each store."""
    bars = []
    for store, parts in results["stores"].items():
        for part, rows in parts.items():
            bars += [
                bar._replace(name=f"{store}: {bar.name}") for bar in JUDGES.get(part, _no)(rows)
            ]
    return bars


def _create(rows: Rows) -> Iterator[Bar]:
    small, large = rows[0], rows[-1]
    for what in ("snapshot", "clone"):
        value = large[f"{what}_ms"] / small[f"{what}_ms"]
        name = f"{what} of {large['files']:,} files over one of {small['files']:,}"
        figures = f"{large[f'{what}_ms']:.2f} / {small[f'{what}_ms']:.2f} ms"
        yield _at_most(name, value, SAME_TIME, figures)


def _listing(rows: Rows) -> Iterator[Bar]:
    changed = [row for row in rows if row["changes"]]
    ratios = sorted(row["ratio"] for row in changed)
    yield _at_most(
        "listing at a snapshot over listing the present, the worst round",
        ratios[-1],
        LISTING_MAX,
        f"{ratios[0]:.2f} to {ratios[-1]:.2f}, median {statistics.median(ratios):.2f}",
    )
    some = max(1, len(changed) // 3)
    early, late = (
        statistics.median(row["snapshot_s"] for row in part)
        for part in (changed[:some], changed[-some:])
    )
    yield _at_most(
        "listing at a snapshot, the last rounds over the first ones (flat)",
        late / early,
        SAME_TIME,
        f"{late:.2f} / {early:.2f} s",
    )


def _rollback(rows: Rows) -> Iterator[Bar]:
    worst = max(rows, key=lambda row: row["ratio"])
    yield _at_most(
        "roll-back over one bulk copy of as many rows, the worst row",
        worst["ratio"],
        BULK_COPY_MAX,
        f"{worst['seconds']:.3f} / {worst['bulk_copy_s']:.1f} s, {worst['rows']:,} rows",
    )
    some = max(1, len(rows) // 3)
    early, late = (
        {name: statistics.median(row[name] for row in part) for name in ("seconds", "changes")}
        for part in (rows[:some], rows[-some:])
    )
    yield _at_most(
        "roll-back, growth of time over growth of changes, the last rows over the first ones",
        (late["seconds"] / early["seconds"]) / (late["changes"] / early["changes"]),
        SAME_TIME,
        f"{early['seconds'] * 1000:.1f} to {late['seconds'] * 1000:.1f} ms",
    )


def _overhead(rows: Rows) -> Iterator[Bar]:
    for key, text in (("covered", "with snapshots"), ("each", "first change after a snapshot")):
        worst = min(rows, key=lambda row: row[f"{key}_ratio"])
        yield _bar(
            f"calls {text} over those without, the worst ({worst['call']})",
            worst[f"{key}_ratio"],
            f">= {OVERHEAD_MIN:.2f}",
            worst[f"{key}_ratio"] >= OVERHEAD_MIN,
            f"{worst[f'{key}_per_s']:,.0f} / {worst['plain_per_s']:,.0f} per s",
        )


def _delete(rows: Rows) -> Iterator[Bar]:
    (row,) = rows
    figures = f"{row['busy_p99_ms']:.2f} / {row['quiet_p99_ms']:.2f} ms"
    yield _at_most("p99 of others while a snapshot is deleted", row["ratio"], P99_MAX, figures)


def _append(rows: Rows) -> Iterator[Bar]:
    last = rows[-1]
    yield _bar(
        f"a log under {last['snapshots']} snapshots, selective over always copied",
        last["ratio"],
        "< 1",
        last["ratio"] < 1,
        f"{last['selective_s']:.1f} / {last['always_s']:.1f} s",
    )


def _memory(rows: Rows) -> Iterator[Bar]:
    small, large = rows[0], rows[-1]
    value = large["bytes_per_snapshot"] / small["bytes_per_snapshot"]
    name = f"bytes of a snapshot of {large['files']:,} files over one of {small['files']:,}"
    figures = f"{large['bytes_per_snapshot']:.0f} / {small['bytes_per_snapshot']:.0f}"
    yield _at_most(name, value, SAME_TIME, figures)


def _no(rows: Rows) -> Iterator[Bar]:
    yield from ()


JUDGES: dict[str, Callable[[Rows], Iterator[Bar]]] = {
    "create": _create,
    "memory": _memory,
    "listing": _listing,
    "rollback": _rollback,
    "overhead": _overhead,
    "delete": _delete,
    "append": _append,
}


def _at_most(name: str, value: float, limit: float, figures: str) -> Bar:
    return _bar(name, value, f"<= {limit:g}", value <= limit, figures)


def _bar(name: str, value: float, wanted: str, passed: bool, figures: str) -> Bar:
    return Bar(name, round(value, 3), "x", wanted, passed, figures)
