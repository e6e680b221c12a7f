"""Reclaiming what nobody can reach: below detached inodes, and of deleted snapshots.

All of it goes in bounded steps, each a transaction of its own, so it can stop and go on
anywhere, on any NameNode.

An orphan is a detached inode with the rows below it, which are left as they are.  `reclaim`
looks at each of them once and removes those that no snapshot shows; if one is left, the orphan
is *held*, by the TxID at which it was detached.  When a snapshot is deleted, past rows that
were superseded after it, and orphans that were detached after it, are looked at again
(`reclaim_past`, `release_orphans`).  Since a version that was superseded after the next
snapshot of the same directory is in that one too, only those up to it have to be.

A row is needed if there is a snapshot of that time which shows it: one of the directory it was
in then, or of one above.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from cairnfs.blocks.checks import need_checks, put_check
from cairnfs.blocks.holding import is_waited_for
from cairnfs.blocks.invalidations import discard_block
from cairnfs.blocks.records import Block, BlockId
from cairnfs.blocks.reports import need_replicas
from cairnfs.namesystem import leases
from cairnfs.namesystem.delete import detach_open_block
from cairnfs.namesystem.inodes import ROOT_ID, Inode, InodeId, Kind
from cairnfs.namesystem.layers import (
    content_key,
    forget_identity,
    forget_layered,
    owner_of_content,
    parent_of,
    release,
)
from cairnfs.namesystem.lease_records import lease_key
from cairnfs.namesystem.marks import BELOW
from cairnfs.namesystem.orphans import Orphan, held_key, look_again, orphan_key
from cairnfs.namesystem.outstanding import NOTHING_LEFT, Looked
from cairnfs.namesystem.snapshot_records import Removal
from cairnfs.namesystem.snapshots import forget_snapshottable
from cairnfs.store.base import PastRow
from cairnfs.store.schema import PAIR, Key, Table
from cairnfs.transaction.calls import operation
from cairnfs.transaction.moments import Moment
from cairnfs.transaction.records import decode
from cairnfs.transaction.rows import PastRows, ask_all
from cairnfs.transaction.transaction import Transaction

RECLAIM_BATCH = 32  # rows looked at by one transaction: other callers wait for it
TXID_MAX = 2**63 - 1
_MOMENTS_PAGE = 10_000


class Needs:
    """Which rows the snapshots there are show; what it found out is remembered for one run."""

    def __init__(self, tx: Transaction, until: int) -> None:
        self._tx = tx
        self._moments = self._read_moments(until)
        self._rows: dict[int, PastRows] = {}
        self._is_below: dict[tuple[int, int, int], bool] = {}

    def shows(self, id: int, since: int, until: int) -> bool:
        """Whether a snapshot of that time has this directory or file in it."""
        moments = [moment for moment in self._moments if since <= moment.txid < until]
        return any(ask_all(lambda moment: self._has(moment, id), moments))

    def shows_content(self, id: int, since: int, until: int) -> bool:
        """As `shows`, of the directory that had its children's rows below this id then."""
        moments = [moment for moment in self._moments if since <= moment.txid < until]
        return any(ask_all(lambda moment: self._has_content(moment, id), moments))

    def has_any(self, since: int, until: int) -> bool:
        """Whether there is a snapshot of that time, of whatever."""
        return any(since <= moment.txid < until for moment in self._moments)

    def has_root(self, id: int | None, since: int, until: int) -> bool:
        """Whether there is a snapshot of this very inode of that time."""
        return any(
            moment.inode_id == id and since <= moment.txid < until for moment in self._moments
        )

    def shows_origin(self, id: int, pin: int, until: int) -> bool:
        """Whether a snapshot has this directory while it had its origin there."""
        moments = [moment for moment in self._moments if moment.txid < until]
        return any(ask_all(lambda moment: self._has_origin(moment, id, pin), moments))

    def shows_block(self, id: BlockId, until: int) -> bool:
        """Whether a snapshot has a file that has this block."""
        moments = [moment for moment in self._moments if moment.txid < until]
        return any(ask_all(lambda moment: self._has_block(moment, id), moments))

    def wishes_for_block(self, id: BlockId) -> dict[Moment, int]:
        """The snapshots that have a file that has this block, and how many replicas it asks for."""
        asked = ask_all(lambda moment: self._replication(moment, id), self._moments)
        return {moment: count for moment, count in zip(self._moments, asked, strict=True) if count}

    def _replication(self, moment: Moment, id: BlockId) -> int:
        rows = self._at(moment.txid)
        owners = [key[1] for key in rows.keys_of_id(Table.BLOCKS, id)]
        shown = ask_all(lambda owner: self._has(moment, owner), owners)
        files: list[Inode] = ask_all(
            lambda owner: rows.get_by_id(Table.INODES, owner), itertools.compress(owners, shown)
        )
        return max((file.replication for file in files), default=0)

    def _has_block(self, moment: Moment, id: BlockId) -> bool:
        keys = self._at(moment.txid).keys_of_id(Table.BLOCKS, id)
        return any(ask_all(lambda key: self._has(moment, key[1]), keys))

    def _has_origin(self, moment: Moment, id: int, pin: int) -> bool:
        inode: Inode | None = self._at(moment.txid).get_by_id(Table.INODES, id)
        origin = None if inode is None else inode.origin
        return origin is not None and origin.pin == pin and self._has(moment, id)

    def _has_content(self, moment: Moment, id: int) -> bool:
        owner = owner_of_content(self._at(moment.txid), id)
        return owner is not None and self._has(moment, owner.id)

    def _has(self, moment: Moment, id: int) -> bool:
        """Whether the inode was at or below the root of the snapshot when it was taken."""
        rows = self._at(moment.txid)
        way: list[int] = []
        while id != moment.inode_id:
            way.append(id)
            is_below = self._is_below.get((moment.txid, moment.inode_id, id))
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
            self._is_below[moment.txid, moment.inode_id, passed] = bool(is_below)
        return bool(is_below)

    def _at(self, txid: int) -> PastRows:
        rows = self._rows.get(txid)
        if rows is None:
            rows = self._rows[txid] = self._tx.at(txid)
        return rows

    def _read_moments(self, until: int) -> list[Moment]:
        moments: list[Moment] = []
        after = b""
        while page := self._tx.scan(Table.MOMENTS, 0, after, _MOMENTS_PAGE):
            moments += [moment for _, moment in page if moment.txid < until]
            after = page[-1][0][2]
            if len(page) < _MOMENTS_PAGE or moments[-1:] != [page[-1][1]]:
                break
        return moments


