"""What to do about the replicas of a block: how urgent it is, and a plan.

A plan is a value; whoever asked for it turns it into commands and rows.  A
replica is counted by the state of its node and storage as HDFS does
(BlockManager, LowRedundancyBlocks); one whose storage has not been reported in
full counts when copies are asked for, and does not when something is deleted.

Invariant: when a plan is carried out, in any order and as far as you like, at
least as many good replicas are left as are expected, or all that there were.
"""

from __future__ import annotations

import enum
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from random import Random

import msgspec

from cairnfs.blocks.placement import Placement, Target, choose_targets
from cairnfs.blocks.policies import StoragePolicy, choose_excess_types
from cairnfs.blocks.records import AdminState, BlockState, StorageType
from cairnfs.blocks.topology import ClusterView, DataNodeView, StorageState, StorageView

RACKS_MIN = 2  # that the replicas of a block are on, if it has several and there are several
TRANSFERS_QUEUED_MAX = 2  # dfs.namenode.replication.max-streams
TRANSFERS_QUEUED_HARD_MAX = 4  # dfs.namenode.replication.max-streams-hard-limit
MAINTENANCE_LIVE_MIN = 1  # dfs.namenode.maintenance.replication.min


class Priority(enum.IntEnum):
    """How urgently a block needs copies: the queues of LowRedundancyBlocks."""

    HIGHEST = 0  # one replica left, or only some on nodes that are leaving
    VERY_LOW_REDUNDANCY = 1  # less than a third of what is expected
    LOW_REDUNDANCY = 2
    BADLY_DISTRIBUTED = 3  # enough replicas, on too few racks
    CORRUPT = 4  # no good replica at all: nothing to copy from


class Integrity(enum.Enum):
    """What is known of a replica's content."""

    GOOD = enum.auto()
    CORRUPT = enum.auto()  # it fails its checksums, or has the wrong length
    OUTDATED = enum.auto()  # its generation stamp is older than the block's


class ReplicaState(enum.Enum):
    """What a replica counts as: Hadoop's StoredReplicaState."""

    LIVE = enum.auto()
    READ_ONLY = enum.auto()
    DECOMMISSIONING = enum.auto()
    DECOMMISSIONED = enum.auto()
    ENTERING_MAINTENANCE = enum.auto()  # can still be read
    IN_MAINTENANCE = enum.auto()  # will come back, cannot be read now
    CORRUPT = enum.auto()
    EXCESS = enum.auto()
    LOST = enum.auto()  # its node is dead, or its storage has failed


class ReplicaView(msgspec.Struct, frozen=True, gc=False):
    """A replica of a block."""

    node: DataNodeView
    storage: StorageView
    integrity: Integrity = Integrity.GOOD
    is_excess: bool = False  # its node was told, or will be, to delete it

    @property
    def uuid(self) -> str:
        return self.node.uuid

    @property
    def rack(self) -> str:
        return self.node.rack

    @property
    def read_rank(self) -> int:
        """As its node, but provided storage comes after what the cluster has itself."""
        is_provided = self.storage.type is StorageType.PROVIDED
        return max(self.node.read_rank, is_provided)

    @property
    def state(self) -> ReplicaState:
        storage, node = self.storage, self.node
        if storage.state is StorageState.FAILED:
            return ReplicaState.LOST
        if not node.is_alive:
            is_expected_back = node.admin_state in _MAINTENANCE and self.integrity is _GOOD
            return ReplicaState.IN_MAINTENANCE if is_expected_back else ReplicaState.LOST
        if self.integrity is not _GOOD:
            return ReplicaState.CORRUPT
        if storage.state is StorageState.READ_ONLY_SHARED:
            return ReplicaState.READ_ONLY
        if node.admin_state is not AdminState.NORMAL:
            return _STATE_ON_LEAVING[node.admin_state]
        return ReplicaState.EXCESS if self.is_excess else ReplicaState.LIVE


class BlockView(msgspec.Struct, frozen=True, gc=False):
    """All that a plan for one block depends on, the cluster aside.

    A node counts for one replica.  It may be reported on two of its volumes, when it
    was moved from one to the other; but who is told to delete a block deletes both.
    """

    length_bytes: int
    replication: int  # how many replicas are expected
    policy: StoragePolicy
    replicas: tuple[ReplicaView, ...]
    state: BlockState = BlockState.COMPLETE
    pending: tuple[Target, ...] = ()  # copies under way
    deleting: frozenset[str] = frozenset()  # nodes that still have to delete one they had
    delete_hint: str = ""  # the node a balancer would rather have it deleted from

    def one_per_node(self) -> BlockView:
        """The same block with the replica that each node counts for."""
        if len({replica.uuid for replica in self.replicas}) == len(self.replicas):
            return self
        ranked = sorted(self.replicas, key=_standing, reverse=True)
        by_node = {replica.uuid: replica for replica in ranked}
        return msgspec.structs.replace(self, replicas=tuple(by_node.values()))

    @property
    def awaited(self) -> list[Target]:
        """The copies under way that have not arrived, on whichever volume."""
        holders = {each.uuid for each in self.replicas if each.state is not ReplicaState.LOST}
        return [target for target in self.pending if target.node.uuid not in holders]


