"""A namespace's tables in PostgreSQL: made once, then brought from version to version.

Everything lives in the schema `cairnfs` of the database.  Formatting and migrating run
in one transaction each, under an advisory lock: of two NameNodes that start at once,
one migrates and the other finds it done.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any

import asyncpg

from cairnfs.errors import SchemaVersionError, StoreUnavailableException
from cairnfs.store.batches import Put
from cairnfs.store.postgres_connections import ConnectionLost, Connections
from cairnfs.store.schema import COUNTERS, SCHEMA_VERSION

MIGRATION_LOCK = 109266183908097  # postgres_functions.sql uses the next one

MIGRATIONS: dict[int, str] = {
    1: "INSERT INTO counters VALUES ('storage', 1)",
    2: "UPDATE records SET a = 0, b = int8send(a) WHERE t = 2",  # leases are found in order
    # Snapshots.
    3: "ALTER TABLE totals ADD snapshots bigint NOT NULL DEFAULT 0,"
    " ADD changed bigint NOT NULL DEFAULT 0;"
    " CREATE INDEX past_by_until ON past (until, t, a, b);"
    " CREATE INDEX past_by_id ON past (id, t) WHERE id IS NOT NULL",
    4: "SELECT",  # the other engine has changed
    # Space that is reserved by open blocks; those that are open already do not count.
    5: "ALTER TABLE totals ADD reserved_bytes bigint NOT NULL DEFAULT 0",
    # Inherited attributes: who does not know of them would lose what rows have of them.
    6: "SELECT",
    # Files are charged by their storage policies, and their rows say by which.  A function more.
    7: "SELECT",
    8: "SELECT",  # the other engine has changed
    # Past rows are found by the snapshot for which they are kept.  Each is kept for the latest
    # moment that it was current at, wherever that is of: when that is removed, it is looked at
    # who needs the row.  One that was current at no moment is needed by none.
    9: "DROP INDEX past_by_until; ALTER TABLE past ADD holder bigint NOT NULL DEFAULT 0;"
    " UPDATE past p SET holder = coalesce((SELECT max(m.txid) FROM (SELECT"
    " ('x' || encode(substr(b, 1, 8), 'hex'))::bit(64)::bigint AS txid FROM records"
    " WHERE t = 13 AND a = 0) m WHERE m.txid >= p.since AND m.txid < p.until), 0);"
    " DELETE FROM past WHERE holder = 0;"
    " CREATE INDEX past_by_holder ON past (holder, until, t, a, b)",
}
"""`version -> script` that brings the tables of that version to the next one."""

_DROP_FUNCTIONS = """
DO $$
DECLARE
    each regprocedure;
BEGIN
    FOR each IN SELECT oid FROM pg_proc WHERE pronamespace = 'cairnfs'::regnamespace LOOP
        EXECUTE 'DROP FUNCTION ' || each;
    END LOOP;
END $$
"""


async def format_database(dsn: str, meta: Mapping[str, str], rows: Sequence[Put] = ()) -> None:
    """Make a namespace that holds these rows, the first transactions of all.

    One that exists is never touched.
    """
    connections = Connections(dsn, 1)
    try:
        async with connections.borrow() as connection, connection.transaction():
            await connection.execute("SELECT pg_advisory_xact_lock($1)", MIGRATION_LOCK)
            exists = await connection.fetchval("SELECT to_regnamespace('cairnfs') IS NOT NULL")
            if not exists:
                await _create(connection, meta, rows)
    except ConnectionLost as lost:
        raise StoreUnavailableException(str(lost)) from lost
    finally:
        await connections.close()
    if exists:
        raise FileExistsError(
            f"{connections.place} holds a CairnFS namespace already; "
            "drop its schema 'cairnfs' first to start over"
        )


async def migrate(connections: Connections) -> None:
    """Bring the database to our schema version, or refuse it."""
    async with connections.borrow() as connection:
        if await _version(connection, connections.place) == SCHEMA_VERSION:
            return
        async with connection.transaction():
            await connection.execute("SELECT pg_advisory_xact_lock($1)", MIGRATION_LOCK)
            version = await _version(connection, connections.place)
            while version < SCHEMA_VERSION:
                await connection.execute(MIGRATIONS[version])
                version += 1
            await connection.execute(_DROP_FUNCTIONS)
            await connection.execute(_script("postgres_functions.sql"))
            await connection.execute(
                "UPDATE meta SET value = $1 WHERE name = 'schema version'", str(version)
            )


async def _create(connection: Any, meta: Mapping[str, str], rows: Sequence[Put]) -> None:
    await connection.execute("CREATE SCHEMA cairnfs")
    await connection.execute(_script("postgres_tables.sql"))
    await connection.execute(_script("postgres_functions.sql"))
    last = max((put.order for put in rows), default=0)
    await connection.execute("INSERT INTO clock VALUES (1, $1)", last)
    await connection.executemany("INSERT INTO counters VALUES ($1, $2)", COUNTERS.items())
    named = {**meta, "schema version": str(SCHEMA_VERSION)}
    await connection.executemany("INSERT INTO meta VALUES ($1, $2)", named.items())
    await connection.executemany(
        "INSERT INTO records (t, a, b, id, since, data) VALUES ($1, $2, $3, $4, $5, $6)",
        [(*put.key, put.id, put.order, put.data) for put in rows],
    )


async def _version(connection: Any, place: str) -> int:
    """The schema's version, if it is one that we can work with."""
    found = None
    with contextlib.suppress(asyncpg.UndefinedTableError):
        found = await connection.fetchval("SELECT value FROM meta WHERE name = 'schema version'")
    if found is None:
        raise StoreUnavailableException(f"{place} is not a CairnFS database; format it first")
    if int(found) > SCHEMA_VERSION:
        raise SchemaVersionError(
            f"{place} has schema version {found}, but this CairnFS knows only up to "
            f"{SCHEMA_VERSION}: upgrade CairnFS; the database was left as it is"
        )
    return int(found)


def _script(name: str) -> str:
    return resources.files("cairnfs.store").joinpath(name).read_text(encoding="utf-8")
