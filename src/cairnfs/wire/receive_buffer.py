"""From the bytes of a block transfer to requests, packets and acknowledgements; no socket.

What `ReceiveBuffer` hands out are views of its memory: they last until `space` is called
again.  Nothing that a peer sends makes it hold more than `PACKET_BYTES_MAX`.
"""

from __future__ import annotations

from typing import TypeVar

from google.protobuf.message import Message

from cairnfs.wire.packets import (
    LENGTH_BYTES,
    LENGTHS,
    PACKET_BYTES_MAX,
    Ack,
    Packet,
    decode_ack,
    decode_packet_header,
)
from cairnfs.wire.transfer import (
    MESSAGE_BYTES_MAX,
    REQUEST_MESSAGES,
    REQUEST_START,
    VERSION,
    Op,
    Request,
    TransferError,
    parse_message,
)

_M = TypeVar("_M", bound=Message)


class ReceiveBuffer:
    """What was received and not yet taken.

    Whoever owns the connection fills it: `received(socket.recv_into(buffer.space()))`.
    A `take_` method answers None while more is needed.
    """

    def __init__(self, capacity: int = 64 << 10) -> None:
        self._view = memoryview(bytearray(capacity))
        self._start = 0
        self._end = 0
        self._needed = 1  # bytes that the next take cannot do without

    @classmethod
    def grown_from(cls, other: ReceiveBuffer, capacity: int) -> ReceiveBuffer:
        """A larger buffer that begins with what the other one holds."""
        grown = cls(max(capacity, len(other)))
        grown._view[: len(other)] = other._view[other._start : other._end]
        grown._end = len(other)
        return grown

    def __len__(self) -> int:
        return self._end - self._start

    def space(self) -> memoryview:
        """Where to put what comes next: never empty."""
        held = self._end - self._start
        if self._needed > len(self._view) or held == len(self._view):
            grown = memoryview(bytearray(max(self._needed, 2 * held)))
            grown[:held] = self._view[self._start : self._end]
            self._view, self._start, self._end = grown, 0, held
        elif held == 0:
            self._start = self._end = 0
        elif self._start + self._needed > len(self._view) or self._end == len(self._view):
            self._view[:held] = self._view[self._start : self._end]
            self._start, self._end = 0, held
        return self._view[self._end :]

    def received(self, count: int) -> None:
        """So many bytes were put there."""
        self._end += count

    def take_bytes(self, count: int) -> bytes | None:
        """So many bytes, whatever they are."""
        if not self._has(count):
            return None
        taken = bytes(self._view[self._start : self._start + count])
        self._start += count
        self._needed = 1
        return taken

    def take_request(self) -> Request | None:
        """The next operation; TransferError if it is none that is known."""
        if not self._has(REQUEST_START.size):
            return None
        version, code = REQUEST_START.unpack_from(self._view, self._start)
        if version != VERSION:
            raise TransferError(
                f"Version Mismatch (Expected: {VERSION}, Received: {version & 0xFFFF} )"
            )
        message_type = REQUEST_MESSAGES.get(code)
        if message_type is None:
            raise TransferError(f"Unknown op {code} in data stream")
        body = self._take_delimited(REQUEST_START.size)
        return None if body is None else Request(Op(code), parse_message(message_type, body))

    def take_message(self, message_type: type[_M]) -> _M | None:
        """The next message with its length before it."""
        body = self._take_delimited(0)
        return None if body is None else parse_message(message_type, body)

    def take_ack(self) -> Ack | None:
        """The next acknowledgement."""
        body = self._take_delimited(0)
        return None if body is None else decode_ack(bytes(body))

    def take_packet(self) -> Packet | None:
        """The next packet; its parts lie in this buffer."""
        if not self._has(LENGTHS.size):
            return None
        start = self._start
        payload, header_bytes = LENGTHS.unpack_from(self._view, start)
        total = LENGTHS.size - LENGTH_BYTES + header_bytes + payload
        if payload < LENGTH_BYTES or header_bytes < 0:
            raise TransferError(
                f"Invalid packet: payload length {payload}, header length {header_bytes}"
            )
        if total > PACKET_BYTES_MAX:
            raise TransferError(f"Incorrect value for packet payload size: {payload}")
        if not self._has(total):
            return None
        view = self._view
        body = start + LENGTHS.size + header_bytes
        offset, seqno, is_last, data_bytes, is_sync = decode_packet_header(
            view[start + LENGTHS.size : body]
        )
        end = start + total
        data = end - data_bytes
        if not body <= data <= end or offset < 0:
            raise TransferError(
                f"Invalid packet: data length {data_bytes} at {offset}, payload length {payload}"
            )
        self._start = end
        self._needed = 1
        return Packet(
            offset, seqno, is_last, is_sync, view[body:data], view[data:end], view[start:end]
        )

    def take_packets(self) -> list[Packet]:
        """All packets that are complete."""
        packets = []
        while (packet := self.take_packet()) is not None:
            packets.append(packet)
            if packet.is_last:
                break
        return packets

    def _has(self, count: int) -> bool:
        if self._end - self._start >= count:
            return True
        self._needed = count
        return False

    def _take_delimited(self, skip: int) -> memoryview | None:
        at = self._start + skip
        length = shift = 0
        while True:
            if not self._has(at - self._start + 1):
                return None
            byte = self._view[at]
            at += 1
            length |= (byte & 0x7F) << shift
            if byte < 0x80:
                break
            shift += 7
            if shift > 28:
                raise TransferError("a message's length has too many digits")
        if length > MESSAGE_BYTES_MAX:
            raise TransferError(f"a message of {length} bytes is too long")
        if not self._has(at - self._start + length):
            return None
        self._start = at + length
        self._needed = 1
        return self._view[at : at + length]
