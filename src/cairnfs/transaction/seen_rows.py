"""Rows that were seen before, so that they need not be read again.

`CachedRows` serves a store that this process alone writes to: a row once read
stays true.  `RowsAtHand` are the same without a look into the store.
`RememberedRows` are those of a shared store, as they were when last seen.  The last
two are good for a try that is validated before it counts; those of a shared store are also
lent to calls that read, where what was just read is the version that is known.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias

from cairnfs.store.base import LocalReads, PastLocalReads, Reading, Row, Scan, Stored, Totals
from cairnfs.store.schema import Key, Table
from cairnfs.transaction.entries import NO_ENTRY, Entry, Missing
from cairnfs.transaction.group import Addition
from cairnfs.transaction.hints import HintedInode
from cairnfs.transaction.memos import Memos
from cairnfs.transaction.records import decode_row
from cairnfs.transaction.rows import PastView

PAGED_ENTRIES_MAX = 50_000

_INODES: Final = int(Table.INODES)

Page: TypeAlias = list[tuple[Key, Entry]]
"""What a scan has found; whoever is given one leaves it as it is."""


class RowCache:
    """Rows that were seen, so many at most.

    Two generations: what is found in the old one moves to the young one; when
    that is full, the old one is dropped.  Near enough to least-recently-used
    at the cost of one dictionary look-up.
    """

    def __init__(self, entries_max: int) -> None:
        self._generation_max = entries_max // 2
        self._young: dict[Key, Entry] = {}
        self._old: dict[Key, Entry] = {}
        self.memos = Memos()
        self.recall = self.memos.find
        self.memorize = self.memos.note

    def find(self, key: Key) -> Entry | None:
        entry = self._young.get(key)
        if entry is None and self._old:
            entry = self._old.get(key)
            if entry is not None:
                self.remember(key, entry)
        return entry

    def remember(self, key: Key, entry: Entry) -> None:
        """The latest version; without a record, there is nothing to be remembered."""
        if entry.record is None:
            self.forget(key)
            return
        if len(self._young) >= self._generation_max:
            self._begin_generation()
        self._young[key] = entry

    def _begin_generation(self) -> None:
        self._old = self._young
        self._young = {}

    def replace(self, key: Key, entry: Entry) -> None:
        """A newer version was committed."""
        self.remember(key, entry)

    def forget(self, key: Key) -> None:
        self._young.pop(key, None)
        self._old.pop(key, None)
        self.memos.rows_changed((key,))

    def clear(self) -> None:
        self._young.clear()
        self._old.clear()
        self.memos.clear()


class CachedRows(RowCache):
    """A bounded cache over a store of our own.

    Of a directory that was made lately all entries are here, since each was put here when it was
    committed: what is not here is not there.  So a new name in a new directory is known to be free.

    Invariant: while an id is in `_made`, every row of INODES below it is here.  So every committed
    entry comes here, and whoever drops one that has a record forgets all of `_made`.
    """

    never_lacks = True

    def __init__(self, reads: LocalReads, entries_max: int) -> None:
        super().__init__(entries_max)
        self._reads = reads
        self._made: set[int] = set()  # ids that are new since rows were last dropped
        self._totals: dict[int, Totals] = {}
        self._pages: dict[tuple[int, int], dict[Scan, Page]] = {}  # by what they are pages of
        self._paged = 0  # pages, and entries in them

    def find(self, key: Key) -> Entry | None:
        entry = super().find(key)
        # Rows of other tables may have other numbers than inodes' before their names.
        if entry is None and key[0] == _INODES and key[1] in self._made:
            return NO_ENTRY
        return entry

    def note_made(self, ids: set[int]) -> None:
        """Inodes may have been made, by what was just committed.

        To be told before its rows come here: they may be more than there is room for.
        """
        if len(self._made) >= self._generation_max:
            self._made.clear()
        self._made |= ids

    def _begin_generation(self) -> None:
        super()._begin_generation()
        self._made.clear()

    def entry(self, key: Key) -> Entry:
        entry = self._young.get(key) or self.find(key)
        if entry is None:
            row = self._reads.row(key)
            if row is None:
                return NO_ENTRY
            entry = Entry(decode_row(key[0], row.data, row.since), row.since)
            self.remember(key, entry)
        return entry

    def keys_of_id(self, table: int, id: int) -> list[Key]:
        return [row.key for row in self._reads.rows_of_id(table, id)]

    def replace(self, key: Key, entry: Entry) -> None:
        if entry.record is None:  # what came from it was forgotten when the change was accepted
            self._young.pop(key, None)
            self._old.pop(key, None)
        elif len(self._young) < self._generation_max:
            self._young[key] = entry
        else:
            self.remember(key, entry)
        if self._pages:
            for page in self._pages.pop(key[:2], {}).values():
                self._paged -= 1 + len(page)

    def scan(self, scan: Scan) -> Page:
        prefix = (scan.table, scan.a)
        page = self._pages.get(prefix, {}).get(scan)
        if page is None:
            page = [
                (row.key, self._young.get(row.key) or self._old.get(row.key) or entry_of(row))
                for row in self._reads.scan(scan)
            ]
            self._paged += 1 + len(page)
            if self._paged > PAGED_ENTRIES_MAX:
                self._pages.clear()
                self._paged = 1 + len(page)
            self._pages.setdefault(prefix, {})[scan] = page
        return page

    def totals(self, id: int) -> Totals:
        totals = self._totals.get(id)
        if totals is None:
            totals = self._reads.totals(id)
            if len(self._totals) >= self._generation_max:
                self._totals.clear()
            self._totals[id] = totals
        return totals

    def at(self, txid: int) -> PastView:
        return CachedPast(self._reads.at(txid))

    def add_totals(self, additions: dict[int, Addition], base: int, size: int) -> None:
        """A group was committed: what it added is part of the totals now."""
        changed = base + size
        for id, addition in additions.items():
            totals = self._totals.get(id)
            if totals is None:
                continue
            counts = totals.counts
            if any(addition.counts):  # else its time alone, or nothing on balance
                counts = tuple(map(operator.add, counts, addition.counts))
            mtime_ms, touched = totals.mtime_ms, totals.touched
            if addition.writer is not None:
                mtime_ms, touched = addition.mtime_ms, base + addition.writer.order
            self._totals[id] = Totals(counts, mtime_ms, touched, changed)

    def drop_totals(self, ids: Iterable[int]) -> None:
        for id in ids:
            self._totals.pop(id, None)

    def clear(self) -> None:
        super().clear()
        self._made.clear()
        self._totals.clear()
        self._pages.clear()
        self._paged = 0


class CachedPast:
    """A store of our own as it was after an earlier TxID; nothing of it is kept."""

    def __init__(self, reads: PastLocalReads) -> None:
        self._reads = reads
        self.totals = reads.totals
        self.stored = reads.stored
        self.totals_of = reads.totals_of

    def entry(self, key: Key) -> Entry:
        row = self._reads.row(key)
        return NO_ENTRY if row is None else entry_of(row)

    def keys_of_id(self, table: int, id: int) -> list[Key]:
        return [row.key for row in self._reads.rows_of_id(table, id)]

    def scan(self, scan: Scan) -> Page:
        return [(row.key, entry_of(row)) for row in self._reads.scan(scan)]


class RowsAtHand:
    """What is cached of a store of our own; what is not, is not looked for."""

    never_lacks = False

    def __init__(self, cache: CachedRows) -> None:
        self._cache = cache
        self.recall = cache.recall
        self.memorize = cache.memorize
        self.find = cache.find

    def entry(self, key: Key) -> Entry:
        entry = self._cache.find(key)
        if entry is None:
            raise Missing(Reading(keys=[key]))
        return entry

    def keys_of_id(self, table: int, id: int) -> list[Key]:
        return self._cache.keys_of_id(table, id)

    def scan(self, scan: Scan) -> Page:
        return self._cache.scan(scan)

    def totals(self, id: int) -> Totals:
        return self._cache.totals(id)

    def at(self, txid: int) -> PastView:
        return self._cache.at(txid)


class RememberedRows(RowCache):
    """Rows of a shared store as they were when last seen; anybody may have changed them since.

    Calls that change something are tried on them, and validated when they are
    committed.  For the others they are hints of what to read (`hints.Hints`), and what
    was read is compared with them.
    """

    never_lacks = False

    def entry(self, key: Key) -> Entry:
        entry = self._young.get(key) or self.find(key)
        if entry is None:
            raise Missing(Reading(keys=[key]))
        return entry

    def keys_of_id(self, table: int, id: int) -> list[Key]:
        raise Missing(Reading(ids=[(table, id)]))

    def scan(self, scan: Scan) -> Page:
        raise Missing(Reading(scans=[scan]))

    def totals(self, id: int) -> Totals:
        raise Missing(Reading(totals=[id]))

    def at(self, txid: int) -> PastView:
        return NoPast(txid)

    def get(self, key: Key) -> HintedInode | None:
        """The inode that was found under a key."""
        entry = self._young.get(key) or self.find(key)
        inode: HintedInode | None = None if entry is None else entry.record
        return inode

    def entry_of(self, row: Row) -> Entry:
        """What a row that was just read holds: of a version that is known, the same object."""
        entry = self.find(row.key)
        return entry if entry is not None and entry.since == row.since else entry_of(row)

    def find_all(self, keys: Iterable[Key]) -> dict[Key, Entry]:
        """What is remembered of these."""
        found = {}
        for key in keys:
            entry = self.find(key)
            if entry is not None:
                found[key] = entry
        return found

    def note(self, keys: Iterable[Key], found: Mapping[Key, Entry]) -> None:
        """Learn from what was read, and from what was not there."""
        for key in keys:
            entry = found.get(key)
            known = self.find(key)
            if entry is None:
                if known is not None or self._old:
                    self.forget(key)
            elif known is None or known.since < entry.since:  # a commit may have overtaken it
                self.remember(key, entry)
                self.memos.rows_changed((key,))


class NoPast:
    """Nothing of an earlier TxID is remembered."""

    def __init__(self, txid: int) -> None:
        self._txid = txid

    def entry(self, key: Key) -> Entry:
        raise self._missing(Reading(keys=[key]))

    def keys_of_id(self, table: int, id: int) -> list[Key]:
        raise self._missing(Reading(ids=[(table, id)]))

    def scan(self, scan: Scan) -> Page:
        raise self._missing(Reading(scans=[scan]))

    def totals(self, id: int) -> Totals:
        raise self._missing(Reading(totals=[id]))

    def stored(self, scans: list[Scan]) -> list[list[Stored]]:
        raise self._missing(Reading(scans=scans))

    def totals_of(self, ids: list[int]) -> dict[int, Totals]:
        raise self._missing(Reading(totals=ids))

    def _missing(self, reading: Reading) -> Missing:
        return Missing(Reading(past={self._txid: reading}))


def entry_of(row: Row) -> Entry:
    return Entry(decode_row(row.key[0], row.data, row.since), row.since, until=row.until)
