"""Leases: who may write to a file.

A file is under construction if and only if it has a lease row; both change in
the same transaction.  A lease lives as long as its holder is heard of: what
counts is the later of when the lease was granted and when its holder last
renewed, so that a client renews all its leases by one row, and creating a file
does not touch that row.

A writer who is gone loses its lease to the NameNodes (`NAMENODE_HOLDER`), which close the
file as soon as its blocks allow it (`lease_recovery`): from then on no call of the old
writer is taken.
"""

from __future__ import annotations

from typing import Final

import msgspec

from cairnfs.errors import (
    FileNotFoundException,
    IllegalArgumentException,
    LeaseExpiredException,
)
from cairnfs.namesystem.inodes import Inode, InodeId
from cairnfs.namesystem.lease_records import NAMENODE_HOLDER, Holder, Lease, holder_key, lease_key
from cairnfs.namesystem.lookup import Lookup, path_of, resolve, resolve_to_write
from cairnfs.namesystem.paths import FsPath, check_text
from cairnfs.namesystem.permissions import Caller
from cairnfs.store.schema import Table
from cairnfs.transaction.calls import operation
from cairnfs.transaction.transaction import Transaction

# After the first, another client may take the file over; after the second
# (dfs.namenode.lease-hard-limit-sec), it is closed.
SOFT_LIMIT_MS: Final = 60_000
HARD_LIMIT_MS: Final = 20 * 60_000
HOLDERS_PAGE: Final = 100  # clients looked at by one transaction


def grant(
    tx: Transaction,
    inode_id: InodeId,
    holder: str,
    caller: Caller,
    leaves_last_block: bool = False,
) -> None:
    """Give the lease of a file that has none, as any file that is closed or new."""
    lease = Lease(holder, caller.address, tx.now_ms, caller.user, leaves_last_block)
    tx.put_new(lease_key(inode_id), lease)


def take_away(tx: Transaction, inode_id: InodeId) -> None:
    """The writer is gone: the file is for the NameNodes to close."""
    lease = get(tx, inode_id)
    if not lease.is_being_recovered:
        taken = msgspec.structs.replace(lease, holder=NAMENODE_HOLDER, granted_ms=tx.now_ms)
        tx.put(lease_key(inode_id), taken)


def remove(tx: Transaction, inode_id: InodeId) -> None:
    """The file is closed or gone."""
    key = lease_key(inode_id)
    if tx.get(key) is not None:
        tx.delete(key)


def get(tx: Transaction, inode_id: InodeId) -> Lease:
    """The lease of a file under construction."""
    lease: Lease | None = tx.get(lease_key(inode_id))
    assert lease is not None, f"inode {inode_id} is under construction without a lease"
    return lease


def is_expired(tx: Transaction, lease: Lease, limit_ms: int) -> bool:
    """Whether the holder of a lease was not heard of for longer than this."""
    holder: Holder | None = tx.get(holder_key(lease.holder))
    heard_ms = lease.granted_ms if holder is None else max(lease.granted_ms, holder.renewed_ms)
    return tx.now_ms - heard_ms > limit_ms


@operation()
def renew_lease(tx: Transaction, caller: Caller, holder: str) -> None:
    """The client is alive: all its leases are good for another period."""
    check_holder(holder)
    key = holder_key(holder)
    tx.get(key)
    tx.put(key, Holder(tx.now_ms))


@operation()
def forget_holders(tx: Transaction, after: bytes, limit_ms: int) -> bytes:
    """Remove clients of a page that were not heard of for long; returns where to go on.

    A lease that such a client still had is past its hard limit with or without the row.
    """
    page = tx.scan(Table.HOLDERS, 0, after, HOLDERS_PAGE)
    for key, holder in page:
        if tx.now_ms - holder.renewed_ms > limit_ms:
            tx.delete(key)
    return page[-1][0][2] if len(page) == HOLDERS_PAGE else b""


def resolve_by_id(tx: Transaction, caller: Caller, path: FsPath, id: InodeId) -> Lookup:
    """Where the file of a writer is, by its id, whatever has become of its path.

    Who knows the id has opened the file: as in HDFS, no permission is asked for.
    """
    if not id:  # an old client
        return resolve_to_write(tx, caller, path)
    lookup = resolve(tx, path)
    target = lookup.target
    if target is not None and target.id == id and lookup.snapshot is None and not target.is_virtual:
        return lookup
    moved = path_of(tx, id) if 0 < id < 2**63 else None
    if moved is None:
        return Lookup(path, lookup.inodes[:1], path.components or (b"",), 0, tx)
    return resolve(tx, moved)


def check_holder(holder: str) -> None:
    """A client's name is a text of bounded length."""
    if not isinstance(holder, str):
        raise IllegalArgumentException(f"{holder!r} is not the name of a client")
    check_text(holder, "client name")


def check_lease(tx: Transaction, caller: Caller, lookup: Lookup, id: InodeId, holder: str) -> Inode:
    """What was found is a file, and `holder` is writing it, for the user who opened it."""
    inode = lookup.target
    if inode is None:
        raise FileNotFoundException(f"File does not exist: {_describe(lookup.path, id, holder)}")
    if not inode.is_file:
        raise LeaseExpiredException(
            f"INode is not a regular file: {_describe(lookup.path, id, holder)}"
        )
    if not inode.under_construction:
        raise LeaseExpiredException(
            f"File is not open for writing: {_describe(lookup.path, id, holder)}"
        )
    lease = check_user(tx, caller, inode, holder)
    if lease.holder != holder or lease.is_being_recovered:
        raise LeaseExpiredException(
            f"Client (={holder}) is not the lease owner (={lease.holder}:"
            f" {_describe(lookup.path, id, holder)}"
        )
    return inode


def check_user(tx: Transaction, caller: Caller, inode: Inode, holder: str) -> Lease:
    """The lease of a file under construction belongs to the caller, whatever its client."""
    lease = get(tx, inode.id)
    if caller.user != lease.user and not caller.is_superuser:
        raise LeaseExpiredException(
            f"Client (={holder}) of user {caller.user} is not the lease owner of inode {inode.id}"
        )
    return lease


def check_holder_of(tx: Transaction, caller: Caller, inode: Inode, holder: str) -> None:
    """`holder` is writing the file, for the user who opened it."""
    lease = check_user(tx, caller, inode, holder)
    if lease.holder != holder or lease.is_being_recovered:
        raise LeaseExpiredException(
            f"Lease mismatch: inode {inode.id} is accessed by a non lease holder {holder}, its"
            f" lease is {lease.holder}'s"
        )


def _describe(path: FsPath, id: int, holder: str) -> str:
    return f"{path} (inode {id}) Holder {holder} does not have any open files."
