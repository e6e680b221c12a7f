"""Replicas that were written to memory are taken to disk, a while later.

A client that writes a file of the policy LAZY_PERSIST on this machine has its replica put on a
volume of type RAM_DISK, if there is one with room.  What is lost with the memory before it was
taken to disk is lost: that is what such a policy is for.
"""

from __future__ import annotations

import logging
import threading

from cairnfs.datanode.moving import Moving
from cairnfs.datanode.replicas import Replicas
from cairnfs.datanode.storage import StorageType
from cairnfs.datanode.volumes import Volume
from cairnfs.errors import HdfsError

log = logging.getLogger(__name__)


class LazyWriter:
    """Looks at volumes in memory now and then, in one thread."""

    def __init__(self, replicas: Replicas, moving: Moving, interval_s: float) -> None:
        self._replicas = replicas
        self._moving = moving
        self._interval_s = interval_s
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="lazy writer", daemon=True)

    def start(self) -> None:
        if self._in_memory():
            self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join()

    def persist(self) -> int:
        """Take to disk what is in memory; how many replicas were."""
        done = 0
        for volume in self._in_memory():
            for block_id in self._replicas.finalized_after(0, volume):
                if self._stopping.is_set():
                    return done
                try:
                    self._moving.persist(self._replicas.get(block_id).block)
                    done += 1
                except (HdfsError, OSError) as error:  # deleted meanwhile, or no room
                    log.warning("%d stays in memory for now: %s", block_id, error)
        return done

    def _in_memory(self) -> list[Volume]:
        return [
            volume
            for volume in self._replicas.volumes.good
            if volume.storage_type is StorageType.RAM_DISK
        ]

    def _run(self) -> None:
        while not self._stopping.wait(self._interval_s):
            self.persist()
