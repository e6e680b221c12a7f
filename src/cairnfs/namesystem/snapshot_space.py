"""How much space snapshots take: what each shows, and what only it has.

What a snapshot shows is in the totals of its root, as they were.  What only it has are blocks that
no file has any more and no other snapshot shows: to be found below the orphans that were
detached after it, so the work is proportional to what was deleted, not to what there is.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from cairnfs.blocks.records import Block, BlockId
from cairnfs.errors import FileNotFoundException, SnapshotException
from cairnfs.namesystem.inodes import Inode, InodeId, Kind
from cairnfs.namesystem.layers import copied
from cairnfs.namesystem.lookup import path_of, resolve_to_read
from cairnfs.namesystem.needs import Needs
from cairnfs.namesystem.orphans import Orphan
from cairnfs.namesystem.paths import FsPath
from cairnfs.namesystem.permissions import Access, Caller, check_access
from cairnfs.namesystem.quotas import charged_space
from cairnfs.namesystem.snapshot_records import Snapshot
from cairnfs.store.base import Count
from cairnfs.store.schema import NUMBER, PAIR, Key, Table
from cairnfs.transaction.calls import operation
from cairnfs.transaction.entries import UNCOMMITTED
from cairnfs.transaction.transaction import Transaction

_PAGE = 1000
_LAST_ID = 2**64 - 1


class SnapshotSpace(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What one snapshot takes, with all replicas."""

    name: bytes
    referenced_bytes: int  # of what it shows
    exclusive_bytes: int  # of what its deletion would free


@operation(mutates=False, walks=True)
def snapshot_space(
    tx: Transaction, caller: Caller, path: FsPath, names: tuple[str, ...] = ()
) -> list[SnapshotSpace]:
    """What snapshots of a directory or file take; without names, all of them."""
    lookup = resolve_to_read(tx, caller, path)
    inode = lookup.target
    if inode is None:
        raise FileNotFoundException(f"Directory does not exist: {lookup.path}")
    check_access(caller, inode, Access.READ, lookup.path)
    found = _snapshots(tx, inode)
    chosen = found
    if names:
        wanted = [name.encode("utf-8", "surrogateescape") for name in names]
        lacking = [name.decode() for name in wanted if name not in found]
        if lacking:
            raise SnapshotException(f"There is no snapshot {lacking[0]} of {lookup.path}")
        chosen = {name: found[name] for name in wanted}
    if not chosen:
        return []
    earliest = min(snapshot.txid for snapshot in chosen.values())
    exclusive = _exclusive(tx, earliest)
    return [
        SnapshotSpace(
            name, referenced_bytes(tx, snapshot), exclusive.get((snapshot.txid, inode.id), 0)
        )
        for name, snapshot in chosen.items()
    ]


def _snapshots(tx: Transaction, inode: Inode) -> dict[bytes, Snapshot]:
    found: dict[bytes, Snapshot] = {}
    after = b""
    while page := tx.scan(Table.SNAPSHOTS, inode.id, after, _PAGE):
        after = page[-1][0][2]
        found.update((key[2], snapshot) for key, snapshot in page)
    return found


def referenced_bytes(tx: Transaction, snapshot: Snapshot) -> int:
    """What a snapshot shows, with all replicas."""
    root = snapshot.root
    if root.kind is Kind.DIRECTORY:
        return copied(tx.at(snapshot.txid).totals(root.id)).counts[Count.SPACE_BYTES]
    return charged_space(root.closed)


def _exclusive(tx: Transaction, since: int) -> dict[tuple[int, int], int]:
    """The bytes that one snapshot alone has, by its TxID and inode, of what was detached since."""
    needs = Needs(tx, UNCOMMITTED)
    blocks: dict[BlockId, tuple[Block, int]] = {}
    for key, orphan in _rows(tx, Table.HELD, PAIR.pack(since, _LAST_ID)):
        _collect(tx, InodeId(PAIR.unpack(key[2])[1]), orphan, blocks)
    for key, orphan in _rows(tx, Table.ORPHANS, b""):  # nobody has looked at these yet
        _collect(tx, InodeId(NUMBER.unpack(key[2])[0]), orphan, blocks)
    held: dict[tuple[int, int], int] = {}
    for block, replication in blocks.values():
        if any(_is_live(tx, key) for key, _ in tx.list_by_id(Table.BLOCKS, block.id)):
            continue
        wishes = needs.wishes_for_block(block.id)
        most = max(replication, *(wish.replication for wish in wishes)) if wishes else 0
        for n, wish in enumerate(wishes):
            others = [other.replication for m, other in enumerate(wishes) if m != n]
            left = max(replication, *others) if others else 0
            place = (wish.txid, wish.inode_id)
            freed_bytes = block.replica_bytes * (most - left)
            held[place] = held.get(place, 0) + freed_bytes
    return held


def _rows(tx: Transaction, table: Table, after: bytes) -> Iterator[tuple[Key, Orphan]]:
    while page := tx.scan(table, 0, after, _PAGE):
        yield from page
        after = page[-1][0][2]


def _collect(
    tx: Transaction, id: InodeId, orphan: Orphan, blocks: dict[BlockId, tuple[Block, int]]
) -> None:
    """The blocks below an orphan, each with the number of replicas that it should have."""
    replication = orphan.inode.replication if orphan.inode is not None else 1
    if orphan.kind is Kind.FILE:
        _collect_file(tx, id, replication, blocks)
        return
    stack = [id if orphan.inode is None else orphan.inode.children_id]
    while stack:
        content, after = stack.pop(), b""
        while page := tx.scan(Table.INODES, content, after, _PAGE):
            after = page[-1][0][2]
            for _, inode in page:
                if inode.is_directory:
                    stack.append(inode.children_id)
                elif inode.block_count:
                    _collect_file(tx, inode.id, inode.replication, blocks)


def _collect_file(
    tx: Transaction, id: InodeId, replication: int, blocks: dict[BlockId, tuple[Block, int]]
) -> None:
    after = b""
    while page := tx.scan(Table.BLOCKS, id, after, _PAGE):
        after = page[-1][0][2]
        for _, block in page:
            _, known = blocks.get(block.id, (block, 0))
            blocks[block.id] = (block, max(known, replication))


def _is_live(tx: Transaction, key: Key) -> bool:
    """Whether the file of a block's row can be reached."""
    return path_of(tx, InodeId(key[1])) is not None
