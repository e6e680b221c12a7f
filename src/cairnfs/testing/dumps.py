"""Everything that is in a store, so that two of them can be compared.

Numbers are taken in ranges, and what a dead NameNode has not used of one is lost: so two
namespaces with the same history may have other inode ids.  Here each id is replaced by its
place among all of them.  TxIDs, times and all the rest are what they are.

Invariant: ids of inodes are the only numbers from `FIRST_INODE_ID` up to `INODE_ID_MAX`; so lengths
and TxIDs of a namespace that is to be compared stay below, block sizes and ids of blocks above.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import apsw
import asyncpg
import msgspec

from cairnfs.namenode.opening import sqlite_path
from cairnfs.store.base import Count, decode_totals
from cairnfs.store.schema import FIRST_INODE_ID, INDEX, NUMBER, PAIR, Table
from cairnfs.transaction.records import decode

INODE_ID_MAX = 2**20 - 1

_RECORDS = "SELECT t, a, b, id, since, data FROM records"
_PAST = "SELECT t, a, b, id, since, until, data FROM past"
_COUNTS = ", ".join(f"sum({count.name.lower()})" for count in Count)
_TOTALS = f"SELECT id, {_COUNTS} FROM totals GROUP BY id"
_TIMES = "SELECT id, mtime_ms, touched FROM totals ORDER BY touched"
_REPLIES = "SELECT client_id, txid, data FROM replies"
_CLOCK = "SELECT txid FROM clock"

_NUMBERS = {
    Table.LEASES,
    Table.ORPHANS,
    Table.SNAPSHOTTABLE,
    Table.SCHEDULES,
    Table.CONTENTS,
    Table.IDENTITIES,
    Table.MARKS,
    Table.HOLDS,
}
"""Tables whose rows are found by an id, and those by a TxID and an id."""
_PAIRS = {Table.MOMENTS, Table.HELD, Table.REMOVALS, Table.LAYERED}


class Dump(NamedTuple):
    """All rows; `differences` tells what two of them do not share."""

    rows: frozenset[str]

    def differences(self, other: Dump) -> list[str]:
        return [
            *(f"- {row}" for row in sorted(self.rows - other.rows)),
            *(f"+ {row}" for row in sorted(other.rows - self.rows)),
        ]


async def dump_store(url: str) -> Dump:
    """Of a store that nobody has open, if it is a file."""
    if url.startswith("sqlite"):
        connection = apsw.Connection(str(sqlite_path(url)), flags=apsw.SQLITE_OPEN_READONLY)
        try:
            tables = [
                connection.execute(query).fetchall()
                for query in (_RECORDS, _PAST, _TOTALS, _TIMES, _REPLIES, _CLOCK)
            ]
        finally:
            connection.close()
        return _Namer(*tables).dump(with_past_totals=True)
    shared = await asyncpg.connect(url, server_settings={"search_path": "cairnfs"})
    try:
        tables = [
            [tuple(row) for row in await shared.fetch(query)]
            for query in (_RECORDS, _PAST, _TOTALS, _TIMES, _REPLIES, _CLOCK)
        ]
    finally:
        await shared.close()
    # Past totals are kept for each NameNode apart: who did what is no part of the result.
    return _Namer(*tables).dump(with_past_totals=False)


class _Namer:
    """Makes text of rows, in which ids are replaced by their places."""

    def __init__(self, records: Any, past: Any, totals: Any, times: Any, replies: Any, clock: Any):
        self._records = [
            ("row", self._key(*row[:3]), row[3], self._since(row), self._value(row[0], row[-1]))
            for row in records
            if row[0] != Table.MOMENT_CHANGES  # for those who had looked before
        ]
        self._past = [
            (self._key(*row[:3]), row[3], *row[4:-1], self._value(row[0], row[-1])) for row in past
        ]
        self._totals = [("totals", id, [int(number) for number in row]) for id, *row in totals]
        latest = {id: (mtime_ms, touched) for id, mtime_ms, touched in times}
        self._times = [("times", id, *time) for id, time in latest.items()]
        self._replies = [("reply", *row) for row in replies]
        self._clock = [("clock", *row) for row in clock]

    def dump(self, *, with_past_totals: bool) -> Dump:
        past = [
            ("past", *row) for row in self._past if with_past_totals or row[0][0] != Table.TOTALS
        ]
        rows: list[Any] = [*self._records, *past, *self._totals, *self._times, *self._clock]
        ids = sorted(set(_ids(rows)))
        places = {id: f"#{place}" for place, id in enumerate(ids)}
        return Dump(frozenset(repr(_rename(row, places)) for row in [*rows, *self._replies]))

    @staticmethod
    def _since(row: Any) -> int:
        # When an orphan was found to be held depends on where reclaiming has begun again.
        return 0 if row[0] in (Table.HELD, Table.HOLDS) else int(row[4])

    @staticmethod
    def _key(table: int, a: int, b: bytes) -> tuple[Any, ...]:
        if table in _NUMBERS and (a == 0 or table in (Table.MARKS, Table.HOLDS)) and b:
            return (table, a, *NUMBER.unpack(b))
        if table in _PAIRS and a == 0:
            return (table, a, *PAIR.unpack(b))
        if table == Table.BLOCKS:
            return (table, a, *INDEX.unpack(b))
        return (table, a, b)

    @staticmethod
    def _value(table: int, data: bytes) -> Any:
        if table == Table.TOTALS:
            return tuple(decode_totals(data))
        return msgspec.to_builtins(decode(table, data))


def _ids(value: Any) -> Iterator[int]:
    if isinstance(value, int):
        if FIRST_INODE_ID <= value <= INODE_ID_MAX:
            yield value
    elif isinstance(value, Iterable) and not isinstance(value, str | bytes):
        for each in value:
            yield from _ids(each)


def _rename(value: Any, places: dict[int, str]) -> Any:
    if isinstance(value, int):
        return places.get(value, value)
    if isinstance(value, list | tuple):
        return [_rename(each, places) for each in value]
    return value
