"""The satisfier's transactions: looking through subtrees, and what became of their blocks.

`policy_changes` leaves rows for subtrees whose policy has changed.  A transaction looks at a page
of such a directory: blocks of files are put into PLACEMENTS, directories get rows of their own, and
the page is taken off the directory's row, or the row away with the last one.  So everything is
looked at once for each change, whoever dies in between, and nothing is remembered but in rows.

What comes from the origin of a clone or of a roll-back (`layers`) has no rows.  A directory is
given one; the blocks of a file are queued with the file's policy, since by the block's row only
the original is found.

Invariant: `Satisfied.scanned` counts exactly the inodes on pages that were committed.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from cairnfs.blocks.placing import Placement, put_placements, settle_placements
from cairnfs.blocks.policies import DEFAULT
from cairnfs.blocks.records import Block, BlockId
from cairnfs.namesystem.inodes import Inode, InodeId
from cairnfs.namesystem.layered_children import some_children_of
from cairnfs.namesystem.layers import materialize_all, shared_blocks
from cairnfs.namesystem.lookup import Lookup, key_of, path_of, resolve
from cairnfs.namesystem.outstanding import NOTHING_LEFT, Looked
from cairnfs.namesystem.policy_attribute import POLICY_UNSPECIFIED
from cairnfs.namesystem.policy_changes import (
    PolicyScan,
    policies_of_page,
    policy_id_of,
    request_scan,
    scan_key,
)
from cairnfs.namesystem.quotas import charged_policy, data_of, difference, recharged
from cairnfs.store.schema import Key, Table
from cairnfs.transaction.calls import operation
from cairnfs.transaction.records import register
from cairnfs.transaction.rows import ask_all
from cairnfs.transaction.transaction import Transaction

SCAN_PAGE = 64  # inodes looked at by one transaction: other callers wait for it
FILE_BLOCKS_MAX = 8  # a file with more is looked at by itself
BLOCKS_PAGE = 64  # so many of its blocks at a time

SATISFIED_SHARDS = 16  # so that those who look through subtrees do not wait for each other
_SATISFIED = int(Table.SATISFIED)
_PLACED_KEY: Key = (_SATISFIED, 0, b"")


class Satisfied(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What the satisfier has done since there is one."""

    scanned: int = 0  # inodes
    queued: int = 0  # blocks, each time
    placed: int = 0  # of those, found or brought to where they belong


register(Table.SATISFIED, Satisfied)


@operation()
def scan_subtree(tx: Transaction, inode_id: InodeId) -> Looked:
    """Look at a page of what is to be looked at at and below an inode."""
    key = scan_key(inode_id)
    scan: PolicyScan | None = tx.get(key)
    if scan is None:
        return NOTHING_LEFT
    path = path_of(tx, inode_id)
    lookup = None if path is None else resolve(tx, path)
    inode = None if lookup is None else lookup.target
    if lookup is None or inode is None or inode.id != inode_id:
        tx.delete(key)  # it was deleted
        return NOTHING_LEFT
    if inode.is_file:
        _recharge(tx, lookup.ancestors, inode, policy_id_of(lookup))
        rows, after = _scan_file(tx, inode, scan.after)
    else:
        rows, after = _scan_directory(tx, lookup, inode, scan.after)
    if after:
        tx.put(key, msgspec.structs.replace(scan, after=after))
    else:
        tx.delete(key)
    return Looked(rows, is_done=not after)


@operation()
def settle_placed(
    tx: Transaction,
    done: Sequence[Placement],
    unsatisfied: Sequence[tuple[Placement, str]],
    going_on: Sequence[Placement],
) -> None:
    """Blocks were looked at: some are where they belong, some cannot be for now, some can again."""
    placed = settle_placements(tx, done, unsatisfied, going_on)
    _count(tx, _PLACED_KEY, placed=placed)


