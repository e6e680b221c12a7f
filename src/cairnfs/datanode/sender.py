"""Send a replica, or a range of it: checksums from the meta file, data by sendfile.

A range is widened to whole chunks, since a checksum is for a chunk; the reader drops
what it did not ask for.  The end is a packet without data.
"""

from __future__ import annotations

import time

from cairnfs.datanode.connection import Connection
from cairnfs.datanode.replica import Block, ReplicaReader, ReplicaState
from cairnfs.datanode.replicas import Replicas
from cairnfs.errors import IOException
from cairnfs.network.throttle import Throttle
from cairnfs.wire.checksum import Checksum, ChecksumType
from cairnfs.wire.packets import encode_packet_header

PACKET_DATA_BYTES = 512 << 10
_WAIT_LIMIT_S = 3.0  # for bytes of a replica being written to reach the disk
_WAIT_STEP_S = 0.01


class BlockSender:
    """A range of a replica, opened; `close` it."""

    def __init__(
        self,
        reader: ReplicaReader,
        offset: int = 0,
        length: int | None = None,
        *,
        with_sums: bool = True,
    ) -> None:
        end = reader.length_bytes
        wanted_end = end if length is None else offset + length
        if offset < 0 or wanted_end > end or offset > end:
            raise IOException(
                f" Offset {offset} and length {wanted_end - offset} don't match block"
                f" {reader.block} ( blockLen {end} )"
            )
        size = reader.checksum.bytes_per_checksum
        self.offset = offset - offset % size
        self.end = min(end, -(-wanted_end // size) * size)
        self.checksum = reader.checksum if with_sums else Checksum(ChecksumType.NULL, size)
        self._reader = reader
        self._with_sums = with_sums and reader.checksum.sum_bytes > 0
        self._step = max(1, PACKET_DATA_BYTES // size) * size
        self.sent_bytes = 0

    @classmethod
    def open(
        cls, replicas: Replicas, block: Block, offset: int, length: int, *, with_sums: bool = True
    ) -> BlockSender:
        """Open a range for a client; a replica being written may still have to grow to it."""
        deadline = time.monotonic() + _WAIT_LIMIT_S
        while True:
            reader = replicas.open_for_read(block)
            try:
                if reader.state is ReplicaState.FINALIZED or reader.length_bytes >= offset + length:
                    return cls(reader, offset, length, with_sums=with_sums)
                if time.monotonic() > deadline:
                    raise IOException(
                        f"Need {offset + length} bytes, but only {reader.length_bytes} bytes"
                        " available"
                    )
            except BaseException:
                reader.close()
                raise
            reader.close()
            time.sleep(_WAIT_STEP_S)

    def send(self, connection: Connection, throttle: Throttle | None = None) -> None:
        """Send every packet of the range, and the one that ends it."""
        offset, seqno = self.offset, 0
        while offset < self.end:
            count = min(self._step, self.end - offset)
            if throttle is not None:
                throttle.wait(count)
            sums = self._reader.read_sums(offset, count) if self._with_sums else b""
            header = encode_packet_header(offset, seqno, data_bytes=count, sums_bytes=len(sums))
            connection.send(header + sums, more=True)
            connection.send_file(self._reader.data_fd, offset, count)
            self.sent_bytes += count
            offset += count
            seqno += 1
        connection.send(
            encode_packet_header(offset, seqno, data_bytes=0, sums_bytes=0, is_last=True)
        )

    def close(self) -> None:
        self._reader.close()

    def __enter__(self) -> BlockSender:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
