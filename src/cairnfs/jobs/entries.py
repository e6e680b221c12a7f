"""A file, directory or link with all that makes it what it is: what is backed up and mirrored."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
import pyarrow as pa

FILE, DIRECTORY, SYMLINK = "file", "directory", "symlink"
TOP = "."  # the path of the directory itself


class XAttr(msgspec.Struct, frozen=True):
    """An extended attribute, as it is seen."""

    name: str
    value: bytes


class Entry(msgspec.Struct, frozen=True):
    """What is at a path; of links only where they lead."""

    path: str  # relative to the directory
    kind: str
    length: int = 0
    owner: str = ""
    group: str = ""
    mode: int = 0
    modified_ms: int = 0
    accessed_ms: int = 0
    replication: int = 0
    block_size: int = 0
    target: str | None = None
    acl: list[str] = []
    xattrs: list[XAttr] = []
    policy: str | None = None  # the storage policy; None: none was chosen here or above
    pack: str | None = None  # where the content is, in a backup
    offset: int = 0
    sha256: str = ""

    @property
    def depth(self) -> int:
        """How far below the directory it is."""
        return 0 if self.path == TOP else self.path.count("/") + 1


SCHEMA = pa.schema(
    [
        ("path", pa.string()),
        ("kind", pa.string()),
        ("length", pa.int64()),
        ("owner", pa.string()),
        ("group", pa.string()),
        ("mode", pa.int32()),
        ("modified_ms", pa.int64()),
        ("accessed_ms", pa.int64()),
        ("replication", pa.int32()),
        ("block_size", pa.int64()),
        ("target", pa.string()),
        ("acl", pa.list_(pa.string())),
        ("xattrs", pa.list_(pa.struct([("name", pa.string()), ("value", pa.binary())]))),
        ("policy", pa.string()),
        ("pack", pa.string()),
        ("offset", pa.int64()),
        ("sha256", pa.string()),
    ]
)


def to_table(entries: Sequence[Entry]) -> pa.Table:
    return pa.Table.from_pylist([to_row(entry) for entry in entries], SCHEMA)


def to_row(entry: Entry) -> dict[str, Any]:
    row = {name: getattr(entry, name) for name in SCHEMA.names}
    row["xattrs"] = [{"name": each.name, "value": each.value} for each in entry.xattrs]
    return row


def from_row(row: dict[str, Any]) -> Entry:
    """From a row that may have more columns; what is null is left out."""
    given = {name: row[name] for name in SCHEMA.names if row.get(name) is not None}
    if "xattrs" in given:
        given["xattrs"] = [XAttr(each["name"], bytes(each["value"])) for each in given["xattrs"]]
    return Entry(**given)


def from_table(table: pa.Table) -> Iterable[Entry]:
    """One after the other; rows are made of a few at a time."""
    for batch in table.to_batches(max_chunksize=1000):
        yield from map(from_row, batch.to_pylist())