class ReplicaCounts(msgspec.Struct, frozen=True, gc=False):
    """How many replicas of a block are in each state: Hadoop's NumberReplicas."""

    live: int = 0
    read_only: int = 0
    decommissioning: int = 0
    decommissioned: int = 0
    entering_maintenance: int = 0
    in_maintenance: int = 0
    corrupt: int = 0
    excess: int = 0
    lost: int = 0

    @property
    def maintenance(self) -> int:
        return self.entering_maintenance + self.in_maintenance

    @property
    def out_of_service(self) -> int:
        return self.maintenance + self.decommissioning + self.decommissioned


class Copy(msgspec.Struct, frozen=True, gc=False):
    """One replica is sent to all targets, from each to the next."""

    source: ReplicaView
    targets: tuple[Target, ...]


class BlockPlan(msgspec.Struct, frozen=True, gc=False):
    """What to do about a block; nothing, if it is well or cannot be helped now."""

    priority: Priority | None = None
    copy: Copy | None = None
    deletions: tuple[ReplicaView, ...] = ()  # good ones, more than are expected
    invalidations: tuple[ReplicaView, ...] = ()  # corrupt ones that are not needed
    note: str = ""  # why there is no copy, or one to fewer nodes than it should be

    @property
    def is_empty(self) -> bool:
        return self.copy is None and not self.deletions and not self.invalidations


def count_replicas(replicas: Iterable[ReplicaView]) -> ReplicaCounts:
    """How many replicas there are in each state."""
    counts = Counter(replica.state for replica in replicas)
    return ReplicaCounts(
        live=counts[ReplicaState.LIVE],
        read_only=counts[ReplicaState.READ_ONLY],
        decommissioning=counts[ReplicaState.DECOMMISSIONING],
        decommissioned=counts[ReplicaState.DECOMMISSIONED],
        entering_maintenance=counts[ReplicaState.ENTERING_MAINTENANCE],
        in_maintenance=counts[ReplicaState.IN_MAINTENANCE],
        corrupt=counts[ReplicaState.CORRUPT],
        excess=counts[ReplicaState.EXCESS],
        lost=counts[ReplicaState.LOST],
    )


def choose_priority(block: BlockView, cluster: ClusterView) -> Priority | None:
    """How urgently the block needs copies that are not under way; None if it needs none."""
    if block.state is not BlockState.COMPLETE:
        return None
    block = block.one_per_node()
    counts = count_replicas(block.replicas)
    if _missing_copies(block, counts) > 0:
        return _low_redundancy_priority(counts, block.replication)
    if not block.awaited and _missing_racks(block, cluster) > 0:
        return Priority.BADLY_DISTRIBUTED
    return None


def plan_block(block: BlockView, cluster: ClusterView, random: Random) -> BlockPlan:
    """What to do about the block now.  A block that is being written is left to its writer."""
    if block.state is not BlockState.COMPLETE:
        return BlockPlan()
    block = block.one_per_node()
    priority = choose_priority(block, cluster)
    if priority is None:
        return BlockPlan(
            deletions=choose_deletions(block), invalidations=choose_invalidations(block)
        )
    source = choose_source(block, priority, random)
    if source is None:
        note = "no node with a good replica can send it now"
        return BlockPlan(priority, invalidations=choose_invalidations(block), note=note)

    placement = _choose_copy_targets(block, cluster, source, random)
    note = "" if len(placement.targets) == placement.wanted else placement.explain()
    if placement.targets:
        # No deletions: a replica that is one too many may be the one to copy from.
        copy = Copy(source, placement.targets)
        return BlockPlan(priority, copy, (), choose_invalidations(block), note)
    in_the_way = _choose_corrupt_to_replace(block, cluster, source, random)
    return BlockPlan(
        priority,
        deletions=choose_deletions(block),
        invalidations=choose_invalidations(block, in_the_way),
        note=note,
    )


