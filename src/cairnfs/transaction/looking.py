"""Calls that only look, where there is nothing to wait for: what they are run on.

While everything is committed, what is read of a store of our own is true and stays so until the
function ends, and what was read of a shared one is true of one moment: nothing of it has to be
validated, and no answer held back.  So nobody has to know what was read, and one object serves all
such calls, or all that something was read for.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

from cairnfs.store.base import Scan, Totals
from cairnfs.store.schema import Key, Table
from cairnfs.transaction.memos import Memo
from cairnfs.transaction.rows import View
from cairnfs.transaction.transaction import Counts, NumberSource, Transaction
from cairnfs.transaction.views import CommittedRows


class Look(Transaction):
    """A transaction that reads committed rows, and keeps nothing of it."""

    def __init__(
        self, view: View, next_number: NumberSource, rows: CommittedRows, *, alone: bool
    ) -> None:
        super().__init__(view, 0, next_number, alone, covered=0)
        self._rows = rows

    def get(self, key: Key) -> Any:
        return self._rows.entry(key).record

    def probe(self, key: Key) -> Any:
        return self._rows.entry(key).record

    def since(self, key: Key) -> int:
        return self._rows.entry(key).since

    def changed_after(self, key: Key, txid: int) -> bool:
        return self._rows.entry(key).since > txid

    def recall(self, token: Hashable) -> Any:
        memo = self._rows.recall(token)
        return None if memo is None else memo.value

    def memorize(self, token: Hashable, value: Any, keys: Iterable[Key]) -> None:
        self._rows.memorize(token, Memo(value, {key: self._rows.entry(key) for key in keys}))

    def scan(self, table: Table, a: int, after: bytes, limit: int) -> list[tuple[Key, Any]]:
        page = self._rows.scan(Scan(table, a, after, limit))
        return [(key, entry.record) for key, entry in page]

    def totals(self, id: int) -> Totals:
        return self._rows.totals(id)

    def cover(self, txid: int) -> None:
        """Nothing is changed: nothing has to be kept."""

    def put(self, key: Key, record: Any) -> None:
        raise AssertionError(f"{key} is written by a call that only looks")

    def put_new(self, key: Key, record: Any) -> None:
        self.put(key, record)

    def add_to_each(self, ids: Iterable[int], counts: Counts) -> None:
        raise AssertionError(f"{list(ids)} are added to by a call that only looks")

    def add(self, id: int, counts: Counts, *, mtime_ms: int = -1) -> None:
        self.add_to_each([id], counts)

    def drop_totals(self, id: int) -> None:
        self.add_to_each([id], ())

    def forget_past(self, key: Key, until: int) -> None:
        self.put(key, None)

    def next_number(self, counter: str) -> int:
        raise AssertionError(f"a call that only looks takes a new {counter}")
