"""What has been committed to a SQLite namespace: what its tables have, and what waits for them.

A batch is durable once it is in the journal.  Its changes wait in the backlog, and go to the
tables with those of a few thousand other calls, each page once.  That is one transaction of
SQLite, but not one step: its statements are run a slice at a time, between the batches that
follow; these go to the journal meanwhile, which does not need the transaction's connection.

Invariant: the tables together with the backlog are what has been committed.  The clock in the
tables changes with them: whatever is in the journal and later than it is in the backlog.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import apsw

from cairnfs.errors import StoreUnavailableException
from cairnfs.store.schema import Key
from cairnfs.store.sqlite_backlog import Backlog
from cairnfs.store.sqlite_change import Change, decode_change, encode_change
from cairnfs.store.sqlite_file import Folder, NamespaceFile, find_file
from cairnfs.store.sqlite_journal import Journal, lost_commits
from cairnfs.store.sqlite_schema import explain, find_holders, migrate

JOURNALED_CALLS_MAX = 8192
"""Once so many calls wait for their tables, they are brought there, slice by slice."""

JOURNALED_BYTES_MAX = 8 << 20
"""Or once they have so many bytes in the journal: three times as many as calls have as a rule."""

SETTLED_AT_REST_MIN = 2048
"""So many calls are brought there as soon as there is nothing else to do."""

SETTLED_AT_REST_BYTES_MIN = 2 << 20

_SET_CLOCK: Final = "UPDATE clock SET txid = ?"


class Commits:
    """The files of a namespace while it is open."""

    def __init__(self, path: Path) -> None:
        path = find_file(path)
        self.file = NamespaceFile(path, self._settle_all)
        self.backlog = Backlog()
        self.txid = 0
        self._path = path
        self._db = self.file.connection
        self._journal = Journal(path)
        self._folder = Folder(path)
        self._settling: Iterator[None] | None = None  # what is left to be done
        self._settling_txid = 0  # the last that is being brought to the tables
        self._has_failed = False  # when a slice was last tried
        self._may_turn = True  # what is in the journal's other file is in the tables
        self._is_in_doubt = False  # SQLite's log may end with a commit that was refused
        try:
            migrate(self._db, path)
            self._recover()
        except BaseException:
            self._journal.close()
            self.file.abandon()
            raise

    def journal(self, change: Change, new: Iterable[Key]) -> None:
        """Commit a change; its tables have to wait.  For `new` see `Backlog.add`."""
        if self._has_failed:
            self.settle()  # or whoever commits is told why not
        self._clear_doubt()
        if self._is_in_doubt:
            self._write_over_doubt()
        seen = self._folder.look()
        if not self._folder.is_known(seen):
            self._look_for_files()
            self._folder.note(seen)
        try:
            self._journal.append(encode_change(change))
        except OSError as error:
            raise self._refused(error) from error
        self.backlog.add(change, new)
        self.txid = change.last_txid

    @contextmanager
    def to_tables(self, change: Change) -> Iterator[apsw.Connection]:
        """Commit a change to the tables, after all that waits.

        What the block does belongs to it; if it raises, nothing is changed.
        """
        self._clear_doubt()
        try:
            with self.writing() as db:
                self.backlog.write(db)
                Backlog([change]).write(db)
                db.execute(_SET_CLOCK, (change.last_txid,))
                yield db
        except StoreUnavailableException:
            self._is_in_doubt = True
            with suppress(StoreUnavailableException):  # then before the next commit
                self._write_over_doubt()
            raise
        self.txid = change.last_txid
        self.backlog = Backlog()
        self._begin_journal()

    @contextmanager
    def writing(self) -> Iterator[apsw.Connection]:
        """A transaction of the tables alone."""
        self.file.for_writing()
        with self.file.errors_explained():
            self._finish_settling()
        with self.file.writing() as db:
            yield db
        self._is_in_doubt = False

    # To the tables.

    @property
    def is_settling(self) -> bool:
        """Whether it is time for `settle_some`, whatever else there is to do."""
        return (
            self._settling is not None
            or self.backlog.calls >= JOURNALED_CALLS_MAX
            or self._journal.bytes_appended >= JOURNALED_BYTES_MAX
            or self.backlog.hinders_scans
        )

    @property
    def would_settle(self) -> bool:
        """Whether it is, for those who have nothing else to do."""
        return (
            self.backlog.calls >= SETTLED_AT_REST_MIN
            or self._journal.bytes_appended >= SETTLED_AT_REST_BYTES_MIN
            or self.is_settling
        )

    def settle_some(self) -> None:
        """Bring a slice of what waits to the tables, or begin with it."""
        if not self.would_settle:
            return  # somebody had to have it done at once
        self._has_failed = True  # unless we come to the end
        self.file.for_writing()
        with self.file.errors_explained():
            if self._settling is None:
                self._begin_settling()
            else:
                self._settle_slice()
        self._has_failed = False

    def settle(self) -> None:
        """Bring the tables up to date."""
        self.file.for_writing()
        with self.file.errors_explained():
            self._settle_all()
        self._has_failed = False

    def close(self) -> None:
        with suppress(StoreUnavailableException):  # then from the journal, the next time
            self.settle()
        if not self.backlog:
            with suppress(OSError):  # what is in its place is not ours
                self._journal.remove()
        self._journal.close()
        self.file.close()

    # Inside.

    def _look_for_files(self) -> None:
        """Raise StoreUnavailableException if commits would not be found again after a crash."""
        self.file.for_writing()
        if not self._journal.is_in_place:
            self.settle()
            with self.file.errors_explained():
                self._journal.remove()

    def _clear_doubt(self) -> None:
        """Or the TxIDs of a commit that was refused could be there twice."""
        try:
            self._journal.clear_doubt()
        except OSError as error:
            raise self.file.unavailable(error) from error

    def _refused(self, error: OSError) -> StoreUnavailableException:
        if not self._journal.is_in_doubt:
            return self.file.unavailable(error)
        return StoreUnavailableException(
            f"{explain(error, self._path)}; nothing was changed, unless this NameNode ends before"
            " its disk works again"
        )

    def _recover(self) -> None:
        """Take up where the last process has stopped."""
        ((txid,),) = self.file.fetch("SELECT txid FROM clock")
        older = self.file.fetch("SELECT data FROM journal ORDER BY n")  # up to version 8
        with self.file.errors_explained():
            records = [data for (data,) in older] + self._journal.read()
        changes = [change for change in map(decode_change, records) if change.last_txid > txid]
        changes.sort(key=lambda change: change.last_txid)
        for change in changes:
            if change.last_txid - change.size != txid:
                raise lost_commits(self._path, txid)
            txid = change.last_txid
        self.txid = txid
        self.backlog = Backlog(changes)
        self.settle()
        if older:
            self._db.execute("DELETE FROM journal")
        self._journal.remove()
        with self.writing() as db:
            find_holders(db)

    def _write_over_doubt(self) -> None:
        """Commit something else where SQLite's log may end with a commit that was refused.

        If the disk could not be brought to say that it has it, it may have it all the same: after
        a crash it would be found, and its TxID would be that of a later commit in the journal.
        """
        with self.writing() as db:
            for change in (1, -1):  # SQLite would not write a value that is there already
                db.execute("UPDATE clock SET txid = txid + ?", (change,))

    def _settle_all(self) -> None:
        self._finish_settling()
        if self.backlog:
            self._begin_settling()
            self._finish_settling()
        self._begin_journal()

    def _begin_settling(self) -> None:
        self._db.execute("BEGIN IMMEDIATE")
        self._settling = self.backlog.write_in_slices(self._db)
        self._settling_txid = self.txid
        if self._may_turn:
            self._journal.turn()
            self._may_turn = False

    def _finish_settling(self) -> None:
        while self._settling is not None:
            self._settle_slice()

    def _settle_slice(self) -> None:
        assert self._settling is not None
        try:
            for _ in self._settling:
                return
            self._db.execute(_SET_CLOCK, (self._settling_txid,))
            self._db.execute("COMMIT")
        except BaseException:
            self._settling = None
            self.backlog.keep_all()
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise
        self._settling = None
        self.backlog.forget_written()
        self._may_turn = True

    def _begin_journal(self) -> None:
        """All there is is in the tables."""
        self._journal.begin()
        self._may_turn = True
