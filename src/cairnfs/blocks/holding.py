"""What snapshots and other files need of a block's replicas.

A file is only ever appended to or cut, so versions of a block differ in their length alone, and
one set of replicas, as long as the longest, serves all of them (Agarwal, Borthakur and Stoica,
"Snapshots in HDFS": selective copy-on-append).  Nothing is copied but where an append would
overwrite what a truncate has left to a snapshot.

Invariant: `held_bytes` of a block's row is at least the length of every older version of it
that a snapshot needs; no replica is made shorter than that.
"""

from __future__ import annotations

import msgspec

from cairnfs.blocks.records import Block, BlockId, BlockState
from cairnfs.store.schema import Key, Table
from cairnfs.transaction.transaction import Transaction

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
    """The row of a block by which its replicas are judged; None: there is none.

    If several files have it, one of them may still be written, or was when the others came to
    share it: its stamp is the one that replicas have.
    """
    found: list[tuple[Key, Block]] = tx.list_by_id(Table.BLOCKS, block_id)
    if len(found) < 2:
        return found[0] if found else None
    return max(found, key=lambda each: (each[1].last_stamp, each[1].state is not _COMPLETE))


def judged(tx: Transaction, block: Block) -> Block:
    """A block of a file, or of the past, by which its replicas can be found and judged now."""
    found = newest_row(tx, block.id)
    if found is None or found[1].last_stamp <= block.last_stamp:
        return block
    now = found[1]
    return msgspec.structs.replace(
        now, length_bytes=block.length_bytes, stored_bytes=now.replica_bytes
    )


def pass_on(tx: Transaction, block: Block) -> bool:
    """A row of a block is removed; True if others have the block, which know its stamp then."""
    others: list[tuple[Key, Block]] = tx.list_by_id(Table.BLOCKS, block.id)
    covered, tx.covered = tx.covered, None  # it is not known here what covers the others
    for key, other in others:
        if other.last_stamp < block.last_stamp and block.state is _COMPLETE:
            known = msgspec.structs.replace(
                other, generation_stamp=block.generation_stamp, stored_bytes=block.replica_bytes
            )
            put_block(tx, key, known)
    tx.covered = covered
    return bool(others)


def is_shared(tx: Transaction, key: Key, block: Block) -> bool:
    """Whether others than the row of this key have the block as well."""
    return any(other != key for other, _ in tx.list_by_id(Table.BLOCKS, block.id))
