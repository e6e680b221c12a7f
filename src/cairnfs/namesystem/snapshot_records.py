"""The rows of snapshots; their order of TxIDs is in `transaction.moments`."""

from __future__ import annotations

import msgspec

from cairnfs.namesystem.inodes import Inode, XAttr
from cairnfs.store.schema import NUMBER, PAIR, Key, Table
from cairnfs.transaction.records import register


class Snapshot(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A directory or a file as it was after a TxID, with everything below it."""

    txid: int
    created_ms: int
    root: Inode  # the inode itself as it was, so that snapshots are listed without a look back
    entering: tuple[XAttr, ...] = ()  # what it inherited from above; see `inheritance`


class Snapshottable(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A note that snapshots may be taken of an inode."""

    allowed_ms: int


class Removal(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A snapshot that was deleted: what only it needed is still to be reclaimed."""

    deleted_ms: int
    until: int = 0  # how far past rows were looked through, and the key up to which
    table: int = 0
    a: int = 0
    b: bytes = b""
    is_past_done: bool = False  # orphans come after past rows
    looked: tuple[tuple[int, int], ...] = ()  # ranges of TxIDs, further on: see `removals`
    last: int = 0  # nothing was kept for it after this TxID, if that was noted


class RootSnapshot(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The snapshot of `/` by which the whole file system can go back; see `root_snapshot`."""

    name: bytes
    txid: int
    created_ms: int
    user: str  # who took it
    is_root_allowed: bool = False  # whether snapshots of `/` may be taken without it
    rolled_back_ms: int = 0  # when it was gone back to, unless to another one since
    safety: tuple[bytes, ...] = ()  # in these is what roll-backs of `/` have given up


ROOT_SNAPSHOT_KEY: Key = (Table.ROOT_SNAPSHOT, 0, b"")

register(Table.ROOT_SNAPSHOT, RootSnapshot)
register(Table.SNAPSHOTS, Snapshot)
register(Table.SNAPSHOTTABLE, Snapshottable)
register(Table.REMOVALS, Removal)


def snapshot_key(inode_id: int, name: bytes) -> Key:
    return (Table.SNAPSHOTS, inode_id, name)


def snapshottable_key(inode_id: int) -> Key:
    return (Table.SNAPSHOTTABLE, 0, NUMBER.pack(inode_id))


def schedule_key(inode_id: int) -> Key:
    return (Table.SCHEDULES, 0, NUMBER.pack(inode_id))


def removal_key(txid: int, inode_id: int) -> Key:
    return (Table.REMOVALS, 0, PAIR.pack(txid, inode_id))
