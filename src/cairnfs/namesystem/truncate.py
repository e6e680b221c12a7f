"""Truncate: a closed file is cut, at once for readers; replicas of its last block follow.

Whole blocks behind the new end are detached, and reclaimed as those of a deleted file are.  If
the end lies within a block, that block is TRUNCATING: its row has the new length from now on,
its replicas are cut by DataNodes (`block_recovery`), and until then nobody may write the file.

But if a snapshot or another file needs what is cut off, the row alone says how long the block
is for this file, and its replicas stay as they are: then there is nothing to wait for.
"""

from __future__ import annotations

import msgspec

from cairnfs.blocks.holding import is_shared, needed_bytes, put_block
from cairnfs.blocks.records import Block, BlockState, block_key
from cairnfs.blocks.reports import good_replicas
from cairnfs.errors import AlreadyBeingCreatedException, HadoopIllegalArgumentException
from cairnfs.namesystem import leases
from cairnfs.namesystem.append import ChooseReplicas
from cairnfs.namesystem.block_recovery import begin_recovery
from cairnfs.namesystem.delete import detach_blocks
from cairnfs.namesystem.file_blocks import blocks_of, last_block
from cairnfs.namesystem.inodes import Inode
from cairnfs.namesystem.lease_records import NAMENODE_HOLDER
from cairnfs.namesystem.lease_recovery import check_not_being_written
from cairnfs.namesystem.lookup import file_at, key_of, resolve_to_write
from cairnfs.namesystem.paths import FsPath
from cairnfs.namesystem.permissions import Access, Caller, check_access
from cairnfs.namesystem.pipelines import next_stamp
from cairnfs.namesystem.quotas import data_of, difference, refund
from cairnfs.transaction.calls import operation
from cairnfs.transaction.transaction import Transaction


@operation()
def truncate(
    tx: Transaction,
    caller: Caller,
    path: FsPath,
    new_length_bytes: int,
    holder: str,
    choose: ChooseReplicas,
    soft_limit_ms: int = leases.SOFT_LIMIT_MS,
) -> bool:
    """Cut a closed file; False: replicas are being cut, and the file is closed after that."""
    if new_length_bytes < 0:
        raise HadoopIllegalArgumentException(
            f"Cannot truncate to a negative file size: {new_length_bytes}."
        )
    leases.check_holder(holder)
    lookup = resolve_to_write(tx, caller, path)
    if lookup.target is not None:
        check_access(caller, lookup.target, Access.WRITE, lookup.path)
    file = file_at(lookup)
    last = last_block(tx, file)
    if last is not None and last.state is BlockState.TRUNCATING:
        if new_length_bytes == file.length_bytes:
            return False
        raise AlreadyBeingCreatedException(
            f"Failed to TRUNCATE_FILE {lookup.path} for {holder} on {caller.address} because"
            f" {lookup.path} is being truncated."
        )
    check_not_being_written(tx, caller, lookup.path, file, holder, "TRUNCATE_FILE", soft_limit_ms)
    if new_length_bytes == file.length_bytes:
        return True
    if new_length_bytes > file.length_bytes:
        raise HadoopIllegalArgumentException(
            "Cannot truncate to a larger file size. Current size:"
            f" {file.length_bytes}, truncate size: {new_length_bytes}."
        )

    shorter = msgspec.structs.replace(file, length_bytes=new_length_bytes, reserved_bytes=0)
    refund(tx, lookup.ancestors, difference(data_of(file), data_of(shorter)))
    file, last, excess_bytes = _drop_blocks(tx, file, new_length_bytes)
    if last is None or not excess_bytes:
        tx.put(key_of(file), file)
        return True
    block = last.with_length(last.length_bytes - excess_bytes)
    key = block_key(file.id, file.block_count - 1)
    if needed_bytes(tx, key, last) > block.length_bytes or is_shared(tx, key, last):
        put_block(tx, key, msgspec.structs.replace(block, stored_bytes=last.replica_bytes))
        tx.put(key_of(file), file)
        return True
    block = msgspec.structs.replace(block, stored_bytes=0)
    targets = choose(last, good_replicas(tx, last))
    if not targets:  # kept elsewhere, by callers in this process
        stamped = msgspec.structs.replace(block, generation_stamp=next_stamp(tx, block))
        put_block(tx, key, stamped)
        tx.put(key_of(file), file)
        return True
    cutting = msgspec.structs.replace(block, state=BlockState.TRUNCATING, targets=targets)
    begin_recovery(tx, file.id, key, cutting)
    tx.put(key_of(file), msgspec.structs.replace(file, under_construction=True))
    leases.grant(tx, file.id, NAMENODE_HOLDER, caller)
    return False


def _drop_blocks(
    tx: Transaction, file: Inode, new_length_bytes: int
) -> tuple[Inode, Block | None, int]:
    """Detach what is behind the new end.

    Returns the file, its last block now, and how many bytes of that lie behind the end.
    """
    blocks = blocks_of(tx, file)
    kept, end_bytes = 0, 0
    while end_bytes < new_length_bytes:
        end_bytes += blocks[kept].length_bytes
        kept += 1
    behind = [(block_key(file.id, index), blocks[index]) for index in range(kept, len(blocks))]
    detach_blocks(tx, file, behind)
    cut = msgspec.structs.replace(
        file,
        length_bytes=new_length_bytes,
        block_count=kept,
        reserved_bytes=0,
        mtime_ms=tx.now_ms,
    )
    return cut, blocks[kept - 1] if kept else None, end_bytes - new_length_bytes
