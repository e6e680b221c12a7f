"""Which inode is which, also where one has got a row, and so an id, of its own.

What is found in an origin is shown under the id of the original (`layers`).  If the origin was the
directory's own content, before a roll-back, what gets a row of its own is still the same to
whoever compares two moments: its *identity* is the id that it was shown under before.  In a clone
it is another one than the original: its identity is its own id, and it knows its place from before
(`counterparts`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from cairnfs.namesystem.inodes import ROOT_ID, Inode, Origin, Place
from cairnfs.namesystem.layers import (
    Identity,
    Whiteout,
    child_of,
    content_key,
    identity_key,
    is_anywhere,
    own_origins,
    owner_of_content,
    parent_of,
    pins_of,
    whiteout_key,
)
from cairnfs.store.schema import Table
from cairnfs.transaction.rows import Rows, ask_all

Way = tuple[Inode, ...]
Ways = tuple[Way, ...]
Match = Callable[[Inode, Inode, Place, int], bool]  # a child, its directory, what was noted of it


class Finder:
    """Finds inodes by their identity in one tree, at one moment."""

    def __init__(self, rows: Rows, root: Inode) -> None:
        self._rows = rows
        self._root = root
        self._found: dict[int, Way | None] = {root.identity: ()}
        self._ways: dict[int, Way | None] = {} if root.is_virtual else {root.id: ()}
        self._sought: set[int] = set()
        self._has_met_itself = False
        self._layers: list[Finder] | None = None  # for what the root shows of earlier times

    def find(self, identity: int) -> Way | None:
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

    def find_before(self, inode: Inode) -> Way | None:
        """The way to an inode that has a row at a later time, and perhaps not yet here."""
        return next((way for ways in self._candidates(inode) for way in ways), None)

    def find_all_before(self, inodes: Sequence[Inode]) -> list[Way | None]:
        """The same for several that are there now; who has the better reason gets a way alone."""
        ways: list[Way | None] = [None] * len(inodes)
        taken: set[tuple[bytes, ...]] = set()
        # Among those with equal reasons, to what is lost otherwise.
        order = sorted(range(len(inodes)), key=lambda n: inodes[n].snapshots == 0)
        for reason in zip(*ask_all(self._candidates_of_present, inodes), strict=True):
            for n in order:
                for way in reason[n]:
                    names = tuple(inode.name for inode in way)
                    if ways[n] is None and names not in taken:
                        ways[n] = way
                        taken.add(names)
        return ways

    def _candidates_of_present(self, inode: Inode) -> tuple[Ways, Ways, Ways, Ways]:
        """The same for what has had its row without a break since it got it."""
        never_shown = not inode.shown_at and not inode.places
        if never_shown or is_anywhere(self._rows, inode.id):
            way = self.find(inode.identity)  # or it was outside of this tree, or not made yet
            is_it = way and way[-1].id == inode.id and not way[-1].is_virtual
            return ((way,) if way and is_it else ()), (), (), ()
        return self._candidates(inode)

    def _candidates(self, inode: Inode) -> tuple[Ways, Ways, Ways, Ways]:
        """What it may have been, by reason: it has the same row; it was shown in the same place by
        the same roll-back; it has the same identity; it comes from the same original.
        """
        identity = inode.identity
        known = self._find_or_look_before(identity)
        if known and known[-1].id == inode.id and not known[-1].is_virtual:
            return (known,), (), (), ()
        # What is shown again by a roll-back may have no other row: it was deleted, or is elsewhere;
        # or it has had another one before the roll-back than after it.
        own = _places_of_its_own(inode)
        shown = ask_all(lambda each: self._find_shown(identity, each, _is_the_same), own)
        likely = [self.find_place(inode.places)]
        if not _is_another(inode):
            places = (*inode.shown_at, inode.places)
            likely += ask_all(lambda each: self._find_shown(identity, each, _is_alike), places)
        return (), _found(shown), _found([known]), _found(likely)

    def find_place(self, places: tuple[Place, ...]) -> Way | None:
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

    def _find_shown(self, identity: int, places: tuple[Place, ...], is_it: Match) -> Way | None:
        """The way to what a directory had from an origin, where it later got its row."""
        if not places:
            return None
        place, *above = places
        way = self.find(place.parent)
        if way is None:
            way = self._find_shown(place.parent, tuple(above), _is_alike)
        if way is None:
            return None
        directory = way[-1] if way else self._root
        child = child_of(self._rows, directory, place.name)
        if child is not None and is_it(child, directory, place, identity):
            return (*way, child)
        moved = self.find_moved(directory, place.name)
        return moved if moved and is_it(moved[-1], directory, place, identity) else None

    def find_moved(self, directory: Inode, name: bytes) -> Way | None:
        """The way to what an origin has in a directory, and was moved away from there."""
        if directory.is_virtual:
            return None
        left: Whiteout | None = self._rows.get(whiteout_key(directory.children_id, name))
        return self.find(left.moved) or None if left and left.moved else None

    def path(self, identity: int) -> tuple[bytes, ...] | None:
        """The names on that way."""
        found = self.find(identity)
        return None if found is None else tuple(inode.name for inode in found)

    def _climb(self, identity: int) -> Way | None:
        known: Identity | None = self._rows.get(identity_key(identity))
        found = None if known is None else self._climb_from(known.inode_id, identity)
        # What took its place may be gone by a roll-back, by which the original is shown again.
        return found if found is not None else self._climb_from(identity, identity)

    def _climb_from(self, id: int, identity: int) -> Way | None:
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

    def _way_to(self, inode: Inode) -> Way | None:
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

    def _find_in_origin(self, identity: int, lost: Inode) -> Way | None:
        """An inode whose directory has other content now, in which it may be found as well."""
        owner = _owner_before(self._rows, lost.parent_id)
        above = None if owner is None else self.find(owner.identity)
        if owner is None or above is None:
            return None
        directory = above[-1] if above else self._root  # which may have taken the owner's place
        origin = owner.origin
        while origin is not None:
            names = _names_below(self._rows.at(origin.txid), lost.id, owner.id)
            found = None if names is None else self._walk(directory, names)
            if found is not None and found[-1].identity == identity:
                return (*above, *found)
            origin = origin.below
        return None

    def _find_or_look_before(self, identity: int) -> Way | None:
        """Also where the root has it from an earlier time, and no row tells of it."""
        found = self.find(identity)
        if found is not None:
            return found or None
        if self._layers is None:
            self._layers = ask_all(self._layer, own_origins(self._root))
        for before in ask_all(lambda layer: layer.find(identity), self._layers):
            way = self._walk(self._root, [inode.name for inode in before]) if before else None
            if way and way[-1].identity == identity:
                return tuple(way)
        return None

    def _layer(self, origin: Origin) -> Finder:
        """The tree as it was where the root has this content from."""
        then = self._rows.at(origin.txid)
        owner = owner_of_content(then, origin.content_id)
        assert owner is not None, f"{origin} is held, but has no directory"
        return Finder(then, owner)

    def _walk(self, directory: Inode, names: Sequence[bytes]) -> list[Inode] | None:
        found = []
        inode = directory
        for name in names:
            child = child_of(self._rows, inode, name) if inode.is_directory else None
            if child is None:
                return None
            inode = child
            found.append(inode)
        return found


def _found(ways: Iterable[Way | None]) -> Ways:
    return tuple(way for way in ways if way)


def _is_another(inode: Inode) -> bool:
    """Whether it got its row while what it was shown as was in the tree: it is not that one."""
    return bool(inode.shown_at) and not inode.known_as


def _places_of_its_own(inode: Inode) -> tuple[tuple[Place, ...], ...]:
    """Where it was shown itself; the earlier places may be those of the one that it is not."""
    return inode.shown_at[:1] if _is_another(inode) else inode.shown_at


def _is_the_same(child: Inode, directory: Inode, place: Place, identity: int) -> bool:
    """Whether both were shown there by the same roll-back: each shows one, and not another's."""
    if child.is_virtual:
        shown = [(child.id, pins_of(directory, child))]
    else:
        shown = [(each[0].shown_as, each[0].pins) for each in _places_of_its_own(child)]
    return any(id == place.shown_as and not set(pins).isdisjoint(place.pins) for id, pins in shown)


def _is_alike(child: Inode, directory: Inode, place: Place, identity: int) -> bool:
    """Whether it has its place at least from the same original."""
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
