"""A data directory by itself: its location and type, its lock, whose it is.

Invariant: a directory is used by one process, for one cluster, by the DataNode whose
identity is written there.
"""

from __future__ import annotations

import enum
import fcntl
import os
import re
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from cairnfs.datanode.disk import sync_directory
from cairnfs.datanode.errors import DiskErrorException, InconsistentFSStateException

LAYOUT_VERSION = -57  # blocks in 32 by 32 directories; negative, as all of Hadoop's

_LOCATION = re.compile(r"^(?:\[(\w+)\])?(.+)$")


class StorageType(enum.IntEnum):
    """What a replica is kept on; the numbers are Hadoop's StorageTypeProto."""

    DISK = 1
    SSD = 2
    ARCHIVE = 3
    RAM_DISK = 4
    PROVIDED = 5
    NVDIMM = 6


@dataclass(frozen=True, slots=True)
class StorageLocation:
    """A directory and what kind of storage it is on."""

    path: Path
    storage_type: StorageType = StorageType.DISK

    @classmethod
    def parse(cls, text: str) -> StorageLocation:
        """Read Hadoop's notation: `[SSD]/path`, `/path`, either with `file://`."""
        match = _LOCATION.match(text.strip())
        if match is None:
            raise ValueError("a storage location is empty")
        name, path = match.groups()
        try:
            storage_type = StorageType[(name or "DISK").upper()]
        except KeyError:
            known = ", ".join(each.name for each in StorageType)
            raise ValueError(f"{text!r}: no storage type {name!r}; there are {known}") from None
        return cls(Path(os.path.abspath(path.removeprefix("file://"))), storage_type)

    @classmethod
    def parse_list(cls, text: str) -> tuple[StorageLocation, ...]:
        """Read locations separated by commas."""
        return tuple(cls.parse(part) for part in text.split(",") if part.strip())

    def __str__(self) -> str:
        return f"[{self.storage_type.name}]{self.path}"


@dataclass(frozen=True, slots=True)
class Namespace:
    """What a DataNode's data belongs to, as a NameNode states it."""

    namespace_id: int
    cluster_id: str
    block_pool_id: str
    creation_ms: int


def lock_directory(location: StorageLocation) -> int:
    """Hold `in_use.lock`; the file descriptor is the lock.

    Both kinds of lock: Java takes the POSIX one, which does not exclude a second
    DataNode of the same process.
    """
    try:
        location.path.mkdir(parents=True, exist_ok=True)
        fd = os.open(location.path / "in_use.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise DiskErrorException(f"{location.path} cannot be used: {error.strerror}") from error
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        owner = ""
        with suppress(OSError):
            owner = os.pread(fd, 100, 0).decode(errors="replace").strip()
        os.close(fd)
        raise InconsistentFSStateException(
            f"{location.path} is in use by another DataNode{f' ({owner})' if owner else ''}"
        ) from None
    os.truncate(fd, 0)
    os.pwrite(fd, f"{os.getpid()}@{os.uname().nodename}".encode(), 0)
    return fd


def read_version(path: Path) -> dict[str, str]:
    """A file of Java properties, as far as VERSION files use them."""
    try:
        text = path.read_text(encoding="latin-1")
    except FileNotFoundError:
        return {}
    properties: dict[str, str] = {}
    for line in text.splitlines():
        key, separator, value = line.partition("=")
        if separator and not line.startswith("#"):
            properties[key.strip()] = value.strip().replace("\\:", ":")
    return properties


def write_version(path: Path, properties: dict[str, str]) -> None:
    """Replace the file, whole or not at all; leave it if it says so already."""
    if read_version(path) == properties:
        return
    lines = [f"#{time.strftime('%a %b %d %H:%M:%S UTC %Y', time.gmtime())}"]
    lines += [f"{key}={value}" for key, value in properties.items()]
    temporary = path.with_suffix(".tmp")
    with temporary.open("w", encoding="latin-1") as file:
        file.write("\n".join(lines) + "\n")
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
    sync_directory(path.parent)


def check_identity(
    directory: Path, known: dict[str, str], namespace: Namespace, datanode_uuid: str
) -> None:
    """Refuse what belongs to another cluster, DataNode or namespace, or to the future."""
    cluster = known.get("clusterID", namespace.cluster_id)
    if cluster != namespace.cluster_id:
        raise InconsistentFSStateException(
            f"Incompatible clusterIDs in {directory}: namenode clusterID ="
            f" {namespace.cluster_id}; datanode clusterID = {cluster}"
        )
    if known.get("datanodeUuid", datanode_uuid) != datanode_uuid:
        raise InconsistentFSStateException(
            f"Directory {directory} belongs to DataNode {known['datanodeUuid']},"
            f" not to {datanode_uuid}"
        )
    layout = int(known.get("layoutVersion", LAYOUT_VERSION))
    if layout != LAYOUT_VERSION:
        raise InconsistentFSStateException(
            f"{directory} has layout {layout}; only {LAYOUT_VERSION} is understood"
        )
    pool = directory / "current" / namespace.block_pool_id / "current" / "VERSION"
    namespace_id = read_version(pool).get("namespaceID", str(namespace.namespace_id))
    if namespace_id != str(namespace.namespace_id):
        raise InconsistentFSStateException(
            f"Incompatible namespaceIDs in {pool.parent}: namenode namespaceID ="
            f" {namespace.namespace_id}; datanode namespaceID = {namespace_id}"
        )
