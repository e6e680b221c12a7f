"""What changed between two snapshots: the lines of `hdfs snapshotDiff`, as they come."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from cairnfs.cli.output import BOLD, CYAN, GREEN, RED, YELLOW, Output

if TYPE_CHECKING:
    from cairnfs.client.filesystem import FileSystem
    from cairnfs.client.records import DiffEntry

PRESENT = "."
_COLOURS = {"+": GREEN, "-": RED, "M": YELLOW, "R": CYAN}


def diff(fs: FileSystem, given: argparse.Namespace) -> int:
    """Nothing is kept: however much has changed, it is printed page by page."""
    old, new = ("" if name == PRESENT else name for name in (given.old, given.new))
    entries = fs.snapshot_diff(given.directory, old, new)
    out = Output()
    if given.json:
        for entry in entries:
            out.print_json({"kind": entry.kind, "path": entry.path, "target": entry.target})
    else:
        title = f"From {_describe(old)} to {_describe(new)} of {given.directory}:"
        is_empty = True
        for entry in entries:
            if is_empty:
                out.print(out.paint(title, BOLD))
            is_empty = False
            out.print(out.paint(_as_line(entry), _COLOURS[entry.kind]))
        if is_empty:
            out.print(f"{title} nothing has changed")
    out.flush()
    return 0


def _describe(name: str) -> str:
    return f"snapshot {name}" if name else "the present"


def _as_line(entry: DiffEntry) -> str:
    moved = f" -> {_below(entry.target)}" if entry.target is not None else ""
    return f"{entry.kind}\t{_below(entry.path)}{moved}"


def _below(path: str) -> str:
    return path if path == PRESENT else f"./{path}"
