"""A SQLite namespace as it was after an earlier TxID.

A version is found in its table if it is current still, or else among the past rows.  What
waits in the backlog is brought to the tables first, if it could matter: so both are
looked through by statements alone.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, Protocol

from cairnfs.store.base import (
    ALL_ROWS,
    FOREVER,
    NO_TOTALS,
    PRESENT,
    LocalReads,
    PastLocalReads,
    Row,
    Scan,
    Stored,
    Totals,
    decode_totals,
    totals_key,
    whole_scan,
)
from cairnfs.store.schema import Key, Table
from cairnfs.store.sqlite_backlog import Backlog
from cairnfs.store.sqlite_schema import COUNT_COLUMNS

WINDOW_ROWS_MIN = 32

_SELECT_ROW = (
    "SELECT since, data, until FROM past WHERE t = ?1 AND a = ?2 AND b = ?3"
    " AND until > ?4 AND since <= ?4 ORDER BY until LIMIT 1"
)
_SELECT_ID = (
    "SELECT a, b, since, data, until FROM past INDEXED BY past_by_id"
    " WHERE id = ?1 AND t = ?2 AND until > ?3 AND since <= abs(?3)"  # see EVERY_TIME
)
_SELECT_CURRENT = (
    "SELECT 0, b, since, data FROM records WHERE t = ?1 AND a = ?2 AND b > ?3 AND b <= ?4"
    " AND since BETWEEN ?6 AND ?7 ORDER BY b LIMIT ?5"
)
_SELECT_PAST = (
    "SELECT until, b, since, data FROM past WHERE t = ?1 AND a = ?2 AND b > ?3 AND b <= ?4"
    " AND until > ?7 AND until <= ?8 AND since BETWEEN ?6 AND ?7 ORDER BY b LIMIT ?5"
)
_HAS_PAST = "SELECT 1 FROM past WHERE t = ? AND a = ? LIMIT 1"
_FIND_WINDOW_END = (
    "SELECT min(b) FROM (SELECT b FROM (SELECT b FROM records"
    " WHERE t = ?1 AND a = ?2 AND b > ?3 ORDER BY b LIMIT 1 OFFSET ?4)"
    " UNION ALL SELECT b FROM (SELECT b FROM past"
    " WHERE t = ?1 AND a = ?2 AND b > ?3 ORDER BY b LIMIT 1 OFFSET ?4))"
)
_LAST_NAME = b"\xff" * 256  # no name is as long
# Of many prefixes at once; JSON is how SQLite is given a list.
_SELECT_ALL_CURRENT = (
    "SELECT j.key, r.b, r.since, r.data FROM json_each(?1) j CROSS JOIN records r"
    " WHERE r.t = j.value ->> 0 AND r.a = j.value ->> 1 AND r.since <= ?2"
)
_SELECT_ALL_PAST = (
    "SELECT j.key, r.b, r.since, r.data FROM json_each(?1) j CROSS JOIN past r"
    " WHERE r.t = j.value ->> 0 AND r.a = j.value ->> 1 AND r.until > ?2 AND r.since <= ?2"
)
_SELECT_ALL_TOTALS = (
    f"SELECT s.id, s.mtime_ms, s.touched, s.changed, {', '.join(COUNT_COLUMNS)}"
    " FROM json_each(?) j CROSS JOIN totals s WHERE s.id = j.value"
)

_FIRST = itemgetter(0)
_NAME = itemgetter(1)


class SettledReads(LocalReads, Protocol):
    """What there is now, and how to look at what was."""

    @property
    def backlog(self) -> Backlog: ...

    def write_backlog(self) -> None:
        """Bring the tables up to date."""
        ...


class PastReads:
    """See `store.base.PastLocalReads`; EVERY_TIME is a TxID of which only ids are looked for."""

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
        now = self._now.rows_of_id(table, id)
        rows = [row for row in now if row.since <= abs(self._txid)]
        if self._txid >= PRESENT:
            return rows
        self._settle_past()
        found = self._fetch(_SELECT_ID, (id, table, self._txid))
        return rows + [Row((table, a, b), *rest) for a, b, *rest in found]

    def scan(self, scan: Scan) -> list[Row]:
        if self._now.backlog.changes_below(scan.table, scan.a):
            self._now.write_backlog()
        t, a = scan.table, scan.a
        return [Row((t, a, b), since, data, until) for until, b, since, data in self._scan(scan)]

    def _scan(self, scan: Scan) -> list[Stored]:
        """As far as need be, in windows of so many rows, whether they were there then or not.

        Else each page of a directory that has little of what it had, or has much more now, would
        be looked for up to the directory's end.
        """
        t, a, after, limit, since, until = scan
        self._settle_past()
        if self._txid >= PRESENT or not self._fetch(_HAS_PAST, (t, a)):
            asked = (t, a, after, _LAST_NAME, limit, since, self._txid)
            return self._fetch(_SELECT_CURRENT, asked) if until == FOREVER else []
        found: list[Stored] = []
        width = 2 * limit + WINDOW_ROWS_MIN
        while True:
            end = None
            if limit < ALL_ROWS:  # else it is looked for up to the end anyway, once
                ((end,),) = self._fetch(_FIND_WINDOW_END, (t, a, after, width))
            lacking = limit - len(found)
            asked = (t, a, after, end or _LAST_NAME, lacking, since, self._txid)
            rows = self._fetch(_SELECT_CURRENT, asked) if until == FOREVER else []
            past = self._fetch(_SELECT_PAST, (*asked, until))
            found += sorted([*rows, *past], key=_NAME)[:lacking] if past else rows
            if end is None or len(found) == limit:
                return found
            after = end
            width *= 2

    def totals(self, id: int) -> Totals:
        now = self._now.totals(id)
        if self._is_then(now):
            return now
        row = self.row(totals_key(id))
        return NO_TOTALS if row is None else _decode_totals(row.since, row.data)

    def stored(self, scans: list[Scan]) -> list[list[Stored]]:
        if any(self._now.backlog.changes_below(scan.table, scan.a) for scan in scans):
            self._now.write_backlog()
        self._settle_past()
        if all(scan == whole_scan(scan.table, scan.a) for scan in scans):
            asked = json.dumps([(scan.table, scan.a) for scan in scans]), self._txid
            return self._collect(asked, len(scans), _SELECT_ALL_CURRENT, _SELECT_ALL_PAST)
        return [self._scan(scan) for scan in scans]

    def _collect(
        self, asked: Sequence[Any], count: int, current: str, past: str
    ) -> list[list[Stored]]:
        """The rows of so many scans, each in order."""
        found: list[list[Stored]] = [[] for _ in range(count)]
        for n, rows in groupby(self._fetch(current, asked), key=_FIRST):
            found[n] = list(rows)
        for n, rows in groupby(self._fetch(past, asked), key=_FIRST):
            found[n] = sorted([*found[n], *rows])
        return found

    def totals_of(self, ids: list[int]) -> dict[int, Totals]:
        if not ids:
            return {}
        stored = {
            row[0]: Totals(row[4:], *row[1:4])
            for row in self._fetch(_SELECT_ALL_TOTALS, (json.dumps(ids),))
        }
        backlog = self._now.backlog
        now = {id: backlog.totals(id, stored.get(id, NO_TOTALS)) for id in ids}
        older = [id for id, totals in now.items() if not self._is_then(totals)]
        found = self.stored([whole_scan(Table.TOTALS, id) for id in older]) if older else []
        for id, rows in zip(older, found, strict=True):
            now[id] = _decode_totals(*rows[0][2:]) if rows else NO_TOTALS
        return now

    def _is_then(self, now: Totals) -> bool:
        """Whether totals of now are those of then; if there are none, they may be gone since."""
        return now != NO_TOTALS and now.changed <= self._txid

    def _settle_past(self) -> None:
        if self._now.backlog.has_past:
            self._now.write_backlog()


def _decode_totals(since: int, data: bytes) -> Totals:
    return decode_totals(data)._replace(changed=since)
