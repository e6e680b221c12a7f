"""PostgreSQL servers that die, fill up, go away and come back: what was answered is there."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import pytest

from cairnfs.errors import StoreUnavailableException
from cairnfs.store import postgres
from cairnfs.store.base import CommitUnknown, Reading, Row
from cairnfs.store.batches import Batch, Member, Put
from cairnfs.store.postgres import PostgresStore, format_database
from cairnfs.store.postgres_connections import describe
from cairnfs.store.schema import Key
from cairnfs.testing.postgres_server import PostgresServer

A: Key = (0, 1, b"a")
B: Key = (0, 1, b"b")


def put(key: Key, data: bytes = b"") -> Batch:
    return Batch(size=1, now_ms=0, puts=[Put(key, None, 1, data, False)])


@pytest.fixture
def own_server() -> Iterator[PostgresServer]:
    """A server that may be killed."""
    with PostgresServer(settings={"max_connections": "20"}) as server:
        yield server


class Writer:
    """Commits one row after another, and writes down what was acknowledged."""

    def __init__(self, store: PostgresStore, number: int, id: int, epoch: int) -> None:
        self.store = store
        self.number = number
        self.member = Member(id, epoch, 0)
        self.acknowledged: dict[Key, int] = {}
        self.unknown = 0
        self.stop = False

    async def run(self) -> None:
        row = 0
        while not self.stop:
            key = (0, self.number, b"%06d" % row)
            self.acknowledged[key] = await self.insist(key) + 1
            row += 1

    async def insist(self, key: Key) -> int:
        """Commit until it is known; a Conflict would show that a refusal was a lie."""
        while True:
            self.member = self.member._replace(batch=self.member.batch + 1)
            batch = put(key)
            batch.member = self.member
            try:
                return await self.store.commit(batch)
            except CommitUnknown:
                self.unknown += 1
                settled = await self.store.settle(self.member)
                if settled is not None:
                    return settled
            except StoreUnavailableException:
                await asyncio.sleep(0.02)


def test_what_was_acknowledged_survives_kills(own_server: PostgresServer) -> None:
    async def check() -> None:
        dsn = own_server.create_database("kills")
        await format_database(dsn, {})
        store = await PostgresStore.open(dsn)
        writers = []
        for number in range(4):
            ((id, epoch),) = await store.fetch("SELECT * FROM cairn_join('w', '1 hour')")
            writers.append(Writer(store, number, id, epoch))
        tasks = [asyncio.create_task(writer.run()) for writer in writers]
        for _ in range(3):
            goal = sum(len(writer.acknowledged) for writer in writers) + 100
            while sum(len(writer.acknowledged) for writer in writers) < goal:
                await asyncio.sleep(0.01)
                assert not any(task.done() for task in tasks), tasks
            await asyncio.to_thread(own_server.kill)
            await asyncio.to_thread(own_server.start)
        for writer in writers:
            writer.stop = True
        await asyncio.gather(*tasks)
        acknowledged = {key: at for writer in writers for key, at in writer.acknowledged.items()}
        found = (await store.read(Reading(keys=list(acknowledged)))).rows
        assert {key: row.since for key, row in found.items()} == acknowledged
        ((rows,),) = await store.fetch("SELECT count(*) FROM records")
        assert rows == len(acknowledged)
        assert sum(writer.unknown for writer in writers) > 0
        await store.close()

    asyncio.run(check())


def test_a_server_that_is_down_is_said_and_served_again(own_server: PostgresServer) -> None:
    async def check() -> None:
        dsn = own_server.create_database("down")
        await format_database(dsn, {})
        store = await PostgresStore.open(dsn)
        await store.commit(put(A))
        await asyncio.to_thread(own_server.stop)
        for _ in range(3):
            with pytest.raises(StoreUnavailableException, match="database 'down'"):
                await store.read(Reading(keys=[A]))
            with pytest.raises(StoreUnavailableException, match="nothing was changed"):
                await store.commit(put(B))
            with pytest.raises(StoreUnavailableException, match="nothing was changed"):
                async with store.transaction():
                    pass
        with pytest.raises(StoreUnavailableException):
            await PostgresStore.open(dsn)
        await asyncio.to_thread(own_server.start)
        assert (await store.read(Reading(keys=[A]))).rows == {A: Row(A, 1, b"")}
        assert await store.commit(put(B)) == 1
        await store.close()

    asyncio.run(check())


def test_an_outcome_that_cannot_be_found_out_is_not_called_nothing(
    own_server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres, "SETTLE_WAITS_S", (0.0,))

    async def check() -> None:
        dsn = own_server.create_database("outcome")
        await format_database(dsn, {})
        store = await PostgresStore.open(dsn)
        ((id, epoch),) = await store.fetch("SELECT * FROM cairn_join('w', '1 hour')")
        batch = put(A)
        batch.member = Member(id, epoch, 1)
        await store.commit(batch)
        await asyncio.to_thread(own_server.stop)
        with pytest.raises(
            StoreUnavailableException, match="not known yet; send the call again"
        ) as told:
            await store.settle(batch.member)
        assert "nothing was changed" not in str(told.value)
        await asyncio.to_thread(own_server.start)
        assert await store.settle(batch.member) == 0
        await store.close()

    asyncio.run(check())


def test_a_server_that_dies_in_a_transaction(own_server: PostgresServer) -> None:
    async def check() -> None:
        dsn = own_server.create_database("transaction")
        await format_database(dsn, {})
        store = await PostgresStore.open(dsn)
        async with store.transaction() as transaction:
            await transaction.take_clock()
            await asyncio.to_thread(own_server.restart)
            for _ in range(2):
                with pytest.raises(StoreUnavailableException, match="nothing was changed"):
                    await transaction.commit(put(A))
        assert await store.commit(put(A)) == 0
        await store.close()

    asyncio.run(check())


def test_a_server_without_free_connections(own_server: PostgresServer) -> None:
    async def check() -> None:
        dsn = own_server.create_database("full")
        await format_database(dsn, {})
        others = []
        try:
            while True:
                others.append(await asyncpg.connect(dsn))
        except asyncpg.TooManyConnectionsError:
            pass
        with pytest.raises(StoreUnavailableException, match="no connection left"):
            await PostgresStore.open(dsn)
        for other in others:
            await other.close()

    asyncio.run(check())


def test_a_read_only_database_still_reads(
    postgres_server: PostgresServer, postgres_dsn: str
) -> None:
    name = postgres_dsn.partition("@/")[2].partition("?")[0]
    setting = f"ALTER DATABASE {name} SET default_transaction_read_only = "

    async def check() -> None:
        await format_database(postgres_dsn, {})
        postgres_server.execute(setting + "on")
        store = await PostgresStore.open(postgres_dsn)
        for _ in range(2):
            assert (await store.read(Reading(keys=[A]))).rows == {}
            with pytest.raises(StoreUnavailableException, match="read-only; nothing was changed"):
                await store.commit(put(A))
            with pytest.raises(StoreUnavailableException, match="read-only"):
                await store.reserve("inode id", 1)
        # Its own session reads this setting too, hence the explicit transaction.
        reader = await asyncpg.connect(postgres_dsn.replace(name, "postgres"))
        await reader.execute(setting + "off")
        await reader.close()
        assert await store.commit(put(A)) == 0
        await store.close()

    asyncio.run(check())


@pytest.mark.parametrize(
    ("state", "text"), [("53100", "no disk space left"), ("53200", "out of memory")]
)
def test_a_database_that_is_full(postgres_dsn: str, state: str, text: str) -> None:
    fail = (
        "CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS"
        f" $$ BEGIN RAISE EXCEPTION 'full' USING ERRCODE = '{state}'; END $$"
    )

    async def check() -> None:
        await format_database(postgres_dsn, {})
        store = await PostgresStore.open(postgres_dsn)
        await store.fetch(fail)
        await store.fetch("CREATE TRIGGER full_ BEFORE INSERT ON records EXECUTE FUNCTION fail()")
        with pytest.raises(StoreUnavailableException, match=f"{text}; nothing was changed"):
            await store.commit(put(A))
        await store.fetch("DROP TRIGGER full_ ON records")
        assert await store.commit(put(A)) == 0
        await store.close()

    asyncio.run(check())


def test_no_message_tells_a_password(tmp_path: Path) -> None:
    addresses = [
        f"postgresql://user:hunter2@/db?host={tmp_path}&port=5432",
        "postgresql://user:hunter2@127.0.0.1:1/db",
        "postgresql://user:hunter2@127.0.0.1:port/db",
        "postgresql://user:hunter2@127.0.0.1:1/db?sslmode=nonsense",
    ]
    for address in addresses:
        assert "hunter2" not in describe(address)
        with pytest.raises(StoreUnavailableException) as caught:
            asyncio.run(PostgresStore.open(address))
        assert "hunter2" not in str(caught.value)
