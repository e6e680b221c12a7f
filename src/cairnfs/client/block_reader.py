"""A range of one replica, as a stream of verified bytes.

Packets are received where they are wanted: one call brings the checksums and data of a
packet and the beginning of the next, the data straight into the reader's memory if it fits.
Invariant: no byte is handed out whose checksum has not been compared.
"""

from __future__ import annotations

import socket
from contextlib import suppress

from cairnfs.client.transfers import (
    DataNodeConnections,
    address_of,
    ask,
    client_header,
    connect,
)
from cairnfs.errors import IOException
from cairnfs.network.sockets import receive_all
from cairnfs.wire.packets import PACKET_START_BYTES, PacketStart, decode_packet_start
from cairnfs.wire.proto import data_transfer_pb2 as pb
from cairnfs.wire.proto import hdfs_pb2
from cairnfs.wire.transfer import Op, Status, TransferError, decode_checksum, encode_message

DRAIN_BYTES_MAX = 256 << 10  # what is worth receiving only to use the connection again

_VERIFIED = encode_message(pb.ClientReadStatusProto(status=Status.CHECKSUM_OK))
_NOTHING = memoryview(b"")


class CorruptReplica(IOException):
    """What a DataNode sent does not match its checksums."""


class BlockReader:
    """Reads from `offset` of a block to `offset + length`, from one DataNode."""

    def __init__(
        self,
        connections: DataNodeConnections,
        block: hdfs_pb2.LocatedBlockProto,
        datanode: hdfs_pb2.DatanodeInfoProto,
        offset: int,
        length: int,
        client_name: str,
    ) -> None:
        self.block = block
        self.datanode = datanode
        self.position = offset  # of the next byte that is handed out, in the block
        self.end = offset + length
        self._connections = connections
        self._address = address_of(datanode)
        self._what = f"blk_{block.b.blockId} at {self._address}"
        self._pending = _NOTHING  # verified, and not handed out yet
        self._own = _NOTHING  # where packets go that do not fit elsewhere
        self._sums = _NOTHING
        self._start = memoryview(bytearray(PACKET_START_BYTES))
        request = pb.OpReadBlockProto(
            header=client_header(block, client_name), offset=offset, len=length
        )
        self._socket: socket.socket | None = self._ask(request)

    @property
    def file_position(self) -> int:
        """Where in the file the next byte is."""
        return self.block.offset + self.position

    @property
    def file_end(self) -> int:
        """Where in the file the range ends."""
        return self.block.offset + self.end

    def readinto(self, view: memoryview) -> int:
        """Fill the beginning of `view`; how much of it.  0 only at the end of the range."""
        view = view[: self.end - self.position]
        if not view:
            return 0
        if not self._pending:
            count = self._receive_packet(view)
            if count:
                self.position += count
                return count
        count = min(len(view), len(self._pending))
        view[:count] = self._pending[:count]
        self._pending = self._pending[count:]
        self.position += count
        return count

    def skip(self, count: int) -> None:
        """Go forward without the bytes between."""
        scratch = memoryview(bytearray(min(count, 64 << 10)))
        while count:
            count -= self.readinto(scratch[: min(count, len(scratch))])

    def close(self) -> None:
        """Keep the connection if it has nothing left to bring, or little."""
        sock, left = self._socket, self.end - self.position
        if sock is None:
            return
        try:
            if left <= DRAIN_BYTES_MAX:
                self.skip(left)
            if self.position == self.end and self._next.is_last:
                sock.sendall(_VERIFIED)
                self._connections.put_back(self._address, sock)
                self._socket = None
        except OSError:
            return  # nobody asked for these bytes
        finally:
            self.abort()

    def abort(self) -> None:
        """Close the connection, whatever was to come."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _ask(self, request: pb.OpReadBlockProto) -> socket.socket:
        kept = self._connections.take(self._address)
        if kept is not None:
            with suppress(ConnectionError):  # closed just now: as good as no connection
                return self._begin(kept, request)
        return self._begin(connect(self._address), request)

    def _begin(self, sock: socket.socket, request: pb.OpReadBlockProto) -> socket.socket:
        try:
            response = ask(sock, Op.READ_BLOCK, request, f"cannot read {self._what}")
            info = response.readOpChecksumInfo
            self._checksum = decode_checksum(info.checksum)
            self._at = info.chunkOffset  # of the next packet
            if not self.position - self._checksum.bytes_per_checksum < self._at <= self.position:
                raise TransferError(f"{self._what} begins at {self._at}, not {self.position}")
            receive_all(sock, [self._start])
            self._next = self._decode_start(sock)
        except BaseException:
            sock.close()
            raise
        return sock

    def _decode_start(self, sock: socket.socket) -> PacketStart:
        start = decode_packet_start(self._start)
        if start.header_bytes:
            receive_all(sock, [memoryview(bytearray(start.header_bytes))])
        return start

    def _receive_packet(self, view: memoryview) -> int:
        """Receive the next packet: into `view` and say how much, or to be taken from `_pending`."""
        sock, packet = self._socket, self._next
        if sock is None:
            raise IOException("the reader is closed")
        if packet.is_last or packet.offset != self._at:
            raise TransferError(
                f"{self._what}: a packet at {packet.offset} where {self._at} was to follow,"
                f" of {self.end}"
            )
        size = packet.data_bytes
        is_direct = packet.offset == self.position and size <= len(view)
        if not is_direct and size > len(self._own):
            self._own = memoryview(bytearray(size))
        data = view[:size] if is_direct else self._own[:size]
        if packet.sums_bytes > len(self._sums):
            self._sums = memoryview(bytearray(packet.sums_bytes))
        sums = self._sums[: packet.sums_bytes]

        receive_all(sock, [sums, data, self._start])
        self._next = self._decode_start(sock)
        if not self._checksum.matches(data, sums):
            bad = self._checksum.first_mismatch(data, sums) or 0
            raise CorruptReplica(
                f"Checksum error in {self._what}: the chunk at {packet.offset + bad} is corrupt"
            )
        self._at += size
        if is_direct:
            return size
        self._pending = data[self.position - packet.offset :]
        return 0
