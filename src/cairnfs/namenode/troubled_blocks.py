"""How many blocks are not as they should be, and how many replicas are to be deleted.

The first is known to the NameNode that has the redundancy duty, the other to none: these are
counted, as rows, and rarely.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from cairnfs.blocks.records import CheckQueue
from cairnfs.namenode.rationed import Rationed
from cairnfs.namenode.redundancy import Redundancy
from cairnfs.store.base import Store
from cairnfs.store.schema import Table

LOW_REDUNDANCY = (
    CheckQueue.HIGHEST,
    CheckQueue.VERY_LOW_REDUNDANCY,
    CheckQueue.LOW_REDUNDANCY,
)


class BlockFigures(NamedTuple):
    """As Hadoop's clients are told."""

    missing: int  # no good replica is known
    highest_priority: int
    low_redundancy: int  # the former among them
    badly_distributed: int
    pending_deletion: int  # replicas


class TroubledBlocks:
    """See the module's text."""

    def __init__(self, store: Store, redundancy: Redundancy, is_ours: Callable[[], bool]) -> None:
        """`is_ours` tells whether we have the duty now."""
        self._redundancy = redundancy
        self._is_ours = is_ours
        self._counted = Rationed(redundancy.count_waiting, None)
        self._to_delete = Rationed(lambda: store.count_rows(Table.INVALIDATIONS), 0)

    async def queues(self) -> Mapping[CheckQueue, int]:
        """Blocks that wait for help, by what they lack."""
        if not self._is_ours():
            await self._counted.get()
        return self._redundancy.lengths

    async def figures(self) -> BlockFigures:
        queues = await self.queues()
        return BlockFigures(
            missing=queues[CheckQueue.CORRUPT],
            highest_priority=queues[CheckQueue.HIGHEST],
            low_redundancy=sum(queues[queue] for queue in LOW_REDUNDANCY),
            badly_distributed=queues[CheckQueue.BADLY_DISTRIBUTED],
            pending_deletion=await self._to_delete.get(),
        )
