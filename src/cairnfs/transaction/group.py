"""Transactions that are validated and committed together.

`Group` collects runs and adds up what they add to totals; `build_batch` turns
it into what a store commits, of which `prepare_batch` makes nearly all beforehand;
`choose_thrown_out` says which runs a conflict takes away (a pure function of the group).
"""

from __future__ import annotations

import operator
from collections.abc import Container, Iterable, Mapping
from typing import Any, Final

from cairnfs.store.base import ABSENT, Conflict, Count
from cairnfs.store.batches import Batch, Keep, Member, Put, Rehold, StoredReply, Touch
from cairnfs.store.schema import Key
from cairnfs.transaction.calls import Call, encode_replies
from cairnfs.transaction.entries import UNBORN, Entry
from cairnfs.transaction.records import id_of
from cairnfs.transaction.transaction import Counts, Transaction


class Run:
    """A finished run that waits for its commit: the call, what it did, its answer."""

    def __init__(
        self,
        call: Call,
        transaction: Transaction,
        result: Any,
        error: BaseException | None,
        read_txid: int | None = None,
        over: Group | None = None,
    ) -> None:
        """`read_txid` is the clock when its totals were read; while it ran, the group `over` was
        being committed."""
        self.call = call
        self.transaction = transaction
        self.result = result
        self.error = error
        self.read_txid = read_txid
        self.over = over


_ZEROS: Final = [0] * len(Count)
_CALL_ID: Final = operator.itemgetter(0)


class Addition:
    """What a group adds to one directory's totals."""

    def __init__(self, counts: list[int]) -> None:
        self.counts = counts
        self.covered = 0  # what they are before is needed by a snapshot, if as old as this
        self.mtime_ms = -1
        self.writer: Transaction | None = None  # who set mtime_ms


class Group:
    """Runs in the order in which they were made, each on top of those before it."""

    __slots__ = (
        "_read",
        "_read_otherwise",
        "_spread",
        "_totals",
        "_validates",
        "known_marks",
        "marked",
        "prepared",
        "prepared_from_runs_min",
        "runs",
        "size",
    )

    def __init__(
        self, known_marks: Mapping[tuple[int, ...], int] | None = None, *, validates: bool = True
    ) -> None:
        self.runs: list[Run] = []
        self.prepared: Batch | None = None  # of just these runs
        self.prepared_from_runs_min = 1
        # What the runs have read; collected while the group before this one is being committed.
        self._validates = validates
        self._read: dict[Key, Entry] = {}
        self._read_otherwise: list[tuple[Key, Entry]] = []  # than somebody before
        self.size = 0  # of its batch: the runs that change something
        self._totals: dict[int, Addition] = {}
        # Additions that are made to all directories of a path, and how often; not in `_totals` yet.
        self._spread: dict[tuple[tuple[int, ...], Counts], int] = {}
        # Directories whose totals are to tell that something below has changed since a snapshot, by
        # the TxID of that: once is enough, so those that are known to tell it are left alone.
        self.known_marks = {} if known_marks is None else known_marks
        self.marked: dict[tuple[int, ...], int] = {}

    def append(self, run: Run) -> None:
        self.runs.append(run)
        self.prepared = None
        self._add_totals(run.transaction)
        if self._validates:
            self._add_reads(run.transaction)

    def keep_only(self, runs: list[Run]) -> None:
        """Start over with some of the runs."""
        self.runs = []
        self.prepared = None
        self.prepared_from_runs_min = 1
        self._read.clear()
        self._read_otherwise.clear()
        self._totals.clear()
        self._spread.clear()
        self.marked.clear()
        for run in runs:
            self.append(run)

    def versions_read(self) -> dict[Key, int]:
        """The committed versions that the runs depend on.

        What one has from memory, or from an earlier read, may not be what another has read: then
        at least one of the two is stale, and the store, which is told of one, could not know.
        """
        versions = {
            key: entry.since
            for key, entry in self._read.items()
            if entry.writer is None and entry is not UNBORN
        }
        contradicted = {
            key
            for key, entry in self._read_otherwise
            if entry.writer is None
            and entry is not UNBORN
            and versions.setdefault(key, entry.since) != entry.since
        }
        if contradicted:
            raise Conflict(list(contradicted))
        return versions

    @property
    def totals(self) -> dict[int, Addition]:
        """What the runs add, by directory."""
        if self._spread:
            for (ids, counts), times in self._spread.items():
                for id in ids:
                    sums = self._addition(id).counts
                    for count, change in counts:
                        sums[count] += change * times
            self._spread.clear()
        return self._totals

    def _add_reads(self, transaction: Transaction) -> None:
        read = self._read
        for key, entry in transaction.reads.items():
            if read.setdefault(key, entry) is not entry:
                self._read_otherwise.append((key, entry))

    def _add_totals(self, transaction: Transaction) -> None:
        covered = transaction.covered or 0
        for ids, counts, mtime_ms in transaction.touches:
            if mtime_ms < 0 and not covered:
                # Most calls of a group change the same directories above, by the same.
                addition_to_all = ids, counts
                self._spread[addition_to_all] = self._spread.get(addition_to_all, 0) + 1
                continue
            for id in ids:
                addition = self._addition(id)
                sums = addition.counts
                for count, change in counts:
                    sums[count] += change
                if mtime_ms >= 0:
                    addition.mtime_ms = mtime_ms
                    addition.writer = transaction
                if covered > addition.covered:
                    addition.covered = covered
        if covered and transaction.changes_anything:
            self._mark(transaction, covered)

    def _addition(self, id: int) -> Addition:
        addition = self._totals.get(id)
        if addition is None:
            addition = self._totals[id] = Addition(_ZEROS.copy())
        return addition

    def _mark(self, transaction: Transaction, covered: int) -> None:
        for marked in transaction.marked:
            if self.known_marks.get(marked, 0) >= covered or self.marked.get(marked, 0) >= covered:
                continue  # as nearly always: calls go where others have just gone
            self.marked[marked] = covered
            for id in marked:
                addition = self._addition(id)
                if covered > addition.covered:
                    addition.covered = covered


