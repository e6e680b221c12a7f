"""What only PostgreSQL has: members with epochs, outcomes to settle, and a planner."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from itertools import count

import asyncpg
import pytest

from cairnfs.errors import SchemaVersionError, StoreUnavailableException
from cairnfs.store import postgres_schema
from cairnfs.store.base import Conflict, Count, Fenced, LockMode, Reading, Row, Scan
from cairnfs.store.batches import Batch, Bound, Keep, Member, Put, Rehold, StoredReply, Touch
from cairnfs.store.postgres import PostgresStore, format_database
from cairnfs.store.postgres_connections import SESSION_SETTINGS, Connections
from cairnfs.store.schema import NUMBER, PAIR, SCHEMA_VERSION, Key, Table

A: Key = (0, 1, b"a")
JOIN = "SELECT id_, epoch_ FROM cairn_join('test', '1 hour')"


def with_store(dsn: str, test: Callable[[PostgresStore], Awaitable[None]]) -> None:
    async def main() -> None:
        await format_database(dsn, {})
        store = await PostgresStore.open(dsn)
        try:
            await test(store)
        finally:
            await store.close()

    asyncio.run(main())


def batch_of(member: Member, key: Key = A) -> Batch:
    return Batch(size=1, now_ms=0, member=member, puts=[Put(key, None, 1, b"", False)])


async def join(store: PostgresStore) -> tuple[int, int]:
    ((id, epoch),) = await store.fetch(JOIN)
    return id, epoch


# Reading.


@pytest.mark.parametrize("more", [Reading(), Reading(totals=[1])], ids=["rows", "rows and totals"])
def test_what_is_known_is_not_told_again(postgres_dsn: str, more: Reading) -> None:
    b: Key = (0, 1, b"b")

    async def test(store: PostgresStore) -> None:
        puts = [Put(A, None, 1, b"a", False), Put(b, None, 1, b"b", False)]
        await store.commit(Batch(size=1, now_ms=0, puts=puts))
        reading = Reading([A, b], totals=more.totals, known_versions={A: 1, b: 0})
        found = await store.read(reading)
        assert set(found.unchanged) == {A}
        assert found.rows == {b: Row(b, 1, b"b")}

    with_store(postgres_dsn, test)


# Members.


def test_a_member_whose_epoch_ended_is_fenced(postgres_dsn: str) -> None:
    async def check(store: PostgresStore) -> None:
        id, epoch = await join(store)
        await store.fetch("UPDATE members SET epoch = epoch + 1 RETURNING 1")
        with pytest.raises(Fenced):
            await store.commit(batch_of(Member(id, epoch, 1)))
        with pytest.raises(Fenced):
            await store.commit(Batch(size=0, now_ms=0, member=Member(id, epoch, 2)))
        with pytest.raises(Fenced):
            await store.settle(Member(id, epoch, 1))
        assert (await store.read(Reading(keys=[A]))).rows == {}
        assert await store.commit(batch_of(Member(id, epoch + 1, 1))) == 0

    with_store(postgres_dsn, check)


def test_settle_tells_what_was_committed(postgres_dsn: str) -> None:
    async def check(store: PostgresStore) -> None:
        member = Member(*await join(store), 1)
        await store.commit(Batch(size=3, now_ms=0))
        assert await store.commit(batch_of(member)) == 3
        assert await store.settle(member) == 3
        assert await store.settle(member) == 3

    with_store(postgres_dsn, check)


def test_settle_does_not_guess_about_a_member_that_has_gone_on(postgres_dsn: str) -> None:
    """It was not replaced; but which of its earlier batches took place nobody knows."""

    async def check(store: PostgresStore) -> None:
        member = Member(*await join(store), 1)
        await store.commit(batch_of(member._replace(batch=2)))
        with pytest.raises(
            StoreUnavailableException, match="not known yet; send the call again"
        ) as told:
            await store.settle(member)
        assert "nothing was changed" not in str(told.value)

    with_store(postgres_dsn, check)


def test_what_settle_has_given_up_never_happens(postgres_dsn: str) -> None:
    """A commit whose connection broke may still be waiting for the clock."""

    async def check(store: PostgresStore) -> None:
        member = Member(*await join(store), 1)
        async with store.transaction() as transaction:
            await transaction.take_clock()
            late = asyncio.create_task(store.commit(batch_of(member)))
            await wait_until_somebody_waits(store)
            assert await store.settle(member) is None
        with pytest.raises(Fenced):
            await late
        assert (await store.read(Reading(keys=[A]))).rows == {}
        assert await store.commit(batch_of(member._replace(batch=2))) == 0

    with_store(postgres_dsn, check)


def test_settle_waits_for_a_commit_under_way(postgres_dsn: str) -> None:
    async def check(store: PostgresStore) -> None:
        member = Member(*await join(store), 1)
        async with store.transaction() as commit:
            # As far as cairn_commit has come after it has touched the member's row.
            await commit._fetch("UPDATE members SET batch = 1, base = 41 RETURNING 1")
            settling = asyncio.create_task(store.settle(member))
            await wait_until_somebody_waits(store)
            await commit.commit(Batch(size=1, now_ms=0))
        assert await settling == 41

    with_store(postgres_dsn, check)


def test_batches_of_one_member_may_be_committed_at_once(postgres_dsn: str) -> None:
    async def check(store: PostgresStore) -> None:
        id, epoch = await join(store)

        async def commit_locked(number: int) -> int:
            async with store.transaction() as transaction:
                await transaction.lock({(0, 2, b"%d" % number): LockMode.EXCLUSIVE})
                member = Member(id, epoch, next(batches))
                return await transaction.commit(batch_of(member, (0, 2, b"%d" % number)))

        batches = count(1)
        bases = await asyncio.gather(*(commit_locked(number) for number in range(40)))
        assert sorted(bases) == list(range(40))

    with_store(postgres_dsn, check)


def test_a_transaction_may_wait_for_single_statements(postgres_dsn: str) -> None:
    """More transactions than connections, each of which reserves numbers meanwhile."""

    async def check(store: PostgresStore) -> None:
        async def reserve(number: int) -> int:
            async with store.transaction() as transaction:
                await transaction.lock({A: LockMode.SHARED})
                return await store.reserve("inode id", 1)

        numbers = await asyncio.gather(*(reserve(number) for number in range(40)))
        assert len(set(numbers)) == 40

    with_store(postgres_dsn, check)


def test_who_takes_the_clock_after_rows_that_its_owner_needs_is_told(postgres_dsn: str) -> None:
    async def check(store: PostgresStore) -> None:
        await store.commit(Batch(size=1, now_ms=0, puts=[Put(A, None, 1, b"", False)]))
        async with store.transaction() as first, store.transaction() as second:
            await first.lock({A: LockMode.EXCLUSIVE})
            await second.take_clock()
            waiting = asyncio.create_task(first.take_clock())
            await wait_until_somebody_waits(store)  # first: PostgreSQL ends who waited longest
            await second.lock({A: LockMode.EXCLUSIVE})
            with pytest.raises(Conflict):
                await waiting
            assert await second.commit(Batch(size=1, now_ms=0)) == 1

    with_store(postgres_dsn, check)


def test_a_commit_that_fails_at_the_very_end_is_said_in_our_words(postgres_dsn: str) -> None:
    fail = (
        "CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN RAISE EXCEPTION 'full' USING ERRCODE = '53100'; END $$"
    )
    trigger = (
        "CREATE CONSTRAINT TRIGGER late AFTER INSERT ON records"
        " INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION fail()"
    )

    async def check(store: PostgresStore) -> None:
        await store.fetch(fail)
        await store.fetch(trigger)
        batch = Batch(size=1, now_ms=0, puts=[Put(A, None, 1, b"", False)])
        with pytest.raises(StoreUnavailableException, match="no disk space left; nothing was"):
            async with store.transaction() as transaction:
                await transaction.commit(batch)
        await store.fetch("DROP TRIGGER late ON records")
        assert await store.commit(batch) == 0

    with_store(postgres_dsn, check)


def test_a_connection_that_opens_after_the_close_is_not_kept(postgres_dsn: str) -> None:
    async def check() -> None:
        connections = Connections(postgres_dsn, 1)
        acquiring = asyncio.create_task(connections.acquire())
        await asyncio.sleep(0)
        await connections.close()
        with pytest.raises(StoreUnavailableException, match="were closed"):
            await acquiring
        assert not connections._open

    asyncio.run(check())


async def wait_until_somebody_waits(store: PostgresStore) -> None:
    waiting = (
        "SELECT 1 FROM pg_stat_activity"
        " WHERE wait_event_type = 'Lock' AND datname = current_database()"
    )
    while not await store.fetch(waiting):
        await asyncio.sleep(0.01)


# The schema.


def test_formatting_twice_is_refused(postgres_dsn: str) -> None:
    async def check(store: PostgresStore) -> None:
        await store.commit(Batch(size=7, now_ms=0))
        with pytest.raises(FileExistsError, match="already"):
            await format_database(postgres_dsn, {})
        assert await store.commit(Batch(size=1, now_ms=0)) == 7

    with_store(postgres_dsn, check)


def test_formatting_is_all_or_nothing(postgres_dsn: str) -> None:
    async def check() -> None:
        row = Put(A, 7, 1, b"data", False)
        with pytest.raises(asyncpg.UniqueViolationError):
            await format_database(postgres_dsn, {}, [row, row])
        await format_database(postgres_dsn, {}, [row])
        store = await PostgresStore.open(postgres_dsn)
        assert (await store.read(Reading(ids=[(0, 7)]))).ids == {(0, 7): [Row(A, 1, b"data")]}
        assert await store.commit(Batch(size=1, now_ms=0)) == 1
        await store.close()

    asyncio.run(check())


def test_a_newer_schema_is_refused(postgres_dsn: str) -> None:
    async def check(store: PostgresStore) -> None:
        await store.fetch("UPDATE meta SET value = '99' WHERE name = 'schema version' RETURNING 1")
        with pytest.raises(SchemaVersionError, match="99"):
            await PostgresStore.open(postgres_dsn)

    with_store(postgres_dsn, check)


def test_version_8_is_brought_to_ours(postgres_dsn: str) -> None:
    async def check(store: PostgresStore) -> None:
        assert await store.commit(Batch(size=1, now_ms=0, puts=[Put(A, None, 1, b"x", False)])) == 0
        await store.fetch("UPDATE meta SET value = '8' WHERE name = 'schema version' RETURNING 1")
        await undo_version_10(store)
        other = await PostgresStore.open(postgres_dsn)
        assert (await other.meta())["schema version"] == str(SCHEMA_VERSION)
        assert (await other.read(Reading(keys=[A]))).rows == {A: Row(A, 1, b"x")}
        assert await other.commit(Batch(size=1, now_ms=0)) == 1
        await other.close()

    with_store(postgres_dsn, check)


def test_a_database_without_our_tables_is_refused(postgres_dsn: str) -> None:
    with pytest.raises(StoreUnavailableException, match="not a CairnFS database"):
        asyncio.run(PostgresStore.open(postgres_dsn))


def test_two_that_start_at_once_migrate_once(
    postgres_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def check(store: PostgresStore) -> None:
        monkeypatch.setattr(postgres_schema, "SCHEMA_VERSION", SCHEMA_VERSION + 2)
        scripts = {
            SCHEMA_VERSION: "CREATE TABLE first (x int)",
            SCHEMA_VERSION + 1: "CREATE TABLE second (x int)",
        }
        monkeypatch.setattr(postgres_schema, "MIGRATIONS", scripts)
        opened = await asyncio.gather(*(PostgresStore.open(postgres_dsn) for _ in range(4)))
        for other in opened:
            assert (await other.meta())["schema version"] == str(SCHEMA_VERSION + 2)
            await other.fetch("SELECT 1 FROM first, second")
            await other.close()

    with_store(postgres_dsn, check)


def test_a_migration_that_fails_changes_nothing(
    postgres_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def check(store: PostgresStore) -> None:
        monkeypatch.setattr(postgres_schema, "SCHEMA_VERSION", SCHEMA_VERSION + 2)
        scripts = {SCHEMA_VERSION: "CREATE TABLE first (x int)", SCHEMA_VERSION + 1: "SELECT 1 / 0"}
        monkeypatch.setattr(postgres_schema, "MIGRATIONS", scripts)
        with pytest.raises(StoreUnavailableException, match="division by zero"):
            await PostgresStore.open(postgres_dsn)
        assert (await store.meta())["schema version"] == str(SCHEMA_VERSION)
        ((table,),) = await store.fetch("SELECT to_regclass('first')::text")
        assert table is None

    with_store(postgres_dsn, check)


async def undo_version_10(store: PostgresStore) -> None:
    """Past rows are in the order of their TxIDs."""
    await store.fetch("ALTER TABLE past DROP holder")
    await store.fetch("CREATE INDEX past_by_until ON past (until, t, a, b)")


async def undo_version_4(store: PostgresStore) -> None:
    """What it and later versions have added is not there."""
    await store.fetch("ALTER TABLE totals DROP snapshots, DROP changed, DROP reserved_bytes")
    await undo_version_10(store)
    await store.fetch("DROP INDEX past_by_until, past_by_id")


async def add_moment(store: PostgresStore, txid: int) -> None:
    """A snapshot of a TxID, as a row that earlier versions have as well."""
    place = PAIR.pack(txid, 16385)
    await store.fetch(
        "INSERT INTO records (t, a, b, since, data) VALUES ($1, 0, $2, 1, '') RETURNING 1",
        *(int(Table.MOMENTS), place),
    )


def test_past_rows_of_version_9_are_kept_for_the_latest_moment(postgres_dsn: str) -> None:
    rows = [(b"a", 5, 2), (b"b", 9, 3), (b"c", 9, 7), (b"d", 4, 4)]

    async def check(store: PostgresStore) -> None:
        await store.fetch("UPDATE meta SET value = '9' WHERE name = 'schema version' RETURNING 1")
        await undo_version_10(store)
        for txid in (2, 4, 6, 30):
            await add_moment(store, txid)
        for b, until, since in rows:
            await store.fetch(
                "INSERT INTO past (t, a, b, until, since, data) VALUES (0, 7, $1, $2, $3, '')"
                " RETURNING 1",
                *(b, until, since),
            )
        other = await PostgresStore.open(postgres_dsn)
        assert await other.past_holders() == [4, 6]
        start = (0, (0, 0, b""))
        assert [row.key[2] for row in await other.scan_past(4, start, 99, 9)] == [b"a"]
        assert [row.key[2] for row in await other.scan_past(6, start, 99, 9)] == [b"b"]
        assert await other.count_past() == 2
        await other.close()

    with_store(postgres_dsn, check)


def test_totals_of_version_5_have_nothing_reserved(postgres_dsn: str) -> None:
    async def check(store: PostgresStore) -> None:
        for covered in (0, 1):
            touch = Touch(7, [1] * len(Count), 0, 1, covered)
            await store.commit(Batch(1, 0, touches=[touch]))
        await store.fetch("UPDATE meta SET value = '5' WHERE name = 'schema version' RETURNING 1")
        await store.fetch("ALTER TABLE totals DROP reserved_bytes")
        await undo_version_10(store)
        await add_moment(store, 1)
        shorter = "convert_to(replace(convert_from(data, 'UTF8'), ',1}', '}'), 'UTF8')"
        await store.fetch(f"UPDATE past SET data = {shorter} WHERE t = 100 RETURNING 1")
        other = await PostgresStore.open(postgres_dsn)
        asked = Reading(totals=[7])
        found = await other.read(Reading(totals=[7], past={1: asked}))
        assert found.totals[7].counts == (*[2] * (len(Count) - 1), 0)
        assert found.past[1].totals[7].counts == (*[1] * (len(Count) - 1), 0)
        await other.close()

    with_store(postgres_dsn, check)


def test_leases_of_version_2_are_found_in_order(postgres_dsn: str) -> None:
    async def check(store: PostgresStore) -> None:
        leased = (16390, 255, 1 << 40)
        puts = [Put((2, id, b""), None, 1, b"x", False) for id in leased]
        await store.commit(Batch(1, 0, puts=puts))
        await store.fetch("UPDATE meta SET value = '2' WHERE name = 'schema version' RETURNING 1")
        await undo_version_4(store)
        other = await PostgresStore.open(postgres_dsn)
        scan = Scan(2, 0, b"", 10)
        rows = (await other.read(Reading(scans=[scan]))).scans[scan]
        assert [NUMBER.unpack(row.key[2])[0] for row in rows] == sorted(leased)
        await other.close()

    with_store(postgres_dsn, check)


def test_version_1_is_brought_to_ours(postgres_dsn: str) -> None:
    async def check(store: PostgresStore) -> None:
        await store.fetch("UPDATE meta SET value = '1' WHERE name = 'schema version' RETURNING 1")
        await undo_version_4(store)
        await store.fetch("DELETE FROM counters WHERE name = 'storage' RETURNING 1")
        await store.fetch("DROP FUNCTION cairn_settle")
        other = await PostgresStore.open(postgres_dsn)
        assert (await other.meta())["schema version"] == str(SCHEMA_VERSION)
        assert await other.reserve("storage", 5) == 1
        await other.commit(Batch(size=1, now_ms=0))
        await other.close()

    with_store(postgres_dsn, check)


# The planner.

ROWS = 50_000
FILL = (
    f"INSERT INTO cairnfs.records SELECT 0, g % 100, int8send(g), g, 1, 'x'"
    f" FROM generate_series(1, {ROWS}) g;"
    f"INSERT INTO cairnfs.totals SELECT g, 0, {', '.join('0' * 16)}"
    f" FROM generate_series(1, {ROWS}) g;"
    f"INSERT INTO cairnfs.past SELECT 0, g % 100, int8send(g), g, g, g, 'x', g"
    f" FROM generate_series(1, {ROWS}) g"
)
ROWS_TOUCHED = (
    "SELECT sum(seq_tup_read), sum(idx_tup_read) FROM ("
    " SELECT seq_tup_read, 0 AS idx_tup_read FROM pg_stat_user_tables"
    " WHERE relname IN ('records', 'totals', 'past') UNION ALL"
    " SELECT 0, idx_tup_read FROM pg_stat_user_indexes"
    " WHERE relname IN ('records', 'totals', 'past')) s"
)


def key_of(n: int) -> Key:
    return (0, n % 100, n.to_bytes(8, "big"))


async def use_everything(store: PostgresStore, n: int) -> None:
    """Every statement that looks at many rows if it is planned badly."""
    batch = Batch(size=1, now_ms=0)
    batch.reads = {key_of(n): 1, key_of(n + 1): 1}
    batch.keeps = [Keep(key_of(n), 1, 1), Keep(key_of(n + 1), 1, 1)]
    batch.deletes = [key_of(n)]
    batch.puts = [Put(key_of(n + 1), n + 1, 1, b"new", True), Put((9, n, b""), n, 1, b"", False)]
    ones = [1] * len(Count)
    batch.touches = [Touch(n, ones, 1, 1, 1), Touch(n + 1, ones, 1, 0)]
    batch.forgets = [(key_of(n), 1)]
    batch.reholds = [Rehold(key_of(n), 1, 2)]
    batch.drops = [n + 2]
    batch.empties = [(0, 1_000_000)]
    batch.bounds = [Bound(n, 0, 100)]
    batch.replies = [StoredReply(b"c", (n,), b"")]
    await store.commit(batch)
    keys = [key_of(n + 1), key_of(n + 2)]
    await store.read(Reading(keys=keys))
    everything = Reading(keys, [(0, n + 1)], [Scan(0, n % 100, b"", 5)], [n, n + 1])
    await store.read(everything)
    await store.read(Reading(past={1: everything}))
    await store.scan_past(n, (1, key_of(n)), 5, 5)
    async with store.transaction() as transaction:
        modes = dict(zip(keys, (LockMode.SHARED, LockMode.EXCLUSIVE), strict=True))
        await transaction.lock(modes)


def test_large_tables_are_never_read_as_a_whole(postgres_dsn: str) -> None:
    """Whether the plans were made for empty tables or for large ones without statistics."""

    async def check(store: PostgresStore) -> None:
        for table in ("records", "totals", "past"):
            await store.fetch(f"ALTER TABLE {table} SET (autovacuum_enabled = off)")
        few = Batch(size=1, now_ms=0, puts=[Put(key_of(n), n, 1, b"", False) for n in (1, 2, 3)])
        await store.commit(few)
        await use_everything(store, 1)  # plans are made, and kept
        await store.fetch("DELETE FROM records RETURNING 1")
        await store.fetch("DELETE FROM totals RETURNING 1")
        await store.fetch("DELETE FROM past RETURNING 1")
        async with store._connections.borrow() as connection:
            await connection.execute(FILL)
        fresh = await PostgresStore.open(postgres_dsn)
        for n, user in ((1001, store), (2001, fresh)):
            before = await rows_touched(user)
            await use_everything(user, n)
            after = await rows_touched(user)
            read = [new - old for new, old in zip(after, before, strict=True)]
            assert read[0] == 0, "sequential scan"
            assert read[1] < 200, "index scan without a key"
        await fresh.close()

    with_store(postgres_dsn, check)


async def rows_touched(store: PostgresStore) -> tuple[int, int]:
    await store.fetch("SELECT pg_stat_force_next_flush()")
    ((sequentially, by_index),) = await store.fetch(ROWS_TOUCHED)
    return int(sequentially), int(by_index)


def test_who_stops_with_the_clock_in_hand_loses_it(
    postgres_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "idle_in_transaction_session_timeout"
    assert int(SESSION_SETTINGS[name]) > 0
    monkeypatch.setitem(SESSION_SETTINGS, name, "100")

    async def check(store: PostgresStore) -> None:
        async with store.transaction() as stopped:
            await stopped.take_clock()
            assert await store.commit(Batch(size=1, now_ms=0)) == 0  # after a while
            with pytest.raises(StoreUnavailableException, match="nothing was changed"):
                await stopped.commit(Batch(size=1, now_ms=0))
        assert await store.commit(Batch(size=1, now_ms=0)) == 1

    with_store(postgres_dsn, check)
