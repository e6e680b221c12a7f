"""What a DataNode has done since it was started, counted by the threads that do it.

Additions are made under a lock, and few: for each operation, and for each piece that is
written at once, since some files are written for days.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter

from cairnfs.observe.figures import Histogram

BYTES_READ = "bytes_read"  # sent to clients
BYTES_WRITTEN = "bytes_written"  # received, from whomever
BYTES_COPIED = "bytes_copied"  # sent to other DataNodes
BLOCKS_COPIED = "blocks_copied"
BLOCKS_MOVED = "blocks_moved"  # taken over from another DataNode or volume
BLOCKS_DELETED = "blocks_deleted"
BLOCKS_CORRUPT = "blocks_corrupt"  # found to be, and reported

NAMES = (
    *(BYTES_READ, BYTES_WRITTEN, BYTES_COPIED),
    *(BLOCKS_COPIED, BLOCKS_MOVED, BLOCKS_DELETED, BLOCKS_CORRUPT),
)


class DataNodeFigures:
    """Totals by name, and operations by kind."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter(dict.fromkeys(NAMES, 0))
        self._operations: dict[str, Histogram] = {}
        self._errors: Counter[tuple[str, str]] = Counter()

    def add(self, name: str, amount: int = 1) -> None:
        with self._lock:
            self._counts[name] += amount

    @contextmanager
    def operation(self, kind: str) -> Iterator[None]:
        """An operation of DataTransferProtocol, from its request to its end."""
        began_s = perf_counter()
        try:
            yield
        except BaseException as error:
            with self._lock:
                self._errors[kind, type(error).__name__] += 1
            raise
        finally:
            with self._lock:
                self._operations.setdefault(kind, Histogram()).add(perf_counter() - began_s)

    def __getitem__(self, name: str) -> int:
        return self._counts[name]

    @property
    def operations(self) -> dict[str, Histogram]:
        with self._lock:
            return dict(self._operations)

    @property
    def errors(self) -> dict[tuple[str, str], int]:
        with self._lock:
            return dict(self._errors)
