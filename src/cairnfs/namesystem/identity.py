"""Which inode is which, also where one has got a row, and so an id, of its own.

What is found in an origin is shown under the id of the original (`layers`).  If the origin was the
directory's own content, before a roll-back, what gets a row of its own is still the same to
whoever compares two moments: its *identity* is the id that it was shown under before.  In a clone
it is another one than the original: its identity is its own id, and it knows its place from before
(`counterparts`).
"""

from __future__ import annotations

from cairnfs.namesystem.inodes import ROOT_ID, Inode, Place
from cairnfs.namesystem.layers import (
    Identity,
    Whiteout,
    child_of,
    content_key,
    identity_key,
    parent_of,
    whiteout_key,
)
from cairnfs.store.schema import Table
from cairnfs.transaction.rows import Rows


class Finder:
    """Finds inodes by their identity in one tree, at one moment."""

    def __init__(self, rows: Rows, root: Inode) -> None:
        self._rows = rows
        self._root = root
        self._found: dict[int, tuple[Inode, ...] | None] = {root.identity: ()}
        self._ways: dict[int, tuple[Inode, ...] | None] = {} if root.is_virtual else {root.id: ()}
        self._sought: set[int] = set()
        self._has_met_itself = False

    def find(self, identity: int) -> tuple[Inode, ...] | None:
        """The inodes on the way from the root, which is left out, to one of the tree; or None."""
        if identity in self._found:
            return self._found[identity]
        if identity in self._sought:
            # Of two directories that were turned inside out one is below the other, and one that
            # has taken the other's place is below the one: there is no way by either of them.
            self._has_met_itself = True
            return None
        had_before, self._has_met_itself = self._has_met_itself, False
        self._sought.add(identity)
        try:
            found = self._climb(identity)
        finally:
            self._sought.remove(identity)
        if not self._sought or not self._has_met_itself:
            self._found[identity] = found
            self._has_met_itself = False
        self._has_met_itself |= had_before
        return found

    def find_before(self, inode: Inode) -> tuple[Inode, ...] | None:
        """The way to an inode that has a row at a later time, and perhaps not yet here."""
        way = self.find(inode.identity) or self.find_place(inode.places)
        if way:
            return way
        # What is shown again by a roll-back may have no other row: it was deleted, or is elsewhere;
        # or it has had another one before the roll-back than after it.
        known = (*inode.shown_at, inode.places)
        ways = (self._find_shown(inode.identity, each) for each in known)
        return next(filter(None, ways), None)

    def find_place(self, places: tuple[Place, ...]) -> tuple[Inode, ...] | None:
        """The way to what had no row yet, and so was where its origin had it in its directory."""
        if not places:
            return None
        place, *above = places
        way = self.find(place.parent)
        if way is None:
            way = self.find_place(tuple(above))
        if way is None:
            return None
        child = child_of(self._rows, way[-1] if way else self._root, place.name)
        return (*way, child) if child is not None and child.id == place.shown_as else None

    def _find_shown(self, identity: int, places: tuple[Place, ...]) -> tuple[Inode, ...] | None:
        """The way to what a directory had from an origin, where it later got its row."""
        if not places:
            return None
        place, *above = places
        way = self.find(place.parent)
        if way is None:
            way = self._find_shown(place.parent, tuple(above))
        if way is None:
            return None
        directory = way[-1] if way else self._root
        child = child_of(self._rows, directory, place.name)
        if child is not None and _is_of(child, identity, place):
            return (*way, child)
        moved = self.find_moved(directory, place.name)
        return moved if moved is not None and _is_of(moved[-1], identity, place) else None

    def find_moved(self, directory: Inode, name: bytes) -> tuple[Inode, ...] | None:
        """The way to what an origin has in a directory, and was moved away from there."""
        if directory.is_virtual:
            return None
        left: Whiteout | None = self._rows.get(whiteout_key(directory.children_id, name))
        return self.find(left.moved) or None if left and left.moved else None

    def path(self, identity: int) -> tuple[bytes, ...] | None:
        """The names on that way."""
        found = self.find(identity)
        return None if found is None else tuple(inode.name for inode in found)

    def _climb(self, identity: int) -> tuple[Inode, ...] | None:
        known: Identity | None = self._rows.get(identity_key(identity))
        found = None if known is None else self._climb_from(known.inode_id, identity)
        # What took its place may be gone by a roll-back, by which the original is shown again.
        return found if found is not None else self._climb_from(identity, identity)

    def _climb_from(self, id: int, identity: int) -> tuple[Inode, ...] | None:
        inode: Inode | None = self._rows.get_by_id(Table.INODES, id)
        if inode is None or inode.id == ROOT_ID:
            return None
        way = self._way_to(inode)
        if way is not None:
            return way
        parent = parent_of(self._rows, inode)
        if parent is None:
            return self._find_in_origin(identity, inode)
        above = self.find(parent.identity)
        if above is None:
            return None
        now = above[-1] if above else self._root
        if now.id == parent.id and not now.is_virtual:
            return (*above, inode)
        child = self._child_of(now, inode, identity)
        return None if child is None else (*above, child)

    def _way_to(self, inode: Inode) -> tuple[Inode, ...] | None:
        """The inodes on the way to one that has a row, as have all above it in the tree."""
        if inode.id not in self._ways:
            parent = None if inode.id == ROOT_ID else parent_of(self._rows, inode)
            above = None if parent is None else self._way_to(parent)
            self._ways[inode.id] = None if above is None else (*above, inode)
        return self._ways[inode.id]

    def _child_of(self, directory: Inode, original: Inode, identity: int) -> Inode | None:
        """An inode in a directory that has taken the place of its own, if it is there still."""
        origin = directory.origin
        while origin is not None:
            then: Inode | None = self._rows.at(origin.txid).get_by_id(Table.INODES, original.id)
            if then is not None and then.parent_id == origin.content_id:
                child = child_of(self._rows, directory, then.name)
                if child is not None and child.identity == identity:
                    return child
            origin = origin.below
        return None

    def _find_in_origin(self, identity: int, lost: Inode) -> tuple[Inode, ...] | None:
        """An inode whose directory has other content now, in which it may be found as well."""
        owner = _owner_before(self._rows, lost.parent_id)
        origin = None if owner is None else owner.origin
        while owner is not None and origin is not None:
            names = _names_below(self._rows.at(origin.txid), lost.id, owner.id)
            found = None if names is None else self._walk(owner, names)
            if found is not None and found[-1].identity == identity:
                above = self.find(owner.identity)
                return None if above is None else (*above, *found)
            origin = origin.below
        return None

    def _walk(self, directory: Inode, names: list[bytes]) -> list[Inode] | None:
        found = []
        inode = directory
        for name in names:
            child = child_of(self._rows, inode, name) if inode.is_directory else None
            if child is None:
                return None
            inode = child
            found.append(inode)
        return found


def _is_of(child: Inode, identity: int, place: Place) -> bool:
    """Whether this has its place from the same origin as what has got a row there since."""
    if child.is_virtual:
        return child.id == place.shown_as or child.identity == identity
    before = (*(each[0] for each in child.shown_at), *child.places[:1])
    return any(each.shown_as == place.shown_as for each in before)


def _owner_before(rows: Rows, content_id: int) -> Inode | None:
    """The directory whose content this is or was."""
    owner: Inode | None = rows.get_by_id(Table.INODES, content_id)
    if owner is None:
        content = rows.get(content_key(content_id))
        if content is not None:
            owner = rows.get_by_id(Table.INODES, content.inode_id)
    return owner


def _names_below(then: Rows, id: int, top_id: int) -> list[bytes] | None:
    """The names that led to an inode from one above it, at a moment."""
    names: list[bytes] = []
    inode: Inode | None = then.get_by_id(Table.INODES, id)
    while inode is not None and inode.id != top_id:
        names.append(inode.name)
        inode = parent_of(then, inode)
    return None if inode is None or not names else names[::-1]
