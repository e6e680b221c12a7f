"""The satisfier: replicas are brought to the storage types that the policies of their files name.

It is part of the redundancy duty, since whoever has that gives commands to DataNodes.  First it
works off POLICY_SCANS, a page of a directory at a time (`satisfying`), then PLACEMENTS: it asks
`plan_moves` what to do about each block, and has DataNodes move replicas.  Of a move to another
DataNode, the old replica is one too many once the new one is reported, and is deleted as any.

Moves under way are known here only.  When another NameNode takes over it may order one twice; the
DataNode finds that the replica is there already.  What is to be done is in rows.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

from cairnfs.blocks.placing import Placement, PlacementQueue
from cairnfs.blocks.records import BlockId, BlockState, StorageNumber
from cairnfs.blocks.relocation import Move, plan_moves
from cairnfs.namenode.datanodes import DataNodes, Transfer
from cairnfs.namenode.redundancy import Redundancy
from cairnfs.namenode.safe_mode import SafeMode
from cairnfs.namesystem.redundancy import BlockFacts, inspect_blocks
from cairnfs.namesystem.satisfying import scan_subtree, settle_placed
from cairnfs.store.base import Reading, Row, Scan, Store
from cairnfs.store.schema import NUMBER, Table
from cairnfs.transaction.calls import Call
from cairnfs.transaction.records import decode
from cairnfs.transaction.runner import Runner, run

log = logging.getLogger(__name__)

SCANS_AT_ONCE = 8  # pages of directories looked at in one step
BLOCKS_PAGE = 100  # blocks looked at in one step
MOVES_PER_NODE_MAX = 16  # under way, from or to a DataNode
MOVE_LIMIT_S = 120.0  # what is not there by then is ordered again
RETRY_S = 30.0  # how often it is tried again what found no place


class PendingMoves(msgspec.Struct, frozen=True, gc=False):
    """Moves of a block's replicas that were ordered."""

    moves: tuple[Move, ...]
    ordered_s: float


