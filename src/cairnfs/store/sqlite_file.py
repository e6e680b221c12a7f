"""A namespace's SQLite file while it is open: its connection, its locks, and where it is.

Invariant: nothing is written unless file and log are still where they were opened.  Who writes to
the tables looks for both (`for_writing`); the journal looks at their `Folder` first.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic
from typing import Any, Final

import apsw

from cairnfs.errors import StoreUnavailableException
from cairnfs.store.sqlite_schema import JOURNAL_SUFFIXES, connect, explain, guard

TIMES_DIFFER_S: Final = 3.0
"""Changes of a directory that are further apart have different times, on any file system."""


class NamespaceFile:
    """A file that exists, and that nobody else has open."""

    def __init__(self, path: Path, complete: Callable[[], None]) -> None:
        """`complete` brings to the tables what is kept in other files, wherever this one is."""
        self._path = path
        self._complete = complete
        self.connection = connect(path)
        self._guard = guard(path, self.connection)
        self._wal = Path(self.connection.filename_wal)
        self._files = identify(self._path), identify(self._wal)

    def fetch(self, statement: str, arguments: Sequence[Any] = ()) -> list[Any]:
        try:
            return self.connection.execute(statement, arguments).fetchall()
        except apsw.Error as error:
            raise self.unavailable(error) from error

    def fetch_many(self, statement: str, arguments: Collection[Sequence[Any]]) -> list[Any]:
        """What a statement finds, for each of these arguments."""
        try:
            return self.connection.executemany(statement, arguments).fetchall()
        except apsw.Error as error:
            raise self.unavailable(error) from error

    @contextmanager
    def writing(self) -> Iterator[apsw.Connection]:
        """A transaction: all of it is on disk at the end, or nothing."""
        db = self.for_writing()
        with self.errors_explained():
            db.execute("BEGIN IMMEDIATE")
            try:
                yield db
                db.execute("COMMIT")
            except BaseException:
                if db.in_transaction:
                    db.execute("ROLLBACK")
                raise

    @contextmanager
    def errors_explained(self) -> Iterator[None]:
        """Errors of SQLite and of the system, in words for callers."""
        try:
            yield
        except (apsw.Error, OSError) as error:
            raise self.unavailable(error) from error

    def for_writing(self) -> apsw.Connection:
        """The connection, after a look whether its files are still where we opened them.

        Else commits would go where nobody finds them again.  The connection stays open:
        it is why no other file can get the same inode, and a file that was brought back
        is the one we know.
        """
        file, wal = identify(self._path), identify(self._wal)
        if (file, wal) == self._files:
            return self.connection
        self._make_whole()
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

    def _make_whole(self) -> None:
        """Bring all commits into our file, wherever it is now.

        It is complete then without its log and journal; and those, if they were left behind,
        will not be taken for those of another file.
        """
        with suppress(apsw.Error, StoreUnavailableException):
            self._complete()
            self.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def unavailable(self, error: apsw.Error | OSError) -> StoreUnavailableException:
        return StoreUnavailableException(f"{explain(error, self._path)}; nothing was changed")

    def abandon(self) -> None:
        """Close it as it is."""
        self.connection.close()
        if self._guard >= 0:
            os.close(self._guard)
            self._guard = -1

    def close(self) -> None:
        """Close it; one that was moved away is complete without its log and journal."""
        if self._files != (identify(self._path), identify(self._wal)):
            self._make_whole()
        self.abandon()


class Folder:
    """What the files of a namespace are in, and when it has last changed.

    Whoever takes away one of them, or puts another in its place, changes the directory: as long as
    nobody does, nobody has to look for each file.  What tells is the time that cannot be set:
    whoever brings back a copy may set the other one to what it was.

    Invariant: between a look that `is_known` and the time when all files were last found in their
    places, the directory has not changed.
    """

    def __init__(self, path: Path) -> None:
        """`path` is one of the files."""
        self._path = str(path.parent)
        self._seen: tuple[int, int, int] | None = None
        self._seen_s = 0.0  # when it was first seen like that
        self._is_known = False

    def look(self) -> tuple[int, int, int] | None:
        """The directory as it is now, for `is_known` and `note`; None if it is not there."""
        try:
            status = os.stat(self._path)
        except OSError:
            return None
        return status.st_dev, status.st_ino, status.st_ctime_ns

    def is_known(self, seen: tuple[int, int, int] | None) -> bool:
        """Whether it is as it was when all files were found in their places."""
        return self._is_known and seen == self._seen

    def note(self, seen: tuple[int, int, int] | None) -> None:
        """All files were found in their places, after this look.

        Of a directory that has just changed that says nothing: it may change once more, and have
        the same time after that.
        """
        now_s = monotonic()
        if seen != self._seen:
            self._seen, self._seen_s = seen, now_s
        self._is_known = seen is not None and now_s - self._seen_s > TIMES_DIFFER_S


def find_file(path: Path) -> Path:
    """Where a namespace really is: its log and its journal have to be beside it.

    Else they would not be found by whoever opens it by another name after a crash.
    """
    if not path.exists():
        raise StoreUnavailableException(
            f"namespace file {path} does not exist; format it first, or bring it back"
        )
    real = path.resolve()
    if real.stat().st_nlink > 1:
        raise StoreUnavailableException(
            f"namespace file {real} has another name (a hard link): what was committed last would"
            " not be found by that name after a crash; remove that link, or make a copy"
        )
    for suffix in JOURNAL_SUFFIXES:
        journal = path.with_name(path.name + suffix)
        if path.is_symlink() and journal.exists():
            raise StoreUnavailableException(
                f"{journal} has commits of {real}, but is beside a link to it; move it to"
                f" {real.with_name(real.name + suffix)}"
            )
    return real


def identify(path: Path) -> tuple[int, int] | None:
    """What tells a file from any other; None if it is not there."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino
