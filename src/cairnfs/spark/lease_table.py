"""The table `leases`: files that are being written, now, and by whom."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pyarrow as pa

from cairnfs.client.filesystem import FileSystem
from cairnfs.namesystem.open_files import LeaseInfo
from cairnfs.spark.tables import TIME, Column, Request, Table, of_row
from cairnfs.wire.proto import cairn_pb2

_decode_page = msgspec.msgpack.Decoder(list[LeaseInfo]).decode


def list_leases(fs: FileSystem) -> Iterator[list[LeaseInfo]]:
    """All that there are, page by page; for the superuser."""
    request = cairn_pb2.ListLeasesRequestProto()
    while True:
        response = fs._call_cairn("listLeases", request, cairn_pb2.ListLeasesResponseProto)
        yield _decode_page(response.page)
        if not response.after:
            return
        request.after = response.after


def _plan(fs: FileSystem, request: Request) -> list[Any]:
    return [None]


def _read(fs: FileSystem, request: Request, work: Any) -> Iterator[list[list[LeaseInfo]]]:
    for page in list_leases(fs):
        yield [[lease for lease in page if request.covers(lease.path)]]


_COLUMNS: dict[str, Column[list[LeaseInfo]]] = {
    "path": of_row(pa.string(), lambda row: row.path),
    "id": of_row(pa.int64(), lambda row: row.id),
    "holder": of_row(pa.string(), lambda row: row.lease.holder),
    "client": of_row(pa.string(), lambda row: row.lease.client_machine),
    "user": of_row(pa.string(), lambda row: row.lease.user),
    "since": of_row(TIME, lambda row: 1000 * row.lease.granted_ms),
    "renewed": of_row(TIME, lambda row: 1000 * row.renewed_ms),
    "is_recovering": of_row(pa.bool_(), lambda row: row.lease.is_being_recovered),
    "length": of_row(pa.int64(), lambda row: row.length_bytes),
    "blocks": of_row(pa.int32(), lambda row: row.block_count),
}

LEASES = Table(
    "leases",
    _COLUMNS,
    _plan,
    _read,
)
