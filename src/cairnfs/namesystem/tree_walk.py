"""Walking a whole tree at one moment: directories with what is in them, rows as they are stored.

The order: what is in a directory, then, directory by directory, what is below.

What costs time is not rows but statements.  So directories without directories in them are read
many at a time, and those with nothing in them, as their totals tell, not at all.  Who only counts
is told by the totals how much is in the others, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import msgspec

from cairnfs.errors import IllegalArgumentException
from cairnfs.namesystem.inheritance import STORAGE_POLICY, name_of
from cairnfs.namesystem.inodes import Inode, Kind
from cairnfs.namesystem.layered_children import children_of
from cairnfs.namesystem.layers import child_of, totals_of
from cairnfs.namesystem.paths import FsPath
from cairnfs.namesystem.permissions import Access, Caller, check_access, has_permission
from cairnfs.namesystem.tree_attributes import Inherited, descend
from cairnfs.namesystem.tree_parts import Cursor, Names, Part
from cairnfs.namesystem.views import View
from cairnfs.namesystem.xattrs import is_open_to
from cairnfs.store.base import Count, Scan, Stored, Totals, whole_scan
from cairnfs.store.schema import Table
from cairnfs.transaction.records import decode_row, encode
from cairnfs.transaction.rows import PastRows
from cairnfs.transaction.transaction import Transaction
from cairnfs.xattr_text import XAttrName

STATEMENT_COST = 20  # inodes that could be passed on meanwhile
_LISTED_AT_ONCE = 1000
_READ_AT_ONCE = 2500  # children of several directories,
_DIRECTORIES_AT_ONCE = 500  # and so many of those

_INODES = int(Table.INODES)
_CHILDREN, _DIRECTORIES = int(Count.CHILDREN), int(Count.DIRECTORIES)


class _Head(msgspec.Struct, array_like=True, gc=False):
    """The beginning of an inode: enough to tell what it is."""

    id: int
    parent_id: int
    name: bytes
    kind: int


_decode_head = msgspec.msgpack.Decoder(_Head).decode


class Place(NamedTuple):
    """A directory, where it is in the tree, and how much is in it."""

    path: Names
    directory: Inode
    totals: Totals
    inherited: tuple[Inherited, ...] = ()

    @property
    def is_leaf(self) -> bool:
        """Whether there are no directories in it."""
        return not self.totals.counts[_DIRECTORIES]


class Step(NamedTuple):
    """Some of what is in a directory."""

    place: Place
    rows: list[Stored]
    below: dict[bytes, Place]  # the directories among it, by their names
    cost: int  # of having got here, in inodes
    counted: int = 0  # all that is in it, where there are no rows


class Tree:
    """The tree of a view, as far as the caller may read it."""

    def __init__(
        self,
        tx: Transaction,
        caller: Caller,
        view: View,
        *,
        with_attributes: bool = False,
        only_counts: bool = False,
    ) -> None:
        self.rows: PastRows = tx.at(view.txid)
        self._caller = caller
        self.view = view
        self._only_counts = only_counts
        self._top = FsPath.parse(view.path)
        self.entering: tuple[Inherited, ...] = ()  # what comes from above the tree
        if with_attributes:
            self.entering = tuple(each for each in view.entering if self._is_open(each.attribute))

    def find(self, path: Names) -> Place:
        """A directory of the tree."""
        return self._way_to(path)[-1]

    def pages(self, place: Place, after: bytes, until: bytes, limit: int) -> Iterator[list[Stored]]:
        """What is in a directory, of a range of names; each page has at least one."""
        while page := self._children(place.directory, after, limit):
            is_last = len(page) < limit
            if until and page[-1][1] > until:
                is_last = True
                page = [row for row in page if row[1] <= until]
                if not page:
                    return
            yield page
            if is_last:
                return
            after = page[-1][1]

    def places(self, above: Place, rows: list[Stored]) -> list[Place]:
        """The directories among the rows of one."""
        if above.is_leaf:
            return []
        found: list[Inode] = [
            decode_row(_INODES, row[3], row[2])
            for row in rows
            if _decode_head(row[3]).kind == Kind.DIRECTORY
        ]
        ids = [int(inode.id) for inode in found if not inode.is_virtual]
        totals = self.rows.totals_of(ids) if ids else {}
        return [
            self._place(
                above, inode, totals_of(self.rows, inode) if inode.is_virtual else totals[inode.id]
            )
            for inode in found
        ]

    def path_to(self, path: Names) -> FsPath:
        """Where something is, for people."""
        where = self._top
        for name in path:
            where = where.child(name)
        return where

    def check(self, place: Place) -> None:
        """The caller may list a directory."""
        if not self._caller.is_superuser:
            where = self.path_to(place.path)
            check_access(self._caller, place.directory, Access.READ_EXECUTE, where)

    # Walking.

    def walk(self, part: Part, cursor: Cursor | None, limit: int) -> Iterator[Step]:
        """What is in each directory of a part, behind a cursor; nothing, if it is empty."""
        if cursor is None:
            cursor = Cursor(part.path, part.after)
        way = self._way_to(cursor.path)
        depth = len(part.path)
        stack: list[Iterator[list[Place]]] = []
        for level in range(depth, len(cursor.path)):
            until = part.until if level == depth else b""
            stack.append(_runs(self._below(way[level], cursor.path[level], until)))
        is_top = len(cursor.path) == depth
        place = way[-1]
        self.check(place)
        first, until = (part.after, part.until) if is_top else (b"", b"")
        below: Iterable[Place] = self._below(place, first, until)
        if not cursor.is_over and (part.entries or not is_top):
            found: list[Place] = []
            for rows in self.pages(place, cursor.after, until, limit):
                step = self._step(place, rows)
                found += step.below.values()
                yield step
            if cursor.after == first:  # all of them were seen
                below = found
        if part.below:
            stack.append(_runs(below))
        while stack:
            run = next(stack[-1], None)
            if run is None:
                stack.pop()
            elif run[0].is_leaf:
                yield from self._list_leaves(run, limit)
            else:
                (place,) = run
                self.check(place)
                found = []
                for rows in self.pages(place, b"", b"", limit):
                    step = self._step(place, rows)
                    found += step.below.values()
                    yield step
                stack.append(_runs(found))

    def _step(self, place: Place, rows: list[Stored]) -> Step:
        below = {found.directory.name: found for found in self.places(place, rows)}
        return Step(place, self.shown(rows), below, len(rows) + STATEMENT_COST)

    def _list_leaves(self, run: list[Place], limit: int) -> Iterator[Step]:
        """Directories without any below them, most of them read at once."""
        small = [place for place in run if _is_small(place) and not self._only_counts]
        scans = [whole_scan(_INODES, place.directory.children_id) for place in small]
        listed = self.rows.stored(scans) if scans else []
        found = {place.path: rows for place, rows in zip(small, listed, strict=True)}
        for place in run:
            self.check(place)
            children = place.totals.counts[_CHILDREN]
            if not children or self._only_counts:
                yield Step(place, [], {}, 1, children)
            elif place.path in found:
                rows = found[place.path]
                yield Step(place, self.shown(rows), {}, 1 + len(rows))
            else:
                for rows in self.pages(place, b"", b"", limit):
                    yield self._step(place, rows)

    def _below(self, place: Place, after: bytes, until: bytes) -> Iterator[Place]:
        """The directories in one, of a range of names."""
        if not place.is_leaf:
            for rows in self.pages(place, after, until, _LISTED_AT_ONCE):
                yield from self.places(place, rows)

    def _children(self, directory: Inode, after: bytes, limit: int) -> list[Stored]:
        if directory.origin is None:
            scan = Scan(_INODES, directory.children_id, after, limit)
            return self.rows.stored([scan])[0]
        return [
            (0, inode.name, 0, encode(inode))
            for inode in children_of(self.rows, directory, after, limit)
        ]

    def _way_to(self, path: Names) -> list[Place]:
        """The directories from the view's own to one below it."""
        root = self.view.root
        inherited = descend(self.entering, root, self.view.path)
        way = [Place((), root, totals_of(self.rows, root), inherited)]
        for name in path:
            child = child_of(self.rows, way[-1].directory, name)
            if child is None or not child.is_directory:
                raise IllegalArgumentException(
                    f"There is no directory {name!r} on the way of a part in {self.view.path}:"
                    " a part belongs to the view that it was made for"
                )
            way.append(self._place(way[-1], child, totals_of(self.rows, child)))
        return way

    def _place(self, above: Place, directory: Inode, totals: Totals) -> Place:
        path = (*above.path, directory.name)
        inherited = above.inherited
        if inherited:
            inherited = descend(inherited, directory, self.path_to(path).text)
        return Place(path, directory, totals, inherited)

    # What the caller may see.

    def shown(self, rows: list[Stored]) -> list[Stored]:
        """Rows without the attributes that the caller may not see."""
        if self._caller.is_superuser:
            return rows
        return [self._without_hidden(row) for row in rows]

    def _without_hidden(self, row: Stored) -> Stored:
        inode: Inode = decode_row(_INODES, row[3], row[2])
        if inode.xattrs is None:
            return row
        may_read = has_permission(self._caller, inode, Access.READ)
        seen = tuple(
            xattr
            for xattr in inode.xattrs
            if name_of(xattr) == STORAGE_POLICY or (may_read and self._is_open(name_of(xattr)))
        )
        return (*row[:3], encode(msgspec.structs.replace(inode, xattrs=seen or None)))

    def _is_open(self, name: XAttrName) -> bool:
        """Storage policies are no secret: whoever lists a directory is told them."""
        return name == STORAGE_POLICY or is_open_to(self._caller, self._top, name)


def _is_small(place: Place) -> bool:
    is_plain = place.directory.origin is None
    return is_plain and 0 < place.totals.counts[_CHILDREN] <= _LISTED_AT_ONCE


def _runs(places: Iterable[Place]) -> Iterator[list[Place]]:
    """Directories without any in them, as many as are read at once; of others, each by itself."""
    run: list[Place] = []
    size = 0
    for place in places:
        if place.is_leaf:
            size += place.totals.counts[_CHILDREN]
            run.append(place)
        if run and (not place.is_leaf or size >= _READ_AT_ONCE or len(run) >= _DIRECTORIES_AT_ONCE):
            yield run
            run, size = [], 0
        if not place.is_leaf:
            yield [place]
    if run:
        yield run
