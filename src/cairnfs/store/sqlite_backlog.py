"""Commits that are on disk, but not in their tables yet.

A batch of calls from all over the namespace changes a page of the tables for nearly every
call, and every such page would have to be written before the batch is durable.  So a batch
is written to the journal first.  Its changes wait here, and go to the tables with those of a few
thousand other calls, each page once.  After a crash they are read back from the journal.

Invariant: what is read here together with the tables is what has been committed, also while
`write_in_slices` has written a part of it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Final, TypeVar

import apsw

from cairnfs.store.base import ABSENT, NO_TOTALS, PastRow, Row, Scan, Totals, scan_under
from cairnfs.store.schema import Key, Table
from cairnfs.store.sqlite_change import Addition, Change, Version
from cairnfs.store.sqlite_replies import Replies
from cairnfs.store.sqlite_replies import insert as insert_replies
from cairnfs.store.sqlite_schema import COUNT_COLUMNS

_PUT = (
    "INSERT INTO records (t, a, b, id, since, data) VALUES (?, ?, ?, ?, ?, ?)"
    " ON CONFLICT (t, a, b) DO UPDATE SET id = excluded.id, since = excluded.since,"
    " data = excluded.data"
)
_DELETE: Final = "DELETE FROM records WHERE t = ? AND a = ? AND b = ?"
_TOUCH = (
    f"INSERT INTO totals (id, mtime_ms, touched, changed, {', '.join(COUNT_COLUMNS)})"
    f" VALUES ({', '.join('?' * (4 + len(COUNT_COLUMNS)))}) ON CONFLICT (id) DO UPDATE SET"
    " mtime_ms = iif(excluded.touched > 0, excluded.mtime_ms, mtime_ms),"
    " touched = max(touched, excluded.touched), changed = excluded.changed, "
    + ", ".join(f"{name} = {name} + excluded.{name}" for name in COUNT_COLUMNS)
)
_KEEP: Final = (
    "INSERT INTO past (t, a, b, until, since, id, data, holder) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
)
_KEEP_STORED: Final = (
    "INSERT INTO past (t, a, b, until, since, id, data, holder)"
    " SELECT t, a, b, ?4, since, id, data, ?5 FROM records WHERE t = ?1 AND a = ?2 AND b = ?3"
)
_FORGET: Final = "DELETE FROM past WHERE t = ? AND a = ? AND b = ? AND until = ?"
_REHOLD: Final = "UPDATE past SET holder = ?5 WHERE t = ?1 AND a = ?2 AND b = ?3 AND until = ?4"
_DROP: Final = "DELETE FROM totals WHERE id = ?"

SLICE_ROWS = 256
"""So many rows are brought to the tables before others have their turn: about a millisecond."""

SCANNED_OVER_MAX = 2000
"""So many changes may wait in a directory that is listed: every page looks at all of them."""

SLICE_CLIENTS = 8  # whose replies are brought there together

_KEY: Final = operator.itemgetter(0)


class _Parcel:
    """Changes that go to their tables together, the later ones over those before."""

    __slots__ = (
        "calls",
        "changes",
        "drops",
        "forgets",
        "fresh",
        "held",
        "past",
        "reholds",
        "replies",
        "rows",
        "tables",
        "totals",
    )

    def __init__(self) -> None:
        self.calls = 0  # that made them
        self.changes = 0
        self.rows: dict[Key, Version | None] = {}  # None: the row is gone
        self.fresh: set[Key] = set()  # of these rows, those of which the tables have none
        self.tables: set[int] = set()  # whose rows these are
        self.totals: dict[int, list[Addition]] = {}  # to the same directory, one after another
        self.replies: dict[bytes, list[Replies]] = {}  # by client
        self.past: list[PastRow] = []
        # What the tables still have, until when, and for which snapshot.
        self.held: list[tuple[Key, int, int]] = []
        self.forgets: list[tuple[Key, int]] = []
        self.reholds: list[tuple[Key, int, int]] = []
        self.drops: set[int] = set()  # directories whose totals go

    def add(self, change: Change, new: Iterable[Key]) -> list[tuple[Key, Version | None]]:
        """`new` are keys of which there was no row: one that goes again before it has come to the
        tables, as many leases and temporary names, never gets there.  Returns those."""
        self.calls += change.size
        self.changes += 1
        rows, fresh = self.rows, self.fresh
        dropped = []
        for key in change.deletes:
            if key in fresh:
                fresh.remove(key)
                dropped.append((key, rows.pop(key)))
            else:
                rows[key] = None
        fresh.update([key for key in new if key not in rows])
        rows.update(change.puts)
        self.tables.update([key[0] for key in change.deletes])
        self.tables.update([key[0] for key, _ in change.puts])
        for id, addition in change.touches:
            self.totals.setdefault(id, []).append(addition)
        self._drop(change.drops)
        for replies in change.replies:
            self.replies.setdefault(replies.client_id, []).append(replies)
        self.past += change.past
        self.held += change.held
        self.forgets += change.forgets
        self.reholds += change.reholds
        return dropped

    def join(self, later: _Parcel) -> None:
        """Take up what came after it."""
        self.calls += later.calls
        self.changes += later.changes
        self.fresh = later.fresh.difference(self.rows)  # its own may have come to the tables
        self.rows.update(later.rows)
        self.tables |= later.tables
        self._drop(later.drops)
        for id, additions in later.totals.items():
            self.totals.setdefault(id, []).extend(additions)
        for client_id, replies in later.replies.items():
            self.replies.setdefault(client_id, []).extend(replies)
        self.past += later.past
        self.held += later.held
        self.forgets += later.forgets
        self.reholds += later.reholds

    def _drop(self, ids: Iterable[int]) -> None:
        """Totals go, with what was added to them before."""
        for id in ids:
            self.totals.pop(id, None)
            self.drops.add(id)


class Backlog:
    """The changes that wait for their tables: a parcel that grows, and one that is on its way.

    Both are part of what is read until the second is committed; of totals and replies, which would
    count twice, those that its transaction has written are not.
    """

    def __init__(self, changes: Iterable[Change] = ()) -> None:
        self._new = _Parcel()
        self._going = _Parcel()  # empty, unless it is being written
        self._written_totals: set[int] = set()  # directories of `_going`
        self._written_replies: set[bytes] = set()  # clients of `_going`
        # By id and by prefix, once somebody has asked.
        self._keys_of_id: dict[tuple[int, int], set[Key]] | None = None
        self._keys_below: dict[tuple[int, int], set[Key]] | None = None
        self.hinders_scans = False  # so much waits in one directory that it should not any more
        for change in changes:
            self.add(change)

    def __bool__(self) -> bool:
        return bool(self._new.changes or self._going.changes)

    @property
    def _parcels(self) -> tuple[_Parcel, _Parcel]:
        """The older one first."""
        return self._going, self._new

    @property
    def calls(self) -> int:
        """How many calls have made these changes."""
        return self._new.calls + self._going.calls

    def add(self, change: Change, new: Iterable[Key] = ()) -> None:
        """`new` are keys of which there was no row; whoever does not know tells none."""
        dropped = self._new.add(change, new)
        if self._keys_of_id is not None:
            self._index(change.puts)
        if self._keys_below is not None:
            self._index_prefixes([*change.deletes, *(key for key, _ in change.puts)])
        self._forget(dropped)

    # What is committed: these, laid over what is in the tables.

    def knows(self, key: Key) -> bool:
        return key in self._new.rows or key in self._going.rows

    def version(self, key: Key) -> Version | None:
        """What there is of a key that is known, or was until its row went."""
        rows = self._new.rows
        return rows[key] if key in rows else self._going.rows.get(key)

    def row(self, key: Key) -> Row | None:
        """The same, as a row."""
        version = self.version(key)
        return None if version is None else Row(key, version[1], version[2])

    def versions(self, keys: Collection[Key]) -> dict[Key, int]:
        """Since when the rows are as they are, of those keys that are known."""
        found: dict[Key, int] = {}
        for parcel in self._parcels:
            rows = parcel.rows
            if not rows.keys().isdisjoint(keys):
                for key in keys:
                    if key in rows:
                        version = rows[key]
                        found[key] = ABSENT if version is None else version[1]
        return found

    @property
    def has_past(self) -> bool:
        """Whether past rows wait.

        Not whether some are to be forgotten: no snapshot shows those, and they hinder no reader.
        """
        return any(parcel.past or parcel.held for parcel in self._parcels)

    @property
    def changes_past(self) -> bool:
        """Whether anything that waits changes which past rows there are, and for whom."""
        return self.has_past or any(parcel.forgets or parcel.reholds for parcel in self._parcels)

    def changes_below(self, table: int, a: int) -> bool:
        """Whether a row with this prefix waits."""
        return bool(self._keys_with_prefix(table, a))

    def rows_of_id(self, table: int, id: int, stored: list[Row]) -> list[Row]:
        if not (self._new.rows or self._going.rows):
            return stored
        if self._keys_of_id is None:
            self._keys_of_id = {}
            for parcel in self._parcels:
                self._index(parcel.rows.items())
        rows = [row for row in stored if not self.knows(row.key)]
        for key in self._keys_of_id.get((table, id), ()):
            version = self.version(key)
            if version is not None and version[0] == id:
                rows.append(Row(key, version[1], version[2]))
        return rows

    def scan(self, scan: Scan, read: Callable[[Scan], list[tuple[Key, Row]]]) -> list[Row]:
        keys = self._keys_with_prefix(scan.table, scan.a)
        if len(keys) > SCANNED_OVER_MAX and scan.table == Table.INODES:
            self.hinders_scans = True
        changed = {key: self.row(key) for key in keys}
        return [row for _, row in scan_under(changed, scan, read)]

    def totals(self, id: int, stored: Totals) -> Totals:
        going = () if id in self._written_totals else self._going.totals.get(id, ())
        if id in self._new.drops:
            stored, going = NO_TOTALS, ()
        elif id in self._going.drops and id not in self._written_totals:
            stored = NO_TOTALS
        additions = [*going, *self._new.totals.get(id, ())]
        if not additions:
            return stored
        addition = _sum(additions)
        counts = tuple(map(operator.add, stored.counts, addition.counts))
        if not addition.touched:
            return stored._replace(counts=counts, changed=addition.changed)
        return Totals(counts, addition.mtime_ms, addition.touched, addition.changed)

    def totals_changed(self, id: int) -> int:
        """The TxID of the last addition to these totals that waits; 0 if none does."""
        additions = self._new.totals.get(id) or self._going.totals.get(id)
        return 0 if additions is None else additions[-1].changed

    def find_replies(self, client_id: bytes, call_id: int) -> list[bytes]:
        """Blobs that may hold the reply to a call, as the store finds them."""
        going = () if client_id in self._written_replies else self._going.replies.get(client_id, ())
        return [
            replies.data
            for replies in (*going, *self._new.replies.get(client_id, ()))
            if replies.calls[0] <= call_id <= replies.calls[-1]
        ]

    def has_replied(self, client_id: bytes, calls: Iterable[int]) -> bool:
        """Whether a reply to one of these calls waits."""
        numbers = set(calls)
        return any(not numbers.isdisjoint(replies.calls) for replies in self._replies_to(client_id))

    def last_calls(self, client_id: bytes) -> list[int]:
        """Among which is the largest number of a client's call whose reply waits, if any does."""
        return [replies.calls[-1] for replies in self._replies_to(client_id)]

    def _replies_to(self, client_id: bytes) -> Iterator[Replies]:
        """All that wait, also those that the table has by now."""
        for parcel in self._parcels:
            yield from parcel.replies.get(client_id, ())

    def has_expired_replies(self, now_ms: int) -> bool:
        """Whether replies wait that nobody will ask for any more."""
        return any(
            replies[0].expires_ms < now_ms
            for parcel in self._parcels
            for replies in parcel.replies.values()
        )

    # To the tables.

    def write(self, db: apsw.Connection) -> None:
        """Write everything, as a part of a transaction."""
        try:
            for _ in self.write_in_slices(db):
                pass
        finally:
            self.keep_all()

    def write_in_slices(self, db: apsw.Connection) -> Iterator[None]:
        """Write what waits now, in the order of the tables, as a part of a transaction.

        At the end of it, `forget_written` or `keep_all` are to be told; whatever is added
        meanwhile waits for the next time.
        """
        assert not self._going.changes, "one parcel after another"
        going, self._going, self._new = self._new, self._new, _Parcel()

        def write() -> Iterator[None]:
            # What the tables have goes to the past before it is overwritten.
            for ended in _slices(sorted(going.held), SLICE_ROWS):
                db.executemany(_KEEP_STORED, [(*key, *rest) for key, *rest in ended])
                yield
            for versions in _slices(sorted(going.past), SLICE_ROWS):
                db.executemany(_KEEP, [(*key, *rest) for key, *rest in versions])
                yield
            for forgotten in _slices(sorted(going.forgets), SLICE_ROWS):
                db.executemany(_FORGET, [(*key, until) for key, until in forgotten])
                yield
            for reheld in _slices(going.reholds, SLICE_ROWS):
                db.executemany(_REHOLD, [(*key, *rest) for key, *rest in reheld])
                yield
            for rows in _slices(sorted(going.rows.items(), key=_KEY), SLICE_ROWS):
                deletes = [key for key, version in rows if version is None]
                if deletes:
                    db.executemany(_DELETE, deletes)
                puts = [(*key, *version) for key, version in rows if version is not None]
                db.executemany(_PUT, puts)
                yield
            for drops in _slices(sorted(going.drops), SLICE_ROWS):
                db.executemany(_DROP, [(id,) for id in drops])
                yield
            for totals in _slices(sorted(going.totals.items(), key=_KEY), SLICE_ROWS):
                db.executemany(_TOUCH, [_totals_row(id, additions) for id, additions in totals])
                self._written_totals.update([id for id, _ in totals])
                yield
            for replies in _slices(sorted(going.replies.items(), key=_KEY), SLICE_CLIENTS):
                insert_replies(db, dict(replies))
                self._written_replies.update([client_id for client_id, _ in replies])
                yield

        return write()

    def forget_written(self) -> None:
        """What was written is committed."""
        self._going = _Parcel()
        self._end_writing()
        self._keys_of_id = self._keys_below = None
        self.hinders_scans = False

    def keep_all(self) -> None:
        """What was written is not committed, or not yet: all of it is read from here."""
        self._going.join(self._new)
        self._going, self._new = _Parcel(), self._going
        self._end_writing()

    def _end_writing(self) -> None:
        self._written_totals.clear()
        self._written_replies.clear()

    def _index(self, rows: Iterable[tuple[Key, Version | None]]) -> None:
        assert self._keys_of_id is not None
        for key, version in rows:
            if version is not None and version[0] is not None:
                self._keys_of_id.setdefault((key[0], version[0]), set()).add(key)

    def _forget(self, dropped: Iterable[tuple[Key, Version | None]]) -> None:
        """They are not to be looked at any more."""
        for key, version in dropped:
            if self.knows(key):  # it is on its way to the tables as well, or was put again
                continue
            if self._keys_below is not None:
                self._keys_below[key[:2]].discard(key)
            if self._keys_of_id is not None and version is not None and version[0] is not None:
                self._keys_of_id[key[0], version[0]].discard(key)

    def _keys_with_prefix(self, table: int, a: int) -> Collection[Key]:
        if table not in self._new.tables and table not in self._going.tables:
            return ()
        if self._keys_below is None:
            self._keys_below = {}
            for parcel in self._parcels:
                self._index_prefixes(parcel.rows)
        return self._keys_below.get((table, a), ())

    def _index_prefixes(self, keys: Iterable[Key]) -> None:
        assert self._keys_below is not None
        for key in keys:
            self._keys_below.setdefault(key[:2], set()).add(key)


T = TypeVar("T")


def _slices(items: list[T], size: int) -> Iterator[list[T]]:
    for first in range(0, len(items), size):
        yield items[first : first + size]


def _totals_row(id: int, additions: list[Addition]) -> tuple[int, ...]:
    counts, mtime_ms, touched, changed = _sum(additions)
    return (id, mtime_ms, touched, changed, *counts)


def _sum(additions: list[Addition]) -> Addition:
    """Several additions as one: the last of those that set the time decides it."""
    last = additions[-1]
    if len(additions) == 1:
        return last
    counts = tuple(map(sum, zip(*[each.counts for each in additions], strict=True)))
    for each in reversed(additions):
        if each.touched:
            return Addition(counts, each.mtime_ms, each.touched, last.changed)
    return Addition(counts, 0, 0, last.changed)
