"""Attributes that are inherited: which operation decided a value, and what operations write.

Whoever sets an inherited attribute on a directory expects it to be set on everything below, and
the latest such operation to count.  Nothing below is written for that.  An inode keeps

    renamed   the TxID of its last rename, or 0
    restored  the TxID of the roll-back that brought it back, or 0
    a row     for each attribute that was decided here: the value, and the TxID that decided it

and `resolve` goes from the root to the inode, taking at each step what is later.  So every
operation writes one inode at most, and a value costs as many steps as its path has names.

Functions of what they are given: whoever calls them reads and writes.  `verification` has the
same rules in TLA+, beside a magician who does rewrite everything below, and docs/attributes.md
says them in words.  The TxID of a transaction that is not yet committed may be any number that
is larger than all TxIDs there are.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import NamedTuple


class AttributeKind(enum.IntEnum):
    """How far an attribute reaches; every name that nobody declared is local, as in HDFS."""

    LOCAL = 0
    FOLLOWS_PATH = 1  # what is moved takes the value of the directory that it comes into
    STAYS_WITH_DATA = 2  # what is moved keeps the value that it had


class Decision(NamedTuple):
    """A value, and the TxID of the operation that decided it; None if it was removed."""

    txid: int
    value: bytes | None


class Step(NamedTuple):
    """What one inode on the way has to say about an attribute."""

    renamed: int
    restored: int
    row: Decision | None


UNDECIDED = Decision(0, None)
"""What comes into the root; and the end of a way on which no operation decided anything."""


# Resolving.


def resolve(kind: AttributeKind, way: Iterable[Step], entering: Decision = UNDECIDED) -> Decision:
    """What was decided for the last inode of a way from the root.

    A way may also begin at the directory of a snapshot, with what came in when that was taken.
    """
    decision = entering
    for step in way:
        decision = take_step(kind, decision, step)
    return decision


def decisions(
    kind: AttributeKind, way: Iterable[Step], entering: Decision = UNDECIDED
) -> Iterator[Decision]:
    """What was decided for each inode of a way, to tell where the last one comes from."""
    steps = accumulate(way, lambda above, step: take_step(kind, above, step), initial=entering)
    next(steps)
    return steps


def take_step(kind: AttributeKind, above: Decision, step: Step) -> Decision:
    """What was decided for an inode, given what was for its parent.

    Equal TxIDs are of one operation, so it makes no difference which of them is taken.
    """
    own = step.row or UNDECIDED
    if kind is AttributeKind.LOCAL:
        return own
    if kind is AttributeKind.STAYS_WITH_DATA:
        # What was decided above reaches those who were there then, in this shape.
        return above if above.txid > max(own.txid, step.renamed, step.restored) else own
    # A rename decides, too: that the inode has what its parent has, whatever it had before.
    txid = max(above.txid, step.renamed)
    if step.restored > txid or (step.row is not None and own.txid >= txid):
        return own
    return Decision(txid, above.value)


# Writing: the row that an inode has afterwards; None if it has none.


def row_after_remove(kind: AttributeKind, txid: int) -> Decision | None:
    """That there is no value is decided like a value: everything below has none, either."""
    return None if kind is AttributeKind.LOCAL else Decision(txid, None)


def row_after_unset(kind: AttributeKind, parent: Decision, txid: int) -> Decision | None:
    """The inode and everything below take what the parent has, as if they had never differed."""
    return None if kind is AttributeKind.LOCAL else Decision(txid, parent.value)


def row_after_move(kind: AttributeKind, row: Decision | None, decided: Decision) -> Decision | None:
    """Of what was moved, given what was decided for it in its old place.

    What stays with the data is written down before those are gone who decided it: with their
    TxID, since it has to be later than what was decided below before, and earlier than what
    was decided there afterwards.  A clone is moved out of a snapshot.
    """
    return decided if kind is AttributeKind.STAYS_WITH_DATA and decided.txid else row


def row_after_rollback(decided: Decision) -> Decision | None:
    """Of the directory that was rolled back, given what was decided for it in the snapshot.

    What is below it comes back with the TxIDs that it had, and is compared with this one.
    """
    return None if decided == UNDECIDED else decided
