"""Where paths led last time, so that a whole path is read in one round trip.

A hint may be stale: then the read finds another row, or none, and the
operation asks for what it really needs.  Never a wrong answer, at most a
second read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, Protocol

from cairnfs.store.base import Key
from cairnfs.store.schema import Table
from cairnfs.transaction.transaction import Entry

_INODES = int(Table.INODES)


class Hint(NamedTuple):
    """The inode that was found under a key."""

    id: int
    is_directory: bool


class HintedInode(Protocol):
    """What is remembered of an inode: at least this."""

    @property
    def id(self) -> int: ...

    @property
    def is_directory(self) -> bool: ...


class Hints(Protocol):
    """Where paths led last time."""

    def get(self, key: Key) -> HintedInode | None: ...


class PathHints:
    """`(parent, name) -> inode`, bounded in two generations as the row cache."""

    def __init__(self, entries_max: int) -> None:
        self._generation_max = entries_max // 2
        self._young: dict[Key, Hint] = {}
        self._old: dict[Key, Hint] = {}

    def get(self, key: Key) -> Hint | None:
        return self._young.get(key) or self._old.get(key)

    def note(self, keys: Iterable[Key], found: Mapping[Key, Entry]) -> None:
        """Learn from what was read, and from what was not there."""
        young = self._young
        for key in keys:
            entry = found.get(key)
            if entry is None:
                young.pop(key, None)
                self._old.pop(key, None)
            elif key[0] == _INODES:
                known = young.get(key)
                if known is None or known.id != entry.record.id:
                    self.note_entry(key, entry.record)

    def note_entry(self, key: Key, record: Any) -> None:
        """Learn from one record; a record that is gone is no hint."""
        if key[0] == _INODES and record is not None:
            self._put(key, Hint(record.id, record.is_directory))

    def _put(self, key: Key, hint: Hint) -> None:
        if len(self._young) >= self._generation_max:
            self._old = self._young
            self._young = {}
        self._young[key] = hint
