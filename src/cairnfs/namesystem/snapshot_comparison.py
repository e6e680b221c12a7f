"""The two states that a diff compares: walking both trees at once, and what differs in them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from cairnfs.blocks.records import block_key
from cairnfs.namesystem.counterparts import (
    Counterparts,
    Names,
    Side,
    is_cloned,
    is_plain,
)
from cairnfs.namesystem.identity import Way
from cairnfs.namesystem.inodes import Inode, InodeId, XAttr
from cairnfs.namesystem.layered_children import children_of
from cairnfs.namesystem.layers import child_of, identity_key, is_anywhere, rows_of_blocks
from cairnfs.store.base import FOREVER, PRESENT, Count
from cairnfs.store.schema import Table
from cairnfs.transaction.rows import PastRows

Pair = tuple[Inode | None, Inode | None]
"""What a name stands for on the old side and on the new one."""

_PAGE = 500
_BLOCKS_AHEAD = 4  # of each file, which most do not exceed


class Directory(msgspec.Struct, frozen=True, gc=False):
    """A directory that is walked: where it is on either side, if it is there."""

    old: Inode | None
    new: Inode | None
    old_path: Names = ()
    new_path: Names = ()
    txid: int = 0  # that of the later side, or one that it is in, was written by
    is_layered: bool = False  # it, or one that it is in, has got other content (`layers`)


class Comparison:
    """Two states of a tree; each may be the earlier one."""

    def __init__(self, old: Side, new: Side, check: Callable[[Inode, Names], None]) -> None:
        self.old = old
        self.new = new
        self.earlier, self.later = sorted((old, new), key=lambda side: side.txid)
        self._check = check
        self._counterparts = Counterparts(old, new)

    @property
    def is_over(self) -> bool:
        """Whether both are the same moment."""
        return self.old.txid == self.new.txid

    def turned(self) -> Comparison:
        """The same the other way round."""
        return Comparison(self.new, self.old, self._check)

    # Walking.

    def pairs(self, directory: Directory, start: bytes = b"") -> Iterator[Pair]:
        """The children of both sides, by name from `start` on; those may be told that are asked."""
        for inode, path in (
            (directory.old, directory.old_path),
            (directory.new, directory.new_path),
        ):
            if inode is not None:
                self._check(inode, path)
        if start:
            first = (
                None if directory.old is None else child_of(self.old.rows, directory.old, start),
                None if directory.new is None else child_of(self.new.rows, directory.new, start),
            )
            if first != (None, None):
                yield first
        if self._is_flat(directory):
            old, new = (
                self._changed_children(side, inode, start)
                for side, inode in ((self.old, directory.old), (self.new, directory.new))
            )
        else:
            old = _children(self.old.rows, directory.old, start)
            new = _children(self.new.rows, directory.new, start)
        for page in _pages(_merge(old, new)):
            self._prefetch(page)
            yield from page

    def _is_flat(self, directory: Directory) -> bool:
        """Whether a directory has had no directories, at either moment: then a child that has not
        changed is of no interest, and only rows that were written between are read."""
        old, new = directory.old, directory.new
        if old is None or new is None or old.is_virtual or new.is_virtual:
            return False
        return not _is_layered(old, new) and not any(
            side.rows.totals(old.id).counts[Count.DIRECTORIES] for side in (self.old, self.new)
        )

    def _changed_children(
        self, side: Side, directory: Inode | None, after: bytes
    ) -> Iterator[Inode]:
        """Those of a flat directory whose rows on the two sides are not the same."""
        assert directory is not None
        since, until = 0, FOREVER
        if side is self.later:
            since = self.earlier.txid + 1
        else:
            until = self.later.txid
        id = directory.children_id
        while page := side.rows.scan(Table.INODES, id, after, _PAGE, since=since, until=until):
            yield from (inode for _, inode in page)
            if len(page) < _PAGE:
                return
            after = page[-1][0][2]

    def _prefetch(self, page: list[Pair]) -> None:
        """What will be asked of these, in one read of a shared store."""
        totals = [
            inode.id
            for pair in page
            for inode in pair
            if inode is not None and inode.is_directory and not inode.is_virtual
        ]
        ids = [
            inode.identity
            for old, new in page
            if old is None or new is None or not _is_one(old, new)
            for inode in (old, new)
            if inode is not None
        ]
        keys = [identity_key(id) for id in ids]
        keys += [
            block_key(inode.id, index)
            for pair in page
            if pair[0] != pair[1]
            for inode in pair
            if inode is not None and is_plain(inode)
            for index in range(min(inode.block_count, _BLOCKS_AHEAD))
        ]
        for side in (self.old, self.new):
            side.rows.need(
                keys=keys,
                totals=totals if side is self.later else (),
                ids=[(int(Table.INODES), id) for id in ids],
            )

    def is_changed(self, old: Inode, new: Inode) -> bool:
        """Whether anything below a directory that is on both sides may be different."""
        if old.is_virtual and new.is_virtual:
            return old.origin != new.origin
        if old.is_virtual or new.is_virtual or old.children_id != new.children_id:
            return True
        return self.later.rows.totals(old.id).changed > self.earlier.txid

    def may_have_lost(self, directory: Inode, *, is_layered: bool) -> bool:
        """Whether something below a directory that is on one side only may be on the other."""
        if is_layered or directory.is_virtual or directory.origin is not None:
            return True
        changed = self.later.rows.totals(directory.id).changed
        return changed == 0 or changed > self.earlier.txid

    # Which is which.

    def is_same(self, directory: Directory, old: Inode, new: Inode) -> bool:
        """Whether what is under one name in both is one inode."""
        if is_plain(old) and is_plain(new):
            return old.id == new.id
        old_path, new_path = (*directory.old_path, old.name), (*directory.new_path, new.name)
        return self._counterparts.are_same(old_path, old, new_path, new)

    def find_new(self, path: Names, inode: Inode) -> Way | None:
        """The way to where an inode of the old side is on the new one."""
        return self._counterparts.find_new(path, inode)

    def find_old(self, path: Names, inode: Inode) -> Way | None:
        """The way to where an inode of the new side was on the old one."""
        return self._counterparts.find_old(path, inode)

    def id_of_both(self, old: Inode, new: Inode) -> int:
        """By which both ends of a move are known, and no other move: what is cloned has none."""
        return old.identity if is_cloned(new) else new.identity

    def is_walked(self, way: Way) -> bool:
        """Whether who walks the old side comes to the end of a way of it.

        A directory below which nothing has changed is passed over, also one that is gone: what
        has come from there since, by a roll-back, is not the same.
        """
        is_layered = _is_layered(self.old.root, self.new.root)
        path: Names = ()
        for inode in way[:-1]:
            path = (*path, inode.name)
            found = self.find_new(path, inode)
            if found is None:
                if not self.may_have_lost(inode, is_layered=is_layered):
                    return False
            elif not self.is_changed(inode, found[-1]):
                return False
            else:
                is_layered = is_layered or _is_layered(inode, found[-1])
        return True

    def below(
        self,
        directory: Directory,
        old: Inode | None,
        new: Inode | None,
        old_path: Names,
        new_path: Names,
        txid: int,
    ) -> Directory:
        """A directory to go on with, of one that is walked."""
        is_layered = directory.is_layered or (
            old is not None and new is not None and _is_layered(old, new)
        )
        return Directory(old, new, old_path, new_path, txid, is_layered)

    def is_from_elsewhere(self, inode: Inode, side: Side) -> bool:
        """Whether what is in one tree only, on this side, is or was outside of the other one."""
        if inode.is_virtual:
            return False
        if side is self.earlier:
            now = self.later.rows.at(PRESENT)
            return is_anywhere(self.later.rows, inode.id) or is_anywhere(now, inode.id)
        entered = inode.entered
        if entered is not None and entered[0] < self.earlier.txid <= entered[1]:
            return True
        return is_anywhere(self.earlier.rows, inode.id)

    # What is different.

    def is_rewritten(self, old: Inode, new: Inode) -> bool:
        """Whether a file has other content."""
        if not old.is_file or not new.is_file:
            return False
        if old.visible_bytes != new.visible_bytes:
            return True
        return _content(self.old.rows, old) != _content(self.new.rows, new)


def _is_layered(old: Inode, new: Inode) -> bool:
    """Whether the content of a directory is not what it was, or began as that of another one."""
    return old.children_id != new.children_id or old.origin is not None or new.origin is not None


def _is_one(old: Inode, new: Inode) -> bool:
    return old.identity == new.identity and is_plain(old) and is_plain(new)


def _content(rows: PastRows, file: Inode) -> list[tuple[int, int]]:
    """The blocks of a file, and how much of each it has."""
    then, id = rows_of_blocks(rows, file)
    keys = [block_key(id, index) for index in range(file.block_count)]
    then.need(keys)
    blocks = [then.get(key) for key in keys]
    return [(block.id, block.length_bytes) for block in blocks if block and block.length_bytes]


def _children(rows: PastRows, directory: Inode | None, after: bytes) -> Iterator[Inode]:
    while directory is not None and (page := children_of(rows, directory, after, _PAGE)):
        yield from page
        if len(page) < _PAGE:
            return
        after = page[-1].name


def _merge(old: Iterator[Inode], new: Iterator[Inode]) -> Iterator[Pair]:
    """Two lists of children in order of names as one: never more than a page of each is read."""
    left, right = next(old, None), next(new, None)
    while left is not None or right is not None:
        if right is None or (left is not None and left.name < right.name):
            yield left, None
            left = next(old, None)
        elif left is None or right.name < left.name:
            yield None, right
            right = next(new, None)
        else:
            yield left, right
            left, right = next(old, None), next(new, None)


def _pages(pairs: Iterator[Pair]) -> Iterator[list[Pair]]:
    page = []
    for pair in pairs:
        page.append(pair)
        if len(page) == _PAGE:
            yield page
            page = []
    yield page


def name_of(pair: Pair) -> bytes:
    inode = pair[0] or pair[1]
    assert inode is not None
    return inode.name


def is_modified(old: Inode, new: Inode) -> bool:
    """Whether more than place, times, content, and what is noted for snapshots is different."""
    return old != new and _essence(old) != _essence(new)


def _essence(inode: Inode) -> Inode:
    """The inode without what snapshots do not track, and what they change themselves."""
    return msgspec.structs.replace(
        inode.closed,
        parent_id=InodeId(0),
        name=b"",
        atime_ms=0,
        mtime_ms=0,  # of a file: looked at where its content may be another one
        block_count=0,
        covered_txid=0,
        is_snapshottable=False,
        snapshots=0,
        content_id=0,
        origin=None,
        is_virtual=False,
        known_as=0,
        places=(),
        shown_at=(),
        id=InodeId(0),
        held_replication=0,
        marks=0,
        entered=None,
        xattrs=_without_txids(inode.xattrs),
        renamed=0,
        restored=0,
        declared=(),
        charged_policy=0,  # of the directory that it is in, and noted here by the satisfier
        reserved_bytes=0,
    )


def _without_txids(xattrs: tuple[XAttr, ...] | None) -> tuple[XAttr, ...] | None:
    """Attributes as they were decided here; one that was kept was there before, from above."""
    if xattrs is None or not any(each.set for each in xattrs):
        return xattrs
    own = (msgspec.structs.replace(each, set=0) for each in xattrs if not each.is_kept)
    return tuple(own) or None
