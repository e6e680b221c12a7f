"""Files being read and written for HTTP clients: blocking steps, for threads.

Invariant: a file whose data did not all arrive is never finished; a new one is deleted.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import ParamSpec, TypeVar

from cairnfs.client.filesystem import FileSystem
from cairnfs.client.reader import InputStream
from cairnfs.client.writer import OutputStream
from cairnfs.errors import (
    EOFException,
    FileNotFoundException,
    HdfsError,
    IOException,
    PathIsDirectoryException,
)
from cairnfs.webhdfs.clients import Client, Clients

log = logging.getLogger(__name__)

P = ParamSpec("P")
R = TypeVar("R")


class Transfer:
    """Something done with a file, in the name of a user."""

    def __init__(self, clients: Clients, user: str, real_user: str | None) -> None:
        self._clients = clients
        self._user = user
        self._real_user = real_user
        self._client: Client | None = None

    def begin(self) -> FileSystem:
        self._client = self._clients.take(self._user, self._real_user)
        return self._client.file_system

    def end(self) -> None:
        """Let go of everything; may be called at any time, and more than once."""
        client, self._client = self._client, None
        if client is not None:
            self._clients.give_back(client)


class Download(Transfer):
    """A file being read."""

    def __init__(self, clients: Clients, user: str, real_user: str | None) -> None:
        super().__init__(clients, user, real_user)
        self._stream: InputStream | None = None

    def open(self, path: str, offset: int, length: int | None) -> int:
        """Go to a place in the file; returns how many bytes there are to be read."""
        with told_as_missing(path):
            self._stream = stream = self.begin().open(path)
        if offset > stream.length:
            raise EOFException("Cannot seek after EOF")
        stream.seek(offset)
        left = stream.length - offset
        return left if length is None else min(left, length)

    def read(self, count: int) -> bytes:
        assert self._stream is not None
        data = self._stream.read(count)
        if len(data) < count:
            raise EOFException(f"{self._stream.name} has become shorter while it was read")
        return data

    def end(self) -> None:
        stream, self._stream = self._stream, None
        if stream is not None:
            stream.close()
        super().end()


class Upload(Transfer):
    """A file being written."""

    def __init__(self, clients: Clients, user: str, real_user: str | None) -> None:
        super().__init__(clients, user, real_user)
        self._stream: OutputStream | None = None
        self._give_up: Callable[[str], object] | None = None  # what to do with a half file

    def create(
        self,
        path: str,
        *,
        overwrite: bool,
        mode: int,
        unmasked_mode: int | None,
        replication: int | None,
        block_size: int | None,
        create_parents: bool,
    ) -> None:
        file_system = self.begin()
        self._give_up = file_system.delete
        self._stream = file_system.create(
            path,
            overwrite=overwrite,
            mode=mode,
            unmasked_mode=unmasked_mode,
            replication=replication,
            block_size=block_size,
            create_parents=create_parents,
        )

    def append(self, path: str) -> None:
        file_system = self.begin()
        self._give_up = file_system.recover_lease
        self._stream = file_system.append(path)

    def write(self, data: bytes) -> None:
        assert self._stream is not None
        self._stream.write(data)

    def finish(self) -> None:
        """All of the data has come: close the file."""
        assert self._stream is not None
        self._stream.close()
        self._stream = None

    def end(self) -> None:
        """Without `finish`, a new file is deleted; one that was appended to is closed again."""
        stream, self._stream = self._stream, None
        if stream is not None and self._give_up is not None:
            log.info("%s is given up: not all of its data could be written", stream.name)
            stream.abort()
            # By its id: somebody may have put another one in its place.
            with suppress(HdfsError, OSError):
                self._give_up(f"/.reserved/.inodes/{stream.file_id}")
        super().end()


@contextmanager
def told_as_missing(path: str) -> Iterator[None]:
    """Let a directory where a file should be be told as Hadoop's NameNode tells it."""
    try:
        yield
    except PathIsDirectoryException:
        raise FileNotFoundException(f"Path is not a file: {path}") from None


def tell_failures(step: Callable[P, R]) -> Callable[P, R]:
    """Let the failures of sockets be told as those of the file system."""

    def run(*arguments: P.args, **options: P.kwargs) -> R:
        try:
            return step(*arguments, **options)
        except HdfsError:
            raise
        except OSError as error:
            raise IOException(str(error)) from None

    return run
