"""Packets of a block being written: buffers that are filled, sent, and used again.

To checksum a packet takes a call for each chunk; what costs is to cut the chunks.  A buffer
that is used again has them cut once and for all.
"""

from __future__ import annotations

import threading

from cairnfs.wire.checksum import Checksum
from cairnfs.wire.packets import encode_packet_header


class Packet:
    """A piece of a block, from `offset` on."""

    __slots__ = (
        "_checksum",
        "_chunks",
        "capacity",
        "is_last",
        "is_sync",
        "length",
        "offset",
        "seqno",
        "sums",
        "view",
    )

    def __init__(self, checksum: Checksum, chunks: int) -> None:
        size = checksum.bytes_per_checksum
        self.view = memoryview(bytearray(size * chunks))
        self._checksum = checksum
        self._chunks = [
            self.view[at : at + size].toreadonly() for at in range(0, len(self.view), size)
        ]
        self.begin(0, len(self.view))

    def begin(self, offset: int, capacity: int) -> None:
        """Be empty, with room for `capacity` bytes from `offset` on."""
        self.offset = offset
        self.capacity = min(capacity, len(self.view))
        self.length = 0
        self.seqno = 0
        self.sums = b""
        self.is_last = False
        self.is_sync = False

    @property
    def end(self) -> int:
        """Where in the block the next packet begins."""
        return self.offset + self.length

    @property
    def room(self) -> int:
        return self.capacity - self.length

    def add(self, data: memoryview) -> int:
        """Take as much as fits; how much that was."""
        count = min(len(data), self.capacity - self.length)
        self.view[self.length : self.length + count] = data[:count]
        self.length += count
        return count

    def seal(self, seqno: int) -> None:
        """It is complete: give it its number and its checksums."""
        self.seqno = seqno
        self.sums = self._compute_sums()

    def _compute_sums(self) -> bytes:
        size = self._checksum.bytes_per_checksum
        whole = self.length // size
        sums = self._checksum.compute_each(self._chunks[:whole])
        if self.length % size:
            sums += self._checksum.compute(self.view[whole * size : self.length])
        return sums

    def encode(self) -> list[bytes | memoryview]:
        """What to send."""
        header = encode_packet_header(
            self.offset,
            self.seqno,
            data_bytes=self.length,
            sums_bytes=len(self.sums),
            is_last=self.is_last,
            is_sync=self.is_sync,
        )
        return [header + self.sums, self.view[: self.length]]


class PacketPool:
    """Packets that wait to be used again, by any stream with the same checksums."""

    def __init__(self, checksum: Checksum, packet_bytes: int, idle_max: int) -> None:
        self.checksum = checksum
        self._chunks = max(1, packet_bytes // checksum.bytes_per_checksum)
        self._idle: list[Packet] = []
        self._idle_max = idle_max
        self._lock = threading.Lock()

    @property
    def packet_bytes(self) -> int:
        return self._chunks * self.checksum.bytes_per_checksum

    def take(self, offset: int, capacity: int) -> Packet:
        """An empty packet."""
        with self._lock:
            packet = self._idle.pop() if self._idle else None
        if packet is None:
            packet = Packet(self.checksum, self._chunks)
        packet.begin(offset, capacity)
        return packet

    def put_back(self, packet: Packet) -> None:
        """Nobody needs what is in it any more."""
        with self._lock:
            if len(self._idle) < self._idle_max:
                self._idle.append(packet)
