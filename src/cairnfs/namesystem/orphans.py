"""What was deleted and is still to be reclaimed, as rows; apart from `delete`, as `answers`."""

from __future__ import annotations

import msgspec

from cairnfs.namesystem.inodes import Inode, InodeId, Kind
from cairnfs.store.schema import NUMBER, PAIR, Key, Table
from cairnfs.transaction.records import register
from cairnfs.transaction.transaction import Transaction

_ORPHANS = int(Table.ORPHANS)
_HELD = int(Table.HELD)
_HOLDS = int(Table.HOLDS)


UNKNOWN = -1  # in a row of an earlier version


class Hold(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A note that an orphan is held for a snapshot.  Stored: append fields only."""

    until: int  # the TxID at which it was detached, by which it is found


class Orphan(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A detached inode; what is below it is still to be reclaimed.  Stored: append fields only."""

    kind: Kind
    covered_txid: int = 0  # of older versions of CairnFS; not looked at any more
    inode: Inode | None = None  # as it was, by which its blocks are cared for
    until: int = 0  # the TxID at which it was detached; 0: when this row was written
    after: bytes = b""  # what is below was looked at up to here
    is_holding: bool = False  # and some of that is needed by a snapshot
    is_attached: bool = False  # it is part of another orphan, which is held
    is_content: bool = False  # a directory has lost its content, but is still there
    origin_of: InodeId = InodeId(0)  # or has lost its origin alone, which snapshots may show
    is_waiting: bool = False  # held until DataNodes have finished a block that another file has
    covered: int = UNKNOWN  # no snapshot later than this one can show anything of it


register(Table.ORPHANS, Orphan)
register(Table.HOLDS, Hold)
register(Table.HELD, Orphan, id_of=lambda orphan: orphan.inode.id if orphan.inode else 0)


def orphan_key(id: int) -> Key:
    """Where an orphan is kept: by what its rows are below, not all of which are inodes' ids."""
    return (_ORPHANS, 0, NUMBER.pack(id))


def held_key(until: int, id: int) -> Key:
    """Where an orphan that a snapshot or another file needs is kept."""
    return (_HELD, 0, PAIR.pack(until, id))


def hold_key(txid: int, id: int) -> Key:
    """Where it is kept that an orphan is held for the snapshot of this TxID."""
    return (_HOLDS, txid, NUMBER.pack(id))


def look_again(tx: Transaction, key: Key, orphan: Orphan) -> None:
    """Have a held orphan looked at again: perhaps nothing needs it any more."""
    _, id = PAIR.unpack(key[2])
    tx.delete(key)
    tx.get(orphan_key(id))
    tx.put(orphan_key(id), orphan)
