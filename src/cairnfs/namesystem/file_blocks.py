"""The blocks of a file: allocating, giving back, finishing and finding them.

Invariant: the rows of a file's blocks are numbered from 0 to
`block_count - 1`, and only the last may be under construction, which
`has_open_block` says; its length is not in `length_bytes` yet.

A block whose writer has said how long it is is *committed*, and *complete* as soon as a
DataNode has reported a replica of it.  One that was given no targets (by callers in this
process, who keep data elsewhere) is complete on its writer's word.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from cairnfs.blocks.checks import put_check
from cairnfs.blocks.records import (
    Block,
    BlockId,
    BlockState,
    GenerationStamp,
    StorageNumber,
    block_key,
)
from cairnfs.blocks.reports import good_replicas, need_replicas, replicas_of
from cairnfs.errors import (
    IllegalArgumentException,
    IOException,
    NotReplicatedYetException,
)
from cairnfs.namesystem import leases
from cairnfs.namesystem.attributes import access_time_is_stale
from cairnfs.namesystem.inodes import Inode, InodeId
from cairnfs.namesystem.lookup import Lookup, file_at, key_of, resolve_to_read
from cairnfs.namesystem.paths import FsPath
from cairnfs.namesystem.permissions import (
    Access,
    Caller,
    check_access,
)
from cairnfs.namesystem.quotas import charge_space, refund, space
from cairnfs.namesystem.redundancy import discard_block
from cairnfs.store.schema import Table
from cairnfs.transaction.calls import operation
from cairnfs.transaction.transaction import Transaction

BLOCKS_MAX = 10_000  # dfs.namenode.fs-limits.max-blocks-per-file


ChooseTargets = Callable[[Inode], tuple[StorageNumber, ...]]
"""Chooses storages for a new block of a file; raises IOException if there are too few."""


class LocatedBlock(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A block, where in the file it begins, and where its replicas are or are being written."""

    block: Block
    offset_bytes: int
    storages: tuple[StorageNumber, ...] = ()
    is_corrupt: bool = False  # it has replicas, and all of them are bad

    @property
    def end_bytes(self) -> int:
        return self.offset_bytes + self.block.length_bytes


