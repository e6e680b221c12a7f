"""Directories whose content began as that of another one, at an earlier moment.

A clone, or a directory that was rolled back, has an *origin*: what it does not have itself it has
from there.  So either is made in constant time, whatever is below.

- A row of the directory's own goes before what the origin has under that name.
- A *whiteout* says that a name is not there, though the origin has it.
- What is found in an origin is *virtual*: it has no row of its own, and the id of the original.
  `materialize` gives it one, with an id of its own, when something is to be changed at or below
  it; so what costs is what is changed.

The origin of a directory is held by a *pin*: a snapshot that nobody sees, counted by those who
have their origin there.

An origin may have one itself: who rolls back to a snapshot of what was rolled back, or clones a
snapshot of a clone, adds a layer.  Each is looked at by whoever looks for a name, so a directory
with many of them is *settled* though its snapshots are there, and beyond a limit none is added.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Sequence

import msgspec

from cairnfs.blocks.holding import newest_row
from cairnfs.blocks.records import Block, block_key
from cairnfs.errors import SnapshotException
from cairnfs.namesystem.inodes import ROOT_ID, Inode, InodeId, Origin, Place
from cairnfs.namesystem.marks import is_marked, put_mark
from cairnfs.store.base import Count, Totals
from cairnfs.store.schema import NUMBER, PAIR, Key, Table
from cairnfs.transaction.moments import Moment, add_moment, remove_moment
from cairnfs.transaction.records import register
from cairnfs.transaction.rows import Rows, ask_all
from cairnfs.transaction.transaction import Counts, Transaction

LAYERS_MANY = 16  # a directory with more is given rows of its own
LAYERS_MAX = 200  # more are not added: they are one in the other in an inode's row

_INODES = int(Table.INODES)
_BLOCKS = int(Table.BLOCKS)
_WHITEOUTS = int(Table.WHITEOUTS)
_CONTENTS = int(Table.CONTENTS)
_IDENTITIES = int(Table.IDENTITIES)

_ABOVE_MAX = 32  # directories above that are noted: of most, one is found by its identity
_SHOWN_MAX = 4  # places that are noted of one inode
_PINS_MAX = 16  # of the origins that show it in one, the oldest ones
_PINNED: Counts = ((int(Count.CHILDREN), 1),)
_RELEASED: Counts = ((int(Count.CHILDREN), -1),)


class Whiteout(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A name that a directory does not have, though its origin has it."""

    moved: int = 0  # the inode that was there, if it was moved, and not deleted


