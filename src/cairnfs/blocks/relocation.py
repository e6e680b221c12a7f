"""Which replicas of a block have to go where, so that they are on the types that its policy names.

A plan is a value, as in `replication`.  A replica goes to another volume of its own DataNode if
there is one, which costs no network and changes no rack; else to another DataNode, by the rules
of placement.  Fallbacks are for new replicas: what has one stays there until there is room where
it belongs.

Invariant: whichever moves of a plan are carried out, the block has as many replicas as before, on
different nodes, on no fewer racks than it needs or had; and each brings one to a type that lacks.
Nobody takes part that was not heard of lately: the move would be waited for in vain.
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
    choose_source,
    is_readable,
    keeps_racks,
    plan_block,
)
from cairnfs.blocks.topology import ClusterView, DataNodeView

SILENT_NAMED_MAX = 3  # DataNodes that a note names


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
    note: str = ""  # nobody can take what is left, or make what is missing
    has_to_wait: bool = False  # it is the block's turn later; with a note, perhaps much later


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
        # A NameNode that has just begun has not heard of all DataNodes: theirs may be misplaced.
        is_lost = any(replica.state is ReplicaState.LOST for replica in block.replicas)
        return _wait_for_copies(block, cluster, random) if is_lost else SATISFIED
    if choose_priority(block, cluster) is not None:
        return _wait_for_copies(block, cluster, random)
    if block.awaited or choose_deletions(block):
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
    if count and (silent := search.silent(left)):
        note += f"; not heard of lately: {silent}"
    return MovePlan(misplaced, tuple(search.moves), note)


def _wait_for_copies(block: BlockView, cluster: ClusterView, random: Random) -> MovePlan:
    """Replicas that are missing come first; the note says why they cannot be made, if so."""
    priority = choose_priority(block, cluster)
    if priority is None or block.awaited:
        return WAITING
    if choose_source(block, priority, random) is None:
        if any(is_readable(replica) for replica in block.replicas):
            return WAITING  # their nodes are busy
        return MovePlan(note="no replica can be read now", has_to_wait=True)
    plan = plan_block(block, cluster, random)
    if not plan.is_empty:
        return WAITING
    return MovePlan(note="replicas are missing, and find no place either", has_to_wait=True)


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
        self._silent = {node.uuid for node in cluster.nodes if node.is_stale}
        self._excluded = self._silent | block.deleting
        self._excluded |= {each.uuid for each in block.replicas if each.state is not _LOST}
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
            if candidate.node.is_stale:
                continue
            if candidate.uuid in self._busy:
                self.met_busy = True
            else:
                yield candidate

    def _take(self, move: Move) -> None:
        self.moves.append(move)
        self._movable.remove(move.source)
        self._excess[move.source.storage.type] -= 1

    def _choose_node(self, type: StorageType, source: ReplicaView) -> Target | None:
        block, others = self._block, [each for each in self._live if each is not source]
        placement = choose_targets(
            self._cluster,
            1,
            policy=_only(type),
            block_size_bytes=block.length_bytes,
            random=self._random,
            writer=source.node,
            existing=[Target(each.node, each.storage) for each in others],
            excluded=self._excluded | self._busy,
            is_new_block=False,
        )
        for target in placement.targets:
            if keeps_racks(block, self._cluster, source, target.node):
                return target
        self.met_busy |= not self._busy <= self._excluded
        return None

    def silent(self, types: Sequence[StorageType]) -> str:
        """The DataNodes that could have taken or given something, had they been heard of."""
        givers = {each.uuid for each in self._movable if self._excess[each.storage.type] > 0}
        holders = {each.uuid for each in self._live}

        def could(node: DataNodeView) -> bool:
            if node.uuid in holders:
                return node.uuid in givers
            return node.is_in_service and any(
                choose_storage(node, type, self._block.length_bytes) is not None for type in types
            )

        silent = (node for node in self._cluster.nodes if node.uuid in self._silent)
        names = sorted(node.address for node in silent if could(node))
        more = ", ..." if len(names) > SILENT_NAMED_MAX else ""
        return ", ".join(names[:SILENT_NAMED_MAX]) + more


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


_LOST = ReplicaState.LOST


def _only(type: StorageType) -> StoragePolicy:
    return StoragePolicy(0, type.name, (type,), (), ())
