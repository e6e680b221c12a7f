"""The blocks of a file: allocating, giving back and finishing them.

Invariant: the rows of a file's blocks are numbered from 0 to
`block_count - 1`, and only the last may be under construction, which
`has_open_block` says; what is known of its length is in `open_bytes`, not in `length_bytes`.

A block whose writer has said how long it is is *committed*, and *complete* as soon as a
DataNode has reported a replica of it.  One that was given no targets (by callers in this
process, who keep data elsewhere) is complete on its writer's word.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from cairnfs.blocks.checks import put_check
from cairnfs.blocks.holding import judged, put_block
from cairnfs.blocks.invalidations import discard_block
from cairnfs.blocks.records import (
    Block,
    BlockId,
    BlockState,
    GenerationStamp,
    Replica,
    StorageNumber,
    block_key,
    replica_key,
)
from cairnfs.blocks.reports import good_replicas, replicas_of
from cairnfs.errors import (
    IOException,
    NotReplicatedYetException,
)
from cairnfs.namesystem import leases
from cairnfs.namesystem.answers import LocatedBlock
from cairnfs.namesystem.delete import detach_blocks
from cairnfs.namesystem.inodes import Inode, InodeId
from cairnfs.namesystem.lookup import Lookup, key_of
from cairnfs.namesystem.paths import FsPath
from cairnfs.namesystem.permissions import (
    Caller,
)
from cairnfs.namesystem.policy_changes import policy_id_of
from cairnfs.namesystem.quotas import change_file, recharged
from cairnfs.store.schema import Table
from cairnfs.transaction.calls import operation
from cairnfs.transaction.transaction import Transaction

BLOCKS_MAX = 10_000  # dfs.namenode.fs-limits.max-blocks-per-file


ChooseTargets = Callable[[Inode, int], tuple[StorageNumber, ...]]
"""Chooses storages for a new block of a file, by the number of the storage policy that it has;
raises IOException if there are too few."""


@operation()
def add_block(
    tx: Transaction,
    caller: Caller,
    path: FsPath,
    holder: str,
    previous: Block | None,
    file_id: InodeId,
    choose: ChooseTargets,
) -> LocatedBlock:
    """Allocate the next block of an open file; `previous`, if any, is finished now.

    A client that lost the answer asks again with the same `previous`: it is
    given the block that it has not begun to write.
    """
    lookup = leases.resolve_by_id(tx, caller, path, file_id)
    file = leases.check_lease(tx, caller, lookup, file_id, holder)
    last = last_block(tx, file)
    if not is_same_block(previous, last):
        begins_append = (
            previous is None
            and last is not None
            and last.state is BlockState.COMPLETE
            and (last.length_bytes >= file.block_size_bytes or _leaves_last_block(tx, file))
        )
        if not begins_append:
            return _retried_block(tx, lookup, file, previous, last)
    if file.block_count >= BLOCKS_MAX:
        raise IOException(
            "File has reached the limit on maximum number of blocks"
            f" (dfs.namenode.fs-limits.max-blocks-per-file): {file.block_count} >= {BLOCKS_MAX}"
        )
    _check_progress(tx, lookup, file)
    file = finish_last_block(tx, lookup, file, previous)
    policy_id = policy_id_of(lookup)
    targets = choose(file, policy_id)
    block = Block(
        BlockId(tx.next_number("block id")),
        GenerationStamp(tx.next_number("generation stamp")),
        0,
        BlockState.UNDER_CONSTRUCTION,
        targets,
    )
    tx.put_new(block_key(file.id, file.block_count), block)
    longer = msgspec.structs.replace(file, block_count=file.block_count + 1, has_open_block=True)
    if policy_id or file.charged_policy:
        longer = recharged(longer, policy_id)
    _put_file(tx, lookup, file, longer)
    return LocatedBlock(block, file.length_bytes, targets)


@operation()
def abandon_block(
    tx: Transaction, caller: Caller, path: FsPath, holder: str, block: Block, file_id: InodeId
) -> None:
    """Give the last block of an open file back; another one is nobody's any more already."""
    lookup = leases.resolve_by_id(tx, caller, path, file_id)
    file = leases.check_lease(tx, caller, lookup, file_id, holder)
    last = last_block(tx, file)
    if last is None or not is_same_block(block, last) or not file.has_open_block:
        return
    if last.length_bytes or last.is_flushed:
        raise IOException(f"{last} of {lookup.path} has acknowledged data: it is not given back")
    remove_open_block(tx, lookup, file, last)


