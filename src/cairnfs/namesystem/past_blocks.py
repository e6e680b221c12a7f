"""The blocks of a file as it was at a snapshot, and where they are now.

A row of the past says which blocks a file had, and how long they were; under which stamp, on
which storages and how long their replicas are, the current row of the same block says, which is
in a file or below an orphan as long as a snapshot needs it.  So what has happened to replicas
since, appends, copies, recoveries, concerns no snapshot.
"""

from __future__ import annotations

from typing import Any, Protocol

import msgspec

from cairnfs.blocks.records import Block
from cairnfs.blocks.reports import need_replicas
from cairnfs.namesystem.file_blocks import LocatedBlock, LocatedBlocks, find_replicas
from cairnfs.namesystem.inodes import Inode
from cairnfs.store.base import Key
from cairnfs.store.schema import Table
from cairnfs.transaction.transaction import Transaction


class Rows(Protocol):
    """Rows as of a TxID."""

    def scan(self, table: Table, a: int, after: bytes, limit: int) -> list[tuple[Key, Any]]: ...


def blocks_at(rows: Rows, tx: Transaction, file: Inode) -> list[Block]:
    """The blocks that a file had, each as long as it was then, as replicas have it now.

    Of one that was being written, what was flushed; if that is nothing, it is left out.
    """
    if not file.block_count:
        return []
    then: list[Block] = [
        block for _, block in rows.scan(Table.BLOCKS, file.id, b"", file.block_count)
    ]
    tx.need(ids=[(int(Table.BLOCKS), block.id) for block in then])
    return [block_now(tx, block) for block in then if block.length_bytes]


def block_now(tx: Transaction, then: Block) -> Block:
    """A block of the past, by which its replicas can be found and judged."""
    found = tx.list_by_id(Table.BLOCKS, then.id)
    now: Block = found[0][1] if found else then
    return msgspec.structs.replace(
        now, length_bytes=then.length_bytes, stored_bytes=now.replica_bytes
    )


def located_at(rows: Rows, tx: Transaction, file: Inode) -> LocatedBlocks:
    """Where a reader finds a file of the past; nobody is writing it, whoever was then."""
    blocks = blocks_at(rows, tx, file)
    need_replicas(tx, [block.id for block in blocks])
    located = []
    offset_bytes = 0
    for block in blocks:
        located.append(find_replicas(tx, LocatedBlock(block, offset_bytes)))
        offset_bytes += block.length_bytes
    return LocatedBlocks(
        file.id,
        file.visible_bytes,
        under_construction=False,
        blocks=located,
        last=located[-1] if located else None,
        last_is_complete=bool(located),
        access_time_is_stale=False,
    )
