"""A file opened for reading: a seekable stream over its blocks."""

from __future__ import annotations

import io
import logging
import os
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from cairnfs.client.block_reader import DRAIN_BYTES_MAX, BlockReader
from cairnfs.client.locations import FileLocations
from cairnfs.client.namenode import NameNodes
from cairnfs.client.replicas import Failure, Replicas
from cairnfs.client.transfers import DataNodeConnections

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

log = logging.getLogger(__name__)

_PIECE_BYTES = 8 << 20  # that `read1` returns at most
_PEEK_BYTES = 8 << 10
_WINDOW_GROWTH = 8


class InputStream(io.BufferedIOBase):
    """A file's content; `read` returns as much as was asked for, but at the end.

    One thread at a time moves the position; `pread` does not, and any number of threads may
    use it.
    """

    def __init__(
        self,
        namenodes: NameNodes,
        connections: DataNodeConnections,
        path: str,
        client_name: str,
        readahead_bytes: int,
    ) -> None:
        self.name = path
        self.mode = "rb"
        self._lock = threading.RLock()
        self._position = 0  # of the next byte to be handed out
        self._peeked = b""  # the bytes there, if somebody has had a look at them
        self._reader: BlockReader | None = None
        self._readahead_bytes = max(1, readahead_bytes)
        self._window_bytes = self._readahead_bytes
        self._last_end = -1  # where the last reader ended
        self._locations = FileLocations(namenodes, path)
        self._replicas = Replicas(namenodes, connections, self._locations, client_name)

    # What a stream can do

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    @property
    def length(self) -> int:
        """How long the file was when it was opened."""
        return self._locations.length

    def tell(self) -> int:
        self._check_open()
        return self._position

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        with self._lock:
            self._check_open()
            start = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self.length}
            if whence not in start:
                raise ValueError(f"whence is 0, 1 or 2, not {whence}")
            position = start[whence] + offset
            if position < 0:
                raise ValueError(f"{self.name}: cannot seek to {position}")
            ahead = position - self._position
            self._peeked = self._peeked[ahead:] if ahead >= 0 else b""
            self._position = position
            return position

    # Reading

    def read(self, size: int | None = -1, /) -> bytes:
        """So many bytes, or all that are left."""
        with self._lock:
            self._check_open()
            left = max(0, self.length - self._position)
            wanted = left if size is None or size < 0 else min(size, left)
            return _make_bytes(wanted, self._fill)

    def read1(self, size: int = -1, /) -> bytes:
        return self.read(_PIECE_BYTES if size < 0 else size)

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        """Fill `buffer`, straight from the network where possible; how much of it."""
        with self._lock, memoryview(buffer) as view, view.cast("B") as target:
            self._check_open()
            wanted = max(0, min(len(target), self.length - self._position))
            self._fill(target[:wanted])
            return wanted

    readinto1 = readinto

    def peek(self, size: int = 0, /) -> bytes:
        """Some bytes that come next, without moving: by this, `readline` need not go by bytes."""
        with self._lock:
            if not self._peeked:
                self._peeked = self.read(max(size, _PEEK_BYTES))
                self._position -= len(self._peeked)
            return self._peeked

    def pread(self, position: int, length: int) -> bytes:
        """`length` bytes from `position`, fewer only at the end; the stream's own stays."""
        self._check_open()
        if position < 0 or length < 0:
            raise ValueError(f"cannot read {length} bytes at {position}")
        wanted = max(0, min(length, self.length - position))
        return _make_bytes(wanted, lambda target: self._replicas.read(position, target))

    def close(self) -> None:
        with self._lock:
            if self._reader is not None:
                self._reader.close()
                self._reader = None
            super().close()

    def _check_open(self) -> None:
        if self.closed:
            raise ValueError(f"{self.name}: I/O operation on closed file")

    def _fill(self, target: memoryview) -> None:
        at = min(len(target), len(self._peeked))
        if at:
            target[:at] = self._peeked[:at]
            self._peeked = self._peeked[at:]
            self._position += at
        while at < len(target):
            count = self._read_some(target[at:])
            at += count
            self._position += count

    def _read_some(self, target: memoryview) -> int:
        """At least one byte at the position: from the reader at hand if it goes on there."""
        failure = None
        reader = self._reader
        if reader is not None:
            try:
                if self._move(reader):
                    return reader.readinto(target)
            except OSError as error:
                reader.abort()
                failure = Failure(reader.block, reader.datanode, error)
            self._reader = None
            self._last_end = reader.file_end
        count, self._reader = self._replicas.begin(
            self._position, target, self._window(len(target)), failure
        )
        return count

    def _move(self, reader: BlockReader) -> bool:
        """Bring the reader to the position; if that is too far, close it."""
        ahead = self._position - reader.file_position
        if 0 <= ahead <= DRAIN_BYTES_MAX and self._position < reader.file_end:
            reader.skip(ahead)
            return True
        reader.close()
        return False

    def _window(self, wanted: int) -> int:
        """How much to ask for: more and more, as long as one read follows the other."""
        if self._position == self._last_end:
            self._window_bytes *= _WINDOW_GROWTH
        else:
            self._window_bytes = self._readahead_bytes
        return max(wanted, self._window_bytes)


def _make_bytes(length: int, fill: Callable[[memoryview], None]) -> bytes:
    """Bytes that `fill` puts where they will stay: a bytearray would have to be copied."""
    if not length:
        return b""
    memory = io.BytesIO()
    memory.seek(length - 1)
    memory.write(b"\0")
    with memory.getbuffer() as view:
        fill(view)
    return memory.getvalue()