def finish_last_block(
    tx: Transaction, lookup: Lookup, file: Inode, reported: Block | None
) -> Inode:
    """The last block has the length that its writer reports; charge what it really takes."""
    if not file.has_open_block:
        return file
    last = last_block(tx, file)
    assert last is not None
    assert reported is not None, "a block is finished by whoever wrote it"
    _check_reported(lookup, file, last, reported)
    length = reported.length_bytes
    finished = _finished(tx, msgspec.structs.replace(last, length_bytes=length), file.replication)
    put_block(tx, block_key(file.id, file.block_count - 1), finished)
    return count_finished(tx, lookup, file, length)


def count_finished(tx: Transaction, lookup: Lookup, file: Inode, length_bytes: int) -> Inode:
    """The open block is as long as this, and will not grow: charge what it really takes."""
    finished = msgspec.structs.replace(
        file,
        length_bytes=file.length_bytes + length_bytes,
        has_open_block=False,
        open_bytes=0,
    )
    return _put_file(tx, lookup, file, finished)


def count_open_bytes(tx: Transaction, lookup: Lookup, file: Inode, length_bytes: int) -> None:
    """So much of the open block is acknowledged."""
    if length_bytes != file.open_bytes:
        _put_file(tx, lookup, file, msgspec.structs.replace(file, open_bytes=length_bytes))


def close_file(tx: Transaction, file: Inode) -> None:
    """Nobody writes the file any more, and all its blocks are complete."""
    leases.remove(tx, file.id)
    tx.put(
        key_of(file),
        msgspec.structs.replace(file, under_construction=False, mtime_ms=tx.now_ms),
    )


def remove_open_block(tx: Transaction, lookup: Lookup, file: Inode, last: Block) -> Inode:
    """The last block, which is being written, is not part of the file any more."""
    key = block_key(file.id, file.block_count - 1)
    if tx.covered == 0:
        tx.delete(key)
        discard_block(tx, last)
    else:  # it may be one that was finished, empty, in a snapshot, and was reopened since
        detach_blocks(tx, file, [(key, last)])
    shorter = msgspec.structs.replace(
        file, block_count=file.block_count - 1, has_open_block=False, open_bytes=0
    )
    return _put_file(tx, lookup, file, shorter)


def count_reported(tx: Transaction, block: Block, length_bytes: int) -> int:
    """How many DataNodes have reported the block, of this length."""
    as_finished = _committed(block, length_bytes)
    return sum(replica.is_good_for(as_finished) for _, replica in replicas_of(tx, block.id))


def check_blocks_complete(tx: Transaction, file: Inode) -> bool:
    """Whether every block has a replica: before the last two, `add_block` has seen to it."""
    for index in (file.block_count - 2, file.block_count - 1):
        block = _block_at(tx, file, index)
        if block is not None and block.state is not BlockState.COMPLETE:
            return False
    return True


def blocks_of(tx: Transaction, file: Inode) -> list[Block]:
    """All blocks of a file, in order."""
    if not file.block_count:
        return []
    if tx.is_new(file.id):  # what this very transaction has written is not found by a scan
        return [tx.get(block_key(file.id, index)) for index in range(file.block_count)]
    rows = tx.scan(Table.BLOCKS, file.id, b"", file.block_count)
    assert len(rows) == file.block_count, f"inode {file.id} lacks blocks"
    return [block for _, block in rows]


def last_block(tx: Transaction, file: Inode) -> Block | None:
    return _block_at(tx, file, file.block_count - 1)


def find_replicas(tx: Transaction, located: LocatedBlock) -> LocatedBlock:
    """Where a reader finds the block; one that is being written, where its writer writes."""
    block = judged(tx, located.block) if located.block.stored_bytes else located.block
    located = msgspec.structs.replace(located, block=block)
    if block.state in (BlockState.UNDER_CONSTRUCTION, BlockState.TRUNCATING):
        return msgspec.structs.replace(located, storages=block.targets)
    storages = good_replicas(tx, block)
    if not storages and block.state is BlockState.COMMITTED:
        return msgspec.structs.replace(located, storages=block.targets)
    if storages:
        return msgspec.structs.replace(located, storages=tuple(storages))
    bad = tuple(storage for storage, _ in replicas_of(tx, block.id))
    return msgspec.structs.replace(located, storages=bad, is_corrupt=bool(bad))


