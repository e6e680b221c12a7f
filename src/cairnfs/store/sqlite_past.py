"""A SQLite namespace as it was after an earlier TxID.

A version is found in its table if it is current still, or else among the past rows.  What
waits in the backlog is brought to the tables first, if it could matter: so both are
looked through by statements alone.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from cairnfs.store.base import (
    FOREVER,
    NO_TOTALS,
    PRESENT,
    Found,
    Key,
    LocalReads,
    PastLocalReads,
    Reading,
    Row,
    Scan,
    Totals,
    decode_totals,
    totals_key,
    whole_scan,
)
from cairnfs.store.sqlite_backlog import Backlog
from cairnfs.store.sqlite_schema import COUNT_COLUMNS

_SELECT_ROW = (
    "SELECT since, data, until FROM past WHERE t = ?1 AND a = ?2 AND b = ?3"
    " AND until > ?4 AND since <= ?4 ORDER BY until LIMIT 1"
)
_SELECT_ID = (
    "SELECT a, b, since, data, until FROM past INDEXED BY past_by_id"
    " WHERE id = ?1 AND t = ?2 AND until > ?3 AND since <= ?3"
)
_SELECT_CURRENT = (
    "SELECT b, since, data FROM records"
    " WHERE t = ?1 AND a = ?2 AND b > ?3 AND since BETWEEN ?5 AND ?6 ORDER BY b LIMIT ?4"
)
_SELECT_PAST = (
    "SELECT b, since, data, until FROM past"
    " WHERE t = ?1 AND a = ?2 AND b > ?3 AND until > ?6 AND until <= ?7"
    " AND since BETWEEN ?5 AND ?6 ORDER BY b LIMIT ?4"
)
# Of many prefixes at once; JSON is how SQLite is given a list.
_SELECT_ALL_CURRENT = (
    "SELECT j.key, r.b, r.since, r.data FROM json_each(?1) j CROSS JOIN records r"
    " WHERE r.t = j.value ->> 0 AND r.a = j.value ->> 1 AND r.since <= ?2"
)
_SELECT_ALL_PAST = (
    "SELECT j.key, r.b, r.since, r.data, r.until FROM json_each(?1) j CROSS JOIN past r"
    " WHERE r.t = j.value ->> 0 AND r.a = j.value ->> 1 AND r.until > ?2 AND r.since <= ?2"
)
_SELECT_ALL_TOTALS = (
    f"SELECT s.id, s.mtime_ms, s.touched, s.changed, {', '.join(COUNT_COLUMNS)}"
    " FROM json_each(?) j CROSS JOIN totals s WHERE s.id = j.value"
)


class SettledReads(LocalReads, Protocol):
    """What there is now, and how to look at what was."""

    @property
    def backlog(self) -> Backlog: ...

    def write_backlog(self) -> None:
        """Bring the tables up to date."""
        ...


class PastReads:
    """See `store.base.PastLocalReads`."""

    def __init__(
        self,
        now: SettledReads,
        fetch: Callable[[str, Sequence[Any]], list[Any]],
        txid: int,
    ) -> None:
        self._now = now
        self._fetch = fetch
        self._txid = txid

    def at(self, txid: int) -> PastLocalReads:
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
        t, a, after, limit, since, until = scan
        asked = (t, a, after, limit, since, self._txid)
        rows = []
        if until == FOREVER:
            rows = [Row((t, a, b), *rest) for b, *rest in self._fetch(_SELECT_CURRENT, asked)]
        if self._txid >= PRESENT:
            return rows
        self._settle_past()
        past = [Row((t, a, b), *rest) for b, *rest in self._fetch(_SELECT_PAST, (*asked, until))]
        return sorted(rows + past)[:limit] if past else rows

    def totals(self, id: int) -> Totals:
        return self._totals_then(id, self._now.totals(id))

    def read(self, reading: Reading) -> Found:
        rows = ((key, self.row(key)) for key in reading.keys)
        found = Found(
            rows={key: row for key, row in rows if row is not None},
            ids={pair: self.rows_of_id(*pair) for pair in reading.ids},
            totals=self._totals_of(reading.totals),
        )
        small = [scan for scan in reading.scans if scan == whole_scan(scan.table, scan.a)]
        found.scans = self._scan_all(small) if small else {}
        for scan in reading.scans:
            if scan not in found.scans:
                found.scans[scan] = self.scan(scan)
        return found

    def _scan_all(self, scans: list[Scan]) -> dict[Scan, list[Row]]:
        """All of many prefixes: a statement for each would take longer than what it finds."""
        if any(self._now.backlog.changes_below(scan.table, scan.a) for scan in scans):
            self._now.write_backlog()
        self._settle_past()
        keys = [(scan.table, scan.a) for scan in scans]
        found: list[list[Row]] = [[] for _ in scans]
        asked = (json.dumps(keys), self._txid)
        for statement in (_SELECT_ALL_CURRENT, _SELECT_ALL_PAST):
            for n, b, *rest in self._fetch(statement, asked):
                found[n].append(Row((*keys[n], b), *rest))
        return {scan: sorted(rows) for scan, rows in zip(scans, found, strict=True)}

    def _totals_of(self, ids: list[int]) -> dict[int, Totals]:
        """Those of many directories by one statement, for the same reason."""
        found = self._fetch(_SELECT_ALL_TOTALS, (json.dumps(ids),)) if ids else []
        stored = {row[0]: Totals(row[4:], *row[1:4]) for row in found}
        backlog = self._now.backlog
        return {
            id: self._totals_then(id, backlog.totals(id, stored.get(id, NO_TOTALS))) for id in ids
        }

    def _totals_then(self, id: int, now: Totals) -> Totals:
        if now != NO_TOTALS and now.changed <= self._txid:  # else it may be gone since
            return now
        found = self.row(totals_key(id))
        return (
            NO_TOTALS if found is None else decode_totals(found.data)._replace(changed=found.since)
        )

    def _settle_past(self) -> None:
        if self._now.backlog.has_past:
            self._now.write_backlog()
