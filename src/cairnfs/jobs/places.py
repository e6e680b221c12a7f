"""Where jobs put things: a directory on any file system that fsspec knows.

`hdfs://` and `cairn://` are our own client, so any HDFS; `file://` and the rest are fsspec's.  What
is written here appears whole or not at all.
"""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from cairnfs.client.addresses import SCHEMES, parse_url
from cairnfs.client.filesystem import FileSystem
from cairnfs.errors import (
    FileNotFoundException,
    IllegalArgumentException,
    UnsupportedOperationException,
)

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem


class Place:
    """A directory; it is made when something is written to it.

    It can be sent to other processes, where it opens its file system anew.
    """

    def __init__(self, url: str, user: str | None = None) -> None:
        """`user` is for our own client, if the URL names none."""
        if "://" not in url:
            raise IllegalArgumentException(
                f"{url!r} does not say on which file system: write file://{url} or"
                f" hdfs://namenode:8020{url}"
                if url.startswith("/")
                else f"{url!r} is no URL such as file:///backups or hdfs://namenode:8020/backups"
            )
        self.url = url.rstrip("/") if not url.endswith("://") else url
        self._user = user
        self._opened: tuple[AbstractFileSystem, str] | None = None

    def __repr__(self) -> str:
        return self.url

    def __reduce__(self) -> tuple[object, ...]:
        return Place, (self.url, self._user)

    def __truediv__(self, name: str) -> Place:
        return Place(f"{self.url}/{name}", self._user)

    # Looking

    def exists(self, name: str = "") -> bool:
        fs, path = self._open()
        fs.invalidate_cache()
        return bool(fs.exists(_join(path, name)))

    def sizes(self) -> dict[str, int | None]:
        """What is in it, by name: the length of files, None of directories.  Nothing: empty."""
        fs, path = self._open()
        fs.invalidate_cache()
        try:
            listed: list[dict[str, Any]] = fs.ls(path, detail=True)
        except FileNotFoundError:
            return {}
        return {
            each["name"].rstrip("/").rpartition("/")[2]: (
                None if each["type"] == "directory" else int(each["size"])
            )
            for each in listed
        }

    def free_bytes(self) -> int | None:
        """How much can be written to it; None where nobody knows."""
        fs, path = self._open()
        if isinstance(client := getattr(fs, "client", None), FileSystem):
            replicas = client.get_server_defaults().replication
            return client.get_status().remaining_bytes // replicas
        if "file" not in fs.protocol:
            return None
        existing = Path(path)
        while not existing.exists():
            existing = existing.parent
        return shutil.disk_usage(existing).free

    # Content

    def read(self, name: str) -> bytes:
        """A whole file; FileNotFoundException if it is not there."""
        fs, path = self._open()
        try:
            data: bytes = fs.cat_file(_join(path, name))
        except FileNotFoundError:
            raise FileNotFoundException(f"{self.url}/{name} does not exist") from None
        return data

    def open(self, name: str) -> BinaryIO:
        """To read a file, anywhere in it."""
        fs, path = self._open()
        try:
            stream: BinaryIO = fs.open(_join(path, name), "rb")
        except FileNotFoundError:
            raise FileNotFoundException(f"{self.url}/{name} does not exist") from None
        return stream

    def write(self, name: str, data: bytes) -> None:
        """A file that is there as a whole or not at all, in place of one that was."""
        fs, path = self._open()
        self.make()
        temporary = f"{name}.{uuid.uuid4().hex[:12]}.tmp"
        with self.create(temporary) as stream:
            stream.write(data)
        fs.mv(_join(path, temporary), _join(path, name))

    @contextmanager
    def create(self, name: str) -> Iterator[BinaryIO]:
        """To write a file; it is on disk when the block ends, as far as the file system can."""
        fs, path = self._open()
        with fs.open(_join(path, name), "wb") as stream:
            yield stream
            _sync(stream)

    # Making and removing

    def make(self) -> None:
        fs, path = self._open()
        fs.makedirs(path, exist_ok=True)

    def remove(self, name: str = "") -> None:
        """A file, or a directory with all that is in it; nothing is fine."""
        fs, path = self._open()
        fs.invalidate_cache()
        try:
            fs.rm(_join(path, name), recursive=True)
        except FileNotFoundError:
            return

    def _open(self) -> tuple[AbstractFileSystem, str]:
        if self._opened is None:
            self._opened = self._connect()
        return self._opened

    def _connect(self) -> tuple[AbstractFileSystem, str]:
        scheme = self.url.partition("://")[0]
        if scheme in SCHEMES:
            from cairnfs.client.fsspec_adapter import CairnFileSystem

            location = parse_url(self.url)
            fs = CairnFileSystem(
                ",".join(map(str, location.namenodes)), user=location.user or self._user
            )
            return fs, location.path
        import fsspec

        try:
            opened = fsspec.core.url_to_fs(self.url)
        except ImportError as error:  # what it needs is not installed
            raise UnsupportedOperationException(f"{self.url}: {error}") from None
        except ValueError as error:
            raise IllegalArgumentException(f"{self.url}: {error}") from None
        return opened[0], opened[1]


def _join(path: str, name: str) -> str:
    return f"{path.rstrip('/')}/{name}" if name else path


def _sync(stream: Any) -> None:
    """What can be asked to be on disk, is: our own files, and local ones."""
    if hasattr(stream, "hsync"):
        stream.hsync()
        return
    stream.flush()
    try:
        descriptor = stream.fileno()
    except (AttributeError, OSError):
        return
    os.fsync(descriptor)
