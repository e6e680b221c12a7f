"""Which rows the snapshots that there are still show, and which snapshot is the latest of those.

A row is needed if there is a snapshot, of a time when the row was current, in whose tree it was.
Only snapshots of the inode itself, or of a directory that it was ever below, can have it there: so
no others are looked at, however many there are.  Where it was is told by the versions that are kept
of the inodes above it, since a version that a snapshot needs is kept.

What is asked here is answered with the TxID of the latest of these snapshots, its *holder*; 0 if
there is none.  When that snapshot is deleted, the question is asked again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from cairnfs.blocks.records import BlockId
from cairnfs.namesystem.inodes import ROOT_ID, Inode
from cairnfs.namesystem.layers import Content, content_key, owner_of_content, parent_of
from cairnfs.store.base import EVERY_TIME
from cairnfs.store.schema import Key, Table
from cairnfs.transaction.moments import MomentIndex
from cairnfs.transaction.rows import PastRows, ask_all
from cairnfs.transaction.transaction import Transaction

TXID_MAX = 2**63 - 1
_PAGE = 10_000
_ASKED_AT_ONCE_MAX = 64  # snapshots


class Wish(NamedTuple):
    """A snapshot that has a file with a block, and how many replicas that file asks for."""

    txid: int
    inode_id: int
    replication: int


class Needs:
    """Answers for one run of an operation; what it has found out is remembered for that long."""

    def __init__(self, tx: Transaction, as_of: int) -> None:
        """`as_of` is a TxID behind all that is asked about.  No snapshot is new that has it."""
        self._tx = tx
        self._index = _known_moments(tx, as_of)
        self._rows: dict[int, PastRows] = {}
        self._is_below: dict[tuple[int, int, int], bool] = {}
        self._above: dict[int, frozenset[int]] = {}

    def latest(self, txid: int) -> int:
        """The latest of all snapshots up to a TxID."""
        return self._index.latest(txid)

    def holder_since(self, since: int) -> int:
        """The latest snapshot of whatever that was taken at or after a TxID."""
        latest = self._index.latest(TXID_MAX)
        return latest if latest >= since else 0

    def holder_of_root(self, id: int, since: int, until: int) -> int:
        """The latest snapshot of this very inode, of that time."""
        return self._newest([id], since, until, lambda txid, root: True)

    def holder_of(self, id: int, since: int, until: int) -> int:
        """The latest snapshot of that time that has this directory or file in it."""
        return self._newest(
            self._ever_above([id]), since, until, lambda txid, root: self._has(txid, root, id)
        )

    def holder_of_content(self, id: int, since: int, until: int) -> int:
        """As `holder_of`, of the directory that had its children's rows below this id then."""
        owners = self._owners(id)
        return self._newest(
            self._ever_above(owners),
            since,
            until,
            lambda txid, root: self._has_content(txid, root, id),
        )

    def holder_of_origin(self, id: int, pin: int, until: int) -> int:
        """The latest snapshot that has this directory while it had its origin there."""
        return self._newest(
            self._ever_above([id]),
            0,
            until,
            lambda txid, root: self._has_origin(txid, root, id, pin),
        )

    def holder_of_block(self, id: BlockId, until: int) -> int:
        """The latest snapshot that has a file that has this block."""
        return self._newest(
            self._ever_above(self._files_of(id)),
            0,
            until,
            lambda txid, root: self._has_block(txid, root, id),
        )

    def wishes_for_block(self, id: BlockId) -> list[Wish]:
        """The snapshots that have a file that has this block."""
        roots = self._ever_above(self._files_of(id))
        found = [(txid, root) for root in roots for txid in self._index.of_inode(root)]
        asked = ask_all(lambda each: self._replication(*each, id), found)
        return [Wish(*each, count) for each, count in zip(found, asked, strict=True) if count]

    # Which snapshots can have something.

    def _newest(
        self,
        roots: Iterable[int],
        since: int,
        until: int,
        is_shown: Callable[[int, int], bool],
    ) -> int:
        """The latest TxID of that time of a snapshot of one of these inodes that shows it."""
        found = [
            (txid, root)
            for root in roots
            for txid in self._index.of_inode(root)
            if since <= txid < until
        ]
        found.sort(reverse=True)
        start, count = 0, 1  # nearly always the latest has it
        while start < len(found):
            some = found[start : start + count]
            shown = ask_all(lambda each: is_shown(*each), some)
            for (txid, _), is_it in zip(some, shown, strict=True):
                if is_it:
                    return txid
            start, count = start + count, min(2 * count, _ASKED_AT_ONCE_MAX)
        return 0

    def _ever_above(self, ids: Iterable[int]) -> set[int]:
        """These inodes, and all directories that one of them was ever below."""
        found: set[int] = set()
        if len(self._index):
            for above in ask_all(self._ever_above_one, ids):
                found |= above
        return found

    def _ever_above_one(self, id: int) -> frozenset[int]:
        known = self._above.get(id)
        if known is None:
            found = {id}
            level = [id]
            while level:
                parents = ask_all(self._parents, level)
                level = sorted({each for owners in parents for each in owners} - found)
                found.update(level)
            known = self._above[id] = frozenset(found)
        return known

    def _parents(self, id: int) -> set[int]:
        """The directories that an inode was ever in."""
        if id == ROOT_ID:
            return set()
        keys: list[Key] = self._at(EVERY_TIME).keys_of_id(Table.INODES, id)
        contents = {key[1] for key in keys}
        return {owner for owners in ask_all(self._owners, contents) for owner in owners}

    def _owners(self, content_id: int) -> set[int]:
        """The directories that may have their children's rows below this id."""
        content: Content | None = self._tx.get(content_key(content_id))
        return {content_id} if content is None else {content_id, content.inode_id}

    def _files_of(self, id: BlockId) -> set[int]:
        """The files that ever had a block."""
        return {key[1] for key in self._at(EVERY_TIME).keys_of_id(Table.BLOCKS, id)}

    # What a snapshot has.

    def _replication(self, txid: int, root: int, id: BlockId) -> int:
        rows = self._at(txid)
        owners = [key[1] for key in rows.keys_of_id(Table.BLOCKS, id)]
        shown = ask_all(lambda owner: self._has(txid, root, owner), owners)
        files: list[Inode] = ask_all(
            lambda owner: rows.get_by_id(Table.INODES, owner),
            [owner for owner, is_it in zip(owners, shown, strict=True) if is_it],
        )
        return max((file.replication for file in files), default=0)

    def _has_block(self, txid: int, root: int, id: BlockId) -> bool:
        keys = self._at(txid).keys_of_id(Table.BLOCKS, id)
        return any(ask_all(lambda key: self._has(txid, root, key[1]), keys))

    def _has_origin(self, txid: int, root: int, id: int, pin: int) -> bool:
        inode: Inode | None = self._at(txid).get_by_id(Table.INODES, id)
        origin = None if inode is None else inode.origin
        return origin is not None and origin.pin == pin and self._has(txid, root, id)

    def _has_content(self, txid: int, root: int, id: int) -> bool:
        owner = owner_of_content(self._at(txid), id)
        return owner is not None and self._has(txid, root, owner.id)

    def _has(self, txid: int, root: int, id: int) -> bool:
        """Whether the inode was at or below the root of a snapshot when that was taken."""
        rows = self._at(txid)
        way: list[int] = []
        while id != root:
            way.append(id)
            is_below = self._is_below.get((txid, root, id))
            if is_below is None:
                inode: Inode | None = rows.get_by_id(Table.INODES, id) if id != ROOT_ID else None
                parent = None if inode is None else parent_of(rows, inode)
                if parent is not None:
                    id = parent.id
                    continue
            break
        else:
            is_below = True
        for passed in way:
            self._is_below[txid, root, passed] = bool(is_below)
        return bool(is_below)

    def _at(self, txid: int) -> PastRows:
        rows = self._rows.get(txid)
        if rows is None:
            rows = self._rows[txid] = self._tx.at(txid)
        return rows


def _known_moments(tx: Transaction, as_of: int) -> MomentIndex:
    """Those that the NameNode knows, if that is up to date; else those that there are."""
    moments = tx.moments
    if moments is not None and moments.known >= as_of:
        return moments.index
    index = MomentIndex()
    after = b""
    while page := tx.scan(Table.MOMENTS, 0, after, _PAGE):
        index.add_all((key[2], moment) for key, moment in page)
        after = page[-1][0][2]
        if len(page) < _PAGE:
            break
    return index