@operation()
def reclaim(tx: Transaction, id: InodeId) -> Looked:
    """Look at a batch of rows below a detached inode.

    Nobody can reach these rows any more, so nobody conflicts over them.
    """
    key = orphan_key(id)
    orphan: Orphan | None = tx.get(key)
    if orphan is None:
        return NOTHING_LEFT
    tx.covered = 0  # what goes from here is needed by nobody
    until = orphan.until or tx.since(key)
    needs = Needs(tx, TXID_MAX)
    if orphan.kind is Kind.FILE:
        count, last, kept, is_waiting = _reclaim_blocks(tx, id, orphan, needs, until)
    else:
        count, last, kept, is_waiting = _reclaim_children(tx, id, orphan, needs, until)
    is_holding = orphan.is_holding or kept
    if count == RECLAIM_BATCH:
        going_on = msgspec.structs.replace(orphan, until=until, after=last, is_holding=is_holding)
        tx.put(key, going_on)
        return Looked(count, is_done=False)
    tx.delete(key)
    done = Looked(count, is_done=True)
    if orphan.is_attached:
        return done  # what it is attached to is held, and so is it
    is_directory = orphan.kind is Kind.DIRECTORY
    if is_holding or (is_directory and _is_needed(needs, id, orphan, until)):
        held = msgspec.structs.replace(
            orphan, until=until, after=b"", is_holding=False, is_waiting=is_waiting
        )
        tx.put_new(held_key(until, id), held)
    elif is_directory:
        return Looked(count, is_done=_end_directory(tx, id, orphan, needs, until))
    return done


def _is_needed(needs: Needs, id: InodeId, orphan: Orphan, until: int) -> bool:
    """Whether a snapshot shows a directory without children that was detached, or its origin."""
    if orphan.origin_of:
        assert orphan.inode is not None
        assert orphan.inode.origin is not None
        return needs.shows_origin(orphan.origin_of, orphan.inode.origin.pin, until)
    return needs.shows_content(_content_of(id, orphan), 0, until)


