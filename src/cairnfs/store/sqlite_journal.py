"""The journal of a SQLite namespace: commits that are on disk before they are in its tables.

A commit is one write and one sync, of a file that is written over rather than made longer: that
costs half of what the same bytes cost as a row of a table.  There are two files, which take turns.
While the commits of one are brought to the tables, later ones go to the other; when all of
the first are there it may be begun anew.

    file     salt, checksum of the salt, records, and after them what is left of earlier times
    record   salt, length, checksum, data

The salt is made anew each time a file is begun: so what is left of earlier times is not taken for a
record, nor are bytes that a caller has put into one.  The first one of a file is on disk before
any record is: whoever finds none, and something behind it, knows that it was lost.

Invariant: a record is whole on disk before `append` returns, and is not written over before `turn`
or `begin` say that it is in the tables.  Which records are not, the store knows by its clock; a
torn one at the end was never answered.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Iterator
from contextlib import suppress
from os import fdatasync, pwrite
from pathlib import Path
from typing import Final

from cairnfs.errors import StoreUnavailableException
from cairnfs.store.sqlite_file import identify
from cairnfs.store.sqlite_schema import JOURNAL_SUFFIXES

_SALT_BYTES: Final = 8
_BEGINNING: Final = struct.Struct(f">{_SALT_BYTES}sI")  # salt, checksum
_RECORD: Final = struct.Struct(f">{_SALT_BYTES}sII")  # salt, length, checksum


class Journal:
    """Both files of a namespace; there are none until something is appended."""

    def __init__(self, path: Path) -> None:
        self._current, self._other = [
            _File(path.with_name(path.name + suffix)) for suffix in JOURNAL_SUFFIXES
        ]

    def read(self) -> list[bytes]:
        """All records there are, of both files, whether they are in the tables by now or not."""
        return [*self._current.read(), *self._other.read()]

    @property
    def is_in_place(self) -> bool:
        """Whether what was appended last would be found again after a crash."""
        return self._current.is_in_place and self._other.is_in_place

    @property
    def bytes_appended(self) -> int:
        """Since the last `turn` or `begin`."""
        return self._current.bytes_written

    def append(self, data: bytes) -> None:
        """Write a record; it is on disk then.  After an OSError it is as if nobody had tried, or
        the journal `is_in_doubt`; `clear_doubt` comes before another one.
        """
        self._current.append(data)

    @property
    def is_in_doubt(self) -> bool:
        """Whether a record that was refused may be on disk all the same."""
        return self._current.is_in_doubt or self._other.is_in_doubt

    def clear_doubt(self) -> None:
        """See to it that none is; OSError as long as the disk fails."""
        self._current.clear_doubt()
        self._other.clear_doubt()

    def turn(self) -> None:
        """Go on with the other file, from its beginning: all that it holds is in the tables."""
        self._current, self._other = self._other, self._current
        self._current.begin()

    def begin(self) -> None:
        """Begin anew: all that both files hold is in the tables."""
        self._current.begin()

    def remove(self) -> None:
        """All records are in the tables: there is nothing to be found again."""
        try:
            self._current.remove()
        finally:
            self._other.remove()

    def close(self) -> None:
        """Leave the files as they are."""
        self._current.close()
        self._other.close()


class _File:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor = -1
        self._identity: tuple[int, int] | None = None
        self._is_ours = False  # what there is under this name was read, or made
        self._salt = b""  # none: there is no beginning on disk
        self._doubtful_at = -1  # where a record was refused that may be there all the same
        self.bytes_written = 0  # since it was begun: where the next record goes

    def read(self) -> Iterator[bytes]:
        try:
            content = self._path.read_bytes()
        except FileNotFoundError:
            return
        self._is_ours = True
        beginning = content[: _BEGINNING.size]
        if len(beginning) < _BEGINNING.size or not content.strip(b"\0"):
            return  # it was made, and nothing was answered since
        salt, checksum = _BEGINNING.unpack(beginning)
        if checksum != zlib.crc32(salt):
            raise StoreUnavailableException(f"{self._path} is damaged: {_WHAT_TO_DO}")
        at = _BEGINNING.size
        while (at := content.find(salt, at)) >= 0:
            end = at + _RECORD.size
            if end <= len(content):
                _, length, checksum = _RECORD.unpack_from(content, at)
                data = content[end : end + length]
                if len(data) == length and _checksum(salt, data) == checksum:
                    yield data
                    at = end + length
                    continue
            at += 1

    @property
    def is_in_place(self) -> bool:
        return self._descriptor < 0 or identify(self._path) == self._identity

    def begin(self) -> None:
        self.bytes_written = 0

    def append(self, data: bytes) -> None:
        self._make_ready()
        salt, beginning = self._salt, b""
        if not self.bytes_written:  # begun anew: until this is on disk, the older beginning is
            salt = self._salt = os.urandom(_SALT_BYTES)
            beginning = _BEGINNING.pack(salt, zlib.crc32(salt))
        record = _RECORD.pack(salt, len(data), _checksum(salt, data))
        written = b"".join((beginning, record, data))
        try:
            self._write(written)
            fdatasync(self._descriptor)
        except OSError:
            self._doubtful_at = self.bytes_written + len(beginning)
            with suppress(OSError):  # then before the next record
                self.clear_doubt()
            raise
        self.bytes_written += len(written)

    @property
    def is_in_doubt(self) -> bool:
        return self._doubtful_at >= 0

    def clear_doubt(self) -> None:
        if self._doubtful_at >= 0:
            pwrite(self._descriptor, bytes(_RECORD.size), self._doubtful_at)
            fdatasync(self._descriptor)
            self._doubtful_at = -1

    def _write(self, data: bytes) -> None:
        at = self.bytes_written
        while data:
            count = pwrite(self._descriptor, data, at)
            data, at = data[count:], at + count

    def _make_ready(self) -> None:
        """Make a file that is found after a crash, and has a beginning; or go on with that."""
        if self._descriptor < 0:
            flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            self._descriptor = os.open(self._path, flags, 0o644)
            status = os.fstat(self._descriptor)
            self._identity = status.st_dev, status.st_ino
            self._is_ours = True
        if not self._salt:
            _sync_directory(self._path.parent)
            salt = os.urandom(_SALT_BYTES)
            self._write(_BEGINNING.pack(salt, zlib.crc32(salt)))
            fdatasync(self._descriptor)
            self._salt, self.bytes_written = salt, _BEGINNING.size

    def remove(self) -> None:
        if self._is_ours and self.is_in_place:
            self._path.unlink(missing_ok=True)
        self._is_ours = False
        self.close()

    def close(self) -> None:
        if self._descriptor >= 0:
            with suppress(OSError):
                self.clear_doubt()
            os.close(self._descriptor)
        self._descriptor = -1
        self._salt = b""
        self._doubtful_at = -1
        self.bytes_written = 0


_WHAT_TO_DO: Final = (
    "commits that were answered would be lost without it; bring back a copy of the"
    " namespace, all its files together, or move away what never was part of it"
)


def lost_commits(path: Path, txid: int) -> StoreUnavailableException:
    """A commit is missing that later ones follow: no crash leaves files like this."""
    return StoreUnavailableException(
        f"the journal beside {path} is damaged, or that of another file: what was committed after"
        f" TxID {txid} is not in it, but what was later is; {_WHAT_TO_DO}"
    )


def _sync_directory(path: Path) -> None:
    directory = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def _checksum(salt: bytes, data: bytes) -> int:
    return zlib.crc32(data, zlib.crc32(salt))
