"""Which replicas of a block have to go where, so that they are on the types that its policy names.

A plan is a value, as in `replication`.  A replica goes to another volume of its own DataNode if
there is one, which costs no network and changes no rack; else to another DataNode, by the rules
of placement.  Fallbacks are for new replicas: what has one stays there until there is room where
it belongs.

Invariant: whichever moves of a plan are carried out, the block has as many replicas as before, on
different nodes, on no fewer racks than it needs or had; and each brings one to a type that lacks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from random import Random

import msgspec

from cairnfs.blocks.placement import Target, choose_storage, choose_targets
from cairnfs.blocks.policies import StoragePolicy, choose_excess_types, choose_storage_types
from cairnfs.blocks.records import BlockState, StorageType
from cairnfs.blocks.replication import (
    BlockView,
    ReplicaState,
    ReplicaView,
    choose_deletions,
    choose_priority,
    keeps_racks,
)
from cairnfs.blocks.topology import ClusterView


class Move(msgspec.Struct, frozen=True, gc=False):
    """A replica goes to another volume, of the same node or another one."""

    source: ReplicaView
    target: Target

    @property
    def is_local(self) -> bool:
        return self.source.uuid == self.target.node.uuid


class MovePlan(msgspec.Struct, frozen=True, gc=False):
    """What to move now; `misplaced` replicas there are in all, and why not all of them move."""

    misplaced: int = 0
    moves: tuple[Move, ...] = ()
    note: str = ""  # nobody can take what is left
    has_to_wait: bool = False  # nothing is wrong: it is the block's turn later


SATISFIED = MovePlan()
WAITING = MovePlan(has_to_wait=True)


def plan_moves(
    block: BlockView, cluster: ClusterView, random: Random, busy: Collection[str] = ()
) -> MovePlan:
    """What to move of a block; nodes that are `busy` take no part for now.

    A block that is being written, or has too few or too many replicas, has to wait: that comes
    first, and goes by the policy as well.
    """
    if block.state is not BlockState.COMPLETE:
        return WAITING
    block = _on_wanted_types(block).one_per_node()
    live = [replica for replica in block.replicas if replica.state is ReplicaState.LIVE]
    types = [replica.storage.type for replica in live]
    lacking = choose_storage_types(block.policy, block.replication, types, is_new_block=False)
    excess = Counter(choose_excess_types(block.policy, block.replication, types))
    misplaced = min(len(lacking), excess.total())
    if not misplaced:
        return SATISFIED
    if block.awaited or choose_priority(block, cluster) is not None or choose_deletions(block):
        return WAITING
    search = _Search(block, cluster, random, frozenset(busy), live, excess)
    left = [type for type in lacking if not search.move_within_node(type)]
    # One at a time: which racks are left with depends on which of several has arrived.
    arrived = next((type for type in left if search.move_to_node(type)), None)
    if arrived is not None or search.met_busy:
        return MovePlan(misplaced, tuple(search.moves), has_to_wait=len(search.moves) < misplaced)
    count = misplaced - len(search.moves)
    names = ", ".join(dict.fromkeys(type.name for type in left))
    note = f"{count} of {len(live)} replicas find no place on {names}" if count else ""
    return MovePlan(misplaced, tuple(search.moves), note)


class _Search:
    """Moves that were chosen, and the replicas that may still go."""

    def __init__(
        self,
        block: BlockView,
        cluster: ClusterView,
        random: Random,
        busy: frozenset[str],
        live: Sequence[ReplicaView],
        excess: Counter[StorageType],
    ) -> None:
        self._block = block
        self._cluster = cluster
        self._random = random
        self._busy = busy
        self._live = live
        self._movable = list(live)
        self._excess = excess  # types of which there are so many too many
        self.moves: list[Move] = []
        self.met_busy = False

    def move_within_node(self, type: StorageType) -> bool:
        for source in self._candidates():
            storage = choose_storage(source.node, type, self._block.length_bytes)
            if storage is not None:
                self._take(Move(source, Target(source.node, storage)))
                return True
        return False

    def move_to_node(self, type: StorageType) -> bool:
        for source in self._candidates():
            target = self._choose_node(type, source)
            if target is not None:
                self._take(Move(source, target))
                return True
        return False

    def _candidates(self) -> Iterator[ReplicaView]:
        """Replicas of a type of which there is one too many; in any order."""
        candidates = [each for each in self._movable if self._excess[each.storage.type] > 0]
        self._random.shuffle(candidates)
        for candidate in candidates:
            if candidate.uuid in self._busy:
                self.met_busy = True
            elif not candidate.node.is_stale:
                yield candidate

    def _take(self, move: Move) -> None:
        self.moves.append(move)
        self._movable.remove(move.source)
        self._excess[move.source.storage.type] -= 1

    def _choose_node(self, type: StorageType, source: ReplicaView) -> Target | None:
        block, others = self._block, [each for each in self._live if each is not source]
        holders = {each.uuid for each in block.replicas if each.state is not ReplicaState.LOST}
        excluded = holders | block.deleting
        placement = choose_targets(
            self._cluster,
            1,
            policy=_only(type),
            block_size_bytes=block.length_bytes,
            random=self._random,
            writer=source.node,
            existing=[Target(each.node, each.storage) for each in others],
            excluded=excluded | self._busy,
            is_new_block=False,
        )
        for target in placement.targets:
            if keeps_racks(block, self._cluster, source, target.node):
                return target
        self.met_busy |= not self._busy <= excluded
        return None


def _on_wanted_types(block: BlockView) -> BlockView:
    """Of a node that has reported a block on two volumes, the replica that was moved counts."""
    wanted = set(choose_storage_types(block.policy, block.replication, is_new_block=False))
    fitting = {
        each.uuid
        for each in block.replicas
        if each.storage.type in wanted and each.state is ReplicaState.LIVE
    }
    replicas = tuple(
        each for each in block.replicas if each.storage.type in wanted or each.uuid not in fitting
    )
    return msgspec.structs.replace(block, replicas=replicas)


def _only(type: StorageType) -> StoragePolicy:
    return StoragePolicy(0, type.name, (type,), (), ())
