"""What `store.base` promises, as checks that every store passes.

A check is a coroutine method of `StoreConformance`, named after the promise.  It gets
an empty namespace with two handles on it: two stores on one database, or twice the
same store where only one process can open it.  `PROMISES` lists the names;
tests/store/test_conformance.py runs each of them for each store.
"""

from __future__ import annotations

from collections.abc import Awaitable

from cairnfs.store.base import (
    ABSENT,
    EVERY_TIME,
    NO_TOTALS,
    PRESENT,
    Conflict,
    Count,
    PastRow,
    Reading,
    Row,
    Scan,
    Store,
    Totals,
)
from cairnfs.store.batches import Batch, Bound, Keep, Put, Rehold, StoredReply, Touch
from cairnfs.store.schema import COUNTERS, REPLY_RETENTION_MS, SCHEMA_VERSION, Key
from cairnfs.testing.conformance_concurrency import ConcurrencyConformance

A: Key = (0, 1, b"a")
B: Key = (0, 1, b"b")
C: Key = (0, 2, b"c")
FORMATTED_WITH = {"cluster": "conformance"}


def counts(**changes: int) -> list[int]:
    """A vector of counters, zero but for those named."""
    return [changes.get(count.name.lower(), 0) for count in Count]


def put(key: Key, data: bytes = b"", *, order: int = 1, id: int | None = None) -> Put:
    """A row whose key must be new."""
    return Put(key, id, order, data, False)


def replace(key: Key, data: bytes = b"", *, order: int = 1, id: int | None = None) -> Put:
    """A row whose key must be there."""
    return Put(key, id, order, data, True)


async def rows_of(store: Store, *keys: Key) -> dict[Key, Row]:
    return (await store.read(Reading(keys=list(keys)))).rows


async def totals_of(store: Store, id: int) -> Totals:
    """The totals, whenever they were last added to."""
    return (await store.read(Reading(totals=[id]))).totals[id]._replace(changed=0)


async def last_txid(store: Store) -> int:
    async with store.transaction() as transaction:
        return await transaction.take_clock()


async def conflict_of(commit: Awaitable[int]) -> Conflict:
    """The conflict that a commit must end in."""
    try:
        await commit
    except Conflict as conflict:
        return conflict
    raise AssertionError("committed in spite of a conflict")


