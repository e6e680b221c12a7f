"""A database that is read-only, full, gone or of the future, as callers notice it.

What the stores themselves say is tested in `tests/store/test_failures`.  Here: a call is
refused with an error that a client retries, nothing has changed, and the same NameNode
serves again once the database is back.
"""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from cairnfs.config import Control, NameNodeSettings
from cairnfs.errors import (
    RetriableException,
    SchemaVersionError,
    StoreUnavailableException,
)
from cairnfs.namenode.embedded import NameNodeThread
from cairnfs.namenode.membership import PostgresMembership
from cairnfs.namenode.opening import format_namespace, open_store
from cairnfs.store import postgres_schema, sqlite_commits, sqlite_journal, sqlite_schema
from cairnfs.store.postgres import PostgresStore
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
            return self.store._connection.execute(statement).fetchall()

        return self.namenode.wait(execute())


# SQLite.


@pytest.fixture
def sqlite(tmp_path: Path, control: Control) -> Iterator[Bench]:
    bench = Bench(f"sqlite://{tmp_path}/namespace.db", control)
    yield bench
    bench.namenode.stop()


def test_sqlite_read_only(sqlite: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object) -> int:
        raise OSError(errno.EROFS, "Read-only file system")

    sqlite.pragma("PRAGMA query_only = ON")
    monkeypatch.setattr(sqlite_journal, "pwrite", refuse)
    sqlite.refuses("read-only; nothing was changed")
    sqlite.reads()
    sqlite.pragma("PRAGMA query_only = OFF")
    monkeypatch.undo()
    sqlite.serves_again()


def test_sqlite_full(sqlite: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_commits, "JOURNALED_CALLS_MAX", 20)
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
    sqlite.refuses("is gone; bring it back; nothing was changed")
    away.rename(path)
    sqlite.serves_again()


def test_sqlite_replaced_by_another(sqlite: Bench, tmp_path: Path) -> None:
    """What was computed from one file is not written to another."""
    path, away, other = (tmp_path / name for name in ("namespace.db", "away.db", "other.db"))
    asyncio.run(format_namespace(f"sqlite://{other}"))
    content = other.read_bytes()
    path.rename(away)
    other.rename(path)
    sqlite.refuses("was replaced by another file; restart the NameNode; nothing was changed")
    assert path.read_bytes() == content
    path.rename(other)
    away.rename(path)
    sqlite.serves_again()


def test_sqlite_of_a_newer_version(tmp_path: Path) -> None:
    url = f"sqlite://{tmp_path}/namespace.db"
    asyncio.run(format_namespace(url))

    async def become_newer() -> None:
        store = SqliteStore(tmp_path / "namespace.db")
        store._connection.execute("UPDATE meta SET value = '99' WHERE name = 'schema version'")
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
    for _ in range(3):  # the first ones meet the connections of before, in the middle of a commit
        postgres.refuses("read-only|broke|is not known yet")
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


# Opening that fails half-way.


async def fail(*_: Any) -> None:
    raise StoreUnavailableException("it was there a moment ago")


def test_sqlite_that_fails_at_opening_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def check() -> None:
        url = f"sqlite://{tmp_path}/namespace.db"
        await format_namespace(url)
        with monkeypatch.context() as patch:
            patch.setattr(SqliteStore, "meta", fail)
            with pytest.raises(StoreUnavailableException, match="a moment ago") as told:
                await open_store(NameNodeSettings(url))
        assert told.tb  # which keeps what was opened from being collected
        opened = await open_store(NameNodeSettings(url))
        await opened.store.close()

    asyncio.run(check())


@pytest.mark.parametrize(
    ("owner", "method"), [(PostgresStore, "meta"), (PostgresMembership, "_enter")]
)
def test_postgres_that_fails_at_opening_is_closed(
    postgres_dsn: str, monkeypatch: pytest.MonkeyPatch, owner: type, method: str
) -> None:
    sessions = (
        "SELECT count(*) FROM pg_stat_activity"
        " WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    alive = "SELECT count(*) FROM cairnfs.members WHERE heartbeat > '-infinity'"

    async def check() -> None:
        await format_namespace(postgres_dsn)
        monkeypatch.setattr(owner, method, fail)
        with pytest.raises(StoreUnavailableException, match="a moment ago"):
            await open_store(NameNodeSettings(postgres_dsn))
        assert asyncio.all_tasks() == {asyncio.current_task()}
        observer = await asyncpg.connect(postgres_dsn)
        try:
            for _ in range(500):  # a server takes a moment to end a session
                if not await observer.fetchval(sessions):
                    break
                await asyncio.sleep(0.01)
            assert await observer.fetchval(sessions) == 0
            assert await observer.fetchval(alive) == 0
        finally:
            await observer.close()

    asyncio.run(check())


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_namespace_is_made_with_its_root_or_not_at_all(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"sqlite://{tmp_path}/namespace.db"
    if kind == "postgres":
        url = request.getfixturevalue("postgres_dsn")
    with monkeypatch.context() as patch:
        for module in (sqlite_schema, postgres_schema):
            patch.setattr(module, "COUNTERS", {"no number": object()})
        with pytest.raises(Exception, match=r"object|number"):
            asyncio.run(format_namespace(url))
    with monkeypatch.context() as patch:
        for store in (SqliteStore, PostgresStore):
            patch.setattr(store, "commit", fail)  # a second step would be one too many
        asyncio.run(format_namespace(url))
    namenode = NameNodeThread(NameNodeSettings(url, duties=False))
    root = namenode.client().get_file_info("/")
    namenode.stop()
    assert root is not None