class LocatedBlocks(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The blocks of a range of a file, and what a reader has to know of the whole."""

    inode_id: InodeId
    length_bytes: int  # without a block that is being written
    under_construction: bool
    blocks: list[LocatedBlock]
    last: LocatedBlock | None
    last_is_complete: bool
    access_time_is_stale: bool


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
        appends_after_full_block = (
            previous is None
            and last is not None
            and last.state is BlockState.COMPLETE
            and last.length_bytes >= file.block_size_bytes
        )
        if not appends_after_full_block:
            return _retried_block(tx, lookup, file, previous, last)
    if file.block_count >= BLOCKS_MAX:
        raise IOException(
            "File has reached the limit on maximum number of blocks"
            f" (dfs.namenode.fs-limits.max-blocks-per-file): {file.block_count} >= {BLOCKS_MAX}"
        )
    _check_progress(tx, lookup, file)
    file = finish_last_block(tx, lookup, file, previous)
    targets = choose(file)
    block = Block(
        BlockId(tx.next_number("block id")),
        GenerationStamp(tx.next_number("generation stamp")),
        0,
        BlockState.UNDER_CONSTRUCTION,
        targets,
    )
    tx.put_new(block_key(file.id, file.block_count), block)
    charge_space(tx, lookup.path, lookup.ancestors, file.block_size_bytes * file.replication)
    tx.put(
        key_of(file),
        msgspec.structs.replace(file, block_count=file.block_count + 1, has_open_block=True),
    )
    return LocatedBlock(block, file.length_bytes, targets)


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
    lookup = leases.resolve_by_id(tx, caller, path, file_id)
    return choose(leases.check_lease(tx, caller, lookup, file_id, holder))


@operation()
def update_block_for_pipeline(
    tx: Transaction, caller: Caller, holder: str, block: Block
) -> LocatedBlock:
    """A new generation stamp for a pipeline that is being mended.

    It counts once `update_pipeline` says that the replicas have it.
    """
    file, last = _open_block(tx, caller, holder, block)
    stamp = GenerationStamp(tx.next_number("generation stamp"))
    stamped = msgspec.structs.replace(last, generation_stamp=stamp)
    return LocatedBlock(stamped, file.length_bytes, last.targets)


@operation(at_most_once=True)
def update_pipeline(
    tx: Transaction,
    caller: Caller,
    holder: str,
    old: Block,
    new: Block,
    targets: Sequence[StorageNumber],
) -> None:
    """The pipeline was mended: these storages have the block, under its new stamp."""
    file, last = _open_block(tx, caller, holder, old)
    if (
        new.id != old.id
        or new.generation_stamp <= last.generation_stamp
        or new.length_bytes < last.length_bytes
    ):
        raise IOException(
            f"Update {old} (size={last.length_bytes}) to an older state: {new}"
            f" (size={new.length_bytes})"
        )
    changed = msgspec.structs.replace(
        last, generation_stamp=new.generation_stamp, targets=tuple(targets)
    )
    tx.put(block_key(file.id, file.block_count - 1), changed)


@operation()
def fsync(
    tx: Transaction,
    caller: Caller,
    path: FsPath,
    holder: str,
    file_id: InodeId,
    last_block_length_bytes: int,
) -> None:
    """The file's last block has at least this length now; others may read so far."""
    lookup = leases.resolve_by_id(tx, caller, path, file_id)
    file = leases.check_lease(tx, caller, lookup, file_id, holder)
    last = last_block(tx, file)
    if last is None or not file.has_open_block:
        return
    if last.length_bytes < last_block_length_bytes <= file.block_size_bytes:
        tx.put(
            block_key(file.id, file.block_count - 1),
            last.with_length(last_block_length_bytes),
        )


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
    tx.delete(block_key(file.id, file.block_count - 1))
    discard_block(tx, last)
    refund(tx, lookup.ancestors, space(0, file.block_size_bytes * file.replication))
    tx.put(
        key_of(file),
        msgspec.structs.replace(file, block_count=file.block_count - 1, has_open_block=False),
    )


@operation(mutates=False)
def get_block_locations(
    tx: Transaction, caller: Caller, path: FsPath, offset_bytes: int, length_bytes: int
) -> LocatedBlocks:
    """The blocks that hold a range of a file, with one more if it ends at a block's end."""
    if offset_bytes < 0:
        raise IllegalArgumentException(f"Negative offset is not supported. File: {path}")
    if length_bytes < 0:
        raise IllegalArgumentException(f"Negative length is not supported. File: {path}")
    # HDFS says that a file does not exist before it asks whether the caller may know; we ask.
    lookup = resolve_to_read(tx, caller, path)
    file = file_at(lookup)
    check_access(caller, file, Access.READ, lookup.path)

    located = _located(blocks_of(tx, file))
    chosen = _choose_blocks(located, offset_bytes, offset_bytes + length_bytes)
    last = located[-1:]
    need_replicas(tx, {each.block.id for each in chosen + last})
    return LocatedBlocks(
        file.id,
        file.length_bytes,
        file.under_construction,
        [find_replicas(tx, each) for each in chosen],
        find_replicas(tx, last[0]) if last else None,
        bool(located) and not file.has_open_block,
        access_time_is_stale(file, tx.now_ms),
    )


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
    tx.put(block_key(file.id, file.block_count - 1), finished)
    unused = (file.block_size_bytes - length) * file.replication
    refund(tx, lookup.ancestors, space(-length, unused))
    changed = msgspec.structs.replace(
        file, length_bytes=file.length_bytes + length, has_open_block=False
    )
    tx.put(key_of(file), changed)
    return changed


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
    rows = tx.scan(Table.BLOCKS, file.id, b"", file.block_count)
    assert len(rows) == file.block_count, f"inode {file.id} lacks blocks"
    return [block for _, block in rows]


def last_block(tx: Transaction, file: Inode) -> Block | None:
    return _block_at(tx, file, file.block_count - 1)


def find_replicas(tx: Transaction, located: LocatedBlock) -> LocatedBlock:
    """Where a reader finds the block; one that is being written, where its writer writes."""
    block = located.block
    if block.state is BlockState.UNDER_CONSTRUCTION:
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


def _retried_block(
    tx: Transaction, lookup: Lookup, file: Inode, previous: Block | None, last: Block | None
) -> LocatedBlock:
    """The block that was allocated when `previous` was the last, if so it is."""
    before_last = _block_at(tx, file, file.block_count - 2)
    if last is None or not is_same_block(previous, before_last):
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


def _finished(tx: Transaction, block: Block, replication: int) -> Block:
    """A block whose length is known now; if it has not just its replicas, that is put down.

    Its pipeline may have been shorter than it should be, from the start or in the end.
    """
    if not block.targets:
        return msgspec.structs.replace(block, state=BlockState.COMPLETE)
    committed = _committed(block, block.length_bytes)
    replicas = replicas_of(tx, block.id)
    good = sum(replica.is_good_for(committed) for _, replica in replicas)
    if not good == len(replicas) == replication:
        put_check(tx, block.id)
    if not good:
        return committed
    return msgspec.structs.replace(committed, state=BlockState.COMPLETE, targets=())


def _committed(block: Block, length_bytes: int) -> Block:
    """The same block, its writer having said how long it is."""
    return msgspec.structs.replace(block, length_bytes=length_bytes, state=BlockState.COMMITTED)


def _check_progress(tx: Transaction, lookup: Lookup, file: Inode) -> None:
    """The block before the last has a replica (HDFS's checkFileProgress)."""
    before_last = _block_at(tx, file, file.block_count - 2)
    if before_last is not None and before_last.state is not BlockState.COMPLETE:
        raise NotReplicatedYetException(f"Not replicated yet: {lookup.path}")


def _open_block(tx: Transaction, caller: Caller, holder: str, block: Block) -> tuple[Inode, Block]:
    """The block that `holder` is writing, and its file, by the block's id."""
    found = tx.list_by_id(Table.BLOCKS, block.id)
    file: Inode | None = tx.get_by_id(Table.INODES, found[0][0][1]) if found else None
    if file is None or not file.under_construction:
        raise IOException(f"{block} does not exist or is not under construction")
    leases.check_holder_of(tx, caller, file, holder)
    last = last_block(tx, file)
    if last is None or last.id != block.id or not file.has_open_block:
        raise IOException(f"{block} is not the last block of its file, or is finished")
    return file, last


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
    if not 0 <= reported.length_bytes <= file.block_size_bytes:
        raise IOException(
            f"Block {_show(last)} of {lookup.path} cannot be {reported.length_bytes} bytes long:"
            f" its size is {file.block_size_bytes}"
        )


def _located(blocks: list[Block]) -> list[LocatedBlock]:
    located = []
    offset_bytes = 0
    for block in blocks:
        located.append(LocatedBlock(block, offset_bytes))
        offset_bytes += block.length_bytes
    return located


def _choose_blocks(located: list[LocatedBlock], start: int, end: int) -> list[LocatedBlock]:
    """The block that holds `start`, and those after it that begin before `end`."""
    index = 0
    if located and located[0].block.length_bytes:  # HDFS begins with an empty first block
        while index < len(located) and located[index].end_bytes <= start:
            index += 1
    rest = located[index + 1 :]
    return located[index : index + 1] + [block for block in rest if block.offset_bytes < end]


def _block_at(tx: Transaction, file: Inode, index: int) -> Block | None:
    if index < 0:
        return None
    block: Block | None = tx.get(block_key(file.id, index))
    return block


def _show(block: Block | None) -> str:
    return "null" if block is None else f"blk_{block.id}_{block.generation_stamp}"
