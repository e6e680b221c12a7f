"""Replicas that are on their way from one place to another, whoever wanted it.

The satisfier and the balancer share them, so that together they ask no more of a DataNode than it
should have, and never move one block twice at a time.  They are known here only: when another
NameNode takes over it may order a move twice, and the DataNode finds the replica there already.
What is to be done is in rows.
"""

from __future__ import annotations

import enum
import logging
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import msgspec

from cairnfs.blocks.records import Block, BlockId, StorageNumber
from cairnfs.blocks.relocation import Move
from cairnfs.namenode.datanodes import DataNodes, Transfer
from cairnfs.namenode.redundancy import Redundancy
from cairnfs.namenode.safe_mode import SafeMode
from cairnfs.namesystem.redundancy import BlockFacts
from cairnfs.store.base import Store
from cairnfs.transaction.runner import Runner

log = logging.getLogger(__name__)

MOVES_PER_NODE_MAX = 32  # under way, from or to a DataNode
BLOCKS_PAGE = 200  # blocks whose moves are looked after by one transaction
MOVE_LIMIT_S = 120.0  # what is not there by then is given up, unless others arrive meanwhile


class Mover(enum.Enum):
    """Who has ordered a move."""

    SATISFIER = enum.auto()
    BALANCER = enum.auto()


class Outcome(enum.Enum):
    """What has become of the moves of a block."""

    NONE = enum.auto()  # none was ordered
    UNDER_WAY = enum.auto()
    ARRIVED = enum.auto()
    GIVEN_UP = enum.auto()


class PendingMoves(msgspec.Struct, frozen=True, gc=False):
    """Moves of a block's replicas that were ordered."""

    mover: Mover
    moves: tuple[Move, ...]
    ordered_s: float


class Moves:
    """Those under way."""

    def __init__(self, datanodes: DataNodes) -> None:
        self._datanodes = datanodes
        self._pending: dict[BlockId, PendingMoves] = {}
        self._of_node: Counter[str] = Counter()  # moves that a DataNode takes part in
        self._arrived_s: dict[str, float] = {}  # when a DataNode last got a replica

    def __len__(self) -> int:
        return sum(len(pending.moves) for pending in self._pending.values())

    def __contains__(self, block_id: BlockId) -> bool:
        return block_id in self._pending

    def of(self, mover: Mover) -> list[list[BlockId]]:
        """The blocks that are moved for one of them, in pages."""
        ids = [id for id, pending in self._pending.items() if pending.mover is mover]
        return [ids[at : at + BLOCKS_PAGE] for at in range(0, len(ids), BLOCKS_PAGE)]

    def forget(self, block_id: BlockId) -> None:
        """The block is gone, or nobody cares any more."""
        pending = self._pending.pop(block_id, None)
        if pending is not None:
            self._of_node.subtract(_nodes_of(pending.moves))

    def forget_all(self) -> None:
        """It is for another NameNode to give commands."""
        self._pending.clear()
        self._of_node.clear()
        self._arrived_s.clear()

    def free(self, uuid: str) -> int:
        """How many moves more a DataNode may take part in."""
        return MOVES_PER_NODE_MAX - self._of_node[uuid]

    def busy(self) -> set[str]:
        """DataNodes that have as many moves as they may have."""
        return {uuid for uuid, count in self._of_node.items() if count >= MOVES_PER_NODE_MAX}

    def order(self, mover: Mover, block: Block, moves: Sequence[Move]) -> bool:
        """Have DataNodes move replicas of a block; False if none can be told to."""
        ordered = []
        for move in moves:
            node = self._datanodes.get(move.source.uuid)
            numbers = self._datanodes.numbers([move.target])
            if node is None or not numbers:
                continue
            targets = tuple(self._datanodes.locate_in_order(numbers))
            self._datanodes.order_move(node, Transfer(block, targets))
            ordered.append(move)
            log.debug(
                "%s is moved from %s of %s to %s of %s",
                block,
                move.source.storage.type.name,
                move.source.node.address,
                move.target.storage.type.name,
                move.target.node.address,
            )
        if ordered:
            self.forget(block.id)
            now_s = self._datanodes.now_s()
            self._pending[block.id] = PendingMoves(mover, tuple(ordered), now_s)
            self._of_node.update(_nodes_of(ordered))
        return bool(ordered)

    def settle(self, facts: BlockFacts) -> Outcome:
        """Whether the moves of a block are still under way; if not, they are forgotten."""
        pending = self._pending.get(facts.block.id)
        if pending is None:
            return Outcome.NONE
        good = (each for each, replica in facts.replicas if replica.is_good_for(facts.block))
        held = self._kept_at(good)
        missing = [move for move in pending.moves if _place(move) not in held]
        for move in pending.moves:
            if move not in missing:
                self._arrived_s[move.target.node.uuid] = self._datanodes.now_s()
        holders = {uuid for uuid, _ in held}
        if any(move.source.uuid in holders and self._is_at_it(move, pending) for move in missing):
            return Outcome.UNDER_WAY
        self.forget(facts.block.id)
        return Outcome.GIVEN_UP if missing else Outcome.ARRIVED

    def _kept_at(self, storages: Iterable[StorageNumber]) -> set[tuple[str, int]]:
        """DataNodes and types: a DataNode may have taken another volume of the same type."""
        return {
            (located.uuid, int(located.storage.type))
            for located in self._datanodes.locate_in_order(storages)
        }

    def _is_at_it(self, move: Move, pending: PendingMoves) -> bool:
        """Whether both DataNodes are heard of, were not restarted since, and it is not late."""
        for uuid in (move.source.uuid, move.target.node.uuid):
            node = self._datanodes.get(uuid)
            if (
                node is None
                or not self._datanodes.is_alive(node)
                or self._datanodes.is_stale(node)
                or node.registered_s > pending.ordered_s
            ):
                return False
        # Many at a low rate take their time; then one of them arrives now and then.
        last_s = max(pending.ordered_s, self._arrived_s.get(move.target.node.uuid, 0.0))
        return self._datanodes.now_s() - last_s <= MOVE_LIMIT_S


@dataclass(eq=False)
class MovingDuty:
    """Whoever has replicas moved, and what that takes of a NameNode."""

    _runner: Runner
    _store: Store
    _datanodes: DataNodes
    _redundancy: Redundancy
    _safe_mode: SafeMode
    _moves: Moves


def _nodes_of(moves: Iterable[Move]) -> list[str]:
    """The DataNodes of some moves: one for each within a node, else both."""
    return [uuid for move in moves for uuid in {move.source.uuid, move.target.node.uuid}]


def _place(move: Move) -> tuple[str, int]:
    return move.target.node.uuid, int(move.target.storage.type)
