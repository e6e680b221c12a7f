"""The children of a directory that has an origin, a page at a time and in order of names.

Its own rows, its whiteouts, and the same of each of its origins (`layers`) are read side by side.
What goes before hides what comes after it under the same name.

Much may be hidden, of what was deleted since.  `children_of` looks through all of that until its
page is full; `some_children_of` ends with what it has, for a transaction that is to be short.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from itertools import product
from operator import itemgetter
from typing import Any, NamedTuple

from cairnfs.namesystem.inodes import Inode, Origin
from cairnfs.namesystem.layers import virtual
from cairnfs.store.schema import Key, Table
from cairnfs.transaction.rows import Rows, ask_all

NAMES_MAX = 1000  # looked at for `some_children_of`, hidden or not

_PAGE = 2000  # rows read at a time: more than a listing asks for


class SomeChildren(NamedTuple):
    """Some of a directory, and behind which name it goes on; empty: nowhere."""

    children: list[Inode]
    after: bytes


def children_of(rows: Rows, directory: Inode, after: bytes, limit: int) -> list[Inode]:
    """A page of a directory's children behind a name, in order of names."""
    if directory.origin is None:
        return [child for _, child in rows.scan(Table.INODES, directory.children_id, after, limit)]
    page: list[Inode] = []
    for _, child in _by_names(rows, directory, after, limit):
        if child is not None:
            page.append(child)
            if len(page) == limit:
                break
    return page


def some_children_of(rows: Rows, directory: Inode, after: bytes, limit: int) -> SomeChildren:
    """A page that may have fewer than there are, or none: it looks at NAMES_MAX names at most."""
    if directory.origin is None:
        page = children_of(rows, directory, after, limit)
        return SomeChildren(page, page[-1].name if len(page) == limit else b"")
    page = []
    for looked_at, (name, child) in enumerate(_by_names(rows, directory, after, limit), 1):
        if child is not None:
            page.append(child)
        if len(page) == limit or looked_at == NAMES_MAX:
            return SomeChildren(page, name)
    return SomeChildren(page, b"")


_Found = tuple[bytes, int, Inode | None]
"""A name, which of two with that name goes first, and what it stands for; None: a whiteout."""

_BY_NAME = itemgetter(0, 1)


class _Layer(NamedTuple):
    """Rows that a directory has for its names: its own or an origin's, inodes or whiteouts."""

    rows: Rows
    table: Table
    content_id: int
    origin: Origin | None
    depth: int

    def read(self, after: bytes, size: int) -> list[tuple[Key, Any]]:
        return self.rows.scan(self.table, self.content_id, after, size)

    def read_on(self, page: list[tuple[Key, Any]], size: int) -> Iterator[_Found]:
        """What this page stands for, and those behind it, which grow: the first one mostly does."""
        while page:
            yield from self._found(page)
            if len(page) < size:
                return
            size = min(2 * size, _PAGE)
            page = self.read(page[-1][0][2], size)

    def _found(self, page: list[tuple[Key, Any]]) -> list[_Found]:
        depth, origin = self.depth, self.origin
        if self.table is Table.WHITEOUTS:
            return [(key[2], depth, None) for key, _ in page]
        if origin is None:
            return [(key[2], depth, child) for key, child in page]
        return [(key[2], depth, virtual(child, origin)) for key, child in page]


def _by_names(
    rows: Rows, directory: Inode, after: bytes, limit: int
) -> Iterator[tuple[bytes, Inode | None]]:
    """Each name once, with what it stands for; None: nothing, it is hidden."""
    last = b""
    for name, _, child in _in_order(rows, directory, after, limit):
        if name != last:
            yield name, child
        last = name  # hides what comes after it under this name


def _in_order(rows: Rows, directory: Inode, after: bytes, limit: int) -> Iterator[_Found]:
    """What a directory has itself, and from each of its origins, in order of names."""
    size = min(limit, _PAGE)
    layers = _layers(rows, directory)
    pages = ask_all(lambda layer: layer.read(after, size), layers)
    found = [layer.read_on(page, size) for layer, page in zip(layers, pages, strict=True) if page]
    # Most of the time it is one: nothing was changed since the directory was made.
    return found[0] if len(found) == 1 else heapq.merge(*found, key=_BY_NAME)


def _layers(rows: Rows, directory: Inode) -> list[_Layer]:
    sources: list[tuple[Rows, int, Origin | None]] = []
    if not directory.is_virtual:
        sources.append((rows, directory.children_id, None))
    origin = directory.origin
    while origin is not None:
        sources.append((rows.at(origin.txid), origin.content_id, origin))
        origin = origin.below
    kinds = (Table.INODES, Table.WHITEOUTS)
    return [
        _Layer(of, table, content_id, origin, depth)
        for depth, ((of, content_id, origin), table) in enumerate(product(sources, kinds))
    ]