class Satisfier:
    """See the module's text.  `step` is part of a duty."""

    def __init__(
        self,
        runner: Runner,
        store: Store,
        datanodes: DataNodes,
        redundancy: Redundancy,
        safe_mode: SafeMode,
    ) -> None:
        self._runner = runner
        self._store = store
        self._datanodes = datanodes
        self._redundancy = redundancy
        self._safe_mode = safe_mode
        self._pending: dict[BlockId, PendingMoves] = {}
        self._after = dict.fromkeys(PlacementQueue, b"")  # where the next page begins
        self._retried_s = 0.0
        self._retried_at = -1  # the state of the cluster in which those without a place were tried

    @property
    def moves_pending(self) -> int:
        """Replicas that are on their way."""
        return sum(len(pending.moves) for pending in self._pending.values())

    async def step(self) -> int:
        """Some of it; more than 0 if there is more to do at once."""
        if self._safe_mode.is_on:
            return 0
        scanned = await self._scan_subtrees()
        if self._pending:
            await self._look_at(list(self._pending))
        placed = await self._take_page(PlacementQueue.TO_DO)
        retried = await self._retry()
        return scanned + placed + retried

    def forget(self) -> None:
        """It is for another NameNode to give commands."""
        self._pending.clear()

    async def _scan_subtrees(self) -> int:
        rows = await self._read(Scan(Table.POLICY_SCANS, 0, b"", SCANS_AT_ONCE))
        for row in rows:
            await run(self._runner, Call(scan_subtree, NUMBER.unpack(row.key[2])))
        return len(rows)

    async def _take_page(self, queue: PlacementQueue) -> int:
        """Look at a page of blocks; more than 0 if there are others, and some were dealt with."""
        rows = await self._read(Scan(Table.PLACEMENTS, queue, self._after[queue], BLOCKS_PAGE))
        self._after[queue] = rows[-1].key[2] if len(rows) == BLOCKS_PAGE else b""
        placements: list[Placement] = [decode(Table.PLACEMENTS, row.data) for row in rows]
        done = await self._look_at(
            [each.block_id for each in placements if each.block_id not in self._pending]
        )
        return done if self._after[queue] or queue is PlacementQueue.TO_DO else 0

    async def _retry(self) -> int:
        """Blocks that found no place: now and then, and when DataNodes have come or gone."""
        queue, now_s = PlacementQueue.UNSATISFIED, self._datanodes.now_s()
        is_due = now_s - self._retried_s >= RETRY_S or self._retried_at != self._datanodes.changes
        if not self._after[queue] and not is_due:
            return 0
        if not self._after[queue]:
            self._retried_s, self._retried_at = now_s, self._datanodes.changes
        await self._take_page(queue)
        return 1 if self._after[queue] else 0

    # Blocks.

    async def _look_at(self, block_ids: Sequence[BlockId]) -> int:
        """Move what has to be moved; how many blocks were settled or set going."""
        if not block_ids:
            return 0
        found = await run(self._runner, Call(inspect_blocks, (list(block_ids),)))
        done: list[Placement] = []
        unsatisfied: list[tuple[Placement, str]] = []
        count = 0
        for block_id, facts in zip(block_ids, found, strict=True):
            if facts is None or facts.placement is None:
                self._pending.pop(block_id, None)
                if facts is None:
                    done += await self._find(block_id)
            elif not self._is_under_way(facts):
                count += self._plan(facts, done, unsatisfied)
        if done or unsatisfied:
            await run(self._runner, Call(settle_placed, (done, unsatisfied)))
        return count + len(done)

    def _plan(
        self,
        facts: BlockFacts,
        done: list[Placement],
        unsatisfied: list[tuple[Placement, str]],
    ) -> int:
        """Decide about one block; 1 if moves of it were ordered."""
        assert facts.placement is not None
        if facts.block.state is not BlockState.COMPLETE:
            return 0
        view = self._redundancy.view_of(facts)
        plan = plan_moves(view, self._datanodes.cluster, self._datanodes.random, self._busy())
        if plan.moves:
            self._order(facts, plan.moves)
            return 1
        if plan.note:
            unsatisfied.append((facts.placement, plan.note))
        elif not plan.has_to_wait:
            done.append(facts.placement)
        return 0

    async def _find(self, block_id: BlockId) -> list[Placement]:
        """The rows of a block that is gone."""
        ids = (int(Table.PLACEMENTS), int(block_id))
        rows = (await self._store.read(Reading(ids=[ids]))).ids.get(ids, [])
        return [decode(Table.PLACEMENTS, row.data) for row in rows]

    # Moves.

    def _is_under_way(self, facts: BlockFacts) -> bool:
        """Whether a move of the block was ordered, has not arrived, and may still do so."""
        pending = self._pending.get(facts.block.id)
        if pending is None:
            return False
        held = self._kept_at(storage for storage, _ in facts.replicas)
        missing = [
            move
            for move in pending.moves
            if _place(move) not in held and self._is_at_it(move, pending)
        ]
        is_late = self._datanodes.now_s() - pending.ordered_s > MOVE_LIMIT_S
        if missing and not is_late:
            return True
        del self._pending[facts.block.id]
        return False

    def _kept_at(self, storages: Iterable[StorageNumber]) -> set[tuple[str, int]]:
        """DataNodes and types: a DataNode may have taken another volume of the same type."""
        return {
            (located.uuid, int(located.storage.type))
            for located in self._datanodes.locate_in_order(storages)
        }

    def _is_at_it(self, move: Move, pending: PendingMoves) -> bool:
        """Whether both DataNodes are alive, and were not restarted since it was ordered."""
        for uuid in (move.source.uuid, move.target.node.uuid):
            node = self._datanodes.get(uuid)
            if (
                node is None
                or not self._datanodes.is_alive(node)
                or node.registered_s > pending.ordered_s
            ):
                return False
        return True

    def _busy(self) -> set[str]:
        """DataNodes that have as many moves as they may have."""
        counts = Counter(
            uuid
            for pending in self._pending.values()
            for move in pending.moves
            for uuid in {move.source.uuid, move.target.node.uuid}
        )
        return {uuid for uuid, count in counts.items() if count >= MOVES_PER_NODE_MAX}

    def _order(self, facts: BlockFacts, moves: Sequence[Move]) -> None:
        ordered = []
        for move in moves:
            node = self._datanodes.get(move.source.uuid)
            numbers = self._datanodes.numbers([move.target])
            if node is None or not numbers:
                continue
            targets = tuple(self._datanodes.locate_in_order(numbers))
            self._datanodes.order_move(node, Transfer(facts.block, targets))
            ordered.append(move)
            log.debug(
                "%s is moved from %s of %s to %s of %s",
                facts.block,
                move.source.storage.type.name,
                move.source.node.address,
                move.target.storage.type.name,
                move.target.node.address,
            )
        if ordered:
            now_s = self._datanodes.now_s()
            self._pending[facts.block.id] = PendingMoves(tuple(ordered), now_s)

    async def _read(self, scan: Scan) -> list[Row]:
        return (await self._store.read(Reading(scans=[scan]))).scans[scan]


def _place(move: Move) -> tuple[str, int]:
    return move.target.node.uuid, int(move.target.storage.type)
