"""Which files have blocks of which no good replica is known.

First come those that clones and directories that were rolled back have from their origins: they
have no rows by which a block leads to them, so all of them are looked at, if a block is lost at
all.  Then come those with rows of their own, block by block.  In this order, a file that gets a
row meanwhile is told twice rather than not at all.  What is in a directory that gets one may be
passed over: where it has several origins, its note may be behind where we are.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from cairnfs.blocks.records import Block, BlockId, Check, CheckQueue
from cairnfs.namesystem.inodes import Inode, InodeId
from cairnfs.namesystem.lookup import paths_of
from cairnfs.namesystem.paths import FsPath
from cairnfs.namesystem.tree_blocks import read_blocks
from cairnfs.namesystem.unsettled import Reached, virtual_behind
from cairnfs.store.base import Stored
from cairnfs.store.schema import NUMBER, Key, Table
from cairnfs.transaction.calls import operation
from cairnfs.transaction.records import decode
from cairnfs.transaction.transaction import Transaction

CORRUPT_PAGE = 100  # blocks looked at by one transaction,
VIRTUAL_PAGE = 2000  # or files without rows, and their blocks

Position = BlockId | Reached
"""Up to where files were looked at, by their blocks or before that; `Reached()`: none was."""


class CorruptFiles(msgspec.Struct, frozen=True, gc=False):
    """Some of the files, one that lacks several blocks perhaps as often; and where to go on."""

    files: list[FsPath]
    last: Position  # that was looked at
    has_more: bool


@operation(mutates=False, walks=True)
def get_corrupt_files(tx: Transaction, after: Position, within: FsPath) -> CorruptFiles:
    """A page of these files, of those at or below a path.

    What only a snapshot still has is not among them: it has no path of today.
    """
    if not _lost_behind(tx, BlockId(0), 1):
        return CorruptFiles([], after, has_more=False)
    if isinstance(after, Reached):
        files, last = _virtual_files(tx, after, within)
        has_more = True
    else:
        files, last, has_more = _files_of_blocks(tx, after)
    found = [path for path in files if path == within or within.is_ancestor_of(path)]
    return CorruptFiles(found, last, has_more)


def _virtual_files(
    tx: Transaction, reached: Reached, near: FsPath
) -> tuple[list[FsPath], Position]:
    """Those of a page of files without rows, and the last of all; at the end, no block."""
    files: list[tuple[FsPath, Inode]] = []
    cost = 0
    for met in virtual_behind(tx, reached, near):
        cost += met.cost
        if met.inode is not None and met.inode.is_file:
            files.append((met.path, met.inode))
            cost += met.inode.block_count
        if cost >= VIRTUAL_PAGE:
            return _with_lost(tx, files), met.reached
    return _with_lost(tx, files), BlockId(0)


def _with_lost(tx: Transaction, files: list[tuple[FsPath, Inode]]) -> list[FsPath]:
    """Those of some files without rows that have lost a block."""
    rows = tx.at(0)  # of no moment: each file is as of its origin's
    found = read_blocks(rows, ((n, file) for n, (_, file) in enumerate(files) if file.block_count))
    blocks = {n: _ids(stored[: files[n][1].block_count]) for n, stored in found.items()}
    lost = _lost_among(tx, {id for ids in blocks.values() for id in ids})
    return [files[n][0] for n, ids in sorted(blocks.items()) if not lost.isdisjoint(ids)]


def _ids(stored: list[Stored]) -> list[BlockId]:
    blocks: list[Block] = [decode(Table.BLOCKS, row[3]) for row in stored]
    return [block.id for block in blocks]


def _lost_among(tx: Transaction, ids: Iterable[BlockId]) -> set[BlockId]:
    """Those of some blocks that are lost; mostly these are few, and read at once."""
    lost: set[BlockId] = set()
    waiting = sorted(ids)
    while waiting:
        page = _lost_behind(tx, BlockId(waiting[0] - 1), CORRUPT_PAGE)
        lost.update(page)
        if len(page) < CORRUPT_PAGE:
            break
        waiting = [id for id in waiting if id > page[-1]]
    return lost


def _files_of_blocks(tx: Transaction, after: BlockId) -> tuple[list[FsPath], BlockId, bool]:
    ids = _lost_behind(tx, after, CORRUPT_PAGE)
    tx.need(ids=[(int(Table.BLOCKS), id) for id in ids])
    files = [InodeId(key[1]) for id in ids for key, _ in tx.list_by_id(Table.BLOCKS, id)]
    paths = [path for path in paths_of(tx, files) if path is not None]
    return paths, ids[-1] if ids else after, len(ids) == CORRUPT_PAGE


def _lost_behind(tx: Transaction, after: BlockId, limit: int) -> list[BlockId]:
    page: list[tuple[Key, Check]] = tx.scan(
        Table.CHECKS, CheckQueue.CORRUPT, NUMBER.pack(after), limit
    )
    return [check.block_id for _, check in page]
