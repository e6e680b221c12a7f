"""Append: a closed file is opened again, and goes on with its last block or a new one."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from cairnfs.blocks.holding import judged, put_block
from cairnfs.blocks.records import Block, BlockState, StorageNumber, block_key
from cairnfs.blocks.reports import good_replicas
from cairnfs.errors import FileAlreadyExistsException, FileNotFoundException
from cairnfs.namesystem import leases
from cairnfs.namesystem.answers import FileStatus, LocatedBlock
from cairnfs.namesystem.block_copies import (
    BlockCopyNeeded,
    must_be_copied,
    new_copy_of,
    replace_last_block,
)
from cairnfs.namesystem.file_blocks import last_block
from cairnfs.namesystem.files import CreateFlag
from cairnfs.namesystem.inodes import Inode
from cairnfs.namesystem.lease_recovery import check_not_being_written
from cairnfs.namesystem.lookup import Lookup, key_of, resolve_to_write
from cairnfs.namesystem.paths import FsPath
from cairnfs.namesystem.permissions import Access, Caller, check_access
from cairnfs.namesystem.quotas import change_file
from cairnfs.namesystem.status import status_of
from cairnfs.store.schema import Table
from cairnfs.transaction.calls import operation
from cairnfs.transaction.transaction import Transaction

ChooseReplicas = Callable[[Block, Sequence[StorageNumber]], tuple[StorageNumber, ...]]
"""Chooses the replicas of a block that are to be changed; raises IOException if there is none."""


class LastBlockWithStatus(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What a writer who appends has to know; a block without storages is not to be written."""

    block: LocatedBlock | None
    status: FileStatus


@operation(stored_reply=LastBlockWithStatus)
def append(
    tx: Transaction,
    caller: Caller,
    path: FsPath,
    holder: str,
    flags: int,
    choose: ChooseReplicas,
    soft_limit_ms: int = leases.SOFT_LIMIT_MS,
    copy_always: bool = False,
) -> LastBlockWithStatus:
    """Open a closed file to write at its end; with NEW_BLOCK, not into its last block.

    A last block of which a snapshot needs more than the file has, or that another file has too,
    is copied first: BlockCopyNeeded says so.  While that other file's writer still writes it,
    the file goes on with a new block instead, and its last block stays as short as it is.
    """
    leases.check_holder(holder)
    lookup = resolve_to_write(tx, caller, path)
    file = lookup.target
    if file is None:
        raise FileNotFoundException(
            f"Failed to append to non-existent file {lookup.path} for client {caller.address}"
        )
    if file.is_directory:
        raise FileAlreadyExistsException(
            f"Cannot append to directory {lookup.path}; already exists as a directory."
        )
    check_access(caller, file, Access.WRITE, lookup.path)
    check_not_being_written(tx, caller, lookup.path, file, holder, "APPEND_FILE", soft_limit_ms)
    last = last_block(tx, file)
    located, leaves_last_block = None, False
    opened = msgspec.structs.replace(file, under_construction=True)
    if last is not None and flags & CreateFlag.NEW_BLOCK.value:
        located = LocatedBlock(last, file.length_bytes - last.length_bytes)
    elif last is not None and last.length_bytes < file.block_size_bytes:
        now = _judge_last_block(tx, last)
        leaves_last_block = now.state is not BlockState.COMPLETE and bool(now.targets)
        if not leaves_last_block:
            opened, located = _open_last_block(tx, lookup, opened, last, now, choose, copy_always)
    tx.put(key_of(file), opened)
    leases.grant(tx, file.id, holder, caller, leaves_last_block)
    return LastBlockWithStatus(located, status_of(tx, opened))


def _judge_last_block(tx: Transaction, last: Block) -> Block:
    """The last block as its replicas are: of another file, perhaps, that is being written."""
    tx.need(ids=[(int(table), last.id) for table in (Table.BLOCKS, Table.REPLICAS)])
    return judged(tx, last)


def _open_last_block(
    tx: Transaction,
    lookup: Lookup,
    file: Inode,
    last: Block,
    now: Block,
    choose: ChooseReplicas,
    copy_always: bool,
) -> tuple[Inode, LocatedBlock]:
    """The last block has room: it is written again, where its good replicas are.

    Its stamp is a new one as soon as the writer has set up a pipeline.
    """
    good = good_replicas(tx, now)
    targets = choose(last, good)
    if must_be_copied(tx, file, last, always=copy_always):
        if targets:
            raise BlockCopyNeeded(
                f"Failed to APPEND_FILE {lookup.path} because its last block {last} is being"
                " copied: a snapshot or another file has it too. Try again later.",
                lookup.path,
                last.id,
            )
        copy = new_copy_of(tx, last)  # its data is kept elsewhere, by callers in this process
        replace_last_block(tx, file, last, copy)
        last = copy
    block = msgspec.structs.replace(last, state=BlockState.UNDER_CONSTRUCTION, targets=targets)
    put_block(tx, block_key(file.id, file.block_count - 1), block)
    opened = msgspec.structs.replace(
        file,
        length_bytes=file.length_bytes - last.length_bytes,
        has_open_block=True,
        open_bytes=last.length_bytes,
    )
    opened = change_file(tx, lookup.path, lookup.ancestors, file, opened)
    return opened, LocatedBlock(block, opened.length_bytes, targets)
