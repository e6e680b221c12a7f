"""Which files have blocks of which no good replica is known."""

from __future__ import annotations

import msgspec

from cairnfs.blocks.records import BlockId, Check, CheckQueue
from cairnfs.namesystem.inodes import InodeId
from cairnfs.namesystem.lookup import paths_of
from cairnfs.namesystem.paths import FsPath
from cairnfs.store.schema import NUMBER, Table
from cairnfs.transaction.calls import operation
from cairnfs.transaction.transaction import Transaction

CORRUPT_PAGE = 100  # blocks looked at by one transaction


class CorruptFiles(msgspec.Struct, frozen=True, gc=False):
    """The files of some of these blocks, one that lacks several as often; and where to go on."""

    files: list[FsPath]
    last: BlockId  # that was looked at
    has_more: bool


@operation(mutates=False)
def get_corrupt_files(tx: Transaction, after: BlockId) -> CorruptFiles:
    """The files of a page of these blocks, of those behind the block `after`.

    What only a snapshot still has is not among them: it has no path of today.
    """
    page: list[Check] = [
        check
        for _, check in tx.scan(Table.CHECKS, CheckQueue.CORRUPT, NUMBER.pack(after), CORRUPT_PAGE)
    ]
    ids = [check.block_id for check in page]
    tx.need(ids=[(int(Table.BLOCKS), id) for id in ids])
    files = [InodeId(key[1]) for id in ids for key, _ in tx.list_by_id(Table.BLOCKS, id)]
    paths = [path for path in paths_of(tx, files) if path is not None]
    return CorruptFiles(paths, ids[-1] if ids else after, len(ids) == CORRUPT_PAGE)
