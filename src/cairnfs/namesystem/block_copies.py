"""Copies of last blocks: who appends must not write into what others need.

After a truncate that a snapshot has outlived, the replicas of a file's last block are longer than
the block; what comes next in the file would overwrite what the snapshot has there.  So DataNodes
copy the beginning of their replicas to another block, each of them its own, and the file goes on
with that.  The same if another file, a clone, has the block too.

That a copy is wanted is a row of its own, by the file.  Until it is made nothing is different for
anybody: the file can be read, cut, deleted; then nobody wants the copy any more, and its replicas
are deleted as those of no block.  Each attempt is for another block under another stamp, by which
the answer is known.
"""

from __future__ import annotations

from collections.abc import Sequence

from cairnfs.blocks.checks import put_check
from cairnfs.blocks.holding import is_shared, needed_bytes
from cairnfs.blocks.invalidations import invalidate
from cairnfs.blocks.records import (
    Block,
    BlockId,
    BlockState,
    GenerationStamp,
    Recovery,
    Replica,
    StorageNumber,
    block_key,
    copy_key,
)
from cairnfs.blocks.reports import replicas_of, store_replica
from cairnfs.errors import IOException, RecoveryInProgressException
from cairnfs.namesystem.delete import detach_blocks
from cairnfs.namesystem.file_blocks import last_block
from cairnfs.namesystem.inodes import Inode, InodeId
from cairnfs.namesystem.lookup import path_of, resolve, resolve_to_write
from cairnfs.namesystem.paths import FsPath
from cairnfs.namesystem.permissions import Access, Caller, check_access
from cairnfs.namesystem.pipelines import next_stamp
from cairnfs.store.schema import Key, Table
from cairnfs.transaction.calls import operation
from cairnfs.transaction.transaction import Transaction


class BlockCopyNeeded(RecoveryInProgressException):
    """The last block has to be copied first: `begin_copy`, then the same call will succeed.

    An operation that fails changes nothing, so it cannot begin the copy itself.
    """

    def __init__(self, message: str, path: FsPath, block_id: BlockId) -> None:
        super().__init__(message)
        self.path = path
        self.block_id = block_id


def must_be_copied(tx: Transaction, file: Inode, last: Block, *, always: bool) -> bool:
    """Whether an append must not go on in a file's last block.

    With `always`, also where it could, if a snapshot needs the block: as other systems do.
    """
    key = last_key(file)
    if last.replica_bytes > last.length_bytes or is_shared(tx, key, last):
        return True
    if any(replica.length_bytes > last.length_bytes for _, replica in replicas_of(tx, last.id)):
        return True  # the row dates from when another file's writer still wrote the block
    return always and needed_bytes(tx, key, last) > 0


def replace_last_block(tx: Transaction, file: Inode, last: Block, copy: Block) -> None:
    """The file goes on with a copy; the block that it had stays for whoever needs it."""
    key = last_key(file)
    detach_blocks(tx, file, [(key, last)])
    tx.put(key, copy)


def new_copy_of(tx: Transaction, last: Block) -> Block:
    """A block of its own with the same content, complete."""
    id = BlockId(tx.next_number("block id"))
    return Block(id, next_stamp(tx, last), last.length_bytes, BlockState.COMPLETE)


@operation()
def begin_copy(tx: Transaction, caller: Caller, path: FsPath, block_id: BlockId) -> InodeId | None:
    """Have the last block of a closed file copied by DataNodes.

    None: it is another one by now, perhaps because it was copied; or there is none any more.
    The file of a clone is one of its own from now on.
    """
    file = resolve_to_write(tx, caller, path).target
    last = last_block(tx, file) if file is not None and file.is_file else None
    if file is None or last is None or file.under_construction or last.id != block_id:
        return None
    check_access(caller, file, Access.WRITE, path)
    key = copy_key(file.id)
    wanted: Recovery | None = tx.get(key)
    if wanted is None or (wanted.source_id, wanted.length_bytes) != (last.id, last.length_bytes):
        wanted = Recovery(file.id, tx.now_ms, source_id=last.id, length_bytes=last.length_bytes)
        tx.put(key, wanted)
    return file.id


def find_wanted(tx: Transaction, inode_id: InodeId) -> tuple[Recovery, Block] | None:
    """The copy that is wanted for a file, and of which block; None: there is none any more."""
    wanted: Recovery | None = tx.get(copy_key(inode_id))
    if wanted is None:
        return None
    file: Inode | None = tx.get_by_id(Table.INODES, inode_id)
    last = last_block(tx, file) if file is not None and not file.under_construction else None
    if last is None or (last.id, last.length_bytes) != (wanted.source_id, wanted.length_bytes):
        tx.delete(copy_key(inode_id))
        return None
    return wanted, last


def finish_copy(
    tx: Transaction,
    source_id: BlockId,
    stamp: int,
    length_bytes: int,
    storages: Sequence[StorageNumber],
) -> bool:
    """These storages have made a copy of a block; False: none was wanted under this stamp."""
    rows = tx.list_by_id(Table.RECOVERIES, stamp)
    if not rows or rows[0][1].source_id != source_id:
        return False
    key, wanted = rows[0]
    inode_id = InodeId(wanted.inode_id)
    copy = Block(BlockId(wanted.copy_id), GenerationStamp(stamp), length_bytes, BlockState.COMPLETE)
    path = path_of(tx, inode_id)
    file = resolve(tx, path).target if path is not None else None
    found = find_wanted(tx, inode_id)
    if file is None or found is None:  # it was deleted, cut, or is another one by now
        tx.delete(key)
        for storage in storages:
            invalidate(tx, storage, Replica(copy.id, copy.generation_stamp, length_bytes))
        return True
    _, last = found
    if length_bytes != wanted.length_bytes or not storages:
        raise IOException(
            f"{last} of {path} was copied with {length_bytes} bytes to {len(storages)} storages,"
            f" but has to have {wanted.length_bytes} on one at least"
        )
    replace_last_block(tx, file, last, copy)
    for storage in storages:
        replica = Replica(copy.id, copy.generation_stamp, length_bytes)
        store_replica(tx, storage, replica, last_key(file), copy)
    put_check(tx, copy.id)
    tx.delete(key)
    return True


def last_key(file: Inode) -> Key:
    return block_key(file.id, file.block_count - 1)
