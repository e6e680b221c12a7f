"""Choosing DataNodes for replicas: HDFS's default policy, as a function of values.

The first replica goes to the writer's node, the second to another rack, the
third to the rack of the second, the others anywhere, but not too many to a rack.
So the loss of a node or a rack never takes the last replica, and a pipeline
crosses racks only once (BlockPlacementPolicyDefault).

Invariant: no node is chosen twice, nor one that is excluded, leaving or full.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from math import inf
from random import Random

import msgspec

from cairnfs.blocks.policies import StoragePolicy, choose_storage_types
from cairnfs.blocks.records import AdminState, StorageType
from cairnfs.blocks.topology import (
    ClusterView,
    DataNodeView,
    Place,
    StorageState,
    StorageView,
    distance,
)

EXPLAINED_MAX = 10  # refused nodes that a log line names

_NOWHERE = range(0)


class Target(msgspec.Struct, frozen=True, gc=False):
    """Where a replica is, or is to be written."""

    node: DataNodeView
    storage: StorageView


class Refusal(msgspec.Struct, frozen=True, gc=False):
    """A node that was tried, and why it was not taken."""

    node: DataNodeView
    reason: str


class Placement(msgspec.Struct, frozen=True, gc=False):
    """The targets that were found, as a pipeline from the writer; fewer than wanted, or all."""

    wanted: int
    targets: tuple[Target, ...]
    refusals: tuple[Refusal, ...] = ()
    unavailable: frozenset[StorageType] = frozenset()  # types of which there is no room

    def explain(self) -> str:
        """What was found, and why not more: a line for the log."""
        text = f"found {len(self.targets)} of {self.wanted} targets"
        if len(self.targets) == self.wanted:
            return text
        reasons = [f"{each.node.address} {each.reason}" for each in self.refusals[:EXPLAINED_MAX]]
        if len(self.refusals) > EXPLAINED_MAX:
            reasons.append(f"and {len(self.refusals) - EXPLAINED_MAX} more were refused")
        if self.unavailable:
            names = ", ".join(type.name for type in sorted(self.unavailable))
            reasons.append(f"no room on {names}")
        return f"{text}: {'; '.join(reasons)}" if reasons else text


def choose_targets(
    cluster: ClusterView,
    count: int,
    *,
    policy: StoragePolicy,
    block_size_bytes: int,
    random: Random,
    writer: Place | None = None,
    existing: Sequence[Target] = (),
    excluded: Collection[str] = (),
    favored: Sequence[str] = (),
    is_new_block: bool = True,
    no_local_write: bool = False,
) -> Placement:
    """Choose `count` more nodes for a block, or as many as there are.

    `existing` are the replicas that it has or is being given; `excluded` and
    `favored` are uuids.  `writer` is the node that will send the data, or the
    place of a client that is none, if that is known.
    """

    def search(excluded: set[str]) -> Placement:
        return _Search(
            cluster=cluster,
            wanted=count,
            policy=policy,
            block_size_bytes=block_size_bytes,
            random=random,
            writer=writer,
            existing=existing,
            excluded=excluded,
            is_new_block=is_new_block,
        ).run(favored)

    if no_local_write and writer is not None and writer.uuid:
        placement = search({*excluded, writer.uuid})
        if len(placement.targets) == count:
            return placement
    return search(set(excluded))


def choose_storage(node: DataNodeView, type: StorageType, size_bytes: int) -> StorageView | None:
    """The storage of this type with most room, if the node has room for so many bytes.

    The DataNode may take another of its volumes.  So what counts is the room of
    all that could take the block, less what was promised on any of them
    (DatanodeDescriptor.chooseStorage4Block).
    """
    best: StorageView | None = None
    room = -size_bytes
    for storage in node.storages:
        if storage.type is not type or storage.state is not StorageState.NORMAL:
            continue
        room -= storage.scheduled_bytes
        if storage.remaining_bytes >= size_bytes:
            room += storage.remaining_bytes
            if best is None or _free(storage) > _free(best):
                best = storage
    return best if room >= 0 else None


@dataclass(slots=True, eq=False)
class _Search:
    """One choice at work: what was chosen, what was refused, what is still wanted."""

    cluster: ClusterView
    wanted: int
    policy: StoragePolicy
    block_size_bytes: int
    random: Random
    writer: Place | None
    existing: Sequence[Target]
    excluded: set[str]
    is_new_block: bool

    favored: list[Target] = field(default_factory=list)
    chosen: list[Target] = field(default_factory=list)
    refused: dict[str, Refusal] = field(default_factory=dict)
    on_rack: Counter[str] = field(default_factory=Counter)
    rack_max: int = 0

    # What changes from one attempt to the next.
    avoid_stale: bool = False
    unavailable: list[StorageType] = field(default_factory=list)
    types: list[StorageType] = field(default_factory=list)  # for the targets that are missing
    tried: set[str] = field(default_factory=set)

    def run(self, favored: Sequence[str]) -> Placement:
        self.on_rack.update(target.node.rack for target in self.existing)
        self.rack_max = _rack_max(self.cluster, len(self.existing) + self.wanted)
        # A copy is given to one that is silent only if there is no other: it may never arrive.
        may_wait = not self.is_new_block and self.cluster.stale > 0
        self.avoid_stale = self.cluster.avoids_stale or may_wait
        # A type that no node has need not be looked for on each of them.
        self.unavailable = [t for t in _types_of(self.policy) if t not in self.cluster.types]
        self._begin_attempt()
        for uuid in favored:
            if self._missing and self._take_itself(uuid):
                self.favored.append(self.chosen.pop())
        while self._missing and not self._choose_in_order() and self._relax():
            self._begin_attempt()
        return Placement(
            self.wanted,
            self._pipeline(),
            tuple(self.refused.values()),
            frozenset(self.unavailable),
        )

    @property
    def _missing(self) -> int:
        return self.wanted - len(self.chosen) - len(self.favored)

    def _begin_attempt(self) -> None:
        found = [*self.existing, *self.favored, *self.chosen]
        self.tried = self.excluded | {target.node.uuid for target in found}
        self.types = choose_storage_types(
            self.policy,
            len(self.existing) + self.wanted,
            [target.storage.type for target in found],
            self.unavailable,
            is_new_block=self.is_new_block,
        )

    def _relax(self) -> bool:
        """Ask for less, if there is less to ask for: stale nodes first, then other types."""
        if self.avoid_stale:
            self.avoid_stale = False
            return True
        exhausted = [type for type in self.types if type not in self.unavailable]
        self.unavailable += exhausted
        return bool(exhausted)

    def _choose_in_order(self) -> bool:
        """Until all are found.  Favored nodes do not count here: HDFS gives them on top."""
        while self._missing:
            placed = [target.node for target in (*self.existing, *self.chosen)]
            if not placed:
                local = self.writer is not None and self._take_itself(self.writer.uuid)
                found = local or self._take_near(self.writer, placed)
            elif len(placed) == 1 or (len(placed) == 2 and placed[0].rack == placed[1].rack):
                rack = placed[0].rack
                found = self._take_outside(rack) or self._take_inside(rack)
            elif len(placed) == 2:
                source = self.writer if self.writer and self.writer.uuid else placed[0]
                found = self._take_near(placed[1] if self.is_new_block else source, placed)
            else:
                found = self._take_anywhere()
            if not found:
                return False
        return True

    def _take_itself(self, uuid: str) -> bool:
        """Just this node, however busy it is."""
        node = self.cluster.node(uuid)
        return node is not None and uuid not in self.tried and self._take(node, inf)

    def _take_near(self, place: Place | None, placed: Sequence[DataNodeView]) -> bool:
        """In the rack of that place, else in that of another replica, else anywhere."""
        if place is not None:
            if self._take_inside(place.rack):
                return True
            other = next((node for node in placed if node.uuid != place.uuid), None)
            if other is not None and self._take_inside(other.rack):
                return True
        return self._take_anywhere()

    def _take_inside(self, rack: str) -> bool:
        return self._take_one_of(self.cluster.racks.get(rack, _NOWHERE))

    def _take_outside(self, rack: str) -> bool:
        everywhere = range(len(self.cluster.nodes))
        return self._take_one_of(everywhere, but=self.cluster.racks.get(rack, _NOWHERE))

    def _take_anywhere(self) -> bool:
        return self._take_one_of(range(len(self.cluster.nodes)))

    def _take_one_of(self, positions: range, but: range = _NOWHERE) -> bool:
        """Any node at these positions: most often the first that is looked at."""
        if not self.types:
            return False
        xceivers_max = self.cluster.xceivers_max
        for index in _in_random_order(len(positions) - len(but), self.random):
            position = positions[index]
            if position >= but.start:
                position += len(but)
            node = self.cluster.nodes[position]
            if node.uuid not in self.tried and self._take(node, xceivers_max):
                return True
        return False

    def _take(self, node: DataNodeView, xceivers_max: float) -> bool:
        self.tried.add(node.uuid)
        reason = self._unfitness(node, xceivers_max)
        if not reason:
            for type, _ in groupby(self.types):
                storage = choose_storage(node, type, self.block_size_bytes)
                if storage is not None:
                    self.types.remove(type)
                    self.on_rack[node.rack] += 1
                    self.chosen.append(Target(node, storage))
                    self.refused.pop(node.uuid, None)
                    return True
            names = " or ".join(type.name for type, _ in groupby(self.types))
            reason = f"has no room for {self.block_size_bytes} bytes on {names}"
        self.refused[node.uuid] = Refusal(node, reason)
        return False

    def _unfitness(self, node: DataNodeView, xceivers_max: float) -> str:
        """Why the node is no target, in words that follow its name; empty if it may be one."""
        if not node.is_in_service:
            return f"is {_LEAVING[node.admin_state]}"
        if self.avoid_stale and node.is_stale:
            return "is stale"
        if node.xceivers > xceivers_max:
            return f"is too busy: {node.xceivers} transfers, more than {xceivers_max:.1f}"
        if self.on_rack[node.rack] >= self.rack_max:
            return f"is on {node.rack}, which has {self.on_rack[node.rack]} replicas already"
        return ""

    def _pipeline(self) -> tuple[Target, ...]:
        """From the writer to the nearest node, from there to the nearest of the rest, and so on."""
        rest = [*self.favored, *self.chosen]
        if not rest:
            return ()
        at = self.cluster.node(self.writer.uuid if self.writer else "") or rest[0].node
        pipeline = []
        while rest:
            nearest = min(rest, key=lambda target: distance(at, target.node))
            rest.remove(nearest)
            pipeline.append(nearest)
            at = nearest.node
        return tuple(pipeline)


_LEAVING = {
    AdminState.DECOMMISSION_INPROGRESS: "decommissioning",
    AdminState.DECOMMISSIONED: "decommissioned",
    AdminState.ENTERING_MAINTENANCE: "entering maintenance",
    AdminState.IN_MAINTENANCE: "in maintenance",
}


def _rack_max(cluster: ClusterView, replicas: int) -> int:
    """How many replicas a rack may hold (BlockPlacementPolicyDefault.getMaxNodesPerRack).

    HDFS also counts racks without a node in service, and then leaves blocks
    with too few replicas while it waits for such a rack.
    """
    racks = cluster.racks_in_service
    if racks <= 1 or replicas <= 1:
        return replicas
    replicas = min(replicas, len(cluster.nodes))
    rack_max = (replicas - 1) // racks + 2
    return rack_max - 1 if rack_max == replicas else rack_max


def _types_of(policy: StoragePolicy) -> tuple[StorageType, ...]:
    return policy.storage_types + policy.creation_fallbacks + policy.replication_fallbacks


def _free(storage: StorageView) -> int:
    return storage.remaining_bytes - storage.scheduled_bytes


def _in_random_order(count: int, random: Random) -> Iterator[int]:
    """The numbers below `count`, shuffled as far as they are asked for."""
    moved: dict[int, int] = {}
    for last in range(count - 1, -1, -1):
        index = int(random.random() * (last + 1))
        yield moved.get(index, index)
        moved[index] = moved.get(last, last)
