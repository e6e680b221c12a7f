"""Deleted snapshots whose past rows several look through at once, each a range of TxIDs.

`reclaim.reclaim_past` goes through them in order, and notes in the removal's row how far it is.
What was looked at further on is noted there as ranges, until nothing is left between.

Invariant: the ranges of `Removal.looked` are in order and do not touch.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from cairnfs.namesystem.reclaim import forget_unneeded
from cairnfs.namesystem.snapshot_records import Removal
from cairnfs.store.base import PastRow
from cairnfs.store.schema import PAIR, Key
from cairnfs.transaction.calls import operation
from cairnfs.transaction.transaction import Transaction

Range = tuple[int, int]
"""The TxIDs behind the first number, up to the second."""


@operation()
def reclaim_some_past(tx: Transaction, rows: Sequence[PastRow]) -> None:
    """As `reclaim_past`, of some of the past rows that were kept for a deleted snapshot."""
    forget_unneeded(tx, rows)


@operation()
def note_last(tx: Transaction, removal: Key, last: int) -> None:
    """A deleted snapshot is known to all to be gone, so nothing is kept for it from now on.

    Else it would be looked for in what those who look are themselves committing.
    """
    work: Removal | None = tx.get(removal)
    if work is not None and not work.is_past_done and not work.last:
        tx.put(removal, msgspec.structs.replace(work, last=last))


@operation()
def note_looked(tx: Transaction, removal: Key, begin: int, end: int) -> None:
    """All that was superseded in a range of TxIDs has been looked at for a deleted snapshot."""
    work: Removal | None = tx.get(removal)
    if work is None or work.is_past_done:
        return
    ranges = _merged([*work.looked, (begin, end)])
    first = begin_of(removal, work)
    if end <= first or ranges == work.looked:
        return  # by somebody else, too
    if ranges[0][0] <= first:
        reached = max(first, ranges[0][1])
        noted = Removal(work.deleted_ms, reached + 1, looked=ranges[1:], last=work.last)
    else:
        noted = msgspec.structs.replace(work, looked=ranges)
    tx.put(removal, noted)


def begin_of(removal: Key, work: Removal) -> int:
    """The TxID up to which everything has been looked at."""
    txid, _ = PAIR.unpack(removal[2])
    return int(max(txid, work.until - 1))


def ranges_left(removal: Key, work: Removal, until: int, size: int) -> list[Range]:
    """What is still to be looked at, up to a TxID, in parts of so many TxIDs at most."""
    found: list[Range] = []
    at = begin_of(removal, work)
    for begin, end in (*work.looked, (until, until)):
        while at < min(begin, until):
            found.append((at, min(at + size, begin, until)))
            at = found[-1][1]
        at = max(at, end)
    return found


def _merged(ranges: Sequence[Range]) -> tuple[Range, ...]:
    merged: list[Range] = []
    for begin, end in sorted(ranges):
        if merged and begin <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((begin, end))
    return tuple(merged)
