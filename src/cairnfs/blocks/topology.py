"""The DataNodes: what is known of each, where they are, how far from each other.

A node is in a rack, named by its path in a tree of switches: "/default-rack", or
"/building/rack".  The distance of two nodes is the number of links between
them, each node hanging on its rack by one: 0 on the same node, 2 in the same
rack, 4 between sibling racks.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from random import Random
from typing import Protocol, TypeVar

import msgspec

from cairnfs.blocks.records import AdminState, StorageType
from cairnfs.errors import IllegalArgumentException

DEFAULT_RACK = "/default-rack"
LOAD_FACTOR_MAX = 2.0  # dfs.namenode.redundancy.considerLoad.factor
IDLE_XCEIVERS_MAX = 8  # a node with so few transfers is not busy, even if the others have none
STALE_RATIO_MAX = 0.5  # dfs.namenode.write.stale.datanode.ratio


class StorageState(enum.IntEnum):
    """What can be done with a storage; the first two numbers are Hadoop's."""

    NORMAL = 0
    READ_ONLY_SHARED = 1
    FAILED = 2


class StorageView(msgspec.Struct, frozen=True, gc=False):
    """A volume of a DataNode."""

    storage_id: str
    type: StorageType
    capacity_bytes: int
    remaining_bytes: int
    scheduled_bytes: int = 0  # promised to writers, not in `remaining_bytes` yet
    state: StorageState = StorageState.NORMAL
    contents_are_stale: bool = False  # its last full block report may be out of date
    used_bytes: int = 0  # by replicas


class DataNodeView(msgspec.Struct, frozen=True, gc=False):
    """A DataNode as it was when it was last heard of."""

    uuid: str
    address: str  # how it is called in logs
    storages: tuple[StorageView, ...]
    rack: str = DEFAULT_RACK
    admin_state: AdminState = AdminState.NORMAL
    is_alive: bool = True
    is_stale: bool = False  # it has missed heartbeats, but not so many as to be dead
    is_slow: bool = False  # its peers say so
    xceivers: int = 0  # transfers it is busy with
    transfers_queued: int = 0  # copies it will be told to make at its next heartbeat

    @property
    def is_in_service(self) -> bool:
        return self.admin_state is AdminState.NORMAL

    @property
    def read_rank(self) -> int:
        """Slow, stale and leaving nodes are asked later (DFSUtil.StaleAndSlowComparator)."""
        if self.admin_state is not AdminState.NORMAL:
            return _LEAVING_READ_RANKS[self.admin_state]
        return 3 if self.is_stale else 2 if self.is_slow else 0


