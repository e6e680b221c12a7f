"""Disks: where replicas are kept, how much room there is, which of them have failed.

A volume is a directory of one storage type, in the layout of Hadoop's DataNode:

    in_use.lock
    current/VERSION                     whose it is: cluster, DataNode, storage
    current/BP-.../current/VERSION      which namespace
    current/BP-.../current/finalized/subdirN/subdirM/blk_ID, blk_ID_STAMP.meta
    current/BP-.../current/rbw          being written
    current/BP-.../tmp                  being copied here

A volume that has failed takes part in nothing any more; its replicas are lost.
"""

from __future__ import annotations

import errno
import logging
import os
import shutil
import threading
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from cairnfs.datanode.disk import Disk
from cairnfs.datanode.errors import (
    DiskErrorException,
    DiskOutOfSpaceException,
    InconsistentFSStateException,
)
from cairnfs.datanode.storage import (
    LAYOUT_VERSION,
    Namespace,
    StorageLocation,
    StorageType,
    check_identity,
    lock_directory,
    read_version,
    write_version,
)

log = logging.getLogger(__name__)

ESTIMATED_BLOCK_BYTES = 128 << 20  # room to look for when nobody says how much

# What a full or busy system says; the disk itself may be in order.
_NOT_THE_DISK = {errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.ENOENT, errno.EEXIST}


class Volume:
    """One directory, locked for this process from `__init__` until `close`."""

    def __init__(
        self,
        location: StorageLocation,
        *,
        reserved_bytes: int = 0,
        limit_bytes: int = 0,
        disk: Disk | None = None,
    ) -> None:
        self.location = location
        self.storage_type = location.storage_type
        self.disk = disk or Disk()
        self.storage_id = ""
        self.failed = False
        self.capacity_bytes = 0
        self.pool: Path = location.path / "current"
        self._reserved_bytes = reserved_bytes
        self._limit_bytes = limit_bytes  # 0: there is none but the disk
        self._used_bytes = 0
        self._promised_bytes = 0  # to replicas being written
        self._lock = threading.Lock()
        self._lock_fd = lock_directory(location)

    def __str__(self) -> str:
        return str(self.location)

    # Whose it is.

    def read_identity(self) -> dict[str, str]:
        """What VERSION says; empty where there is none yet."""
        return read_version(self.location.path / "current" / "VERSION")

    def attach(self, namespace: Namespace, datanode_uuid: str) -> None:
        """Make the directory this DataNode's, or see that it is."""
        known = self.read_identity()
        check_identity(self.location.path, known, namespace, datanode_uuid)
        self.storage_id = known.get("storageID") or f"DS-{uuid.uuid4()}"
        current = self.location.path / "current"
        pool = current / namespace.block_pool_id
        for directory in (pool / "current" / "finalized", pool / "current" / "rbw", pool / "tmp"):
            directory.mkdir(parents=True, exist_ok=True)
        write_version(
            current / "VERSION",
            {
                "storageID": self.storage_id,
                "clusterID": namespace.cluster_id,
                "cTime": "0",
                "datanodeUuid": datanode_uuid,
                "storageType": "DATA_NODE",
                "layoutVersion": str(LAYOUT_VERSION),
            },
        )
        write_version(
            pool / "current" / "VERSION",
            {
                "namespaceID": str(namespace.namespace_id),
                "cTime": str(namespace.creation_ms),
                "blockpoolID": namespace.block_pool_id,
                "layoutVersion": str(LAYOUT_VERSION),
            },
        )
        self.pool = pool
        total = max(0, shutil.disk_usage(self.location.path).total - self._reserved_bytes)
        self.capacity_bytes = min(total, self._limit_bytes) if self._limit_bytes else total

    # Where things are.

    @property
    def finalized(self) -> Path:
        return self.pool / "current" / "finalized"

    @property
    def rbw(self) -> Path:
        return self.pool / "current" / "rbw"

    @property
    def tmp(self) -> Path:
        return self.pool / "tmp"

    def finalized_directory(self, block_id: int) -> Path:
        """Where Hadoop's layout puts this block."""
        first, second = block_id >> 16 & 0x1F, block_id >> 8 & 0x1F
        return self.finalized / f"subdir{first}" / f"subdir{second}"

    # How much room there is.

    @property
    def used_bytes(self) -> int:
        """Taken by replicas, with their sums."""
        return self._used_bytes

    @property
    def reserved_bytes(self) -> int:
        """Left to others than this DataNode."""
        return self._reserved_bytes

    @property
    def promised_bytes(self) -> int:
        """Room that replicas being written may still take."""
        return self._promised_bytes

    def available_bytes(self) -> int:
        """What new replicas may take, beside what was promised to those being written."""
        free = self.disk.free_bytes(self.location.path) - self._reserved_bytes
        if self._limit_bytes:
            free = min(free, self._limit_bytes - self._used_bytes)
        return max(0, free - self._promised_bytes)

    def add_used(self, difference_bytes: int) -> None:
        with self._lock:
            self._used_bytes += difference_bytes

    def promise(self, difference_bytes: int) -> None:
        """Keep room for a replica being written, or give it back."""
        with self._lock:
            self._promised_bytes += difference_bytes

    # Failing.

    def check(self) -> None:
        """OSError if this directory can no longer be read and written."""
        for directory in (self.location.path, self.finalized, self.rbw, self.tmp):
            if not os.access(directory, os.R_OK | os.W_OK | os.X_OK):
                raise OSError(errno.EIO, "not readable and writable", str(directory))
        try:
            self.disk.probe(self.tmp)
        except OSError as error:
            if error.errno not in _NOT_THE_DISK:
                raise

    def close(self) -> None:
        """Let another process have it."""
        if self._lock_fd >= 0:
            os.close(self._lock_fd)
            self._lock_fd = -1


