"""Steps on the files of one replica; which replicas there are is another's business.

Each may fail as disks do, and then has the volume looked at.  The caller sees to it that
nobody else changes the replica meanwhile.
"""

from __future__ import annotations

import errno
import logging
import os
from contextlib import suppress
from pathlib import Path

from cairnfs.datanode.errors import DiskErrorException
from cairnfs.datanode.replica import Block, Replica, ReplicaReader, ReplicaState, Writer
from cairnfs.datanode.replica_files import ReplicaFile, block_name, meta_name
from cairnfs.datanode.volumes import Volume, Volumes
from cairnfs.errors import IOException
from cairnfs.network.throttle import Throttle

log = logging.getLogger(__name__)

_COPY_BYTES = 1 << 20


class ReplicaSteps:
    """Opening, cutting, renaming, copying and removing."""

    def __init__(self, volumes: Volumes) -> None:
        self._volumes = volumes

    def reopen(self, replica: Replica, writer: Writer | None) -> Replica:
        assert replica.file is None
        with self._volumes.watch(replica.volume):
            replica.file = ReplicaFile.reopen(
                replica.volume, replica.data_path, replica.meta_path, replica.on_disk_bytes
            )
        replica.writer = writer
        return replica

    def truncate(self, replica: Replica, length: int) -> None:
        assert replica.file is not None
        with self._volumes.watch(replica.volume):
            replica.file.truncate(length)
        replica.received_bytes = replica.acked_bytes = length

    def close(self, replica: Replica) -> None:
        if replica.file is not None:
            replica.on_disk_bytes_closed = replica.file.written[0]
            replica.file.close()
            replica.file = None

    def rename_meta(self, replica: Replica, new_stamp: int) -> None:
        """The name of the meta file is where a replica's stamp is kept."""
        with self._volumes.watch(replica.volume):
            new_path = replica.directory / meta_name(replica.block_id, new_stamp)
            replica.volume.disk.rename(replica.meta_path, new_path)
        replica.generation_stamp = new_stamp

    def move(self, replica: Replica, directory: Path, stamp: int) -> None:
        """Move both files, the meta file first; see `replica_files.reunite`."""
        disk = replica.volume.disk
        data_path = replica.data_path
        disk.rename(replica.meta_path, directory / meta_name(replica.block_id, stamp))
        disk.rename(data_path, directory / block_name(replica.block_id))
        replica.generation_stamp = stamp

    def copy_file(
        self,
        reader: ReplicaReader,
        block: Block,
        volume: Volume,
        state: ReplicaState,
        throttle: Throttle | None = None,
    ) -> Replica:
        """A replica with the beginning of another; nobody knows of it yet."""
        copy = Replica(block.id, block.generation_stamp, state, volume, block.length_bytes, 0)
        self.remove_leftovers(copy)
        copy.file = ReplicaFile.create(volume, copy.data_path, copy.meta_path, reader.checksum)
        size = reader.checksum.bytes_per_checksum
        step = max(1, _COPY_BYTES // size) * size
        for offset in range(0, block.length_bytes, step):
            # As much as there is checked: whole chunks, or up to the end.
            data = os.pread(reader.data_fd, min(step, reader.length_bytes - offset), offset)
            if not reader.checksum.matches(data, reader.read_sums(offset, len(data))):
                self.unlink(copy)
                raise IOException(f"{reader.block} is corrupt at {offset}")
            copy.file.write(offset, memoryview(data)[: block.length_bytes - offset], None)
            if throttle is not None:
                throttle.wait(len(data))
        return copy

    def unlink(self, replica: Replica) -> None:
        self.close(replica)
        with self._volumes.watch(replica.volume):
            for path in (replica.data_path, replica.meta_path):
                with suppress(FileNotFoundError):
                    replica.volume.disk.unlink(path)

    def put_aside(self, replica: Replica) -> None:
        """Take the files out of the way; they are removed when there is time."""
        sources = (replica.data_path, replica.meta_path)
        with self._volumes.watch(replica.volume):
            for source, path in zip(sources, _paths_aside(replica), strict=True):
                with suppress(FileNotFoundError):
                    replica.volume.disk.rename(source, path)

    def remove_put_aside(self, replica: Replica) -> None:
        """Not under the lock: to free the space of a large file takes a while."""
        with self._volumes.watch(replica.volume):
            for path in _paths_aside(replica):
                with suppress(FileNotFoundError):
                    replica.volume.disk.unlink(path)

    def release_promise(self, replica: Replica) -> None:
        replica.volume.promise(-replica.promised_bytes)
        replica.promised_bytes = 0

    @staticmethod
    def remove_leftovers(replica: Replica) -> None:
        """Files of a replica nobody knows of, such as one without a meta file."""
        for path in (replica.data_path, replica.meta_path):
            try:
                os.unlink(path)
            except FileNotFoundError:
                continue
            except OSError as error:
                raise DiskErrorException(
                    f"{path}: {os.strerror(error.errno or errno.EIO)}"
                ) from error
            log.warning("removed %s, which belonged to no replica", path)


def _paths_aside(replica: Replica) -> tuple[Path, Path]:
    """Where the files wait for their end; a restart removes what is left there."""
    name = f"deleted_{replica.block_id}_{replica.generation_stamp}"
    return replica.volume.tmp / name, replica.volume.tmp / f"{name}.meta"
