"""Keeps what is open for writing alive: leases at the NameNode, pipelines at the DataNodes.

One thread for each file system, as long as a file is open for writing.  Files that a program
has not closed when it ends are closed then, as Python does with local ones.
"""

from __future__ import annotations

import atexit
import logging
import threading
import time

from cairnfs.client.namenode import NameNodes
from cairnfs.client.writer import OutputStream
from cairnfs.errors import HdfsError
from cairnfs.wire.proto import client_namenode_pb2 as pb

log = logging.getLogger(__name__)

RENEWAL_INTERVAL_S = 20.0  # others may take a lease over after 60
_CHECK_INTERVAL_S = 5.0


_keepers: set[LeaseKeeper] = set()  # that may have files open


class LeaseKeeper:
    """The files that this client writes."""

    def __init__(self, namenodes: NameNodes, client_name: str) -> None:
        self._namenodes = namenodes
        self._client_name = client_name
        self._open: set[OutputStream] = set()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._renewed_s = 0.0

    def add(self, stream: OutputStream) -> None:
        """A file was opened, which has made or renewed the lease."""
        _keepers.add(self)
        with self._changed:
            self._renewed_s = time.monotonic()
            self._open.add(stream)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="leases", daemon=True)
                self._thread.start()

    def remove(self, stream: OutputStream) -> None:
        """It is closed."""
        with self._changed:
            self._open.discard(stream)

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
        _keepers.discard(self)
        with self._changed:
            self._changed.notify_all()
        if failure is not None:
            raise failure

    def disown(self) -> None:
        """In a forked child: the files are the parent's."""
        _keepers.discard(self)

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait(_CHECK_INTERVAL_S)
                if not self._open:
                    self._thread = None
                    return
                streams = list(self._open)
            for stream in streams:
                stream.keep_alive()
            if time.monotonic() - self._renewed_s >= RENEWAL_INTERVAL_S:
                self._renew()

    def _renew(self) -> None:
        request = pb.RenewLeaseRequestProto(clientName=self._client_name)
        try:
            self._namenodes.call("renewLease", request, pb.RenewLeaseResponseProto)
            self._renewed_s = time.monotonic()
        except (HdfsError, OSError) as error:
            log.warning("leases could not be renewed: %s", error)


@atexit.register
def _close_all_files() -> None:
    for keeper in list(_keepers):
        try:
            keeper.close_all()
        except (HdfsError, OSError) as error:
            log.error("a file that was open at the end could not be closed: %s", error)
