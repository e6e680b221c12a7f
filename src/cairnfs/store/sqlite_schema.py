"""A namespace's SQLite file: made once, then brought from version to version.

Formatting is one transaction, and a file whose formatting failed is removed.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import apsw

from cairnfs.errors import SchemaVersionError, StoreUnavailableException
from cairnfs.store.base import Count
from cairnfs.store.batches import Put
from cairnfs.store.schema import COUNTERS, PAIR, SCHEMA_VERSION, Table

# The pages of some twenty times the tables are brought up: each goes to the file once for all.
CHECKPOINT_PAGES = 4000

JOURNAL_SUFFIXES = ("-redo1", "-redo2")
"""Of the files beside a namespace file in which its last commits are; see `sqlite_journal`."""

COUNT_COLUMNS = [count.name.lower() for count in Count]

INSERT = "INSERT INTO records (t, a, b, id, since, data) VALUES (?, ?, ?, ?, ?, ?)"

# Rows lie in the order in which they came, beside narrow indexes: keeping a version costs every
# caller that changes something, reading it back a few.
_PAST = """
CREATE TABLE past (
    t INTEGER NOT NULL, a INTEGER NOT NULL, b BLOB NOT NULL,
    until INTEGER NOT NULL, since INTEGER NOT NULL, id INTEGER, data BLOB NOT NULL,
    holder INTEGER NOT NULL DEFAULT 0);
CREATE UNIQUE INDEX past_by_key ON past (t, a, b, until);
CREATE INDEX past_by_holder ON past (holder, until);
CREATE INDEX past_by_id ON past (id, t) WHERE id IS NOT NULL;
"""

_PAST_UP_TO_9 = """
CREATE TABLE past (
    t INTEGER NOT NULL, a INTEGER NOT NULL, b BLOB NOT NULL,
    until INTEGER NOT NULL, since INTEGER NOT NULL, id INTEGER, data BLOB NOT NULL);
