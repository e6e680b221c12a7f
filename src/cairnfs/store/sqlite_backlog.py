"""Commits that are on disk, but not in their tables yet.

A batch of calls from all over the namespace changes a page of the tables for nearly every
call, and every such page would have to be written before the batch is durable.  So a batch
is written as one row of the table `journal`.  Its changes wait here, and go to the tables
with those of a few hundred other calls, each page once.  After a crash they are read back
from the journal.

Invariant: the tables together with the backlog are what has been committed, and the journal
holds exactly what is in the backlog.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Iterable
from typing import NamedTuple

import apsw
import msgspec

from cairnfs.store.base import ABSENT, Batch, Count, Key, PastRow, Row, Scan, Totals, scan_under
from cairnfs.store.schema import REPLY_RETENTION_MS
from cairnfs.store.sqlite_replies import Replies
from cairnfs.store.sqlite_replies import insert as insert_replies
from cairnfs.store.sqlite_schema import COUNT_COLUMNS

_PUT = (
    "INSERT INTO records (t, a, b, id, since, data) VALUES (?, ?, ?, ?, ?, ?)"
    " ON CONFLICT (t, a, b) DO UPDATE SET id = excluded.id, since = excluded.since,"
    " data = excluded.data"
)
_DELETE = "DELETE FROM records WHERE t = ? AND a = ? AND b = ?"
_TOUCH = (
    f"INSERT INTO totals (id, mtime_ms, touched, changed, {', '.join(COUNT_COLUMNS)})"
    f" VALUES ({', '.join('?' * (4 + len(COUNT_COLUMNS)))}) ON CONFLICT (id) DO UPDATE SET"
    " mtime_ms = iif(excluded.touched > 0, excluded.mtime_ms, mtime_ms),"
    " touched = max(touched, excluded.touched), changed = excluded.changed, "
    + ", ".join(f"{name} = {name} + excluded.{name}" for name in COUNT_COLUMNS)
)
_KEEP = "INSERT INTO past (t, a, b, until, since, id, data) VALUES (?, ?, ?, ?, ?, ?, ?)"
_KEEP_STORED = (
    "INSERT INTO past (t, a, b, until, since, id, data)"
    " SELECT t, a, b, ?4, since, id, data FROM records WHERE t = ?1 AND a = ?2 AND b = ?3"
)


class Version(NamedTuple):
    """What is in a row besides its key."""

    id: int | None
    since: int
    data: bytes


class Addition(NamedTuple):
    """What is added to the totals of a directory."""

    counts: tuple[int, ...]
    mtime_ms: int
    touched: int  # 0: the time stays
    changed: int = 0  # the last TxID of the batch that added it


class Change(msgspec.Struct, frozen=True, array_like=True):
    """What a batch changes: a row of the journal."""

    last_txid: int
    size: int
    deletes: list[Key]  # before the puts
    puts: list[tuple[Key, Version]]
    touches: list[tuple[int, Addition]]
    replies: list[Replies]
    past: list[PastRow] = []  # what was there before, where a snapshot needs it
    kept: list[tuple[Key, int]] = []  # the same of what the tables have: key, until


def change_of(batch: Batch, base: int, past: list[PastRow], kept: list[tuple[Key, int]]) -> Change:
    """The changes of a batch whose transactions come after the TxID `base`."""
    last_txid = base + batch.size
    expires_ms = batch.now_ms + REPLY_RETENTION_MS
    return Change(
        last_txid,
        batch.size,
        batch.deletes,
        [(key, Version(id, base + order, data)) for key, id, order, data, _ in batch.puts],
        [
            (
                id,
                Addition(
                    tuple(counts), mtime_ms if order else 0, order and base + order, last_txid
                ),
            )
            for id, counts, mtime_ms, order, _ in batch.touches
        ],
        [Replies(*reply[:2], last_txid, expires_ms, reply[2]) for reply in batch.replies],
        past,
        kept,
    )


encode_change = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Change).decode


def decode_change(data: bytes) -> Change:
    """A row of the journal; one that is older than a counter lacks it."""
    change = _decode(data)
    for n, (id, addition) in enumerate(change.touches):
        lacking = len(Count) - len(addition.counts)
        if lacking:
            counts = addition.counts + (0,) * lacking
            change.touches[n] = id, addition._replace(counts=counts)
    return change


class Backlog:
    """The changes that wait for their tables."""

    def __init__(self, changes: Iterable[Change] = ()) -> None:
        self.calls = 0  # that made them
        self._changes = 0
        self._rows: dict[Key, Version | None] = {}  # None: the row is gone
        self._totals: dict[int, list[Addition]] = {}  # to the same directory, one after another
        self._replies: dict[bytes, list[Replies]] = {}  # by client
        self._past: list[PastRow] = []
        self._kept: list[tuple[Key, int]] = []  # what the tables still have, and until when
        # By id and by prefix, once somebody has asked.
        self._keys_of_id: dict[tuple[int, int], set[Key]] | None = None
        self._keys_below: dict[tuple[int, int], set[Key]] | None = None
        for change in changes:
            self.add(change)

    def __bool__(self) -> bool:
        return self._changes > 0

    def add(self, change: Change) -> None:
        self.calls += change.size
        self._changes += 1
        for key in change.deletes:
            self._rows[key] = None
        self._rows.update(change.puts)
        if self._keys_of_id is not None:
            self._index(change.puts)
        if self._keys_below is not None:
            self._index_prefixes([*change.deletes, *(key for key, _ in change.puts)])
        for id, addition in change.touches:
            self._totals.setdefault(id, []).append(addition)
        self._past += change.past
        self._kept += change.kept
        for replies in change.replies:
            self._replies.setdefault(replies.client_id, []).append(replies)

    # What is committed: these, laid over what is in the tables.

    def knows(self, key: Key) -> bool:
        return key in self._rows

    def row(self, key: Key) -> Row | None:
        """The row of a key that is known."""
        version = self._rows[key]
        return None if version is None else Row(key, version.since, version.data)

    def versions(self, keys: Iterable[Key]) -> dict[Key, int]:
        """Since when the rows are as they are, of those keys that are known."""
        rows = self._rows
        if rows.keys().isdisjoint(keys):
            return {}
        return {
            key: ABSENT if (version := rows[key]) is None else version.since
            for key in keys
            if key in rows
        }

    def version(self, key: Key) -> Version | None:
        """As `row`, as it is stored."""
        return self._rows[key]

    @property
    def has_past(self) -> bool:
        """Whether past rows wait."""
        return bool(self._past or self._kept)

    def changes_below(self, table: int, a: int) -> bool:
        """Whether a row with this prefix waits."""
        return bool(self._keys_with_prefix(table, a))

    def rows_of_id(self, table: int, id: int, stored: list[Row]) -> list[Row]:
        if not self._rows:
            return stored
        if self._keys_of_id is None:
            self._keys_of_id = {}
            self._index(self._rows.items())
        rows = [row for row in stored if row.key not in self._rows]
        for key in self._keys_of_id.get((table, id), ()):
            version = self._rows[key]
            if version is not None and version.id == id:
                rows.append(Row(key, version.since, version.data))
        return rows

    def scan(self, scan: Scan, read: Callable[[Scan], list[tuple[Key, Row]]]) -> list[Row]:
        keys = self._keys_with_prefix(scan.table, scan.a)
        changed = {key: self.row(key) for key in keys}
        return [row for _, row in scan_under(changed, scan, read)]

    def totals(self, id: int, stored: Totals) -> Totals:
        if id not in self._totals:
            return stored
        addition = _sum(self._totals[id])
        counts = tuple(map(operator.add, stored.counts, addition.counts))
        if not addition.touched:
            return stored._replace(counts=counts, changed=addition.changed)
        return Totals(counts, addition.mtime_ms, addition.touched, addition.changed)

    def totals_changed(self, id: int) -> int:
        """The TxID of the last addition to these totals that waits; 0 if none does."""
        additions = self._totals.get(id)
        return 0 if additions is None else additions[-1].changed

    def find_replies(self, client_id: bytes, call_id: int) -> list[bytes]:
        """Blobs that may hold the reply to a call, as the store finds them."""
        return [
            replies.data
            for replies in self._replies.get(client_id, ())
            if replies.calls[0] <= call_id <= replies.calls[-1]
        ]

    def has_replied(self, client_id: bytes, calls: Iterable[int]) -> bool:
        """Whether a reply to one of these calls waits."""
        numbers = set(calls)
        return any(
            not numbers.isdisjoint(replies.calls) for replies in self._replies.get(client_id, ())
        )

    def last_calls(self, client_id: bytes) -> list[int]:
        """Among which is the largest number of a client's call whose reply waits, if any does."""
        return [replies.calls[-1] for replies in self._replies.get(client_id, ())]

    def has_expired_replies(self, now_ms: int) -> bool:
        """Whether replies wait that nobody will ask for any more."""
        return any(replies[0].expires_ms < now_ms for replies in self._replies.values())

    # To the tables.

    def write(self, db: apsw.Connection) -> None:
        """Write everything, in the order of the tables, as a part of a transaction."""
        # What the tables have goes to the past before it is overwritten.
        if self._kept:
            db.executemany(_KEEP_STORED, [(*key, until) for key, until in sorted(self._kept)])
        if self._past:
            db.executemany(_KEEP, [(*key, *rest) for key, *rest in sorted(self._past)])
        rows = sorted(self._rows.items())
        deletes = [key for key, version in rows if version is None]
        if deletes:
            db.executemany(_DELETE, deletes)
        puts = [(*key, *version) for key, version in rows if version is not None]
        if puts:
            db.executemany(_PUT, puts)
        if self._totals:
            db.executemany(_TOUCH, [self._totals_row(id) for id in sorted(self._totals)])
        if self._replies:
            insert_replies(db, self._replies)

    def _totals_row(self, id: int) -> tuple[int, ...]:
        counts, mtime_ms, touched, changed = _sum(self._totals[id])
        return (id, mtime_ms, touched, changed, *counts)

    def _index(self, rows: Iterable[tuple[Key, Version | None]]) -> None:
        assert self._keys_of_id is not None
        for key, version in rows:
            if version is not None and version.id is not None:
                self._keys_of_id.setdefault((key[0], version.id), set()).add(key)

    def _keys_with_prefix(self, table: int, a: int) -> Collection[Key]:
        if self._keys_below is None:
            self._keys_below = {}
            self._index_prefixes(self._rows)
        return self._keys_below.get((table, a), ())

    def _index_prefixes(self, keys: Iterable[Key]) -> None:
        assert self._keys_below is not None
        for key in keys:
            self._keys_below.setdefault(key[:2], set()).add(key)


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
