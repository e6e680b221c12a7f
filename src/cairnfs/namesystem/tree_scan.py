"""Reading a whole tree at one moment, in parts that are read at the same time.

A *part* is what is directly in a directory under a range of names, or everything below the
directories among it, or both.  `split_part` makes parts of about the same size of a larger one,
without looking at more than one directory: each directory knows how much is below it.
`scan_part` reads a part page by page.

The order within a part: what is in a directory, then, directory by directory, what is below.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from cairnfs.errors import IllegalArgumentException
from cairnfs.namesystem.inodes import Inode, InodeId
from cairnfs.namesystem.layers import child_of, children_of, totals_of
from cairnfs.namesystem.paths import FsPath
from cairnfs.namesystem.permissions import Access, Caller, check_access
from cairnfs.namesystem.views import View, find_view
from cairnfs.store.base import Count, Totals
from cairnfs.transaction.calls import operation
from cairnfs.transaction.rows import Rows
from cairnfs.transaction.transaction import Transaction

FORMAT = 1  # of the records that readers are sent
PAGE_INODES = 10_000
PAGE_DIRECTORIES = 1_000  # listed for one page, however little is in them
SPLIT_CHILDREN = 20_000  # looked at by one split
_LISTED_AT_ONCE = 1_000

Names = tuple[bytes, ...]


class Part(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Some of what is below the directory of a view."""

    path: Names = ()  # of a directory, from that of the view on
    after: bytes = b""  # names in it behind this one,
    until: bytes = b""  # up to this one; empty: to the last
    entries: bool = True  # what has these names
    below: bool = True  # and all that is below the directories of these names

    @property
    def is_first(self) -> bool:
        """Whether it is the one to which the directory of the view itself belongs."""
        return self.entries and not self.path and not self.after


