"""What operations run on: committed rows, and uncommitted ones over them.

`CachedRows` serves a store that this process alone writes to: a row once read
stays true.  `LoadedRows` holds what one read of a shared store brought, and is
thrown away with the turn.  `RememberedRows` are those that were seen in a shared
store at some time: good for a try that is validated before it counts.  `RowsAtHand`
are the cached ones without a look into the store, for the same kind of try.
`Speculation` lays over any of them what this NameNode has computed but not yet
committed, so that operations follow one another without waiting for the disk.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping
from typing import Protocol, TypeAlias

from cairnfs.store.base import ABSENT, NO_TOTALS, Found, Key, LocalReads, Reading, Row, Scan, Totals
from cairnfs.transaction.group import Addition, Group
from cairnfs.transaction.hints import HintedInode
from cairnfs.transaction.records import decode, id_of
from cairnfs.transaction.transaction import NO_ENTRY, Entry, Missing, Transaction

PAGED_ENTRIES_MAX = 50_000

Page: TypeAlias = list[tuple[Key, Entry]]
"""What a scan has found; whoever is given one leaves it as it is."""


class CommittedRows(Protocol):
    """Committed rows; each method may raise `Missing`."""

    never_lacks: bool

    def entry(self, key: Key) -> Entry: ...

    def knows(self, key: Key) -> bool: ...

    def keys_of_id(self, table: int, id: int) -> list[Key]: ...

    def scan(self, scan: Scan) -> Page: ...

    def totals(self, id: int) -> Totals: ...


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
            self._old = self._young
            self._young = {}
        self._young[key] = entry

    def replace(self, key: Key, entry: Entry) -> None:
        """A newer version was committed."""
        self.remember(key, entry)

    def knows(self, key: Key) -> bool:
        return key in self._young or key in self._old

    def forget(self, key: Key) -> None:
        self._young.pop(key, None)
        self._old.pop(key, None)

    def clear(self) -> None:
        self._young.clear()
        self._old.clear()


class CachedRows(RowCache):
    """A bounded cache over a store of our own."""

    never_lacks = True

    def __init__(self, reads: LocalReads, entries_max: int) -> None:
        super().__init__(entries_max)
        self._reads = reads
        self._totals: dict[int, Totals] = {}
        self._pages: dict[tuple[int, int], dict[Scan, Page]] = {}  # by what they are pages of
        self._paged = 0  # entries in them

    def entry(self, key: Key) -> Entry:
        entry = self._young.get(key) or self.find(key)
        if entry is None:
            row = self._reads.row(key)
            if row is None:
                return NO_ENTRY
            entry = Entry(decode(key[0], row.data), row.since)
            self.remember(key, entry)
        return entry

    def keys_of_id(self, table: int, id: int) -> list[Key]:
        return [row.key for row in self._reads.rows_of_id(table, id)]

    def replace(self, key: Key, entry: Entry) -> None:
        super().replace(key, entry)
        if self._pages:
            for page in self._pages.pop(key[:2], {}).values():
                self._paged -= len(page)

    def scan(self, scan: Scan) -> Page:
        prefix = (scan.table, scan.a)
        page = self._pages.get(prefix, {}).get(scan)
        if page is None:
            page = [
                (row.key, self._young.get(row.key) or self._old.get(row.key) or _entry(row))
                for row in self._reads.scan(scan)
            ]
            self._paged += len(page)
            if self._paged > PAGED_ENTRIES_MAX:
                self._pages.clear()
                self._paged = len(page)
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

    def add_totals(self, additions: dict[int, Addition], base: int) -> None:
        """A group was committed: what it added is part of the totals now."""
        for id, addition in additions.items():
            totals = self._totals.get(id)
            if totals is None:
                continue
            counts = tuple(map(operator.add, totals.counts, addition.counts))
            if addition.writer is None:
                self._totals[id] = totals._replace(counts=counts)
            else:
                self._totals[id] = Totals(counts, addition.mtime_ms, base + addition.writer.order)

    def drop_totals(self, ids: Iterable[int]) -> None:
        for id in ids:
            self._totals.pop(id, None)

    def clear(self) -> None:
        super().clear()
        self._totals.clear()
        self._pages.clear()
        self._paged = 0


class RowsAtHand:
    """What is cached of a store of our own; what is not, is not looked for."""

    never_lacks = False

    def __init__(self, cache: CachedRows) -> None:
        self._cache = cache
        self.knows = cache.knows

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


class RememberedRows(RowCache):
    """Rows of a shared store as they were when last seen; anybody may have changed them since.

    Calls that change something are tried on them, and validated when they are
    committed.  For the others they are hints of what to read (`hints.Hints`).
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

    def get(self, key: Key) -> HintedInode | None:
        """The inode that was found under a key."""
        entry = self._young.get(key) or self.find(key)
        inode: HintedInode | None = None if entry is None else entry.record
        return inode

    def note(self, keys: Iterable[Key], found: Mapping[Key, Entry]) -> None:
        """Learn from what was read, and from what was not there."""
        for key in keys:
            entry = found.get(key)
            known = self._young.get(key)
            if entry is None:
                if known is not None or self._old:
                    self.forget(key)
            elif known is None or known.since < entry.since:  # a commit may have overtaken it
                self.remember(key, entry)


