"""The DataNodes as this NameNode sees them: who is alive, how full, how busy, and where.

Rows say which DataNodes and storages there are (`blocks.registration`); what is here comes
from heartbeats, is gone with the process, and is there again a heartbeat later.

Invariant: `cluster` has exactly the DataNodes that were heard of within `dead_after_s`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from random import Random

import msgspec

from cairnfs.blocks.placement import Target, choose_targets
from cairnfs.blocks.policies import DEFAULT, StoragePolicy
from cairnfs.blocks.records import Block, BlockId, DataNode, Storage, StorageNumber
from cairnfs.blocks.topology import (
    DEFAULT_RACK,
    ClusterView,
    DataNodeView,
    Location,
    Place,
    StorageState,
    StorageView,
    sort_by_distance,
)
from cairnfs.errors import IOException
from cairnfs.namesystem.file_blocks import ChooseTargets
from cairnfs.namesystem.inodes import Inode
from cairnfs.namesystem.paths import FsPath

STALE_AFTER_S = 30.0  # dfs.namenode.stale.datanode.interval
DEAD_AFTER_S = 630.0  # twice the recheck interval of 5 minutes, and ten heartbeats
SCHEDULED_ROLL_S = 600.0  # after so long, what was promised to a writer is not awaited any more

NO_LOCAL_WRITE = 0x01  # AddBlockFlagProto

_MONOTONIC = time.monotonic


class StorageUsage(msgspec.Struct, frozen=True, gc=False):
    """How full a volume is, as its last heartbeat said."""

    capacity_bytes: int = 0
    used_bytes: int = 0
    remaining_bytes: int = 0
    block_pool_used_bytes: int = 0
    non_dfs_used_bytes: int = 0
    has_failed: bool = False


class Transfer(msgspec.Struct, frozen=True, gc=False):
    """A copy that a DataNode has to make."""

    block: Block
    targets: tuple[Located, ...]


class Located(msgspec.Struct, frozen=True, gc=False):
    """A storage, its DataNode, and what is known of both now."""

    datanode: DataNode
    storage: Storage
    usage: StorageUsage
    view: DataNodeView

    @property
    def uuid(self) -> str:
        return self.datanode.uuid

    @property
    def rack(self) -> str:
        return self.datanode.rack

    @property
    def read_rank(self) -> int:
        return self.view.read_rank


@dataclass(slots=True, eq=False)
class Promised:
    """Blocks that writers were sent to a storage with; each may grow to its full size."""

    blocks: int = 0
    bytes: int = 0

    def add(self, size_bytes: int) -> None:
        self.blocks += 1
        self.bytes += size_bytes

    def take_one(self) -> None:
        """One has arrived; of which size it might have been is not known."""
        if self.blocks:
            self.bytes -= self.bytes // self.blocks
            self.blocks -= 1


@dataclass(slots=True, eq=False)
class LiveDataNode:
    """One DataNode, from its heartbeats."""

    record: DataNode
    heard_s: float  # when it was last heard of, by the monotonic clock
    heard_ms: int = 0  # the same for people
    usage: dict[str, StorageUsage] = field(default_factory=dict)  # by storage id
    xceivers: int = 0
    failed_volumes: int = 0
    reported: set[StorageNumber] = field(default_factory=set)  # in full, since it registered
    transfers: list[Transfer] = field(default_factory=list)
    invalidations: dict[BlockId, Block] = field(default_factory=dict)
    is_registered: bool = False  # with this NameNode, since it last came
    registered_s: float = 0.0  # when it came: it knows of nothing that was ordered before
    wants_full_report: bool = False

    def sum(self, part: Callable[[StorageUsage], int]) -> int:
        return sum(part(usage) for usage in self.usage.values())


class DataNodes:
    """All DataNodes of the cluster."""

    def __init__(
        self,
        *,
        stale_after_s: float = STALE_AFTER_S,
        dead_after_s: float = DEAD_AFTER_S,
        now_s: Callable[[], float] = _MONOTONIC,
        random: Random | None = None,
    ) -> None:
        self.stale_after_s = stale_after_s
        self.dead_after_s = dead_after_s
        self.random = random or Random()
        self._now_s = now_s
        self._nodes: dict[str, LiveDataNode] = {}
        self._storages: dict[int, tuple[LiveDataNode, Storage]] = {}
        self._cluster = ClusterView.of(())
        self._scheduled: dict[int, Promised] = {}  # to writers, by storage
        self._scheduled_before: dict[int, Promised] = {}
        self._rolled_s = now_s()
        self._waiting: dict[int, list[Callable[[], None]]] = {}

    # What is known.

    @property
    def cluster(self) -> ClusterView:
        """Those that are alive, for choices among them."""
        return self._cluster

    def __iter__(self) -> Iterator[LiveDataNode]:
        return iter(self._nodes.values())

    def get(self, uuid: str) -> LiveDataNode | None:
        return self._nodes.get(uuid)

    def storage(self, number: int) -> tuple[LiveDataNode, Storage] | None:
        """A storage by its number, with its DataNode, alive or not."""
        return self._storages.get(number)

    def number_of(self, uuid: str, storage_id: str) -> StorageNumber | None:
        node = self._nodes.get(uuid)
        if node is None:
            return None
        for storage in node.record.storages:
            if storage.id == storage_id:
                return storage.number
        return None

    def is_alive(self, node: LiveDataNode) -> bool:
        return self._now_s() - node.heard_s < self.dead_after_s

    def is_stale(self, node: LiveDataNode) -> bool:
        return self._now_s() - node.heard_s >= self.stale_after_s

    # What DataNodes say.

    def put(self, record: DataNode) -> LiveDataNode:
        """A DataNode that there is, by its row; it need not have been heard of."""
        node = self._nodes.get(record.uuid)
        if node is None:
            node = self._nodes[record.uuid] = LiveDataNode(record, self._now_s())
        node.record = record
        for storage in record.storages:
            self._storages[storage.number] = (node, storage)
        self._refresh(node)
        return node

    def register(self, record: DataNode) -> None:
        """A DataNode has come, or come back, and is about to report what it has."""
        node = self.put(record)
        node.is_registered, node.registered_s = True, self._now_s()
        node.reported.clear()
        node.transfers.clear()
        self._refresh(node)

    def hear(
        self,
        node: LiveDataNode,
        now_ms: int,
        usage: dict[str, StorageUsage],
        xceivers: int,
        failed_volumes: int,
    ) -> None:
        """A heartbeat."""
        node.heard_s, node.heard_ms = self._now_s(), now_ms
        node.usage = usage
        node.xceivers = xceivers
        node.failed_volumes = failed_volumes
        self._roll_scheduled()
        self._refresh(node)

    def note_replica(self, storage: StorageNumber, block_id: int) -> None:
        """A replica was reported, and that is on disk: what was promised for it is used."""
        promised = self._scheduled.get(storage)
        if promised is not None:
            promised.take_one()
        for tell in self._waiting.pop(block_id, ()):
            tell()

    @property
    def has_waiting(self) -> bool:
        """Whether anybody waits for a replica to be reported."""
        return bool(self._waiting)

    def when_reported(self, block_id: int, tell: Callable[[], None]) -> None:
        """Be told once when the next replica of a block is reported to this NameNode."""
        self._waiting.setdefault(block_id, []).append(tell)

    def stop_waiting(self, block_id: int, tell: Callable[[], None]) -> None:
        waiting = self._waiting.get(block_id, [])
        if tell in waiting:
            waiting.remove(tell)
            if not waiting:
                del self._waiting[block_id]

    def find_dead(self) -> list[LiveDataNode]:
        """Those that were not heard of for too long, and are still counted among the living."""
        return [
            node
            for node in self._nodes.values()
            if not self.is_alive(node) and not node.record.is_dead
        ]

    def refresh_all(self) -> None:
        """Time has passed: some may have become stale or dead."""
        for node in self._nodes.values():
            self._refresh(node)

    # Choices.

    def chooser(
        self,
        address: str,
        path: FsPath,
        *,
        excluded: Collection[str] = (),
        favored: Sequence[str] = (),
        existing: Sequence[StorageNumber] = (),
        flags: int = 0,
        count: int | None = None,
    ) -> ChooseTargets:
        """Chooses storages for a block that a client at `address` writes."""

        def choose(file: Inode) -> tuple[StorageNumber, ...]:
            placement = choose_targets(
                self._cluster,
                file.replication if count is None else count,
                policy=self.policy_of(file),
                block_size_bytes=file.block_size_bytes,
                random=self.random,
                writer=self.place_of(address),
                existing=self.targets(existing),
                excluded=excluded,
                favored=favored,
                is_new_block=not existing,
                no_local_write=bool(flags & NO_LOCAL_WRITE),
            )
            if not placement.targets:
                nobody = "no" if not excluded else str(len(excluded))
                raise IOException(
                    f"File {path} could only be written to 0 of the 1 minReplication nodes. There"
                    f" are {len(self._cluster.nodes)} datanode(s) running and {nobody} node(s) are"
                    f" excluded in this operation. ({placement.explain()})"
                )
            numbers = []
            for target in placement.targets:
                number = self.number_of(target.node.uuid, target.storage.storage_id)
                assert number is not None, "only storages with a number are chosen from"
                self._schedule(number, file.block_size_bytes)
                numbers.append(number)
            return tuple(numbers)

        return choose

    def policy_of(self, file: Inode) -> StoragePolicy:
        """The storage policy of a file: until files have one, the default."""
        return DEFAULT

    def locate(self, storages: Iterable[int], reader: str = "") -> list[Located]:
        """Storages with their DataNodes, the best for this reader first; the dead left out."""
        found = [located for located in map(self._located, storages) if located is not None]
        alive = [located for located in found if located.view.is_alive]
        if len(alive) < 2:
            return alive
        return sort_by_distance(self.place_of(reader), alive, self.random)

    def locate_in_order(self, storages: Iterable[int]) -> list[Located]:
        """The same for a pipeline: in the given order, dead or alive."""
        return [located for located in map(self._located, storages) if located is not None]

    def place_of(self, address: str) -> Place | None:
        """Where a client is: on a DataNode, or nobody knows."""
        if not address:
            return None
        local = [n for n in self._cluster.nodes if n.address.rpartition(":")[0] == address]
        if local:
            return self.random.choice(local)
        return Location(DEFAULT_RACK) if self._cluster.nodes else None

    def targets(self, storages: Iterable[int]) -> list[Target]:
        """Storages as choices know them."""
        return [
            Target(located.view, view)
            for located in self.locate_in_order(storages)
            for view in located.view.storages
            if view.storage_id == located.storage.id
        ]

    def _located(self, number: int) -> Located | None:
        found = self._storages.get(number)
        if found is None:
            return None
        node, storage = found
        view = self._cluster.node(node.record.uuid) or self._view(node)
        return Located(node.record, storage, node.usage.get(storage.id, _UNKNOWN), view)

    def _schedule(self, number: int, size_bytes: int) -> None:
        self._scheduled.setdefault(number, Promised()).add(size_bytes)
        node, _ = self._storages[number]
        self._refresh(node)

    def _roll_scheduled(self) -> None:
        now_s = self._now_s()
        if now_s - self._rolled_s >= SCHEDULED_ROLL_S:
            self._scheduled_before, self._scheduled = self._scheduled, {}
            self._rolled_s = now_s

    def _refresh(self, node: LiveDataNode) -> None:
        self._cluster = self._cluster.with_node(self._view(node))

    def _view(self, node: LiveDataNode) -> DataNodeView:
        record = node.record
        return DataNodeView(
            uuid=record.uuid,
            address=record.transfer_address,
            storages=tuple(self._storage_view(node, storage) for storage in record.storages),
            rack=record.rack,
            admin_state=record.admin_state,
            is_alive=self.is_alive(node) and bool(node.usage),
            is_stale=self.is_stale(node),
            xceivers=node.xceivers,
            transfers_queued=len(node.transfers),
        )

    def _storage_view(self, node: LiveDataNode, storage: Storage) -> StorageView:
        usage = node.usage.get(storage.id)
        promised = [self._scheduled.get(storage.number), self._scheduled_before.get(storage.number)]
        return StorageView(
            storage_id=storage.id,
            type=storage.type,
            capacity_bytes=0 if usage is None else usage.capacity_bytes,
            remaining_bytes=0 if usage is None else usage.remaining_bytes,
            scheduled_bytes=sum(each.bytes for each in promised if each is not None),
            state=StorageState.FAILED if usage is None or usage.has_failed else StorageState.NORMAL,
            contents_are_stale=storage.number not in node.reported,
        )


_UNKNOWN = StorageUsage()
