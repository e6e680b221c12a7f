"""Where paths led last time, so that a whole path is read in one round trip.

A hint may be stale: then the read finds another row, or none, and the
operation asks for what it really needs.  Never a wrong answer, at most a
second read.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Protocol

from cairnfs.store.schema import Key
from cairnfs.transaction.memos import Memo


class HintedInode(Protocol):
    """What is remembered of an inode: at least this."""

    @property
    def id(self) -> int: ...

    @property
    def children_id(self) -> int: ...

    @property
    def is_directory(self) -> bool: ...


class Hints(Protocol):
    """Where paths led last time."""

    def get(self, key: Key) -> HintedInode | None: ...

    def recall(self, token: Hashable) -> Memo | None:
        """What was worked out from rows; `lookup` does that for the way to a directory."""
        ...
