"""How rows become records: each table names its record type, once, at import.

The store keeps bytes.  The packages above define what is in them and register
it here, so that one transaction serves every kind of record.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from cairnfs.errors import StoreUnavailableException
from cairnfs.store.schema import Table

_encoder = msgspec.msgpack.Encoder()
_decoders: dict[int, Callable[[bytes], Any]] = {}
_id_of: dict[int, Callable[[Any], int]] = {}
_stamps: dict[int, Callable[[Any, int], Any]] = {}


def register(
    table: Table,
    record: type,
    id_of: Callable[[Any], int] | None = None,
    stamp: Callable[[Any, int], Any] | None = None,
) -> None:
    """Declare what the rows of `table` hold, and which of its fields is indexed.

    A transaction that is not solitary does not know its TxID.  Where a record has to hold it, it
    holds a mark instead; `stamp` makes of that record, and of the TxID that wrote its row, what
    is read.
    """
    assert table not in _decoders, f"{table.name} has a record type already"
    _decoders[table] = msgspec.msgpack.Decoder(record).decode
    if id_of is not None:
        _id_of[table] = id_of
    if stamp is not None:
        _stamps[table] = stamp


def decode_row(table: int, data: bytes, since: int) -> Any:
    """The record of a row, which the transaction `since` has written."""
    try:
        record = _decoders[table](data)
    except msgspec.MsgspecError as error:
        raise StoreUnavailableException(
            f"the namespace is damaged: a row of {Table(table).name}, of TxID {since}, can't be"
            f" read ({error}); bring back a copy of it, all its files together"
        ) from error
    stamp = _stamps.get(table)
    return record if stamp is None else stamp(record, since)


def stamped(table: int, record: Any, txid: int) -> Any:
    """What is read of a record that the transaction `txid` has written."""
    stamp = _stamps.get(table)
    return record if stamp is None or record is None else stamp(record, txid)


def is_unstamped(table: int, record: Any) -> bool:
    """Whether a record holds a TxID that nobody knows yet."""
    return stamped(table, record, 0) is not record


def decode(table: int, data: bytes) -> Any:
    return _decoders[table](data)


encode = _encoder.encode


def id_of(table: int, record: Any) -> int | None:
    """The number a record can be found by, besides its key."""
    function = _id_of.get(table)
    return None if function is None else function(record)