def choose_source(block: BlockView, priority: Priority, random: Random) -> ReplicaView | None:
    """The replica to copy from, if a node has time for it.

    Nodes that are leaving take no new blocks and have time: they go first, and
    beyond that may be given as much as for the highest priority.  A
    decommissioned node is asked if there is nobody else.
    """
    by_state = _by_state(block.replicas)
    leaving = by_state[ReplicaState.DECOMMISSIONING] + by_state[ReplicaState.ENTERING_MAINTENANCE]
    staying = by_state[ReplicaState.LIVE] + by_state[ReplicaState.READ_ONLY]

    hard_max, soft_max = TRANSFERS_QUEUED_HARD_MAX, TRANSFERS_QUEUED_MAX
    staying_max = hard_max if priority is Priority.HIGHEST else soft_max
    idle = _with_time(leaving, soft_max)
    able = _with_time(leaving, hard_max) + _with_time(staying, staying_max)
    candidates = idle or able
    if not candidates and not by_state[ReplicaState.LIVE]:
        candidates = by_state[ReplicaState.DECOMMISSIONED]
    # A node that has not been heard of may not hear of this either.
    heard = [replica for replica in candidates if not replica.node.is_stale]
    return random.choice(heard or candidates) if candidates else None


def is_readable(replica: ReplicaView) -> bool:
    """Whether its node can send it, when it has time for that."""
    return replica.state in _READABLE


def choose_deletions(block: BlockView) -> tuple[ReplicaView, ...]:
    """Which live replicas are too many (BlockPlacementPolicyDefault.chooseReplicasToDelete).

    Only those count whose storage has been reported in full since its DataNode
    came back: another may be gone already.
    """
    kept = _certain(block.replicas, ReplicaState.LIVE)
    excess_types = choose_excess_types(
        block.policy, block.replication, [replica.storage.type for replica in kept]
    )
    deletions: list[ReplicaView] = []
    while len(kept) > max(block.replication, 1):
        candidates = _expendable(kept)
        of_wrong_type = [each for each in candidates if each.storage.type in excess_types]
        candidates = of_wrong_type or candidates  # HDFS: or none, and keeps one too many
        hinted = [each for each in candidates if each.uuid == block.delete_hint]
        chosen = min(hinted or candidates, key=_worth)
        kept.remove(chosen)
        deletions.append(chosen)
        if chosen.storage.type in excess_types:
            excess_types.remove(chosen.storage.type)
    return tuple(deletions)


def choose_invalidations(
    block: BlockView, in_the_way: Collection[str] = ()
) -> tuple[ReplicaView, ...]:
    """Which corrupt replicas nobody will need, as there are good ones that are certain.

    All, if the block has its replicas.  Until then, those of an older
    generation, which are of no use to anyone, those that there would be too many
    with (BlockManager.markBlockAsCorrupt), and those on the nodes `in_the_way`.
    """
    corrupt = [
        replica
        for replica in block.replicas
        if replica.state is ReplicaState.CORRUPT and replica.storage.state is StorageState.NORMAL
    ]
    if not _certain(block.replicas, *_READABLE):
        return ()
    if len(_certain(block.replicas, *_USABLE)) >= block.replication:
        return tuple(corrupt)

    def is_useless(replica: ReplicaView) -> bool:
        return replica.integrity is Integrity.OUTDATED or replica.uuid in in_the_way

    live = len(_certain(block.replicas, ReplicaState.LIVE))
    too_many = max(live + len(corrupt) - block.replication, 0)
    corrupt.sort(key=is_useless, reverse=True)
    return tuple(corrupt[: max(too_many, sum(map(is_useless, corrupt)))])


def keeps_racks(
    block: BlockView, cluster: ClusterView, source: ReplicaView, target: DataNodeView
) -> bool:
    """Whether a block is on as many racks as it needs, or was, if a replica goes to this node."""
    live = [each for each in block.replicas if each.state is ReplicaState.LIVE]
    others = {each.rack for each in live if each.uuid != source.uuid}
    needed = min(
        RACKS_MIN, block.replication, cluster.racks_in_service, len(others | {source.rack})
    )
    return len(others | {target.rack}) >= needed


_GOOD = Integrity.GOOD
_MAINTENANCE = (AdminState.ENTERING_MAINTENANCE, AdminState.IN_MAINTENANCE)
_STATE_ON_LEAVING = {
    AdminState.DECOMMISSION_INPROGRESS: ReplicaState.DECOMMISSIONING,
    AdminState.DECOMMISSIONED: ReplicaState.DECOMMISSIONED,
    AdminState.ENTERING_MAINTENANCE: ReplicaState.ENTERING_MAINTENANCE,
    AdminState.IN_MAINTENANCE: ReplicaState.IN_MAINTENANCE,
}
# Those that last until they have been replaced; those that will be there again; all to copy from.
_USABLE = (ReplicaState.LIVE, ReplicaState.DECOMMISSIONING, ReplicaState.ENTERING_MAINTENANCE)
_STAYING = (ReplicaState.LIVE, ReplicaState.ENTERING_MAINTENANCE, ReplicaState.IN_MAINTENANCE)
_READABLE = (*_USABLE, ReplicaState.READ_ONLY, ReplicaState.DECOMMISSIONED)


