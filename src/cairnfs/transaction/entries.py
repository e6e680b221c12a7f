"""Versions of keys as transactions see them, and what may stop a run before its end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from cairnfs.store.base import ABSENT, Reading

if TYPE_CHECKING:
    from cairnfs.transaction.transaction import Transaction


class Entry(msgspec.Struct, gc=False):
    """One version of one key.  `record` is None where there is no row.

    While `writer` is set the version is not committed: it is what the
    transaction `writer` will have written, and `before` is what it replaces.
    """

    record: Any
    since: int
    writer: Transaction | None = None
    before: Entry | None = None
    until: int = 0  # of a version of the past: the TxID that superseded it


NO_ENTRY = Entry(None, ABSENT)

UNBORN = Entry(None, ABSENT)
"""Of a key below an inode that this very transaction makes: nobody else can have written it."""


PRESUMED = Entry(None, ABSENT)
"""Of a key that nobody has looked for: that there is no row is a guess, to be validated."""


UNCOMMITTED = 2**63 - 1
"""Since when an uncommitted version is current: after every snapshot."""


class Missing(Exception):
    """The snapshot lacks something: load `reading` and run the operation again."""

    def __init__(self, reading: Reading) -> None:
        self.reading = reading


class OutOfNumbers(Exception):
    """The range of ids reserved in memory is used up: reserve another, run again."""

    def __init__(self, counter: str) -> None:
        self.counter = counter


class MustRunAlone(Exception):
    """The operation's meaning depends on everything below a directory, or on a TxID to come.

    It has to run while nobody else commits, and when what it has seen is committed.
    """
