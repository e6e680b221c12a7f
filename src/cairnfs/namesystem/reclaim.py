"""Reclaiming what no path leads to: below detached inodes, and of deleted snapshots.

All of it goes in bounded steps, each a transaction of its own, so it can stop and go on
anywhere, on any NameNode.

An orphan is a detached inode with the rows below it, which are left as they are.  `reclaim`
looks at each of them once and removes those that no snapshot shows.  If one is left, the orphan
is *held*, and each snapshot that is the latest to show one of its rows has a row in HOLDS that
says so.  A past row says itself for which snapshot it is kept.  When a snapshot is deleted, only
what was kept for it is looked at again (`reclaim_past`, `release_orphans`): it goes, or is kept
for the snapshot before.  So deleting all snapshots costs in proportion to what they held.

Whether a row is needed is for `needs` to say.  What no snapshot ever covered needs no such look.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from cairnfs.blocks.checks import need_checks, put_check
from cairnfs.blocks.holding import is_waited_for
from cairnfs.blocks.invalidations import discard_block
from cairnfs.blocks.records import Block
from cairnfs.blocks.reports import need_replicas
from cairnfs.namesystem import leases
from cairnfs.namesystem.delete import detach_open_block
from cairnfs.namesystem.inodes import Inode, InodeId, Kind
from cairnfs.namesystem.layers import content_key, forget_identity, forget_layered, release
from cairnfs.namesystem.lease_records import lease_key
from cairnfs.namesystem.marks import BELOW
from cairnfs.namesystem.needs import TXID_MAX, Needs
from cairnfs.namesystem.orphans import (
    UNKNOWN,
    Hold,
    Orphan,
    held_key,
    hold_key,
    look_again,
    orphan_key,
)
from cairnfs.namesystem.outstanding import NOTHING_LEFT, Looked
from cairnfs.namesystem.snapshot_records import Removal, removal_key
from cairnfs.namesystem.snapshots import forget_snapshottable
from cairnfs.store.base import PastRow
from cairnfs.store.schema import NUMBER, PAIR, Key, Table
from cairnfs.transaction.calls import operation
from cairnfs.transaction.moments import FORGOTTEN_KEY, MomentChange
from cairnfs.transaction.records import decode
from cairnfs.transaction.rows import ask_all
from cairnfs.transaction.transaction import Transaction

RECLAIM_BATCH = 32  # rows looked at by one transaction: other callers wait for it
CHANGES_KEPT_MS = 60_000  # notes that a snapshot was added or removed
CHANGES_PAGE = 500


@operation()
def reclaim(tx: Transaction, id: InodeId) -> Looked:
    """Look at a batch of rows below a detached inode.

    No path leads to these rows any more, so no call conflicts over them.
    """
    key = orphan_key(id)
    orphan: Orphan | None = tx.get(key)
    if orphan is None:
        return NOTHING_LEFT
    tx.covered = 0  # no snapshot needs what goes from here
    until = orphan.until or tx.since(key)
    needs = Needs(tx, until)
    covered = needs.latest(TXID_MAX if orphan.covered == UNKNOWN else orphan.covered)
    look = _reclaim_blocks if orphan.kind is Kind.FILE else _reclaim_children
    count, last, holders, is_waiting = look(tx, id, orphan, needs, until, covered)
    _hold(tx, id, until, holders)
    is_holding = orphan.is_holding or bool(holders) or is_waiting
    if count == RECLAIM_BATCH:
        going_on = msgspec.structs.replace(orphan, until=until, after=last, is_holding=is_holding)
        tx.put(key, going_on)
        return Looked(count, is_done=False)
    tx.delete(key)
    done = Looked(count, is_done=True)
    if orphan.is_attached:
        return done  # what it is attached to is held, and so is it
    if orphan.kind is Kind.DIRECTORY and not is_holding:
        holder = _holder_of_directory(needs, id, orphan, until, covered)
        if not holder:
            return Looked(count, is_done=_end_directory(tx, id, orphan, needs, until))
        _hold(tx, id, until, {holder})
        is_holding = True
    if is_holding:
        held = msgspec.structs.replace(
            orphan, until=until, after=b"", is_holding=False, is_waiting=is_waiting
        )
        tx.put_new(held_key(until, id), held)
    return done


def _hold(tx: Transaction, id: InodeId, until: int, holders: Iterable[int]) -> None:
    """Have an orphan looked at again when one of these snapshots is deleted."""
    for txid in holders:
        key = hold_key(txid, id)
        if tx.get(key) is None:
            tx.put(key, Hold(until))


def _holder_of_directory(
    needs: Needs, id: InodeId, orphan: Orphan, until: int, covered: int
) -> int:
    """The latest snapshot that shows a directory without children that was detached, or its origin.

    0: there is none.
    """
    if not covered:
        return 0
    if orphan.origin_of:
        assert orphan.inode is not None
        assert orphan.inode.origin is not None
        return needs.holder_of_origin(orphan.origin_of, orphan.inode.origin.pin, until)
    return needs.holder_of_content(_content_of(id, orphan), 0, until)


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
    holder = needs.holder_of(inode.id, 0, until) if inode.content_id else 0
    if holder:
        left = Orphan(
            Kind.DIRECTORY, inode=msgspec.structs.replace(inode, origin=None), until=until
        )
        tx.put_new(held_key(until, id), left)
        _hold(tx, id, until, {holder})
    else:
        tx.drop_totals(inode.id)


@operation()
def reclaim_past(tx: Transaction, removal: Key, rows: Sequence[PastRow], is_last: bool) -> None:
    """Forget those of some past rows that no snapshot shows, and note how far that has come."""
    work: Removal | None = tx.get(removal)
    if work is None:
        return
    forget_unneeded(tx, rows)
    if is_last:
        tx.put(removal, Removal(work.deleted_ms, is_past_done=True))
    else:
        until = rows[-1].until
        looked = tuple(each for each in work.looked if each[1] > until)
        reached = Removal(work.deleted_ms, until, *rows[-1].key, looked=looked, last=work.last)
        tx.put(removal, reached)


def forget_unneeded(tx: Transaction, rows: Sequence[PastRow]) -> None:
    """Forget those of some past rows that no snapshot shows; keep the others for one that does."""
    needs = Needs(tx, max((row.until for row in rows), default=0))
    holders = ask_all(lambda row: _holder_of(needs, row), rows)
    found = list(zip(rows, holders, strict=True))
    _check_replicas(tx, [row for row, holder in found if not holder])
    for row, holder in found:
        if not holder:
            tx.forget_past(row.key, row.until)
        elif holder != row.holder:
            tx.rehold(row.key, row.until, holder)


@operation()
def note_lost_holder(tx: Transaction, txid: int) -> None:
    """Past rows are kept for a snapshot that is not there: have them looked at."""
    page = tx.scan(Table.REMOVALS, 0, PAIR.pack(txid, 0), 1)
    is_known = bool(page) and PAIR.unpack(page[0][0][2])[0] == txid
    key = removal_key(txid, 0)
    if tx.get(key) is None and not is_known:
        tx.put(key, Removal(tx.now_ms, until=txid))


@operation()
def forget_moment_changes(tx: Transaction) -> int:
    """Remove a page of the notes that a moment was added or removed, if they are old enough.

    Returns how many there were if there are more.  A NameNode that has not read them, since it
    was stopped for longer, finds that they were removed, and reads all moments.
    """
    page = tx.scan(Table.MOMENT_CHANGES, 0, b"", CHANGES_PAGE)
    old = [key for key, change in page if tx.now_ms - change.noted_ms > CHANGES_KEPT_MS]
    if not old:
        return 0
    known: MomentChange | None = tx.get(FORGOTTEN_KEY)
    forgotten = max(tx.since(key) for key in old)
    for key in old:
        tx.delete(key)
    if known is None or known.forgotten_txid < forgotten:
        tx.put(FORGOTTEN_KEY, MomentChange(tx.now_ms, forgotten_txid=forgotten))
    return len(page) if len(page) == CHANGES_PAGE == len(old) else 0


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


def _holder_of(needs: Needs, row: PastRow) -> int:
    """The latest snapshot that shows a past row; 0: there is none."""
    table, id, _ = row.key
    if table == Table.IDENTITIES:
        latest = needs.latest(row.until - 1)
        return latest if latest >= row.since else 0
    if table in (Table.INODES, Table.WHITEOUTS, Table.MARKS):
        holder = needs.holder_of_content(id, row.since, row.until)
        if table == Table.INODES and row.id is not None:
            holder = max(holder, needs.holder_of_root(row.id, row.since, row.until))
        return holder
    return needs.holder_of(id, row.since, row.until)


@operation()
def release_orphans(tx: Transaction, removal: Key) -> Looked:
    """Have a batch of orphans that were held for a deleted snapshot looked at again.

    With the last of them, all is done that the snapshot has left.
    """
    work: Removal | None = tx.get(removal)
    if work is None:
        return NOTHING_LEFT
    txid, _ = PAIR.unpack(removal[2])
    page: list[tuple[Key, Hold]] = tx.scan(Table.HOLDS, txid, work.b, RECLAIM_BATCH)
    places = [
        (orphan_key(id), held_key(hold.until, id))
        for key, hold in page
        for id in NUMBER.unpack(key[2])
    ]
    tx.need(key for place in places for key in place)
    for (key, _), place in zip(page, places, strict=True):
        tx.delete(key)
        _look_at(tx, *place)
    if len(page) == RECLAIM_BATCH:
        tx.put(removal, Removal(work.deleted_ms, b=page[-1][0][2], is_past_done=True))
        return Looked(len(page), is_done=False)
    tx.delete(removal)
    return Looked(len(page), is_done=True)


def _look_at(tx: Transaction, key: Key, held: Key) -> None:
    """Have an orphan looked at from its beginning, if it is there still."""
    orphan: Orphan | None = tx.get(key)
    if orphan is not None:
        tx.put(key, msgspec.structs.replace(orphan, after=b"", is_holding=False))
        return
    orphan = tx.get(held)
    if orphan is not None:
        look_again(tx, held, orphan)


class Progress(NamedTuple):
    """What came of a batch."""

    looked: int  # how many rows were looked at
    last: bytes  # of them
    holders: set[int]  # the latest snapshots that show those that have to stay
    is_waiting: bool = False  # one of them is still to be finished by DataNodes


def _reclaim_blocks(
    tx: Transaction, id: InodeId, orphan: Orphan, needs: Needs, until: int, covered: int
) -> Progress:
    rows: list[tuple[Key, Block]] = tx.scan(Table.BLOCKS, id, orphan.after, RECLAIM_BATCH)

    def holder_of(row: tuple[Key, Block]) -> int:
        key, block = row
        is_newer = tx.since(key) > covered and not block.held_bytes
        return 0 if is_newer else needs.holder_of_block(block.id, until)

    holders = ask_all(holder_of, rows)
    waited = ask_all(lambda row: is_waited_for(tx, *row), rows)
    gone = [row for n, row in enumerate(rows) if not holders[n] and not waited[n]]
    need_replicas(tx, [block.id for _, block in gone])
    need_checks(tx, [block.id for _, block in gone])
    for key, block in gone:
        tx.delete(key)
        discard_block(tx, block)
    last = rows[-1][0][2] if rows else b""
    return Progress(len(rows), last, {each for each in holders if each}, any(waited))


def _reclaim_children(
    tx: Transaction, id: InodeId, orphan: Orphan, needs: Needs, until: int, covered: int
) -> Progress:
    content = _content_of(id, orphan)
    rows: list[tuple[Key, Inode]] = tx.scan(Table.INODES, content, orphan.after, RECLAIM_BATCH)
    tx.need(_keys_beside(inode for _, inode in rows))
    covers = [max(covered, needs.latest(inode.covered_txid)) for _, inode in rows]

    def holder_of(n: int) -> int:
        key, inode = rows[n]
        since = tx.since(key)
        if since > covers[n]:
            return 0
        holder = needs.holder_of_root(inode.id, since, until)
        return max(holder, needs.holder_of_content(content, since, until))

    holders = ask_all(holder_of, range(len(rows)))
    for (key, inode), covering, holder in zip(rows, covers, holders, strict=True):
        if inode.under_construction:
            leases.remove(tx, inode.id)
            detach_open_block(tx, inode)
        if inode.is_snapshottable:
            forget_snapshottable(tx, inode)
        if holder and not inode.is_directory:
            continue
        if not holder:
            tx.delete(key)
            forget_identity(tx, inode, needs.holder_since)
        if inode.is_directory or inode.block_count:
            below = Orphan(
                inode.kind,
                inode=inode,
                until=until,
                is_attached=bool(holder),
                covered=covering,
            )
            tx.get(orphan_key(inode.children_id))
            tx.put(orphan_key(inode.children_id), below)
    last = rows[-1][0][2] if rows else b""
    return Progress(len(rows), last, {each for each in holders if each})


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
