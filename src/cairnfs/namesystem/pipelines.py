"""What a writer says of the pipeline it writes through: it broke, was mended, holds so much.

Invariant: the stamps given out for a block only grow, whichever NameNode gives them, and the
last one is in its row: so a recovery, whose stamp is greater still, is refused by no DataNode.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import NoneType

import msgspec

from cairnfs.blocks.holding import newest_row, put_block
from cairnfs.blocks.records import Block, GenerationStamp, StorageNumber, block_key
from cairnfs.errors import IOException
from cairnfs.namesystem import leases
from cairnfs.namesystem.answers import LocatedBlock
from cairnfs.namesystem.file_blocks import ChooseTargets, count_open_bytes, last_block
from cairnfs.namesystem.inodes import Inode, InodeId
from cairnfs.namesystem.lookup import Lookup, path_of, resolve, resolve_written
from cairnfs.namesystem.paths import FsPath
from cairnfs.namesystem.permissions import Caller
from cairnfs.namesystem.policy_changes import policy_id_of
from cairnfs.transaction.calls import operation
from cairnfs.transaction.transaction import Transaction


@operation(mutates=False)
def get_additional_datanode(
    tx: Transaction,
    caller: Caller,
    path: FsPath,
    holder: str,
    file_id: InodeId,
    choose: ChooseTargets,
) -> tuple[StorageNumber, ...]:
    """Storages to take the place of those that a writer's pipeline has lost."""
    if file_id:
        lookup = leases.resolve_by_id(tx, caller, path, file_id)
    else:  # an old client
        lookup = resolve_written(tx, caller, path)
    file = leases.check_lease(tx, caller, lookup, file_id, holder)
    return choose(file, policy_id_of(lookup))


@operation()
def update_block_for_pipeline(
    tx: Transaction, caller: Caller, holder: str, block: Block
) -> LocatedBlock:
    """A new generation stamp for a pipeline that is being mended, or set up to append.

    It counts once `update_pipeline` says that the replicas have it.
    """
    _, file, last = _open_block(tx, caller, holder, block)
    stamp = next_stamp(tx, last)
    key = block_key(file.id, file.block_count - 1)
    put_block(tx, key, msgspec.structs.replace(last, newest_stamp=stamp))
    stamped = msgspec.structs.replace(last, generation_stamp=stamp)
    return LocatedBlock(stamped, file.length_bytes, last.targets)


@operation(stored_reply=NoneType)
def update_pipeline(
    tx: Transaction,
    caller: Caller,
    holder: str,
    old: Block,
    new: Block,
    targets: Sequence[StorageNumber],
) -> None:
    """The pipeline was mended: these storages have the block, under its new stamp."""
    lookup, file, last = _open_block(tx, caller, holder, old)
    if (
        new.id != old.id
        or new.generation_stamp <= last.generation_stamp
        or new.length_bytes < last.length_bytes
    ):
        raise IOException(
            f"Update {old} (size={last.length_bytes}) to an older state: {new}"
            f" (size={new.length_bytes})"
        )
    if last.targets and not targets:
        raise IOException(f"Update {old} to {new}: none of its DataNodes is known")
    if new.generation_stamp > last.last_stamp or new.length_bytes > file.block_size_bytes:
        raise IOException(
            f"Update {old} to {new} (size={new.length_bytes}): no such stamp was given out, or"
            f" it is longer than a block of {file.block_size_bytes} bytes"
        )
    changed = msgspec.structs.replace(
        last,
        generation_stamp=new.generation_stamp,
        length_bytes=new.length_bytes,
        targets=tuple(targets),
    )
    put_block(tx, block_key(file.id, file.block_count - 1), changed)
    count_open_bytes(tx, lookup, file, new.length_bytes)


@operation()
def fsync(
    tx: Transaction,
    caller: Caller,
    path: FsPath,
    holder: str,
    file_id: InodeId,
    last_block_length_bytes: int,
) -> None:
    """What was written is safe with the DataNodes; the last block has at least this length.

    The length is negative if the writer does not say it: it says so when it flushes for the
    first time in a block, after the DataNodes have acknowledged.
    """
    lookup = leases.resolve_by_id(tx, caller, path, file_id)
    file = leases.check_lease(tx, caller, lookup, file_id, holder)
    last = last_block(tx, file)
    if last is None or not file.has_open_block:
        return
    length = last.length_bytes
    if length < last_block_length_bytes <= file.block_size_bytes:
        length = last_block_length_bytes
    changed = msgspec.structs.replace(last, length_bytes=length, is_flushed=True)
    if changed != last:
        put_block(tx, block_key(file.id, file.block_count - 1), changed)
        count_open_bytes(tx, lookup, file, length)


def next_stamp(tx: Transaction, block: Block) -> GenerationStamp:
    """A stamp greater than any that was given out for this block.

    NameNodes take stamps in ranges: the rest of one that lies below is thrown away.
    """
    while True:
        stamp = tx.next_number("generation stamp")
        if stamp > block.last_stamp:
            return GenerationStamp(stamp)


def _open_block(
    tx: Transaction, caller: Caller, holder: str, block: Block
) -> tuple[Lookup, Inode, Block]:
    """The block that `holder` is writing, and its file, by the block's id."""
    found = newest_row(tx, block.id)
    path = path_of(tx, InodeId(found[0][1])) if found is not None else None
    lookup = resolve(tx, path) if path is not None else None
    file = lookup.target if lookup is not None else None
    if lookup is None or file is None or not file.under_construction:
        raise IOException(f"{block} does not exist or is not under construction")
    leases.check_holder_of(tx, caller, file, holder)
    last = last_block(tx, file)
    if last is None or last.id != block.id or not file.has_open_block:
        raise IOException(f"{block} is not the last block of its file, or is finished")
    return lookup, file, last
