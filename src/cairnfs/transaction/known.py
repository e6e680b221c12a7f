"""What a NameNode knows of its store: rows it has seen, and what it has not committed yet.

A store of our own is known for certain, through a cache.  Of a store that others
write to as well, there is what was seen last, which validation confirms or not.
"""

from __future__ import annotations

from cairnfs.store.base import Found, Reading, Store
from cairnfs.transaction.moments import Moments
from cairnfs.transaction.seen_rows import CachedRows, RememberedRows, RowsAtHand
from cairnfs.transaction.trust import Trust
from cairnfs.transaction.views import LoadedRows, PeekedTotals, Speculation

CACHE_ENTRIES_MAX = 400_000


class Known:
    """The rows, and what is laid over them."""

    def __init__(self, store: Store) -> None:
        self.cache = CachedRows(store.local, CACHE_ENTRIES_MAX) if store.local else None
        self.memory = RememberedRows(CACHE_ENTRIES_MAX)  # of a store that others write to
        self.at_hand = RowsAtHand(self.cache) if self.cache is not None else self.memory
        self.peeked = PeekedTotals() if self.cache is None else None
        self.moments = Moments()
        self.trust = Trust()
        rows = self.cache or LoadedRows(Reading(), Found())
        self.view = Speculation(rows, self.peeked, (self.cache or self.memory).memos, self.moments)

    def forget_committed(self) -> None:
        """Nothing that was seen can be relied on any more."""
        if self.cache is not None:
            self.cache.clear()
        self.memory.clear()
