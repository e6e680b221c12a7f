"""One block in a small cluster that carries plans out late, in any order, or not at all."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from random import Random
from typing import TypeVar

import msgspec
from tests.blocks.builders import BLOCK_SIZE

from cairnfs.blocks.placement import Target
from cairnfs.blocks.policies import StoragePolicy
from cairnfs.blocks.replication import (
    BlockPlan,
    BlockView,
    Priority,
    ReplicaState,
    ReplicaView,
    count_replicas,
    plan_block,
)
from cairnfs.blocks.topology import ClusterView, DataNodeView

T = TypeVar("T")

READABLE = (
    ReplicaState.LIVE,
    ReplicaState.READ_ONLY,
    ReplicaState.DECOMMISSIONING,
    ReplicaState.DECOMMISSIONED,
    ReplicaState.ENTERING_MAINTENANCE,
)
ROUNDS_MAX = 60


@dataclass
class Simulation:
    """What a NameNode knows of the block, and what its DataNodes have not done yet."""

    nodes: dict[str, DataNodeView]
    replication: int
    policy: StoragePolicy
    random: Random
    replicas: dict[str, ReplicaView] = field(default_factory=dict)
    pending: dict[str, Target] = field(default_factory=dict)
    deleting: set[str] = field(default_factory=set)  # corrupt ones; excess ones stay listed

    @property
    def cluster(self) -> ClusterView:
        return ClusterView.of(self.nodes.values())

    @property
    def block(self) -> BlockView:
        return BlockView(
            BLOCK_SIZE,
            self.replication,
            self.policy,
            tuple(self.replicas.values()),
            pending=tuple(self.pending.values()),
            deleting=frozenset(self.deleting),
        )

    @property
    def live(self) -> list[ReplicaView]:
        return [each for each in self.replicas.values() if each.state is ReplicaState.LIVE]

    @property
    def is_readable(self) -> bool:
        return any(each.state in READABLE for each in self.replicas.values())

    def run(self) -> BlockPlan:
        """Plan, and let some of the work be done, until there is nothing left to do."""
        for _ in range(ROUNDS_MAX):
            plan = plan_block(self.block, self.cluster, self.random)
            check_plan(self.block, plan)
            if plan.is_empty and not self.is_busy:
                return plan
            self._order(plan)
            self._work()
        raise AssertionError(f"no end of it: {self.block}")

    @property
    def is_busy(self) -> bool:
        excess = any(each.is_excess for each in self.replicas.values())
        unreported = any(each.storage.contents_are_stale for each in self.replicas.values())
        return bool(self.pending or self.deleting or excess or unreported)

    def change(self, node: DataNodeView) -> None:
        """A node is in another state; one that is dead will not do what it was told."""
        self.nodes[node.uuid] = node
        if node.uuid in self.replicas:
            old = self.replicas[node.uuid]
            self.replicas[node.uuid] = msgspec.structs.replace(old, node=node)
        if not node.is_alive:
            self.pending.pop(node.uuid, None)
            self.deleting.discard(node.uuid)

    def _order(self, plan: BlockPlan) -> None:
        """What a NameNode writes down when it sends the commands of a plan."""
        if plan.copy is not None:
            self.pending.update((target.node.uuid, target) for target in plan.copy.targets)
        for replica in plan.deletions:
            self.replicas[replica.uuid] = msgspec.structs.replace(replica, is_excess=True)
        for replica in plan.invalidations:
            del self.replicas[replica.uuid]
            self.deleting.add(replica.uuid)

    def _work(self) -> None:
        """Each thing that was ordered is done now, or later."""
        for target in self._some(self.pending.values()):
            del self.pending[target.node.uuid]
            if self.is_readable and self.random.random() < 0.9:  # or it timed out
                assert target.node.uuid not in self.replicas
                self.replicas[target.node.uuid] = ReplicaView(target.node, target.storage)
        for uuid in self._some(self.deleting):
            self.deleting.remove(uuid)
        for replica in self._some(self.replicas.values()):
            if replica.is_excess:
                del self.replicas[replica.uuid]
            elif replica.storage.contents_are_stale:
                self._report(replica)

    def _report(self, replica: ReplicaView) -> None:
        """A node that came back says what it has: the replica, or not."""
        if self.random.random() < 0.5:
            storage = msgspec.structs.replace(replica.storage, contents_are_stale=False)
            self.replicas[replica.uuid] = msgspec.structs.replace(replica, storage=storage)
        else:
            del self.replicas[replica.uuid]

    def _some(self, things: Iterable[T]) -> list[T]:
        return [thing for thing in list(things) if self.random.random() < 0.6]


def check_plan(block: BlockView, plan: BlockPlan) -> None:
    """What is true of every plan, whatever the block looks like."""
    live = [each for each in block.replicas if each.state is ReplicaState.LIVE]
    certain = [each for each in live if not each.storage.contents_are_stale]

    deleted = {each.uuid for each in plan.deletions}
    kept = [each for each in certain if each.uuid not in deleted]
    assert deleted <= {each.uuid for each in certain}
    if deleted:
        assert len(kept) >= max(block.replication, 1)
        racks = len({each.rack for each in certain})
        assert len({each.rack for each in kept}) >= min(2, racks, len(kept))

    assert all(each.state is ReplicaState.CORRUPT for each in plan.invalidations)
    if plan.invalidations:
        assert any(each.state in READABLE for each in block.replicas)

    if plan.copy is not None:
        check_copy(block, plan)


def check_copy(block: BlockView, plan: BlockPlan) -> None:
    """A copy is made from a good replica, to as many nodes as lack, and not twice to one."""
    assert plan.copy is not None
    assert not plan.deletions
    assert plan.copy.source.state in READABLE
    targets = {target.node.uuid for target in plan.copy.targets}
    assert len(targets) == len(plan.copy.targets) > 0
    assert not targets & {each.uuid for each in block.replicas}
    assert not targets & {each.node.uuid for each in block.pending}
    assert not targets & block.deleting
    expected = count_replicas(block.replicas).live + len(block.pending) + len(targets)
    if plan.priority is Priority.BADLY_DISTRIBUTED:
        assert len(targets) == 1
    else:
        assert expected <= block.replication