class FailedVolume(NamedTuple):
    """What is remembered of a volume that has failed."""

    path: Path
    failed_ms: int
    capacity_bytes: int
    volume: Volume | None  # None: it could not be used from the beginning


class Volumes:
    """All volumes of a DataNode; those that fail are left out from then on."""

    def __init__(
        self,
        locations: Sequence[StorageLocation],
        *,
        reserved_bytes: int = 0,
        limit_bytes: int = 0,
        failures_tolerated: int = 0,
        disk: Disk | None = None,
    ) -> None:
        if not locations:
            raise ValueError("a DataNode needs at least one data directory")
        _check_distinct(locations)
        if not 0 <= failures_tolerated < len(locations):
            raise ValueError(
                f"{failures_tolerated} failed volumes cannot be tolerated of {len(locations)}"
            )
        self._failures_tolerated = failures_tolerated
        self._lock = threading.Lock()
        self._turn = 0
        self.failed: list[FailedVolume] = []
        self.good: list[Volume] = []
        try:
            for location in locations:
                try:
                    self.good.append(
                        Volume(
                            location,
                            reserved_bytes=reserved_bytes,
                            limit_bytes=limit_bytes,
                            disk=disk,
                        )
                    )
                except DiskErrorException as error:
                    log.error("%s", error)
                    self.failed.append(FailedVolume(location.path, _now_ms(), 0, None))
                    if self.too_many_failed:
                        raise
        except BaseException:
            self.close()
            raise

    def attach(self, namespace: Namespace) -> str:
        """Give every directory one identity; returns the DataNode's."""
        uuids = {
            known["datanodeUuid"]
            for known in (volume.read_identity() for volume in self.good)
            if "datanodeUuid" in known
        }
        if len(uuids) > 1:
            raise InconsistentFSStateException(
                f"The data directories belong to different DataNodes: {', '.join(sorted(uuids))}"
            )
        datanode_uuid = uuids.pop() if uuids else str(uuid.uuid4())
        for volume in list(self.good):
            try:
                volume.attach(namespace, datanode_uuid)
            except OSError as error:
                if isinstance(error, InconsistentFSStateException) or self.check(volume):
                    raise
                if self.too_many_failed:
                    raise DiskErrorException(f"{volume} cannot be used: {error}") from error
        storages = [volume.storage_id for volume in self.good]
        if len(set(storages)) < len(storages):
            raise InconsistentFSStateException(
                f"Two data directories hold the same storage: {', '.join(map(str, self.good))}"
            )
        return datanode_uuid

    def choose(self, storage_type: StorageType, storage_id: str, needed_bytes: int) -> Volume:
        """The volume asked for if it has room, else the next of its type that has.

        Room for one more block must be left, as Hadoop's round-robin policy has it.
        """
        with self._lock:
            fitting = [volume for volume in self.good if volume.storage_type == storage_type]
            if not fitting:
                raise DiskOutOfSpaceException("No more available volumes")
            self._turn += 1
            start = self._turn % len(fitting)
        candidates = fitting[start:] + fitting[:start]
        candidates.sort(key=lambda volume: volume.storage_id != storage_id)  # stable
        most = 0
        for volume in candidates:
            with self.watch(volume):
                available = volume.available_bytes()
                if available > needed_bytes:
                    return volume
                most = max(most, available)
        raise DiskOutOfSpaceException(
            f"Out of space: The volume with the most available space (={most} B) is less than"
            f" the block size (={needed_bytes} B)."
        )

    def has_room(self, storage_type: StorageType, needed_bytes: int) -> bool:
        """Whether a volume of the type would take so many bytes, or a block of the usual size."""
        needed_bytes = needed_bytes or ESTIMATED_BLOCK_BYTES
        for volume in list(self.good):
            if volume.storage_type is storage_type:
                with self.watch(volume):
                    if volume.available_bytes() > needed_bytes:
                        return True
        return False

    @contextmanager
    def watch(self, volume: Volume) -> Iterator[None]:
        """An I/O error in here is passed on, and the volume looked at."""
        try:
            yield
        except OSError as error:
            if error.errno is not None and error.errno not in _NOT_THE_DISK:
                self.check(volume)
            raise

    def check(self, volume: Volume) -> bool:
        """Whether the volume is in order; if not, it is left out from now on."""
        if volume.failed:
            return False
        try:
            volume.check()
        except OSError as error:
            with self._lock:
                if not volume.failed:
                    log.error("volume %s has failed: %s", volume, error)
                    volume.failed = True
                    self.good = [each for each in self.good if each is not volume]
                    self.failed.append(
                        FailedVolume(volume.location.path, _now_ms(), volume.capacity_bytes, volume)
                    )
            return False
        return True

    @property
    def too_many_failed(self) -> bool:
        """Whether the DataNode should give up."""
        return len(self.failed) > self._failures_tolerated

    def close(self) -> None:
        for volume in (*self.good, *(each.volume for each in self.failed)):
            if volume is not None:
                volume.close()


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _check_distinct(locations: Sequence[StorageLocation]) -> None:
    seen: dict[str, StorageLocation] = {}
    for location in locations:
        real = os.path.realpath(location.path)
        if real in seen:
            raise ValueError(f"{location} and {seen[real]} are the same directory")
        seen[real] = location
