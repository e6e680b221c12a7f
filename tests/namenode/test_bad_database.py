"""A database that is read-only, full, gone or of the future, as callers notice it.

What the stores themselves say is tested in `tests/store/test_failures`.  Here: a call is
refused with an error that a client retries, nothing has changed, and the same NameNode
serves again once the database is back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from cairnfs.config import Control, NameNodeSettings
from cairnfs.errors import (
    RetriableException,
    SchemaVersionError,
    StoreUnavailableException,
)
from cairnfs.namenode.client_protocol import NameNodeThread
from cairnfs.namenode.opening import format_namespace
from cairnfs.store.sqlite import SqliteStore
from cairnfs.testing.invariants import check_invariants, read_namespace
from cairnfs.testing.postgres_server import PostgresServer

assert issubclass(StoreUnavailableException, RetriableException)  # so that clients try again


@pytest.fixture(params=list(Control), ids=lambda control: control.value)
def control(request: pytest.FixtureRequest) -> Control:
    control: Control = request.param
    return control


class Bench:
    """A NameNode with something in it, and calls to be refused."""

    def __init__(self, url: str, control: Control) -> None:
        asyncio.run(format_namespace(url))
        self.namenode = NameNodeThread(NameNodeSettings(url, control=control, duties=False))
        self.client = self.namenode.client()
        self.client.mkdirs("/d/below")
        self.client.create("/d/f")
        self.before = self.namespace()

    @property
    def store(self) -> Any:
        return self.namenode.namenode.store

    def namespace(self) -> Any:
        return self.namenode.wait(read_namespace(self.store))

    def refuses(self, match: str, *, times: int = 2) -> None:
        """Every kind of change is refused, again and again."""
        changes: list[tuple[str, tuple[Any, ...]]] = [
            ("create", ("/d/new",)),
            ("mkdirs", ("/e/e",)),
            ("set_permission", ("/d", 0o700)),
            ("rename", ("/d/below", "/below")),
            ("delete", ("/d/f",)),
        ]
        for _ in range(times):
            for method, arguments in changes:
                with pytest.raises(StoreUnavailableException, match=match):
                    getattr(self.client, method)(*arguments)

    def reads(self) -> None:
        info = self.client.get_file_info("/d")
        assert info is not None
        assert info.children == 2

    def serves_again(self) -> None:
        """Nothing has changed; and now it does."""
        assert self.namespace() == self.before
        self.reads()
        self.insists_on("create", "/d/new")
        self.client.mkdirs("/e/e")
        assert self.client.rename("/d/below", "/below")
        assert self.client.delete("/d/f")
        names = [entry.name for entry in self.listing("/d")]
        assert names == [b"new"]
        self.namenode.wait(check_invariants(self.store))

    def insists_on(self, method: str, *arguments: Any) -> None:
        """As clients do: a connection of before may still have to be given up."""
        for _ in range(5):
            with suppress(RetriableException):
                getattr(self.client, method)(*arguments)
                return
        getattr(self.client, method)(*arguments)

    def listing(self, path: str) -> list[Any]:
        listing = self.client.get_listing(path)
        assert listing is not None
        return listing.entries

    def pragma(self, statement: str) -> Any:
        """Make SQLite's connection, which is this process's own, behave."""

        async def execute() -> Any:
            return self.store._db().execute(statement).fetchall()

        return self.namenode.wait(execute())


# SQLite.


@pytest.fixture
def sqlite(tmp_path: Path, control: Control) -> Iterator[Bench]:
    bench = Bench(f"sqlite://{tmp_path}/namespace.db", control)
    yield bench
    bench.namenode.stop()


def test_sqlite_read_only(sqlite: Bench) -> None:
    sqlite.pragma("PRAGMA query_only = ON")
    sqlite.refuses("read-only")
    sqlite.reads()
    sqlite.pragma("PRAGMA query_only = OFF")
    sqlite.serves_again()


def test_sqlite_full(sqlite: Bench) -> None:
    ((pages,),) = sqlite.pragma("PRAGMA page_count")
    sqlite.pragma(f"PRAGMA max_page_count = {pages}")
    made = 0
    refusal = None
    while refusal is None:
        try:
            sqlite.client.mkdirs(f"/d/{'x' * 200}{made}")
            made += 1
        except StoreUnavailableException as error:
            refusal = error
    assert "no space left" in str(refusal)
    children = sqlite.client.get_file_info("/d")
    assert children is not None
    assert children.children == 2 + made
    assert len(sqlite.listing("/d")) == 2 + made
    sqlite.namenode.wait(check_invariants(sqlite.store))
    with pytest.raises(StoreUnavailableException, match="no space left"):
        sqlite.client.mkdirs(f"/d/{'y' * 200}")
    sqlite.pragma("PRAGMA max_page_count = 1000000")
    sqlite.client.mkdirs(f"/d/{'y' * 200}")
    assert len(sqlite.listing("/d")) == 3 + made
    sqlite.namenode.wait(check_invariants(sqlite.store))


def test_sqlite_gone_and_back(sqlite: Bench, tmp_path: Path) -> None:
    path, away = tmp_path / "namespace.db", tmp_path / "away.db"
    path.rename(away)
    sqlite.refuses("does not exist")
    away.rename(path)
    sqlite.serves_again()


def test_sqlite_of_a_newer_version(tmp_path: Path) -> None:
    url = f"sqlite://{tmp_path}/namespace.db"
    asyncio.run(format_namespace(url))

    async def become_newer() -> None:
        store = SqliteStore(tmp_path / "namespace.db")
        store._db().execute("UPDATE meta SET value = '99' WHERE name = 'schema version'")
        await store.close()

    asyncio.run(become_newer())
    before = (tmp_path / "namespace.db").read_bytes()
    with pytest.raises(SchemaVersionError, match="99"):
        NameNodeThread(NameNodeSettings(url))
    assert (tmp_path / "namespace.db").read_bytes() == before


# PostgreSQL.


@pytest.fixture
def postgres(postgres_dsn: str, control: Control) -> Iterator[Bench]:
    bench = Bench(postgres_dsn, control)
    yield bench
    bench.namenode.stop()


def name_of(dsn: str) -> str:
    return dsn.partition("@/")[2].partition("?")[0]


def test_postgres_read_only(
    postgres_server: PostgresServer, postgres_dsn: str, postgres: Bench, control: Control
) -> None:
    """As after a failover to a standby: connections end, and new ones may only read."""
    name = name_of(postgres_dsn)
    postgres_server.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    end = f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'"
    postgres_server.execute(end)
    postgres.refuses("read-only|broke")  # the first ones meet the connections of before
    postgres.refuses("read-only")
    if control is not Control.PESSIMISTIC:  # a shared lock is a write to PostgreSQL
        postgres.reads()
    postgres_server.execute(f"ALTER DATABASE {name} RESET default_transaction_read_only")
    postgres.serves_again()


def test_postgres_full(postgres_server: PostgresServer, postgres_dsn: str, postgres: Bench) -> None:
    name = name_of(postgres_dsn)

    def execute(statement: str) -> None:
        postgres_server.execute(statement, database=name)

    execute(
        "CREATE FUNCTION cairnfs.fail() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN RAISE EXCEPTION 'full' USING ERRCODE = '53100'; END $$"
    )
    # In the middle of a commit, after some tables were written.
    execute(
        "CREATE TRIGGER full_ BEFORE INSERT OR UPDATE OR DELETE ON cairnfs.records"
        " EXECUTE FUNCTION cairnfs.fail()"
    )
    postgres.refuses("no disk space left")
    postgres.reads()
    execute("DROP TRIGGER full_ ON cairnfs.records")
    postgres.serves_again()


def test_postgres_gone_restarted_and_back(tmp_path: Path) -> None:
    with PostgresServer() as server:
        benches = [Bench(server.create_database(c.name.lower()), c) for c in Control]
        server.stop()
        for bench in benches:
            bench.refuses("nothing was changed|cannot be reached", times=1)
            with pytest.raises(StoreUnavailableException):
                bench.client.get_file_info("/d")
        server.start()
        for bench in benches:
            assert bench.namespace() == bench.before
        server.restart()
        for bench in benches:
            bench.serves_again()
            bench.namenode.stop()


def test_postgres_of_a_newer_version(postgres_server: PostgresServer, postgres_dsn: str) -> None:
    asyncio.run(format_namespace(postgres_dsn))
    postgres_server.execute(
        "UPDATE cairnfs.meta SET value = '99' WHERE name = 'schema version'",
        database=name_of(postgres_dsn),
    )
    with pytest.raises(SchemaVersionError, match="99"):
        NameNodeThread(NameNodeSettings(postgres_dsn))