def build_batch(
    group: Group, now_ms: int, shard: int, member: Member | None, *, validate: bool = True
) -> Batch:
    """What the store has to check and to change for a group to be committed.

    Raises Conflict if no state of the store can be right for all of its runs.
    """
    batch = group.prepared or prepare_batch(group, now_ms, validate=validate)
    batch.member, batch.shard = member, shard
    if validate:
        batch.reads = group.versions_read()
        for put in batch.puts:
            if not put.replaces and batch.reads.get(put.key) == ABSENT:
                del batch.reads[put.key]  # that it is new is checked by writing it
    return batch


def prepare_batch(group: Group, now_ms: int, *, validate: bool = True) -> Batch:
    """The batch of a group, but for who commits it, and what depends on the group before it, which
    need not be committed yet: if it is at all, and the versions that its runs have written.

    The runs that change something are numbered: that is their place in TxID order.
    """
    batch = Batch(size=0, now_ms=now_ms, knows_its_rows=not validate)
    final: dict[Key, Entry] = {}
    for run in group.runs:
        transaction = run.transaction
        if transaction.changes_anything:
            batch.size += 1
            transaction.order = batch.size
            final.update(transaction.written)
            if transaction.kept:
                order = transaction.order
                batch.keeps += [Keep(key, order, holder) for key, holder in transaction.kept]
            batch.drops += transaction.dropped
            batch.forgets += transaction.forgotten
            batch.reholds += [Rehold(*each) for each in transaction.reheld]
        if validate:
            batch.bounds += transaction.bounds
            batch.empties += transaction.emptied
        elif transaction.presumed:
            batch.reads.update(dict.fromkeys(transaction.presumed, ABSENT))
    group.size = batch.size
    own = {id(run.transaction) for run in group.runs}
    for key in sorted(final) if validate else final:  # a shared store locks them in this order
        _add_change(batch, key, final[key], own)
    for directory, addition in group.totals.items():
        order = 0 if addition.writer is None else addition.writer.order
        batch.touches.append(
            Touch(directory, addition.counts, addition.mtime_ms, order, addition.covered)
        )
    batch.replies = _replies(group.runs)
    return batch


def choose_thrown_out(runs: Iterable[Run], conflict: Conflict) -> set[Run]:
    """The runs that read what has changed, and those that read their changes.

    Pure; `runs` are in the order in which they ran.
    """
    thrown: set[Run] = set()
    withdrawn: set[int] = set()  # ids of transactions
    stale_totals = set(conflict.directories)
    for run in runs:
        transaction = run.transaction
        if (
            not conflict.keys.isdisjoint(transaction.reads)
            or not stale_totals.isdisjoint(transaction.totals_read)
            or any(a in conflict.directories for _, a in transaction.emptied)
            or (run.call.key is not None and run.call.key.client_id in conflict.clients)
            or any(id(entry.writer) in withdrawn for entry in transaction.reads.values())
        ):
            thrown.add(run)
            withdrawn.add(id(transaction))
            stale_totals.update(*(directories for directories, _, _ in transaction.touches))
    return thrown


def _add_change(batch: Batch, key: Key, entry: Entry, own: Container[int]) -> None:
    """`own` are the ids of the transactions of the batch: what others write is there before it."""
    record, writer, base = entry.record, entry.writer, entry.before
    while base is not None and id(base.writer) in own:
        base = base.before
    was_there = base is not None and base.record is not None
    if record is not None:
        assert writer is not None
        batch.puts.append(
            Put(key, id_of(key[0], record), writer.order, writer.encoded[key], was_there)
        )
    elif was_there:
        batch.deletes.append(key)


def _replies(runs: list[Run]) -> list[StoredReply]:
    by_client: dict[bytes, list[tuple[int, str, Any]]] = {}
    for run in runs:
        key, operation = run.call.key, run.call.operation
        if key is not None and run.transaction.order and operation.at_most_once:
            client_id, call_id = key
            by_client.setdefault(client_id, []).append((call_id, operation.name, run.result))
    stored = []
    for client_id, replies in by_client.items():
        if len(replies) > 1:
            replies.sort(key=_CALL_ID)
        calls = tuple([call_id for call_id, _, _ in replies])
        stored.append(StoredReply(client_id, calls, encode_replies(replies)))
    return stored
