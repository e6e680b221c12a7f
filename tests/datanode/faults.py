"""Disks that fail, from outside the product."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Sequence
from pathlib import Path

from cairnfs.datanode.disk import Disk


class FaultyDisk(Disk):
    """Passes every call on, unless told that a directory has failed or is full."""

    def __init__(self) -> None:
        self.failed: set[Path] = set()
        self.full: set[Path] = set()
        self.free: dict[Path, int] = {}
        self._paths: dict[int, Path] = {}

    def open_for_write(self, path: Path, *, create: bool) -> int:
        self._check(path)
        fd = super().open_for_write(path, create=create)
        self._paths[fd] = path
        return fd

    def pwritev(self, fd: int, buffers: Sequence[bytes | memoryview], offset: int) -> int:
        self._check(self._paths[fd])
        if self._is_in(self._paths[fd], self.full):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return super().pwritev(fd, buffers, offset)

    def rename(self, source: Path, destination: Path) -> None:
        self._check(source)
        super().rename(source, destination)

    def free_bytes(self, path: Path) -> int:
        self._check(path)
        return self.free.get(path, super().free_bytes(path))

    def probe(self, directory: Path) -> None:
        self._check(directory)
        super().probe(directory)

    def _check(self, path: Path) -> None:
        if self._is_in(path, self.failed):
            raise OSError(errno.EIO, os.strerror(errno.EIO), str(path))

    def _is_in(self, path: Path, directories: set[Path]) -> bool:
        return any(path == each or each in path.parents for each in directories)


class DyingDisk(Disk):
    """Stops the world at a chosen change: that one and all after it are not done."""

    def __init__(self, die_at: int) -> None:
        self.die_at = die_at
        self.steps = 0
        self.is_dead = False

    def open_for_write(self, path: Path, *, create: bool) -> int:
        return self._step(lambda: Disk.open_for_write(self, path, create=create))

    def pwritev(self, fd: int, buffers: Sequence[bytes | memoryview], offset: int) -> int:
        return self._step(lambda: Disk.pwritev(self, fd, buffers, offset))

    def truncate(self, fd: int, length: int) -> None:
        self._step(lambda: Disk.truncate(self, fd, length))

    def rename(self, source: Path, destination: Path) -> None:
        self._step(lambda: Disk.rename(self, source, destination))

    def unlink(self, path: Path) -> None:
        self._step(lambda: Disk.unlink(self, path))

    def _step(self, change: Callable[[], int | None]) -> int:
        self.steps += 1
        if self.is_dead or self.steps == self.die_at:
            self.is_dead = True
            raise DiskDied
        return change() or 0


class DiskDied(Exception):
    """Not an OSError: nobody handles it, as nobody handles a crash."""
