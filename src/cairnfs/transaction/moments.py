"""When snapshots were taken: what decides which superseded versions are needed.

A directory knows the TxID of the latest snapshot that ever covered it.  Whether that snapshot, or
an earlier one, still exists is known here, and so is of which inodes there are snapshots.

A NameNode keeps all of it in memory.  It reads everything once, and then only what has changed.
Snapshots that were taken since it last looked are at the end of the rows.  Those that were removed,
or that were added with an earlier TxID, have left a row of changes (MOMENT_CHANGES), which is
removed again after a while.

Invariant: every snapshot up to `known` that exists is here.  One that another NameNode has removed
may still be here for a while; then something is kept for longer than it is needed.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import msgspec

from cairnfs.store.base import Reading, Row, Scan, Store
from cairnfs.store.schema import PAIR, Key, Table
from cairnfs.transaction.records import decode, register

if TYPE_CHECKING:
    from cairnfs.transaction.transaction import Transaction

REFRESH_MS = 1000  # what other NameNodes have deleted is known by then
_PAGE = 10_000

_MOMENTS = int(Table.MOMENTS)
_CHANGES = int(Table.MOMENT_CHANGES)
_NOTHING: Sequence[int] = ()

LATEST_KEY: Key = (_MOMENTS, 1, b"")
"""The latest snapshot ever taken, for a caller that does not know what covers a row."""

FORGOTTEN_KEY: Key = (_CHANGES, 1, b"")
"""Up to which TxID rows of changes were removed: earlier knowledge has to be read anew."""


class Moment(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A snapshot, where it is found by its TxID.  Stored: append fields only."""

    txid: int
    inode_id: int = 0
    name: bytes = b""  # empty: nobody sees it, but something needs what it shows


