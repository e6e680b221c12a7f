"""What a roll-back of a directory has to find below it, and where that was in the snapshot.

These are the directories and files that snapshots may be taken of, and those on which the
superuser has set something that their owner may not change.  Both are found by their marks.
"""

from __future__ import annotations

from typing import NamedTuple

from cairnfs.namesystem.identity import Finder
from cairnfs.namesystem.inodes import Inode, InodeId, Origin
from cairnfs.namesystem.layers import child_of
from cairnfs.namesystem.lookup import Lookup
from cairnfs.namesystem.marks import BELOW, GUARDED, is_marked
from cairnfs.namesystem.paths import FsPath
from cairnfs.namesystem.snapshot_records import Snapshot
from cairnfs.store.schema import NUMBER, Table
from cairnfs.transaction.rows import Rows, ask_all
from cairnfs.transaction.transaction import Transaction

_PAGE = 1000


class Nested(NamedTuple):
    """Something marked below a directory."""

    path: FsPath
    inode: Inode
    way: tuple[Inode, ...] | None  # to it from the directory in the snapshot, if it was there

    @property
    def depth(self) -> int:
        return len(self.way or ())

    @property
    def hinders(self) -> bool:
        """Whether the directory cannot be rolled back: it would go, with its snapshots."""
        return self.way is None and self.inode.snapshots > 0


def find_nested(tx: Transaction, lookup: Lookup, top: Inode, snapshot: Snapshot) -> list[Nested]:
    """Find what is marked below a directory that is to go back to this snapshot of it."""
    below = find_marked(tx, lookup.path, top)
    in_snapshot = Finder(tx.at(snapshot.txid), snapshot.root)
    ways = in_snapshot.find_all_before([inode for _, inode in below])
    return [Nested(*found, way) for found, way in zip(below, ways, strict=True)]


def find_marked(tx: Transaction, path: FsPath, top: Inode) -> list[tuple[FsPath, Inode]]:
    """Find everything below a directory that is marked itself, the upper ones first."""
    found: list[tuple[FsPath, Inode]] = []
    level = [(path, top)] if top.marks & BELOW else []
    while level:
        children = ask_all(lambda each: _marked_children(tx, each[1]), level)
        reached = [
            (above.child(child.name), child)
            for (above, _), inodes in zip(level, children, strict=True)
            for child in inodes
        ]
        found += [each for each in reached if _is_special(each[1])]
        level = [each for each in reached if each[1].is_directory and each[1].marks & BELOW]
    return found


def _is_special(inode: Inode) -> bool:
    return inode.is_snapshottable or bool(inode.marks & GUARDED)


def _marked_children(tx: Transaction, directory: Inode) -> list[Inode]:
    """The marked children of a directory, with those that it has from its origins."""
    layers: list[Origin | None] = [] if directory.is_virtual else [None]
    origin = directory.origin
    while origin is not None:
        layers.append(origin)
        origin = origin.below
    found = ask_all(lambda layer: _of_layer(tx, directory, layer), layers)
    return [inode for inodes in found for inode in inodes]


def _of_layer(tx: Transaction, directory: Inode, origin: Origin | None) -> list[Inode]:
    """Those that have a row, or those that an origin had and the directory has from there."""
    if origin is None:
        return [inode for inode in _with_marks(tx, directory.children_id) if is_marked(inode)]
    originals = _with_marks(tx.at(origin.txid), origin.content_id)
    shown = ask_all(lambda original: child_of(tx, directory, original.name), originals)
    return [
        child
        for original, child in zip(originals, shown, strict=True)
        if child is not None and child.is_virtual and child.id == original.id and is_marked(child)
    ]


def _with_marks(rows: Rows, content_id: int) -> list[Inode]:
    """The inodes of which there are marks in a directory's content, as far as they are there."""
    ids: list[int] = []
    after = b""
    while page := rows.scan(Table.MARKS, content_id, after, _PAGE):
        after = page[-1][0][2]
        ids += [NUMBER.unpack(key[2])[0] for key, _ in page]
        if len(page) < _PAGE:
            break
    rows.need(ids=[(int(Table.INODES), id) for id in ids])
    inodes: list[Inode | None] = ask_all(lambda id: rows.get_by_id(Table.INODES, InodeId(id)), ids)
    return [inode for inode in inodes if inode is not None and inode.parent_id == content_id]
