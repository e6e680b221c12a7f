"""The calls that change a disk, in one place so that a test can let them fail."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

PROBE_NAME = "probe.tmp"


class Disk:
    """This machine's."""

    def open_for_write(self, path: Path, *, create: bool) -> int:
        flags = os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT | os.O_EXCL if create else 0)
        return os.open(path, flags, 0o644)

    def pwritev(self, fd: int, buffers: Sequence[bytes | memoryview], offset: int) -> int:
        return os.pwritev(fd, buffers, offset)

    def truncate(self, fd: int, length: int) -> None:
        os.ftruncate(fd, length)

    def fsync(self, fd: int) -> None:
        os.fsync(fd)

    def rename(self, source: Path, destination: Path) -> None:
        os.rename(source, destination)

    def unlink(self, path: Path) -> None:
        os.unlink(path)

    def free_bytes(self, path: Path) -> int:
        return shutil.disk_usage(path).free

    def probe(self, directory: Path) -> None:
        """Write and remove a small file; OSError if the disk is not what it was."""
        probe = directory / PROBE_NAME
        probe.write_bytes(b"probe")
        if probe.read_bytes() != b"probe":
            raise OSError(errno.EIO, "reads something else than was written", str(probe))
        probe.unlink()


def sync_directory(path: Path) -> None:
    """Make renames in a directory survive a power failure."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