class MomentChange(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A moment was removed, or added with an earlier TxID.  Stored: append fields only."""

    noted_ms: int
    added: Moment | None = None
    forgotten_txid: int = 0  # of FORGOTTEN_KEY alone


register(Table.MOMENTS, Moment)
register(Table.MOMENT_CHANGES, MomentChange)


def moment_key(txid: int, id: int) -> Key:
    """Where a snapshot is found by its TxID and the id of its inode, or of what holds it."""
    return (_MOMENTS, 0, PAIR.pack(txid, id))


def add_moment(tx: Transaction, id: int, moment: Moment, *, is_new: bool = False) -> None:
    """Hold what there was after a TxID; `is_new`: after this very transaction."""
    key = moment_key(moment.txid, id)
    tx.put_new(key, moment)
    if not is_new:
        _note_change(tx, key, moment)


def remove_moment(tx: Transaction, txid: int, id: int) -> Key:
    """What there was after a TxID is no longer held by this; returns the key that it had."""
    key = moment_key(txid, id)
    tx.get(key)
    tx.delete(key)
    _note_change(tx, key, None)
    return key


def change_key(moment: Key) -> Key:
    """Where it is noted that a moment was added or removed."""
    return (_CHANGES, 0, moment[2])


def _note_change(tx: Transaction, moment: Key, added: Moment | None) -> None:
    key = change_key(moment)
    tx.get(key)
    tx.put(key, MomentChange(tx.now_ms, added))


class MomentIndex:
    """Moments in order, by inode and by name; what it has is for its owner to say."""

    def __init__(self) -> None:
        self._moments: dict[bytes, Moment] = {}  # by `b` of their keys
        self._times: list[int] = []
        self._named: dict[int, int] = {}  # how many snapshots with a name each TxID has
        self._of_inode: dict[int, list[int]] = {}

    def __len__(self) -> int:
        return len(self._moments)

    def latest(self, txid: int) -> int:
        """The TxID of the latest moment up to this one; 0 if there is none."""
        place = bisect_right(self._times, txid)
        return self._times[place - 1] if place else 0

    def of_inode(self, id: int) -> Sequence[int]:
        """The TxIDs of the moments of one inode, in order."""
        return self._of_inode.get(id, _NOTHING)

    def is_at(self, txid: int) -> bool:
        """Whether there is a moment of this TxID."""
        return self.latest(txid) == txid

    def is_named(self, txid: int) -> bool:
        """Whether somebody can see a snapshot of this TxID."""
        return txid in self._named

    def add(self, place: bytes, moment: Moment) -> None:
        known = self._moments.get(place)
        if known is not None:
            self.remove(place)
        self._moments[place] = moment
        insort(self._times, moment.txid)
        insort(self._of_inode.setdefault(moment.inode_id, []), moment.txid)
        if moment.name:
            self._named[moment.txid] = self._named.get(moment.txid, 0) + 1

    def remove(self, place: bytes) -> None:
        moment = self._moments.pop(place, None)
        if moment is None:
            return
        _take_out(self._times, moment.txid)
        of_inode = self._of_inode[moment.inode_id]
        _take_out(of_inode, moment.txid)
        if not of_inode:
            del self._of_inode[moment.inode_id]
        if moment.name:
            self._named[moment.txid] -= 1
            if not self._named[moment.txid]:
                del self._named[moment.txid]

    def add_all(self, moments: Iterable[tuple[bytes, Moment]]) -> None:
        """Add many to an index that has none, in the order of their keys."""
        for place, moment in moments:
            self._moments[place] = moment
            self._times.append(moment.txid)
            self._of_inode.setdefault(moment.inode_id, []).append(moment.txid)
            if moment.name:
                self._named[moment.txid] = self._named.get(moment.txid, 0) + 1


def _take_out(times: list[int], txid: int) -> None:
    del times[bisect_left(times, txid)]


class Moments:
    """The moments there are, as far as this NameNode knows."""

    def __init__(self) -> None:
        self.index = MomentIndex()
        self.known = -1  # everything up to this TxID was seen
        self.is_outdated = False  # one was deleted here, and it has not been looked again
        self._refreshed_ms = -REFRESH_MS
        self._refreshing = asyncio.Lock()

    def latest(self, covered: int) -> int:
        """The TxID of the latest snapshot up to this one; 0 if there is none."""
        if covered > self.known:
            return covered  # just taken, and not seen yet
        return self.index.latest(covered)

    def is_stale(self, now_ms: int) -> bool:
        """Whether nothing was seen yet, or others may have deleted what is relied on meanwhile."""
        is_old = not 0 <= now_ms - self._refreshed_ms < REFRESH_MS
        return is_old or self.is_outdated or self.known < 0

    async def refresh(self, store: Store, now_ms: int) -> None:
        """See what there is."""
        async with self._refreshing:
            known = await store.last_txid()
            if known != self.known:
                if self.known < 0 or not await self._catch_up(store):
                    await self._read_all(store)
                self.known = known
            self.is_outdated = False
            self._refreshed_ms = now_ms

    async def _catch_up(self, store: Store) -> bool:
        """Read what has changed; False: that is not known any more."""
        new = Scan(_MOMENTS, 0, PAIR.pack(self.known, 0), _PAGE)
        changed = Scan(_CHANGES, 0, b"", _PAGE)
        found = await store.read(Reading(keys=[FORGOTTEN_KEY], scans=[new, changed]))
        if max(map(len, found.scans.values())) == _PAGE:
            return False  # reading everything is not much more
        forgotten = found.rows.get(FORGOTTEN_KEY)
        if forgotten is not None:
            record: MomentChange = decode(_CHANGES, forgotten.data)
            if record.forgotten_txid > self.known:
                return False
        for row in found.scans[new]:
            self.index.add(row.key[2], decode(_MOMENTS, row.data))
        for row in found.scans[changed]:
            if row.since > self.known:
                change: MomentChange = decode(_CHANGES, row.data)
                if change.added is None:
                    self.index.remove(row.key[2])
                else:
                    self.index.add(row.key[2], change.added)
        return True

    async def _read_all(self, store: Store) -> None:
        index = MomentIndex()
        after = b""
        while True:
            scan = Scan(_MOMENTS, 0, after, _PAGE)
            rows: list[Row] = (await store.read(Reading(scans=[scan]))).scans[scan]
            index.add_all((row.key[2], decode(_MOMENTS, row.data)) for row in rows)
            if len(rows) < _PAGE:
                break
            after = rows[-1].key[2]
        self.index = index
