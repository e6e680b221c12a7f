"""What verbs ask of a file system, be it a cluster or this machine."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer, WriteableBuffer

    from cairnfs.client.records import FileStatus


class Readable(Protocol):
    """A stream to be copied."""

    def readinto(self, buffer: WriteableBuffer, /) -> int | None: ...

    def close(self) -> None: ...


class Source(Readable, Protocol):
    """A file that is open for reading."""

    def read(self, size: int = -1, /) -> bytes: ...

    def seek(self, offset: int, whence: int = 0, /) -> int: ...


class Sink(Protocol):
    """A file that is open for writing."""

    def write(self, data: ReadableBuffer, /) -> int: ...

    def close(self) -> None: ...


class Files(Protocol):
    """The calls that copying needs; paths are absolute."""

    @property
    def home_directory(self) -> str: ...

    def get_file_info(self, path: str, /) -> FileStatus | None: ...

    def list_status_iter(self, path: str, /) -> Iterator[FileStatus]: ...

    def open(self, path: str, /) -> Source: ...

    def create(self, path: str, /, *, overwrite: bool = False) -> Sink: ...

    def mkdirs(self, path: str, /) -> bool: ...

    def rename(self, src: str, dst: str, /, *, overwrite: bool | None = None) -> bool: ...

    def delete(self, path: str, /, recursive: bool = False) -> bool: ...

    def set_times(self, path: str, /, mtime_ms: int, atime_ms: int) -> None: ...

    def set_owner(self, path: str, /, owner: str, group: str) -> None: ...

    def set_permission(self, path: str, /, mode: int) -> None: ...
