"""How evenly DataNodes are used, and what has to move until they are: HDFS's balancer, as values.

For each storage type by itself, the *utilisation* of a DataNode is the part of its capacity that
replicas take.  The cluster is balanced when that of each DataNode differs from the cluster's by
no more than a threshold.  Until then bytes go from those above the mean to those below it, as
many as bring the fuller or the emptier of the two to the mean; pairs in one rack come first.

Invariant: a move that is chosen leaves a block with as many replicas as before, on different
nodes, on no fewer racks than it needs or had, and on the same types; and brings the two nodes
nearer to each other.
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterable, Sequence

import msgspec

from cairnfs.blocks.placement import Target, choose_storage
from cairnfs.blocks.records import BlockState, StorageType
from cairnfs.blocks.relocation import Move
from cairnfs.blocks.replication import (
    BlockView,
    ReplicaState,
    choose_deletions,
    choose_priority,
    keeps_racks,
)
from cairnfs.blocks.topology import ClusterView, DataNodeView, StorageState

ITERATION_BYTES_MAX = 10 << 30  # from or to a DataNode (dfs.balancer.max-size-to-move)

# What is in memory does not stay there, and what is provided is elsewhere.
MOVABLE = tuple(
    type for type in StorageType if type not in (StorageType.RAM_DISK, StorageType.PROVIDED)
)


class Level(enum.IntEnum):
    """How a DataNode is used, against the mean; the second and third are within the threshold."""

    OVER_UTILIZED = 0
    ABOVE_AVERAGE = 1
    BELOW_AVERAGE = 2
    UNDER_UTILIZED = 3


class Share(msgspec.Struct, frozen=True, gc=False):
    """What a DataNode has of one storage type."""

    node: DataNodeView
    type: StorageType
    capacity_bytes: int
    used_bytes: int
    remaining_bytes: int
    level: Level
    to_move_bytes: int  # until it is at the mean
    excess_bytes: int  # of those, until it is within the threshold

    @property
    def utilisation(self) -> float:
        """In percent."""
        return percentage(self.used_bytes, self.capacity_bytes)


class Exchange(msgspec.Struct, frozen=True, gc=False):
    """So many bytes are to go from one DataNode to another, on storages of a type."""

    source: DataNodeView
    target: DataNodeView
    type: StorageType
    size_bytes: int


class TypeBalance(msgspec.Struct, frozen=True, gc=False):
    """All DataNodes that have a storage type, the fullest first."""

    type: StorageType
    mean: float  # percent of the capacity of all of them
    shares: tuple[Share, ...]


class BalancePlan(msgspec.Struct, frozen=True, gc=False):
    """How the cluster is, and what to move next."""

    types: tuple[TypeBalance, ...]
    exchanges: tuple[Exchange, ...]

    @property
    def left_bytes(self) -> int:
        """How much has to move until the cluster is balanced, as HDFS reckons it."""
        shares = [share for each in self.types for share in each.shares]
        over = sum(each.excess_bytes for each in shares if each.level is Level.OVER_UTILIZED)
        under = sum(each.excess_bytes for each in shares if each.level is Level.UNDER_UTILIZED)
        return max(over, under)

    @property
    def moving_bytes(self) -> int:
        return sum(each.size_bytes for each in self.exchanges)


def percentage(used_bytes: int, capacity_bytes: int) -> float:
    return 100.0 * used_bytes / capacity_bytes if capacity_bytes else 0.0


def plan_balance(
    nodes: Iterable[DataNodeView], threshold: float, sources: Collection[str] | None = None
) -> BalancePlan:
    """How these nodes are used, and who is to give what to whom; `sources` limits who gives."""
    taking_part = [node for node in nodes if node.is_alive and node.is_in_service]
    types, exchanges = [], []
    for type in MOVABLE:
        balance = _measure(taking_part, type, threshold)
        if balance.shares:
            types.append(balance)
            exchanges += _pair(balance.shares, sources)
    return BalancePlan(tuple(types), tuple(exchanges))


def choose_move(block: BlockView, cluster: ClusterView, exchange: Exchange) -> Move | None:
    """The move of a block from the one DataNode to the other, if it may go.

    A block that is written, lacks something, or is not certain to be where it is said to be
    stays.  One that is too large for what is to be exchanged would leave things worse.
    """
    if block.state is not BlockState.COMPLETE:
        return None
    if not 0 < block.length_bytes < 2 * exchange.size_bytes:  # just as much would go to and fro
        return None
    replicas = block.replicas
    holders = {each.uuid for each in replicas}
    is_calm = (
        len(holders) == len(replicas)
        and not block.awaited
        and not block.deleting
        and all(
            each.state is ReplicaState.LIVE and not each.storage.contents_are_stale
            for each in replicas
        )
        and choose_priority(block, cluster) is None
        and not choose_deletions(block)
    )
    if not is_calm:
        return None
    source = next((each for each in replicas if each.uuid == exchange.source.uuid), None)
    target = cluster.node(exchange.target.uuid)
    if (
        source is None
        or source.storage.type is not exchange.type
        or source.node.is_stale
        or target is None
        or target.uuid in holders
        or target.is_stale
        or not target.is_in_service
        or not keeps_racks(block, cluster, source, target)
    ):
        return None
    storage = choose_storage(target, exchange.type, block.length_bytes)
    return None if storage is None else Move(source, Target(target, storage))


def _measure(nodes: Sequence[DataNodeView], type: StorageType, threshold: float) -> TypeBalance:
    found = []
    for node in nodes:
        storages = [
            storage
            for storage in node.storages
            if storage.type is type
            and storage.state is StorageState.NORMAL
            and storage.capacity_bytes
        ]
        if storages:
            capacity = sum(storage.capacity_bytes for storage in storages)
            used = sum(storage.used_bytes for storage in storages)
            remaining = sum(storage.remaining_bytes for storage in storages)
            found.append((node, capacity, used, remaining))
    mean = percentage(sum(each[2] for each in found), sum(each[1] for each in found))
    shares = [_share(*each, type, mean, threshold) for each in found]
    shares.sort(key=lambda share: (-share.utilisation, share.node.address))
    return TypeBalance(type, mean, tuple(shares))


def _share(
    node: DataNodeView,
    capacity: int,
    used: int,
    remaining: int,
    type: StorageType,
    mean: float,
    threshold: float,
) -> Share:
    difference = percentage(used, capacity) - mean
    beyond = abs(difference) - threshold
    if difference > 0:
        level = Level.OVER_UTILIZED if beyond > 0 else Level.ABOVE_AVERAGE
    else:
        level = Level.UNDER_UTILIZED if beyond > 0 else Level.BELOW_AVERAGE
    to_move = int(abs(difference) * capacity / 100)
    if difference < 0:
        to_move = min(to_move, remaining)
    excess = int(beyond * capacity / 100) if beyond > 0 else 0
    return Share(node, type, capacity, used, remaining, level, to_move, excess)


def _pair(shares: Sequence[Share], sources: Collection[str] | None) -> list[Exchange]:
    """Who gives to whom, as HDFS pairs them: first those of one rack, and the worst first.

    Nobody who is within the threshold gives to another who is: that would be for nothing.
    """
    left = {share.node.uuid: min(share.to_move_bytes, ITERATION_BYTES_MAX) for share in shares}
    of_level = {level: [share for share in shares if share.level is level] for level in Level}
    giving = {
        level: [share for share in of_level[level] if sources is None or share.node.uuid in sources]
        for level in (Level.OVER_UTILIZED, Level.ABOVE_AVERAGE)
    }
    over, above = giving[Level.OVER_UTILIZED], giving[Level.ABOVE_AVERAGE]
    under = of_level[Level.UNDER_UTILIZED][::-1]  # the emptiest first
    below = of_level[Level.BELOW_AVERAGE][::-1]
    for each in (over, above, under, below):
        each.sort(key=lambda share: share.node.is_stale)  # who is silent may have gone
    exchanges = []
    for is_in_rack in (True, False):
        for givers, takers in ((over, under), (over, below), (above, under)):
            for giver in givers:
                for taker in takers:
                    source, target = giver.node, taker.node
                    size = min(left[source.uuid], left[target.uuid])
                    if size > 0 and (source.rack == target.rack or not is_in_rack):
                        exchanges.append(Exchange(source, target, giver.type, size))
                        left[source.uuid] -= size
                        left[target.uuid] -= size
    return exchanges
