"""Batches and readings as arguments of statements, and rows as what was found (pure).

One statement carries a whole reading, so all of it is one moment and one round trip;
one call of `cairn_commit` carries a whole batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any

import msgspec

from cairnfs.store.base import (
    ABSENT,
    NO_TOTALS,
    Count,
    Found,
    Reading,
    Row,
    Scan,
    Totals,
    decode_totals,
)
from cairnfs.store.batches import Batch, Touch
from cairnfs.store.schema import REPLY_RETENTION_MS, Key

# Arguments of the functions: N a number, T integer[], I bigint[], S text[], B bytea[].
# Arrays of numbers and of bytes are sent as text, since asyncpg looks twice at each element
# of an array.
_READS = "TIBI"
_OUTCOME = "TIITI"
_CHANGES = f"TIBTITIB{2 * 'TIBITB'}IITIIIITIBITIBIIBSBN"
_COMMIT = f"NNNNN{_READS}{_CHANGES}{_OUTCOME}"
_CHECK = f"NN{_READS}{_OUTCOME}"
_CASTS = {"T": "::text::integer[]", "I": "::text::bigint[]", "B": "::text::bytea[]"}


def _call(function: str, kinds: str) -> str:
    places = (f"${n}{_CASTS.get(kind, '')}" for n, kind in enumerate(kinds, 1))
    return f"SELECT {function}({', '.join(places)})"


_CALL_COMMIT = _call("cairn_commit", _COMMIT)
_CALL_CHECK = _call("cairn_check", _CHECK)

# Counters of a touch: those of entries, and those of space, which most batches leave alone.
_SPACE = (*range(Count.LENGTH_BYTES, Count.NVDIMM_BYTES + 1), int(Count.RESERVED_BYTES))
_ENTRIES = (
    int(Count.CHILDREN),
    int(Count.FILES),
    int(Count.DIRECTORIES),
    int(Count.SYMLINKS),
    int(Count.INODES),
    int(Count.SNAPSHOTS),
)

_KEYS, _IDS, _SCANS, _TOTALS, _CLOCK = range(5)
_PAST_KEYS, _PAST_IDS, _PAST_SCANS, _PAST_TOTALS = range(5, 9)

# Arguments of each part.
_WIDTHS = {_KEYS: 5, _IDS: 2, _SCANS: 4, _TOTALS: 1, _CLOCK: 0}
_WIDTHS |= {_PAST_KEYS: 5, _PAST_IDS: 3, _PAST_SCANS: 7, _PAST_TOTALS: 2}
_PARTS = {
    _KEYS: (
        "SELECT {part}, u.n, NULL::bigint, NULL::bytea, r.since, r.data, NULL::bigint[]"
        " FROM (SELECT unnest({0}::text::integer[]), unnest({1}::text::bigint[]),"
        " unnest({2}::text::bytea[]), unnest({3}::text::bigint[]),"
        " generate_series(1, {4}::integer)) u (t, a, b, since, n)"
        " LEFT JOIN records r ON r.t = u.t AND r.a = u.a AND r.b = u.b"
        " WHERE coalesce(r.since, 0) <> u.since"
    ),
    _IDS: (
        "SELECT {part}, u.n, r.a, r.b, r.since, r.data, NULL::bigint[]"
        " FROM unnest({0}::text::integer[], {1}::text::bigint[]) WITH ORDINALITY u (t, id, n)"
        " JOIN records r ON r.id = u.id AND r.t = u.t AND r.id IS NOT NULL"
    ),
    _SCANS: (
        "SELECT {part}, u.n, u.a, r.b, r.since, r.data, NULL::bigint[]"
        " FROM unnest({0}::text::integer[], {1}::text::bigint[], {2}::text::bytea[],"
        " {3}::text::bigint[])"
        " WITH ORDINALITY u (t, a, after, most, n)"
        " CROSS JOIN LATERAL (SELECT b, since, data FROM records"
        " WHERE t = u.t AND a = u.a AND b > u.after ORDER BY t, a, b LIMIT u.most) r"
    ),
    _TOTALS: (
        "SELECT {part}, u.n, s.mtime_ms, NULL::bytea, s.touched, NULL::bytea,"
        f" ARRAY[{', '.join(f's.{count.name.lower()}' for count in Count)}, s.changed]"
        " FROM unnest({0}::text::bigint[]) WITH ORDINALITY u (id, n) JOIN totals s ON s.id = u.id"
    ),
    # The same as they were after a TxID: current still, or among the past rows.  Where `a` is
    # known, `until` takes its place: an array would take longer to be read than all the rest.
    _PAST_KEYS: (
        "SELECT {part}, u.n, r.until, NULL::bytea, r.since, r.data, NULL::bigint[]"
        " FROM (SELECT unnest({0}::text::integer[]), unnest({1}::text::bigint[]),"
        " unnest({2}::text::bytea[]), unnest({3}::text::bigint[]),"
        " generate_series(1, {4}::integer)) u (t, a, b, txid, n)"
        " CROSS JOIN LATERAL (SELECT since, data, 0::bigint AS until FROM records"
        " WHERE t = u.t AND a = u.a AND b = u.b AND since <= u.txid"
        " UNION ALL SELECT since, data, until FROM past"
        " WHERE t = u.t AND a = u.a AND b = u.b AND until > u.txid AND since <= u.txid) r"
    ),
    _PAST_IDS: (
        "SELECT {part}, u.n, r.a, r.b, r.since, r.data, ARRAY[r.until]"
        " FROM unnest({0}::text::integer[], {1}::text::bigint[], {2}::text::bigint[])"
        " WITH ORDINALITY u (t, id, txid, n)"
        " CROSS JOIN LATERAL (SELECT a, b, since, data, 0::bigint AS until FROM records"
        " WHERE id = u.id AND t = u.t AND id IS NOT NULL AND since <= abs(u.txid)"
        " UNION ALL SELECT a, b, since, data, until FROM past"
        " WHERE id = u.id AND t = u.t AND id IS NOT NULL AND until > u.txid"
        " AND since <= abs(u.txid)) r"  # see EVERY_TIME
    ),
    _PAST_SCANS: (
        "SELECT {part}, u.n, r.until, r.b, r.since, r.data, NULL::bigint[]"
        " FROM unnest({0}::text::integer[], {1}::text::bigint[], {2}::text::bytea[],"
        " {3}::text::bigint[], {4}::text::bigint[], {5}::text::bigint[], {6}::text::bigint[])"
        " WITH ORDINALITY u (t, a, after, most, first, last, txid, n)"
        " CROSS JOIN LATERAL cairn_scan_past("
        "u.t, u.a, u.after, u.most, u.first, u.last, u.txid) r"
    ),
    _PAST_TOTALS: (
        "SELECT {part}, u.n, s.mtime_ms, NULL::bytea, s.touched, s.data,"
        " s.counts || s.changed"
        " FROM unnest({0}::text::bigint[], {1}::text::bigint[]) WITH ORDINALITY u (id, txid, n)"
        " CROSS JOIN LATERAL (SELECT mtime_ms, touched, NULL::bytea AS data, changed,"
        f" ARRAY[{', '.join(count.name.lower() for count in Count)}] AS counts"
        " FROM totals WHERE id = u.id AND changed <= u.txid"
        " UNION ALL SELECT NULL, NULL, data, since, NULL FROM past"
        " WHERE t = 100 AND a = u.id AND until > u.txid AND since <= u.txid) s"
    ),
    _CLOCK: (
        "SELECT {part}, 0, NULL::bigint, NULL::bytea, txid, NULL::bytea, NULL::bigint[]"
        " FROM clock WHERE one = 1"
    ),
}

_READ_KEYS = (
    "SELECT u.n, r.since, r.data FROM (SELECT unnest($1::text::integer[]),"
    " unnest($2::text::bigint[]), unnest($3::text::bytea[]), unnest($4::text::bigint[]),"
    " generate_series(1, $5::integer)) u (t, a, b, since, n)"
    " LEFT JOIN records r ON r.t = u.t AND r.a = u.a AND r.b = u.b"
    " WHERE coalesce(r.since, 0) <> u.since"
)


def read_statement(reading: Reading) -> tuple[str, list[Any]]:
    """The statement for a reading that is not empty, and its arguments."""
    arguments: list[Any] = []
    parts = []
    if reading.keys:
        t, a, b = zip(*reading.keys, strict=True)
        parts.append(_KEYS)
        versions = [reading.known_versions.get(key, ABSENT) for key in reading.keys]
        arguments += numbers(t), numbers(a), texts(b), numbers(versions), len(b)
    if reading.ids:
        t, ids = zip(*reading.ids, strict=True)
        parts.append(_IDS)
        arguments += numbers(t), numbers(ids)
    if reading.scans:
        t, a, after, limits = zip(*(scan[:4] for scan in reading.scans), strict=True)
        parts.append(_SCANS)
        arguments += numbers(t), numbers(a), texts(after), numbers(limits)
    if reading.totals:
        parts += _TOTALS, _CLOCK
        arguments.append(numbers(reading.totals))
    if reading.past:
        more, past_arguments = _past_parts(reading)
        parts += more
        arguments += past_arguments
    return (_READ_KEYS if parts == [_KEYS] else _union(tuple(parts))), arguments


def _past_parts(reading: Reading) -> tuple[list[int], list[Any]]:
    """What is to be read as it was, and the arguments for that."""
    parts, arguments = [], list[Any]()
    keys, ids, scans, totals = past_columns(reading)
    if keys:
        t, a, b, txids = zip(*((*key, txid) for txid, key in keys), strict=True)
        parts.append(_PAST_KEYS)
        arguments += numbers(t), numbers(a), texts(b), numbers(txids), len(b)
    if ids:
        t, each, txids = zip(*((*pair, txid) for txid, pair in ids), strict=True)
        parts.append(_PAST_IDS)
        arguments += numbers(t), numbers(each), numbers(txids)
    if scans:
        t, a, b, *others = zip(*((*scan, txid) for txid, scan in scans), strict=True)
        parts.append(_PAST_SCANS)
        arguments += numbers(t), numbers(a), texts(b), *map(numbers, others)
    if totals:
        txids, each = zip(*totals, strict=True)
        parts.append(_PAST_TOTALS)
        arguments += numbers(each), numbers(txids)
    return parts, arguments


def past_columns(
    reading: Reading,
) -> tuple[
    list[tuple[int, Key]],
    list[tuple[int, tuple[int, int]]],
    list[tuple[int, Scan]],
    list[tuple[int, int]],
]:
    """Keys, ids, scans and totals of all TxIDs, each with its TxID."""
    past = reading.past.items()
    return (
        [(txid, key) for txid, each in past for key in each.keys],
        [(txid, pair) for txid, each in past for pair in each.ids],
        [(txid, scan) for txid, each in past for scan in each.scans],
        [(txid, id) for txid, each in past for id in each.totals],
    )


@cache
def _union(parts: tuple[int, ...]) -> str:
    selects = []
    used = 0
    for part in parts:
        places = [f"${used + n}" for n in range(1, _WIDTHS[part] + 1)]
        selects.append(_PARTS[part].format(*places, part=part))
        used += len(places)
    return " UNION ALL ".join(selects)


def collect(reading: Reading, records: Sequence[Any]) -> Found:
    """What the statement of `read_statement` has found."""
    found = Found()
    if not (reading.ids or reading.scans or reading.totals or reading.past):
        _collect_rows(reading, found, records)
        return found
    found.ids = {pair: [] for pair in reading.ids}
    found.scans = {scan: [] for scan in reading.scans}
    found.totals = dict.fromkeys(reading.totals, NO_TOTALS)
    if reading.past:
        records = _collect_past(reading, found, records)
    rows = []
    for part, n, a, b, since, data, counts in records:
        if part == _KEYS:
            rows.append((n, since, data))
        elif part == _IDS:
            pair = reading.ids[n - 1]
            found.ids[pair].append(Row((pair[0], a, b), since, data))
        elif part == _SCANS:
            scan = reading.scans[n - 1]
            found.scans[scan].append(Row((scan.table, a, b), since, data))
        elif part == _CLOCK:
            found.txid = since
        else:
            id = reading.totals[n - 1]
            shard = Totals(tuple(counts[:-1]), a, since, counts[-1])
            found.totals[id] = _add(found.totals[id], shard)
    _collect_rows(reading, found, rows)
    return found


def _collect_rows(reading: Reading, found: Found, records: Sequence[Any]) -> None:
    """The rows that are not as they were known; of one that is gone there is but its place."""
    known = reading.known_versions.keys()
    if not records:
        found.unchanged = known
        return
    told = set()
    for n, since, data in records:
        key = reading.keys[n - 1]
        told.add(key)
        if since is not None:
            found.rows[key] = Row(key, since, data)
    found.unchanged = known - told


def _collect_past(reading: Reading, found: Found, records: Sequence[Any]) -> list[Any]:
    """Sort out what was read as it was; the other records are returned."""
    for txid, each in reading.past.items():
        found.past[txid] = Found(
            ids={pair: [] for pair in each.ids},
            scans={scan: [] for scan in each.scans},
            totals=dict.fromkeys(each.totals, NO_TOTALS),
        )
    keys, ids, scans, totals = past_columns(reading)
    others = []
    for record in records:
        part, n, a, b, since, data, counts = record
        if part == _PAST_KEYS:
            txid, key = keys[n - 1]
            found.past[txid].rows[key] = Row(key, since, data, a)
        elif part == _PAST_IDS:
            txid, pair = ids[n - 1]
            found.past[txid].ids[pair].append(Row((pair[0], a, b), since, data, *counts))
        elif part == _PAST_SCANS:
            txid, scan = scans[n - 1]
            found.past[txid].scans[scan].append(Row((scan.table, scan.a, b), since, data, a))
        elif part == _PAST_TOTALS:
            txid, id = totals[n - 1]
            if data is None:
                shard = Totals(tuple(counts[:-1]), a, since, counts[-1])
            else:
                shard = decode_totals(data)._replace(changed=counts[-1])
            found.past[txid].totals[id] = _add(found.past[txid].totals[id], shard)
        else:
            others.append(record)
    return others


def _add(left: Totals, right: Totals) -> Totals:
    """Two shards of one directory: counts add up, the later time stands."""
    latest = left if left.touched > right.touched else right
    counts = tuple(map(int.__add__, left.counts, right.counts))
    return Totals(counts, latest.mtime_ms, latest.touched, max(left.changed, right.changed))


def batch_statement(batch: Batch) -> tuple[str, list[Any]]:
    """The statement that validates and applies a batch, and its arguments."""
    if batch.size:
        return _CALL_COMMIT, _commit_arguments(batch)
    return _CALL_CHECK, _check_arguments(batch)


def change_arguments(batch: Batch) -> list[Any]:
    """Those of `cairn_commit` that tell what is to be changed; an empty list goes as NULL."""
    new = [put for put in batch.puts if not put.replaces]
    changed = [put for put in batch.puts if put.replaces] if len(new) < len(batch.puts) else []
    arguments = _keyed(batch.keeps, 2)
    arguments += zip(*batch.deletes, strict=True) if batch.deletes else (None,) * 3
    for puts in (new, changed):
        if puts:
            arguments += zip(*[put.key for put in puts], strict=True)
            arguments.append([-1 if put.id is None else put.id for put in puts])
            arguments.append([put.order for put in puts])
            arguments.append([put.data for put in puts])
        else:
            arguments += (None,) * 6
    arguments += _touches(batch.touches)
    arguments.append(batch.drops or None)
    arguments += _keyed(batch.forgets, 1)
    arguments += _keyed(batch.reholds, 2)
    arguments += _replies(batch)
    arguments.append(batch.now_ms + REPLY_RETENTION_MS)
    return _as_text(arguments, _CHANGES)


def _commit_arguments(batch: Batch) -> list[Any]:
    """The arguments of `cairn_commit`."""
    return [
        *(batch.size, batch.shard, *(batch.member or (None, None, None))),
        *_as_text(_reads(batch), _READS),
        *(batch.encoded_changes or change_arguments(batch)),
        *_as_text(_outcome(batch), _OUTCOME),
    ]


def _check_arguments(batch: Batch) -> list[Any]:
    """The arguments of `cairn_check`, for a batch that changes nothing."""
    member = batch.member
    identity = (None, None) if member is None else (member.id, member.epoch)
    return _as_text([*identity, *_reads(batch), *_outcome(batch)], _CHECK)


def numbers(values: Sequence[int]) -> str:
    """An array of numbers as PostgreSQL reads it: that of JSON, but for its brackets."""
    return "{" + _encode_numbers(values)[1:-1].decode() + "}"


_encode_numbers = msgspec.json.Encoder().encode


def texts(values: Iterable[bytes]) -> str:
    """A non-empty array of bytes as PostgreSQL reads it."""
    return r"{\\x" + r",\\x".join([value.hex() for value in values]) + "}"


_AS_TEXT: dict[str, Callable[[Any], str]] = {"T": numbers, "I": numbers, "B": texts}


def _as_text(arguments: list[Any], kinds: str) -> list[Any]:
    return [
        _AS_TEXT[kind](argument) if kind in _AS_TEXT and argument is not None else argument
        for argument, kind in zip(arguments, kinds, strict=True)
    ]


def _replies(batch: Batch) -> list[Any]:
    if not batch.replies:
        return [None] * 3
    return [
        [reply.client_id for reply in batch.replies],
        [numbers(reply.calls) for reply in batch.replies],
        [reply.data for reply in batch.replies],
    ]


def _reads(batch: Batch) -> list[Any]:
    if not batch.reads:
        return [None] * 4
    return [*zip(*batch.reads, strict=True), list(batch.reads.values())]


def _keyed(items: Sequence[tuple[Any, ...]], more: int) -> list[Any]:
    """Columns of tuples that begin with a key."""
    if not items:
        return [None] * (3 + more)
    keys, *rest = zip(*items, strict=True)
    return [*zip(*keys, strict=True), *rest]


def _outcome(batch: Batch) -> list[Any]:
    empties = zip(*batch.empties, strict=True) if batch.empties else (None,) * 2
    bounds = zip(*batch.bounds, strict=True) if batch.bounds else (None,) * 3
    return [*empties, *bounds]


def _touches(touches: Sequence[Touch]) -> list[Any]:
    if not touches:
        return [None] * 6
    if len({touch.id for touch in touches}) < len(touches):
        touches = _merge(touches)
    counts = [touch.counts for touch in touches]
    space = [vector[count] for vector in counts for count in _SPACE]
    covered = [touch.covered for touch in touches]
    return [
        [touch.id for touch in touches],
        [touch.mtime_ms for touch in touches],
        [touch.order for touch in touches],
        [vector[count] for vector in counts for count in _ENTRIES],
        space if any(space) else None,
        covered if any(covered) else None,
    ]


def _merge(touches: Iterable[Touch]) -> list[Touch]:
    """One touch for each directory: PostgreSQL updates a row but once in a statement."""
    merged: dict[int, Touch] = {}
    for touch in touches:
        old = merged.get(touch.id)
        if old is not None:
            counts = [x + y for x, y in zip(old.counts, touch.counts, strict=True)]
            # As if applied one after the other: the later one that has a time sets it.
            timed = touch if touch.order else old
            order, covered = max(old.order, touch.order), max(old.covered, touch.covered)
            touch = Touch(touch.id, counts, timed.mtime_ms, order, covered)
        merged[touch.id] = touch
    return list(merged.values())


def keys_at(keys: Sequence[Key], positions: Iterable[int]) -> list[Key]:
    """Keys by the positions, from 1, that the server reports."""
    return [keys[position - 1] for position in positions]
