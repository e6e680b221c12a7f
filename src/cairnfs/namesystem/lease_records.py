"""The rows of leases: which client may write to which file, and when it was last heard of.

They are apart from `leases` for the same reason as `answers` from the operations.
"""

from __future__ import annotations

import msgspec

from cairnfs.store.schema import NUMBER, Key, Table
from cairnfs.transaction.records import register

NAMENODE_HOLDER = "HDFS_NameNode"  # as Hadoop calls it

_LEASES = int(Table.LEASES)
_HOLDERS = int(Table.HOLDERS)


class Lease(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The right to write to one file.  Stored: append fields only."""

    holder: str
    client_machine: str
    granted_ms: int
    user: str  # who opened the file: a client's name alone proves nothing
    leaves_last_block: bool = False  # an append goes on behind a block that another file writes

    @property
    def is_being_recovered(self) -> bool:
        return self.holder == NAMENODE_HOLDER


class Holder(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A client that writes: when it was last heard of."""

    renewed_ms: int


register(Table.LEASES, Lease)
register(Table.HOLDERS, Holder)


def lease_key(inode_id: int) -> Key:
    return (_LEASES, 0, NUMBER.pack(inode_id))


def holder_key(holder: str) -> Key:
    return (_HOLDERS, 0, holder.encode())
