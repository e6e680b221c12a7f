"""What an operation sees: rows to read, changes to record, nothing else.

An operation is a plain function of a `Transaction`.  It works on a private
snapshot; a row that is not in it raises `Missing`, and the runner brings the
row and runs the function again.  So an operation may run many times, and must
not lock, wait, log, or look at a clock other than `now_ms`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Any

import msgspec

from cairnfs.errors import IllegalArgumentException
from cairnfs.store.base import Count, Reading, Scan, Totals
from cairnfs.store.batches import Bound
from cairnfs.store.schema import KEEPS_PAST, Key, Table
from cairnfs.transaction.entries import (
    NO_ENTRY,
    PRESUMED,
    UNBORN,
    UNCOMMITTED,
    Entry,
    MustRunAlone,
)
from cairnfs.transaction.memos import Memo
from cairnfs.transaction.moments import LATEST_KEY, Moments
from cairnfs.transaction.records import decode, encode, id_of, is_unstamped
from cairnfs.transaction.rows import PastRows, View

Counts = tuple[tuple[int, int], ...]
"""Changes to some counters of a totals vector, each of 64 bits: `((Count.FILES, 1), ...)`."""


NumberSource = Callable[[str], int]

Taken = list[tuple[str, int]]
"""Numbers, each with its counter, in the order in which a run took them."""


class Transaction:
    """Reads, writes and additions of one run of one operation."""

    def __init__(
        self,
        view: View,
        now_ms: int,
        next_number: NumberSource,
        alone: bool = False,
        from_memory: bool = False,
        known_txid: int | None = None,
        unused: Taken | None = None,
        covered: int | None = None,
    ) -> None:
        """`from_memory`: on rows at hand, as a try that is to be validated.  `known_txid` is its
        own, if it is solitary.  `unused` are numbers of a run of the same call, which lacked
        something.
        """
        self._view = view
        self.now_ms = now_ms
        self._next_number = next_number
        self.alone = alone
        self.from_memory = from_memory
        self.known_txid = known_txid
        self.unused = unused
        self.taken: Taken = []
        self.new_inodes: set[int] = set()  # ids that it took: nothing was below them before
        self.presumed: list[Key] = []  # to have no row
        # The latest snapshot that needs what is changed here; None: nobody has looked.
        self.covered = covered
        self.marked: list[tuple[int, ...]] = []  # see `mark`
        self.reads: dict[Key, Entry] = {}
        self.writes: dict[Key, Any] = {}
        self.kept: list[tuple[Key, int]] = []  # for which snapshot
        # Directories, changes, mtime_ms or -1.
        self.touches: list[tuple[tuple[int, ...], Counts, int]] = []
        self.bounds: list[Bound] = []
        self.emptied: list[tuple[int, int]] = []
        self.dropped: list[int] = []
        self.forgotten: list[tuple[Key, int]] = []
        self.reheld: list[tuple[Key, int, int]] = []
        self.totals_read: set[int] = set()
        self.saw_uncommitted = False
        self.encoded: dict[Key, bytes] = {}  # filled by `seal`
        self.written: dict[Key, Entry] = {}  # filled by the runner once the run is accepted
        self.order = 0

    # Reading.

    def get(self, key: Key) -> Any:
        """The record of `key`, or None."""
        if self.writes and key in self.writes:
            return self.writes[key]
        entry = self.reads.get(key)
        if entry is None:
            entry = UNBORN if key[1] in self.new_inodes else self._view.entry(key)
            self.reads[key] = entry
            if entry.writer is not None:
                self.saw_uncommitted = True
        return entry.record

    def since(self, key: Key) -> int:
        """The TxID that wrote the row of `key`, which was looked at."""
        entry = self.reads[key]
        return entry.since if entry.writer is None else UNCOMMITTED

    def changed_after(self, key: Key, txid: int) -> bool:
        """Whether the row of `key`, which was looked at, was written after this TxID."""
        entry = self.reads[key]
        return entry.writer is not None or entry.since > txid

    def probe(self, key: Key) -> Any:
        """As `get`, of a key that is as likely to be free as not: the last name of a path.

        A run from memory takes it for free if nothing is known of it, so that making
        something new needs no read at all.
        """
        if not self.from_memory or key in self.writes:
            return self.get(key)
        entry = self.reads.get(key) or self._view.find(key)
        if entry is None:
            entry = PRESUMED
            self.presumed.append(key)
        elif entry.writer is not None:
            self.saw_uncommitted = True
        self.reads[key] = entry
        return entry.record

    def recall(self, token: Hashable) -> Any:
        """What was memorized for the token, if all rows that it came from are as they were."""
        if self.writes:
            return None  # those may be among them
        memo = self._view.recall(token)
        if memo is None:
            return None
        self.reads.update(memo.reads)
        return memo.value

    def memorize(self, token: Hashable, value: Any, keys: Iterable[Key]) -> None:
        """Keep a value that depends on the token and on these rows, which were read, alone."""
        if self.writes:
            return  # the value may be of those
        reads = {key: self.reads[key] for key in keys}
        if not any(entry.writer is not None or entry is UNBORN for entry in reads.values()):
            self._view.memorize(token, Memo(value, reads))

    def get_by_id(self, table: Table, id: int) -> Any:
        """The record of a table that carries this id, or None."""
        for _, record in self.list_by_id(table, id):
            return record
        return None

    def list_by_id(self, table: Table, id: int) -> list[tuple[Key, Any]]:
        """All records of a table that carry this id, in the order of their keys.

        Those that are found are validated; that no other one has appeared is not.
        """
        found = [(key, self.get(key)) for key in sorted(self._view.keys_of_id(table, id))]
        return [
            (key, record)
            for key, record in found
            if record is not None and id_of(table, record) == id
        ]

    def need(
        self,
        keys: Iterable[Key] = (),
        totals: Iterable[int] = (),
        ids: Iterable[tuple[int, int]] = (),
    ) -> None:
        """Have these at hand before they are asked for one by one: one read for all."""
        if not self._view.never_lacks:
            self._view.bring(Reading(keys=list(keys), totals=list(totals), ids=list(ids)))

    def scan(self, table: Table, a: int, after: bytes, limit: int) -> list[tuple[Key, Any]]:
        """Rows of `(table, a)` behind `after`, in order of `b`."""
        page = self._view.scan(Scan(table, a, after, limit))
        for key, entry in page:
            self.reads[key] = entry
            if entry.writer is not None:
                self.saw_uncommitted = True
        return [(key, entry.record) for key, entry in page if entry.record is not None]

    def totals(self, id: int) -> Totals:
        """A directory's totals, this transaction's own changes left out.

        One that it makes has none but those.
        """
        if id in self.new_inodes:
            added = self.added(id)
            counts = tuple(added.get(count, 0) for count in range(len(Count)))
            return Totals(counts, self.now_ms, 1, UNCOMMITTED)
        totals, uncommitted = self._view.totals(id)
        self.totals_read.add(id)
        if uncommitted:
            self.saw_uncommitted = True
        return totals

    def peek_totals(self, id: int) -> Totals:
        """As `totals`, for a look that decides nothing.

        Whoever relies on totals is thrown out with whoever has added to them; a
        sibling that only made sure that a limit is far away must not be.
        """
        return self._view.peek_totals(id)

    def is_new(self, id: int) -> bool:
        """Whether this very transaction makes the inode."""
        return id in self.new_inodes

    def added(self, id: int) -> dict[int, int]:
        """What this transaction itself has added to a directory's totals so far."""
        added: dict[int, int] = {}
        for directories, counts, _ in self.touches:
            if id in directories:
                for count, change in counts:
                    added[count] = added.get(count, 0) + change
        return added

    def at(self, txid: int) -> PastRows:
        """What there was after an earlier TxID, which a snapshot has kept."""
        return PastRows(self._view, txid, self.now_ms)

    @property
    def moments(self) -> Moments | None:
        """Which snapshots there are, as far as this NameNode knows; None if it does not."""
        return self._view.moments

    # Changing.

    @property
    def txid(self) -> int:
        """The TxID of this very transaction; only of one that is solitary."""
        assert self.known_txid is not None, "only who commits alone knows its TxID beforehand"
        return self.known_txid

    def put(self, key: Key, record: Any) -> None:
        """Write a record; it must have been looked for before."""
        writes = self.writes
        entry = self.reads.get(key)
        assert entry is not None or key in writes, f"{key} is written unread"
        if entry is not None and entry.writer is not None and is_unstamped(key[0], entry.record):
            raise MustRunAlone  # once that is committed, the TxID in it is known
        # An uncommitted version is younger than every snapshot, and whoever
        # wrote it has kept what was there before.
        if self.covered != 0 and key not in writes and self.is_held(key):
            self.keep(key, self.covered or 0)
        writes[key] = record

    def put_new(self, key: Key, record: Any) -> None:
        """Write a record whose key can't be taken; a shared store checks that it is not."""
        self.reads[key] = UNBORN
        self.writes[key] = record

    def delete(self, key: Key) -> None:
        """Remove the record of a key."""
        self.put(key, None)

    def cover(self, txid: int) -> None:
        """Versions as old as this may be needed by a snapshot: they go to the past, not away."""
        needed = self._view.latest_snapshot(txid) if txid else 0
        if self.covered is None or needed > self.covered:
            self.covered = needed

    def mark(self, directories: tuple[int, ...]) -> None:
        """What this transaction changes, if anything, is below these: `Totals.changed` tells."""
        self.marked.append(directories)

    def is_held(self, key: Key) -> bool:
        """Whether the current version of a row that was read is needed by a snapshot."""
        entry = self.reads.get(key, NO_ENTRY)
        if entry.record is None or entry.writer is not None or key[0] not in KEEPS_PAST:
            return False
        covered = self.covered
        if covered is None:
            latest = self.get(LATEST_KEY)
            self.cover(0 if latest is None else latest.txid)
            return self.is_held(key)
        return entry.since <= covered

    def keep(self, key: Key, holder: int) -> None:
        """Keep the version that is superseded, for the snapshot of this TxID, the latest of all."""
        self.kept.append((key, holder))

    def forget_past(self, key: Key, until: int) -> None:
        """Remove a version of the past that no snapshot needs any more."""
        self.forgotten.append((key, until))

    def rehold(self, key: Key, until: int, holder: int) -> None:
        """Keep a version of the past for another snapshot from now on."""
        self.reheld.append((key, until, holder))

    def add(self, id: int, counts: Counts, *, mtime_ms: int = -1) -> None:
        """Add to a directory's totals; never conflicts with another addition."""
        self.touches.append(((id,), counts, mtime_ms))

    def add_to_each(self, ids: Iterable[int], counts: Counts) -> None:
        """Add the same to several directories."""
        directories = tuple(ids)
        if directories:
            self.touches.append((directories, counts, -1))

    def bound(self, id: int, count: int, limit: int) -> None:
        """Only commit if this counter then does not exceed `limit`."""
        self.bounds.append(Bound(id, count, limit))

    def expect_empty(self, table: Table, a: int) -> None:
        """Only commit if there is no row with this prefix then."""
        self.emptied.append((table, a))

    def drop_totals(self, id: int) -> None:
        """The directory is gone for good, and its totals with it."""
        self.dropped.append(id)

    def require_alone(self) -> None:
        """From here on the result depends on more than the rows that were read."""
        if not self.alone:
            raise MustRunAlone

    def next_inode_id(self) -> int:
        """The id of a new inode; ids of runs that fail are lost."""
        id = self.next_number("inode id")
        self.new_inodes.add(id)
        return id

    def next_number(self, counter: str) -> int:
        """A new number of a counter.

        A call that runs again, because a row was missing, is given the numbers it was given
        before: the row may be one that is looked for by them.
        """
        for taken in self.unused or ():
            if taken[0] == counter:
                self.unused.remove(taken)  # type: ignore[union-attr]
                break
        else:
            taken = (counter, self._next_number(counter))
        self.taken.append(taken)
        return taken[1]

    def seal(self) -> None:
        """Encode what is written; raise IllegalArgumentException if it could not be read back.

        So a value of the wrong type fails the call that brought it, and no other one.
        """
        try:
            for key, record in self.writes.items():
                if record is not None:
                    data = encode(record)
                    decode(key[0], data)
                    self.encoded[key] = data
        except (msgspec.MsgspecError, TypeError, ValueError, OverflowError) as error:
            raise IllegalArgumentException(
                f"A value of the wrong kind was given: {error}"
            ) from None

    def forget_changes(self) -> None:
        """The operation failed: what it had recorded is void, what it read is not."""
        self.writes.clear()
        self.touches.clear()
        self.kept.clear()
        self.dropped.clear()
        self.forgotten.clear()
        self.reheld.clear()
        self.bounds.clear()
        self.emptied.clear()

    @property
    def changes_anything(self) -> bool:
        return bool(self.writes or self.touches or self.dropped or self.forgotten or self.reheld)
