"""Files: creating them, adding blocks, closing them."""

from __future__ import annotations

import enum

import msgspec

from cairnfs.blocks.records import Block, BlockId, BlockState, GenerationStamp, block_key
from cairnfs.errors import (
    AlreadyBeingCreatedException,
    FileAlreadyExistsException,
    FileNotFoundException,
    IOException,
    RecoveryInProgressException,
)
from cairnfs.namesystem import leases
from cairnfs.namesystem.acls import inherit_default
from cairnfs.namesystem.delete import detach
from cairnfs.namesystem.directories import OWNER_WRITE_EXECUTE, add_directories, add_inode
from cairnfs.namesystem.inodes import Inode, InodeId, Kind
from cairnfs.namesystem.lookup import (
    Lookup,
    check_ancestor_access,
    check_parent_exists,
    key_of,
    resolve_to_create,
    resolve_to_read,
)
from cairnfs.namesystem.paths import FsPath
from cairnfs.namesystem.permissions import Access, Caller, check_access
from cairnfs.namesystem.quotas import ONE_FILE, add_entry, charge, charged_space, refund, space
from cairnfs.namesystem.status import FileStatus, new_status
from cairnfs.transaction.calls import operation
from cairnfs.transaction.transaction import Transaction

BLOCK_SIZE_MIN_BYTES = 1024 * 1024  # dfs.namenode.fs-limits.min-block-size
BLOCKS_MAX = 10_000  # dfs.namenode.fs-limits.max-blocks-per-file
REPLICATION_MIN = 1
REPLICATION_MAX = 512


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


