"""What was worked out from rows, remembered until one of those rows changes.

Calls go to the same few directories again and again.  The way there is the same for all
of them as long as none of its rows is written, so it is walked once and then recalled.

Invariant: a memo is of committed rows, and none of them has been written since, as far as this
NameNode knows: on a shared store whoever recalls it has it confirmed or validated.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any, NamedTuple

from cairnfs.store.schema import Key
from cairnfs.transaction.entries import Entry

MEMOS_MAX = 10_000


class Memo(NamedTuple):
    """A value, and the rows that it was worked out from."""

    value: Any
    reads: dict[Key, Entry]


class Memos:
    """Memos by whatever they were asked for, so many at most."""

    def __init__(self) -> None:
        self._memos: dict[Hashable, Memo] = {}
        self._by_key: dict[Key, set[Hashable]] = {}
        self._keys = self._by_key.keys()
        self.find = self._memos.get

    def note(self, token: Hashable, memo: Memo) -> None:
        if len(self._memos) >= MEMOS_MAX:
            self.clear()
        self._forget(token)
        self._memos[token] = memo
        for key in memo.reads:
            self._by_key.setdefault(key, set()).add(token)

    def rows_changed(self, keys: Iterable[Key]) -> None:
        """The rows of these keys are no longer what they were: nor is what came from them."""
        if not self._keys.isdisjoint(keys):
            for key in keys:
                for token in list(self._by_key.get(key, ())):
                    self._forget(token)

    def clear(self) -> None:
        self._memos.clear()
        self._by_key.clear()

    def _forget(self, token: Hashable) -> None:
        memo = self._memos.pop(token, None)
        if memo is None:
            return
        for key in memo.reads:
            tokens = self._by_key[key]
            tokens.discard(token)
            if not tokens:
                del self._by_key[key]