@dataclass(frozen=True, slots=True, eq=False)
class ClusterView:
    """The DataNodes that are alive, with what a choice among thousands needs to be quick.

    Made by `of`; a heartbeat, or a block that is promised, makes the next by `with_node`.
    """

    nodes: tuple[DataNodeView, ...]  # rack by rack
    positions: Mapping[str, int]  # of a uuid in `nodes`
    racks: Mapping[str, range]  # positions of a rack's nodes
    types: tuple[StorageType, ...]  # that some node in service has
    racks_in_service: int  # racks with a node in service
    in_service: int
    stale: int
    xceivers: int  # of the nodes in service

    @classmethod
    def of(cls, nodes: Iterable[DataNodeView]) -> ClusterView:
        ordered = tuple(sorted((n for n in nodes if n.is_alive), key=lambda n: n.rack))
        positions = {node.uuid: position for position, node in enumerate(ordered)}
        assert len(positions) == len(ordered), "two DataNodes with one uuid"
        racks: dict[str, range] = {}
        for position, node in enumerate(ordered):
            start = racks[node.rack].start if node.rack in racks else position
            racks[node.rack] = range(start, position + 1)
        serving = [node for node in ordered if node.is_in_service]
        return cls(
            nodes=ordered,
            positions=positions,
            racks=racks,
            types=tuple(sorted({storage.type for node in serving for storage in node.storages})),
            racks_in_service=len({node.rack for node in serving}),
            in_service=len(serving),
            stale=sum(node.is_stale for node in ordered),
            xceivers=sum(node.xceivers for node in serving),
        )

    def node(self, uuid: str) -> DataNodeView | None:
        position = self.positions.get(uuid)
        return None if position is None else self.nodes[position]

    def with_node(self, node: DataNodeView) -> ClusterView:
        """The same cluster with this node as it is now; it may be new, or dead."""
        old = self.node(node.uuid)
        if old is None or _role(old) != _role(node):
            others = (other for other in self.nodes if other.uuid != node.uuid)
            return ClusterView.of((*others, node))
        nodes = list(self.nodes)
        nodes[self.positions[node.uuid]] = node
        xceivers = self.xceivers + (node.xceivers - old.xceivers) * node.is_in_service
        return replace(self, nodes=tuple(nodes), xceivers=xceivers)

    @property
    def xceivers_max(self) -> float:
        """With more transfers than this, a node is too busy for another."""
        average = self.xceivers / self.in_service if self.in_service else 0.0
        return max(LOAD_FACTOR_MAX * average, IDLE_XCEIVERS_MAX)

    @property
    def avoids_stale(self) -> bool:
        """Not if most nodes are stale: the others could not take everything."""
        return 0 < self.stale <= STALE_RATIO_MAX * len(self.nodes)


class Place(Protocol):
    """Anything that is somewhere in the network; without a uuid it is no DataNode."""

    @property
    def uuid(self) -> str: ...
    @property
    def rack(self) -> str: ...


class Readable(Place, Protocol):
    """A place to read from; those of a lower rank are asked first, however far they are."""

    @property
    def read_rank(self) -> int: ...


class Location(msgspec.Struct, frozen=True, gc=False):
    """Where a client is that does not run on a DataNode."""

    rack: str
    uuid: str = ""


R = TypeVar("R", bound=Readable)


def parse_rack(text: str) -> str:
    """The rack that an operator wrote, in the one form that is compared."""
    names = [name for name in text.split("/") if name]
    if not names:
        return DEFAULT_RACK
    if not text.startswith("/"):
        raise IllegalArgumentException(f"Network Location path does not start with /: {text!r}")
    return "/" + "/".join(names)


def distance(a: Place, b: Place) -> int:
    """The number of links between two nodes."""
    if a.uuid and a.uuid == b.uuid:
        return 0
    return _rack_distance(a.rack, b.rack)


def sort_by_distance(reader: Place | None, nodes: Iterable[R], random: Random) -> list[R]:
    """The order in which a reader should try the nodes: best rank, then nearest.

    Nodes of the same rank and distance are shuffled, to spread the load; to a
    reader that is nobody knows where, all are equally far.
    """
    order = list(nodes)
    random.shuffle(order)
    if reader is None:
        order.sort(key=lambda node: node.read_rank)
    else:
        order.sort(key=lambda node: (node.read_rank, distance(reader, node)))
    return order


_LEAVING_READ_RANKS = {
    AdminState.ENTERING_MAINTENANCE: 4,
    AdminState.IN_MAINTENANCE: 5,
    AdminState.DECOMMISSION_INPROGRESS: 6,
    AdminState.DECOMMISSIONED: 7,
}


def _role(node: DataNodeView) -> tuple[object, ...]:
    """What a cluster is indexed by: it changes seldom."""
    types = {storage.type for storage in node.storages}
    return node.rack, node.is_alive, node.admin_state, node.is_stale, types


@lru_cache(maxsize=65_536)
def _rack_distance(a: str, b: str) -> int:
    """Between two different nodes in these racks."""
    names_a, names_b = a.split("/"), b.split("/")
    shared = 0
    for name_a, name_b in zip(names_a, names_b, strict=False):
        if name_a != name_b:
            break
        shared += 1
    return len(names_a) + len(names_b) - 2 * shared + 2