def _missing_copies(block: BlockView, counts: ReplicaCounts) -> int:
    """How many replicas are to be made.

    Those in maintenance will come back: they need not be replaced, all but a few.
    """
    live_min = min(MAINTENANCE_LIVE_MIN, block.replication)
    required = max(block.replication - counts.maintenance, live_min)
    return max(required - counts.live - len(block.awaited), 0)


def _missing_racks(block: BlockView, cluster: ClusterView) -> int:
    """On how many racks more the replicas should be (BlockPlacementStatusDefault)."""
    staying = [replica for replica in block.replicas if replica.state in _STAYING]
    if any(replica.storage.type is StorageType.PROVIDED for replica in staying):
        return 0  # what is provided is safe elsewhere
    racks = len({replica.rack for replica in staying})
    return max(min(RACKS_MIN, block.replication, cluster.racks_in_service) - racks, 0)


def _low_redundancy_priority(counts: ReplicaCounts, replication: int) -> Priority:
    if counts.live == 0:
        is_somewhere = counts.out_of_service or counts.read_only
        return Priority.HIGHEST if is_somewhere else Priority.CORRUPT
    if counts.live == 1:
        return Priority.HIGHEST
    if counts.live * 3 < replication:
        return Priority.VERY_LOW_REDUNDANCY
    return Priority.LOW_REDUNDANCY


def _choose_copy_targets(
    block: BlockView, cluster: ClusterView, source: ReplicaView, random: Random
) -> Placement:
    """Nodes that neither have a replica nor had one just now."""
    missing = _missing_copies(block, count_replicas(block.replicas))
    replicas = [replica for replica in block.replicas if replica.state is not ReplicaState.LOST]
    live = [replica for replica in replicas if replica.state is ReplicaState.LIVE]
    placement = choose_targets(
        cluster,
        missing or _missing_racks(block, cluster),
        policy=block.policy,
        block_size_bytes=block.length_bytes,
        random=random,
        writer=source.node,
        existing=[*(Target(replica.node, replica.storage) for replica in live), *block.awaited],
        excluded={replica.uuid for replica in replicas} | block.deleting,
        is_new_block=False,
    )
    if missing:
        return placement
    # It is for another rack, or for nothing.
    racks = {replica.rack for replica in replicas if replica.state in _STAYING}
    targets = tuple(target for target in placement.targets if target.node.rack not in racks)
    return msgspec.structs.replace(placement, targets=targets)


def _choose_corrupt_to_replace(
    block: BlockView, cluster: ClusterView, source: ReplicaView, random: Random
) -> set[str]:
    """The nodes that could take a copy, did they not have a corrupt replica.

    For the case that no others can.  HDFS lets that be, so that a cluster with as
    many nodes as replicas never recovers.
    """
    if block.awaited or block.deleting:
        return set()  # one thing at a time
    sound = [each for each in block.replicas if each.state is not ReplicaState.CORRUPT]
    without = msgspec.structs.replace(block, replicas=tuple(sound))
    placement = _choose_copy_targets(without, cluster, source, random)
    return {target.node.uuid for target in placement.targets}


def _standing(replica: ReplicaView) -> tuple[bool, bool, bool, bool]:
    """Of a node's replicas, the least is what it counts for: one to be deleted, else the best."""
    is_lost = replica.state is ReplicaState.LOST
    is_bad = replica.integrity is not _GOOD
    return is_lost, not replica.is_excess, is_bad, replica.storage.contents_are_stale


def _certain(replicas: Iterable[ReplicaView], *states: ReplicaState) -> list[ReplicaView]:
    return [
        replica
        for replica in replicas
        if replica.state in states and not replica.storage.contents_are_stale
    ]


def _expendable(replicas: Sequence[ReplicaView]) -> Sequence[ReplicaView]:
    """Those of which one can go without leaving fewer than two racks, or all."""
    on_rack = Counter(replica.rack for replica in replicas)
    if len(on_rack) != RACKS_MIN:
        return replicas
    return [replica for replica in replicas if on_rack[replica.rack] > 1] or replicas


def _worth(replica: ReplicaView) -> tuple[bool, int]:
    """The least first: on a node that is not heard of, or with the least free space."""
    return not replica.node.is_stale, replica.storage.remaining_bytes


def _with_time(replicas: Iterable[ReplicaView], queued_max: int) -> list[ReplicaView]:
    return [replica for replica in replicas if replica.node.transfers_queued < queued_max]


def _by_state(replicas: Iterable[ReplicaView]) -> defaultdict[ReplicaState, list[ReplicaView]]:
    by_state = defaultdict[ReplicaState, list[ReplicaView]](list)
    for replica in replicas:
        by_state[replica.state].append(replica)
    return by_state