class AllocatedBlock(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A block to be written, and where in the file it begins."""

    block: Block
    offset_bytes: int


@operation(at_most_once=True)
def create(
    tx: Transaction,
    caller: Caller,
    path: FsPath,
    mode: int,
    unmasked: int | None,
    holder: str,
    flags: CreateFlag,
    create_parents: bool,
    replication: int,
    block_size_bytes: int,
) -> FileStatus:
    """Make a file and give its lease to `holder`; with OVERWRITE, in the place of another."""
    path.check_length("create")
    path.check_valid_for_file()
    lookup = resolve_to_create(tx, caller, path)
    check_ancestor_access(caller, lookup, Access.WRITE)
    existing = lookup.target
    if existing is not None:
        if existing.is_directory:
            raise FileAlreadyExistsException(f"{lookup.path} already exists as a directory")
        if flags & CreateFlag.OVERWRITE:
            check_access(caller, existing, Access.WRITE, lookup.path)
    else:
        if not create_parents:
            check_parent_exists(lookup)
        if not flags & CreateFlag.CREATE:
            raise FileNotFoundException(f"Can't overwrite non-existent {path}")
    if block_size_bytes < BLOCK_SIZE_MIN_BYTES:
        raise IOException(
            f"Specified block size {block_size_bytes} is less than configured minimum value"
            f" dfs.namenode.fs-limits.min-block-size={BLOCK_SIZE_MIN_BYTES}"
        )
    check_replication(replication, path)

    if existing is not None:
        if not flags & CreateFlag.OVERWRITE:
            _check_not_being_created(tx, caller, lookup.path, existing, holder)
            raise FileAlreadyExistsException(
                f"{lookup.path} for client {caller.address} already exists"
            )
        detach(tx, lookup.ancestors, existing)
        parents = lookup.ancestors
    else:
        # Implied parents are as their own parent, with u+wx.
        implied = lookup.deepest.mode | OWNER_WRITE_EXECUTE
        parents = tuple(add_directories(tx, caller, lookup, implied, None))

    mode, acl = inherit_default(parents[-1].acl, mode, unmasked, is_directory=False)
    file = Inode(
        id=InodeId(tx.next_inode_id()),
        parent_id=parents[-1].id,
        name=lookup.path.name,
        kind=Kind.FILE,
        mode=mode & ~0o1000,
        owner=caller.user,
        group=parents[-1].group,
        mtime_ms=tx.now_ms,
        atime_ms=tx.now_ms,
        replication=replication,
        block_size_bytes=block_size_bytes,
        under_construction=True,
        acl=acl,
    )
    add_inode(tx, lookup.path, parents, file)
    add_entry(tx, lookup.path, parents, ONE_FILE)
    leases.grant(tx, file.id, holder, caller.address)
    return new_status(file)


@operation()
def add_block(
    tx: Transaction,
    caller: Caller,
    path: FsPath,
    holder: str,
    previous: Block | None,
    file_id: InodeId,
) -> AllocatedBlock:
    """Allocate the next block of an open file; `previous`, if any, is finished now.

    A client that lost the answer asks again with the same `previous`: it is
    given the block that it has not begun to write.
    """
    lookup, file = leases.resolve_open_file(tx, caller, path, file_id, holder)
    last = _last_block(tx, file)
    if not _is_same(previous, last):
        before_last = _block_at(tx, file, file.block_count - 2)
        appends_after_full_block = (
            previous is None
            and last is not None
            and last.state is BlockState.COMPLETE
            and last.length_bytes >= file.block_size_bytes
        )
        if not appends_after_full_block:
            if last is None or file.block_count < 1 or not _is_same(previous, before_last):
                raise IOException(
                    f"Cannot allocate block in {lookup.path}: passed 'previous' block"
                    f" {_show(previous)} does not match actual last block in file {_show(last)}"
                )
            if last.length_bytes:
                raise IOException(
                    f"Request looked like a retry to allocate block {_show(last)} but it"
                    f" already contains {last.length_bytes} bytes"
                )
            return AllocatedBlock(last, file.length_bytes)
    if file.block_count >= BLOCKS_MAX:
        raise IOException(
            "File has reached the limit on maximum number of blocks"
            f" (dfs.namenode.fs-limits.max-blocks-per-file): {file.block_count} >= {BLOCKS_MAX}"
        )
    file = _finish_last_block(tx, lookup, file, previous)
    block = Block(
        BlockId(tx.next_number("block id")),
        GenerationStamp(tx.next_number("generation stamp")),
        0,
        BlockState.UNDER_CONSTRUCTION,
    )
    key = block_key(file.id, file.block_count)
    assert tx.get(key) is None, f"block {file.block_count} of inode {file.id} exists"
    tx.put(key, block)
    charge(tx, lookup.path, lookup.ancestors, space(0, file.block_size_bytes * file.replication))
    tx.put(
        key_of(file),
        msgspec.structs.replace(file, block_count=file.block_count + 1, has_open_block=True),
    )
    return AllocatedBlock(block, file.length_bytes)


@operation()
def abandon_block(
    tx: Transaction, caller: Caller, path: FsPath, holder: str, block: Block, file_id: InodeId
) -> None:
    """Give the last block of an open file back; another one is nobody's any more already."""
    lookup, file = leases.resolve_open_file(tx, caller, path, file_id, holder)
    last = _last_block(tx, file)
    if last is None or not _is_same(block, last) or not file.has_open_block:
        return
    tx.delete(block_key(file.id, file.block_count - 1))
    refund(tx, lookup.ancestors, space(0, file.block_size_bytes * file.replication))
    tx.put(
        key_of(file),
        msgspec.structs.replace(file, block_count=file.block_count - 1, has_open_block=False),
    )


@operation()
def complete(
    tx: Transaction,
    caller: Caller,
    path: FsPath,
    holder: str,
    last: Block | None,
    file_id: InodeId,
) -> bool:
    """Close a file that is being written.  Closing it twice is allowed: the answer got lost."""
    if _is_closed_already(tx, caller, path, last, file_id):
        return True
    lookup, file = leases.resolve_open_file(tx, caller, path, file_id, holder)
    file = _finish_last_block(tx, lookup, file, last)
    leases.remove(tx, file.id)
    tx.put(
        key_of(file),
        msgspec.structs.replace(file, under_construction=False, mtime_ms=tx.now_ms),
    )
    return True


@operation()
def set_replication(tx: Transaction, caller: Caller, path: FsPath, replication: int) -> bool:
    """Ask for so many replicas; False if the path is no file."""
    check_replication(replication, path)
    lookup = resolve_to_read(tx, caller, path)
    file = lookup.target
    if lookup.target is not None:
        check_access(caller, lookup.target, Access.WRITE, lookup.path)
    if file is None or not file.is_file:
        return False
    if file.replication == replication:
        return True
    changed = msgspec.structs.replace(file, replication=replication)
    difference = charged_space(changed) - charged_space(file)
    if difference > 0:
        charge(tx, lookup.path, lookup.ancestors, space(0, difference))
    else:
        refund(tx, lookup.ancestors, space(0, -difference))
    tx.put(key_of(file), changed)
    return True


def check_replication(replication: int, path: FsPath) -> None:
    """Within HDFS's limits."""
    if replication > REPLICATION_MAX:
        raise IOException(
            f"Requested replication factor of {replication} exceeds maximum of"
            f" {REPLICATION_MAX} for {path}"
        )
    if replication < REPLICATION_MIN:
        raise IOException(
            f"Requested replication factor of {replication} is less than the required"
            f" minimum of {REPLICATION_MIN} for {path}"
        )


def blocks_of(tx: Transaction, file: Inode) -> list[Block]:
    """All blocks of a file, in order."""
    blocks = [_block_at(tx, file, index) for index in range(file.block_count)]
    return [block for block in blocks if block is not None]


def _finish_last_block(
    tx: Transaction, lookup: Lookup, file: Inode, reported: Block | None
) -> Inode:
    """The last block has the length that its writer reports; charge what it really takes."""
    if not file.has_open_block:
        return file
    last = _last_block(tx, file)
    assert last is not None
    length = reported.length_bytes if reported is not None else 0
    if not 0 <= length <= file.block_size_bytes:
        raise IOException(
            f"Block {_show(last)} of {lookup.path} cannot be {length} bytes long: its size is"
            f" {file.block_size_bytes}"
        )
    finished = msgspec.structs.replace(last, length_bytes=length, state=BlockState.COMPLETE)
    tx.put(block_key(file.id, file.block_count - 1), finished)
    unused = (file.block_size_bytes - length) * file.replication
    refund(tx, lookup.ancestors, space(-length, unused))
    changed = msgspec.structs.replace(
        file, length_bytes=file.length_bytes + length, has_open_block=False
    )
    tx.put(key_of(file), changed)
    return changed


def _is_closed_already(
    tx: Transaction, caller: Caller, path: FsPath, last: Block | None, file_id: InodeId
) -> bool:
    file = resolve_to_read(tx, caller, path).target
    if file is None or not file.is_file or file.under_construction:
        return False
    return (not file_id or file.id == file_id) and _is_same(last, _last_block(tx, file))


def _check_not_being_created(
    tx: Transaction, caller: Caller, path: FsPath, file: Inode, holder: str
) -> None:
    """A file that somebody is writing is refused in other words than one that exists."""
    if not file.under_construction:
        return
    lease = leases.get(tx, file.id)
    failure = f"Failed to CREATE_FILE {path} for {holder} on {caller.address} because"
    if lease.holder == holder:
        raise AlreadyBeingCreatedException(f"{failure} {holder} is already the current lease holder.")
    if tx.now_ms - leases.last_heard_ms(tx, lease) > leases.SOFT_LIMIT_MS:
        raise RecoveryInProgressException(
            f"{failure} lease recovery is in progress. Try again later."
        )
    raise AlreadyBeingCreatedException(
        f"{failure} this file lease is currently owned by {lease.holder} on {lease.client_machine}"
    )


def _last_block(tx: Transaction, file: Inode) -> Block | None:
    return _block_at(tx, file, file.block_count - 1)


def _block_at(tx: Transaction, file: Inode, index: int) -> Block | None:
    if index < 0:
        return None
    block: Block | None = tx.get(block_key(file.id, index))
    return block


def _is_same(a: Block | None, b: Block | None) -> bool:
    if a is None or b is None:
        return a is b
    return a.id == b.id and a.generation_stamp == b.generation_stamp


def _show(block: Block | None) -> str:
    return "null" if block is None else f"blk_{block.id}_{block.generation_stamp}"
