"""What operations run on: committed rows, and uncommitted ones over them.

`LoadedRows` holds what one read of a shared store brought, and is thrown away with
the turn; rows that are kept for longer are in `seen_rows`.  `Speculation` lays over
any of them what this NameNode has computed but not yet committed, so that operations
follow one another without waiting for the disk.
"""

from __future__ import annotations

import operator
from collections.abc import Hashable, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any, Protocol

from cairnfs.store.base import ABSENT, NO_TOTALS, Found, Reading, Scan, Stored, Totals, scan_under
from cairnfs.store.schema import Key
from cairnfs.transaction.entries import NO_ENTRY, UNCOMMITTED, Entry, Missing
from cairnfs.transaction.group import Group
from cairnfs.transaction.memos import Memo, Memos
from cairnfs.transaction.moments import Moments
from cairnfs.transaction.records import encode, id_of, stamped
from cairnfs.transaction.rows import PastView, find_lacking
from cairnfs.transaction.seen_rows import Page, RememberedRows, RowCache, entry_of
from cairnfs.transaction.transaction import Transaction


class CommittedRows(Protocol):
    """Committed rows; each method may raise `Missing`."""

    never_lacks: bool

    def entry(self, key: Key) -> Entry: ...

    def find(self, key: Key) -> Entry | None: ...

    def recall(self, token: Hashable) -> Memo | None:
        """What was worked out from rows, if these are still the same."""
        ...

    def memorize(self, token: Hashable, memo: Memo) -> None: ...

    def keys_of_id(self, table: int, id: int) -> list[Key]: ...

    def scan(self, scan: Scan) -> Page: ...

    def totals(self, id: int) -> Totals: ...

    def at(self, txid: int) -> PastView: ...


class LoadedRows:
    """What was asked for and what was found, as of one moment.

    Versions that were seen before are those that are `remembered`: so they are not decoded again,
    and what was worked out from them still holds.  `known` are those of which the store was told,
    and which it need not have told again.
    """

    never_lacks = False

    def __init__(
        self,
        reading: Reading,
        found: Found,
        remembered: RememberedRows | None = None,
        known: Mapping[Key, Entry] = MappingProxyType({}),
    ) -> None:
        self._remembered = remembered
        entry_of_row = entry_of if remembered is None else remembered.entry_of
        if len(found.unchanged) == len(known):  # as nearly always
            self.entries = dict(known)
        else:
            self.entries = {key: known[key] for key in found.unchanged}
        for key, row in found.rows.items():
            self.entries[key] = entry_of_row(row)
        self._absent: set[Key] = set()  # which were asked for
        if len(self.entries) < len(reading.keys):
            self._absent.update(key for key in reading.keys if key not in self.entries)
        self._ids: dict[tuple[int, int], list[Key]] = {}
        self._scans = {
            scan: [(row.key, entry_of_row(row)) for row in rows]
            for scan, rows in found.scans.items()
        }
        self._totals = found.totals
        self._totals_asked = set(reading.totals)
        for pair in reading.ids:
            rows = found.ids.get(pair, [])
            self._ids[pair] = [row.key for row in rows]
            for row in rows:
                self.entries.setdefault(row.key, entry_of_row(row))
        for page in self._scans.values():
            self.entries.update(page)
        self._past = {
            txid: LoadedRows(asked, found.past.get(txid, Found()))
            for txid, asked in reading.past.items()
        }

    def at(self, txid: int) -> PastView:
        return LoadedPast(self._past.get(txid) or LoadedRows(Reading(), Found()), txid)

    def entry(self, key: Key) -> Entry:
        entry = self.entries.get(key)
        if entry is None:
            if key not in self._absent:
                raise Missing(Reading(keys=[key]))
            return NO_ENTRY
        return entry

    def find(self, key: Key) -> Entry | None:
        return self.entries.get(key) or (NO_ENTRY if key in self._absent else None)

    def recall(self, token: Hashable) -> Memo | None:
        memo = None if self._remembered is None else self._remembered.recall(token)
        if memo is None:
            return None
        entries = self.entries
        for key, entry in memo.reads.items():
            if entries.get(key) is not entry:
                return None  # others have changed it, or it was not asked for
        return memo

    def memorize(self, token: Hashable, memo: Memo) -> None:
        remembered = self._remembered
        if remembered is not None and all(
            remembered.find(key) is entry for key, entry in memo.reads.items()
        ):  # else a commit has overtaken what was read
            remembered.memorize(token, memo)

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

    def stored(self, scans: list[Scan]) -> list[list[Stored]]:
        """What was found, as it is stored; what all of it lacks is lacking together."""
        lacking = [scan for scan in scans if scan not in self._scans]
        if lacking:
            raise Missing(Reading(scans=lacking))
        return [
            [(0, key[2], entry.since, encode(entry.record)) for key, entry in self._scans[scan]]
            for scan in scans
        ]

    def totals_of(self, ids: list[int]) -> dict[int, Totals]:
        lacking = [id for id in ids if id not in self._totals_asked]
        if lacking:
            raise Missing(Reading(totals=lacking))
        return {id: self.totals(id) for id in ids}

    def extend(self, reading: Reading, found: Found) -> None:
        """Add a later read to it; only for those who hold locks meanwhile."""
        self.join(LoadedRows(reading, found))

    def join(self, later: LoadedRows) -> None:
        """Add what was read of the same moment."""
        self._absent |= later._absent
        self.entries.update(later.entries)
        self._ids.update(later._ids)
        self._scans.update(later._scans)
        self._totals.update(later._totals)
        self._totals_asked |= later._totals_asked
        for txid, past in later._past.items():
            if txid in self._past:
                self._past[txid].join(past)
            else:
                self._past[txid] = past

    @property
    def size(self) -> int:
        """Rows and answers that are held, roughly."""
        return (
            len(self._absent)
            + len(self.entries)
            + len(self._ids)
            + sum(past.size for past in self._past.values())
        )


