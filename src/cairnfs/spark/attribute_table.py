"""The table `attributes`: what extended attributes everything has, its own and inherited ones."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pyarrow as pa

from cairnfs.namesystem.attribute_rules import AttributeKind
from cairnfs.namesystem.inheritance import name_of as attribute_of
from cairnfs.namesystem.inodes import Inode, XAttr
from cairnfs.namesystem.tree_attributes import Inherited, descend
from cairnfs.namesystem.tree_parts import Detail
from cairnfs.spark.inode_table import KINDS
from cairnfs.spark.tables import Column, of_row
from cairnfs.spark.view_tables import Directory, Storages, view_table
from cairnfs.xattr_text import XAttrNamespace, format_name

_REACHES = {
    AttributeKind.LOCAL: "local",
    AttributeKind.FOLLOWS_PATH: "follow-path",
    AttributeKind.STAYS_WITH_DATA: "stay-with-data",
}
_HIDDEN = (XAttrNamespace.SYSTEM, XAttrNamespace.RAW)  # as from callers of the API


class AttributeRow(NamedTuple):
    """One attribute that one inode has."""

    path: str
    inode: Inode
    name: str
    value: bytes
    reach: AttributeKind
    source: str  # the path on which it was set
    txid: int | None


def _attributes(directory: Directory, storages: Storages) -> list[AttributeRow]:
    above = directory.listed.inherited
    if not above and all(inode.xattrs is None for inode in directory.inodes):
        return []
    return [
        row
        for path, inode in zip(directory.paths, directory.listed.stamped, strict=True)
        for row in _attributes_of(path, inode, above)
    ]


def _attributes_of(path: str, inode: Inode, above: tuple[Inherited, ...]) -> Iterator[AttributeRow]:
    """Those of one inode, as the API shows them: see `inheritance.effective`."""
    decided = {each.attribute: each for each in descend(above, inode, path) if each.txid}
    kinds = {each.attribute: each.kind for each in above}
    for xattr in inode.xattrs or ():
        if xattr.namespace not in _HIDDEN and attribute_of(xattr) not in decided:
            kind = kinds.get(attribute_of(xattr), AttributeKind.LOCAL)
            yield from _own(path, inode, xattr, kind)
    for each in decided.values():
        if each.value is not None and each.namespace not in _HIDDEN:
            name = format_name(each.namespace, each.name)
            yield AttributeRow(path, inode, name, each.value, each.kind, each.source, each.txid)


def _own(path: str, inode: Inode, xattr: XAttr, kind: AttributeKind) -> Iterator[AttributeRow]:
    if xattr.value is not None:
        name = format_name(xattr.namespace, xattr.name)
        yield AttributeRow(path, inode, name, xattr.value, kind, path, xattr.set or None)


def _text(row: AttributeRow) -> str | None:
    try:
        return row.value.decode()
    except UnicodeDecodeError:
        return None


_COLUMNS: dict[str, Column[list[AttributeRow]]] = {
    "path": of_row(pa.string(), lambda row: row.path),
    "id": of_row(pa.int64(), lambda row: row.inode.id),
    "kind": of_row(pa.string(), lambda row: KINDS[row.inode.kind]),
    "name": of_row(pa.string(), lambda row: row.name),
    "value": of_row(pa.binary(), lambda row: row.value),
    "text": of_row(pa.string(), _text),
    "reach": of_row(pa.string(), lambda row: _REACHES[row.reach]),
    "is_own": of_row(pa.bool_(), lambda row: row.source == row.path),
    "source": of_row(pa.string(), lambda row: row.source or None),
    "txid": of_row(pa.int64(), lambda row: row.txid),
}

ATTRIBUTES = view_table("attributes", _COLUMNS, _attributes, Detail.ATTRIBUTES)