def _end_directory(tx: Transaction, id: InodeId, orphan: Orphan, needs: Needs, until: int) -> bool:
    """Nothing below a directory is left: it goes, and True when all that is kept beside it has."""
    inode = orphan.inode
    if inode is None:
        if not orphan.is_content:
            tx.drop_totals(id)
        return True
    if not _end_rows(tx, Table.WHITEOUTS, inode) or not _end_rows(tx, Table.MARKS, inode):
        tx.put(orphan_key(id), orphan)
        return False
    content = content_key(inode.children_id)
    if tx.get(content) is not None:
        tx.delete(content)
    if inode.origin is not None:
        if not orphan.is_content:
            forget_layered(tx, inode.origin, inode.id)
        pin = release(tx, inode.origin)
        if pin is not None:
            tx.put_new((Table.REMOVALS, *pin[1:]), Removal(tx.now_ms, until=inode.origin.txid))
    if not orphan.is_content:
        _end_totals(tx, id, inode, needs, until)
    return True


def _end_rows(tx: Transaction, table: Table, directory: Inode) -> bool:
    """Remove a batch of rows that are kept below a directory's content; True: all are gone."""
    if table is Table.MARKS and not directory.marks & BELOW:
        return True
    page = tx.scan(table, directory.children_id, b"", RECLAIM_BATCH)
    for key, _ in page:
        tx.delete(key)
    return len(page) < RECLAIM_BATCH


def _end_totals(tx: Transaction, id: InodeId, inode: Inode, needs: Needs, until: int) -> None:
    """A directory's totals go, unless a snapshot shows it with the content of before a roll-back.

    Each NameNode adds to a part of them: a part that nobody has changed since the snapshot is no
    past row, but still there, and is what the snapshot shows.
    """
    if inode.content_id and needs.shows(inode.id, 0, until):
        left = Orphan(
            Kind.DIRECTORY, inode=msgspec.structs.replace(inode, origin=None), until=until
        )
        tx.put_new(held_key(until, id), left)
    else:
        tx.drop_totals(inode.id)


@operation()
def reclaim_past(tx: Transaction, removal: Key, rows: Sequence[PastRow], is_last: bool) -> None:
    """Forget those of some past rows that no snapshot shows, and note how far that has come."""
    work: Removal | None = tx.get(removal)
    if work is None:
        return
    txid, _ = PAIR.unpack(removal[2])
    forget_unneeded(tx, txid, rows)
    if is_last:
        tx.put(removal, Removal(work.deleted_ms, is_past_done=True))
    else:
        until = rows[-1].until
        looked = tuple(each for each in work.looked if each[1] > until)
        reached = Removal(work.deleted_ms, until, *rows[-1].key, looked=looked, last=work.last)
        tx.put(removal, reached)


def forget_unneeded(tx: Transaction, txid: int, rows: Sequence[PastRow]) -> None:
    """Forget those of some past rows that a snapshot of then has shown, and none does now."""
    needs = Needs(tx, max((row.until for row in rows), default=0))
    # What a roll-back itself has written may have been kept for the snapshot before it.
    candidates = [row for row in rows if row.since <= txid + 1 and txid < row.until]
    shown = ask_all(lambda row: _is_shown(needs, row), candidates)
    forgotten = [row for row, is_shown in zip(candidates, shown, strict=True) if not is_shown]
    _check_replicas(tx, forgotten)
    for row in forgotten:
        tx.forget_past(row.key, row.until)


def _check_replicas(tx: Transaction, forgotten: Iterable[PastRow]) -> None:
    """Have blocks looked at of which only a version that goes asked for so many replicas."""
    rows = [row for row in forgotten if row.key[0] == Table.INODES]
    versions: list[Inode] = [decode(Table.INODES, row.data) for row in rows]
    files = [version for version in versions if version.is_file]
    tables = (int(Table.INODES), int(Table.HELD))
    tx.need(ids=[(table, file.id) for file in files for table in tables])
    lowered = [file for file in files if file.replication > _replication_now(tx, file) > 0]

    def blocks(file: Inode) -> list[tuple[Key, Block]]:
        return tx.scan(Table.BLOCKS, file.id, b"", file.block_count) if file.block_count else []

    for found in ask_all(blocks, lowered):
        for _, block in found:
            put_check(tx, block.id, at_once=True)


def _replication_now(tx: Transaction, file: Inode) -> int:
    """How many replicas are asked for now; of one that was deleted, last; 0: it is gone."""
    now: Inode | None = tx.get_by_id(Table.INODES, file.id)
    if now is None:
        held: Orphan | None = tx.get_by_id(Table.HELD, file.id)
        now = None if held is None else held.inode
    return 0 if now is None else now.replication


