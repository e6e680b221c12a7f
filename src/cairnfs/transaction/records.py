"""How rows become records: each table names its record type, once, at import.

The store keeps bytes.  The packages above define what is in them and register
it here, so that one transaction serves every kind of record.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from cairnfs.store.schema import Table

_encoder = msgspec.msgpack.Encoder()
_decoders: dict[int, Callable[[bytes], Any]] = {}
_id_of: dict[int, Callable[[Any], int]] = {}


def register(table: Table, record: type, id_of: Callable[[Any], int] | None = None) -> None:
    """Declare what the rows of `table` hold, and which of its fields is indexed."""
    assert table not in _decoders, f"{table.name} has a record type already"
    _decoders[table] = msgspec.msgpack.Decoder(record).decode
    if id_of is not None:
        _id_of[table] = id_of


def decode(table: int, data: bytes) -> Any:
    return _decoders[table](data)


encode = _encoder.encode


def id_of(table: int, record: Any) -> int | None:
    """The number a record can be found by, besides its key."""
    function = _id_of.get(table)
    return None if function is None else function(record)
