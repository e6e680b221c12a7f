"""Transactions that are validated and committed together.

`Group` collects runs and adds up what they add to totals; `build_batch` turns
it into what a store commits; `choose_thrown_out` says which runs a conflict
takes away (a pure function of the group).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from cairnfs.store.base import (
    ABSENT,
    Batch,
    Conflict,
    Count,
    Keep,
    Key,
    Member,
    Put,
    StoredReply,
    Touch,
)
from cairnfs.transaction.calls import Call, encode_replies
from cairnfs.transaction.entries import UNBORN, Entry
from cairnfs.transaction.records import id_of
from cairnfs.transaction.transaction import Transaction


@dataclass(slots=True, eq=False)
class Run:
    """A finished run that waits for its commit: the call, what it did, its answer."""

    call: Call
    transaction: Transaction
    result: Any
    error: BaseException | None
    read_txid: int | None = None  # the clock when its totals were read
    over: Group | None = None  # a group that was being committed while it ran


_ZEROS = [0] * len(Count)


class Addition:
    """What a group adds to one directory's totals."""

    __slots__ = ("counts", "covered", "mtime_ms", "writer")

    def __init__(self) -> None:
        self.counts = _ZEROS.copy()
        self.covered = 0  # what they are before is needed by a snapshot, if as old as this
        self.mtime_ms = -1
        self.writer: Transaction | None = None  # who set mtime_ms


@dataclass(slots=True, eq=False)
class Group:
    """Runs in the order in which they were made, each on top of those before it."""

    runs: list[Run] = field(default_factory=list)
    totals: dict[int, Addition] = field(default_factory=dict)
    size: int = 0  # of its batch: the runs that change something
    known_marks: Mapping[tuple[int, ...], int] = field(default_factory=dict)
    marked: dict[tuple[int, ...], int] = field(default_factory=dict)
    """Directories whose totals are to tell that something below has changed since a snapshot, by
    the TxID of that: once is enough, so those that are known to tell it are left alone."""

    def append(self, run: Run) -> None:
        self.runs.append(run)
        self._add_totals(run.transaction)

    def keep_only(self, runs: list[Run]) -> None:
        """Start over with some of the runs."""
        self.runs = runs
        self.totals.clear()
        self.marked.clear()
        for run in runs:
            self._add_totals(run.transaction)

    def _add_totals(self, transaction: Transaction) -> None:
        totals = self.totals
        covered = transaction.covered or 0
        for id, counts, mtime_ms in transaction.touches:
            addition = totals.get(id)
            if addition is None:
                addition = totals[id] = Addition()
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

    def _mark(self, transaction: Transaction, covered: int) -> None:
        for marked in transaction.marked:
            if self.known_marks.get(marked, 0) >= covered or self.marked.get(marked, 0) >= covered:
                continue  # as nearly always: calls go where others have just gone
            self.marked[marked] = covered
            for id in marked:
                addition = self.totals.get(id)
                if addition is None:
                    addition = self.totals[id] = Addition()
                if covered > addition.covered:
                    addition.covered = covered


def build_batch(
    group: Group, now_ms: int, shard: int, member: Member | None, *, validate: bool = True
) -> Batch:
    """What the store has to check and to change for a group to be committed.

    The runs that change something are numbered: that is their place in TxID order.
    """
    size = 0
    final: dict[Key, Entry] = {}
    for run in group.runs:
        transaction = run.transaction
        if transaction.changes_anything:
            size += 1
            transaction.order = size
            final.update(transaction.written)
    group.size = size
    batch = Batch(size=size, now_ms=now_ms, shard=shard, member=member, knows_its_rows=not validate)
    for run in group.runs:
        transaction = run.transaction
        if validate:
            batch.bounds += transaction.bounds
            batch.empties += transaction.emptied
        else:
            for key in transaction.presumed:
                batch.reads[key] = ABSENT
        if transaction.kept:
            batch.keeps += [Keep(key, transaction.order) for key in transaction.kept]
        batch.drops += transaction.dropped
        batch.forgets += transaction.forgotten
    if validate:
        batch.reads = _versions_read(group.runs)
    for key in sorted(final):
        _add_change(batch, key, final[key])
    for id, addition in group.totals.items():
        order = 0 if addition.writer is None else addition.writer.order
        batch.touches.append(Touch(id, addition.counts, addition.mtime_ms, order, addition.covered))
    batch.replies = _replies(group.runs)
    return batch


def _versions_read(runs: list[Run]) -> dict[Key, int]:
    """The committed versions that the runs depend on."""
    read: dict[Key, Entry] = {}
    for run in reversed(runs):  # two turns may have read two versions: the older one is stale
        read.update(run.transaction.reads)
    return {
        key: entry.since
        for key, entry in read.items()
        if entry.writer is None and entry is not UNBORN
    }


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
            stale_totals.update(directory for directory, _, _ in transaction.touches)
    return thrown


def _add_change(batch: Batch, key: Key, entry: Entry) -> None:
    record, writer, base = entry.record, entry.writer, entry.before
    while base is not None and base.writer is not None:
        base = base.before
    was_there = base is not None and base.record is not None
    if record is not None:
        assert writer is not None
        if not was_there and not batch.knows_its_rows:
            batch.reads.pop(key, None)  # that it is new is checked by writing it
        batch.puts.append(
            Put(key, id_of(key[0], record), writer.order, writer.encoded[key], was_there)
        )
    elif was_there:
        batch.deletes.append(key)


def _replies(runs: list[Run]) -> list[StoredReply]:
    by_client: dict[bytes, list[tuple[int, str, Any]]] = {}
    for run in runs:
        key = run.call.key
        if key is not None and run.transaction.order and run.call.operation.at_most_once:
            reply = (key.call_id, run.call.operation.name, run.result)
            by_client.setdefault(key.client_id, []).append(reply)
    return [
        StoredReply(
            client_id, tuple(sorted(reply[0] for reply in replies)), encode_replies(replies)
        )
        for client_id, replies in by_client.items()
    ]
