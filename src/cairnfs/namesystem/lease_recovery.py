"""Taking files from writers who are gone, and closing them.

As in HDFS: another client may do so after the soft limit, by its create, append or truncate, or
at any time by recoverLease; and a duty of the NameNodes does after the hard limit.  A file whose
blocks are all complete is closed at once; a last block that was being written is recovered
first (`block_recovery`); one that was committed waits for a DataNode to report it.
"""

from __future__ import annotations

from cairnfs.blocks.holding import put_block
from cairnfs.blocks.records import block_key
from cairnfs.errors import AlreadyBeingCreatedException, RecoveryInProgressException
from cairnfs.namesystem import leases
from cairnfs.namesystem.block_recovery import begin_recovery
from cairnfs.namesystem.file_blocks import (
    check_blocks_complete,
    close_file,
    count_finished,
    last_block,
    remove_open_block,
)
from cairnfs.namesystem.inodes import Inode, InodeId
from cairnfs.namesystem.lease_records import Lease, lease_key
from cairnfs.namesystem.lookup import Lookup, file_at, path_of, resolve, resolve_to_write
from cairnfs.namesystem.paths import FsPath
from cairnfs.namesystem.permissions import Access, Caller, check_access
from cairnfs.transaction.calls import operation
from cairnfs.transaction.transaction import Transaction


class LeaseRecoveryNeeded(RecoveryInProgressException):
    """The file's writer is gone: `release_lease`, then the same call may succeed.

    An operation that fails changes nothing, so it cannot begin the recovery itself.
    """

    def __init__(self, message: str, inode_id: InodeId) -> None:
        super().__init__(message)
        self.inode_id = inode_id


def check_not_being_written(
    tx: Transaction,
    caller: Caller,
    path: FsPath,
    file: Inode,
    holder: str,
    action: str,
    soft_limit_ms: int,
) -> None:
    """The file is closed, or its writer is gone, which LeaseRecoveryNeeded says."""
    if not file.under_construction:
        return
    lease = leases.get(tx, file.id)
    failure = f"Failed to {action} {path} for {holder} on {caller.address} because"
    if lease.is_being_recovered:
        raise LeaseRecoveryNeeded(
            f"{failure} another recovery is in progress by {lease.holder} on"
            f" {lease.client_machine}",
            file.id,
        )
    if lease.holder == holder:
        raise AlreadyBeingCreatedException(
            f"{failure} {holder} is already the current lease holder."
        )
    if leases.is_expired(tx, lease, soft_limit_ms):
        raise LeaseRecoveryNeeded(
            f"{failure} lease recovery is in progress. Try again later.", file.id
        )
    raise AlreadyBeingCreatedException(
        f"{failure} this file lease is currently owned by {lease.holder} on {lease.client_machine}"
    )


@operation()
def recover_lease(tx: Transaction, caller: Caller, path: FsPath, holder: str) -> bool:
    """Take a file from its writer, alive or not; True: it is closed, False: it will be."""
    leases.check_holder(holder)
    lookup = resolve_to_write(tx, caller, path)
    file = file_at(lookup)
    if not file.under_construction:
        return True
    check_access(caller, file, Access.WRITE, lookup.path)
    return _release(tx, lookup, file)


@operation()
def release_lease(tx: Transaction, inode_id: InodeId, limit_ms: int) -> bool:
    """Take a file from a writer who was not heard of for so long; True: it is closed."""
    lease: Lease | None = tx.get(lease_key(inode_id))
    if lease is None:
        return True
    path = path_of(tx, inode_id)
    if path is None:  # deleted, and to be reclaimed
        return False
    if not lease.is_being_recovered and not leases.is_expired(tx, lease, limit_ms):
        return False
    lookup = resolve(tx, path)
    return _release(tx, lookup, file_at(lookup))


def _release(tx: Transaction, lookup: Lookup, file: Inode) -> bool:
    leases.take_away(tx, file.id)
    last = last_block(tx, file)
    if last is not None and file.has_open_block and not last.is_recovering:
        if last.targets:
            begin_recovery(tx, file.id, block_key(file.id, file.block_count - 1), last)
            return False
        # No DataNode has it: its writer's last word is all there is.
        if last.length_bytes:
            put_block(tx, block_key(file.id, file.block_count - 1), last.completed())
            file = count_finished(tx, lookup, file, last.length_bytes)
        else:
            file = remove_open_block(tx, lookup, file, last)
    if not check_blocks_complete(tx, file):
        return False
    close_file(tx, file)
    return True