CREATE UNIQUE INDEX past_by_key ON past (t, a, b, until);
CREATE INDEX past_by_until ON past (until);
CREATE INDEX past_by_id ON past (id, t) WHERE id IS NOT NULL;
"""

_SCHEMA = f"""
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE clock (txid INTEGER NOT NULL);
CREATE TABLE journal (n INTEGER PRIMARY KEY, data BLOB NOT NULL);
CREATE TABLE counters (name TEXT PRIMARY KEY, next INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE records (
    t INTEGER NOT NULL, a INTEGER NOT NULL, b BLOB NOT NULL,
    id INTEGER, since INTEGER NOT NULL, data BLOB NOT NULL,
    PRIMARY KEY (t, a, b)) WITHOUT ROWID;
CREATE INDEX records_by_id ON records (id, t) WHERE id IS NOT NULL;
{_PAST}
CREATE TABLE totals (
    id INTEGER PRIMARY KEY,
    {", ".join(f"{name} INTEGER NOT NULL" for name in COUNT_COLUMNS)},
    mtime_ms INTEGER NOT NULL, touched INTEGER NOT NULL, changed INTEGER NOT NULL);
CREATE TABLE replies (
    client_id BLOB NOT NULL, last_call INTEGER NOT NULL, txid INTEGER NOT NULL,
    first_call INTEGER NOT NULL, expires_ms INTEGER NOT NULL, calls BLOB NOT NULL,
    data BLOB NOT NULL,
    PRIMARY KEY (client_id, last_call, txid)) WITHOUT ROWID;
CREATE INDEX replies_by_expiry ON replies (expires_ms);
"""

MIGRATIONS: dict[int, str] = {
    1: "INSERT INTO counters VALUES ('storage', 1)",
    # Leases are found in the order of their files.
    2: "UPDATE records SET a = 0, b = unhex(printf('%016x', a)) WHERE t = 2;"
    " CREATE TABLE journal (n INTEGER PRIMARY KEY, data BLOB NOT NULL)",
    # Snapshots.
    3: "ALTER TABLE totals ADD COLUMN snapshots INTEGER NOT NULL DEFAULT 0;"
    " ALTER TABLE totals ADD COLUMN changed INTEGER NOT NULL DEFAULT 0;"
    " CREATE INDEX past_by_until ON past (until);"
    " CREATE INDEX past_by_id ON past (id, t) WHERE id IS NOT NULL",
    # Past rows lie in another order.
    4: "DROP INDEX past_by_until; DROP INDEX past_by_id; ALTER TABLE past RENAME TO old_past;"
    f" {_PAST_UP_TO_9}"
    " INSERT INTO past (t, a, b, until, since, id, data)"
    " SELECT t, a, b, until, since, id, data FROM old_past ORDER BY until, t, a, b;"
    " DROP TABLE old_past",
    # Space that is reserved by open blocks; those that are open already do not count.
    5: "ALTER TABLE totals ADD COLUMN reserved_bytes INTEGER NOT NULL DEFAULT 0",
    # Inherited attributes: who does not know of them would lose what rows have of them.
    6: "SELECT 1",
    # Files are charged by their storage policies, and their rows say by which.
    7: "SELECT 1",
    # The journal is in files of its own, of which older versions know nothing: they would go on
    # without the commits in it.  Some of version 8 write them already; what the others have left in
    # their table goes to its tables as soon as the file is opened.
    8: "SELECT 1",
    # Past rows are found by the snapshot for which they are kept: see `find_holders`.
    9: "DROP INDEX past_by_until; ALTER TABLE past ADD COLUMN holder INTEGER NOT NULL DEFAULT 0;"
    " CREATE INDEX past_by_holder ON past (holder, until)",
}
"""`version -> script` that brings a file of that version to the next one."""


def format_file(path: Path, meta: Mapping[str, str], rows: Sequence[Put] = ()) -> None:
    """Make a namespace file that holds these rows, the first transactions of all.

    An existing file is never overwritten; nor the log or the journal of one that was moved
    away, which may hold its last commits.
    """
    suffixes = ("", "-wal", "-shm", *JOURNAL_SUFFIXES)
    files = [path.with_name(path.name + suffix) for suffix in suffixes]
    for file in files:
        if file.exists():
            raise FileExistsError(f"{file} exists already; choose another name for a new one")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(exist_ok=False)  # of two that format at once, one goes on
    try:
        connection = connect(path)
        try:
            with connection:
                _create(connection, meta, rows)
        except apsw.Error as error:
            raise StoreUnavailableException(explain(error, path)) from error
        finally:
            connection.close()
    except BaseException:
        for file in files:
            file.unlink(missing_ok=True)
        raise


def connect(path: Path) -> apsw.Connection:
    """Open a file that exists, for this process alone."""
    connection = None
    try:
        connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
        if connection.readonly("main"):  # SQLite falls back to this without a word
            connection.close()
            raise StoreUnavailableException(
                f"namespace file {path} is read-only for this user (uid {os.getuid()})"
            )
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute("PRAGMA page_size = 2048")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA cache_size = -65536")
        connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
        connection.execute("BEGIN IMMEDIATE; COMMIT")  # take the file now, not at the first write
    except apsw.Error as error:
        if connection is not None:
            connection.close()
        raise StoreUnavailableException(explain(error, path)) from error
    return connection


def guard(path: Path, connection: apsw.Connection) -> int:
    """A second lock on the file, as an open descriptor.

    SQLite's own is lost as soon as anything in this process opens the file and closes it.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        connection.close()
        os.close(descriptor)
        text = f"namespace file {path} is in use by another process"
        raise StoreUnavailableException(text) from None
    return descriptor


_FULL = (errno.ENOSPC, errno.EDQUOT)
_READ_ONLY = (errno.EROFS, errno.EACCES, errno.EPERM)


def migrate(connection: apsw.Connection, path: Path) -> None:
    """Bring the file to our schema version, or refuse it."""
    try:
        version = _version(connection, path)
        while version < SCHEMA_VERSION:
            with connection:
                connection.execute(MIGRATIONS[version])
                version += 1
                connection.execute(
                    "UPDATE meta SET value = ? WHERE name = 'schema version'", (str(version),)
                )
    except apsw.Error as error:
        raise StoreUnavailableException(explain(error, path)) from error


def find_holders(connection: apsw.Connection) -> None:
    """Find the snapshots for which the past rows of earlier versions are kept.

    Each is kept for the latest moment at which it was current, of whatever directory.  When that
    is removed, the reclaim duty finds out which snapshot needs the row.  A row that was current at
    no moment is needed by none.
    """
    if connection.execute("SELECT 1 FROM past WHERE holder = 0 LIMIT 1").fetchone() is None:
        return
    found = connection.execute("SELECT b FROM records WHERE t = ? AND a = 0", (Table.MOMENTS,))
    moments = {(PAIR.unpack(place)[0],) for (place,) in found}
    connection.execute("CREATE TEMP TABLE moments (txid INTEGER PRIMARY KEY)")
    connection.executemany("INSERT INTO moments VALUES (?)", sorted(moments))
    connection.execute(
        "UPDATE past SET holder = coalesce((SELECT max(txid) FROM moments"
        " WHERE txid >= since AND txid < until), 0) WHERE holder = 0;"
        " DELETE FROM past WHERE holder = 0; DROP TABLE temp.moments"
    )


def explain(error: apsw.Error | OSError, path: Path) -> str:
    """What SQLite's error, or the system's, means, and what to do about it."""
    if isinstance(error, apsw.BusyError):
        return f"namespace file {path} is in use by another process"
    if isinstance(error, apsw.FullError) or getattr(error, "errno", 0) in _FULL:
        return f"no space left for namespace file {path}; free some and call again"
    if isinstance(error, apsw.ReadOnlyError) or getattr(error, "errno", 0) in _READ_ONLY:
        return f"namespace file {path} is read-only"
    if isinstance(error, FileExistsError | IsADirectoryError):  # of the journal, which we make
        return f"{error.filename} is in the way of the journal of {path}; move it away"
    if isinstance(error, apsw.NotADBError | apsw.CorruptError):
        return f"{path} is damaged or not a CairnFS namespace file ({error})"
    if isinstance(error, apsw.CantOpenError):
        return f"namespace file {path} cannot be opened; check its folder and permissions"
    return f"namespace file {path}: {error}"


def _create(connection: apsw.Connection, meta: Mapping[str, str], rows: Sequence[Put]) -> None:
    connection.execute(_SCHEMA)
    last = max((put.order for put in rows), default=0)
    connection.execute("INSERT INTO clock VALUES (?)", (last,))
    connection.executemany("INSERT INTO counters VALUES (?, ?)", list(COUNTERS.items()))
    named = {**meta, "schema version": str(SCHEMA_VERSION)}
    connection.executemany("INSERT INTO meta VALUES (?, ?)", list(named.items()))
    records = [(*put.key, put.id, put.order, put.data) for put in rows]
    connection.executemany(INSERT, records)


def _version(connection: apsw.Connection, path: Path) -> int:
    """The schema's version, if it is one that we can work with."""
    found = None
    with contextlib.suppress(apsw.SQLError):  # no such table
        found = connection.execute(
            "SELECT value FROM meta WHERE name = 'schema version'"
        ).fetchone()
    if found is None:
        raise StoreUnavailableException(f"{path} is not a CairnFS namespace file")
    version = int(str(found[0]))
    if version > SCHEMA_VERSION:
        raise SchemaVersionError(
            f"{path} has schema version {version}, but this CairnFS knows only up to "
            f"{SCHEMA_VERSION}: upgrade CairnFS; the file was left as it is"
        )
    return version
