"""Calls over Hadoop RPC to one server: one connection, one call at a time."""

from __future__ import annotations

import threading
import uuid

from google.protobuf.message import Message

from cairnfs.network.address import Address
from cairnfs.network.rpc_connection import RpcConnection, make_call_ids
from cairnfs.wire.protocols import Protocol


class RpcCaller:
    """Calls one server; connects when there is something to say, and again after a failure.

    Errors of the server are raised as they are, those of the network as NoAnswer.
    """

    def __init__(
        self, address: Address, protocol: Protocol, user: str, timeout_s: float = 60.0
    ) -> None:
        self.address = address
        self._protocol = protocol
        self._user = user
        self._timeout_s = timeout_s
        self._client_id = uuid.uuid4().bytes
        self._call_ids = make_call_ids()
        self._lock = threading.Lock()
        self._connection: RpcConnection | None = None

    def call(self, method: str, request: Message) -> Message:
        """Call and wait for the answer."""
        with self._lock:
            connection = self._connect()
            try:
                return connection.call(next(self._call_ids), self._protocol[method], request)
            finally:
                if connection.is_broken:
                    self._disconnect()

    def close(self) -> None:
        with self._lock:
            self._disconnect()

    def interrupt(self) -> None:
        """End a call that another thread waits for."""
        connection = self._connection
        if connection is not None:
            connection.interrupt()

    def _connect(self) -> RpcConnection:
        if self._connection is not None and self._connection.is_stale():
            self._disconnect()
        if self._connection is None:
            self._connection = RpcConnection(
                self.address, self._protocol, self._client_id, self._user, self._timeout_s
            )
        return self._connection

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = None
