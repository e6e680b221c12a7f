"""What changed between two snapshots, as it comes: lines of `hdfs snapshotDiff`, or categories."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from cairnfs.cli.output import BOLD, CYAN, GREEN, RED, YELLOW, Output
from cairnfs.client.records import ChangeKind

if TYPE_CHECKING:
    from cairnfs.client.filesystem import FileSystem
    from cairnfs.client.records import DiffEntry, SnapshotChange

PRESENT = "."
ORIGIN = ":origin"
_COLOURS = {
    **{"+": GREEN, "-": RED, "M": YELLOW, "R": CYAN},
    **{"CREATED": GREEN, "DELETED": RED, "MODIFIED": YELLOW, "MOVED_OUT": CYAN, "MOVED_IN": CYAN},
}


def diff(fs: FileSystem, given: argparse.Namespace) -> int:
    """Nothing is kept: however much has changed, it is printed page by page."""
    old, new = ("" if name == PRESENT else name for name in (given.old, given.new))
    out = Output()
    title = f"From {_describe(old)} to {_describe(new)} of {given.directory}:"
    found: Iterable[_Described]
    if given.changes:
        found = map(_describe_change, fs.snapshot_changes(given.directory, old, new))
    else:
        found = map(_describe_entry, fs.snapshot_diff(given.directory, old, new))
    is_empty = True
    for kind, line, fields in found:
        if given.json:
            out.print_json(fields)
            continue
        if is_empty:
            out.print(out.paint(title, BOLD))
        is_empty = False
        out.print(out.paint(line, _COLOURS[kind]))
    if is_empty and not given.json:
        out.print(f"{title} nothing has changed")
    out.flush()
    return 0


_Described = tuple[str, str, dict[str, Any]]
"""What has happened, as a line and as JSON."""


def _describe_entry(entry: DiffEntry) -> _Described:
    fields = {"kind": entry.kind, "path": entry.path, "target": entry.target}
    return entry.kind, _as_line(entry), fields


def _describe_change(change: SnapshotChange) -> _Described:
    kind = change.kind.value
    arrow = "<-" if change.kind is ChangeKind.MOVED_IN else "->"
    moved = f" {arrow} {_below(change.other)}" if change.other is not None else ""
    fields = {
        "kind": kind,
        "path": change.path,
        "other": change.other,
        "txid": change.txid,
        "id": change.id,
        "type": change.type.value,
        "content": change.is_rewritten,
    }
    return kind, f"{change.txid}\t{kind:9}\t{_below(change.path)}{moved}", fields


def _describe(name: str) -> str:
    if name == ORIGIN:
        return "the origin"
    return f"snapshot {name}" if name else "the present"


def _as_line(entry: DiffEntry) -> str:
    moved = f" -> {_below(entry.target)}" if entry.target is not None else ""
    return f"{entry.kind}\t{_below(entry.path)}{moved}"


def _below(path: str) -> str:
    return path if path == PRESENT else f"./{path}"
