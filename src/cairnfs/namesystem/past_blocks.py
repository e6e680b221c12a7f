"""The blocks of a file as it was at a snapshot, and where they are now.

A row of the past says which blocks a file had, and how long they were; under which stamp, on
which storages and how long their replicas are, the current row of the same block says, which is
in a file or below an orphan as long as a snapshot needs it.  So what has happened to replicas
since, appends, copies, recoveries, concerns no snapshot.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from cairnfs.blocks.records import Block
from cairnfs.namesystem.inodes import Inode
from cairnfs.store.schema import Table
from cairnfs.transaction.transaction import Rows, Transaction


def blocks_at(rows: Rows, tx: Transaction, file: Inode) -> list[Block]:
    """The blocks that a file had, by the rows of that time; see `blocks_now`."""
    if not file.block_count:
        return []
    found = rows.scan(Table.BLOCKS, file.id, b"", file.block_count)
    then: list[Block] = [block for _, block in found]
    need_blocks(tx, then)
    return blocks_now(tx, then)


def blocks_now(tx: Transaction, then: Sequence[Block]) -> list[Block]:
    """The blocks of the past, each as long as it was then, by which replicas are found now.

    Of one that was being written, what was flushed; if that is nothing, it is left out.
    """
    return [_block_now(tx, block) for block in then if block.length_bytes]


def need_blocks(tx: Transaction, then: Sequence[Block]) -> None:
    """Have the current rows of several blocks at hand with one read."""
    tx.need(ids=[(int(Table.BLOCKS), block.id) for block in then])


def _block_now(tx: Transaction, then: Block) -> Block:
    found = tx.list_by_id(Table.BLOCKS, then.id)
    now: Block = found[0][1] if found else then
    return msgspec.structs.replace(
        now, length_bytes=then.length_bytes, stored_bytes=now.replica_bytes
    )
