"""The page in `docs` that shows the figures of a run: every number in it is from the results."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.bars import Bar
from benchmarks.snapshots.sizes import FULL
from benchmarks.snapshots.tables import TITLES, part_table, show_bars

_TEXTS = {
    "create": "One row, whatever the size; NameNodes over all sizes take turns.",
    "memory": "Rows and bytes in the store and bytes in the NameNode for each snapshot; then what"
    " is more after 20 of the files were appended to and cut.",
    "listing": "A directory of as many files as the thesis has, after rounds of its mix of changes:"
    " added, deleted, moved out, moved back in, renamed.",
    "rollback": "The safety snapshot and the roll-back, as users call it. Beside it, one statement"
    " that copies as many rows within the same database; and the first listing before and after.",
    "diff": "A quarter each deleted, created, renamed and modified. Beside it, how long it takes to"
    " list the directory, which has to be done twice without a diff. A dash: not within the limit.",
    "overhead": "*Plain* has no snapshot; *covered* has 20, and newer files are worked with; in"
    " *each*, a snapshot is taken before each kind of call, so that every change keeps a version.",
    "delete": "Four callers make a mix of calls (70 % stat, 5 % listing, 25 % changes) while what"
    " only the snapshot needed is reclaimed.",
    "append": "Each transaction opens the log, appends a record, closes it; snapshots are taken all"
    " through it. *Always* has the last block copied at the first append after each. The paper has"
    " a drawing of this without numbers, in which copying takes longer with each snapshot.",
    "coverage": "What a changed row costs beyond reading its path, what a snapshot and moving the"
    " directory write. *joined* is section 3.2.6.1, *listed* 3.2.6.2, *carried* ours.",
    "peer": "The median of createSnapshot through Hadoop's client, on both.",
}
_MACHINE = "{cpu}, {cores} cores, {file_system}, fdatasync {fdatasync_p50_ms} ms"


def write_page(results: Mapping[str, Any], figures: Mapping[str, Path], folder: Path) -> str:
    """The page as Markdown, with links from the folder that it will be in."""
    bars = [Bar(**bar) for bar in results["bars"]]
    met = sum(bool(bar.passed) for bar in bars)
    parts = [
        "# Snapshots in figures\n",
        "Written by `make snapshot-figures` from the results of `make bench-snapshots`. Dashed"
        " lines and columns *thesis* are published figures (000: Motamari's thesis, 003: Agarwal,"
        " Borthakur and Stoica), from other machines: compare how they grow.\n",
        f"{_machines(results)}\n",
    ]
    if results["sizes"]["name"] != FULL.name:
        parts.append("**Small sizes, to see that it works: these figures mean nothing.**\n")
    parts.append(f"{met} of {len(bars)} bars are met.\n")
    parts.append(show_bars(bars) + "\n")
    for part, title in TITLES.items():
        tables = {
            kind: stores[part] for kind, stores in results["stores"].items() if part in stores
        }
        if not tables:
            continue
        parts.append(f"## {title}\n\n{_TEXTS[part]}\n")
        if part in figures:
            parts.append(f"![{title}]({figures[part].relative_to(folder).as_posix()})\n")
        for kind, rows in tables.items():
            parts.append(f"{kind}:\n\n{part_table(rows)}\n")
    return "\n".join(parts)


def _machines(results: Mapping[str, Any]) -> str:
    """What it ran on, in a list, since parts may be run at different times."""
    lines = []
    for machine in results["machines"].values():
        text = f"{machine['when'][:10]}, commit {machine['commit']}"
        if machine["uncommitted_changes"]:
            text += " with changes"
        line = f"- {text}: {_MACHINE.format(**machine)}."
        if line not in lines:
            lines.append(line)
    return "\n".join(lines)
