"""A SQLite namespace as it was after an earlier TxID.

A version is found in its table if it is current still, or else among the past rows.  What
waits in the backlog is brought to the tables first, if it could matter: so both are
looked through by statements alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from cairnfs.store.base import (
    FOREVER,
    NO_TOTALS,
    PRESENT,
    Key,
    LocalReads,
    Row,
    Scan,
    Totals,
    decode_totals,
    totals_key,
)
from cairnfs.store.sqlite_backlog import Backlog

WINDOW_ROWS_MIN = 32

_SELECT_ROW = (
    "SELECT since, data, until FROM past WHERE t = ?1 AND a = ?2 AND b = ?3"
    " AND until > ?4 AND since <= ?4 ORDER BY until LIMIT 1"
)
_SELECT_ID = (
    "SELECT a, b, since, data, until FROM past INDEXED BY past_by_id"
    " WHERE id = ?1 AND t = ?2 AND until > ?3 AND since <= ?3"
)
_SELECT_SCAN = (
    "SELECT b, since, data, until FROM (SELECT b, since, data, 0 AS until FROM records"
    " WHERE t = ?1 AND a = ?2 AND b > ?3 AND b <= ?9 AND since BETWEEN ?6 AND ?5 AND ?7 = ?8"
    " ORDER BY b LIMIT ?4)"
    " UNION ALL SELECT b, since, data, until FROM (SELECT b, since, data, until FROM past"
    " WHERE t = ?1 AND a = ?2 AND b > ?3 AND b <= ?9 AND until > ?5 AND until <= ?7"
    " AND since BETWEEN ?6 AND ?5 ORDER BY b LIMIT ?4)"
    " ORDER BY b LIMIT ?4"
)
_FIND_WINDOW_END = (
    "SELECT min(b) FROM (SELECT b FROM (SELECT b FROM records"
    " WHERE t = ?1 AND a = ?2 AND b > ?3 ORDER BY b LIMIT 1 OFFSET ?4)"
    " UNION ALL SELECT b FROM (SELECT b FROM past"
    " WHERE t = ?1 AND a = ?2 AND b > ?3 ORDER BY b LIMIT 1 OFFSET ?4))"
)
_LAST_NAME = b"\xff" * 256  # no name is as long
_SELECT_PRESENT = (
    "SELECT b, since, data FROM records"
    " WHERE t = ?1 AND a = ?2 AND b > ?3 AND since >= ?5 ORDER BY b LIMIT ?4"
)


class SettledReads(LocalReads, Protocol):
    """What there is now, and how to look at what was."""

    @property
    def backlog(self) -> Backlog: ...

    def write_backlog(self) -> None:
        """Bring the tables up to date."""
        ...


class PastReads:
    """See `store.base.LocalReads.at`."""

    def __init__(
        self,
        now: SettledReads,
        fetch: Callable[[str, Sequence[Any]], list[Any]],
        txid: int,
    ) -> None:
        self._now = now
        self._fetch = fetch
        self._txid = txid

    def at(self, txid: int) -> LocalReads:
        return self._now.at(txid)

    def row(self, key: Key) -> Row | None:
        row = self._now.row(key)
        if (row is None and self._txid < PRESENT) or (row is not None and row.since > self._txid):
            self._settle_past()
            found = self._fetch(_SELECT_ROW, (*key, self._txid))
            row = Row(key, *found[0]) if found else None
        return row

    def rows_of_id(self, table: int, id: int) -> list[Row]:
        rows = [row for row in self._now.rows_of_id(table, id) if row.since <= self._txid]
        if self._txid >= PRESENT:
            return rows
        self._settle_past()
        found = self._fetch(_SELECT_ID, (id, table, self._txid))
        return rows + [Row((table, a, b), *rest) for a, b, *rest in found]

    def scan(self, scan: Scan) -> list[Row]:
        if self._now.backlog.changes_below(scan.table, scan.a):
            self._now.write_backlog()
        t, a = scan.table, scan.a
        if self._txid >= PRESENT:
            found = self._fetch(_SELECT_PRESENT, (t, a, scan.after, scan.limit, scan.since))
        else:
            found = self._scan_windows(scan)
        return [Row((t, a, b), *rest) for b, *rest in found]

    def _scan_windows(self, scan: Scan) -> list[Any]:
        """As far as need be, in steps of so many rows, whether they were there then or not.

        Else each page of a directory that has little of what it had, or has much more now, would
        be looked for up to the directory's end.
        """
        self._settle_past()
        t, a, after, limit, since, until = scan
        found: list[Any] = []
        width = 2 * limit + WINDOW_ROWS_MIN
        while True:
            ((end,),) = self._fetch(_FIND_WINDOW_END, (t, a, after, width))
            lacking = limit - len(found)
            found += self._fetch(
                _SELECT_SCAN,
                (t, a, after, lacking, self._txid, since, until, FOREVER, end or _LAST_NAME),
            )
            if end is None or len(found) == limit:
                return found
            after = end
            width *= 2

    def totals(self, id: int) -> Totals:
        totals = self._now.totals(id)
        if totals != NO_TOTALS and totals.changed <= self._txid:  # else it may be gone since
            return totals
        found = self.row(totals_key(id))
        return (
            NO_TOTALS if found is None else decode_totals(found.data)._replace(changed=found.since)
        )

    def _settle_past(self) -> None:
        if self._now.backlog.has_past:
            self._now.write_backlog()
