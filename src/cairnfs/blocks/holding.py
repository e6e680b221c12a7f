"""What snapshots and other files need of a block's replicas.

A file is only ever appended to or cut, so versions of a block differ in their length alone, and
one set of replicas, as long as the longest, serves all of them (Agarwal, Borthakur and Stoica,
"Snapshots in HDFS": selective copy-on-append).  Nothing is copied but where an append would
overwrite what a truncate has left to a snapshot.

Several files may have a row of one block: a clone and its origin, a file that was rolled back
and what it was before.  At most one of them, the original, may still be written, or wait for a
recovery; the other rows are pointers.  A pointer knows how long the block is for its file.  The
stamp and the length of the replicas, as it knows them, may be out of date.  So replicas are
always judged by the row that knows best (`newest_row`), and a row that is removed leaves what it
knows to the others (`pass_on`).

Invariants:
- `held_bytes` of a block's row is at least the length of every older version of it that a
  snapshot needs; no replica is made shorter than that.
- A row of a block that is being written is not removed while another file has the block.
"""

from __future__ import annotations

import msgspec

from cairnfs.blocks.checks import put_check
from cairnfs.blocks.records import Block, BlockId, BlockState
from cairnfs.store.schema import Key, Table
from cairnfs.transaction.transaction import Transaction

_COMMITTED = BlockState.COMMITTED
_COMPLETE = BlockState.COMPLETE


def put_block(tx: Transaction, key: Key, block: Block) -> None:
    """Write a block's row that was read; it remembers what snapshots need of it."""
    before: Block | None = tx.get(key)
    if before is not None and before.id == block.id:
        held_bytes = max(block.held_bytes, held_length(tx, key, before))
        if held_bytes != block.held_bytes:
            block = msgspec.structs.replace(block, held_bytes=held_bytes)
    tx.put(key, block)


def held_length(tx: Transaction, key: Key, block: Block) -> int:
    """How much of the block snapshots may need, as far as its row knows, and its version."""
    is_held = key not in tx.writes and tx.is_held(key)
    return max(block.held_bytes, block.length_bytes if is_held else 0)


def needed_bytes(tx: Transaction, key: Key, block: Block) -> int:
    """How much of the block snapshots need, of those that cover its file if that is known."""
    return 0 if tx.covered == 0 else held_length(tx, key, block)


def newest_row(tx: Transaction, block_id: BlockId) -> tuple[Key, Block] | None:
    """Find the row of a block by which its replicas are judged; None if it has no row.

    If several files have the block, one of them may still be written, or was written when the
    others came to share it: its stamp and its length are those of the replicas.
    """
    found: list[tuple[Key, Block]] = tx.list_by_id(Table.BLOCKS, block_id)
    if len(found) < 2:
        return found[0] if found else None
    return max(found, key=lambda each: _age(each[1]))


def judged(tx: Transaction, block: Block) -> Block:
    """Return a block of a file, or of the past, as its replicas are to be judged now.

    While the original is being written, that is a block under construction, of this length.
    """
    found = newest_row(tx, block.id)
    if found is None or _age(found[1]) == _age(block):
        return block
    now = found[1]
    return msgspec.structs.replace(
        now, length_bytes=block.length_bytes, stored_bytes=now.replica_bytes
    )


def pass_on(tx: Transaction, block: Block) -> bool:
    """Leave what a row knew, which was removed, to the other rows of the block; False: no others.

    The replicas that a DataNode has not reported yet are those of a complete block for the
    others, so the block is put into CHECKS.
    """
    others: list[tuple[Key, Block]] = tx.list_by_id(Table.BLOCKS, block.id)
    if block.state not in (_COMMITTED, _COMPLETE):
        assert not others or not block.targets, f"{block} is needed, and nobody would finish it"
        return bool(others)
    covered, tx.covered = tx.covered, None  # what covers the others is not known here
    for key, other in others:
        if other.state is _COMPLETE and _age(other) < _age(block):
            known = msgspec.structs.replace(
                other,
                generation_stamp=block.generation_stamp,
                newest_stamp=block.newest_stamp,
                stored_bytes=block.replica_bytes,
            )
            put_block(tx, key, known)
    tx.covered = covered
    if others and block.state is _COMMITTED:
        put_check(tx, block.id)
    return bool(others)


def _age(block: Block) -> tuple[int, bool, int]:
    """How much a row of a block knows of its replicas: within a stamp they only grow."""
    return block.last_stamp, block.state is not _COMPLETE, block.replica_bytes


def is_shared(tx: Transaction, key: Key, block: Block) -> bool:
    """Whether other rows than the one of this key have the block as well."""
    return any(other != key for other, _ in tx.list_by_id(Table.BLOCKS, block.id))


def is_waited_for(tx: Transaction, key: Key, block: Block) -> bool:
    """Whether DataNodes still have to finish a block that another file has as well.

    Until then this row is the one that knows its DataNodes, and must not be removed.
    """
    is_finished = block.state in (_COMMITTED, _COMPLETE)
    return not is_finished and bool(block.targets) and is_shared(tx, key, block)
