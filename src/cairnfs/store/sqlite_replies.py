"""Replies to calls that must not run twice, in a SQLite file.

A row of the table holds what was replied to one client at about one time: to the calls of one
batch, or of all the batches that went to the tables together.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import apsw
import msgspec

# Of a row with several blobs: no message of msgpack begins with it.
_SEVERAL = b"\xc1"
_EXPIRY_STEP_MS = 1000  # replies of one row differ by less

_INSERT = (
    "INSERT INTO replies (client_id, last_call, txid, first_call, expires_ms, calls, data)"
    " VALUES (?, ?, ?, ?, ?, ?, ?)"
)
_SELECT = (
    "SELECT calls, data FROM replies WHERE client_id = ? AND last_call >= ? AND first_call <= ?"
)
_SELECT_LAST = "SELECT max(last_call) FROM replies WHERE client_id = ?"

Fetch = Callable[[str, Sequence[Any]], list[Any]]


class Replies(NamedTuple):
    """Replies to one client's calls, in ascending order of their numbers."""

    client_id: bytes
    calls: tuple[int, ...]
    txid: int
    expires_ms: int
    data: bytes


def find_stored(fetch: Fetch, client_id: bytes, call_id: int) -> list[bytes]:
    """Blobs that may hold the reply to a call."""
    found: list[bytes] = []
    for _, data in fetch(_SELECT, (client_id, call_id, call_id)):
        if data.startswith(_SEVERAL):
            found += [blob for calls, blob in _decode(data[1:]) if calls[0] <= call_id <= calls[-1]]
        else:
            found.append(data)
    return found


def has_stored(fetch: Fetch, client_id: bytes, calls: Sequence[int]) -> bool:
    """Whether one of these calls, in ascending order, has a reply."""
    rows = fetch(_SELECT, (client_id, calls[0], calls[-1]))
    return any(not _unpack_calls(packed).isdisjoint(calls) for packed, _ in rows)


def insert(db: apsw.Connection, by_client: dict[bytes, list[Replies]]) -> None:
    """Write replies, those of a client that expire together as one row."""
    rows: list[tuple[bytes, int, int, int, int, bytes, bytes]] = []
    for client_id in sorted(by_client):
        for several in _expiring_together(by_client[client_id]):
            calls, data = _join(several)
            txid, expires_ms = several[-1].txid, max(each.expires_ms for each in several)
            row = (txid, calls[0], expires_ms, _pack_calls(calls), data)
            rows.append((client_id, calls[-1], *row))
    db.executemany(_INSERT, rows)


def last_stored(fetch: Fetch, client_id: bytes) -> list[int]:
    """The largest number of a call that the table has a reply to, if any."""
    ((last,),) = fetch(_SELECT_LAST, (client_id,))
    return [] if last is None else [last]


def _expiring_together(replies: list[Replies]) -> Iterator[list[Replies]]:
    several: list[Replies] = []
    for each in replies:
        if several and each.expires_ms - several[0].expires_ms >= _EXPIRY_STEP_MS:
            yield several
            several = []
        several.append(each)
    if several:
        yield several


def _join(several: list[Replies]) -> tuple[Sequence[int], bytes]:
    """All their calls, and their blobs as one."""
    if len(several) == 1 and not several[0].data.startswith(_SEVERAL):
        return several[0].calls, several[0].data
    calls = sorted(call for each in several for call in each.calls)
    return calls, _SEVERAL + _encode([(each.calls, each.data) for each in several])


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[tuple[tuple[int, ...], bytes]]).decode


def _pack_calls(calls: Sequence[int]) -> bytes:
    return struct.pack(f">{len(calls)}q", *calls)


def _unpack_calls(packed: bytes) -> set[int]:
    return {call for (call,) in struct.iter_unpack(">q", packed)}
