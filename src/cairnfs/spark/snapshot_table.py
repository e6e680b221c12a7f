"""The table `snapshots`: all snapshots of what is at and below a directory, as of now."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa

from cairnfs.client.filesystem import FileSystem
from cairnfs.errors import SnapshotException
from cairnfs.namesystem.snapshot_list import SnapshotRow
from cairnfs.spark.tables import TIME, Column, Request, Table, of_row
from cairnfs.wire.proto import cairn_pb2

_EXCLUSIVE = "exclusive"

_decode_page = msgspec.msgpack.Decoder(list[SnapshotRow]).decode


class _Row(NamedTuple):
    snapshot: SnapshotRow
    exclusive_bytes: int | None


def list_all_snapshots(fs: FileSystem) -> Iterator[list[SnapshotRow]]:
    """All that there are, page by page; those of the user, unless that is the superuser."""
    request = cairn_pb2.ListAllSnapshotsRequestProto()
    while True:
        response = fs._call_cairn(
            "listAllSnapshots", request, cairn_pb2.ListAllSnapshotsResponseProto
        )
        yield _decode_page(response.page)
        if not response.cursor:
            return
        request.cursor = response.cursor


def _plan(fs: FileSystem, request: Request) -> list[Any]:
    return [None]  # one part: a list of snapshots is short


def _read(fs: FileSystem, request: Request, work: Any) -> Iterator[list[list[_Row]]]:
    exclusive: dict[str, int] = {}
    path = None
    for page in list_all_snapshots(fs):
        rows = []
        for snapshot in page:
            if not request.covers(snapshot.path):
                continue
            if _EXCLUSIVE in request.columns and snapshot.path != path:
                path = snapshot.path
                exclusive = _exclusive(fs, path)
            rows.append(_Row(snapshot, exclusive.get(_name(snapshot))))
        yield [rows]


def _exclusive(fs: FileSystem, path: str) -> dict[str, int]:
    """What only single snapshots of a path have: looked for only where it is asked for."""
    try:
        return {space.name: space.exclusive_bytes for space in fs.snapshot_space(path)}
    except (SnapshotException, FileNotFoundError):  # gone in between
        return {}


def _name(snapshot: SnapshotRow) -> str:
    return snapshot.name.decode("utf-8", "replace")


_COLUMNS: dict[str, Column[list[_Row]]] = {
    "path": of_row(pa.string(), lambda row: row.snapshot.path),
    "name": of_row(pa.string(), lambda row: _name(row.snapshot)),
    "id": of_row(pa.int64(), lambda row: row.snapshot.inode_id),
    "txid": of_row(pa.int64(), lambda row: row.snapshot.txid),
    "created": of_row(TIME, lambda row: 1000 * row.snapshot.created_ms),
    "files": of_row(pa.int64(), lambda row: row.snapshot.files),
    "directories": of_row(pa.int64(), lambda row: row.snapshot.directories),
    "length": of_row(pa.int64(), lambda row: row.snapshot.length_bytes),
    "referenced": of_row(pa.int64(), lambda row: row.snapshot.referenced_bytes),
    _EXCLUSIVE: of_row(pa.int64(), lambda row: row.exclusive_bytes),
}

SNAPSHOTS = Table(
    "snapshots",
    _COLUMNS,
    _plan,
    _read,
)
"""`referenced` and `exclusive` are with all replicas; the latter is what a deletion would free."""
