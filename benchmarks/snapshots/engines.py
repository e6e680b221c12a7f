"""Plain SQL on either engine, the same for both: for experiments with tables of their own."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Any, Protocol

import apsw
import asyncpg

from benchmarks.namespaces import POSTGRES, Namespaces, database_of

Values = Sequence[Any]


class Engine(Protocol):
    """Statements with `$1`, `$2`; each is a transaction of its own."""

    async def query(self, statement: str, *values: Any) -> list[tuple[Any, ...]]: ...

    async def insert_all(self, table: str, rows: Iterable[Values]) -> None:
        """Many rows at once, as fast as the engine takes them from outside."""
        ...


class SqliteEngine:
    """A file with the settings of our store."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    async def query(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        numbered = re.sub(r"\$(\d+)", r"?\1", statement)
        return list(self._connection.execute(numbered, values))

    async def insert_all(self, table: str, rows: Iterable[Values]) -> None:
        listed = list(rows)
        if listed:
            marks = ", ".join("?" * len(listed[0]))
            with self._connection:
                self._connection.executemany(f"INSERT INTO {table} VALUES ({marks})", listed)


class PostgresEngine:
    """One connection."""

    def __init__(self, connection: asyncpg.Connection) -> None:
        self._connection = connection

    async def query(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in await self._connection.fetch(statement, *values)]

    async def insert_all(self, table: str, rows: Iterable[Values]) -> None:
        await self._connection.copy_records_to_table(table, records=rows)


@asynccontextmanager
async def empty_engine(namespaces: Namespaces, kind: str) -> AsyncIterator[Engine]:
    """An empty database, gone afterwards."""
    if kind == POSTGRES:
        assert namespaces.server is not None
        url = namespaces.server.create_database("coverage")
        connection = await asyncpg.connect(url)
        try:
            yield PostgresEngine(connection)
        finally:
            await connection.close()
            namespaces.server.drop_database(database_of(url))
        return
    path = namespaces.directory / "coverage.db"
    file = apsw.Connection(str(path))
    file.execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL")
    try:
        yield SqliteEngine(file)
    finally:
        file.close()
        path.unlink()
