"""What every store promises: versioned rows, one clock, all-or-nothing batches.

A store knows keys, not directories.  It keeps

- *rows*: `(table, a, b)` -> bytes, each with `since`, the TxID that wrote it,
  which is also its version;
- *past* rows: versions that were superseded but are still needed, `[since, until)`: with
  them rows and totals can be read as they were after any TxID that is still needed;
- *totals*: vectors of counters that only ever add up, in one shard for each
  NameNode, so that two writers never wait for each other;
- *replies* to calls that must not run twice;
- the *clock*: the TxID of the last transaction.  Its row is locked from before
  a batch is validated until it is on disk.  Hence TxID order is commit order,
  validation needs no other lock, and can't deadlock.  Whoever also locks rows locks
  them before the clock; on a shared store it may meet a batch that goes the other
  way, and is told `Conflict`.

`testing.conformance` is this contract as a test suite.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from itertools import chain
from typing import NamedTuple, Protocol, TypeVar

import msgspec

from cairnfs.store.batches import Batch, Member
from cairnfs.store.schema import Key, Table

ABSENT = 0
"""The version of a row that is not there."""

FOREVER = 2**63 - 1
PRESENT = FOREVER - 1
"""As a TxID to look at: after all that is committed."""


class Row(NamedTuple):
    """One stored version of one key."""

    key: Key
    since: int
    data: bytes
    until: int = 0  # of a version of the past: the TxID that superseded it


Stored = tuple[int, bytes, int, bytes]
"""A row as the driver of a database gives it: any number, `b`, `since` and the data.

Who passes on a million rows has no time to make a `Row` of each.
"""


EVERY_TIME = -(1 << 62)
"""As a TxID to look at: at any time.  Only rows by their ids are found so, all their versions."""


class PastRow(NamedTuple):
    """A version that was current from TxID `since` on, and no more from `until` on."""

    key: Key
    until: int
    since: int
    id: int | None
    data: bytes
    holder: int = 0  # the TxID of the snapshot for which it is kept, the latest that needs it


class Scan(NamedTuple):
    """Rows of `(table, a)` with `b > after`, in order, at most `limit`.

    As they were at a moment, also only those that were written at or after `since`, or that were
    superseded up to `until`.
    """

    table: int
    a: int
    after: bytes
    limit: int
    since: int = 0
    until: int = FOREVER


ALL_ROWS = 1 << 40  # a number to which others can be added


def whole_scan(table: int, a: int) -> Scan:
    """All rows of a prefix, for whoever knows that they are few; many such are read at once."""
    return Scan(table, a, b"", ALL_ROWS)


class LockMode(enum.Enum):
    """How rows are read inside a store transaction (thesis 004, section 5.3)."""

    READ_COMMITTED = "read committed"
    SHARED = "shared"
    EXCLUSIVE = "exclusive"


T = TypeVar("T")


def scan_under(
    changed: Mapping[Key, T | None], scan: Scan, read: Callable[[Scan], list[tuple[Key, T]]]
) -> list[tuple[Key, T]]:
    """What a scan finds if some rows of its prefix are newer than what `read` sees.

    None stands for a row that is gone.
    """
    if not changed:
        return read(scan)
    # As many of the rows that are read may be hidden as there are changed ones.
    wider = scan._replace(limit=scan.limit + len(changed))
    merged: dict[Key, T | None] = dict(read(wider))
    reached = max(merged)[2] if len(merged) == wider.limit else None
    for key, row in changed.items():
        if key[2] > scan.after and (reached is None or key[2] <= reached):
            merged[key] = row
    page = []
    for key in sorted(merged):
        row = merged[key]
        if row is not None:
            page.append((key, row))
    return page[: scan.limit]


class Count(enum.IntEnum):
    """The counters of a totals vector: what is at and below a directory, itself left out."""

    CHILDREN = 0  # direct entries only
    FILES = 1
    DIRECTORIES = 2
    SYMLINKS = 3
    LENGTH_BYTES = 4
    SPACE_BYTES = 5  # length times replication
    SSD_BYTES = 6
    DISK_BYTES = 7
    ARCHIVE_BYTES = 8
    PROVIDED_BYTES = 9
    NVDIMM_BYTES = 10
    INODES = 11  # files, directories and links together: what a quota limits
    SNAPSHOTS = 12  # those of the directories and files below
    RESERVED_BYTES = 13  # of the space: what open blocks are charged for, beyond their length


class Totals(NamedTuple):
    """A directory's counters, and when one of its entries last changed."""

    counts: tuple[int, ...]
    mtime_ms: int
    touched: int  # TxID that decided mtime_ms; 0: never touched
    changed: int = 0  # the last TxID of the batch that last added to them


