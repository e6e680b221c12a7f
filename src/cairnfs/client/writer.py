"""A file opened for writing: bytes become packets, packets become blocks.

`flush` returns when every DataNode of the pipeline has what was written so far, where
readers see it and where it outlives this client; `hsync` when it is on their disks; `close`
when the NameNode knows of all blocks.
"""

from __future__ import annotations

import io
import os
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from cairnfs.client.block_writer import BlockWriter
from cairnfs.client.file_calls import FileCalls
from cairnfs.client.packets import Packet, PacketPool
from cairnfs.errors import IOException
from cairnfs.wire.proto import hdfs_pb2

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

WINDOW_PACKETS = 20  # on their way at the same time
IDLE_LIMIT_S = 20.0  # DataNodes give up a writer after 60


class OutputStream(io.BufferedIOBase):
    """A file being written; one thread writes at a time.

    Whoever fails to write once cannot go on: every further call raises the same error.
    """

    _is_closed = True  # until there is something to close

    def __init__(
        self,
        file: FileCalls,
        pool: PacketPool,
        *,
        block_size_bytes: int,
        replication: int,
        closed: Callable[[OutputStream], None],
        previous: hdfs_pb2.LocatedBlockProto | None = None,
        appended: hdfs_pb2.LocatedBlockProto | None = None,
        position: int = 0,
    ) -> None:
        """A file's last block is `appended` if it is to grow, `previous` if another follows."""
        self.name = file.path
        self.file_id = file.id
        self.mode = "wb"
        self._file = file
        self._pool = pool
        self._block_size_bytes = block_size_bytes
        self._replication = replication
        self._on_close = closed
        self._position = self._told_position = position
        self._lock = threading.RLock()
        self._seqno = 0
        self._packet: Packet | None = None  # with bytes that have not been sent
        self._tail = b""  # sent, but to be sent again with the rest of their chunk
        self._start = 0  # of the next packet, in the block
        self._first_start = 0  # of the first packet: an appended block's may lie within a chunk
        self._block: BlockWriter | None = None
        self._previous = None if previous is None else previous.b
        self._is_new_block = False  # of which the NameNode is told by the next flush
        self._failure: Exception | None = None
        self._used_s = time.monotonic()
        self._process = os.getpid()
        if appended is not None:
            self._block = BlockWriter.resume(file, pool, appended, replication, WINDOW_PACKETS)
            self._start = self._first_start = appended.b.numBytes
        self._is_closed = False

    def writable(self) -> bool:
        return True

    @property
    def closed(self) -> bool:
        return self._is_closed

    def tell(self) -> int:
        self._check_open()
        return self._position

    def write(self, data: ReadableBuffer, /) -> int:
        """Take all of `data`; whole packets of it are sent at once."""
        with self._lock, memoryview(data) as view, view.cast("B") as source:
            self._check_open()
            try:
                at = 0
                while at < len(source):
                    packet = self._packet or self._begin_packet()
                    at += packet.add(source[at:])
                    if not packet.room:
                        self._send_packet()
            except BaseException as error:
                self._fail(error)
                raise
            self._position += at
            return at

    def flush(self, *, update_length: bool = True) -> None:
        """Return when every DataNode of the pipeline has what was written: Hadoop's hflush.

        The NameNode is told the length, so that snapshots have all of it; a log that is flushed
        after each line may do without.
        """
        self._flush(is_sync=False, update_length=update_length)

    def hsync(self, *, update_length: bool = True) -> None:
        """The same, on their disks."""
        self._flush(is_sync=True, update_length=update_length)

    def close(self) -> None:
        """Send the rest and have the file closed; an error if that fails."""
        with self._lock:
            if self._is_closed:
                return
            if self._process != os.getpid():
                self._is_closed = True  # a forked child's copy: the file is its parent's
                return
            try:
                if self._failure is not None:
                    raise self._failure
                if self._packet is not None:
                    self._send_packet()
                if self._block is not None:
                    self._end_block()
                self._file.complete(self._previous)
            finally:
                self.abort()

    def abort(self) -> None:
        """Let go of everything; the file stays as it is, until its lease expires."""
        with self._lock:
            self._is_closed = True
            if self._block is not None:
                self._block.close()
            self._block = self._packet = None
            self._on_close(self)

    def keep_alive(self) -> None:
        """Tell the DataNodes that this writer lives, if they have not heard of it for long."""
        if not self._lock.acquire(blocking=False):
            return  # it is at work
        try:
            idle_s = time.monotonic() - self._used_s
            if self._block is not None and self._failure is None and idle_s > IDLE_LIMIT_S:
                self._used_s = time.monotonic()
                self._block.keep_alive()
        except Exception as error:
            self._fail(error)
        finally:
            self._lock.release()

    def _fail(self, error: BaseException) -> None:
        """From now on nothing can be written: what was sent last may be there in part."""
        if not isinstance(error, Exception):  # Ctrl-C, which is not for those who come later
            error = IOException(f"{self.name}: writing was interrupted")
        self._failure = error

    def _check_open(self) -> None:
        if self._is_closed:
            raise ValueError(f"{self.name}: I/O operation on closed file")
        if self._failure is not None:
            raise self._failure

    def _flush(self, *, is_sync: bool, update_length: bool) -> None:
        with self._lock:
            self._check_open()
            try:
                if self._packet is not None:
                    self._packet.is_sync = is_sync
                    self._send_packet()
                elif is_sync and self._block is not None:
                    self._send(self._empty_packet(is_sync=True))
                if self._block is not None:
                    self._block.wait_for_all()
                    self._block.is_relied_on = True
                self._tell_namenode(update_length)
            except BaseException as error:
                self._fail(error)
                raise

    def _tell_namenode(self, update_length: bool) -> None:
        """So that the block is known, and its length if wanted, should we die."""
        last = self._previous if self._block is None else self._block.block
        is_news = update_length and self._position != self._told_position
        if last is not None and (self._is_new_block or is_news):
            self._file.fsync(last.numBytes if update_length else -1)
            self._is_new_block = False
            if update_length:
                self._told_position = self._position

    # Packets and blocks

    def _begin_packet(self) -> Packet:
        size = self._pool.checksum.bytes_per_checksum
        # What lies within a chunk is filled up first; from then on packets are whole chunks.
        within = self._start % size
        room = size - within if within else self._block_size_bytes - self._start
        self._packet = packet = self._pool.take(self._start, room)
        packet.add(memoryview(self._tail))
        return packet

    def _send_packet(self) -> None:
        packet, self._packet = self._packet, None
        assert packet is not None
        if self._block is None:
            self._block = BlockWriter.begin(
                self._file, self._pool, self._previous, self._replication, WINDOW_PACKETS
            )
            self._is_new_block = True
        end = packet.end
        size = self._pool.checksum.bytes_per_checksum
        self._start = max(end - end % size, self._first_start)
        self._tail = bytes(packet.view[self._start - packet.offset : packet.length])
        self._send(packet)
        if end == self._block_size_bytes:
            self._end_block()

    def _empty_packet(self, *, is_sync: bool = False) -> Packet:
        packet = self._pool.take(self._start + len(self._tail), 0)
        packet.is_sync = is_sync
        return packet

    def _send(self, packet: Packet) -> None:
        assert self._block is not None
        if self._process != os.getpid():
            raise ValueError(f"{self.name} was opened by the process this one was forked from")
        packet.seal(self._seqno)
        self._seqno += 1
        self._block.send(packet)
        self._used_s = time.monotonic()

    def _end_block(self) -> None:
        assert self._block is not None
        self._block.wait_for_all()  # what recovery does with the last packet relies on it
        packet = self._empty_packet()
        packet.is_last = True
        self._send(packet)
        self._block.wait_for_all()
        self._block.close()
        self._previous = self._block.block
        self._block = None
        self._start = self._first_start = 0
        self._tail = b""
