"""Settling: what a directory has from an origin gets rows of its own, until it needs none.

A clone, or a directory that was rolled back, holds its origin, and so everything that was there
at that moment, also what has been deleted since.  As long as the snapshot is there, that
costs nothing.  Once it is deleted, this ends it, and also if there are too many origins, one
behind another: in bounded steps, each a transaction of its own, so it can stop and go on
anywhere, on any NameNode.  To readers nothing changes.

Invariant: a name that an origin has, and that was settled, stays so; whoever takes it out of the
directory leaves a whiteout.
"""

from __future__ import annotations

import msgspec

from cairnfs.namesystem.inodes import Inode, InodeId, Kind
from cairnfs.namesystem.layered_children import some_children_of
from cairnfs.namesystem.layers import Layered, materialize_all
from cairnfs.namesystem.lookup import key_of, path_of, resolve
from cairnfs.namesystem.orphans import Orphan, orphan_key
from cairnfs.namesystem.outstanding import NOTHING_LEFT, Looked
from cairnfs.store.schema import PAIR, Key, Table
from cairnfs.transaction.calls import operation
from cairnfs.transaction.transaction import Transaction

SETTLE_BATCH = 32  # rows of a directory given by one transaction: other callers wait for it


@operation()
def settle(tx: Transaction, key: Key) -> Looked:
    """Give a page of what a directory has from its origin rows of its own; at the end, no origin.

    `key` is that of its note, which goes when nothing is left to do.
    """
    note: Layered | None = tx.get(key)
    if note is None:
        return NOTHING_LEFT
    txid, id = PAIR.unpack(key[2])
    directory = _find(tx, InodeId(id))
    if directory is None or (directory.origin is not None and directory.origin.txid != txid):
        tx.delete(key)  # it is gone, or was rolled back again
        return NOTHING_LEFT
    if directory.origin is None:
        return _forget_whiteouts(tx, key, directory)
    page, after = some_children_of(tx, directory, note.after, SETTLE_BATCH)
    materialize_all(tx, directory, page)
    if after:
        tx.put(key, Layered(after))
    else:
        _leave_origin(tx, directory)
    return Looked(len(page), is_done=False)


def _find(tx: Transaction, id: InodeId) -> Inode | None:
    """The directory, if it can be reached; what snapshots need of it will be kept."""
    path = path_of(tx, id)
    found = None if path is None else resolve(tx, path).target
    return None if found is None or found.id != id else found


def _leave_origin(tx: Transaction, directory: Inode) -> None:
    """Nothing comes from there any more; snapshots may still show it with its origin."""
    assert directory.origin is not None
    tx.put(key_of(directory), msgspec.structs.replace(directory, origin=None))
    id = InodeId(tx.next_inode_id())
    before = msgspec.structs.replace(directory, id=id, content_id=0)
    orphan = Orphan(Kind.DIRECTORY, inode=before, is_content=True, origin_of=directory.id)
    tx.put_new(orphan_key(id), orphan)


def _forget_whiteouts(tx: Transaction, key: Key, directory: Inode) -> Looked:
    """There is no origin any more in which there could be such names."""
    whiteouts = tx.scan(Table.WHITEOUTS, directory.children_id, b"", SETTLE_BATCH)
    for each, _ in whiteouts:
        tx.delete(each)
    is_done = len(whiteouts) < SETTLE_BATCH
    if is_done:
        tx.delete(key)
    return Looked(len(whiteouts), is_done)
