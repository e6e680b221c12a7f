"""Files: creating and closing them; what they are made of is in `file_blocks`.

Invariant: a file is under construction if and only if it has a lease row; `create`
makes both in one transaction, `complete` ends both.
"""

from __future__ import annotations

import enum
from typing import Final

import msgspec

from cairnfs.blocks.checks import put_check
from cairnfs.blocks.records import Block, BlockState
from cairnfs.errors import (
    FileAlreadyExistsException,
    FileNotFoundException,
    IllegalArgumentException,
    IOException,
)
from cairnfs.namesystem import leases
from cairnfs.namesystem.acls import Acl, inherit_default
from cairnfs.namesystem.answers import FileStatus
from cairnfs.namesystem.delete import detach
from cairnfs.namesystem.directories import add_directories, add_inode, implied_mode
from cairnfs.namesystem.file_blocks import (
    blocks_of,
    check_blocks_complete,
    close_file,
    count_reported,
    finish_last_block,
    is_same_block,
    last_block,
)
from cairnfs.namesystem.inodes import Inode, InodeId, Kind
from cairnfs.namesystem.lease_recovery import check_not_being_written
from cairnfs.namesystem.lookup import (
    check_ancestor_access,
    check_parent_exists,
    file_at,
    key_of,
    resolve_to_create,
    resolve_to_read,
    resolve_to_write,
)
from cairnfs.namesystem.paths import FsPath
from cairnfs.namesystem.permissions import Access, Caller, check_access, valid_mode
from cairnfs.namesystem.policy_attribute import POLICY_UNSPECIFIED
from cairnfs.namesystem.policy_changes import is_used, policy_id_at
from cairnfs.namesystem.quotas import ONE_FILE, add_entry, change_file
from cairnfs.namesystem.snapshots import check_without_snapshots
from cairnfs.namesystem.status import new_status
from cairnfs.transaction.calls import operation
from cairnfs.transaction.transaction import Transaction

BLOCK_SIZE_MIN_BYTES: Final = 1024 * 1024  # dfs.namenode.fs-limits.min-block-size
BLOCK_SIZE_MAX_BYTES: Final = 2**48 - 1  # as HDFS's inodes have room for
REPLICATION_MIN: Final = 1
REPLICATION_MAX: Final = 512


class CreateFlag(enum.IntFlag):
    """Flags of create; the numbers are Hadoop's."""

    CREATE = 0x01
    OVERWRITE = 0x02
    APPEND = 0x04
    SYNC_BLOCK = 0x08
    LAZY_PERSIST = 0x10
    NEW_BLOCK = 0x20
    NO_LOCAL_WRITE = 0x40
    SHOULD_REPLICATE = 0x80


# Plain numbers, as the flags of `create` are: those of an enumeration cost as much as all of it.
_CREATE: Final = CreateFlag.CREATE.value
_OVERWRITE: Final = CreateFlag.OVERWRITE.value
_WRITE: Final = Access.WRITE.value
_FILE: Final = Kind.FILE


@operation(stored_reply=FileStatus)
def create(
    tx: Transaction,
    caller: Caller,
    path: FsPath,
    mode: int,
    unmasked: int | None,
    holder: str,
    flags: int,
    create_parents: bool,
    replication: int,
    block_size_bytes: int,
    soft_limit_ms: int = leases.SOFT_LIMIT_MS,
) -> FileStatus:
    """Make a file and give its lease to `holder`; with OVERWRITE, in the place of another."""
    path.check_length("create")
    path.check_valid_for_file()
    mode = valid_mode(mode)
    leases.check_holder(holder)
    may_create, may_overwrite = bool(flags & _CREATE), bool(flags & _OVERWRITE)
    lookup = resolve_to_create(tx, caller, path)
    check_ancestor_access(caller, lookup, _WRITE)
    existing = lookup.target
    if existing is not None:
        if existing.is_directory:
            raise FileAlreadyExistsException(f"{lookup.path} already exists as a directory")
        if may_overwrite:
            check_access(caller, existing, _WRITE, lookup.path)
    else:
        if not create_parents:
            check_parent_exists(lookup)
        if not may_create:
            raise FileNotFoundException(f"Can't overwrite non-existent {path}")
    _check_block_size(block_size_bytes)
    check_replication(replication, path, caller.address)

    if existing is not None:
        if not may_overwrite:
            check_not_being_written(
                tx, caller, lookup.path, existing, holder, "CREATE_FILE", soft_limit_ms
            )
            raise FileAlreadyExistsException(
                f"{lookup.path} for client {caller.address} already exists"
            )
        check_without_snapshots(tx, lookup, existing)
        detach(tx, lookup.ancestors, existing)
        parents = lookup.ancestors
    else:
        # Implied parents are as their own parent.
        implied = implied_mode(lookup.deepest.mode)
        parents = tuple(add_directories(tx, caller, lookup, implied, None))

    mode, acl = inherit_default(parents[-1].acl, mode, unmasked, is_directory=False)
    file = _new_file(
        tx, caller, parents[-1], lookup.path.name, mode, acl, replication, block_size_bytes
    )
    add_inode(tx, lookup.path, parents, file)
    add_entry(tx, lookup.path, parents, ONE_FILE)
    leases.grant(tx, file.id, holder, caller)
    policy_id = policy_id_at((*parents, file)) if is_used(parents[0]) else POLICY_UNSPECIFIED
    return new_status(file, policy_id)


