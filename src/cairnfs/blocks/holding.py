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

from cairnfs.blocks.records import Block
from cairnfs.store.base import Key
from cairnfs.store.schema import Table
from cairnfs.transaction.transaction import Transaction


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


def is_shared(tx: Transaction, block: Block) -> bool:
    """Whether other files have the block as well."""
    return len(tx.list_by_id(Table.BLOCKS, block.id)) > 1
