"""Connections to DataNodes for block transfer, kept for a while after a read."""

from __future__ import annotations

import socket
import threading
import time
from typing import TypeVar

from google.protobuf.message import DecodeError, Message

from cairnfs.errors import IOException
from cairnfs.network.address import Address
from cairnfs.network.sockets import is_stale, open_socket, receive_all, send_all
from cairnfs.wire.proto import data_transfer_pb2 as pb
from cairnfs.wire.proto import hdfs_pb2
from cairnfs.wire.transfer import MESSAGE_BYTES_MAX, Op, Status, TransferError, encode_request

TIMEOUT_S = 60.0
TIMEOUT_EXTENSION_S = 5.0  # for each DataNode of a pipeline

_IDLE_MAX = 16  # for each DataNode
_IDLE_LIMIT_S = 3.0  # DataNodes wait for 4
_M = TypeVar("_M", bound=Message)


class TransferRefused(IOException):
    """A DataNode said no, and why."""


class DataNodeConnections:
    """Those that wait for their next read, by DataNode."""

    def __init__(self) -> None:
        self._idle: dict[Address, list[tuple[socket.socket, float]]] = {}
        self._lock = threading.Lock()
        self._is_closed = False

    def take(self, address: Address) -> socket.socket | None:
        """An idle connection, if there is one that lives."""
        while True:
            with self._lock:
                idle = self._idle.get(address)
                if not idle:
                    return None
                sock, since_s = idle.pop()
            if time.monotonic() - since_s < _IDLE_LIMIT_S and not is_stale(sock):
                return sock
            sock.close()

    def put_back(self, address: Address, sock: socket.socket) -> None:
        """It may be used again: everything that was asked for has been received."""
        with self._lock:
            idle = self._idle.setdefault(address, [])
            if len(idle) < _IDLE_MAX and not self._is_closed:
                idle.append((sock, time.monotonic()))
                return
        sock.close()

    def close(self) -> None:
        """Close all of them, and those that are put back later."""
        self._is_closed = True
        self._close_idle()

    def disown(self) -> None:
        """In a forked child: close our copies of what is the parent's."""
        self._lock = threading.Lock()
        self._close_idle()

    def _close_idle(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, {}
        for connections in idle.values():
            for sock, _ in connections:
                sock.close()


def address_of(datanode: hdfs_pb2.DatanodeInfoProto) -> Address:
    """Where a DataNode takes block transfers."""
    return Address(datanode.id.ipAddr, datanode.id.xferPort)


def connect(address: Address, datanodes: int = 1) -> socket.socket:
    """A connection to a DataNode, behind which others may follow."""
    timeout_s = TIMEOUT_S + TIMEOUT_EXTENSION_S * datanodes
    return open_socket(address, connect_timeout_s=timeout_s, timeout_s=timeout_s)


def read_message(sock: socket.socket, message_type: type[_M]) -> _M:
    """The next message, and nothing of what follows it."""
    length = shift = 0
    byte = memoryview(bytearray(1))
    while True:
        receive_all(sock, [byte])
        length |= (byte[0] & 0x7F) << shift
        if byte[0] < 0x80:
            break
        shift += 7
        if shift > 28:
            raise TransferError("a message's length has too many digits")
    if length > MESSAGE_BYTES_MAX:
        raise TransferError(f"a message of {length} bytes is too long")
    body = bytearray(length)
    receive_all(sock, [memoryview(body)])
    try:
        return message_type.FromString(bytes(body))
    except DecodeError as error:
        raise TransferError(f"not a {message_type.DESCRIPTOR.name}: {error}") from error


def ask(sock: socket.socket, op: Op, request: Message, what: str) -> pb.BlockOpResponseProto:
    """Ask for something that begins with an answer, or ends with it."""
    send_all(sock, (encode_request(op, request),))
    response = read_message(sock, pb.BlockOpResponseProto)
    check_response(response, what)
    return response


def check_response(response: pb.BlockOpResponseProto, what: str) -> None:
    if response.status != Status.SUCCESS:
        reason = response.message or Status.Name(response.status)
        raise TransferRefused(f"{what}: {reason}")


def base_header(block: hdfs_pb2.LocatedBlockProto) -> pb.BaseHeaderProto:
    """What every operation on a block begins with."""
    return pb.BaseHeaderProto(block=block.b, token=block.blockToken)


def client_header(
    block: hdfs_pb2.LocatedBlockProto, client_name: str
) -> pb.ClientOperationHeaderProto:
    return pb.ClientOperationHeaderProto(baseHeader=base_header(block), clientName=client_name)