NO_TOTALS = Totals((0,) * len(Count), 0, 0)


def totals_key(id: int) -> Key:
    """Where the past totals of a directory are kept; on a shared store, by shards."""
    return (Table.TOTALS, id, b"")


def encode_totals(totals: Totals) -> bytes:
    """Past totals, as PostgreSQL's functions write them too."""
    return f"{{{','.join(map(str, (totals.mtime_ms, totals.touched, *totals.counts)))}}}".encode()


def decode_totals(data: bytes) -> Totals:
    mtime_ms, touched, *counts = map(int, data[1:-1].split(b","))
    counts += [0] * (len(Count) - len(counts))  # older versions knew fewer of them
    return Totals(tuple(counts), mtime_ms, touched)


class Reading(msgspec.Struct):
    """What to read in one consistent view.

    A structure, since each call that reads makes one.
    """

    keys: list[Key] = []
    ids: list[tuple[int, int]] = []  # (table, id)
    scans: list[Scan] = []
    totals: list[int] = []
    past: dict[int, Reading] = {}
    """What to read as it was after these TxIDs; those have no `past` of their own."""
    known_versions: dict[Key, int] = {}
    """Of some of the keys, none of them ABSENT: a row that still has the one that is known need not
    be told again.  Whoever joins readings has to say it anew; what is past has none."""

    def is_empty(self) -> bool:
        return not (self.keys or self.ids or self.scans or self.totals or self.past)


@dataclass(slots=True)
class Found:
    """What was there.  A key that is neither in `rows` nor in `unchanged` has no row."""

    rows: dict[Key, Row] = field(default_factory=dict)
    ids: dict[tuple[int, int], list[Row]] = field(default_factory=dict)
    scans: dict[Scan, list[Row]] = field(default_factory=dict)
    totals: dict[int, Totals] = field(default_factory=dict)
    past: dict[int, Found] = field(default_factory=dict)
    unchanged: Collection[Key] = ()
    """Keys of rows that are not told, since they have the versions that are known."""
    txid: int | None = field(default=None, compare=False)
    """The clock at that moment; a shared store tells it where totals are read."""


def join_readings(readings: list[Reading]) -> Reading:
    """One reading for several calls; each thing once."""
    joined = Reading(
        list(dict.fromkeys(chain.from_iterable([reading.keys for reading in readings]))),
        list(dict.fromkeys(chain.from_iterable([reading.ids for reading in readings]))),
        list(dict.fromkeys(chain.from_iterable([reading.scans for reading in readings]))),
        list(dict.fromkeys(chain.from_iterable([reading.totals for reading in readings]))),
    )
    for reading in readings:
        for txid, past in reading.past.items():
            known = joined.past.get(txid)
            joined.past[txid] = past if known is None else join_readings([known, past])
    return joined


class Conflict(Exception):
    """The batch was computed from something that has changed since."""

    def __init__(
        self,
        keys: Sequence[Key] = (),
        directories: Sequence[int] = (),
        clients: Sequence[bytes] = (),
    ) -> None:
        super().__init__(
            f"{len(keys)} keys and {len(directories)} directories changed,"
            f" calls of {len(clients)} clients have run before"
        )
        self.keys = frozenset(keys)
        self.directories = frozenset(directories)
        self.clients = frozenset(clients)


class CommitUnknown(Exception):
    """The connection broke between sending a commit and its answer."""


class Fenced(Exception):
    """This NameNode was taken for dead, and others have gone on without it."""


class StoreTransaction(Protocol):
    """One store transaction, for runners that lock before they compute."""

    async def take_clock(self) -> int:
        """Lock the clock; until the end nobody else commits.  Returns the last TxID.

        `Conflict`: this would never have ended, since we hold rows that others need.
        """
        ...

    async def lock(self, modes: Mapping[Key, LockMode]) -> dict[Key, Row]:
        """Lock rows in the order of their keys, until the end; returns those there are.

        A key without a row can't be locked in every engine: lock its parent too.
        """
        ...

    async def read(self, reading: Reading) -> Found:
        """Read what is committed now; two calls may see two moments."""
        ...

    async def commit(self, batch: Batch) -> int:
        """As `Store.commit`, in this transaction, which is over then.

        After a `Conflict` it goes on, with all its locks.
        """
        ...


