"""What a store is to commit at once: rows to write, totals to add to, replies to keep."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from cairnfs.store.schema import Key


class Put:
    """A row to write."""

    __slots__ = ("data", "id", "key", "order", "replaces")

    def __init__(self, key: Key, id: int | None, order: int, data: bytes, replaces: bool) -> None:
        """`order` is its transaction's place in the batch, from 1.  Unless it `replaces` a row, the
        key must be new."""
        self.key = key
        self.id = id
        self.order = order
        self.data = data
        self.replaces = replaces


class Keep(NamedTuple):
    """Copy the current version of `key` to the past before it is superseded."""

    key: Key
    order: int
    holder: int  # the TxID of the snapshot that needs it


class Rehold(NamedTuple):
    """A past row is kept for another snapshot from now on."""

    key: Key
    until: int
    holder: int


class Touch:
    """Totals to add to one directory."""

    __slots__ = ("counts", "covered", "id", "mtime_ms", "order")

    def __init__(
        self, id: int, counts: Sequence[int], mtime_ms: int, order: int, covered: int = 0
    ) -> None:
        """An `order` of 0 leaves its time alone.  What the totals were before goes to the past if
        it is as old as `covered`, the TxID of the snapshot that needs it."""
        self.id = id
        self.counts = counts
        self.mtime_ms = mtime_ms
        self.order = order
        self.covered = covered


class Bound(NamedTuple):
    """After the batch, this counter of this directory must not exceed `limit`."""

    id: int
    counter: int
    limit: int


class StoredReply:
    """Replies to calls of one client, by their numbers in ascending order, in one blob."""

    __slots__ = ("calls", "client_id", "data")

    def __init__(self, client_id: bytes, calls: tuple[int, ...], data: bytes) -> None:
        self.client_id = client_id
        self.calls = calls
        self.data = data


@dataclass
class Batch:
    """Transactions to be validated and committed together.

    `reads` are the versions that the transactions were computed from.  If one
    of them is no longer current, if a key that must be new is there or one to be
    replaced is not, if a prefix that must be empty is not, if a bound is
    exceeded, or if the reply to one of the calls is stored already, `commit`
    raises `Conflict` and nothing is changed.
    """

    size: int  # transactions, hence TxIDs, in it
    now_ms: int
    shard: int = 0
    member: Member | None = None
    reads: dict[Key, int] = field(default_factory=dict)
    deletes: list[Key] = field(default_factory=list)
    puts: list[Put] = field(default_factory=list)
    keeps: list[Keep] = field(default_factory=list)
    empties: list[tuple[int, int]] = field(default_factory=list)
    touches: list[Touch] = field(default_factory=list)
    drops: list[int] = field(default_factory=list)  # directories whose totals go
    forgets: list[tuple[Key, int]] = field(default_factory=list)  # past rows: key, until
    reholds: list[Rehold] = field(default_factory=list)
    bounds: list[Bound] = field(default_factory=list)
    replies: list[StoredReply] = field(default_factory=list)
    knows_its_rows: bool = False
    """Whoever made it is the only one that writes, and knows which rows there are: only `reads`,
    if any, are to be compared."""
    encoded_changes: list[Any] | None = field(default=None, compare=False, repr=False)
    """As the store, whose own affair it is, has made them in `Store.prepare`."""


def new_keys(batch: Batch) -> list[Key]:
    """Keys that must not be there before the batch: to be put as new, without a delete."""
    deleted = set(batch.deletes)
    return [put.key for put in batch.puts if not put.replaces and put.key not in deleted]


class Member(NamedTuple):
    """Which NameNode commits, and its how-manieth batch this is.

    The store refuses a member whose epoch has ended (`Fenced`), and remembers
    the number, so that the outcome of a batch can be asked for afterwards.
    """

    id: int
    epoch: int
    batch: int
