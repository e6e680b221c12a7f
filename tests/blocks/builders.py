"""Small clusters and blocks, in few words."""

from __future__ import annotations

from typing import Any

from cairnfs.blocks.placement import Target
from cairnfs.blocks.policies import HOT
from cairnfs.blocks.records import StorageType
from cairnfs.blocks.replication import BlockView, Integrity, ReplicaView
from cairnfs.blocks.topology import ClusterView, DataNodeView, StorageView

BLOCK_SIZE = 128
CAPACITY = 100 * BLOCK_SIZE


def storage(
    id: str, type: StorageType = StorageType.DISK, remaining: int = CAPACITY, **more: Any
) -> StorageView:
    return StorageView(id, type, CAPACITY, remaining, **more)


def node(
    name: str,
    rack: str = "/default-rack",
    *,
    type: StorageType = StorageType.DISK,
    remaining: int = CAPACITY,
    **more: Any,
) -> DataNodeView:
    """A healthy DataNode with one volume."""
    more.setdefault("storages", (storage(f"{name}-0", type, remaining),))
    return DataNodeView(uuid=name, address=f"{name}:9866", rack=rack, **more)


def nodes_on(**sizes: int) -> list[DataNodeView]:
    """`nodes_on(a=2, b=1)`: a0 and a1 in rack /a, b0 in rack /b."""
    return [
        node(f"{rack}{number}", f"/{rack}")
        for rack, size in sizes.items()
        for number in range(size)
    ]


def cluster_on(**sizes: int) -> ClusterView:
    return ClusterView.of(nodes_on(**sizes))


def on(view: DataNodeView) -> Target:
    return Target(view, view.storages[0])


def replica(
    view: DataNodeView, integrity: Integrity = Integrity.GOOD, *, is_excess: bool = False
) -> ReplicaView:
    return ReplicaView(view, view.storages[0], integrity, is_excess)


def block(replication: int, *replicas: ReplicaView | DataNodeView, **more: Any) -> BlockView:
    """A complete block; a node stands for a good replica on it."""
    views = tuple(replica(each) if isinstance(each, DataNodeView) else each for each in replicas)
    return BlockView(BLOCK_SIZE, replication, more.pop("policy", HOT), views, **more)
