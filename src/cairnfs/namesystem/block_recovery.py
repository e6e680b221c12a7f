"""Recovery of the last block of a file: its writer is gone, or it is being cut.

One of the DataNodes that have the block, the primary, asks the others what they have, has all
of them keep the same length under a new stamp, and tells a NameNode.  Which blocks wait for
this is in RECOVERIES; each attempt has a stamp of its own, by which the answer is known, so
that an attempt of a DataNode or NameNode that died is overtaken by the next and does no harm.

Invariant: nothing that is known to be acknowledged is lost.  A block is never made shorter than
its row says, and is removed only if nobody was told that something in it is safe, and every
DataNode that may have it was asked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from cairnfs.blocks.checks import put_check
from cairnfs.blocks.records import (
    Block,
    BlockState,
    GenerationStamp,
    Recovery,
    Replica,
    StorageNumber,
    block_key,
    recovery_key,
)
from cairnfs.blocks.reports import store_replica
from cairnfs.errors import FileNotFoundException, IOException
from cairnfs.namesystem.file_blocks import (
    check_blocks_complete,
    close_file,
    count_finished,
    remove_open_block,
)
from cairnfs.namesystem.inodes import Inode, InodeId
from cairnfs.namesystem.lookup import Lookup, path_of, resolve
from cairnfs.namesystem.pipelines import next_stamp
from cairnfs.store.base import Key
from cairnfs.store.schema import Table
from cairnfs.transaction.calls import operation
from cairnfs.transaction.transaction import Transaction


class Participants(msgspec.Struct, frozen=True, gc=False):
    """Who takes part in an attempt."""

    primary: StorageNumber
    storages: tuple[StorageNumber, ...]
    are_all: bool  # nobody else may have the block


ChooseParticipants = Callable[[Block], Participants | None]
"""Chooses among the storages that may have a block; None: nobody can be asked now."""


class Attempt(msgspec.Struct, frozen=True, gc=False):
    """What a primary is told."""

    block: Block  # under the stamp that its replicas have at least
    stamp: GenerationStamp  # that they are to have
    participants: Participants

    @property
    def cut_bytes(self) -> int | None:
        """The length to cut it to; None: as much as all of them have."""
        is_cut = self.block.state is BlockState.TRUNCATING
        return self.block.length_bytes if is_cut else None


def begin_recovery(tx: Transaction, file: Inode, last: Block) -> None:
    """The last block of a file waits for DataNodes to agree on it."""
    tx.get(recovery_key(last.id))
    tx.put(recovery_key(last.id), Recovery(file.id, tx.now_ms))
    recovering = msgspec.structs.replace(last, is_recovering=True)
    tx.put(block_key(file.id, file.block_count - 1), recovering)


@operation()
def begin_attempt(tx: Transaction, block_id: int, choose: ChooseParticipants) -> Attempt | None:
    """Choose who is to recover a block, under which stamp; None: there is nothing to do now."""
    recovery: Recovery | None = tx.get(recovery_key(block_id))
    if recovery is None:
        return None
    found = tx.list_by_id(Table.BLOCKS, block_id)
    if not found or not found[0][1].is_recovering:  # the file was deleted
        tx.delete(recovery_key(block_id))
        return None
    row, block = found[0]
    participants = choose(block)
    if participants is None:
        return None
    stamp = next_stamp(tx, block)
    tx.put(row, msgspec.structs.replace(block, newest_stamp=stamp))
    attempted = msgspec.structs.replace(recovery, may_remove=participants.are_all)
    if attempted != recovery:
        tx.put(recovery_key(block_id), attempted)
    return Attempt(block, stamp, participants)


@operation()
def commit_block_synchronization(
    tx: Transaction,
    block: Block,
    stamp: int,
    length_bytes: int,
    removes: bool,
    storages: Sequence[StorageNumber],
) -> None:
    """DataNodes have agreed: these storages have the block, so long, under this stamp.

    Or nobody has anything of it, and it is to be removed.  Saying it twice is allowed.
    """
    found = tx.list_by_id(Table.BLOCKS, block.id)
    if not found:
        if removes:
            return
        raise IOException(f"Block (={block}) not found")
    row, stored = found[0]
    path = path_of(tx, InodeId(row[1]))
    if path is None:
        raise FileNotFoundException(f"The file of {block} was deleted")
    if stored.state is BlockState.COMPLETE:
        return
    if not stored.is_recovering or stamp != stored.newest_stamp:
        raise IOException(
            f"The recovery id {stamp} does not match current recovery id {stored.newest_stamp}"
            f" for block {block}"
        )
    lookup = resolve(tx, path)
    file = lookup.target
    assert file is not None, f"{path} is where inode {row[1]} is"
    if removes:
        _check_may_remove(tx, stored)
        file = remove_open_block(tx, lookup, file, stored)
    else:
        file = _finish(tx, lookup, file, row, stored, stamp, length_bytes, storages)
    tx.get(recovery_key(stored.id))
    tx.delete(recovery_key(stored.id))
    if check_blocks_complete(tx, file):
        close_file(tx, file)


def _check_may_remove(tx: Transaction, block: Block) -> None:
    recovery: Recovery | None = tx.get(recovery_key(block.id))
    if (
        block.state is BlockState.TRUNCATING
        or block.length_bytes
        or block.is_flushed
        or recovery is None
        or not recovery.may_remove
    ):
        raise IOException(
            f"{block} is not removed: a DataNode that could not be asked may have data of it"
        )


def _finish(
    tx: Transaction,
    lookup: Lookup,
    file: Inode,
    row: Key,
    block: Block,
    stamp: int,
    length_bytes: int,
    storages: Sequence[StorageNumber],
) -> Inode:
    is_cut = block.state is BlockState.TRUNCATING
    if not block.length_bytes <= length_bytes <= file.block_size_bytes or (
        is_cut and length_bytes != block.length_bytes
    ):
        raise IOException(
            f"{block} of {lookup.path} was recovered with {length_bytes} bytes, but has to have"
            f" {'' if is_cut else 'at least '}{block.length_bytes}"
        )
    committed = Block(
        block.id, GenerationStamp(stamp), length_bytes, BlockState.COMMITTED, block.targets
    )
    tx.put(row, committed)
    for storage in storages:
        store_replica(
            tx, storage, Replica(block.id, committed.generation_stamp, length_bytes), row, committed
        )
    put_check(tx, block.id)  # others may have it too, outdated now
    return file if is_cut else count_finished(tx, lookup, file, length_bytes)