class Cursor(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """How far a part was read: up to a name in a directory."""

    path: Names
    after: bytes


class Sized(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A part, and how many inodes are in it."""

    part: Part
    inodes: int
    is_large: bool = False  # to be split in its turn


class Split(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Parts of a part, and what was not looked at; None: that was all."""

    parts: list[Sized]
    rest: Part | None


class Found(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """An inode; a directory comes with its totals."""

    inode: Inode
    totals: Totals | None = None


class Listed(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Inodes of one directory; without a path, the directory of the view itself."""

    path: Names | None
    id: InodeId
    found: list[Found]


class ScanPage(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Some of a part, and where to go on; None: that was all."""

    listed: list[Listed]
    cursor: Cursor | None


@operation(mutates=False, walks=True)
def scan_part(
    tx: Transaction,
    caller: Caller,
    view: int,
    part: Part,
    cursor: Cursor | None = None,
    limit: int = PAGE_INODES,
) -> ScanPage:
    """A page of the inodes of a part."""
    tree = _Tree(tx, caller, find_view(tx, caller, view))
    limit = min(limit, PAGE_INODES)
    listed: list[Listed] = []
    if cursor is None and part.is_first:
        listed.append(tree.describe_root())
    inodes = 0
    for directories, (path, directory, children) in enumerate(tree.walk(part, cursor, limit), 1):
        if children:
            listed.append(Listed(path, directory.id, tree.describe(children)))
        inodes += len(children)
        if inodes >= limit or directories >= PAGE_DIRECTORIES:
            return ScanPage(listed, Cursor(path, children[-1].name if children else b""))
    return ScanPage(listed, None)


@operation(mutates=False, walks=True)
def split_part(tx: Transaction, caller: Caller, view: int, part: Part, inodes: int) -> Split:
    """Parts of a part, with about as many inodes as asked for, or a directory that has more."""
    if inodes < 1:
        raise IllegalArgumentException(f"A part has 1 inode or more, not {inodes}")
    tree = _Tree(tx, caller, find_view(tx, caller, view))
    directory = tree.find(part.path)
    tree.check(directory, part.path)
    cutter = _Cutter(part, inodes)
    looked = 0
    for children in tree.pages(directory, part.after, part.until, _LISTED_AT_ONCE):
        totals = tree.totals_of(children) if part.below else {}
        for child in children:
            below = totals[child.name].counts[Count.INODES] if child.name in totals else 0
            cutter.add(child.name, below)
        looked += len(children)
        if looked >= SPLIT_CHILDREN:
            return cutter.end(is_over=False)
    return cutter.end(is_over=True)


class _Cutter:
    """Cuts the children of a directory, one after the other, into parts."""

    def __init__(self, part: Part, limit: int) -> None:
        self._part = part
        self._limit = limit
        self._parts: list[Sized] = []
        self._after = self._last = part.after
        self._size = 0

    def add(self, name: bytes, below: int) -> None:
        part = self._part
        if below > self._limit:  # a part of its own
            self._cut(self._last)
            if part.entries:
                entry = msgspec.structs.replace(part, after=self._last, until=name, below=False)
                self._parts.append(Sized(entry, 1))
            self._parts.append(Sized(Part((*part.path, name)), below, is_large=True))
            self._after = self._last = name
            return
        self._size += below + part.entries
        self._last = name
        if self._size >= self._limit:
            self._cut(name)

    def end(self, *, is_over: bool) -> Split:
        self._cut(self._last)
        rest = None if is_over else msgspec.structs.replace(self._part, after=self._last)
        return Split(self._parts, rest)

    def _cut(self, until: bytes) -> None:
        if self._size:
            cut = msgspec.structs.replace(self._part, after=self._after, until=until)
            self._parts.append(Sized(cut, self._size))
        self._after = until
        self._size = 0


_Step = tuple[Names, Inode, list[Inode]]
"""A directory, and some of its children."""


class _Tree:
    """The tree of a view, as far as the caller may read it."""

    def __init__(self, tx: Transaction, caller: Caller, view: View) -> None:
        self._rows: Rows = tx.at(view.txid)
        self._caller = caller
        self._view = view

    def find(self, path: Names) -> Inode:
        return self._way_to(path)[-1]

    def check(self, directory: Inode, path: Names) -> None:
        """The caller may list a directory."""
        if self._caller.is_superuser:
            return
        where = FsPath.parse(self._view.path)
        for name in path:
            where = where.child(name)
        check_access(self._caller, directory, Access.READ_EXECUTE, where)

    def pages(
        self, directory: Inode, after: bytes, until: bytes, limit: int
    ) -> Iterator[list[Inode]]:
        """The children of a directory, of a range of names; each page has at least one."""
        while page := children_of(self._rows, directory, after, limit):
            is_last = len(page) < limit
            if until and page[-1].name > until:
                is_last = True
                page = [child for child in page if child.name <= until]
                if not page:
                    return
            yield page
            if is_last:
                return
            after = page[-1].name

    def totals_of(self, inodes: list[Inode]) -> dict[bytes, Totals]:
        """Of those of a directory's children that are directories, by their names."""
        directories = [inode for inode in inodes if inode.is_directory]
        self._rows.need(totals=[inode.id for inode in directories if not inode.is_virtual])
        return {inode.name: totals_of(self._rows, inode) for inode in directories}

    def describe_root(self) -> Listed:
        root = self._view.root
        found = Found(root, totals_of(self._rows, root))
        return Listed(None, root.parent_id, [found])

    def describe(self, inodes: list[Inode]) -> list[Found]:
        totals = self.totals_of(inodes)
        return [Found(inode, totals.get(inode.name)) for inode in inodes]

    def walk(self, part: Part, cursor: Cursor | None, limit: int) -> Iterator[_Step]:
        """What is in each directory of a part, behind a cursor; nothing, if it is empty."""
        stack: list[tuple[Names, Iterator[Inode]]] = []
        if cursor is None:
            cursor = Cursor(part.path, part.after)
        way = self._way_to(cursor.path)
        depth = len(part.path)
        for level in range(depth, len(cursor.path)):
            path = cursor.path[:level]
            until = part.until if level == depth else b""
            below = self._directories(way[level], cursor.path[level], until, limit)
            stack.append((path, below))
        is_top = len(cursor.path) == depth
        directory = way[-1]
        self.check(directory, cursor.path)
        if part.entries or not is_top:
            until = part.until if is_top else b""
            for children in self.pages(directory, cursor.after, until, limit):
                yield cursor.path, directory, children
        if part.below:
            after, until = (part.after, part.until) if is_top else (b"", b"")
            stack.append((cursor.path, self._directories(directory, after, until, limit)))
        while stack:
            above, directories = stack[-1]
            below_it = next(directories, None)
            if below_it is None:
                stack.pop()
                continue
            path = (*above, below_it.name)
            self.check(below_it, path)
            found: list[Inode] = []
            is_empty = True
            for children in self.pages(below_it, b"", b"", limit):
                is_empty = False
                yield path, below_it, children
                found += [child for child in children if child.is_directory]
            if is_empty:
                yield path, below_it, []
            stack.append((path, iter(found)))

    def _directories(
        self, directory: Inode, after: bytes, until: bytes, limit: int
    ) -> Iterator[Inode]:
        """Those of the children that are directories."""
        if totals_of(self._rows, directory).counts[Count.DIRECTORIES]:
            for children in self.pages(directory, after, until, limit):
                yield from (child for child in children if child.is_directory)

    def _way_to(self, path: Names) -> list[Inode]:
        """The inodes from the view's directory to one below it."""
        way = [self._view.root]
        for name in path:
            child = child_of(self._rows, way[-1], name) if way[-1].is_directory else None
            if child is None or not child.is_directory:
                raise IllegalArgumentException(
                    f"There is no directory {name!r} on the way of a part in {self._view.path}:"
                    " a part belongs to the view that it was made for"
                )
            way.append(child)
        return way
