"""What a batch changes, as a record of SQLite's journal.

Not compiled: msgspec decodes it, by annotations that compiled modules do not keep.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from cairnfs.store.base import Count, PastRow
from cairnfs.store.batches import Batch
from cairnfs.store.schema import REPLY_RETENTION_MS, Key
from cairnfs.store.sqlite_replies import Replies

Version = tuple[int | None, int, bytes]
"""What is in a row besides its key: its id, since when it is so, and its data."""


class Addition(NamedTuple):
    """What is added to the totals of a directory."""

    counts: tuple[int, ...]
    mtime_ms: int
    touched: int  # 0: the time stays
    changed: int = 0  # the last TxID of the batch that added it


class Change(msgspec.Struct, frozen=True, array_like=True):
    """What a batch changes: a record of the journal.  Stored: append fields only."""

    last_txid: int
    size: int
    deletes: list[Key]  # before the puts
    puts: list[tuple[Key, Version]]
    touches: list[tuple[int, Addition]]
    replies: list[Replies]
    past: list[PastRow] = []  # what was there before, where a snapshot needs it
    kept: list[tuple[Key, int]] = []  # of earlier versions, which did not know of holders
    held: list[tuple[Key, int, int]] = []  # the same of what the tables have: key, until, holder
    forgets: list[tuple[Key, int]] = []  # past rows that go: key, until
    reholds: list[tuple[Key, int, int]] = []  # past rows: key, until, their holder now
    drops: list[int] = []  # directories whose totals go


def change_of(
    batch: Batch, base: int, past: list[PastRow], held: list[tuple[Key, int, int]]
) -> Change:
    """The changes of a batch whose transactions come after the TxID `base`."""
    last_txid = base + batch.size
    expires_ms = batch.now_ms + REPLY_RETENTION_MS
    return Change(
        last_txid,
        batch.size,
        batch.deletes,
        [(put.key, (put.id, base + put.order, put.data)) for put in batch.puts],
        [
            (
                touch.id,
                Addition(
                    tuple(touch.counts),
                    touch.mtime_ms if touch.order else 0,
                    touch.order and base + touch.order,
                    last_txid,
                ),
            )
            for touch in batch.touches
        ],
        [
            Replies(reply.client_id, reply.calls, last_txid, expires_ms, reply.data)
            for reply in batch.replies
        ],
        past,
        [],
        held,
        batch.forgets,
        batch.reholds,  # type: ignore[arg-type]  # which are tuples
        batch.drops,
    )


encode_change = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Change).decode


def decode_change(data: bytes) -> Change:
    """A record of the journal; one that is older than a counter lacks it."""
    change = _decode(data)
    for n, (id, addition) in enumerate(change.touches):
        lacking = len(Count) - len(addition.counts)
        if lacking:
            counts = addition.counts + (0,) * lacking
            change.touches[n] = id, addition._replace(counts=counts)
    change.held.extend((key, until, 0) for key, until in change.kept)
    return change
