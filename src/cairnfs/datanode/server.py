"""Accept block transfers: a thread for each connection, and only so many of them.

A connection that stalls, sends garbage or fails in any way ends; nobody else notices.
"""

from __future__ import annotations

import logging
import socket
import threading
import time
from contextlib import suppress

from cairnfs.datanode.connection import Connection, SocketTimeout, is_disconnect
from cairnfs.datanode.operations import Operations
from cairnfs.datanode.settings import DataNodeSettings
from cairnfs.errors import HdfsError
from cairnfs.wire.transfer import TransferError

log = logging.getLogger(__name__)

_BACKLOG = 256
_ACCEPT_PAUSE_S = 0.1
_STOP_LIMIT_S = 10.0
_STOP_STEP_S = 0.005


class AddressInUse(Exception):
    """Another process listens there."""


def listen(host: str, port: int, what: str) -> socket.socket:
    """A listening socket; AddressInUse says in one line why there is none."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((host, port))
        sock.listen(_BACKLOG)
    except OSError as error:
        sock.close()
        raise AddressInUse(f"{what}: cannot listen on {host}:{port}: {error.strerror}") from error
    return sock


class TransferServer:
    """Serves operations from `start` until `stop`."""

    def __init__(
        self, sock: socket.socket, operations: Operations, settings: DataNodeSettings
    ) -> None:
        self._socket = sock
        self._operations = operations
        self._settings = settings
        self._connections: set[Connection] = set()
        self._lock = threading.Lock()
        self._stopping = False
        self._thread = threading.Thread(target=self._accept, name="transfer server", daemon=True)

    @property
    def active(self) -> int:
        """How many transfers are under way."""
        return len(self._connections)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Accept no more, end what is under way, and wait until nobody writes any more."""
        self._stopping = True
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        with self._lock:
            connections = list(self._connections)
        for connection in connections:
            connection.shutdown()
        self._thread.join()
        deadline_s = time.monotonic() + _STOP_LIMIT_S
        while self.active and time.monotonic() < deadline_s:
            time.sleep(_STOP_STEP_S)

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._socket.accept()
            except OSError as error:
                if self._stopping:
                    return
                log.warning("cannot accept a connection: %s", error)
                time.sleep(_ACCEPT_PAUSE_S)  # out of descriptors, most likely
                continue
            if self.active >= self._settings.transfer_threads_max:
                log.warning(
                    "Xceiver count %d exceeds the limit of concurrent xceivers: %d",
                    self.active + 1,
                    self._settings.transfer_threads_max,
                )
                sock.close()
                continue
            try:
                self._begin(sock)
            except (OSError, RuntimeError) as error:  # no more threads, or the peer is gone
                log.warning("cannot serve a connection: %s", error)
                sock.close()

    def _begin(self, sock: socket.socket) -> None:
        connection = Connection(
            sock,
            read_timeout_s=self._settings.socket_timeout_s,
            write_timeout_s=self._settings.write_timeout_s,
        )
        thread = threading.Thread(
            target=self._serve, args=(connection,), name="transfer", daemon=True
        )
        with self._lock:
            self._connections.add(connection)
        try:
            thread.start()
        except RuntimeError:
            with self._lock:
                self._connections.discard(connection)
            raise

    def _serve(self, connection: Connection) -> None:
        try:
            self._serve_operations(connection)
        except (HdfsError, OSError) as error:
            level = logging.DEBUG if is_disconnect(error) else logging.INFO
            if not self._stopping:
                log.log(level, "%s: %s", connection.peer, error)
        except Exception:
            log.exception("%s: the operation failed", connection.peer)
        finally:
            with self._lock:
                self._connections.discard(connection)
            connection.close()

    def _serve_operations(self, connection: Connection) -> None:
        while not self._stopping:
            try:
                request = connection.read_request()
            except (SocketTimeout, TransferError) as error:
                log.debug("%s: %s", connection.peer, error)
                return
            if request is None:
                return
            connection.set_timeouts(read_s=self._settings.socket_timeout_s)
            if not self._operations.run(request, connection):
                return
            connection.set_timeouts(read_s=self._settings.keep_alive_s)
