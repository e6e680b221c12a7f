"""Keeps what is open for writing alive: leases at the NameNode, pipelines at the DataNodes.

Two threads for each file system, as long as a file is open for writing: mending a pipeline may
take minutes, in which the leases must not expire.  Files that a program has not closed when it
ends are closed then, as Python does with local ones.
"""

from __future__ import annotations

import atexit
import logging
import threading
import time
from collections.abc import Callable

from cairnfs.client.namenode import NameNodes
from cairnfs.client.writer import OutputStream
from cairnfs.errors import HdfsError
from cairnfs.wire.proto import client_namenode_pb2 as pb

log = logging.getLogger(__name__)

RENEWAL_INTERVAL_S = 20.0  # others may take a lease over after 60
_CHECK_INTERVAL_S = 5.0


_keepers: set[LeaseKeeper] = set()  # that have files open


class LeaseKeeper:
    """The files that this client writes."""

    def __init__(self, namenodes: NameNodes, client_name: str) -> None:
        self._namenodes = namenodes
        self._client_name = client_name
        self._open: set[OutputStream] = set()
        self._changed = threading.Condition()
        self._threads: dict[str, threading.Thread] = {}
        self._renewed_s = 0.0

    def add(self, stream: OutputStream) -> None:
        """A file was opened; that has not renewed the leases of the others."""
        with self._changed:
            _keepers.add(self)
            self._open.add(stream)
            self._start("leases", self._renew_in_time)
            self._start("pipelines", self._keep_pipelines)

    def remove(self, stream: OutputStream) -> None:
        """It is closed."""
        with self._changed:
            self._open.discard(stream)
            if not self._open:
                _keepers.discard(self)

    def open_streams(self) -> list[OutputStream]:
        with self._changed:
            return list(self._open)

    def close_all(self) -> None:
        """Close every file; raises the first failure when all is done."""
        failure: Exception | None = None
        for stream in self.open_streams():
            try:
                stream.close()
            except Exception as error:
                failure = failure or error
        with self._changed:
            self._changed.notify_all()
        if failure is not None:
            raise failure

    def disown(self) -> None:
        """In a forked child: the files are the parent's."""
        _keepers.discard(self)

    def _start(self, name: str, work: Callable[[], None]) -> None:
        """Do `work` from time to time, in a thread that ends with the last file."""
        if name not in self._threads:
            thread = threading.Thread(target=self._run, args=(name, work), name=name, daemon=True)
            thread.start()
            self._threads[name] = thread

    def _run(self, name: str, work: Callable[[], None]) -> None:
        while True:
            with self._changed:
                self._changed.wait(_CHECK_INTERVAL_S)
                if not self._open:
                    del self._threads[name]
                    return
            work()

    def _keep_pipelines(self) -> None:
        for stream in self.open_streams():
            stream.keep_alive()

    def _renew_in_time(self) -> None:
        now_s = time.monotonic()
        if now_s - self._renewed_s < RENEWAL_INTERVAL_S:
            return
        request = pb.RenewLeaseRequestProto(clientName=self._client_name)
        try:
            self._namenodes.call("renewLease", request, pb.RenewLeaseResponseProto)
            self._renewed_s = now_s
        except (HdfsError, OSError) as error:
            log.warning("leases could not be renewed: %s", error)


@atexit.register
def _close_all_files() -> None:
    for keeper in list(_keepers):
        try:
            keeper.close_all()
        except (HdfsError, OSError) as error:
            log.error("a file that was open at the end could not be closed: %s", error)