class StoreConformance(ConcurrencyConformance):
    """See the module's text.  Checks on one handle are here, on two in the base class."""

    async def check_a_new_namespace_is_empty(self) -> None:
        assert await last_txid(self.store) == 0
        found = await self.store.read(
            Reading(keys=[A], ids=[(0, 1)], scans=[Scan(0, 1, b"", 9)], totals=[1])
        )
        assert found.rows == {}
        assert found.ids == {(0, 1): []}
        assert found.scans == {Scan(0, 1, b"", 9): []}
        assert found.totals == {1: NO_TOTALS}

    async def check_an_empty_reading_finds_nothing(self) -> None:
        found = await self.store.read(Reading())
        assert (found.rows, found.ids, found.scans, found.totals) == ({}, {}, {}, {})

    async def check_meta_is_what_was_formatted(self) -> None:
        expected = {**FORMATTED_WITH, "schema version": str(SCHEMA_VERSION)}
        assert await self.store.meta() == expected

    # Rows and versions.

    async def check_a_version_is_the_txid_that_wrote_it(self) -> None:
        batch = Batch(size=3, now_ms=0, puts=[put(A, b"1", order=1), put(B, b"2", order=3)])
        assert await self.store.commit(batch) == 0
        assert await rows_of(self.store, A, B, C) == {A: Row(A, 1, b"1"), B: Row(B, 3, b"2")}
        assert await self.store.commit(Batch(size=1, now_ms=0, puts=[replace(A, b"3")])) == 3
        assert await rows_of(self.store, A) == {A: Row(A, 4, b"3")}

    async def check_a_batch_puts_replaces_deletes_and_renames(self) -> None:
        await self.store.commit(Batch(size=1, now_ms=0, puts=[put(A, b"a", id=7), put(B, b"b")]))
        batch = Batch(size=2, now_ms=0, reads={A: 1, B: 1, C: ABSENT})
        batch.deletes = [A]
        batch.puts = [put(C, b"a", id=7), replace(B, b"bb", order=2)]
        await self.store.commit(batch)
        found = await self.store.read(Reading(keys=[A, B, C], ids=[(0, 7)]))
        assert found.rows == {B: Row(B, 3, b"bb"), C: Row(C, 2, b"a")}
        assert found.ids == {(0, 7): [Row(C, 2, b"a")]}

    async def check_a_deleted_row_is_absent_and_its_key_new(self) -> None:
        await self.store.commit(Batch(size=1, now_ms=0, puts=[put(A)]))
        await self.store.commit(Batch(size=1, now_ms=0, deletes=[A]))
        assert await rows_of(self.store, A) == {}
        await self.store.commit(Batch(size=1, now_ms=0, reads={A: ABSENT}, puts=[put(A, b"2")]))
        assert await rows_of(self.store, A) == {A: Row(A, 3, b"2")}

    async def check_what_is_prepared_is_committed_under_conditions_of_its_own(self) -> None:
        await self.store.commit(Batch(size=1, now_ms=0, puts=[put(A, b"a")]))
        batch = Batch(size=2, now_ms=0, puts=[replace(A, b"aa"), put(B, b"b", order=2)])
        batch.touches = [Touch(1, counts(files=2), 0, 0)]
        self.store.prepare(batch)
        batch.reads = {C: 1}
        assert (await conflict_of(self.store.commit(batch))).keys == {C}
        batch.reads = {A: 1, C: ABSENT}
        assert await self.store.commit(batch) == 1
        assert await rows_of(self.store, A, B) == {A: Row(A, 2, b"aa"), B: Row(B, 3, b"b")}
        assert (await totals_of(self.store, 1)).counts[Count.FILES] == 2

    async def check_rows_that_are_known_are_the_same_or_told(self) -> None:
        """Whether a store tells again what is known is its own affair."""
        puts = [put(A, b"a", id=7), put(B, b"b"), put(C, b"c")]
        await self.store.commit(Batch(size=1, now_ms=0, puts=puts))
        batch = Batch(size=1, now_ms=0, puts=[replace(B, b"bb")], deletes=[C])
        await self.store.commit(batch)
        d = (0, 1, b"unknown")
        for more in (Reading(), Reading(ids=[(0, 7)], totals=[1])):
            for known in ({A: 1, B: 1, C: 1}, {A: 1}, {B: 2}, {C: 1}, {A: 2, B: 2}, {}):
                keys = [A, B, C, d]
                reading = Reading(keys, more.ids, totals=more.totals, known_versions=dict(known))
                found = await self.store.read(reading)
                assert set(found.unchanged) <= {key for key in keys if known.get(key) in (1, 2)}
                for key, row in ((A, Row(A, 1, b"a")), (B, Row(B, 2, b"bb"))):
                    is_same = key in found.unchanged and known[key] == row.since
                    assert is_same or found.rows[key] == row
                    assert not (key in found.unchanged and key in found.rows)
                for key in (C, d):
                    assert key not in found.rows
                    assert key not in found.unchanged

    async def check_rows_are_found_by_id_and_table(self) -> None:
        puts = [put((0, 1, b"x"), id=5), put((1, 5, b"\0"), id=5), put((1, 5, b"\1"), id=5)]
        await self.store.commit(Batch(size=1, now_ms=0, puts=puts))
        found = await self.store.read(Reading(ids=[(0, 5), (1, 5), (2, 5), (0, 6)]))
        assert [row.key for row in found.ids[0, 5]] == [(0, 1, b"x")]
        assert {row.key for row in found.ids[1, 5]} == {(1, 5, b"\0"), (1, 5, b"\1")}
        assert found.ids[2, 5] == found.ids[0, 6] == []

    async def check_a_replaced_row_is_found_by_its_new_id_only(self) -> None:
        await self.store.commit(Batch(size=1, now_ms=0, puts=[put(A, id=5)]))
        await self.store.commit(Batch(size=1, now_ms=0, puts=[replace(A, id=6)]))
        found = await self.store.read(Reading(ids=[(0, 5), (0, 6)]))
        assert found.ids[0, 5] == []
        assert [row.key for row in found.ids[0, 6]] == [A]

    async def check_scans_are_in_byte_order(self) -> None:
        names = [bytes([n]) for n in range(256)] + [b"", b"\x7f\xff", b"\xff\x00", b"a\x00b"]
        await self.store.commit(Batch(size=1, now_ms=0, puts=[put((0, 9, name)) for name in names]))
        await self.store.commit(
            Batch(size=1, now_ms=0, puts=[put((0, 8, b"z")), put((1, 9, b"z"))])
        )
        everything, page = Scan(0, 9, b"", 1000), Scan(0, 9, b"\x7f", 3)
        found = await self.store.read(Reading(scans=[everything, page]))
        # `b > after`: the empty name comes after nothing, not even after b"".
        assert [row.key[2] for row in found.scans[everything]] == sorted(names)[1:]
        assert [row.key[2] for row in found.scans[page]] == [b"\x7f\xff", b"\x80", b"\x81"]

    async def check_data_and_names_are_any_bytes(self) -> None:
        key, data = (0, -(2**63), bytes(range(256)) * 4), bytes(range(256)) * 64
        await self.store.commit(Batch(size=1, now_ms=0, puts=[put(key, data, id=2**63 - 1)]))
        assert await rows_of(self.store, key) == {key: Row(key, 1, data)}

    async def check_a_reading_of_everything_is_complete(self) -> None:
        puts = [put((0, n % 3, b"%03d" % n), id=n) for n in range(90)]
        touches = [Touch(n, counts(children=n), n, 1) for n in range(5)]
        await self.store.commit(Batch(size=1, now_ms=0, puts=puts, touches=touches))
        scans = [Scan(0, a, b"", 100) for a in range(3)]
        found = await self.store.read(
            Reading(
                keys=[row.key for row in puts],
                ids=[(0, n) for n in range(90)],
                scans=scans,
                totals=list(range(6)),
            )
        )
        assert found.rows.keys() == {row.key for row in puts}
        assert all(len(found.ids[0, n]) == 1 for n in range(90))
        assert [len(found.scans[scan]) for scan in scans] == [30, 30, 30]
        assert [found.totals[n].counts[Count.CHILDREN] for n in range(6)] == [0, 1, 2, 3, 4, 0]

    async def check_a_large_batch_is_one_commit(self) -> None:
        puts = [put((0, n % 7, b"%05d" % n), b"x" * 120, order=n + 1) for n in range(5000)]
        assert await self.store.commit(Batch(size=5000, now_ms=0, puts=puts)) == 0
        assert len(await rows_of(self.store, *(row.key for row in puts))) == 5000
        assert await last_txid(self.store) == 5000

    # Conflicts: nothing is applied, the clock stands still.

    async def check_a_stale_version_conflicts(self) -> None:
        await self.store.commit(Batch(size=1, now_ms=0, puts=[put(A), put(B)]))
        await self.store.commit(Batch(size=1, now_ms=0, puts=[replace(A, b"new")]))
        batch = Batch(size=1, now_ms=0, reads={A: 1, B: 1}, puts=[put(C)])
        await self.refused(batch, keys={A})

    async def check_a_row_read_as_absent_conflicts_when_there(self) -> None:
        await self.store.commit(Batch(size=1, now_ms=0, puts=[put(A), put(B)]))
        batch = Batch(size=1, now_ms=0, reads={A: ABSENT, B: ABSENT}, deletes=[A], puts=[put(C)])
        await self.refused(batch, keys={A, B})

    async def check_a_row_that_was_read_conflicts_when_gone(self) -> None:
        await self.store.commit(Batch(size=1, now_ms=0, puts=[put(A)]))
        await self.store.commit(Batch(size=1, now_ms=0, deletes=[A]))
        await self.refused(Batch(size=1, now_ms=0, reads={A: 1}, puts=[put(C)]), keys={A})

    async def check_an_occupied_key_conflicts(self) -> None:
        await self.store.commit(Batch(size=1, now_ms=0, puts=[put(A), put(B)]))
        batch = Batch(size=1, now_ms=0, deletes=[B], puts=[put(C), put(A, b"other"), put(B)])
        batch.touches = [Touch(1, counts(children=1), 5, 1)]
        await self.refused(batch, keys={A})

    async def check_a_missing_row_to_replace_conflicts(self) -> None:
        await self.store.commit(Batch(size=1, now_ms=0, puts=[put(A)]))
        await self.refused(Batch(size=1, now_ms=0, puts=[replace(A, b"2"), replace(B)]), keys={B})

    async def check_a_prefix_that_must_be_empty_conflicts(self) -> None:
        await self.store.commit(Batch(size=1, now_ms=0, puts=[put(A), put(B)]))
        batch = Batch(size=1, now_ms=0, empties=[(0, 1), (0, 3), (1, 1)], puts=[put(C)])
        await self.refused(batch, directories={1})

    async def check_a_prefix_may_be_emptied_by_the_batch_itself(self) -> None:
        await self.store.commit(Batch(size=1, now_ms=0, puts=[put(A), put(B)]))
        await self.store.commit(Batch(size=1, now_ms=0, empties=[(0, 1)], deletes=[A, B]))
        await self.refused(
            Batch(size=1, now_ms=0, empties=[(0, 2)], puts=[put(C)]), directories={2}
        )

    async def check_a_bound_holds_after_the_batch(self) -> None:
        within = Batch(
            size=1, now_ms=0, touches=[Touch(1, counts(inodes=5, space_bytes=100), 0, 1)]
        )
        within.bounds = [Bound(1, Count.INODES, 5), Bound(2, Count.INODES, 0)]
        await self.store.commit(within)
        beyond = Batch(size=1, now_ms=0, touches=[Touch(1, counts(inodes=1), 0, 1)])
        beyond.bounds = [Bound(1, Count.SPACE_BYTES, 100), Bound(1, Count.INODES, 5)]
        await self.refused(beyond, directories={1})

    async def check_a_batch_of_reads_is_validated_and_takes_no_txid(self) -> None:
        await self.store.commit(Batch(size=1, now_ms=0, puts=[put(A)]))
        assert await self.store.commit(Batch(size=0, now_ms=0, reads={A: 1, B: ABSENT})) == 1
        assert await last_txid(self.store) == 1
        await self.refused(Batch(size=0, now_ms=0, reads={A: 2, B: 2}), keys={A, B})
        await self.refused(Batch(size=0, now_ms=0, empties=[(0, 1)]), directories={1})

    async def check_a_transaction_goes_on_after_a_conflict(self) -> None:
        await self.store.commit(Batch(size=1, now_ms=0, puts=[put(A)]))
        async with self.store.transaction() as transaction:
            await transaction.take_clock()
            for stale in (Batch(size=1, now_ms=0, puts=[put(A)]), Batch(1, 0, reads={A: 9})):
                assert (await conflict_of(transaction.commit(stale))).keys == {A}
            await transaction.commit(Batch(size=1, now_ms=0, reads={A: 1}, puts=[put(B)]))
        assert await rows_of(self.store, A, B) == {A: Row(A, 1, b""), B: Row(B, 2, b"")}

    async def check_a_transaction_is_rolled_back_unless_committed(self) -> None:
        async with self.store.transaction() as transaction:
            await transaction.take_clock()
        assert await self.store.commit(Batch(size=1, now_ms=0, puts=[put(A)])) == 0

    async def refused(
        self, batch: Batch, *, keys: set[Key] | None = None, directories: set[int] | None = None
    ) -> None:
        """The batch conflicts with exactly these, and leaves no trace."""
        touched = [row.key for row in batch.puts] + batch.deletes + list(batch.reads)
        reading = Reading(keys=touched, totals=[touch.id for touch in batch.touches])
        before, txid = await self.store.read(reading), await last_txid(self.store)
        conflict = await conflict_of(self.store.commit(batch))
        assert conflict.keys == (keys or set())
        assert conflict.directories == (directories or set())
        assert await self.store.read(reading) == before
        assert await last_txid(self.store) == txid

    # Totals.

    async def check_totals_add_up(self) -> None:
        first = Batch(size=1, now_ms=0, touches=[Touch(1, list(range(1, len(Count) + 1)), 50, 1)])
        await self.store.commit(first)
        second = Batch(size=2, now_ms=0)
        second.touches = [
            Touch(1, [-n for n in range(len(Count))], 60, 2),
            Touch(2, [1] * len(Count), 70, 1),
        ]
        await self.store.commit(second)
        assert await totals_of(self.store, 1) == Totals((1,) * len(Count), 60, 3)
        assert await totals_of(self.store, 2) == Totals((1,) * len(Count), 70, 2)

    async def check_order_zero_leaves_the_time_alone(self) -> None:
        await self.store.commit(Batch(1, 0, touches=[Touch(1, counts(files=1), 50, 1)]))
        await self.store.commit(Batch(1, 0, touches=[Touch(1, counts(files=1), 99, 0)]))
        assert await totals_of(self.store, 1) == Totals(tuple(counts(files=2)), 50, 1)
        await self.store.commit(Batch(1, 0, touches=[Touch(2, counts(files=1), 99, 0)]))
        assert await totals_of(self.store, 2) == Totals(tuple(counts(files=1)), 0, 0)

    async def check_the_time_is_the_latest_txids_even_if_earlier(self) -> None:
        await self.store.commit(Batch(1, 0, shard=1, touches=[Touch(1, counts(files=1), 500, 1)]))
        await self.store.commit(Batch(1, 0, shard=0, touches=[Touch(1, counts(files=1), 400, 1)]))
        assert await totals_of(self.store, 1) == Totals(tuple(counts(files=2)), 400, 2)
        await self.store.commit(Batch(1, 0, shard=1, touches=[Touch(1, counts(files=1), 300, 1)]))
        assert await totals_of(self.store, 1) == Totals(tuple(counts(files=3)), 300, 3)

    async def check_a_directory_may_be_touched_twice_in_a_batch(self) -> None:
        touches = [Touch(1, counts(files=1), 50, 2), Touch(1, counts(files=2), 99, 0)]
        await self.store.commit(Batch(size=2, now_ms=0, touches=touches))
        assert await totals_of(self.store, 1) == Totals(tuple(counts(files=3)), 50, 2)

    async def check_dropped_totals_are_gone_in_every_shard(self) -> None:
        for shard in range(3):
            await self.store.commit(Batch(1, 0, shard, touches=[Touch(1, counts(files=1), 5, 1)]))
        await self.store.commit(Batch(size=1, now_ms=0, drops=[1, 2]))
        assert await totals_of(self.store, 1) == NO_TOTALS

    # Past rows, replies, counters.

    async def check_kept_rows_go_to_the_past(self) -> None:
        await self.store.commit(Batch(size=1, now_ms=0, puts=[put(A, b"1", id=4), put(B, b"2")]))
        batch = Batch(size=3, now_ms=0, keeps=[Keep(A, 2, 1), Keep(B, 3, 1), Keep(C, 1, 1)])
        batch.deletes, batch.puts = [A], [replace(B, b"3", order=3)]
        await self.store.commit(batch)
        past = await self.store.scan_past(1, (0, (0, 0, b"")), 9, 9)
        assert past == [PastRow(A, 3, 1, 4, b"1", 1), PastRow(B, 4, 1, None, b"2", 1)]

    async def check_rows_are_read_as_they_were(self) -> None:
        s1 = 1 + await self.store.commit(Batch(1, 0, puts=[put(A, b"1", id=4), put(B, b"2")]))
        batch = Batch(1, 0, keeps=[Keep(A, 1, 1), Keep(B, 1, 1)], deletes=[B])
        batch.puts = [put(C, b"3"), replace(A, b"1b", id=4)]
        s2 = 1 + await self.store.commit(batch)
        s3 = 1 + await self.store.commit(Batch(1, 0, deletes=[A], keeps=[Keep(A, 1, 1)]))
        scan, wide = Scan(0, 1, b"", 1), Scan(0, 1, b"", 9)
        asked = Reading(keys=[A, B, C], ids=[(0, 4)], scans=[scan, wide])
        moments = {s1: asked, s2: asked, PRESENT: asked}
        found = await self.store.read(Reading(keys=[A, C], past=moments))
        assert found.rows == {C: Row(C, s2, b"3")}
        assert found.past[PRESENT].rows == found.rows
        assert found.past[PRESENT].scans == {scan: [], wide: []}
        first, second = found.past[s1], found.past[s2]
        a1, a2 = Row(A, s1, b"1", until=s2), Row(A, s2, b"1b", until=s3)
        b1 = Row(B, s1, b"2", until=s2)
        assert first.rows == {A: a1, B: b1}
        assert first.ids == {(0, 4): [a1]}
        assert first.scans == {scan: [a1], wide: [a1, b1]}
        assert second.rows == {A: a2, C: Row(C, s2, b"3")}
        assert second.ids == {(0, 4): [a2]}
        assert second.scans == {scan: [a2], wide: [a2]}

    async def check_pages_of_the_past_skip_what_came_later(self) -> None:
        """Few rows of then among many of now, of which there are more than a page needs."""
        then = [(0, 1, b"%03d" % n) for n in range(0, 600, 7)]
        s1 = 1 + await self.store.commit(Batch(1, 0, puts=[put(key, b"1") for key in then]))
        gone, later = then[::2], [(0, 1, b"%03d" % n) for n in range(600) if n % 7]
        batch = Batch(1, 0, keeps=[Keep(key, 1, 1) for key in gone], deletes=gone)
        batch.puts = [put(key, b"2") for key in later]
        s2 = 1 + await self.store.commit(batch)
        await self.store.commit(
            Batch(1, 0, deletes=later, keeps=[Keep(key, 1, 1) for key in later])
        )
        for moment, expected in ((s1, then), (s2, sorted({*then[1::2], *later}))):
            keys: list[Key] = []
            while True:
                page = Scan(0, 1, keys[-1][2] if keys else b"", 5)
                found = await self.store.read(Reading(past={moment: Reading(scans=[page])}))
                rows = found.past[moment].scans[page]
                keys += [row.key for row in rows]
                if len(rows) < 5:
                    break
            assert keys == expected

    async def check_only_what_has_changed_between_two_moments(self) -> None:
        s1 = 1 + await self.store.commit(Batch(1, 0, puts=[put(A, b"1"), put(B, b"2")]))
        batch = Batch(1, 0, keeps=[Keep(B, 1, 1)], deletes=[B], puts=[put(C, b"3")])
        s2 = 1 + await self.store.commit(batch)
        table, a, _ = C
        ended = Scan(0, 1, b"", 9, until=s2)
        begun, here = Scan(0, 1, b"", 9, since=s2), Scan(table, a, b"", 9, since=s2)
        for now in (s2, PRESENT):
            asked = {s1: Reading(scans=[ended]), now: Reading(scans=[begun, here])}
            found = await self.store.read(Reading(past=asked))
            assert found.past[s1].scans == {ended: [Row(B, s1, b"2", until=s2)]}
            assert found.past[now].scans == {begun: [], here: [Row(C, s2, b"3")]}
        never = Reading(past={s1: Reading(scans=[ended._replace(until=s1)])})
        assert (await self.store.read(never)).past[s1].scans == {ended._replace(until=s1): []}

    async def check_totals_are_read_as_they_were(self) -> None:
        one, times = counts(files=1, snapshots=2), []
        for covered in (0, 1, 1, 3):
            touch = Touch(7, one, 10 * covered, 1, covered)
            times.append(1 + await self.store.commit(Batch(1, 0, touches=[touch])))
        assert times == [1, 2, 3, 4]
        asked = Reading(totals=[7, 8])
        found = await self.store.read(Reading(totals=[7], past={1: asked, 3: asked, 4: asked}))
        assert found.totals[7] == Totals(tuple(counts(files=4, snapshots=8)), 30, 4, 4)
        assert found.past[1].totals[7][:3] == (tuple(counts(files=1, snapshots=2)), 0, 1)
        assert found.past[3].totals[7][:3] == (tuple(counts(files=3, snapshots=6)), 10, 3)
        assert found.past[4].totals[7] == found.totals[7]
        assert found.past[1].totals[8] == NO_TOTALS
        assert await self.store.count_past() == 2

    async def check_totals_that_are_gone_are_read_as_they_were(self) -> None:
        one = counts(files=1, reserved_bytes=5)
        for covered in (0, 1):
            await self.store.commit(Batch(1, 0, touches=[Touch(7, one, 0, 1, covered)]))
        await self.store.commit(Batch(1, 0, drops=[7]))
        asked = Reading(totals=[7])
        found = await self.store.read(Reading(totals=[7], past={1: asked}))
        assert found.totals[7] == NO_TOTALS
        assert found.past[1].totals[7].counts == tuple(one)

    async def check_past_rows_are_listed_reheld_and_forgotten(self) -> None:
        await self.store.commit(Batch(1, 0, puts=[put(A, b"1", id=4), put(B, b"2"), put(C, b"3")]))
        keeps = [Keep(A, 2, 7), Keep(B, 1, 7), Keep(C, 2, 5)]
        await self.store.commit(Batch(2, 0, keeps=keeps, deletes=[A, B, C]))
        a, b = PastRow(A, 3, 1, 4, b"1", 7), PastRow(B, 2, 1, None, b"2", 7)
        c = PastRow(C, 3, 1, None, b"3", 5)
        start = (0, (0, 0, b""))
        scan = self.store.scan_past
        assert await scan(7, start, 9, 9) == [b, a]
        assert await scan(7, start, 2, 9) == [b]
        assert await scan(7, start, 9, 1) == [b]
        assert await scan(7, (2, B), 9, 9) == [a]
        assert await scan(6, start, 9, 9) == []
        assert await self.store.past_holders() == [5, 7]
        reholds = [Rehold(B, 2, 5), Rehold(B, 9, 4), Rehold(A, 3, 6)]
        await self.store.commit(Batch(1, 0, reholds=reholds))
        assert await scan(5, start, 9, 9) == [b._replace(holder=5), c]
        assert await self.store.past_holders() == [5, 6]
        await self.store.commit(Batch(1, 0, forgets=[(B, 2), (A, 7)]))
        assert await scan(5, start, 9, 9) == [c]
        assert await scan(6, start, 9, 9) == [a._replace(holder=6)]
        assert await self.store.count_past() == 2

    async def check_a_whole_table_is_listed_in_order(self) -> None:
        keys = sorted([(3, 1, b"b"), (3, 1, b"a"), (3, 2, b""), (3, 0, b"z"), (4, 0, b"")])
        await self.store.commit(Batch(1, 0, puts=[put(key, b"1") for key in keys]))
        found = await self.store.scan_table(3, (-1, b""), 3)
        assert found == [Row(key, 1, b"1") for key in keys[:3]]
        found = await self.store.scan_table(3, found[-1].key[1:], 3)
        assert [row.key for row in found] == [keys[3]]

    async def check_all_versions_of_an_id_are_found(self) -> None:
        await self.store.commit(Batch(1, 0, puts=[put(A, b"1", id=4), put(B, b"2", id=5)]))
        keeps = [Keep(A, 1, 1), Keep(B, 1, 1)]
        await self.store.commit(Batch(1, 0, keeps=keeps, deletes=[A], puts=[put(C, b"3", id=4)]))
        asked = [(A[0], id) for id in (4, 5, 6)]
        found = (await self.store.read(Reading(past={EVERY_TIME: Reading(ids=asked)}))).past
        keys = [{row.key for row in found[EVERY_TIME].ids[pair]} for pair in asked]
        assert keys == [{A, C}, {B}, set()]

    async def check_replies_are_found_by_call_until_they_expire(self) -> None:
        reply = StoredReply(b"client", (5, 7), b"5 and 7")
        other = StoredReply(b"other", (5,), b"other's")
        await self.store.commit(Batch(size=1, now_ms=1000, replies=[reply, other]))
        between = StoredReply(b"client", (6, 8), b"6 and 8")
        await self.store.commit(Batch(size=1, now_ms=2000, replies=[between]))
        assert await self.store.find_replies(b"client", 4) == []
        assert await self.store.find_replies(b"client", 5) == [b"5 and 7"]
        assert set(await self.store.find_replies(b"client", 7)) == {b"5 and 7", b"6 and 8"}
        assert await self.store.find_replies(b"client", 9) == []
        expiry_ms = 1000 + REPLY_RETENTION_MS
        assert await self.store.drop_expired_replies(expiry_ms, 10) == 0
        assert await self.store.drop_expired_replies(expiry_ms + 1, 1) == 1
        assert await self.store.drop_expired_replies(expiry_ms + 1, 10) == 1
        assert await self.store.find_replies(b"client", 7) == [b"6 and 8"]
        assert await self.store.find_replies(b"other", 5) == []

    async def check_a_call_that_has_run_is_not_committed_again(self) -> None:
        first = StoredReply(b"client", (5, 9), b"5 and 9")
        await self.store.commit(Batch(size=1, now_ms=0, replies=[first]))
        others = [StoredReply(b"client", (6, 7), b""), StoredReply(b"other", (5,), b"")]
        await self.store.commit(Batch(size=1, now_ms=0, replies=others))
        again = [StoredReply(b"new", (1,), b""), StoredReply(b"client", (8, 9, 10), b"")]
        batch = Batch(size=1, now_ms=0, puts=[put(A, b"1")], replies=again)
        conflict = await conflict_of(self.store.commit(batch))
        assert conflict.clients == {b"client"}
        assert await rows_of(self.store, A) == {}
        assert await self.store.find_replies(b"new", 1) == []

    async def check_counters_hand_out_each_number_once(self) -> None:
        for counter, first in COUNTERS.items():
            assert await self.store.reserve(counter, 10) == first
            assert await self.store.reserve(counter, 1) == first + 10
            assert await self.store.reserve(counter, 5) == first + 11
            assert await self.store.peek(counter) == first + 16
            assert await self.store.reserve(counter, 1) == first + 16

    async def check_rows_and_commits_are_counted(self) -> None:
        assert await self.other.last_txid() == 0
        keys: list[Key] = [(0, 1, b""), (0, 2, b""), (0, 2, b"b"), (1, 2, b""), (1, 3, b"")]
        await self.store.commit(Batch(size=3, now_ms=0, puts=[put(key) for key in keys]))
        assert await self.other.last_txid() == 3
        assert [await self.other.count_rows(table) for table in (0, 1, 2)] == [3, 2, 0]
        assert await self.other.count_each(0) == {1: 1, 2: 2}
        assert await self.other.count_each(2) == {}

    async def check_ids_are_counted_once(self) -> None:
        ids = [7, 7, 8, 9, None]
        puts = [put((1, a, b""), id=id) for a, id in enumerate(ids)]
        puts += [put((0, 0, b""), id=7), put((2, 0, b""))]
        await self.store.commit(Batch(size=1, now_ms=0, puts=puts))
        assert [await self.other.count_ids(table) for table in range(4)] == [1, 3, 0, 0]


PROMISES = sorted(name for name in dir(StoreConformance) if name.startswith("check_"))
