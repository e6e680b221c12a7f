"""Work that calls have left for later, as items that are worked off in bounded steps.

Duties do it; whoever cannot wait asks several NameNodes to do some of it each, which is harmless:
each step is a transaction, and one that finds its item done has nothing to do.
"""

from __future__ import annotations

import enum
from typing import NamedTuple


class WorkKind(enum.IntEnum):
    """What is to be done; in the order in which items are listed."""

    DETACHED = 1  # a subtree, or a file's blocks, that was deleted or replaced
    DELETED_SNAPSHOT = 2  # what only it needed
    TO_SETTLE = 3  # a directory that has its content from a snapshot that is gone
    POLICY_SCAN = 4  # a subtree whose storage policy has changed


class WorkItem(NamedTuple):
    """Something to be done; of a deleted snapshot it may be a part."""

    kind: WorkKind
    id: int  # of an inode
    txid: int = 0  # of the snapshot, or of the moment that content comes from
    begin: int = 0  # of a part: what was superseded after this TxID
    end: int = 0  # and up to this one; 0: all of it is meant


class Looked(NamedTuple):
    """What a step has come to."""

    rows: int  # that it looked at
    is_done: bool  # nothing is left of its item


NOTHING_LEFT = Looked(0, is_done=True)
