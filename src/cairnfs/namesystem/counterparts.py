"""Which inode of one state of a tree is which of another one.

An inode is the same in both if it has the same identity (`identity`).  After a roll-back of a
directory below, a tree may show one identity twice: then the one that was there before is
*itself*, and the other one stands for it only at its own place.

What a clone has from its origin, and has no row for, is *cloned*: it has the identity of its
original, and is followed from its place.  It is where the origin has it, in its directory; or
what has got its row since knows that it was there (`Inode.places`), and, if that was moved, what
it left there knows where it is (`Whiteout.moved`).
"""

from __future__ import annotations

import msgspec

from cairnfs.namesystem.identity import Finder, Way
from cairnfs.namesystem.inodes import Inode
from cairnfs.namesystem.layers import (
    Identity,
    child_of,
    identity_key,
    is_anywhere,
)
from cairnfs.transaction.rows import PastRows

Names = tuple[bytes, ...]
"""The inodes from the root of a tree, which is left out, to one of it."""


class Side(msgspec.Struct, frozen=True, gc=False):
    """One of the two states that are compared; what is not committed is in neither."""

    rows: PastRows
    root: Inode
    txid: int
    is_origin: bool = False  # what a clone began as


class Counterparts:
    """Finds what is in one of two states in the other one.

    Invariant: if it finds one inode for another, it finds that for the one.
    """

    def __init__(self, old: Side, new: Side) -> None:
        self._old = old
        self._new = new
        self._finders = {id(side): Finder(side.rows, side.root) for side in (old, new)}
        self._directories: dict[tuple[int, Names], Way | None] = {}

    def are_same(self, old_path: Names, old: Inode, new_path: Names, new: Inode) -> bool:
        """Whether what is under one name of the same directory in both is one inode."""
        if is_cloned(old) and is_cloned(new):
            return old.identity == new.identity
        if is_cloned(old) or is_cloned(new):
            found = self.find_new(old_path, old)
            return found is not None and names_of(found) == new_path
        return old.identity == new.identity and (
            self._stands_for_itself(self._old, old_path, old)
            == self._stands_for_itself(self._new, new_path, new)
        )

    def find_new(self, path: Names, inode: Inode) -> Way | None:
        """The way to where an inode of the old side is on the new one."""
        return self._find(path, inode, self._old, self._new)

    def find_old(self, path: Names, inode: Inode) -> Way | None:
        """The way to where an inode of the new side was on the old one."""
        return self._find(path, inode, self._new, self._old)

    def _find(self, path: Names, inode: Inode, here: Side, there: Side) -> Way | None:
        if is_cloned(inode):
            return self._follow(path, inode, here, there)
        way = self._finder(there).find(inode.identity)
        if way:
            return way if self._is_itself(here, path, inode) else None
        return self._trace(path, inode, here, there) if inode.places else None

    # What stands for an original.

    def _is_itself(self, side: Side, path: Names, inode: Inode) -> bool:
        """Whether an inode is where its identity is found."""
        return is_plain(inode) or self._finder(side).path(inode.identity) == path

    def _stands_for_itself(self, side: Side, path: Names, inode: Inode) -> bool:
        """The same, or it is found nowhere: what came back by a roll-back after it was deleted."""
        if self._is_itself(side, path, inode):
            return True
        if not inode.is_virtual or self._finder(side).path(inode.identity) is not None:
            return False
        known: Identity | None = side.rows.get(identity_key(inode.identity))
        return not is_anywhere(side.rows, inode.identity if known is None else known.inode_id)

    # What is cloned.

    def _follow(self, path: Names, inode: Inode, here: Side, there: Side) -> Way | None:
        """Where what is cloned on one side is on the other one, where it may have got a row."""
        above = self._directory(here, path[:-1])
        if not path or above is None:
            return None
        directory = above[-1] if above else there.root
        moved = self._finder(there).find_moved(directory, path[-1])
        if moved is not None and self._was_at(path, moved, here, there):
            return moved
        child = child_of(there.rows, directory, path[-1])
        if child is None:
            return None
        way = (*above, child)
        if is_cloned(child):
            return way if child.identity == inode.identity else None
        return way if self._was_at(path, way, here, there) else None

    def _trace(self, path: Names, inode: Inode, here: Side, there: Side) -> Way | None:
        """Where what has a row on one side is cloned on the other one."""
        way = self._finder(there).find_place(inode.places)
        if not way or not is_cloned(way[-1]) or not self._stands_for_itself(here, path, inode):
            return None
        found = self._follow(names_of(way), way[-1], there, here)
        return way if found is not None and names_of(found) == path else None

    def _was_at(self, path: Names, way: Way, here: Side, there: Side) -> bool:
        """Whether what is at the end of a way there, with a row, is what is cloned here."""
        inode = way[-1]
        if is_cloned(inode) or not inode.places or self._finder(here).find(inode.identity):
            return False
        place = self._finder(here).find_place(inode.places)
        if place is None or names_of(place) != path:
            return False
        return self._stands_for_itself(there, names_of(way), inode)

    def _directory(self, here: Side, path: Names) -> Way | None:
        """Where a directory of one side is on the other one; empty: it is the root."""
        if not path:
            return ()
        key = (id(here), path)
        if key not in self._directories:
            inode: Inode | None = here.root
            for name in path:
                inode = None if inode is None else child_of(here.rows, inode, name)
            there = self._new if here is self._old else self._old
            found = None if inode is None else self._find(path, inode, here, there)
            is_directory = found is not None and found[-1].is_directory
            self._directories[key] = found if is_directory else None
        return self._directories[key]

    def _finder(self, side: Side) -> Finder:
        return self._finders[id(side)]


def names_of(way: Way) -> Names:
    return tuple(inode.name for inode in way)


def is_plain(inode: Inode) -> bool:
    """Whether an inode has a row and an id that were never another one's."""
    return not inode.is_virtual and not inode.known_as


def is_cloned(inode: Inode) -> bool:
    """Whether a clone has it from its origin, and no row for it."""
    return inode.is_virtual and inode.origin is not None and not inode.origin.is_own
