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
from cairnfs.blocks.holding import is_shared, judged, needed_bytes, newest_row, put_block
from cairnfs.blocks.records import (
    Block,
    BlockId,
    BlockState,
    GenerationStamp,
    Recovery,
    Replica,
    StorageNumber,
    copy_key,
    recovery_key,
)
from cairnfs.blocks.reports import good_replicas, store_replica
from cairnfs.errors import FileNotFoundException, IOException
from cairnfs.namesystem.block_copies import find_wanted, finish_copy
from cairnfs.namesystem.file_blocks import (
    check_blocks_complete,
    close_file,
    count_finished,
    remove_open_block,
)
from cairnfs.namesystem.inodes import InodeId
from cairnfs.namesystem.lookup import Lookup, path_of, resolve
from cairnfs.namesystem.orphans import look_again
from cairnfs.namesystem.pipelines import next_stamp
from cairnfs.store.schema import Key, Table
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
    copy_id: BlockId | None = None  # if they are to be left alone, and copied to this block

    @property
    def cut(self) -> Block | None:
        """What it is to be cut to; None: as much as all of them have."""
        if self.copy_id is None and self.block.state is not BlockState.TRUNCATING:
            return None
        id = self.block.id if self.copy_id is None else self.copy_id
        return msgspec.structs.replace(self.block, id=id, generation_stamp=self.stamp)


def begin_recovery(tx: Transaction, id: InodeId, row: Key, last: Block) -> None:
    """The last block of a file waits for DataNodes to agree on it."""
    tx.get(recovery_key(last.id))
    tx.put(recovery_key(last.id), Recovery(id, tx.now_ms))
    put_block(tx, row, msgspec.structs.replace(last, is_recovering=True))


@operation()
def begin_attempt(tx: Transaction, block_id: int, choose: ChooseParticipants) -> Attempt | None:
    """Choose who is to recover a block, under which stamp; None: there is nothing to do now."""
    recovery: Recovery | None = tx.get(recovery_key(block_id))
    if recovery is None:
        return None
    found = newest_row(tx, BlockId(block_id))
    if found is None or not found[1].is_recovering:  # the file was deleted
        tx.delete(recovery_key(block_id))
        return None
    row, block = found
    participants = choose(block)
    if participants is None:
        return None
    stamp = next_stamp(tx, block)
    _find_file(tx, row)
    put_block(tx, row, msgspec.structs.replace(block, newest_stamp=stamp))
    attempted = msgspec.structs.replace(recovery, may_remove=participants.are_all)
    if attempted != recovery:
        tx.put(recovery_key(block_id), attempted)
    return Attempt(block, stamp, participants)


@operation()
def begin_copy_attempt(
    tx: Transaction, inode_id: InodeId, choose: ChooseParticipants
) -> Attempt | None:
    """Choose who is to copy the last block of a file, and to which; None: nothing to do now."""
    found = find_wanted(tx, inode_id)
    if found is None:
        return None
    wanted, last = found
    now = judged(tx, last)
    source = msgspec.structs.replace(now, targets=tuple(good_replicas(tx, now)))
    participants = choose(source) if now.state is BlockState.COMPLETE else None
    if participants is None:
        return None
    newest = max(now.last_stamp, wanted.copy_stamp)
    stamp = next_stamp(tx, msgspec.structs.replace(now, newest_stamp=newest))
    copy_id = BlockId(tx.next_number("block id"))
    attempted = msgspec.structs.replace(wanted, copy_id=copy_id, copy_stamp=stamp)
    tx.put(copy_key(inode_id), attempted)
    return Attempt(now, stamp, participants, copy_id)


