"""The table `inodes`: a row for each file, directory and link, as Arrow batches."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import pyarrow as pa

from cairnfs.namesystem.inodes import Inode, Kind
from cairnfs.namesystem.tree_scan import Found, Listed
from cairnfs.store.base import Count

_KINDS = {Kind.DIRECTORY: "directory", Kind.FILE: "file", Kind.SYMLINK: "symlink"}
_TIME = pa.timestamp("us", tz="UTC")


class Group(NamedTuple):
    """What is in one directory."""

    parent: str | None  # its path; None: the root has none
    paths: list[str]
    found: list[Found]


Column = Callable[[Group], Iterable[Any]]


def _of_inode(take: Callable[[Inode], Any]) -> Column:
    return lambda group: [take(found.inode) for found in group.found]


def _of_file(take: Callable[[Inode], Any]) -> Column:
    return lambda group: [
        take(found.inode) if found.inode.kind is Kind.FILE else None for found in group.found
    ]


def _below(count: Count) -> Column:
    """What a directory has below it."""
    return lambda group: [
        None if found.totals is None else found.totals.counts[count] for found in group.found
    ]


def _modified_us(found: Found) -> int:
    totals = found.totals
    is_later = totals is not None and totals.touched
    return 1000 * (totals.mtime_ms if totals is not None and is_later else found.inode.mtime_ms)


def _name(inode: Inode) -> str:
    return inode.name.decode("utf-8", "replace")


COLUMNS: dict[str, tuple[pa.DataType, Column]] = {
    "path": (pa.string(), lambda group: group.paths),
    "parent": (pa.string(), lambda group: [group.parent] * len(group.found)),
    "name": (pa.string(), _of_inode(_name)),
    "id": (pa.int64(), _of_inode(lambda inode: inode.id)),
    "kind": (pa.string(), _of_inode(lambda inode: _KINDS[inode.kind])),
    "length": (pa.int64(), _of_file(lambda inode: inode.visible_bytes)),
    "owner": (pa.string(), _of_inode(lambda inode: inode.owner)),
    "group": (pa.string(), _of_inode(lambda inode: inode.group)),
    "mode": (pa.int32(), _of_inode(lambda inode: inode.mode)),
    "modified": (_TIME, lambda group: [_modified_us(found) for found in group.found]),
    "accessed": (_TIME, _of_file(lambda inode: 1000 * inode.atime_ms)),
    "replication": (pa.int32(), _of_file(lambda inode: inode.replication)),
    "block_size": (pa.int64(), _of_file(lambda inode: inode.block_size_bytes)),
    "blocks": (pa.int32(), _of_file(lambda inode: inode.block_count)),
    "is_open": (pa.bool_(), _of_file(lambda inode: inode.under_construction)),
    "target": (pa.string(), _of_inode(lambda inode: inode.target)),
    "has_acl": (pa.bool_(), _of_inode(lambda inode: bool(inode.acl))),
    "is_snapshottable": (pa.bool_(), _of_inode(lambda inode: inode.is_snapshottable)),
    "files_below": (pa.int64(), _below(Count.FILES)),
    "directories_below": (pa.int64(), _below(Count.DIRECTORIES)),
    "length_below": (pa.int64(), _below(Count.LENGTH_BYTES)),
    "space_below": (pa.int64(), _below(Count.SPACE_BYTES)),
}
"""Each column, its type and how it is made; of directories or files alone where it is theirs."""


def arrow_schema(names: Iterable[str]) -> pa.Schema:
    return pa.schema([(name, COLUMNS[name][0]) for name in names])


def to_batch(listed: Iterable[Listed], top: str, schema: pa.Schema) -> pa.RecordBatch:
    """A page of a view of `top`, with the columns of a schema."""
    groups = [_group(each, top) for each in listed]
    arrays = []
    for field in schema:
        make = COLUMNS[field.name][1]
        values = [value for group in groups for value in make(group)]
        arrays.append(pa.array(values, type=field.type))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _group(listed: Listed, top: str) -> Group:
    if listed.path is None:
        parent = None if top == "/" else top.rpartition("/")[0] or "/"
        return Group(parent, [top], listed.found)
    base = top.rstrip("/")
    directory = base + "".join(f"/{name.decode('utf-8', 'replace')}" for name in listed.path)
    paths = [f"{directory}/{_name(found.inode)}" for found in listed.found]
    return Group(directory or "/", paths, listed.found)
