"""Which inode of one state of a tree is which of another one.

An inode is the same in both if it has the same identity (`identity`).  In a clone, and after a
roll-back of a directory below, a tree may show one identity twice: then the one that was there
before is *itself*, and the other one stands for it only at its own place.

What a clone has from its origin can be followed from its place: as long as it has no row, it
is where the origin has it, in its directory; one that has got a row knows its place from before
(`Inode.places`), and what it left there, when it was moved, knows it (`Whiteout.moved`).
"""

from __future__ import annotations

import msgspec

from cairnfs.namesystem.identity import Finder, identity_of
from cairnfs.namesystem.inodes import ROOT_ID, Inode
from cairnfs.namesystem.layers import (
    Identity,
    Whiteout,
    child_of,
    identity_key,
    parent_of,
    whiteout_key,
)
from cairnfs.store.schema import Table
from cairnfs.transaction.rows import PastRows

Names = tuple[bytes, ...]
Way = tuple[Inode, ...]
"""The inodes from the root of a tree, which is left out, to one of it."""


class Side(msgspec.Struct, frozen=True, gc=False):
    """One of the two states that are compared; what is not committed is in neither."""

    rows: PastRows
    root: Inode
    txid: int
    is_origin: bool = False  # what a clone began as


class Counterparts:
    """Finds what is in one of two states in the other one."""

    def __init__(self, old: Side, new: Side) -> None:
        self._old = old
        self._new = new
        self._earlier, self._later = sorted((old, new), key=lambda side: side.txid)
        self._finders = {id(side): Finder(side.rows, side.root) for side in (old, new)}
        self._directories: dict[tuple[int, Names], Way | None] = {}

    def are_same(self, old_path: Names, old: Inode, new_path: Names, new: Inode) -> bool:
        """Whether what is under one name of the same directory in both is one inode."""
        if identity_of(old) != identity_of(new):
            return False
        if self._stands_for_itself(self._old, old_path, old) != (
            self._stands_for_itself(self._new, new_path, new)
        ):
            return False
        path, inode, now = (old_path, old, new_path)
        if self._earlier is self._new:
            path, inode, now = (new_path, new, old_path)
        if not _is_cloned(inode):
            return True
        moved = self._find_moved(path)
        return moved is None or names_of(moved) == now

    def find_new(self, path: Names, inode: Inode) -> Way | None:
        """The way to where an inode of the old side is on the new one."""
        return self._find(path, inode, self._old, self._new)

    def find_old(self, path: Names, inode: Inode) -> Way | None:
        """The way to where an inode of the new side was on the old one."""
        return self._find(path, inode, self._new, self._old)

    def id_of_both(self, old: Inode, new: Inode) -> int:
        """By which an inode that is on both sides is known; no other one is."""
        later = new if self._later is self._new else old
        return later.id if _has_own_id(later) else identity_of(later)

    def _find(self, path: Names, inode: Inode, here: Side, there: Side) -> Way | None:
        if _has_own_id(inode) and (found := self._finder(there).find(inode.id)):
            return found
        if self._is_itself(here, path, inode):
            return self._finder(there).find(identity_of(inode)) or None
        if there is self._later:
            return self._follow(path, inode)
        return self._trace(path, inode)

    # What stands for an original.

    def _is_itself(self, side: Side, path: Names, inode: Inode) -> bool:
        """Whether an inode is where its identity is found."""
        return is_plain(inode) or self._finder(side).path(identity_of(inode)) == path

    def _stands_for_itself(self, side: Side, path: Names, inode: Inode) -> bool:
        """The same, or it is found nowhere: what came back by a roll-back after it was deleted."""
        if self._is_itself(side, path, inode):
            return True
        if not inode.is_virtual or inode.origin is None or not inode.origin.is_own:
            return False
        identity = identity_of(inode)
        if self._finder(side).path(identity) is not None:
            return False
        known: Identity | None = side.rows.get(identity_key(identity))
        return not is_anywhere(side.rows, identity if known is None else known.inode_id)

    # What a clone has from its origin.

    def _follow(self, path: Names, inode: Inode) -> Way | None:
        """Where what had no row on the earlier side is on the later one."""
        if not path or not _is_cloned(inode):
            return None
        moved = self._find_moved(path)
        if moved is not None:
            return moved
        above = self._directory(self._earlier, path[:-1])
        if above is None:
            return None
        child = child_of(self._later.rows, self._end(self._later, above), path[-1])
        if child is None or identity_of(child) != identity_of(inode):
            return None
        is_there = _is_cloned(child) or (_has_own_id(child) and self._place_of(child) == path)
        return (*above, child) if is_there else None

    def _trace(self, path: Names, inode: Inode) -> Way | None:
        """Where what is on the later side was on the earlier one, without a row."""
        if not path:
            return None
        if _has_own_id(inode):
            way = self._finder(self._earlier).find_place(inode.places)
            if not way or not _is_cloned(way[-1]):
                return None
            now = self._follow(names_of(way), way[-1])
            return way if now is not None and names_of(now) == path else None
        if not _is_cloned(inode):
            return None
        above = self._directory(self._later, path[:-1])
        if above is None:
            return None
        child = child_of(self._earlier.rows, self._end(self._earlier, above), path[-1])
        if child is None or not _is_cloned(child) or identity_of(child) != identity_of(inode):
            return None
        return (*above, child)

    def _find_moved(self, path: Names) -> Way | None:
        """Where what left this place of the earlier side is on the later one."""
        above = self._directory(self._earlier, path[:-1])
        if above is None:
            return None
        directory = self._end(self._later, above)
        if directory.is_virtual:
            return None
        key = whiteout_key(directory.children_id, path[-1])
        left: Whiteout | None = self._later.rows.get(key)
        way = self._finder(self._later).find(left.moved) if left and left.moved else None
        return way if way and self._place_of(way[-1]) == path else None

    def _place_of(self, inode: Inode) -> Names | None:
        """Where what has got a row since was on the earlier side."""
        way = self._finder(self._earlier).find_place(inode.places)
        return None if way is None else names_of(way)

    def _directory(self, here: Side, path: Names) -> Way | None:
        """Where a directory of one side is on the other one; empty: it is the root."""
        if not path:
            return ()
        key = (id(here), path)
        if key not in self._directories:
            there = self._later if here is self._earlier else self._earlier
            inode: Inode | None = here.root
            for name in path:
                inode = child_of(here.rows, inode, name) if inode is not None else None
            found = None if inode is None else self._find(path, inode, here, there)
            is_directory = found is not None and found[-1].is_directory
            self._directories[key] = found if is_directory else None
        return self._directories[key]

    def _finder(self, side: Side) -> Finder:
        return self._finders[id(side)]

    @staticmethod
    def _end(side: Side, way: Way) -> Inode:
        return way[-1] if way else side.root


def names_of(way: Way) -> Names:
    return tuple(inode.name for inode in way)


def is_plain(inode: Inode) -> bool:
    """Whether an inode has a row and an id that were never another one's."""
    return not inode.is_virtual and not inode.known_as


def is_anywhere(rows: PastRows, id: int) -> bool:
    """Whether an inode could be reached, wherever."""
    found: Inode | None = rows.get_by_id(Table.INODES, id)
    while found is not None and found.id != ROOT_ID:
        found = parent_of(rows, found)
    return found is not None


def _has_own_id(inode: Inode) -> bool:
    """Whether an inode of a clone has a row: then its id is that of no other one."""
    return bool(inode.places) and not inode.is_virtual


def _is_cloned(inode: Inode) -> bool:
    """Whether a clone has it from its origin, and no row for it."""
    return inode.is_virtual and inode.origin is not None and not inode.origin.is_own