@operation()
def recover_deleted(tx: Transaction, block_id: BlockId) -> bool:
    """Begin the recovery of a block that was detached while it was written, if it is needed.

    A snapshot or another file may need it.  Its writer has lost it, so without a recovery it
    would be gone when its DataNodes are started again.  False: the block is in a file.
    """
    found = newest_row(tx, block_id)
    if found is None:
        return True
    row, block = found
    if _find_file(tx, row) is not None:
        return False
    is_open = block.state is BlockState.UNDER_CONSTRUCTION and not block.is_recovering
    if is_open and block.targets and _is_needed(tx, row, block):
        begin_recovery(tx, InodeId(row[1]), row, block)
    return True


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

    Or nobody has anything of it, and it is to be removed.  Or they have made a copy of it.
    Saying it twice is allowed.
    """
    if finish_copy(tx, block.id, stamp, length_bytes, storages):
        return
    found = newest_row(tx, block.id)
    if found is None:
        if removes:
            return
        raise IOException(f"Block (={block}) not found")
    row, stored = found
    lookup = _find_file(tx, row)
    if lookup is None and not _is_needed(tx, row, stored):
        raise FileNotFoundException(f"The file of {block} was deleted")
    if stored.state is BlockState.COMPLETE:
        return
    if not stored.is_recovering or stamp != stored.newest_stamp:
        raise IOException(
            f"The recovery id {stamp} does not match current recovery id {stored.newest_stamp}"
            f" for block {block}"
        )
    if removes:
        _check_may_remove(tx, stored)
    tx.get(recovery_key(stored.id))
    tx.delete(recovery_key(stored.id))
    if lookup is None:  # a snapshot or another file needs it
        _finish(tx, f"inode {row[1]}", row, stored, stamp, length_bytes, storages)
        _release_orphan(tx, InodeId(row[1]))
        return
    file = lookup.target
    assert file is not None, f"{lookup.path} is where inode {row[1]} is"
    if removes:
        file = remove_open_block(tx, lookup, file, stored)
    else:
        if length_bytes > file.block_size_bytes:
            raise IOException(
                f"{block} of {lookup.path} was recovered with {length_bytes} bytes, but no block"
                f" of it has more than {file.block_size_bytes}"
            )
        _finish(tx, str(lookup.path), row, stored, stamp, length_bytes, storages)
        if stored.state is not BlockState.TRUNCATING:
            file = count_finished(tx, lookup, file, length_bytes)
    if check_blocks_complete(tx, file):
        close_file(tx, file)


def _find_file(tx: Transaction, row: Key) -> Lookup | None:
    """Where the file of a block is, and so what snapshots need of it; None: it is deleted."""
    path = path_of(tx, InodeId(row[1]))
    return None if path is None else resolve(tx, path)


def _is_needed(tx: Transaction, row: Key, block: Block) -> bool:
    """Whether a snapshot or another file needs a block of which this is the row."""
    return is_shared(tx, row, block) or needed_bytes(tx, row, block) > 0


def _release_orphan(tx: Transaction, id: InodeId) -> None:
    """Have a detached file looked at again, if it was held until its block is finished."""
    for key, orphan in tx.list_by_id(Table.HELD, id):
        if orphan.is_waiting:
            look_again(tx, key, orphan)


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
    where: str,
    row: Key,
    block: Block,
    stamp: int,
    length_bytes: int,
    storages: Sequence[StorageNumber],
) -> None:
    """These storages have the block, and nobody writes it any more."""
    is_cut = block.state is BlockState.TRUNCATING
    if length_bytes < block.length_bytes or (is_cut and length_bytes != block.length_bytes):
        raise IOException(
            f"{block} of {where} was recovered with {length_bytes} bytes, but has to have"
            f" {'' if is_cut else 'at least '}{block.length_bytes}"
        )
    committed = Block(
        block.id, GenerationStamp(stamp), length_bytes, BlockState.COMMITTED, block.targets
    )
    put_block(tx, row, committed)
    for storage in storages:
        replica = Replica(block.id, committed.generation_stamp, length_bytes)
        store_replica(tx, storage, replica, row, committed)
    put_check(tx, block.id)  # others may have it too, outdated now