def _is_shown(needs: Needs, row: PastRow) -> bool:
    table, id, _ = row.key
    if table == Table.IDENTITIES:
        return needs.has_any(row.since, row.until)
    if table == Table.INODES and needs.has_root(row.id, row.since, row.until):
        return True
    if table in (Table.INODES, Table.WHITEOUTS, Table.MARKS):
        return needs.shows_content(id, row.since, row.until)
    return needs.shows(id, row.since, row.until)


@operation()
def release_orphans(tx: Transaction, removal: Key, until: int) -> Looked:
    """Have a batch of held orphans looked at again; with the last, all is done."""
    work: Removal | None = tx.get(removal)
    if work is None:
        return NOTHING_LEFT
    txid, _ = PAIR.unpack(removal[2])
    after = work.b or PAIR.pack(txid, TXID_MAX)
    page = tx.scan(Table.HELD, 0, after, RECLAIM_BATCH)
    for key, orphan in page:
        detached, _ = PAIR.unpack(key[2])
        if detached > until:
            break
        look_again(tx, key, orphan)
    else:
        if len(page) == RECLAIM_BATCH:
            progress = Removal(work.deleted_ms, b=page[-1][0][2], is_past_done=True)
            tx.put(removal, progress)
            return Looked(len(page), is_done=False)
    tx.delete(removal)
    return Looked(len(page), is_done=True)


class Progress(NamedTuple):
    """What came of a batch."""

    looked: int  # how many rows were looked at
    last: bytes  # of them
    is_holding: bool  # one of them has to stay
    is_waiting: bool = False  # one of them is still to be finished by DataNodes


def _reclaim_blocks(
    tx: Transaction, id: InodeId, orphan: Orphan, needs: Needs, until: int
) -> Progress:
    rows: list[tuple[Key, Block]] = tx.scan(Table.BLOCKS, id, orphan.after, RECLAIM_BATCH)
    shown = ask_all(lambda row: needs.shows_block(row[1].id, until), rows)
    waited = ask_all(lambda row: is_waited_for(tx, *row), rows)
    gone = [row for n, row in enumerate(rows) if not shown[n] and not waited[n]]
    need_replicas(tx, [block.id for _, block in gone])
    need_checks(tx, [block.id for _, block in gone])
    for key, block in gone:
        tx.delete(key)
        discard_block(tx, block)
    return Progress(len(rows), rows[-1][0][2] if rows else b"", len(gone) < len(rows), any(waited))


def _reclaim_children(
    tx: Transaction, id: InodeId, orphan: Orphan, needs: Needs, until: int
) -> Progress:
    content = _content_of(id, orphan)
    rows: list[tuple[Key, Inode]] = tx.scan(Table.INODES, content, orphan.after, RECLAIM_BATCH)
    tx.need(_keys_beside(inode for _, inode in rows))

    def is_shown(row: tuple[Key, Inode]) -> bool:
        since = tx.since(row[0])
        return needs.has_root(row[1].id, since, until) or needs.shows_content(content, since, until)

    shown = ask_all(is_shown, rows)
    for (key, inode), is_needed in zip(rows, shown, strict=True):
        if inode.under_construction:
            leases.remove(tx, inode.id)
            detach_open_block(tx, inode)
        if inode.is_snapshottable:
            forget_snapshottable(tx, inode)
        if is_needed and not inode.is_directory:
            continue
        if not is_needed:
            tx.delete(key)
            forget_identity(tx, inode, lambda since: needs.has_any(since, TXID_MAX))
        if inode.is_directory or inode.block_count:
            below = Orphan(inode.kind, 0, inode, until=until, is_attached=is_needed)
            tx.get(orphan_key(inode.children_id))
            tx.put(orphan_key(inode.children_id), below)
    return Progress(len(rows), rows[-1][0][2] if rows else b"", any(shown))


def _content_of(id: InodeId, orphan: Orphan) -> int:
    """Below what the rows of a detached directory are."""
    return id if orphan.inode is None else orphan.inode.children_id


def _keys_beside(inodes: Iterable[Inode]) -> list[Key]:
    """The other rows that go with some inodes."""
    keys = []
    for inode in inodes:
        keys.append(orphan_key(inode.children_id))
        if inode.under_construction:
            keys.append(lease_key(inode.id))
    return keys