@operation(mutates=False)
def get_satisfied(tx: Transaction) -> Satisfied:
    """What has been done so far."""
    first: Satisfied | None = tx.get(_PLACED_KEY)
    others = [row for _, row in tx.scan(Table.SATISFIED, 0, b"", SATISFIED_SHARDS)]
    found = [*others, first or Satisfied()]
    return Satisfied(
        sum(each.scanned for each in found),
        sum(each.queued for each in found),
        sum(each.placed for each in found),
    )


def _scan_directory(
    tx: Transaction, lookup: Lookup, directory: Inode, after: bytes
) -> tuple[int, bytes]:
    """Queue the blocks of some files, and put directories down.

    How many there were, and where the next page begins, if there may be more.
    """
    page, after = some_children_of(tx, directory, after, SCAN_PAGE)
    tx.need(scan_key(child.id) for child in page if not child.is_symlink)
    files = [child for child in page if child.is_file and child.block_count]
    large = [file for file in files if _is_large(file)]
    small = [file for file in files if not _is_large(file)]
    blocks = ask_all(lambda file: _blocks_of(tx, file), small)
    queued: list[tuple[BlockId, int]] = []
    for file, of_file in zip(small, blocks, strict=True):
        policy_id = _policy_of_child(lookup, file) if file.is_virtual else 0
        queued += [(block.id, policy_id) for block in of_file]
    put_placements(tx, queued)
    policies = policies_of_page(lookup, files) or (POLICY_UNSPECIFIED,) * len(files)
    for file, policy_id in zip(files, policies, strict=True):
        _recharge(tx, lookup.inodes, file, policy_id)
    directories = [child for child in page if child.is_directory]
    with_rows = materialize_all(tx, directory, directories)
    tx.need(scan_key(child.id) for child in with_rows)
    for child in with_rows:
        request_scan(tx, child)
    for file in large:
        request_scan(tx, file)
    scanned = len(page) - len(large)
    _count(tx, _scanned_key(directory.id), scanned=scanned, queued=len(queued))
    return len(page), after


def _is_large(file: Inode) -> bool:
    """Whether it is looked at by itself; what has no row cannot be."""
    return file.block_count > FILE_BLOCKS_MAX and not file.is_virtual


def _scan_file(tx: Transaction, file: Inode, after: bytes) -> tuple[int, bytes]:
    page = tx.scan(Table.BLOCKS, file.id, after, BLOCKS_PAGE)
    put_placements(tx, [(block.id, 0) for _, block in page])
    _count(tx, _scanned_key(file.id), scanned=0 if after else 1, queued=len(page))
    return len(page), page[-1][0][2] if len(page) == BLOCKS_PAGE else b""


def _recharge(tx: Transaction, above: Sequence[Inode], file: Inode, policy_id: int) -> None:
    """Have the directories above charged by the policy that a file has now.

    Whether that is more than a quota allows is not asked: as with a limit that is set below what
    is used, nothing more can be added then.  A file without a row is charged as its original was.
    """
    if not file.is_virtual and file.charged_policy != charged_policy(policy_id):
        after = recharged(file, policy_id)
        tx.add_to_each([each.id for each in above], difference(data_of(after), data_of(file)))
        tx.put(key_of(file), after)


def _blocks_of(tx: Transaction, file: Inode) -> list[Block]:
    if file.is_virtual:
        return shared_blocks(tx, file)
    return [block for _, block in tx.scan(Table.BLOCKS, file.id, b"", file.block_count)]


def _policy_of_child(lookup: Lookup, child: Inode) -> int:
    """The one to write down: where none was chosen, the default."""
    way = lookup.with_inodes((*lookup.inodes, child))
    return policy_id_of(way) or DEFAULT.id


def _scanned_key(inode_id: InodeId) -> Key:
    return (_SATISFIED, 0, bytes([1 + inode_id % SATISFIED_SHARDS]))


def _count(
    tx: Transaction, key: Key, *, scanned: int = 0, queued: int = 0, placed: int = 0
) -> None:
    known: Satisfied | None = tx.get(key)
    so_far = known or Satisfied()
    if scanned or queued or placed:
        counted = Satisfied(
            so_far.scanned + scanned, so_far.queued + queued, so_far.placed + placed
        )
        tx.put(key, counted)
