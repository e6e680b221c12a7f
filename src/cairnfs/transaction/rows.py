"""What transactions run on, and what operations that only look are given.

`View` is a snapshot with everything a transaction asks of it; `Rows` is what is common to a
transaction and to a moment of the past, `PastRows`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from functools import partial
from typing import Any, Protocol, TypeVar

from cairnfs.store.base import FOREVER, Reading, Scan, Stored, Totals, join_readings
from cairnfs.store.schema import Key, Table
from cairnfs.transaction.entries import Entry, Missing
from cairnfs.transaction.memos import Memo
from cairnfs.transaction.moments import Moments


class PastView(Protocol):
    """Rows as they were after an earlier TxID.  Each method may raise `Missing`."""

    def stored(self, scans: list[Scan]) -> list[list[Stored]]:
        """What scans find, as it is stored: whoever passes it on need not have it decoded."""
        ...

    def totals_of(self, ids: list[int]) -> dict[int, Totals]:
        """The totals of many directories."""
        ...

    def entry(self, key: Key) -> Entry: ...

    def keys_of_id(self, table: int, id: int) -> list[Key]: ...

    def scan(self, scan: Scan) -> list[tuple[Key, Entry]]: ...

    def totals(self, id: int) -> Totals: ...


class View(Protocol):
    """A snapshot to run on.  Each method may raise `Missing`."""

    @property
    def never_lacks(self) -> bool:
        """Whether `Missing` is never raised, since rows are read as they are asked for."""
        ...

    def entry(self, key: Key) -> Entry: ...

    def find(self, key: Key) -> Entry | None:
        """The entry if it is at hand; None if one would have to look."""
        ...

    def recall(self, token: Hashable) -> Memo | None: ...

    def memorize(self, token: Hashable, memo: Memo) -> None: ...

    def keys_of_id(self, table: int, id: int) -> list[Key]:
        """Where the id is, committed or not; not all of these need have it."""
        ...

    def scan(self, scan: Scan) -> list[tuple[Key, Entry]]:
        """What is there, in order; then, without a record, what is gone but not committed so."""
        ...

    def totals(self, id: int) -> tuple[Totals, bool]:
        """The totals, and whether uncommitted changes are part of them."""
        ...

    def peek_totals(self, id: int) -> Totals:
        """The totals as of a short while ago, if nothing newer is at hand."""
        ...

    def at(self, txid: int) -> PastView:
        """What was there after an earlier TxID."""
        ...

    def bring(self, reading: Reading) -> None:
        """Have these keys, ids and totals at hand, all by one read."""
        ...

    def latest_snapshot(self, covered: int) -> int:
        """The TxID of the latest snapshot up to this one that still exists; or 0."""
        ...

    @property
    def moments(self) -> Moments | None:
        """Which snapshots there are, as far as that is known; None if it is not looked after."""
        ...


class Rows(Protocol):
    """What operations that only look are given: a transaction, or a moment of the past."""

    @property
    def now_ms(self) -> int: ...

    def get(self, key: Key) -> Any: ...

    def get_by_id(self, table: Table, id: int) -> Any: ...

    def scan(self, table: Table, a: int, after: bytes, limit: int) -> list[tuple[Key, Any]]: ...

    def totals(self, id: int) -> Totals: ...

    def at(self, txid: int) -> Rows: ...

    def need(
        self,
        keys: Iterable[Key] = (),
        totals: Iterable[int] = (),
        ids: Iterable[tuple[int, int]] = (),
    ) -> None: ...


T = TypeVar("T")
R = TypeVar("R")


class Lookable(Protocol):
    """Rows of now or of then; each method may raise `Missing`."""

    def entry(self, key: Key) -> Entry: ...

    def keys_of_id(self, table: int, id: int) -> list[Key]: ...

    def totals(self, id: int) -> object: ...


class LookableAt(Lookable, Protocol):
    """Rows of now, and as they were."""

    def at(self, txid: int) -> PastView: ...


def find_lacking(view: LookableAt, reading: Reading) -> Reading:
    """What of these keys, ids and totals would have to be read."""
    lacking = _lacking(view, reading)
    for txid, past in reading.past.items():
        then = _lacking(view.at(txid), past)
        if not then.is_empty():
            lacking.past[txid] = then
    return lacking


def _lacking(view: Lookable, reading: Reading) -> Reading:
    def is_lacking(ask: Callable[[], object]) -> bool:
        try:
            ask()
        except Missing:
            return True
        return False

    return Reading(
        keys=[key for key in reading.keys if is_lacking(partial(view.entry, key))],
        totals=[id for id in reading.totals if is_lacking(partial(view.totals, id))],
        ids=[pair for pair in reading.ids if is_lacking(partial(view.keys_of_id, *pair))],
    )


def ask_all(ask: Callable[[T], R], items: Iterable[T]) -> list[R]:
    """Ask for each of them; what all of them lack is lacking together, not one after another."""
    answers, lacking = [], []
    for item in items:
        try:
            answers.append(ask(item))
        except Missing as missing:
            lacking.append(missing.reading)
    if lacking:
        raise Missing(join_readings(lacking))
    return answers


class PastRows:
    """Rows as they were after an earlier TxID: committed, so nothing of it is validated."""

    def __init__(self, now: View, txid: int, now_ms: int) -> None:
        self._now = now
        self._view = now.at(txid)
        self.txid = txid
        self.now_ms = now_ms

    def at(self, txid: int) -> PastRows:
        """What there was after another TxID."""
        return PastRows(self._now, txid, self.now_ms)

    def get(self, key: Key) -> Any:
        """The record that `key` had, or None."""
        return self._view.entry(key).record

    def since(self, key: Key) -> int:
        """The TxID that had written the row of `key`."""
        return self._view.entry(key).since

    def until(self, key: Key) -> int:
        """The TxID that has superseded this version of `key` since; 0: none."""
        return self._view.entry(key).until

    def keys_of_id(self, table: Table, id: int) -> list[Key]:
        """Where the records that carried this id were."""
        return self._view.keys_of_id(table, id)

    def get_by_id(self, table: Table, id: int) -> Any:
        """The record of a table that carried this id, or None."""
        keys = self._view.keys_of_id(table, id)
        return self.get(keys[0]) if keys else None

    def scan(
        self,
        table: Table,
        a: int,
        after: bytes,
        limit: int,
        *,
        since: int = 0,
        until: int = FOREVER,
    ) -> list[tuple[Key, Any]]:
        """Rows of `(table, a)` behind `after`, in order of `b`; perhaps of some time only."""
        page = self._view.scan(Scan(table, a, after, limit, since, until))
        return [(key, entry.record) for key, entry in page]

    def stored(self, scans: list[Scan]) -> list[list[Stored]]:
        """What several scans find, in one read, as it is stored."""
        return self._view.stored(scans)

    def totals_of(self, ids: list[int]) -> dict[int, Totals]:
        """The totals of many directories, in one read."""
        return self._view.totals_of(ids)

    def totals(self, id: int) -> Totals:
        """The totals that a directory had."""
        return self._view.totals(id)

    def need(
        self,
        keys: Iterable[Key] = (),
        totals: Iterable[int] = (),
        ids: Iterable[tuple[int, int]] = (),
    ) -> None:
        """As `Transaction.need`."""
        if not self._now.never_lacks:
            wanted = Reading(keys=list(keys), totals=list(totals), ids=list(ids))
            self._now.bring(Reading(past={self.txid: wanted}))
