"""Reading a whole tree at one moment, in parts that are read at the same time.

`split_part` makes parts of about the same size of a larger one, without looking at more than one
directory: each directory knows how much is below it.  `scan_part` reads a part page by page, in
the order of `tree_walk`.
"""

from __future__ import annotations

import msgspec

from cairnfs.blocks.records import Block
from cairnfs.errors import IllegalArgumentException
from cairnfs.namesystem.inodes import Inode
from cairnfs.namesystem.permissions import Caller
from cairnfs.namesystem.tree_blocks import read_blocks, read_replicas
from cairnfs.namesystem.tree_parts import (
    FORMAT,
    Cursor,
    Detail,
    Found,
    KnownReplica,
    Listed,
    Part,
    ScanPage,
    Sized,
    Split,
    StoredListing,
    encode_page,
)
from cairnfs.namesystem.tree_walk import Step, Tree
from cairnfs.namesystem.views import find_view
from cairnfs.store.base import Count, Stored
from cairnfs.store.schema import Table
from cairnfs.transaction.calls import operation
from cairnfs.transaction.records import decode, encode
from cairnfs.transaction.transaction import Transaction

PAGE_INODES = 10_000
PAGE_BLOCKS = 20_000  # of the files of one page, where they are told
PAGE_BYTES = 8 << 20  # of the rows on it: attributes can be long
SPLIT_CHILDREN = 20_000  # looked at by one split
_LISTED_AT_ONCE = 1_000

_Raw = msgspec.Raw


@operation(mutates=False, walks=True)
def scan_part(
    tx: Transaction,
    caller: Caller,
    view: int,
    part: Part,
    cursor: Cursor | None = None,
    limit: int = PAGE_INODES,
    details: int = 0,
) -> ScanPage:
    """A page of the inodes of a part; `details` are flags of `Detail`."""
    tree = Tree(
        tx,
        caller,
        find_view(tx, caller, view),
        with_attributes=bool(details & Detail.ATTRIBUTES),
        only_counts=bool(details & Detail.COUNTS),
    )
    limit = min(limit, PAGE_INODES)
    page = _Page(tx, tree, details)
    if cursor is None and part.is_first:
        page.add_root()
    left = limit
    for step in tree.walk(part, cursor, limit):
        left -= step.cost
        last = page.add(step)
        if left <= 0 or page.is_full:
            return page.end(Cursor(step.place.path, last, is_over=not step.rows))
    return page.end(None)


@operation(mutates=False, walks=True)
def split_part(tx: Transaction, caller: Caller, view: int, part: Part, inodes: int) -> Split:
    """Parts of a part, with about as many inodes as asked for, or a directory that has more."""
    if inodes < 1:
        raise IllegalArgumentException(f"A part has 1 inode or more, not {inodes}")
    tree = Tree(tx, caller, find_view(tx, caller, view))
    place = tree.find(part.path)
    tree.check(place)
    cutter = _Cutter(part, inodes)
    looked = 0
    for rows in tree.pages(place, part.after, part.until, _LISTED_AT_ONCE):
        found = tree.places(place, rows) if part.below else []
        below = {each.path[-1]: each.totals.counts[Count.INODES] for each in found}
        for row in rows:
            cutter.add(row[1], below.get(row[1], 0))
        looked += len(rows)
        if looked >= SPLIT_CHILDREN:
            return cutter.end(is_over=False)
    return cutter.end(is_over=True)


class _Page:
    """A page that is being made."""

    def __init__(self, tx: Transaction, tree: Tree, details: int) -> None:
        self._tx = tx
        self._tree = tree
        self._has_blocks = bool(details & (Detail.BLOCKS | Detail.REPLICAS))
        self._has_replicas = bool(details & Detail.REPLICAS)
        self._only_counts = bool(details & Detail.COUNTS)
        self._listed: list[StoredListing] = []
        self._storages: set[int] = set()
        self._blocks = 0
        self._bytes = 0

    @property
    def is_full(self) -> bool:
        """Whether there is too much on it for more."""
        return self._blocks >= PAGE_BLOCKS or self._bytes >= PAGE_BYTES

    def add_root(self) -> None:
        """The directory of the view itself."""
        tree = self._tree
        root = tree.find(())
        [row] = tree.shown([(0, b"", 0, encode(root.directory))])
        self._listed.append(
            StoredListing(
                None,
                root.directory.parent_id,
                [_Raw(row[3])],
                [0],
                {0: root.totals},
                inherited=tree.entering,
            )
        )

    def add(self, step: Step) -> bytes:
        """What is in a directory, as far as there is room; up to which name."""
        if self._only_counts:
            return self._add_count(step)
        if not step.rows:
            return b""
        rows = self._as_long_as_may_be(step.rows)
        files: dict[int, Inode] = {}
        if self._has_blocks:
            rows, files = self._with_room(rows)
        totals = {}
        if step.below:
            for n, row in enumerate(rows):
                below = step.below.get(row[1])
                if below is not None:
                    totals[n] = below.totals
        blocks = read_blocks(self._tree.rows, files.items()) if files else {}
        self._listed.append(
            StoredListing(
                step.place.path,
                step.place.directory.id,
                [_Raw(row[3]) for row in rows],
                [row[2] for row in rows],
                totals,
                {n: [_Raw(row[3]) for row in found] for n, found in blocks.items()},
                self._read_replicas(blocks) if self._has_replicas else {},
                step.place.inherited,
            )
        )
        return rows[-1][1]

    def _add_count(self, step: Step) -> bytes:
        count = step.counted or len(step.rows)
        if count:
            place = step.place
            counted = StoredListing(place.path, place.directory.id, [], [], {}, count=count)
            self._listed.append(counted)
        return step.rows[-1][1] if step.rows else b""

    def end(self, cursor: Cursor | None) -> ScanPage:
        return ScanPage(encode_page(self._listed), cursor, tuple(sorted(self._storages)))

    def _as_long_as_may_be(self, rows: list[Stored]) -> list[Stored]:
        """The first of the rows, which nearly always are all."""
        size = sum(len(row[3]) for row in rows)
        if self._bytes + size > PAGE_BYTES:
            for n, row in enumerate(rows, 1):
                self._bytes += len(row[3])
                if self.is_full:
                    return rows[:n]
        self._bytes += size
        return rows

    def _with_room(self, rows: list[Stored]) -> tuple[list[Stored], dict[int, Inode]]:
        """The first of the rows, and the files with blocks among them."""
        files = {}
        for n, row in enumerate(rows):
            inode: Inode = decode(Table.INODES, row[3])
            if inode.block_count:
                files[n] = inode
                self._blocks += inode.block_count
                if self.is_full:
                    return rows[: n + 1], files
        return rows, files

    def _read_replicas(self, blocks: dict[int, list[Stored]]) -> dict[int, list[KnownReplica]]:
        found: list[Block] = [
            decode(Table.BLOCKS, row[3]) for rows in blocks.values() for row in rows
        ]
        replicas = read_replicas(self._tx, found)
        self._storages.update(each.storage for known in replicas.values() for each in known)
        return replicas


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


__all__ = [
    "FORMAT",
    "Cursor",
    "Detail",
    "Found",
    "Listed",
    "Part",
    "ScanPage",
    "Sized",
    "Split",
    "scan_part",
    "split_part",
]
