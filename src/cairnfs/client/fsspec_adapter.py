"""The file system for fsspec: `cairn://host:8020/path` in pandas, pyarrow and Dask.

fsspec finds it by the entry point of our package; nothing else imports this module.
"""

from __future__ import annotations

import datetime
import posixpath
import shutil
from collections.abc import Iterable
from typing import Any

import fsspec
from fsspec.utils import stringify_path

from cairnfs.client.addresses import SCHEMES, parse_url
from cairnfs.client.filesystem import FileSystem, connect
from cairnfs.client.reader import InputStream
from cairnfs.client.records import FileStatus
from cairnfs.client.writer import OutputStream
from cairnfs.clock import SystemClock
from cairnfs.errors import FileAlreadyExistsException, PathIsNotDirectoryException

_COPY_BYTES = 4 << 20


class CairnFileSystem(fsspec.AbstractFileSystem):  # type: ignore[misc]
    """`cairnfs.connect`, as fsspec wants a file system to be.

    `namenodes` is what a URL has between `cairn://` and the path, such as `host:8020`.
    """

    protocol = "cairn"
    root_marker = "/"

    def __init__(self, namenodes: str = "", user: str | None = None, **options: Any) -> None:
        super().__init__(**options)
        self._namenodes = namenodes
        self.client: FileSystem = connect(f"{self.protocol}://{namenodes}", user=user)

    # URLs

    @classmethod
    def _strip_protocol(cls, path: Any) -> Any:
        if isinstance(path, list):
            return [cls._strip_protocol(each) for each in path]
        text = stringify_path(path)
        if text.startswith(tuple(f"{scheme}://" for scheme in SCHEMES)):
            text = parse_url(text).path
        return text.rstrip("/") or cls.root_marker

    @staticmethod
    def _get_kwargs_from_urls(url: str) -> dict[str, str]:
        location = parse_url(url)
        named = {"namenodes": ",".join(map(str, location.namenodes))}
        return named | ({"user": location.user} if location.user else {})

    def unstrip_protocol(self, name: str) -> str:
        return f"{self.protocol}://{self._namenodes}{self._strip_protocol(name)}"

    # Looking

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        return _describe(self.client.get_file_status(self._strip_protocol(path)))

    def ls(self, path: str, detail: bool = True, **_: Any) -> list[Any]:
        found = self.client.list_status(self._strip_protocol(path))
        return [_describe(status) if detail else status.path for status in found]

    def exists(self, path: str, **_: Any) -> bool:
        return self.client.exists(self._strip_protocol(path))

    def modified(self, path: str) -> datetime.datetime:
        return _time(self.client.get_file_status(self._strip_protocol(path)).mtime_ms)

    def checksum(self, path: str) -> int:
        """A number that changes with the content, as fsspec has it."""
        return int.from_bytes(
            self.client.get_file_checksum(self._strip_protocol(path)).digest[-16:]
        )

    def ukey(self, path: str) -> str:
        """Text that changes with the content, without a look at it."""
        status = self.client.get_file_status(self._strip_protocol(path))
        return f"{status.id}-{status.mtime_ms}-{status.length_bytes}"

    # Extended attributes, called as s3fs and gcsfs call what they have of that kind

    def getxattr(self, path: str, attr: str, **_: Any) -> bytes:
        return self.client.get_xattr(self._strip_protocol(path), attr)

    def setxattr(self, path: str, **attributes: bytes | str | None) -> None:
        """Set attributes such as `**{"user.author": b"ada"}`; None removes one."""
        name = self._strip_protocol(path)
        for attr, value in attributes.items():
            if value is None:
                self.client.remove_xattr(name, attr)
            else:
                encoded = value.encode() if isinstance(value, str) else value
                self.client.set_xattr(name, attr, encoded)

    # Content

    def _open(
        self,
        path: str,
        mode: str = "rb",
        block_size: int | None = None,
        autocommit: bool = True,
        cache_options: dict[str, Any] | None = None,
        *,
        replication: int | None = None,
        **_: Any,
    ) -> InputStream | OutputStream:
        """`block_size` is for files that are written; the client reads ahead by itself."""
        if not autocommit:
            raise NotImplementedError("transactions of fsspec are not supported")
        match mode:
            case "rb":
                return self.client.open(path)
            case "wb" | "xb":
                return self.client.create(
                    path,
                    overwrite=mode == "wb",
                    block_size=block_size,
                    replication=replication,
                )
            case "ab":
                if not self.client.exists(path):
                    return self.client.create(path, block_size=block_size, replication=replication)
                return self.client.append(path)
        raise ValueError(f"files are opened with rb, wb, xb or ab, not {mode!r}")

    def cat_file(
        self, path: str, start: int | None = None, end: int | None = None, **_: Any
    ) -> bytes:
        with self.client.open(self._strip_protocol(path)) as file:
            if start is None and end is None:
                return file.read()
            first, last, _step = slice(start, end).indices(file.length)
            return file.pread(first, max(0, last - first))

    def touch(self, path: str, truncate: bool = True, **_: Any) -> None:
        name = self._strip_protocol(path)
        if truncate or not self.client.exists(name):
            self.client.create(name, overwrite=True).close()
        else:
            self.client.set_times(name, mtime_ms=SystemClock().now_ms())

    def cp_file(self, path1: str, path2: str, **_: Any) -> None:
        source, target = self._strip_protocol(path1), self._strip_protocol(path2)
        if self.client.get_file_status(source).is_directory:
            self.client.mkdirs(target)
            return
        with self.client.open(source) as reader, self.client.create(target, overwrite=True) as out:
            shutil.copyfileobj(reader, out, _COPY_BYTES)

    # Making, moving and removing

    def mkdir(self, path: str, create_parents: bool = True, **_: Any) -> None:
        name = self._strip_protocol(path)
        if self.client.exists(name):
            raise FileAlreadyExistsException(f"{name} already exists")
        self.client.mkdirs(name, create_parents=create_parents)

    def makedirs(self, path: str, exist_ok: bool = False) -> None:
        if exist_ok:
            self.client.mkdirs(self._strip_protocol(path))
        else:
            self.mkdir(path)

    def rmdir(self, path: str) -> None:
        name = self._strip_protocol(path)
        if not self.client.get_file_status(name).is_directory:
            raise PathIsNotDirectoryException(f"`{name}': Is not a directory")
        self.client.delete(name)

    def rm_file(self, path: str) -> None:
        self._delete(self._strip_protocol(path), recursive=False)

    def rm(
        self, path: str | Iterable[str], recursive: bool = False, maxdepth: int | None = None
    ) -> None:
        for name in self.expand_path(path, maxdepth=maxdepth):
            self._delete(name, recursive=recursive)

    def _delete(self, name: str, *, recursive: bool) -> None:
        self.client.get_file_status(name)  # what is not there cannot be removed
        self.client.delete(name, recursive)

    def mv(self, path1: str, path2: str, **_: Any) -> None:
        source, target = self._strip_protocol(path1), self._strip_protocol(path2)
        status = self.client.get_file_info(target)
        if status is not None and status.is_directory:
            target = posixpath.join(target, posixpath.basename(source))
        self.client.rename(source, target, overwrite=True)


def _describe(status: FileStatus) -> dict[str, Any]:
    return {
        "name": status.path,
        "size": status.length_bytes,
        "type": "directory" if status.is_directory else "file" if status.is_file else "link",
        "mtime": status.mtime_ms / 1000,
        "mode": status.mode,
        "owner": status.owner,
        "group": status.group,
        "replication": status.replication,
        "block_size": status.block_size_bytes,
        "ino": status.id,
    }


def _time(ms: int) -> datetime.datetime:
    return datetime.datetime.fromtimestamp(ms / 1000, tz=datetime.UTC)
