"""A namespace's SQLite file while it is open: its connection, its locks, and where it is.

Invariant: nothing is written unless file and log are still where they were opened.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import apsw

from cairnfs.errors import StoreUnavailableException
from cairnfs.store.sqlite_schema import connect, explain, guard


class NamespaceFile:
    """A file that exists, and that nobody else has open."""

    def __init__(self, path: Path) -> None:
        self._path = path
        if not path.exists():
            raise StoreUnavailableException(
                f"namespace file {path} does not exist; format it first, or bring it back"
            )
        self.connection = connect(path)
        self._guard = guard(path, self.connection)
        self._wal = Path(self.connection.filename_wal)
        self._files = _identity(self._path), _identity(self._wal)

    def fetch(self, statement: str, arguments: Sequence[Any] = ()) -> list[Any]:
        try:
            return self.connection.execute(statement, arguments).fetchall()
        except apsw.Error as error:
            raise self.unavailable(error) from error

    @contextmanager
    def writing(self) -> Iterator[apsw.Connection]:
        """A transaction: all of it is on disk at the end, or nothing."""
        db = self.for_writing()
        try:
            db.execute("BEGIN IMMEDIATE")
            try:
                yield db
                db.execute("COMMIT")
            except BaseException:
                if db.in_transaction:
                    db.execute("ROLLBACK")
                raise
        except apsw.Error as error:
            raise self.unavailable(error) from error

    def for_writing(self) -> apsw.Connection:
        """The connection, after a look whether its files are still where we opened them.

        Else commits would go where nobody finds them again.  The connection stays open:
        it is why no other file can get the same inode, and a file that was brought back
        is the one we know.
        """
        file, wal = _identity(self._path), _identity(self._wal)
        if (file, wal) == self._files:
            return self.connection
        self._empty_wal()
        if file is None:
            problem = f"namespace file {self._path} is gone; bring it back"
        elif file != self._files[0]:
            problem = (
                f"namespace file {self._path} was replaced by another file; restart the NameNode"
            )
        elif wal is None:
            problem = f"{self._wal} is gone; bring it back, or restart the NameNode"
        else:
            problem = f"{self._wal} was replaced by another file; restart the NameNode"
        raise StoreUnavailableException(f"{problem}; nothing was changed")

    def _empty_wal(self) -> None:
        """Bring all commits into our file, wherever it is now.

        It is complete then without its log; and the log, if it was left behind, will not
        be taken for that of another file.
        """
        with suppress(apsw.Error):
            self.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def unavailable(self, error: apsw.Error) -> StoreUnavailableException:
        return StoreUnavailableException(f"{explain(error, self._path)}; nothing was changed")

    def abandon(self) -> None:
        """Close it as it is."""
        self.connection.close()
        if self._guard >= 0:
            os.close(self._guard)
            self._guard = -1

    def close(self) -> None:
        """Close it; one that was moved away is complete without its log."""
        if self._files != (_identity(self._path), _identity(self._wal)):
            self._empty_wal()
        self.abandon()


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino
