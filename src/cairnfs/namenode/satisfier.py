"""The satisfier: replicas are brought to the storage types that the policies of their files name.

It is part of the redundancy duty, since whoever has that gives commands to DataNodes.  First it
works off POLICY_SCANS, a page of a directory at a time (`satisfying`), then PLACEMENTS: it asks
`plan_moves` what to do about each block, and has DataNodes move replicas.  Of a move to another
DataNode, the old replica is one too many once the new one is reported, and is deleted as any.

What is to be done is in rows; which moves are under way, only `moves` knows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from cairnfs.blocks.placing import Placement, PlacementQueue
from cairnfs.blocks.records import BlockId, BlockState
from cairnfs.blocks.relocation import plan_moves
from cairnfs.namenode.moves import Mover, MovingDuty, Outcome
from cairnfs.namesystem.redundancy import BlockFacts, inspect_blocks
from cairnfs.namesystem.satisfying import scan_subtree, settle_placed
from cairnfs.store.base import Reading, Row, Scan
from cairnfs.store.schema import NUMBER, Table
from cairnfs.transaction.calls import Call
from cairnfs.transaction.records import decode
from cairnfs.transaction.runner import run

SCANS_AT_ONCE = 8  # pages of directories looked at in one step
BLOCKS_PAGE = 100  # blocks looked at in one step
RETRY_S = 30.0  # how often it is tried again what found no place
RETRY_FEW_S = 3.0  # the same if it is no more than a page: files are changed and deleted


@dataclass(eq=False)
class Satisfier(MovingDuty):
    """See the module's text.  `step` is part of a duty."""

    # Where the next page begins.
    _after: dict[PlacementQueue, bytes] = field(
        default_factory=lambda: dict.fromkeys(PlacementQueue, b"")
    )
    _retried_s: float = 0.0
    _retried_at: int = -1  # the state of the cluster in which those without a place were tried
    _are_few: bool = True  # those without a place

    async def step(self) -> int:
        """Some of it; more than 0 if there is more to do at once."""
        if self._safe_mode.is_on:
            return 0
        scanned = await self._scan_subtrees()
        for page in self._moves.of(Mover.SATISFIER):
            await self._look_at(page)
        placed = await self._take_page(PlacementQueue.TO_DO)
        retried = await self._retry()
        return scanned + placed + retried

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
            [each.block_id for each in placements if each.block_id not in self._moves]
        )
        return done if self._after[queue] or queue is PlacementQueue.TO_DO else 0

    async def _retry(self) -> int:
        """Blocks that found no place: now and then, and when DataNodes have come or gone."""
        queue, now_s = PlacementQueue.UNSATISFIED, self._datanodes.now_s()
        rest_s = RETRY_FEW_S if self._are_few else RETRY_S
        is_due = now_s - self._retried_s >= rest_s or self._retried_at != self._datanodes.changes
        is_first = not self._after[queue]
        if is_first and not is_due:
            return 0
        if is_first:
            self._retried_s, self._retried_at = now_s, self._datanodes.changes
        await self._take_page(queue)
        self._are_few = is_first and not self._after[queue]
        return 1 if self._after[queue] else 0

    # Blocks.

    async def _look_at(self, block_ids: Sequence[BlockId]) -> int:
        """Move what has to be moved; how many blocks were settled or set going."""
        if not block_ids:
            return 0
        found = await run(self._runner, Call(inspect_blocks, (list(block_ids),)))
        done: list[Placement] = []
        unsatisfied: list[tuple[Placement, str]] = []
        going_on: list[Placement] = []
        count = 0
        for block_id, facts in zip(block_ids, found, strict=True):
            if facts is None or facts.placement is None:
                self._moves.forget(block_id)
                if facts is None:
                    done += await self._find(block_id)
            elif self._moves.settle(facts) is not Outcome.UNDER_WAY:
                count += self._plan(facts, done, unsatisfied, going_on)
        if done or unsatisfied or going_on:
            await run(self._runner, Call(settle_placed, (done, unsatisfied, going_on)))
        return count + len(done)

    def _plan(
        self,
        facts: BlockFacts,
        done: list[Placement],
        unsatisfied: list[tuple[Placement, str]],
        going_on: list[Placement],
    ) -> int:
        """Decide about one block; 1 if moves of it were ordered."""
        assert facts.placement is not None
        if facts.policy_id is None:  # only snapshots have it any more
            done.append(facts.placement)
            return 0
        if facts.block.state is not BlockState.COMPLETE:
            return 0
        view = self._redundancy.view_of(facts)
        plan = plan_moves(view, self._datanodes.cluster, self._datanodes.random, self._moves.busy())
        if plan.moves:
            is_settled = False
        elif plan.has_to_wait:
            is_settled = bool(plan.note) and not self._may_change(facts)
        else:
            is_settled = True
        if is_settled and plan.note:
            unsatisfied.append((facts.placement, plan.note))
        elif is_settled:
            done.append(facts.placement)
        elif facts.placement.note:  # it was unsatisfied, and is so no more
            going_on.append(facts.placement)
        return int(bool(plan.moves) and self._moves.order(Mover.SATISFIER, facts.block, plan.moves))

    def _may_change(self, facts: BlockFacts) -> bool:
        """Whether news of a block are not acted on yet, or a replica is expected back.

        The latter when we have just begun, and have not heard of all DataNodes.
        """
        return facts.news is not None or any(
            not self._datanodes.is_alive(found[0]) and not self._datanodes.is_given_up(storage)
            for storage, _ in facts.replicas
            if (found := self._datanodes.storage(storage)) is not None
        )

    async def _find(self, block_id: BlockId) -> list[Placement]:
        """The rows of a block that is gone.

        One whose file was deleted is not gone before that is reclaimed: a clone or what was rolled
        back may still show it.
        """
        placements = (int(Table.PLACEMENTS), int(block_id))
        blocks = (int(Table.BLOCKS), int(block_id))
        found = (await self._store.read(Reading(ids=[placements, blocks]))).ids
        if found.get(blocks):
            return []
        return [decode(Table.PLACEMENTS, row.data) for row in found.get(placements, [])]

    async def _read(self, scan: Scan) -> list[Row]:
        return (await self._store.read(Reading(scans=[scan]))).scans[scan]
