"""What there is to know of a NameNode at one moment, for whoever shows it.

Gathered when somebody asks, from what the NameNode knows anyway; only the totals of the root are
read from the store.  Rows that have to be counted one by one are counted rarely.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from cairnfs.blocks.records import AdminState, CheckQueue
from cairnfs.errors import HdfsError
from cairnfs.namenode.datanodes import LiveDataNode, StorageUsage
from cairnfs.namenode.namenode import NameNode
from cairnfs.namenode.rationed import Rationed
from cairnfs.namenode.server import RpcServer
from cairnfs.namenode.troubled_blocks import LOW_REDUNDANCY
from cairnfs.namesystem.inodes import ROOT_ID
from cairnfs.observe.process import ProcessFacts
from cairnfs.store.base import Count, Reading, Store
from cairnfs.store.schema import Table

log = logging.getLogger(__name__)

COUNTED_FOR_S = 60.0  # a number of rows is shown for so long before they are counted again


@dataclass(frozen=True, slots=True)
class DataNodeFacts:
    """One DataNode, from its row and its last heartbeat."""

    uuid: str
    name: str  # its host and port
    address: str
    info_address: str
    rack: str
    version: str
    admin_state: AdminState
    is_alive: bool
    is_stale: bool
    silent_s: float
    capacity_bytes: int
    used_bytes: int
    remaining_bytes: int
    non_dfs_bytes: int
    xceivers: int
    failed_volumes: int


@dataclass(slots=True)
class NameNodeFacts:
    """See the module's text."""

    process: ProcessFacts
    datanodes: list[DataNodeFacts]
    queues: dict[CheckQueue, int]  # blocks that are not as they should be
    copies_pending: int
    connections: int
    calls_under_way: int
    calls_waiting: int
    lag_s: float  # how long the event loop lets us wait
    is_in_safe_mode: bool
    safe_mode: str  # in words
    duties: frozenset[str]  # those that are ours
    is_store_up: bool = True
    last_txid: int = 0
    counts: tuple[int, ...] = (0,) * len(Count)  # of the whole namespace
    rows: dict[Table, int] = field(default_factory=dict)

    @property
    def live(self) -> list[DataNodeFacts]:
        return [node for node in self.datanodes if node.is_alive]

    @property
    def dead(self) -> list[DataNodeFacts]:
        return [node for node in self.datanodes if not node.is_alive]

    @property
    def low_redundancy(self) -> int:
        return sum(self.queues[queue] for queue in LOW_REDUNDANCY)

    @property
    def files_and_directories(self) -> int:
        return self.counts[Count.INODES] + 1  # and the root

    def in_state(self, *states: AdminState, alive: bool | None = None) -> list[DataNodeFacts]:
        return [
            node
            for node in self.datanodes
            if node.admin_state in states and alive in (None, node.is_alive)
        ]

    def sum(self, part: Callable[[DataNodeFacts], int]) -> int:
        """Of those that are alive."""
        return sum(map(part, self.live))


class NameNodeObserver:
    """Gathers the facts of one NameNode, in its event loop."""

    def __init__(self, namenode: NameNode, server: RpcServer) -> None:
        self.namenode = namenode
        self.server = server
        self._rows = RowCounts(namenode.store)

    async def gather(self) -> NameNodeFacts:
        namenode, server = self.namenode, self.server
        asked_s = time.monotonic()
        await asyncio.sleep(0)
        lag_s = time.monotonic() - asked_s
        facts = NameNodeFacts(
            process=ProcessFacts.gather(),
            datanodes=[_describe(namenode, node) for node in namenode.datanodes],
            queues=dict(namenode.redundancy.lengths),
            copies_pending=namenode.redundancy.copies_pending,
            connections=server.open_connections,
            calls_under_way=server.calls_under_way,
            calls_waiting=server.calls_waiting,
            lag_s=lag_s,
            is_in_safe_mode=namenode.safe_mode.is_on,
            safe_mode=namenode.safe_mode.describe() if namenode.safe_mode.is_on else "",
            duties=frozenset(filter(namenode.membership.holds, namenode.duties.owned)),
        )
        try:
            facts.queues = dict(await namenode.troubled_blocks.queues())
            found = await namenode.store.read(Reading(totals=[ROOT_ID]))
            if ROOT_ID in found.totals:
                facts.counts = found.totals[ROOT_ID].counts
            facts.last_txid = await namenode.store.last_txid()
            facts.rows = await self._rows.get()
        except HdfsError as error:
            log.info("nothing is known of the store: %s", error)
            facts.is_store_up = False
        return facts


class RowCounts(Rationed[dict[Table, int]]):
    """How many rows some tables have, as of a short while ago."""

    TABLES = (
        Table.BLOCKS,
        Table.LEASES,
        Table.INVALIDATIONS,
        Table.SNAPSHOTTABLE,
        Table.SNAPSHOTS,
        Table.REMOVALS,
        Table.ORPHANS,
    )

    def __init__(self, store: Store, clock_s: Callable[[], float] = time.monotonic) -> None:
        """Nothing is known until all have been counted once."""
        super().__init__(self._count, {}, kept_for_s=COUNTED_FOR_S, clock_s=clock_s)
        self._store = store

    async def _count(self) -> dict[Table, int]:
        return {table: await self._store.count_rows(table) for table in self.TABLES}


def _describe(namenode: NameNode, node: LiveDataNode) -> DataNodeFacts:
    record, datanodes = node.record, namenode.datanodes

    def total(part: Callable[[StorageUsage], int]) -> int:
        return node.sum(part)

    return DataNodeFacts(
        uuid=record.uuid,
        name=f"{record.host_name}:{record.transfer_port}",
        address=record.transfer_address,
        info_address=f"{record.ip_address}:{record.info_port}",
        rack=record.rack,
        version=record.software_version,
        admin_state=record.admin_state,
        is_alive=datanodes.is_alive(node),
        is_stale=datanodes.is_stale(node),
        silent_s=datanodes.now_s() - node.heard_s,
        capacity_bytes=total(lambda usage: usage.capacity_bytes),
        used_bytes=total(lambda usage: usage.used_bytes),
        remaining_bytes=total(lambda usage: usage.remaining_bytes),
        non_dfs_bytes=total(lambda usage: usage.non_dfs_used_bytes),
        xceivers=node.xceivers,
        failed_volumes=node.failed_volumes,
    )
