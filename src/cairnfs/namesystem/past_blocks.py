"""The blocks of a file as it was at a snapshot, and where they are now.

A row of the past says which blocks a file had, and how long they were; under which stamp, on
which storages and how long their replicas are, the current row of the same block says, which is
in a file or below an orphan as long as a snapshot needs it.  So what has happened to replicas
since, appends, copies, recoveries, concerns no snapshot.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from cairnfs.blocks.holding import newest_row
from cairnfs.blocks.records import Block
from cairnfs.store.schema import Table
from cairnfs.transaction.transaction import Transaction


def blocks_now(tx: Transaction, then: Sequence[Block]) -> list[Block]:
    """The blocks of the past, each as long as it was then, by which replicas are found now.

    Of one that was being written, what was flushed; if that is nothing, it is left out.
    """
    return [_block_now(tx, block) for block in then if block.length_bytes]


def need_blocks(tx: Transaction, then: Sequence[Block]) -> None:
    """Have the current rows of several blocks at hand with one read."""
    tx.need(ids=[(int(Table.BLOCKS), block.id) for block in then])


def _block_now(tx: Transaction, then: Block) -> Block:
    found = newest_row(tx, then.id)
    now = then if found is None else found[1]
    return msgspec.structs.replace(
        now, length_bytes=then.length_bytes, stored_bytes=now.replica_bytes
    )
