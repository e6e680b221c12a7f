"""The DataNodes as this NameNode sees them: who is alive, how full, how busy, and where.

Rows say which DataNodes and storages there are (`blocks.registration`); what is here comes
from heartbeats, is gone with the process, and is there again a heartbeat later.

Invariant: `cluster` has exactly the DataNodes that were heard of within `dead_after_s`, as
of the last heartbeat or `refresh_all`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from random import Random

import msgspec

from cairnfs.blocks.placement import Target, choose_targets
from cairnfs.blocks.policies import DEFAULT, policy_by_id
from cairnfs.blocks.records import AdminState, Block, DataNode, Storage, StorageNumber
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
from cairnfs.namenode.promises import Promises
from cairnfs.namesystem.file_blocks import ChooseTargets
from cairnfs.namesystem.inodes import Inode
from cairnfs.namesystem.paths import FsPath

STALE_AFTER_S = 30.0  # dfs.namenode.stale.datanode.interval
DEAD_AFTER_S = 630.0  # twice the recheck interval of 5 minutes, and ten heartbeats

RECORDS_READ_AGAIN_S = 10.0  # other NameNodes register DataNodes, and let them leave

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


class ReportLease(msgspec.Struct, frozen=True, gc=False):
    """The permission to send a full report, which is made after it was given."""

    id: int
    granted_s: float
    as_of: int  # the TxID when it was given


@dataclass(slots=True, eq=False)
class LiveDataNode:
    """One DataNode, from its heartbeats."""

    record: DataNode
    heard_s: float  # when it was last heard of, by the monotonic clock
    heard_ms: int = 0  # the same for people
    is_heard: bool = False  # ever, by this NameNode
    usage: dict[str, StorageUsage] = field(default_factory=dict)  # by storage id
    xceivers: int = 0
    failed_volumes: int = 0
    reported: set[StorageNumber] = field(default_factory=set)  # in full, since it registered
    transfers: list[Transfer] = field(default_factory=list)
    moves: list[Transfer] = field(default_factory=list)
    bandwidth_bytes_per_s: int = 0  # for moves, if it has to be told so
    told: dict[tuple[int, int], float] = field(default_factory=dict)  # deletions, and when
    registered_at: tuple[str, int, int] | None = None  # its address and ports, if it has
    registered_s: float = 0.0  # when it came: it knows of nothing that was ordered before
    registered_txid: int = 0
    lease: ReportLease | None = None
    is_displaced: bool = False  # another one is at its address
    is_given_up: bool = False  # its blocks are made anew elsewhere
    given_up: dict[StorageNumber, float] = field(default_factory=dict)  # lost volumes; since when

    def sum(self, part: Callable[[StorageUsage], int]) -> int:
        return sum(part(usage) for usage in self.usage.values())

    def number_of(self, storage_id: str) -> StorageNumber | None:
        for storage in self.record.storages:
            if storage.id == storage_id:
                return storage.number
        return None

    def has_failed(self, storage: Storage) -> bool:
        """Whether a volume is broken, or not there any more."""
        usage = self.usage.get(storage.id)
        return usage is None or usage.has_failed


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
        self.now_s = now_s
        self.changes = 0  # DataNodes that came, went, reported: there may be something to do
        self.block_ids_end = 0  # no block had this id, or a greater one, not long ago
        self._nodes: dict[str, LiveDataNode] = {}
        self._storages: dict[int, tuple[LiveDataNode, Storage]] = {}
        self._by_host: dict[str, set[str]] = {}  # uuids, by address
        self._cluster = ClusterView.of(())
        self._promises = Promises(now_s)
        self._records_read_s = now_s()
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
        return None if node is None else node.number_of(storage_id)

    def is_alive(self, node: LiveDataNode) -> bool:
        return node.is_heard and not self.is_silent(node)

    def is_silent(self, node: LiveDataNode) -> bool:
        """Whether it was not heard of for so long that it is taken for dead."""
        return node.is_displaced or self.now_s() - node.heard_s >= self.dead_after_s

    def is_stale(self, node: LiveDataNode) -> bool:
        return self.now_s() - node.heard_s >= self.stale_after_s

    def is_readable(self, number: StorageNumber) -> bool:
        """Whether what rows say of a storage can be read there now, for certain."""
        found = self._storages.get(number)
        if found is None:
            return False
        node, storage = found
        return number in node.reported and self.is_alive(node) and not node.has_failed(storage)

    def is_given_up(self, number: StorageNumber) -> bool:
        """Whether what was on a storage is made anew: its DataNode is dead, or it broke."""
        found = self._storages.get(number)
        if found is None:
            return False
        node, storage = found
        if node.is_given_up and not self.is_alive(node):
            return True
        return number in node.given_up and node.has_failed(storage)

    # What DataNodes say.

    def put(self, record: DataNode) -> LiveDataNode:
        """A DataNode that there is, by its row; it need not have been heard of."""
        node = self._nodes.get(record.uuid)
        if node is None:
            node = self._nodes[record.uuid] = LiveDataNode(record, self.now_s())
        elif node.record == record:
            return node
        self._by_host.get(node.record.ip_address, set()).discard(record.uuid)
        self._by_host.setdefault(record.ip_address, set()).add(record.uuid)
        for storage in node.record.storages:
            self._storages.pop(storage.number, None)
        node.record = record
        for storage in record.storages:
            self._storages[storage.number] = (node, storage)
        self.changes += 1
        self._refresh(node)
        return node

    def register(self, record: DataNode, txid: int) -> None:
        """A DataNode has come, or come back, and is about to report what it has.

        Another one that was at the same address is there no more: as in HDFS, a node whose
        disks were replaced comes with a new identity.
        """
        node = self.put(record)
        node.registered_at = (record.ip_address, record.transfer_port, record.ipc_port)
        node.registered_s, node.registered_txid = self.now_s(), txid
        node.lease = None
        node.heard_s = self.now_s()
        node.is_given_up = node.is_displaced = False
        for memory in (node.reported, node.transfers, node.moves, node.told, node.given_up):
            memory.clear()
        self._refresh(node)
        for other in list(self._nodes.values()):
            if other is not node and other.record.transfer_address == record.transfer_address:
                other.is_displaced = True
                other.registered_at = None
                self._refresh(other)

    def hear(
        self,
        node: LiveDataNode,
        now_ms: int,
        usage: dict[str, StorageUsage],
        xceivers: int,
        failed_volumes: int,
    ) -> None:
        """A heartbeat."""
        before = self._cluster.node(node.record.uuid)
        node.heard_s, node.heard_ms, node.is_heard = self.now_s(), now_ms, True
        node.usage = usage
        # A volume that comes back may not have all that it had.
        node.reported -= {each.number for each in node.record.storages if node.has_failed(each)}
        node.xceivers = xceivers
        node.failed_volumes = failed_volumes
        self._promises.expire()
        self._refresh(node)
        self.changes += _can_do_more(before, self._cluster.node(node.record.uuid))

    def must_refresh_records(self) -> bool:
        """Whether it is time to read what other NameNodes have put down; says so once."""
        now_s = self.now_s()
        is_due = now_s - self._records_read_s >= RECORDS_READ_AGAIN_S
        if is_due:
            self._records_read_s = now_s
        return is_due

    def note_report(self, node: LiveDataNode, storages: Collection[StorageNumber]) -> None:
        """A DataNode has said all that it has on these storages."""
        node.reported.update(storages)
        self.changes += 1
        self._refresh(node)

    def note_replica(self, storage: StorageNumber, block_id: int) -> None:
        """A replica was reported, and that is on disk: what was promised for it is used."""
        self._promises.keep(storage)
        self.tell_waiting(block_id)

    def tell_waiting(self, block_id: int) -> None:
        """Tell those who wait for a replica of this block that there is one."""
        for tell in self._waiting.pop(block_id, ()):
            tell()

    @property
    def awaited(self) -> Collection[int]:
        """The blocks of which somebody waits for a replica to be reported."""
        return self._waiting.keys()

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
        """Those that were not heard of for too long, and were not given up yet.

        One that is in maintenance is expected back.
        """
        return [
            node
            for node in self._nodes.values()
            if not node.is_given_up
            and self.is_silent(node)
            and node.record.admin_state is not AdminState.IN_MAINTENANCE
        ]

    def refresh_all(self) -> None:
        """Time has passed: some may have become stale or dead."""
        for node in self._nodes.values():
            view = self._cluster.node(node.record.uuid)
            is_alive = self.is_alive(node)
            if (view is not None) != is_alive or (
                view is not None and view.is_stale != self.is_stale(node)
            ):
                self.changes += (view is not None) != is_alive
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

        promised: list[StorageNumber] = []

        def choose(file: Inode, policy_id: int) -> tuple[StorageNumber, ...]:
            while promised:  # an operation may run again: then nobody was told
                self._promises.withdraw(promised.pop(), file.block_size_bytes)
            placement = choose_targets(
                self._cluster,
                file.replication if count is None else count,
                policy=policy_by_id(policy_id) or DEFAULT,
                block_size_bytes=file.block_size_bytes,
                random=self.random,
                writer=self.place_of(address),
                existing=self.targets(existing),
                excluded=excluded,
                favored=favored,
                is_new_block=not existing,
                no_local_write=bool(flags & NO_LOCAL_WRITE),
            )
            if not placement.targets and existing:
                return ()  # as HDFS says it; whether to go on with fewer is for the client
            if not placement.targets:
                nobody = "no" if not excluded else str(len(excluded))
                reason = placement.explain() if self._cluster.nodes else "start a DataNode"
                raise IOException(
                    f"File {path} could only be written to 0 of the 1 minReplication nodes. There"
                    f" are {len(self._cluster.nodes)} datanode(s) running and {nobody} node(s) are"
                    f" excluded in this operation. ({reason})"
                )
            promised.extend(self.numbers(placement.targets))
            self.promise(promised, file.block_size_bytes)
            return tuple(promised)

        return choose

    def promise(self, storages: Iterable[StorageNumber], size_bytes: int) -> None:
        """So much is going to be written to each of these storages."""
        for number in storages:
            self._promises.add(number, size_bytes)
            self._refresh(self._storages[number][0])

    def order(self, node: LiveDataNode, transfer: Transfer) -> None:
        """Have a DataNode make a copy."""
        node.transfers.append(transfer)
        self._refresh(node)
        numbers = [target.storage.number for target in transfer.targets]
        self.promise(numbers, transfer.block.replica_bytes)

    def order_move(self, node: LiveDataNode, move: Transfer) -> None:
        """Have a DataNode give a replica away, or take it to another of its volumes."""
        node.moves.append(move)
        self.promise([target.storage.number for target in move.targets], move.block.replica_bytes)

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
        found = (self._cluster.node(uuid) for uuid in sorted(self._by_host.get(address, ())))
        local = [node for node in found if node is not None]
        if local:
            return self.random.choice(local)
        return Location(DEFAULT_RACK) if self._cluster.nodes else None

    def numbers(self, targets: Iterable[Target]) -> list[StorageNumber]:
        """The storages that were chosen, by number."""
        found = (self.number_of(each.node.uuid, each.storage.storage_id) for each in targets)
        return [number for number in found if number is not None]

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
            is_alive=self.is_alive(node),
            is_stale=self.is_stale(node),
            xceivers=node.xceivers,
            transfers_queued=len(node.transfers),
        )

    def _storage_view(self, node: LiveDataNode, storage: Storage) -> StorageView:
        usage = node.usage.get(storage.id, _UNKNOWN)
        return StorageView(
            storage_id=storage.id,
            type=storage.type,
            capacity_bytes=usage.capacity_bytes,
            remaining_bytes=usage.remaining_bytes,
            scheduled_bytes=self._promises.bytes_on(storage.number),
            state=StorageState.FAILED if node.has_failed(storage) else StorageState.NORMAL,
            contents_are_stale=storage.number not in node.reported,
            used_bytes=usage.used_bytes,
        )


def _can_do_more(before: DataNodeView | None, now: DataNodeView | None) -> bool:
    """Whether a DataNode has come, was silent and is heard again, or has another volume."""
    if now is None:
        return False
    if before is None or before.is_stale:
        return True
    working = {each.storage_id for each in before.storages if each.state is StorageState.NORMAL}
    return any(
        each.state is StorageState.NORMAL and each.storage_id not in working
        for each in now.storages
    )


_UNKNOWN = StorageUsage()
