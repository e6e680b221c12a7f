"""Figures as tables, for a terminal and for the page in `docs` (pure)."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.bars import Bar
from benchmarks.snapshots.bench import Row
from benchmarks.tables import table

TITLES = {
    "create": "Taking a snapshot, by the number of files (000 section 4.1.2, 003 figure 8)",
    "memory": "What a snapshot takes (003 figure 9)",
    "listing": "Listing a directory at a snapshot (000 figure 4.1)",
    "rollback": "Roll-back (000 figure 4.6)",
    "diff": "Differences between two snapshots",
    "overhead": "Ordinary calls where there are snapshots",
    "delete": "Other callers while a snapshot is deleted",
    "append": "A log that is appended to under snapshots (003 figure 10)",
    "coverage": "Three ways of knowing what snapshots need (000 sections 3.2.6.1 and 3.2.6.2)",
    "peer": "Taking a snapshot beside Apache HDFS, through its own client",
}
# A unit at the end of a name, as people write it.
_UNITS = {
    "_per_s": "per s",
    "_mib": "MiB",
    "_ms": "ms",
    "_us": "us",
    "_s": "s",
}


def show_part(part: str, kind: str, rows: Sequence[Row]) -> str:
    return f"## {TITLES[part]}, {kind}\n\n{part_table(rows)}"


def part_table(rows: Sequence[Row]) -> str:
    head = list(rows[0])
    return table([name_of(name) for name in head], [[row[name] for name in head] for row in rows])


def name_of(column: str) -> str:
    """A column's name in words: `busy_p99_ms` is "busy p99, ms"."""
    for ending, unit in _UNITS.items():
        if column.endswith(ending):
            return f"{column.removesuffix(ending).replace('_', ' ')}, {unit}"
    return column.replace("_", " ")


def show_bars(bars: Sequence[Bar]) -> str:
    rows = [
        (
            bar.name,
            f"{bar.value:g}",
            bar.wanted,
            "met" if bar.passed else "NOT MET",
            bar.from_figures,
        )
        for bar in bars
    ]
    return "## Bars\n\n" + table(("bar", "ratio", "wanted", "", "figures"), rows)