class StoreMoment(Protocol):
    """What was committed at one moment."""

    async def read(self, reading: Reading) -> Found: ...


class LocalReads(Protocol):
    """Reads that need no waiting; only a store in this process can offer them."""

    def row(self, key: Key) -> Row | None: ...

    def rows_of_id(self, table: int, id: int) -> list[Row]: ...

    def scan(self, scan: Scan) -> list[Row]: ...

    def totals(self, id: int) -> Totals: ...

    def at(self, txid: int) -> PastLocalReads:
        """The same as it was after this TxID, if a snapshot of it has been kept."""
        ...


class PastLocalReads(LocalReads, Protocol):
    """The same for an earlier TxID."""

    def stored(self, scans: list[Scan]) -> list[list[Stored]]:
        """What scans find, for who passes it on; those of `whole_scan` all by one statement."""
        ...

    def totals_of(self, ids: list[int]) -> dict[int, Totals]:
        """The totals of many directories."""
        ...


class Store(Protocol):
    """A place where committed rows live; see the module's text for what holds."""

    @property
    def local(self) -> LocalReads | None:
        """Set when this process alone writes to the store: what was read stays true."""
        ...

    async def meta(self) -> dict[str, str]:
        """What was written down at formatting time, and the schema's version."""
        ...

    async def read(self, reading: Reading) -> Found:
        """Read what is committed, all of it as of one moment."""
        ...

    def prepare(self, batch: Batch) -> None:
        """Do what can be done for `commit` before the batch is ready to be committed.

        From then on its changes and `now_ms` stay as they are; its member and shard, and the
        conditions under which it is committed (`reads`, `empties`, `bounds`), may still change.
        """
        ...

    async def commit(self, batch: Batch) -> int:
        """Validate and apply a batch; return the TxID before its first.

        Raises `Conflict`, `Fenced` or `StoreUnavailableException`, and then nothing
        has changed; or `CommitUnknown`, and then `settle` tells.
        """
        ...

    async def settle(self, member: Member) -> int | None:
        """Wait out the member's unfinished commit; its base TxID if it took place.

        None: it did not, and never will.  `Fenced`: the member was replaced meanwhile,
        and only the replies that were stored with the batch can tell.
        `StoreUnavailableException`: the outcome is not known yet.  Only for a store whose
        `commit` raises `CommitUnknown`.
        """
        ...

    def transaction(self) -> AbstractAsyncContextManager[StoreTransaction]:
        """A transaction that is rolled back unless it was committed."""
        ...

    def moment(self) -> AbstractAsyncContextManager[StoreMoment]:
        """Reads that all see the same, whatever is committed meanwhile."""
        ...

    async def find_replies(self, client_id: bytes, call_id: int) -> list[bytes]:
        """Blobs that may hold the reply to this call."""
        ...

    async def drop_expired_replies(self, now_ms: int, limit: int) -> int:
        """Forget up to `limit` replies that nobody will ask for any more; how many it were."""
        ...

    async def scan_table(self, table: int, after: tuple[int, bytes], limit: int) -> list[Row]:
        """Rows of a whole table in the order of their keys, behind `(a, b)`."""
        ...

    async def count_rows(self, table: int) -> int:
        """How many rows a table has; it looks at each, and lets others work meanwhile.

        What is committed until it has ended may be counted or not.
        """
        ...

    async def count_each(self, table: int) -> dict[int, int]:
        """How many rows of a table there are with each `a`; looked at all at once."""
        ...

    async def count_ids(self, table: int) -> int:
        """As `count_rows`, with rows that carry the same id counted once: files share blocks."""
        ...

    async def scan_past(
        self, holder: int, after: tuple[int, Key], until: int, limit: int
    ) -> list[PastRow]:
        """Past rows kept for a snapshot, in the order of `(until, key)`, behind `after`.

        Those that were superseded up to `until`.
        """
        ...

    async def past_holders(self) -> list[int]:
        """The TxIDs of the snapshots for which past rows are kept, in order."""
        ...

    async def count_past(self) -> int:
        """How many past rows there are."""
        ...

    async def last_txid(self) -> int:
        """The clock: whatever is not committed yet will have a greater TxID."""
        ...

    async def peek(self, counter: str) -> int:
        """A number of a counter that nobody has taken, and so none after it."""
        ...

    async def reserve(self, counter: str, count: int) -> int:
        """Take `count` numbers from a counter; returns the first."""
        ...

    async def close(self) -> None: ...
