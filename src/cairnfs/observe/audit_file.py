"""The file of an audit log: lines are appended by a thread, and put aside when there are many.

Whoever adds a line never waits for a disk.  Invariant: at most `UNWRITTEN_BYTES_MAX` bytes are
kept in memory; lines that cannot be written are lost, counted and complained about, and nothing
else happens.
"""

from __future__ import annotations

import errno
import logging
import os
import threading
import time
from collections import deque
from contextlib import suppress
from pathlib import Path

log = logging.getLogger(__name__)

WRITE_INTERVAL_S = 0.25  # lines are in the file so much later at most
WRITE_AT_ONCE_BYTES = 256 << 10
LINES_AT_ONCE = 1000
UNWRITTEN_BYTES_MAX = 64 << 20
COMPLAIN_INTERVAL_S = 60.0

# What says that the file is not ours to write: a mistake, to be told when we start.
_MISTAKES = {
    *(errno.EACCES, errno.EPERM, errno.EROFS, errno.ELOOP, errno.ENAMETOOLONG),
    *(errno.EISDIR, errno.ENOTDIR, errno.EEXIST),
}


class AuditFile:
    """Appends lines to a file from `start` until `stop`.

    One thread adds; what it counts and what the writing thread counts is kept apart, so that
    neither needs a lock.
    """

    def __init__(self, path: Path, *, file_bytes_max: int, files_max: int) -> None:
        """OSError if it can be told already that this will not work."""
        self._path = path
        self._file_bytes_max = file_bytes_max
        self._files_max = files_max
        self._lines: deque[str] = deque()
        self._added_bytes = 0
        self._taken_bytes = 0
        self._lines_dropped = 0
        self._lines_failed = 0
        self._fd = -1
        self._size = 0
        self._is_torn = False  # the last write ended within a line
        self._complained_s = -COMPLAIN_INTERVAL_S
        self._wakeup = threading.Event()
        self._stopping = False
        self._thread = threading.Thread(target=self._work, name="audit", daemon=True)
        self.lines_written = 0
        try:
            self._open()
        except OSError as error:
            if error.errno in _MISTAKES:
                raise OSError(
                    error.errno, f"the audit log {path} cannot be written: {error.strerror}"
                ) from None
            self._complain(error)

    @property
    def lines_lost(self) -> int:
        return self._lines_dropped + self._lines_failed

    def start(self) -> None:
        self._thread.start()

    def add(self, line: str) -> None:
        """Have a line written soon; it has no end, and only ASCII in it."""
        unwritten = self._added_bytes - self._taken_bytes
        if unwritten > UNWRITTEN_BYTES_MAX:
            self._lines_dropped += 1
            return
        self._lines.append(line)
        self._added_bytes += len(line) + 1
        if unwritten > WRITE_AT_ONCE_BYTES and not self._wakeup.is_set():
            self._wakeup.set()

    def stop(self) -> None:
        """Write what is left."""
        self._stopping = True
        self._wakeup.set()
        if self._thread.ident is not None:
            self._thread.join()
        self._close()

    def _work(self) -> None:
        while not self._stopping:
            self._wakeup.wait(WRITE_INTERVAL_S)
            self._wakeup.clear()
            self._write_all()
        self._write_all()

    def _write_all(self) -> None:
        while self._lines:
            lines = [self._lines.popleft() for _ in range(min(len(self._lines), LINES_AT_ONCE))]
            data = ("\n".join(lines) + "\n").encode("ascii", "backslashreplace")
            try:
                self._prepare(len(data))
                self._write(data)
                self.lines_written += len(lines)
            except OSError as error:
                self._lines_failed += len(lines)
                self._complain(error)
            self._taken_bytes += sum(map(len, lines)) + len(lines)

    def _prepare(self, count: int) -> None:
        """Open the file if it is not, or another one has taken its place; put it aside."""
        if self._fd >= 0 and not self._is_in_place():
            self._close()
        if self._fd < 0:
            self._open()
        if self._size and self._size + count > self._file_bytes_max:
            self._rotate()

    def _write(self, data: bytes) -> None:
        rest = memoryview(b"\n" + data if self._is_torn else data)
        while rest:
            written = os.write(self._fd, rest)
            self._size += written
            self._is_torn = rest[written - 1] != ord("\n")
            rest = rest[written:]

    def _open(self) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        self._fd = os.open(self._path, flags, 0o640)
        self._size = os.fstat(self._fd).st_size

    def _close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
        self._fd = -1

    def _is_in_place(self) -> bool:
        """Whether the path still leads to what we write to."""
        try:
            there = os.stat(self._path)
        except OSError:
            return False
        return os.path.samestat(there, os.fstat(self._fd))

    def _rotate(self) -> None:
        """Put the file aside as .1, that one as .2 and so on; the oldest goes."""
        self._close()
        if self._files_max == 1:
            self._path.unlink()
        for number in range(self._files_max - 1, 0, -1):
            source = self._path if number == 1 else self._aside(number - 1)
            with suppress(FileNotFoundError):
                source.replace(self._aside(number))
        self._open()
        self._is_torn = False

    def _aside(self, number: int) -> Path:
        return self._path.with_name(f"{self._path.name}.{number}")

    def _complain(self, error: OSError) -> None:
        now_s = time.monotonic()
        if now_s - self._complained_s >= COMPLAIN_INTERVAL_S:
            self._complained_s = now_s
            log.error(
                "the audit log %s cannot be written (%s): %d lines are lost so far; calls go on",
                *(self._path, error.strerror, self.lines_lost),
            )