@operation()
def complete(
    tx: Transaction,
    caller: Caller,
    path: FsPath,
    holder: str,
    last: Block | None,
    file_id: InodeId,
    wait_for_all: bool = False,
) -> bool:
    """Close a file that is being written; False: its last block is not known to be written.

    With `wait_for_all`, also if a DataNode of its pipeline has not reported it yet: who can
    wait a moment spares the check whether replicas are lacking.  Closing a file twice is
    allowed: the answer got lost.
    """
    lookup = leases.resolve_by_id(tx, caller, path, file_id)
    target = lookup.target
    is_closed = target is not None and target.is_file and not target.under_construction
    if target is not None and is_closed and is_same_block(last, last_block(tx, target)):
        return True
    file = leases.check_lease(tx, caller, lookup, file_id, holder)
    if file.has_open_block and last is None:
        return False
    if wait_for_all and file.has_open_block and last is not None:
        written = last_block(tx, file)
        assert written is not None
        if count_reported(tx, written, last.length_bytes) < len(written.targets):
            return False
    file = finish_last_block(tx, lookup, file, last)
    if not check_blocks_complete(tx, file):
        return False
    close_file(tx, file)
    return True


@operation(mutates=False)
def is_file_closed(tx: Transaction, caller: Caller, path: FsPath) -> bool:
    """Whether nobody is writing the file."""
    return not file_at(resolve_to_read(tx, caller, path)).under_construction


@operation()
def set_replication(tx: Transaction, caller: Caller, path: FsPath, replication: int) -> bool:
    """Ask for so many replicas; False if the path is no file."""
    check_replication(replication, path)
    lookup = resolve_to_write(tx, caller, path)
    file = lookup.target
    if lookup.target is not None:
        check_access(caller, lookup.target, _WRITE, lookup.path)
    if file is None or not file.is_file:
        return False
    if file.replication == replication:
        return True
    held = 0
    if tx.covered:
        now = file.replication if tx.is_held(key_of(file)) else 0
        held = max(file.held_replication, now)
    changed = msgspec.structs.replace(file, replication=replication, held_replication=held)
    tx.put(key_of(file), change_file(tx, lookup.path, lookup.ancestors, file, changed))
    for block in blocks_of(tx, file):
        if block.state is BlockState.COMPLETE:
            put_check(tx, block.id, at_once=True)
    return True


def check_replication(replication: int, path: FsPath, client: str = "") -> None:
    """Within HDFS's limits."""
    if REPLICATION_MIN <= replication <= REPLICATION_MAX:
        return
    ending = f", clientName={client}" if client else ""
    if replication > REPLICATION_MAX:
        raise IOException(
            f"Requested replication factor of {replication} exceeds maximum of"
            f" {REPLICATION_MAX} for {path}{ending}"
        )
    raise IOException(
        f"Requested replication factor of {replication} is less than the required"
        f" minimum of {REPLICATION_MIN} for {path}{ending}"
    )


def _check_block_size(block_size_bytes: int) -> None:
    if block_size_bytes < BLOCK_SIZE_MIN_BYTES:
        raise IOException(
            f"Specified block size {block_size_bytes} is less than configured minimum value"
            f" dfs.namenode.fs-limits.min-block-size={BLOCK_SIZE_MIN_BYTES}"
        )
    if block_size_bytes > BLOCK_SIZE_MAX_BYTES:
        raise IllegalArgumentException(
            f"Illegal value: PREFERRED_BLOCK_SIZE = {block_size_bytes} > MAX ="
            f" {BLOCK_SIZE_MAX_BYTES}"
        )


def _new_file(
    tx: Transaction,
    caller: Caller,
    parent: Inode,
    name: bytes,
    mode: int,
    acl: Acl | None,
    replication: int,
    block_size_bytes: int,
) -> Inode:
    """The inode of an empty file that is being written."""
    return Inode(
        id=InodeId(tx.next_inode_id()),
        parent_id=InodeId(parent.children_id),
        name=name,
        kind=_FILE,
        mode=mode,
        owner=caller.user,
        group=parent.group,
        mtime_ms=tx.now_ms,
        atime_ms=tx.now_ms,
        replication=replication,
        block_size_bytes=block_size_bytes,
        under_construction=True,
        acl=acl,
    )
