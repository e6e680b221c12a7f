"""Replica states and what may happen to a replica in each: append design, seed 001.

    TEMPORARY --finalize--> FINALIZED <--finalize-- RBW <--create
        |                    |     ^                 |
        +--convert--> RBW    +--append--> RBW        +--restart--> RWR
                             any of them --recover--> RUR --update--> FINALIZED

Here is what may follow what.  `ReplicaTable` knows which replicas there are, `ReplicaSteps`
what is done to their files.

Invariants: a block has at most one replica here; its generation stamp never decreases;
`acked <= on disk <= received`; a replica has at most one writer, who is stopped before
anybody else changes it.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import TypeVar

from cairnfs.datanode.disk import sync_directory
from cairnfs.datanode.errors import ReplicaNotFoundException
from cairnfs.datanode.replica import (
    Block,
    Replica,
    ReplicaReader,
    ReplicaState,
    Writer,
    size_with_sums,
)
from cairnfs.datanode.replica_checks import (
    already_exists,
    check_appendable,
    check_convertible,
    check_rbw_recoverable,
    check_recoverable,
    check_recovery_may_begin,
    check_recovery_may_end,
)
from cairnfs.datanode.replica_files import ReplicaFile
from cairnfs.datanode.replica_steps import ReplicaSteps
from cairnfs.datanode.replica_table import ReplicaTable
from cairnfs.datanode.storage import StorageType
from cairnfs.datanode.volumes import ESTIMATED_BLOCK_BYTES, Volume, Volumes
from cairnfs.errors import IOException
from cairnfs.network.throttle import Throttle
from cairnfs.wire.checksum import Checksum

log = logging.getLogger(__name__)

WRITER_STOP_LIMIT_S = 60.0

_T = TypeVar("_T")


class Replicas:
    """Every replica of this DataNode."""

    def __init__(
        self, volumes: Volumes, on_lost: Callable[[Replica], None] = lambda replica: None
    ) -> None:
        """`on_lost` is told of replicas whose files somebody else has removed."""
        self.volumes = volumes
        self._on_lost = on_lost
        self._lock = threading.RLock()
        self._table = ReplicaTable(volumes.good)
        self._steps = ReplicaSteps(volumes)

    def load(self) -> None:
        """Learn what is on the disks; unfinished replicas wait for recovery."""
        for volume in list(self.volumes.good):
            try:
                self._table.load(volume, self._steps)
            except OSError as error:
                log.error("cannot read %s: %s", volume, error)
                if self.volumes.check(volume):
                    raise
        others = self._table.unfinished
        log.info("%d finalized and %d other replicas", len(self._table) - others, others)

    # Looking.

    def __len__(self) -> int:
        return len(self._table)

    @property
    def unfinished(self) -> int:
        """Of them, those that are being written or wait for recovery."""
        return self._table.unfinished

    def get(self, block_id: int) -> Replica:
        """The replica, in whatever state."""
        with self._lock:
            return self._checked(block_id)

    def find(self, block_id: int) -> Replica | None:
        with self._lock:
            return self._table.get(block_id)

    def open_for_read(self, block: Block) -> ReplicaReader:
        """Open what a reader may see.  An older generation than it knows is refused."""
        with self._lock:
            replica = self._table.get(block.id)
            if replica is None:
                raise ReplicaNotFoundException(f"Replica not found for {block}")
            if replica.generation_stamp < block.generation_stamp:
                raise IOException(
                    f"Replica gen stamp < block genstamp, block={block}, replica={replica}"
                )
            if replica.visible_bytes < 0:
                raise IOException(f"Replica is not readable, block={block}, replica={replica}")
            with self.volumes.watch(replica.volume):
                try:
                    return ReplicaReader(replica)
                except FileNotFoundError as error:
                    # Somebody removed the files: then it is not our replica any more.
                    if self.volumes.check(replica.volume):
                        self._forget(replica)
                        self._on_lost(replica)
                    raise ReplicaNotFoundException(f"Replica not found for {block}") from error

    def report(self, volume: Volume) -> list[tuple[int, int, int, ReplicaState]]:
        """Id, length, stamp and state of all replicas that a NameNode should know of."""
        with self._lock:
            rows, finalized = self._table.describe_unfinished(volume), self._table.snapshot()
        rows += [(*row, ReplicaState.FINALIZED) for row in finalized.describe(volume)]
        return rows

    def count(self, volume: Volume) -> int:
        """How many replicas are finalized there."""
        with self._lock:
            return self._table.count(volume)

    def finalized_after(self, block_id: int, volume: Volume) -> list[int]:
        """The ids of finalized replicas beyond this one, in order, for a scanner."""
        with self._lock:
            finalized = self._table.snapshot()
        return finalized.ids_after(block_id, volume)

    # Creating.

    def create_rbw(
        self,
        block: Block,
        checksum: Checksum,
        storage_type: StorageType,
        storage_id: str,
        writer: Writer | None,
        *,
        replace: bool = False,
    ) -> Replica:
        """A replica for a client to write; `replace` what an earlier try has left."""

        def discard(old: Replica | None) -> None:
            if old is not None:
                self._delete(old)

        if replace:
            self._alone(block.id, discard)
        return self._create(block, checksum, storage_type, storage_id, ReplicaState.RBW, writer)

    def create_temporary(
        self,
        block: Block,
        checksum: Checksum,
        storage_type: StorageType,
        storage_id: str,
        writer: Writer | None,
        *,
        is_transfer: bool,
    ) -> Replica:
        """A replica to be copied here; it takes the place of one that is older.

        A transfer is part of a client's pipeline and may also replace what is finalized.
        """

        def discard_older(old: Replica | None) -> None:
            if old is None:
                return
            written = old.state in (ReplicaState.TEMPORARY, ReplicaState.RBW)
            if old.generation_stamp >= block.generation_stamp or not (is_transfer or written):
                raise already_exists(block, old)
            self._delete(old)

        self._alone(block.id, discard_older)
        return self._create(
            block, checksum, storage_type, storage_id, ReplicaState.TEMPORARY, writer
        )

    def _create(
        self,
        block: Block,
        checksum: Checksum,
        storage_type: StorageType,
        storage_id: str,
        state: ReplicaState,
        writer: Writer | None,
    ) -> Replica:
        needed = block.length_bytes or ESTIMATED_BLOCK_BYTES
        volume = self.volumes.choose(storage_type, storage_id, needed)
        with self._lock, self.volumes.watch(volume):
            old = self._table.get(block.id)
            if old is not None:
                raise already_exists(block, old)
            replica = Replica(block.id, block.generation_stamp, state, volume, 0, 0)
            self._steps.remove_leftovers(replica)
            replica.file = ReplicaFile.create(
                volume, replica.data_path, replica.meta_path, checksum
            )
            replica.writer = writer
            replica.promised_bytes = needed
            volume.promise(needed)
            self._table.put_open(replica)
            return replica

    # Appending, and going on after a pipeline has failed.

    def append(
        self, block: Block, new_stamp: int, expected_bytes: int, writer: Writer | None
    ) -> Replica:
        """Open a finalized replica again, under a new stamp."""
        with self._lock:
            replica = self._checked(block.id)
            check_appendable(replica, block, new_stamp, expected_bytes)
            return self._append(replica, new_stamp, writer)

    def recover_append(
        self, block: Block, new_stamp: int, expected_bytes: int, writer: Writer | None
    ) -> Replica:
        """Set up an append that has failed before it could stream."""

        def recover(replica: Replica | None) -> Replica:
            replica = check_recoverable(replica, block, new_stamp, expected_bytes)
            if replica.state is ReplicaState.FINALIZED:
                return self._append(replica, new_stamp, writer)
            self._bump(replica, new_stamp)
            return self._steps.reopen(replica, writer)

        return self._alone(block.id, recover)

    def recover_close(self, block: Block, new_stamp: int, expected_bytes: int) -> Replica:
        """Finalize what is complete, though its close has failed."""

        def recover(replica: Replica | None) -> Replica:
            replica = check_recoverable(replica, block, new_stamp, expected_bytes)
            self._bump(replica, new_stamp)
            if replica.state is ReplicaState.RBW:
                self._finalize(replica)
            return replica

        return self._alone(block.id, recover)

    def recover_rbw(
        self,
        block: Block,
        new_stamp: int,
        min_bytes: int,
        max_bytes: int,
        writer: Writer | None,
    ) -> Replica:
        """Go on with a replica whose pipeline has failed; what was not acknowledged goes."""

        def recover(replica: Replica | None) -> Replica:
            replica = check_rbw_recoverable(replica, block, new_stamp, min_bytes, max_bytes)
            self._bump(replica, new_stamp)
            self._steps.reopen(replica, writer)
            self._steps.truncate(replica, replica.acked_bytes)
            return replica

        return self._alone(block.id, recover)

    def convert_temporary_to_rbw(self, block: Block, visible_bytes: int) -> Replica:
        """A copy of a replica being written becomes one itself."""
        with self._lock:
            replica = self._checked(block.id)
            check_convertible(replica, block, visible_bytes)
            self._steps.move(replica, replica.volume.rbw, replica.generation_stamp)
            replica.state = ReplicaState.RBW
            replica.acked_bytes = visible_bytes
            return replica

    # The end of writing.

    def finalize(self, replica: Replica, *, sync: bool = False) -> None:
        """The replica is complete.  `sync`: it must survive a power failure from now on."""
        with self._lock:
            if not self._table.has_open(replica):
                raise ReplicaNotFoundException(f"{replica} was replaced while it was written")
            source = replica.directory
            self._finalize(replica)
        if sync:
            with self.volumes.watch(replica.volume):
                sync_directory(replica.directory)
                sync_directory(source)

    def release(self, replica: Replica, writer: Writer) -> None:
        """The writer is done.  A copy that is not complete goes, what a client wrote stays."""
        with self._lock:
            if replica.writer is not writer:
                return
            replica.writer = None
            self._steps.close(replica)
            self._steps.release_promise(replica)
            if self._table.has_open(replica) and replica.state is ReplicaState.TEMPORARY:
                self._delete(replica)

    def sync_directory(self, replica: Replica) -> None:
        """Make the names of a replica's files survive a power failure."""
        sync_directory(replica.directory)

    # Recovery of a block, led by a DataNode.

    def init_recovery(self, block: Block, recovery_id: int) -> Replica | None:
        """Stop whoever writes, and say what there is; None if there is nothing."""

        def init(replica: Replica | None) -> Replica | None:
            if replica is None:
                return None
            check_recovery_may_begin(replica, block, recovery_id)
            if replica.state is not ReplicaState.RUR:
                self._steps.close(replica)
                replica.original_state = replica.state
                replica.state = ReplicaState.RUR
                replica.received_bytes = replica.on_disk_bytes
                self._steps.release_promise(replica)
                self._table.put_open(replica)
            replica.recovery_id = recovery_id
            return replica

        return self._alone(block.id, init)

    def update_recovered(
        self, block: Block, recovery_id: int, new_block_id: int, new_bytes: int
    ) -> Replica:
        """Cut a replica under recovery to the length agreed on, and finalize it.

        With another block id, the result is a copy, for a file that goes on without what a
        snapshot shares, and the replica stays as it was.
        """
        if new_block_id not in (0, block.id):
            return self._copy_recovered(block, recovery_id, new_block_id, new_bytes)
        with self._lock:
            replica = self._checked(block.id)
            check_recovery_may_end(replica, block, recovery_id, new_bytes)
            with self.volumes.watch(replica.volume):
                # Not in place: a crash must not leave something half cut as finalized.
                if replica.original_state is ReplicaState.FINALIZED:
                    self._steps.move(replica, replica.volume.rbw, recovery_id)
                    replica.original_state = ReplicaState.RBW
                self._bump(replica, recovery_id)
                self._steps.reopen(replica, None)
                self._steps.truncate(replica, new_bytes)
                self._finalize(replica)
            return replica

    def _copy_recovered(
        self, block: Block, recovery_id: int, copy_id: int, copy_bytes: int
    ) -> Replica:
        """A finalized copy of the beginning of a replica under recovery, which goes on as it was.

        Others are served while it is made.
        """
        with self._lock:
            replica = self._checked(block.id)
            check_recovery_may_end(replica, block, recovery_id, copy_bytes)
            volume = replica.volume
            reader = ReplicaReader(replica)
        copy_block = Block(copy_id, recovery_id, copy_bytes)
        with reader, self.volumes.watch(volume):
            copy = self._steps.copy_file(reader, copy_block, volume, ReplicaState.RBW)
        with self._lock, self.volumes.watch(volume):
            replica = self._checked(block.id)
            try:
                check_recovery_may_end(replica, block, recovery_id, copy_bytes)
            except IOException:
                self._steps.unlink(copy)
                raise
            self._finalize(copy)
            self._finalize(replica)
            return copy

    # Moving, deleting and losing.

    def move(
        self,
        block: Block,
        storage_type: StorageType,
        storage_id: str,
        *,
        throttle: Throttle | None = None,
    ) -> Replica:
        """Take a finalized replica to another volume of this DataNode."""
        with self.open_for_read(block) as reader:
            if reader.state is not ReplicaState.FINALIZED:
                raise IOException(f"{block} is being written and cannot be moved")
            volume = self.volumes.choose(storage_type, storage_id, reader.length_bytes)
            if volume is reader.volume:
                return self.get(block.id)
            with self.volumes.watch(volume):
                copy = self._steps.copy_file(
                    reader, reader.block, volume, ReplicaState.TEMPORARY, throttle
                )
        with self._lock, self.volumes.watch(volume):
            self._steps.close(copy)
            old = self._table.get(block.id)
            if old is None or old.block != copy.block or old.state is not ReplicaState.FINALIZED:
                self._steps.unlink(copy)
                raise IOException(f"{block} has changed while it was moved")
            directory = volume.finalized_directory(block.id)
            directory.mkdir(parents=True, exist_ok=True)
            self._steps.move(copy, directory, copy.generation_stamp)
            copy.state = ReplicaState.FINALIZED
            self._discard(old)
            self._finalize(copy)
        self._steps.remove_put_aside(old)
        return copy

    def delete(self, block: Block, volume: Volume) -> Replica:
        """Remove a replica as a NameNode has asked; a younger one, or elsewhere, is not meant."""

        def delete(replica: Replica | None) -> Replica:
            if replica is None:
                raise ReplicaNotFoundException(f"Failed to delete replica {block}: not found")
            if replica.volume is not volume:
                raise ReplicaNotFoundException(
                    f"Failed to delete replica {block}: it is on {replica.volume} now"
                )
            if replica.generation_stamp > block.generation_stamp:
                raise ReplicaNotFoundException(
                    f"Failed to delete replica {block}: GenerationStamp not matched,"
                    f" existing replica is {replica}"
                )
            self._discard(replica)
            return replica

        replica = self._alone(block.id, delete)
        self._steps.remove_put_aside(replica)
        return replica

    def drop_volume(self, volume: Volume) -> list[Block]:
        """Forget what was on a failed volume; whoever writes there will find out."""
        with self._lock:
            return [replica.block for replica in self._table.remove_all(volume)]

    # Steps of the above; the lock is held.

    def _checked(self, block_id: int) -> Replica:
        replica = self._table.get(block_id)
        if replica is None:
            raise ReplicaNotFoundException(f"Replica not found for blk_{block_id}")
        return replica

    def _alone(self, block_id: int, action: Callable[[Replica | None], _T]) -> _T:
        """Act on a replica that nobody writes."""
        deadline = time.monotonic() + WRITER_STOP_LIMIT_S
        while True:
            with self._lock:
                replica = self._table.get(block_id)
                writer = None if replica is None else replica.writer
                if writer is None:
                    return action(replica)
            left_s = deadline - time.monotonic()
            if left_s <= 0 or not writer.stop(left_s):
                raise IOException(f"Unable to stop existing writer for blk_{block_id}")

    def _append(self, replica: Replica, new_stamp: int, writer: Writer | None) -> Replica:
        with self.volumes.watch(replica.volume):
            self._steps.move(replica, replica.volume.rbw, new_stamp)
            replica.state = ReplicaState.RBW
            self._table.put_open(replica)
            return self._steps.reopen(replica, writer)

    def _bump(self, replica: Replica, new_stamp: int) -> None:
        """Give it another stamp."""
        if new_stamp == replica.generation_stamp:
            return
        self._steps.rename_meta(replica, new_stamp)
        if replica.state is ReplicaState.FINALIZED:
            self._table.put_finalized(replica)

    def _finalize(self, replica: Replica) -> None:
        with self.volumes.watch(replica.volume):
            self._steps.close(replica)
            if replica.on_disk_bytes != replica.received_bytes:
                raise IOException(f"not all bytes of {replica} are on disk")
            directory = replica.volume.finalized_directory(replica.block_id)
            if replica.directory != directory:
                directory.mkdir(parents=True, exist_ok=True)
                self._steps.move(replica, directory, replica.generation_stamp)
        replica.state = ReplicaState.FINALIZED
        replica.acked_bytes = replica.received_bytes
        self._steps.release_promise(replica)
        self._table.put_finalized(replica)
        used = size_with_sums(replica.received_bytes)
        replica.volume.add_used(used - replica.used_bytes)
        replica.used_bytes = used

    def _delete(self, replica: Replica) -> None:
        self._forget(replica)
        self._steps.unlink(replica)

    def _discard(self, replica: Replica) -> None:
        """Take a replica out of sight, so that another of the block can come."""
        self._steps.close(replica)
        self._forget(replica)
        self._steps.put_aside(replica)

    def _forget(self, replica: Replica) -> None:
        self._table.remove(replica.block_id)
        self._steps.release_promise(replica)
        replica.volume.add_used(-replica.used_bytes)