def is_same_block(a: Block | None, b: Block | None) -> bool:
    if a is None or b is None:
        return a is b
    return a.id == b.id and a.generation_stamp == b.generation_stamp


def _put_file(tx: Transaction, lookup: Lookup, before: Inode, after: Inode) -> Inode:
    """Write the file's row, and charge the directories above for what it takes now."""
    file = change_file(tx, lookup.path, lookup.ancestors, before, after)
    tx.put(key_of(file), file)
    return file


def _retried_block(
    tx: Transaction, lookup: Lookup, file: Inode, previous: Block | None, last: Block | None
) -> LocatedBlock:
    """The block that was allocated when `previous` was the last, if so it is."""
    before_last = _block_at(tx, file, file.block_count - 2)
    has_begun_append = previous is None and _leaves_last_block(tx, file)
    if last is None or not (is_same_block(previous, before_last) or has_begun_append):
        raise IOException(
            f"Cannot allocate block in {lookup.path}: passed 'previous' block {_show(previous)}"
            f" does not match actual last block in file {_show(last)}"
        )
    if last.length_bytes:
        raise IOException(
            f"Request looked like a retry to allocate block {_show(last)} but it already"
            f" contains {last.length_bytes} bytes"
        )
    return LocatedBlock(last, file.length_bytes, last.targets)


def _leaves_last_block(tx: Transaction, file: Inode) -> bool:
    """Whether the writer appends behind a block that another file's writer still writes."""
    return leases.get(tx, file.id).leaves_last_block


def _finished(tx: Transaction, block: Block, replication: int) -> Block:
    """A block whose length is known now; if it has not just its replicas, that is put down.

    Its pipeline may have been shorter than it should be, from the start or in the end.
    """
    if not block.targets:
        return block.completed()
    committed = _committed(block, block.length_bytes)
    replicas = replicas_of(tx, block.id)
    good = sum(replica.is_good_for(committed) for _, replica in replicas)
    if not good == len(replicas) == replication:
        put_check(tx, block.id)
    if not good:
        # Whoever reports it from now on completes it; one who has just done so would not, and
        # a search by id does not notice: these reads do.
        keys = [replica_key(storage, block.id) for storage in block.targets]
        tx.need(keys)
        found: list[Replica | None] = [tx.get(key) for key in keys]
        if not any(replica and replica.is_good_for(committed) for replica in found):
            return committed
    return committed.completed()


def _committed(block: Block, length_bytes: int) -> Block:
    """The same block, its writer having said how long it is."""
    return msgspec.structs.replace(block, length_bytes=length_bytes, state=BlockState.COMMITTED)


def _check_progress(tx: Transaction, lookup: Lookup, file: Inode) -> None:
    """The block before the last has a replica (HDFS's checkFileProgress)."""
    before_last = _block_at(tx, file, file.block_count - 2)
    if before_last is not None and before_last.state is not BlockState.COMPLETE:
        raise NotReplicatedYetException(f"Not replicated yet: {lookup.path}")


def _check_reported(lookup: Lookup, file: Inode, last: Block, reported: Block) -> None:
    if reported.generation_stamp != last.generation_stamp:
        raise IOException(
            f"Commit block with mismatching GS. NN has {_show(last)}, client submits"
            f" {_show(reported)}"
        )
    if reported.id != last.id:
        raise IOException(
            f"Trying to commit inconsistent block: id = {reported.id}, expected id = {last.id}"
        )
    if reported.length_bytes < last.length_bytes:
        raise IOException(
            f"Block {_show(last)} of {lookup.path} cannot be {reported.length_bytes} bytes long:"
            f" {last.length_bytes} of them were flushed"
        )
    if not 0 <= reported.length_bytes <= file.block_size_bytes:
        raise IOException(
            f"Block {_show(last)} of {lookup.path} cannot be {reported.length_bytes} bytes long:"
            f" its size is {file.block_size_bytes}"
        )


def _block_at(tx: Transaction, file: Inode, index: int) -> Block | None:
    if index < 0:
        return None
    block: Block | None = tx.get(block_key(file.id, index))
    return block


def _show(block: Block | None) -> str:
    return "null" if block is None else f"blk_{block.id}_{block.generation_stamp}"
