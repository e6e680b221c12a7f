"""The table `changes`: what happened to a directory between two moments, in an order to apply.

A moment is a snapshot's name, `txid:N`, the number of a transaction of which there is a snapshot
or a view, `view:N`, an open view, or nothing, which means now.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import pyarrow as pa

from cairnfs.client.filesystem import FileSystem
from cairnfs.errors import (
    FileNotFoundException,
    IllegalArgumentException,
    SnapshotException,
)
from cairnfs.namesystem.snapshot_changes import Change
from cairnfs.spark.inode_table import KINDS
from cairnfs.spark.tables import Column, Request, Table, of_row
from cairnfs.spark.views import HOLD_S, View, find_view, open_view

FROM, TO = "from", "to"


class ChangesWork(NamedTuple):
    """Two views that are compared."""

    old: int
    new: int


class ChangeRow(NamedTuple):
    """One change, and its place in the order."""

    position: int
    top: str
    change: Change


def open_moment(
    fs: FileSystem, path: str, moment: str, *, hold_s: float = HOLD_S, label: str = ""
) -> View:
    """A directory as it was at a moment, held."""
    kind, colon, number = moment.partition(":")
    if colon:
        if kind not in ("txid", "view") or not number.isdecimal():
            raise IllegalArgumentException(
                f"{moment!r} is no moment: name a snapshot, or write txid:N or view:N"
            )
        if kind == "view":
            return find_view(fs, int(number))
        return open_view(fs, path, txid=int(number), hold_s=hold_s, label=label)
    if not moment:
        return open_view(fs, path, hold_s=hold_s, label=label)
    for place in _places_in_snapshot(path, moment):
        try:
            return open_view(fs, place, hold_s=hold_s, label=label)
        except (FileNotFoundException, SnapshotException):
            continue
    raise SnapshotException(f"Cannot find the snapshot of directory {path} with name {moment}")


def _places_in_snapshot(path: str, name: str) -> Iterator[str]:
    """Where a directory may be found in a snapshot: of itself, or of one above."""
    above, below = path.rstrip("/"), ""
    while True:
        yield f"{above}/.snapshot/{name}{below}"
        if not above:
            return
        above, slash, last = above.rpartition("/")
        below = f"{slash}{last}{below}"


def _plan(fs: FileSystem, request: Request) -> list[ChangesWork]:
    if not request.options.get(FROM):
        raise IllegalArgumentException(
            f"the table changes is not told since when: option {FROM!r} names a snapshot of"
            f" {request.top}, or is txid:N or view:N; option {TO!r} as well, or it means now"
        )
    old = open_moment(fs, request.top, request.options[FROM])
    new = open_moment(fs, request.top, request.options.get(TO, ""))
    return [ChangesWork(old.number, new.number)]


def _read(fs: FileSystem, request: Request, work: Any) -> Iterator[list[list[ChangeRow]]]:
    old, new = find_view(fs, work.old), find_view(fs, work.new)
    position = 0
    for page in old.changes_to(new):
        yield [[ChangeRow(position + n, request.top, change) for n, change in enumerate(page)]]
        position += len(page)


def _path(top: str, names: tuple[bytes, ...]) -> str:
    below = "".join(f"/{name.decode('utf-8', 'replace')}" for name in names)
    return top.rstrip("/") + below or "/"


def _other_path(row: ChangeRow) -> str | None:
    return None if row.change.other is None else _path(row.top, row.change.other)


_COLUMNS: dict[str, Column[list[ChangeRow]]] = {
    "position": of_row(pa.int64(), lambda row: row.position),
    "change": of_row(pa.string(), lambda row: row.change.kind.name.lower().replace("_", " ")),
    "path": of_row(pa.string(), lambda row: _path(row.top, row.change.path)),
    "other_path": of_row(pa.string(), _other_path),
    "kind": of_row(pa.string(), lambda row: KINDS[row.change.inode_kind]),
    "id": of_row(pa.int64(), lambda row: row.change.inode_id),
    "txid": of_row(pa.int64(), lambda row: row.change.txid),
    "is_rewritten": of_row(pa.bool_(), lambda row: row.change.is_rewritten),
}

CHANGES = Table(
    "changes",
    _COLUMNS,
    _plan,
    _read,
    is_tree=False,
)
"""Of a move within the directory, `other_path` is its other end."""