class LoadedPast:
    """What one read of a shared store brought, of an earlier TxID."""

    def __init__(self, rows: LoadedRows, txid: int) -> None:
        self._rows = rows
        self._txid = txid

    def entry(self, key: Key) -> Entry:
        with self._of_the_past():
            return self._rows.entry(key)

    def keys_of_id(self, table: int, id: int) -> list[Key]:
        with self._of_the_past():
            return self._rows.keys_of_id(table, id)

    def scan(self, scan: Scan) -> Page:
        with self._of_the_past():
            return self._rows.scan(scan)

    def totals(self, id: int) -> Totals:
        with self._of_the_past():
            return self._rows.totals(id)

    def stored(self, scans: list[Scan]) -> list[list[Stored]]:
        with self._of_the_past():
            return self._rows.stored(scans)

    def totals_of(self, ids: list[int]) -> dict[int, Totals]:
        with self._of_the_past():
            return self._rows.totals_of(ids)

    @contextmanager
    def _of_the_past(self) -> Iterator[None]:
        try:
            yield
        except Missing as missing:
            raise Missing(Reading(past={self._txid: missing.reading})) from None


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

    def __init__(
        self,
        committed: CommittedRows,
        peeked: PeekedTotals | None = None,
        memos: Memos | None = None,
        moments: Moments | None = None,
    ) -> None:
        """`memos` are what `committed` recalls from: what came from a row that is written is
        forgotten there."""
        self.committed = committed
        self.moments = moments or Moments()
        self.latest_snapshot = self.moments.latest
        self._peeked = peeked
        self._memos = memos or Memos()
        self.groups: list[Group] = []
        self._pending: dict[Key, Entry] = {}
        self._pending_ids: dict[tuple[int, int], set[Key]] | None = None  # once asked for

    # Reading.

    @property
    def never_lacks(self) -> bool:
        return self.committed.never_lacks

    def entry(self, key: Key) -> Entry:
        return self._pending.get(key) or self.committed.entry(key)

    def find(self, key: Key) -> Entry | None:
        return self._pending.get(key) or self.committed.find(key)

    def recall(self, token: Hashable) -> Memo | None:
        return self.committed.recall(token)

    def memorize(self, token: Hashable, memo: Memo) -> None:
        self.committed.memorize(token, memo)

    @property
    def is_speculating(self) -> bool:
        """Whether there is anything that is not committed."""
        return bool(self._pending)

    def keys_of_id(self, table: int, id: int) -> list[Key]:
        keys = self.committed.keys_of_id(table, id)
        if not self._pending:
            return keys
        if self._pending_ids is None:
            self._pending_ids = {}
            for key, entry in self._pending.items():
                self._note_id(key, entry.record)
        return [*keys, *(self._pending_ids.get((table, id), set()).difference(keys))]

    def scan(self, scan: Scan) -> Page:
        prefix = (scan.table, scan.a)
        pending = {key: entry for key, entry in self._pending.items() if key[:2] == prefix}
        if not pending:
            return self.committed.scan(scan)
        there = {key: None if entry.record is None else entry for key, entry in pending.items()}
        page = scan_under(there, scan, self.committed.scan)
        last = page[-1][0][2] if len(page) == scan.limit else None
        gone = [
            (key, entry)
            for key, entry in pending.items()
            if entry.record is None and key[2] > scan.after and (last is None or key[2] <= last)
        ]
        return page + gone

    def totals(self, id: int) -> tuple[Totals, bool]:
        totals = self.committed.totals(id)
        uncommitted = False
        for group in self.groups:
            addition = group.totals.get(id)
            if addition is not None:
                counts = tuple(map(operator.add, totals.counts, addition.counts))
                if addition.writer is None:
                    totals = totals._replace(counts=counts, changed=UNCOMMITTED)
                else:
                    touched = max(totals.touched, 1)
                    totals = Totals(counts, addition.mtime_ms, touched, UNCOMMITTED)
                uncommitted = True
        return totals, uncommitted

    def peek_totals(self, id: int) -> Totals:
        known = self._peeked.get(id) if self._peeked is not None else None
        return self.committed.totals(id) if known is None else known

    def bring(self, reading: Reading) -> None:
        lacking = find_lacking(self, reading)
        if not lacking.is_empty():
            raise Missing(lacking)

    def at(self, txid: int) -> PastView:
        # What is not committed yet comes after every TxID that anybody can ask for.
        return self.committed.at(txid)

    # Changing.

    def accept(self, transaction: Transaction) -> None:
        """Lay the changes of a finished run over what there is."""
        pending, reads, written = self._pending, transaction.reads, transaction.written
        for key, record in transaction.writes.items():
            before = pending.get(key) or reads.get(key, NO_ENTRY)
            pending[key] = written[key] = Entry(record, 0, transaction, before)
        self._memos.rows_changed(written)
        if self._pending_ids is not None:
            for key, record in transaction.writes.items():
                self._note_id(key, record)

    def retire(self, transaction: Transaction, txid: int, rows: RowCache) -> None:
        """The transaction is committed: its entries go to `rows`, and those that are the newest are
        pending no more."""
        pending = self._pending
        for key, entry in transaction.written.items():
            if entry.record is None:
                entry.since = ABSENT
            else:
                entry.since = txid
                entry.record = stamped(key[0], entry.record, txid)
            entry.writer = None
            entry.before = None
            if pending.get(key) is entry:
                del pending[key]
            # Also if there is a newer one: below a new inode, what `CachedRows` lacks is not there.
            rows.replace(key, entry)
        if self._pending_ids is not None:
            for key, entry in transaction.written.items():
                self._forget_id(key, entry)
        if not pending:
            self._pending_ids = None

    def withdraw(self, transaction: Transaction) -> None:
        """Take changes back.  Later ones that build on them must be gone already."""
        for key, entry in transaction.written.items():
            assert self._pending.get(key) is entry, "changes are withdrawn in reverse order"
            before = entry.before
            if before is not None and before.writer is not None:
                self._pending[key] = before
            else:
                del self._pending[key]
            if self._pending_ids is not None:
                self._forget_id(key, entry)
        transaction.written = {}

    def _note_id(self, key: Key, record: Any) -> None:
        id = None if record is None else id_of(key[0], record)
        if id is not None:
            assert self._pending_ids is not None
            self._pending_ids.setdefault((key[0], id), set()).add(key)

    def _forget_id(self, key: Key, entry: Entry) -> None:
        """An entry is pending no more; another one under its key may still have its id."""
        id = None if entry.record is None else id_of(key[0], entry.record)
        if id is None:
            return
        assert self._pending_ids is not None
        left = self._pending.get(key)
        if left is not None and left.record is not None and id_of(key[0], left.record) == id:
            return
        keys = self._pending_ids.get((key[0], id))
        if keys is not None:
            keys.discard(key)
            if not keys:
                del self._pending_ids[key[0], id]