class LoadedRows:
    """What was asked for and what was found, as of one moment."""

    never_lacks = False

    def __init__(self, reading: Reading, found: Found) -> None:
        self._asked = set(reading.keys)
        self.entries = {key: _entry(row) for key, row in found.rows.items()}
        self._ids: dict[tuple[int, int], list[Key]] = {}
        self._scans = {
            scan: [(row.key, _entry(row)) for row in rows] for scan, rows in found.scans.items()
        }
        self._totals = found.totals
        self._totals_asked = set(reading.totals)
        for pair in reading.ids:
            rows = found.ids.get(pair, [])
            self._ids[pair] = [row.key for row in rows]
            for row in rows:
                self.entries.setdefault(row.key, _entry(row))
        for page in self._scans.values():
            self.entries.update(page)

    def entry(self, key: Key) -> Entry:
        entry = self.entries.get(key)
        if entry is None:
            if key not in self._asked:
                raise Missing(Reading(keys=[key]))
            return NO_ENTRY
        return entry

    def knows(self, key: Key) -> bool:
        return key in self._asked or key in self.entries

    def keys_of_id(self, table: int, id: int) -> list[Key]:
        try:
            return self._ids[table, id]
        except KeyError:
            raise Missing(Reading(ids=[(table, id)])) from None

    def scan(self, scan: Scan) -> Page:
        try:
            return self._scans[scan]
        except KeyError:
            raise Missing(Reading(scans=[scan])) from None

    def totals(self, id: int) -> Totals:
        if id not in self._totals_asked:
            raise Missing(Reading(totals=[id]))
        return self._totals.get(id, NO_TOTALS)

    def extend(self, reading: Reading, found: Found) -> None:
        """Add a later read to it; only for those who hold locks meanwhile."""
        later = LoadedRows(reading, found)
        self._asked |= later._asked
        self.entries.update(later.entries)
        self._ids.update(later._ids)
        self._scans.update(later._scans)
        self._totals.update(later._totals)
        self._totals_asked |= later._totals_asked


class PeekedTotals:
    """Totals that were read a short while ago, for those who need to know only roughly."""

    def __init__(self, lifetime_ms: int = 1000, entries_max: int = 100_000) -> None:
        self._lifetime_ms = lifetime_ms
        self._entries_max = entries_max
        self._totals: dict[int, Totals] = {}
        self._since_ms = 0

    def get(self, id: int) -> Totals | None:
        return self._totals.get(id)

    def note(self, found: Found, now_ms: int) -> None:
        """Remember what was read."""
        self.expire(now_ms)
        self._totals.update(found.totals)

    def expire(self, now_ms: int) -> None:
        """Forget all of it now and then; to be called before it is relied on."""
        age_ms = now_ms - self._since_ms
        if not 0 <= age_ms < self._lifetime_ms or len(self._totals) > self._entries_max:
            self._totals.clear()
            self._since_ms = now_ms


