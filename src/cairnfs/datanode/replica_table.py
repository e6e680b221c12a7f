"""Which replicas there are: the finalized in little memory, the few others as objects.

Whoever uses it holds the lock of `Replicas`.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Iterable

from cairnfs.datanode.finalized_map import FinalizedMap
from cairnfs.datanode.replica import Block, Replica, ReplicaState, size_with_sums
from cairnfs.datanode.replica_files import find_finalized, find_unfinished, reunite
from cairnfs.datanode.replica_steps import ReplicaSteps
from cairnfs.datanode.volumes import Volume

log = logging.getLogger(__name__)


class ReplicaTable:
    """Replicas by block id, at most one each."""

    def __init__(self, volumes: Iterable[Volume]) -> None:
        self._finalized = FinalizedMap(volumes)
        self._open: dict[int, Replica] = {}

    def load(self, volume: Volume, steps: ReplicaSteps) -> None:
        """Learn what is on a disk; of two replicas of a block, the better one counts."""
        reunite(volume)
        used = 0
        for found in find_finalized(volume):
            known = self._finalized.get(found.block_id)
            if known is not None and known.volume is volume:
                log.warning("%s has blk_%d twice: one is a stray copy", volume, found.block_id)
                continue
            if known is not None and _rank(known.block) > _rank(Block(*found)):
                log.warning("%s: a better replica of blk_%d is known", volume, found.block_id)
                continue
            if known is not None and known.block == Block(*found):
                other = dataclasses.replace(known, volume=volume)
                if _keeps_known(known, other):
                    _drop(other, steps)
                    continue
                _drop(known, steps)
                known.volume.add_used(-size_with_sums(known.received_bytes))
            self._finalized.put(*found, volume)
            used += size_with_sums(found.length_bytes)
        for found in find_unfinished(volume):
            known = self.get(found.block_id)
            if known is not None and known.generation_stamp >= found.generation_stamp:
                log.warning("%s: a better replica of blk_%d is known", volume, found.block_id)
                continue
            self._finalized.pop(found.block_id)
            self._open[found.block_id] = Replica(
                found.block_id,
                found.generation_stamp,
                ReplicaState.RWR,
                volume,
                received_bytes=found.length_bytes,
                acked_bytes=found.length_bytes,
                on_disk_bytes_closed=found.length_bytes,
                used_bytes=size_with_sums(found.length_bytes),
            )
            used += size_with_sums(found.length_bytes)
        volume.add_used(used)

    def __len__(self) -> int:
        return len(self._finalized) + len(self._open)

    @property
    def unfinished(self) -> int:
        return len(self._open)

    def get(self, block_id: int) -> Replica | None:
        return self._open.get(block_id) or self._finalized.get(block_id)

    def has_open(self, replica: Replica) -> bool:
        """Whether this very replica is there, and not finalized."""
        return self._open.get(replica.block_id) is replica

    def put_open(self, replica: Replica) -> None:
        self._finalized.pop(replica.block_id)
        self._open[replica.block_id] = replica

    def put_finalized(self, replica: Replica) -> None:
        self._open.pop(replica.block_id, None)
        self._finalized.put(
            replica.block_id, replica.generation_stamp, replica.received_bytes, replica.volume
        )

    def remove(self, block_id: int) -> None:
        self._finalized.pop(block_id)
        self._open.pop(block_id, None)

    def remove_all(self, volume: Volume) -> list[Replica]:
        """Those that were on a volume."""
        lost = [*self._finalized.of(volume)]
        lost += [replica for replica in self._open.values() if replica.volume is volume]
        for replica in lost:
            self.remove(replica.block_id)
        return lost

    def snapshot(self) -> FinalizedMap:
        """The finalized ones as they are now; of a million, it takes some 20 ms."""
        return self._finalized.snapshot()

    def count(self, volume: Volume) -> int:
        """How many replicas are finalized there."""
        return self._finalized.count(volume)

    def describe_unfinished(self, volume: Volume) -> list[tuple[int, int, int, ReplicaState]]:
        """Id, length, stamp and state of those that a NameNode should know of."""
        rows: list[tuple[int, int, int, ReplicaState]] = []
        for replica in self._open.values():
            state = replica.state
            if state is ReplicaState.RUR:
                state = replica.original_state
            if replica.volume is volume and state is not ReplicaState.TEMPORARY:
                length = replica.on_disk_bytes
                rows.append((replica.block_id, length, replica.generation_stamp, state))
        return rows


def _rank(block: Block) -> tuple[int, int]:
    """Of two replicas of a block, the one of the younger generation is better, then the longer."""
    return block.generation_stamp, block.length_bytes


def _keeps_known(known: Replica, found: Replica) -> bool:
    """Whether the first of two that should be the same is to be kept.

    A crash came in the middle of a move; or a disk is there again whose replicas were made anew,
    perhaps because it had decayed.  So the one that was written last, or that can be looked at
    at all.  (HDFS keeps whichever it has found first.)
    """
    try:
        known_ns = known.data_path.stat().st_mtime_ns
    except OSError as error:
        log.warning("%s cannot be looked at: %s", known, error)
        return False
    return known_ns >= found.data_path.stat().st_mtime_ns


def _drop(replica: Replica, steps: ReplicaSteps) -> None:
    """Remove one that there is twice.  If it stays, it is found again at the next start."""
    log.warning("%s is there twice; the one on %s is removed", replica.block, replica.volume)
    try:
        steps.unlink(replica)
    except OSError as error:
        log.warning("%s could not be removed: %s", replica, error)
