"""Has DataNodes recover the blocks that wait for it: RECOVERIES says which.

This belongs to the redundancy duty, whose owner is the NameNode that gives commands.  An
attempt that was begun is known to that NameNode only.  One whose primary dies, or is not heard
of in time, is followed by another with another primary; so is one that a NameNode before us had
begun, as soon as the duty is ours.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field

from cairnfs.blocks.records import Block, BlockId, StorageNumber
from cairnfs.namenode.datanodes import DataNodes, LiveDataNode
from cairnfs.namenode.safe_mode import SafeMode
from cairnfs.namesystem.block_recovery import Attempt, Participants, begin_attempt
from cairnfs.store.base import Reading, Scan, Store
from cairnfs.store.schema import NUMBER, Table
from cairnfs.transaction.calls import Call
from cairnfs.transaction.runner import Runner, run

log = logging.getLogger(__name__)

PAGE = 100  # blocks looked at in one step
ATTEMPT_LIMIT_S = 10.0  # for a primary to answer; twice as long each time, up to
ATTEMPT_LIMIT_MAX_S = 80.0
ORDERS_MAX = 50  # blocks that a DataNode is told to recover in one heartbeat


@dataclass(slots=True)
class _Tries:
    """What was tried with one block."""

    primary: str
    began_s: float
    limit_s: float
    by: list[str] = field(default_factory=list)  # all primaries so far, by uuid


class BlockRecoveries:
    """See the module's text.  `step` is for the duty, `take` for heartbeats."""

    def __init__(
        self, runner: Runner, store: Store, datanodes: DataNodes, safe_mode: SafeMode
    ) -> None:
        self._runner = runner
        self._store = store
        self._datanodes = datanodes
        self._safe_mode = safe_mode
        self._tries: dict[BlockId, _Tries] = {}
        self._orders: dict[str, list[Attempt]] = {}  # by the uuid of the primary
        self._after = b""
        self._seen: set[BlockId] = set()  # in this round

    async def step(self) -> int:
        """Begin what attempts are due; more than 0 if there are more blocks to look at."""
        if self._safe_mode.is_on:
            return 0
        scan = Scan(Table.RECOVERIES, 0, self._after, PAGE)
        rows = (await self._store.read(Reading(scans=[scan]))).scans[scan]
        for row in rows:
            block_id = BlockId(NUMBER.unpack(row.key[2])[0])
            self._seen.add(block_id)
            if not self._is_under_way(block_id):
                await self._attempt(block_id)
        if len(rows) == PAGE:
            self._after = rows[-1].key[2]
            return len(rows)
        for block_id in self._tries.keys() - self._seen:  # done
            del self._tries[block_id]
        self._after = b""
        self._seen.clear()
        return 0

    def take(self, node: LiveDataNode) -> list[Attempt]:
        """What a DataNode is to be told now."""
        orders = self._orders.pop(node.record.uuid, [])
        if orders[ORDERS_MAX:]:
            self._orders[node.record.uuid] = orders[ORDERS_MAX:]
        return orders[:ORDERS_MAX]

    def forget(self) -> None:
        """It is not for us to give commands any more."""
        self._tries.clear()
        self._orders.clear()

    def _is_under_way(self, block_id: BlockId) -> bool:
        tries = self._tries.get(block_id)
        if tries is None:
            return False
        node = self._datanodes.get(tries.primary)
        return (
            node is not None
            and self._is_fresh(node)
            and node.registered_s <= tries.began_s
            and self._datanodes.now_s() - tries.began_s < tries.limit_s
        )

    async def _attempt(self, block_id: BlockId) -> None:
        def choose(block: Block) -> Participants | None:
            return self._choose(block)

        attempt: Attempt | None = await run(self._runner, Call(begin_attempt, (block_id, choose)))
        if attempt is None:
            return
        found = self._datanodes.storage(attempt.participants.primary)
        if found is None:  # it has gone meanwhile
            return
        uuid = found[0].record.uuid
        before = self._tries.get(block_id)
        limit_s = ATTEMPT_LIMIT_S if before is None else before.limit_s * 2
        self._tries[block_id] = _Tries(
            uuid,
            self._datanodes.now_s(),
            min(limit_s, ATTEMPT_LIMIT_MAX_S),
            [*(before.by if before is not None else ()), uuid],
        )
        self._orders.setdefault(uuid, []).append(attempt)
        log.info(
            "%s is recovered by %s as generation %d",
            attempt.block,
            found[0].record.transfer_address,
            attempt.stamp,
        )

    def _choose(self, block: Block) -> Participants | None:
        """Those that answer; first of all one that has not tried yet."""
        storages: dict[StorageNumber, LiveDataNode] = {}
        silent = 0
        for number in block.targets:
            found = self._datanodes.storage(number)
            if found is None:
                silent += 1  # it has come since, and another NameNode knows it
            elif self._is_fresh(found[0]):
                storages[number] = found[0]
            elif not self._datanodes.is_silent(found[0]):
                silent += 1
        if not storages:
            return None
        tries = self._tries.get(block.id)
        by = tries.by if tries is not None else []
        primary = min(
            storages,
            key=lambda each: (by.count(storages[each].record.uuid), -storages[each].heard_s),
        )
        return Participants(primary, tuple(storages), are_all=not silent)

    def _is_fresh(self, node: LiveDataNode) -> bool:
        return self._datanodes.is_alive(node) and not self._datanodes.is_stale(node)
