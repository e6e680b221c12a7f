"""What has no row of its own: all that directories have from their origins, in one order.

A directory with an origin has a note (`layers`), under which comes what is virtual in it and
below.  What has a row there is not gone into: a directory with an origin has a note of its own,
and below one without any nothing is virtual.  So nothing is met twice, and what it costs is the
names of these directories, each read behind the last one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, NamedTuple

import msgspec

from cairnfs.namesystem.inodes import Inode
from cairnfs.namesystem.layered_children import NAMES_MAX, some_children_of
from cairnfs.namesystem.layers import LayeredQueue, child_of, layered_key
from cairnfs.namesystem.lookup import path_of
from cairnfs.namesystem.paths import FsPath
from cairnfs.namesystem.tree_parts import Names
from cairnfs.store.schema import PAIR, Table
from cairnfs.transaction.transaction import Transaction

DIRECTORY_COST = 20  # names that could be passed on while one is opened
_NOTES_PAGE = 100
_NAMES_FIRST = 50  # read of a directory: whoever goes on does so in all those above, too

_Number = Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]


class Reached(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """How far it was looked at: up to a name at or below the directory of a note."""

    queue: LayeredQueue = LayeredQueue.UNSETTLED
    txid: _Number = 0
    inode_id: _Number = 0
    names: Names = ()  # on the way from that directory; none: all of it was looked at


class Met(NamedTuple):
    """A file or directory without a row, where it is, and what it has cost to come there."""

    reached: Reached
    path: FsPath
    inode: Inode | None  # None: there is nothing here, but somebody may pause
    cost: int


def virtual_behind(tx: Transaction, reached: Reached, near: FsPath) -> Iterator[Met]:
    """What comes behind that, of directories above, at and below a path."""
    for queue in LayeredQueue:
        after = PAIR.pack(0, 0)
        if queue < reached.queue:
            continue
        if queue == reached.queue:
            after = PAIR.pack(reached.txid, reached.inode_id)
            if reached.names:
                yield from _behind_note(tx, queue, after, reached.names, near)
        while page := tx.scan(Table.LAYERED, queue, after, _NOTES_PAGE):
            for key, _ in page:
                yield from _behind_note(tx, queue, key[2], (), near)
            after = page[-1][0][2]


def _behind_note(
    tx: Transaction, queue: LayeredQueue, note: bytes, names: Names, near: FsPath
) -> Iterator[Met]:
    txid, id = PAIR.unpack(note)
    directory: Inode | None = tx.get_by_id(Table.INODES, id)
    origin = None if directory is None else directory.origin
    path = path_of(tx, id)
    is_noted = origin is not None and layered_key(origin, id)[1:] == (queue, note)
    if is_noted and path is not None and _is_near(path, near):
        assert directory is not None
        depth = len(path.components)
        for child_path, child, cost in _behind(tx, path, directory, names):
            reached = Reached(queue, txid, id, child_path.components[depth:])
            yield Met(reached, child_path, child, cost)
    yield Met(Reached(queue, txid, id), near, None, DIRECTORY_COST)


def _is_near(path: FsPath, near: FsPath) -> bool:
    return path == near or path.is_ancestor_of(near) or near.is_ancestor_of(path)


_Child = tuple[FsPath, Inode | None, int]


def _behind(tx: Transaction, path: FsPath, directory: Inode, names: Names) -> Iterator[_Child]:
    """What is virtual below a directory, behind these names; a directory, then what is in it."""
    way = [(path, directory)]
    for name in names:
        path, directory = way[-1]
        child = child_of(tx, directory, name)
        if child is None or not (child.is_virtual and child.is_directory):
            break  # it was settled or deleted meanwhile
        way.append((path.child(name), child))
    open = [_children(tx, *each, name) for each, name in zip(way, (*names, b""), strict=False)]
    while open:
        met = next(open[-1], None)
        if met is None:
            open.pop()
            continue
        yield met
        path, found, _ = met
        if found is not None and found.is_directory:
            open.append(_children(tx, path, found, b""))


def _children(tx: Transaction, path: FsPath, directory: Inode, after: bytes) -> Iterator[_Child]:
    limit = _NAMES_FIRST
    while True:
        page, after = some_children_of(tx, directory, after, limit)
        for child in page:
            cost = DIRECTORY_COST if child.is_directory else 1
            yield path.child(child.name), child if child.is_virtual else None, cost
        if not after:
            return
        if len(page) < limit:
            yield path.child(after), None, NAMES_MAX  # of them nearly all are hidden
        limit = min(2 * limit, NAMES_MAX)