class Speculation:
    """Committed rows with the uncommitted changes of this NameNode over them."""

    def __init__(self, committed: CommittedRows, peeked: PeekedTotals | None = None) -> None:
        self.committed = committed
        self._peeked = peeked
        self.groups: list[Group] = []
        self._pending: dict[Key, Entry] = {}
        self._pending_ids: dict[tuple[int, int], set[Key]] = {}

    # Reading.

    @property
    def never_lacks(self) -> bool:
        return self.committed.never_lacks

    def entry(self, key: Key) -> Entry:
        return self._pending.get(key) or self.committed.entry(key)

    def knows(self, key: Key) -> bool:
        return key in self._pending or self.committed.knows(key)

    def keys_of_id(self, table: int, id: int) -> list[Key]:
        keys = [key for key in self.committed.keys_of_id(table, id) if key not in self._pending]
        for key in self._pending_ids.get((table, id), ()):
            entry = self._pending.get(key)  # another record may have taken the key since
            if entry is not None and entry.record is not None and id_of(table, entry.record) == id:
                keys.append(key)
        return keys

    def scan(self, scan: Scan) -> Page:
        prefix = (scan.table, scan.a)
        pending = {key: entry for key, entry in self._pending.items() if key[:2] == prefix}
        if not pending:
            return self.committed.scan(scan)
        # As many committed rows may be hidden as there are pending ones.
        wider = scan._replace(limit=scan.limit + len(pending))
        merged = dict(self.committed.scan(wider))
        reached = max(merged)[2] if len(merged) == wider.limit else None
        for key, entry in pending.items():
            if key[2] > scan.after and (reached is None or key[2] <= reached):
                merged[key] = entry
        rows = [(key, merged[key]) for key in sorted(merged)]
        return [row for row in rows if row[1].record is not None][: scan.limit]

    def totals(self, id: int) -> tuple[Totals, bool]:
        totals = self.committed.totals(id)
        uncommitted = False
        for group in self.groups:
            addition = group.totals.get(id)
            if addition is not None:
                counts = tuple(map(operator.add, totals.counts, addition.counts))
                if addition.writer is None:
                    totals = totals._replace(counts=counts)
                else:
                    totals = Totals(counts, addition.mtime_ms, max(totals.touched, 1))
                uncommitted = True
        return totals, uncommitted

    def peek_totals(self, id: int) -> Totals:
        known = self._peeked.get(id) if self._peeked is not None else None
        return self.totals(id)[0] if known is None else known

    # Changing.

    def accept(self, transaction: Transaction) -> None:
        """Lay the changes of a finished run over what there is."""
        pending, reads, written = self._pending, transaction.reads, transaction.written
        for key, record in transaction.writes.items():
            before = pending.get(key) or reads.get(key, NO_ENTRY)
            pending[key] = written[key] = Entry(record, 0, transaction, before)
            if record is not None:
                id = id_of(key[0], record)
                if id is not None:
                    self._pending_ids.setdefault((key[0], id), set()).add(key)

    def retire(self, transaction: Transaction, txid: int) -> list[tuple[Key, Entry]]:
        """The transaction is committed; returns its entries that are still the newest."""
        pending = self._pending
        newest = []
        for key, entry in transaction.written.items():
            entry.since = txid if entry.record is not None else ABSENT
            entry.writer = None
            entry.before = None
            if pending.get(key) is entry:
                del pending[key]
                newest.append((key, entry))
            self._forget_id(key, entry)
        return newest

    def withdraw(self, transaction: Transaction) -> None:
        """Take changes back.  Later ones that build on them must be gone already."""
        for key, entry in transaction.written.items():
            assert self._pending.get(key) is entry, "changes are withdrawn in reverse order"
            before = entry.before
            if before is not None and before.writer is not None:
                self._pending[key] = before
            else:
                del self._pending[key]
            self._forget_id(key, entry)
        transaction.written = {}

    def _forget_id(self, key: Key, entry: Entry) -> None:
        """An entry is pending no more; another one under its key may still have its id."""
        id = None if entry.record is None else id_of(key[0], entry.record)
        if id is None:
            return
        left = self._pending.get(key)
        if left is not None and left.record is not None and id_of(key[0], left.record) == id:
            return
        keys = self._pending_ids.get((key[0], id))
        if keys is not None:
            keys.discard(key)
            if not keys:
                del self._pending_ids[key[0], id]


def _entry(row: Row) -> Entry:
    return Entry(decode(row.key[0], row.data), row.since)