class Content(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Whose content it is that is not kept under the directory's own id."""

    inode_id: InodeId


class Identity(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The inode that has taken the place of one that was found in an origin."""

    inode_id: InodeId


class LayeredQueue(enum.IntEnum):
    """Which directories wait there for rows of their own."""

    UNSETTLED = 0  # until nobody sees a snapshot of the origin's moment
    DEEP = 1  # not at all: there are more than LAYERS_MANY


class Layered(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A note that a directory has an origin, in the order of the origins' TxIDs."""

    after: bytes = b""  # up to here it has rows of its own for all that comes from there


register(Table.LAYERED, Layered)
register(Table.IDENTITIES, Identity)
register(Table.WHITEOUTS, Whiteout)
register(Table.CONTENTS, Content)


def whiteout_key(content_id: int, name: bytes) -> Key:
    return (_WHITEOUTS, content_id, name)


def content_key(content_id: int) -> Key:
    return (_CONTENTS, 0, NUMBER.pack(content_id))


def layered_key(origin: Origin, inode_id: int) -> Key:
    is_deep = count_layers(origin) > LAYERS_MANY
    queue = LayeredQueue.DEEP if is_deep else LayeredQueue.UNSETTLED
    return (int(Table.LAYERED), int(queue), PAIR.pack(origin.txid, inode_id))


def identity_key(identity: int) -> Key:
    return (_IDENTITIES, 0, NUMBER.pack(identity))


# Looking.


def child_of(rows: Rows, directory: Inode, name: bytes) -> Inode | None:
    """What a directory has under a name, itself or from its origin."""
    if not directory.is_virtual:
        child: Inode | None = rows.get((_INODES, directory.children_id, name))
        if child is not None or directory.origin is None:
            return child
        if rows.get(whiteout_key(directory.children_id, name)) is not None:
            return None
    return _child_of_origin(rows, directory.origin, name)


def totals_of(rows: Rows, directory: Inode) -> Totals:
    """A directory's totals, wherever it is found."""
    if directory.is_virtual:
        assert directory.origin is not None
        return copied(rows.at(directory.origin.txid).totals(directory.id))
    return rows.totals(directory.id)


def copied(totals: Totals) -> Totals:
    """The totals of a copy: it has no snapshots, and what was being written is closed in it."""
    counts = list(totals.counts)
    for count in (Count.SPACE_BYTES, Count.DISK_BYTES):
        counts[count] -= counts[Count.RESERVED_BYTES]
    counts[Count.RESERVED_BYTES] = counts[Count.SNAPSHOTS] = 0
    return totals._replace(counts=tuple(counts))


def below_totals(totals: Totals) -> Counts:
    """What a directory's content counts for in the directories above it."""
    return tuple(
        (count, number)
        for count, number in enumerate(totals.counts)
        if count not in (Count.CHILDREN, Count.SNAPSHOTS)
    )


def parent_of(rows: Rows, inode: Inode) -> Inode | None:
    """The directory that has this inode; None: it was taken away from it, or is the root."""
    return owner_of_content(rows, inode.parent_id)


def owner_of_content(rows: Rows, content_id: int) -> Inode | None:
    """The directory that has its children's rows below this id."""
    owner: Inode | None = rows.get_by_id(Table.INODES, content_id)
    if owner is None:
        content: Content | None = rows.get(content_key(content_id))
        if content is None:
            return None
        owner = rows.get_by_id(Table.INODES, content.inode_id)
    return None if owner is None or owner.children_id != content_id else owner


def is_anywhere(rows: Rows, id: int) -> bool:
    """Whether an inode with a row is in the tree, wherever."""
    found: Inode | None = rows.get_by_id(Table.INODES, id)
    while found is not None and found.id != ROOT_ID:
        found = parent_of(rows, found)
    return found is not None


def rows_of_blocks(rows: Rows, file: Inode) -> tuple[Rows, InodeId]:
    """Where the blocks of a file are kept, and under which id."""
    if file.is_virtual:
        assert file.origin is not None
        return rows.at(file.origin.txid), InodeId(file.origin.content_id)
    return rows, file.id


def count_layers(origin: Origin | None) -> int:
    """How many origins there are, each of the one before."""
    count = 0
    while origin is not None:
        count, origin = count + 1, origin.below
    return count


def check_layers(path: str, origin: Origin | None, done: str) -> None:
    """Raise an error if an origin has so many below it that it cannot be that of another."""
    if count_layers(origin) >= LAYERS_MAX:
        raise SnapshotException(
            f"{path} cannot be {done} by this snapshot: what it shows comes from {LAYERS_MAX}"
            " others that had it from each other; use an earlier one, or take one later: what the"
            " directory has from snapshots gets rows of its own in the background"
        )


def own_origins(directory: Inode) -> Iterator[Origin]:
    """Those that were the directory's own content, the newest first."""
    origin = directory.origin
    while origin is not None and origin.is_own:
        yield origin
        origin = origin.below


def pins_of(directory: Inode, child: Inode) -> tuple[int, ...]:
    """The pins of a directory's origins, down to the one that it has a virtual child from."""
    assert child.origin is not None
    pins: list[int] = []
    origin = directory.origin
    while origin is not None and child.origin.pin not in pins:
        pins.append(origin.pin)
        origin = origin.below
    return tuple(pins)


# Changing.


def note_layered(tx: Transaction, origin: Origin, inode_id: int) -> None:
    """Put down that a directory has an origin, for it to be settled when that is time."""
    key = layered_key(origin, inode_id)
    tx.get(key)
    tx.put(key, Layered())


def forget_layered(tx: Transaction, origin: Origin, inode_id: int) -> None:
    key = layered_key(origin, inode_id)
    if tx.get(key) is not None:
        tx.delete(key)


def hide(tx: Transaction, directory: Inode, name: bytes, *, moved: int = 0) -> None:
    """A name is taken out of a directory; its origin may still have it."""
    if directory.origin is None:
        return
    key = whiteout_key(directory.children_id, name)
    if tx.get(key) is None and _child_of_origin(tx, directory.origin, name) is not None:
        tx.put(key, Whiteout(moved))


def materialize(tx: Transaction, inodes: tuple[Inode, ...]) -> tuple[Inode, ...]:
    """The inodes along a path, each with a row of its own."""
    if not inodes[-1].is_virtual:  # and whatever is below a virtual one is virtual
        return inodes
    way: list[Inode] = []
    for inode in inodes:
        way.append(_materialize(tx, way[-1], inode) if inode.is_virtual else inode)
    return tuple(way)


def materialize_all(tx: Transaction, directory: Inode, children: Sequence[Inode]) -> list[Inode]:
    """The children of a directory that has a row, each with its own; no more reads than for one."""
    virtual = [child for child in children if child.is_virtual]
    tx.need(
        keys=[
            key
            for child in virtual
            for key in (
                (_INODES, directory.children_id, child.name),
                identity_key(child.identity),
            )
        ],
        ids=[(_INODES, child.identity) for child in virtual],
    )
    ask_all(lambda child: totals_of(tx, child), [c for c in virtual if c.is_directory])
    ask_all(lambda child: shared_blocks(tx, child), [c for c in virtual if c.is_file])
    return [materialize(tx, (directory, child))[-1] for child in children]


def pin(
    tx: Transaction,
    inode_id: InodeId,
    content_id: int,
    txid: int,
    below: Origin | None,
    *,
    is_own: bool = False,
) -> Origin:
    """Hold a directory as it was after a TxID, as an origin for another one."""
    number = tx.next_inode_id()
    add_moment(tx, number, Moment(txid, inode_id))
    tx.add(number, _PINNED)
    return Origin(content_id, txid, number, below, is_own)


def share(tx: Transaction, origin: Origin) -> Origin:
    """The same origin for another directory, of which it was the content."""
    tx.add(origin.pin, _PINNED)
    return msgspec.structs.replace(origin, is_own=True)


def of_another(origin: Origin | None) -> Origin | None:
    """The same for a clone of a directory that was rolled back, whose own content it was."""
    if origin is None:
        return None
    return msgspec.structs.replace(origin, below=of_another(origin.below), is_own=False)


def release(tx: Transaction, origin: Origin) -> Key | None:
    """One less has its origin there; if it was the last, the key of the pin, which is gone."""
    tx.add(origin.pin, _RELEASED)
    used = tx.totals(origin.pin).counts[Count.CHILDREN] + tx.added(origin.pin)[Count.CHILDREN]
    if used > 0:
        return None
    key = remove_moment(tx, origin.txid, origin.pin)
    tx.drop_totals(origin.pin)
    return key


def _materialize(tx: Transaction, parent: Inode, inode: Inode) -> Inode:
    id = InodeId(tx.next_inode_id())
    assert inode.origin is not None
    is_own = inode.origin.is_own
    # What is shown under the id of one that is in the tree is another one.
    other = _known_as(tx, inode.identity) if is_own else None
    pins = _pins_since(pins_of(parent, inode), other)
    place = Place(parent.identity, inode.name, inode.id, pins)
    own = msgspec.structs.replace(
        inode,
        id=id,
        parent_id=InodeId(parent.children_id),
        is_virtual=False,
        origin=inode.origin if inode.is_directory else None,
        covered_txid=0,
        is_snapshottable=False,
        snapshots=0,
        known_as=inode.identity if is_own and other is None else 0,
        places=inode.places if is_own else (place, *parent.places),
        shown_at=_shown_at(place, parent, inode) if is_own else (),
    )
    if own.known_as:
        tx.put(identity_key(own.known_as), Identity(id))
    key = (_INODES, own.parent_id, own.name)
    tx.get(key)
    tx.put(key, own)
    if is_marked(own):
        put_mark(tx, own)
    if inode.is_directory:
        totals = totals_of(tx, inode)
        counts = tuple((count, number) for count, number in enumerate(totals.counts) if number)
        tx.add(id, counts, mtime_ms=totals.mtime_ms if totals.touched else -1)
        tx.add(inode.origin.pin, _PINNED)
        tx.put_new(layered_key(inode.origin, id), Layered())
    elif inode.is_file:
        copy_blocks(tx, inode, id)
    return own


def forget_identity(
    tx: Transaction, inode: Inode, holder_of: Callable[[int], int] | None = None
) -> None:
    """An inode goes that was known under another id.

    `holder_of` returns the TxID of the latest snapshot at or after a TxID, or 0, if the transaction
    does not know which snapshots cover the inode.
    """
    if inode.known_as:
        key = identity_key(inode.known_as)
        known: Identity | None = tx.get(key)
        if known is not None and known.inode_id == inode.id:
            holder = 0 if holder_of is None else holder_of(tx.since(key))
            if holder:
                tx.keep(key, holder)
            tx.delete(key)


def _known_as(tx: Transaction, identity: int) -> Inode | None:
    """The inode of the tree that is known under an id, if it has a row."""
    known: Identity | None = tx.get(identity_key(identity))
    id = identity if known is None else known.inode_id
    return tx.get_by_id(Table.INODES, id) if is_anywhere(tx, id) else None


def _pins_since(pins: tuple[int, ...], other: Inode | None) -> tuple[int, ...]:
    """The roll-backs that show it since the other one of its id, if there is one, got its row."""
    others = {pin for each in (other.shown_at if other else ()) for pin in each[0].pins}
    while pins and pins[-1] in others:
        pins = pins[:-1]
    return pins[-_PINS_MAX:]


def _shown_at(place: Place, parent: Inode, inode: Inode) -> tuple[tuple[Place, ...], ...]:
    above = parent.shown_at[0] if parent.shown_at else ()
    where = place.parent, place.name
    earlier = (each for each in inode.shown_at if (each[0].parent, each[0].name) != where)
    return ((place, *above)[:_ABOVE_MAX], *earlier)[:_SHOWN_MAX]


def copy_blocks(tx: Transaction, virtual: Inode, id: InodeId) -> None:
    """A file of its own for what is shared with the original: pointers to the same blocks."""
    for index, block in enumerate(shared_blocks(tx, virtual)):
        tx.put_new(block_key(id, index), block)


def shared_blocks(tx: Transaction, virtual: Inode) -> list[Block]:
    """The blocks of a file in an origin, as far as it had them then and as they are now."""
    rows, original = rows_of_blocks(tx, virtual)
    keys = [block_key(original, index) for index in range(virtual.block_count)]
    rows.need(keys)
    all_then: list[Block | None] = [rows.get(key) for key in keys]
    tx.need(ids=[(_BLOCKS, then.id) for then in all_then if then is not None])
    blocks = []
    for index, then in enumerate(all_then):
        assert then is not None, f"inode {original} lacks block {index}"
        found = newest_row(tx, then.id)
        assert found is not None, f"{then} is needed, but has no row"
        blocks.append(_pointer(found[1], then.length_bytes))
    return blocks


def _pointer(block: Block, length_bytes: int) -> Block:
    """The block as far as another file has it."""
    return msgspec.structs.replace(
        block.completed(),
        length_bytes=length_bytes,
        stored_bytes=block.replica_bytes,
        held_bytes=0,
    )


def _child_of_origin(rows: Rows, origin: Origin | None, name: bytes) -> Inode | None:
    while origin is not None:
        then = rows.at(origin.txid)
        child: Inode | None = then.get((_INODES, origin.content_id, name))
        if child is not None:
            return virtual(child, origin)
        if then.get(whiteout_key(origin.content_id, name)) is not None:
            return None
        origin = origin.below
    return None


def as_virtual(file: Inode, txid: int) -> Inode:
    """A file as it was, by which its blocks of then are found."""
    return msgspec.structs.replace(file.closed, is_virtual=True, origin=Origin(file.id, txid, 0))


def virtual(child: Inode, origin: Origin) -> Inode:
    """What an origin has, as a directory has it from there."""
    if child.is_directory:
        below = child.origin if origin.is_own else of_another(child.origin)
        own = Origin(child.children_id, origin.txid, origin.pin, below, origin.is_own)
    else:
        own = Origin(child.id, origin.txid, origin.pin, is_own=origin.is_own)
    return msgspec.structs.replace(
        child.closed,
        is_virtual=True,
        origin=own,
        content_id=0,
        is_snapshottable=False,
        snapshots=0,
    )
