"""When snapshots were taken: what decides which superseded versions are needed.

A directory knows the TxID of the latest snapshot that ever covered it; whether that
snapshot, or an earlier one, still exists is known here.

Invariant: every snapshot up to `_known` that exists is among `_times`; one that is there in
vain, since another NameNode has deleted it, only keeps what nobody needs for a while.
"""

from __future__ import annotations

from bisect import bisect_right

import msgspec

from cairnfs.store.base import Reading, Scan, Store
from cairnfs.store.schema import PAIR, Key, Table
from cairnfs.transaction.records import register

REFRESH_MS = 1000  # what other NameNodes have deleted is known by then
_PAGE = 10_000

_MOMENTS = int(Table.MOMENTS)

LATEST_KEY: Key = (_MOMENTS, 1, b"")
"""The latest snapshot ever taken, for whoever changes a row without knowing what covers it."""


class Moment(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A snapshot, where it is found by its TxID."""

    txid: int
    inode_id: int = 0
    name: bytes = b""  # empty: nobody sees it, but something needs what it shows


register(Table.MOMENTS, Moment)


def moment_key(txid: int, inode_id: int) -> Key:
    """Where a snapshot is found by its TxID; several may have been taken at once."""
    return (_MOMENTS, 0, PAIR.pack(txid, inode_id))


class Moments:
    """The TxIDs of the snapshots there are, as far as this NameNode knows."""

    def __init__(self) -> None:
        self._times: list[int] = []
        self._known = -1  # everything up to this TxID was seen
        self._refreshed_ms = -REFRESH_MS
        self.is_outdated = False  # one was deleted here, and it has not been looked again

    def latest(self, covered: int) -> int:
        """The TxID of the latest snapshot up to this one; 0 if there is none."""
        if covered > self._known:
            return covered  # just taken, and not seen yet
        place = bisect_right(self._times, covered)
        return self._times[place - 1] if place else 0

    def is_stale(self, now_ms: int) -> bool:
        """Whether nothing was seen yet, or others may have deleted what is relied on meanwhile."""
        is_old = not 0 <= now_ms - self._refreshed_ms < REFRESH_MS
        return is_old or self.is_outdated or self._known < 0

    async def refresh(self, store: Store, now_ms: int) -> None:
        """See what there is."""
        known = await store.last_txid()
        times: list[int] = []
        after = b""
        while True:
            scan = Scan(Table.MOMENTS, 0, after, _PAGE)
            rows = (await store.read(Reading(scans=[scan]))).scans[scan]
            times += [PAIR.unpack(row.key[2])[0] for row in rows]
            if len(rows) < _PAGE:
                break
            after = rows[-1].key[2]
        self._times, self._known = times, known
        self.is_outdated = False
        self._refreshed_ms = now_ms
