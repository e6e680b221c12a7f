"""The redundancy duty: every block has as many good replicas as its file asks for.

CHECKS names the blocks to look at.  Each step takes a page of them, asks `plan_block`
what to do, and does it: copies are queued as commands for DataNodes, replicas to be
deleted become rows in INVALIDATIONS.  A block leaves CHECKS when there is nothing to do.

Copies under way are known to the NameNode that has the duty, and to nobody else: when
another one takes over it may order a copy twice, and then has one replica too many, which
is found and deleted.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec

from cairnfs.blocks.placement import Target
from cairnfs.blocks.records import (
    AdminState,
    Block,
    BlockId,
    BlockState,
    Check,
    DataNode,
    Invalidation,
    ReplicaStatus,
    StorageNumber,
    check_key,
)
from cairnfs.blocks.registration import list_datanodes, set_admin_state, set_dead
from cairnfs.blocks.replication import (
    BlockPlan,
    BlockView,
    Copy,
    Integrity,
    ReplicaView,
    plan_block,
)
from cairnfs.blocks.reports import put_checks
from cairnfs.clock import Clock
from cairnfs.errors import IOException
from cairnfs.namenode.datanodes import DataNodes, LiveDataNode, Transfer
from cairnfs.namenode.safe_mode import SafeMode
from cairnfs.namesystem.redundancy import (
    BlockFacts,
    drop_replicas,
    finish_check,
    inspect_block,
)
from cairnfs.store.base import Reading, Scan, Store
from cairnfs.store.schema import NUMBER, Table
from cairnfs.transaction.calls import Call
from cairnfs.transaction.records import decode
from cairnfs.transaction.runner import Runner, run

log = logging.getLogger(__name__)

REDUNDANCY = "redundancy"

CHECKS_PAGE = 200  # blocks looked at in one step
INVALIDATIONS_PAGE = 1000  # replicas of one storage to be deleted
GRACE_MS = 3_000  # the other DataNodes of a pipeline are given so long to report
COPY_LIMIT_S = 300.0  # dfs.namenode.reconstruction.pending.timeout-sec
TELL_AGAIN_S = 30.0  # a deletion that was not reported: the DataNode may have been restarted


class PendingCopy(msgspec.Struct, frozen=True, gc=False):
    """A copy that was ordered."""

    source: str
    targets: tuple[StorageNumber, ...]
    ordered_s: float


class Redundancy:
    """See the module's text.  `step` is for `Duties`."""

    def __init__(
        self,
        runner: Runner,
        store: Store,
        datanodes: DataNodes,
        safe_mode: SafeMode,
        clock: Clock,
        *,
        excluded_hosts_file: str = "",
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._runner = runner
        self._store = store
        self._datanodes = datanodes
        self._safe_mode = safe_mode
        self._clock = clock
        self._now_s = now_s
        self._excluded_hosts_file = excluded_hosts_file
        self._excluded: frozenset[str] = frozenset()
        self._after = b""  # where the next page of CHECKS begins
        self._pending: dict[BlockId, PendingCopy] = {}
        self._told: dict[tuple[int, BlockId], float] = {}  # invalidations, and when told last
        self.waiting = 0  # blocks in CHECKS that could not be helped, in the last round
        self.missing = 0  # of those, without any good replica
        self._waiting_now = 0
        self._missing_now = 0

    async def load(self) -> None:
        """Learn which DataNodes there are, and which are to leave."""
        self.read_excluded_hosts()
        after = b""
        while page := await run(self._runner, Call(list_datanodes, (after,))):
            for record in page:
                self._datanodes.put(record)
            after = page[-1].uuid.encode()

    def read_excluded_hosts(self) -> None:
        """Read the list of DataNodes that are to leave; it is acted on in the next steps."""
        if not self._excluded_hosts_file:
            return
        try:
            lines = Path(self._excluded_hosts_file).read_text().splitlines()
        except OSError as error:
            raise IOException(
                f"The list of excluded hosts, {self._excluded_hosts_file}, cannot be read:"
                f" {error.strerror}; it is as it was"
            ) from None
        entries = (line.partition("#")[0].strip() for line in lines)
        self._excluded = frozenset(entry for entry in entries if entry)

    async def step(self) -> int:
        """One round over a page of blocks; more than 0 if there is more to do at once."""
        self._datanodes.refresh_all()
        if self._safe_mode.is_on:
            return 0
        await self._give_up_the_dead()
        await self._take_back_the_returned()
        await self._tell_invalidations()
        await self._decommission()
        return await self._check_page()

    # DataNodes.

    async def _give_up_the_dead(self) -> None:
        for node in self._datanodes.find_dead():
            log.warning(
                "DataNode %s was not heard of for %.0f s: its replicas are made anew elsewhere",
                node.record.transfer_address,
                self._datanodes.dead_after_s,
            )
            await self.check_all_of(node)
            record: DataNode = await run(self._runner, Call(set_dead, (node.record.uuid, True)))
            self._datanodes.put(record)
            node.is_registered = False
            node.transfers.clear()

    async def _take_back_the_returned(self) -> None:
        for node in self._datanodes.find_returned():
            log.info("DataNode %s is back", node.record.transfer_address)
            # What it has was made anew meanwhile: there may be too much of it.
            await self.check_all_of(node)
            record: DataNode = await run(self._runner, Call(set_dead, (node.record.uuid, False)))
            self._datanodes.put(record)

    async def _decommission(self) -> None:
        """Let DataNodes leave that are excluded, and stay that are not any more."""
        for node in self._datanodes:
            state = node.record.admin_state
            if self._is_excluded(node.record):
                if state is AdminState.NORMAL:
                    await self._set_admin_state(node, AdminState.DECOMMISSION_INPROGRESS)
                    await self.check_all_of(node)
                elif state is AdminState.DECOMMISSION_INPROGRESS and await self._is_drained(node):
                    await self._set_admin_state(node, AdminState.DECOMMISSIONED)
            elif state in (AdminState.DECOMMISSION_INPROGRESS, AdminState.DECOMMISSIONED):
                await self._set_admin_state(node, AdminState.NORMAL)
                await self.check_all_of(node)

    def _is_excluded(self, record: DataNode) -> bool:
        if not self._excluded:
            return False
        names = (record.host_name, record.ip_address)
        ports = (f"{name}:{record.transfer_port}" for name in names)
        return not self._excluded.isdisjoint((*names, *ports))

    async def _set_admin_state(self, node: LiveDataNode, state: AdminState) -> None:
        record: DataNode = await run(self._runner, Call(set_admin_state, (node.record.uuid, state)))
        self._datanodes.put(record)
        log.info("DataNode %s is %s", record.transfer_address, state.name)

    async def _is_drained(self, node: LiveDataNode) -> bool:
        """Whether no block of a DataNode that leaves is still to be looked at."""
        for storage in node.record.storages:
            after = b""
            while True:
                scan = Scan(Table.REPLICAS, storage.number, after, CHECKS_PAGE)
                rows = (await self._store.read(Reading(scans=[scan]))).scans[scan]
                keys = [check_key(NUMBER.unpack(row.key[2])[0]) for row in rows]
                if (await self._store.read(Reading(keys=keys))).rows:
                    return False
                if len(rows) < CHECKS_PAGE:
                    break
                after = rows[-1].key[2]
        return True

    async def check_all_of(self, node: LiveDataNode) -> None:
        """Have all blocks of a DataNode looked at."""
        for storage in node.record.storages:
            after = b""
            while True:
                after = await run(self._runner, Call(put_checks, (storage.number, after)))
                if not after:
                    break

    async def _tell_invalidations(self) -> None:
        """Queue the deletions of each storage whose DataNode can be told."""
        now_s = self._now_s()
        told, self._told = self._told, {}
        scans: dict[Scan, LiveDataNode] = {}
        for node in self._datanodes:
            if node.is_registered and self._datanodes.is_alive(node):
                for storage in node.record.storages:
                    scan = Scan(Table.INVALIDATIONS, storage.number, b"", INVALIDATIONS_PAGE)
                    scans[scan] = node
        if not scans:
            return
        found = await self._store.read(Reading(scans=list(scans)))
        for scan, rows in found.scans.items():
            node = scans[scan]
            for row in rows:
                block_id = BlockId(NUMBER.unpack(row.key[2])[0])
                told_s = self._told[scan.a, block_id] = told.get((scan.a, block_id), -math.inf)
                if now_s - told_s >= TELL_AGAIN_S:
                    self._told[scan.a, block_id] = now_s
                    invalidation: Invalidation = decode(Table.INVALIDATIONS, row.data)
                    node.invalidations[block_id] = Block(
                        block_id, invalidation.generation_stamp, 0, BlockState.COMPLETE
                    )

    # Blocks.

    async def _check_page(self) -> int:
        scan = Scan(Table.CHECKS, 0, self._after, CHECKS_PAGE)
        found = await self._store.read(Reading(scans=[scan]))
        rows = found.scans[scan]
        if not rows and not self._after:
            self.waiting = self.missing = 0
            return 0
        done = 0
        now_ms = self._clock.now_ms()
        for row in rows:
            check: Check = decode(Table.CHECKS, row.data)
            if now_ms - check.since_ms >= GRACE_MS:
                done += await self._check(BlockId(NUMBER.unpack(row.key[2])[0]))
        if len(rows) == CHECKS_PAGE:
            self._after = rows[-1].key[2]
            return CHECKS_PAGE
        self._after = b""
        self.waiting, self._waiting_now = self._waiting_now, 0
        self.missing, self._missing_now = self._missing_now, 0
        return 0

    async def _check(self, block_id: BlockId) -> bool:
        """Look at one block, and do what can be done; whether it is well."""
        facts: BlockFacts | None = await run(self._runner, Call(inspect_block, (block_id,)))
        if facts is None:
            await run(self._runner, Call(finish_check, (block_id,)))
            self._pending.pop(block_id, None)
            return True
        view = self._view(facts)
        if facts.block.state is not BlockState.COMPLETE:
            return False
        plan = plan_block(view, self._datanodes.cluster, self._datanodes.random)
        if plan.copy is not None:
            self._order(facts, plan.copy)
        await self._drop(facts, view, plan)
        is_well = plan.priority is None and not view.pending and plan.is_empty
        if is_well and not _is_postponed(view):
            await run(self._runner, Call(finish_check, (block_id,)))
            return True
        self._waiting_now += 1
        if not any(replica.integrity is Integrity.GOOD for replica in view.replicas):
            self._missing_now += 1
        return False

    def _view(self, facts: BlockFacts) -> BlockView:
        """The block as plans know it."""
        replicas = []
        have: set[str] = set()
        good: set[str] = set()
        for storage, replica in facts.replicas:
            for target in self._datanodes.targets([storage]):
                have.add(target.node.uuid)
                integrity = Integrity.GOOD
                if replica.status is ReplicaStatus.CORRUPT:
                    integrity = Integrity.CORRUPT
                elif replica.generation_stamp != facts.block.generation_stamp:
                    integrity = Integrity.OUTDATED
                if integrity is Integrity.GOOD and target.node.is_alive:
                    good.add(target.node.uuid)
                is_excess = replica.status is ReplicaStatus.EXCESS
                replicas.append(ReplicaView(target.node, target.storage, integrity, is_excess))
        return BlockView(
            length_bytes=facts.block.length_bytes,
            replication=facts.file.replication,
            policy=self._datanodes.policy_of(facts.file),
            replicas=tuple(replicas),
            state=facts.block.state,
            pending=self._pending_targets(facts.block.id, have, good),
            deleting=frozenset(
                located.uuid for located in self._datanodes.locate_in_order(facts.deleting)
            ),
        )

    def _pending_targets(
        self, block_id: BlockId, have: set[str], good: set[str]
    ) -> tuple[Target, ...]:
        """The copies to come."""
        pending = self._pending.get(block_id)
        if pending is None:
            return ()
        left: tuple[Target, ...] = ()
        is_late = self._now_s() - pending.ordered_s > COPY_LIMIT_S
        if not is_late and pending.source in good and self._is_at_it(pending, pending.source):
            # By node: a DataNode may have put it on another of its volumes.
            left = tuple(
                target
                for target in self._datanodes.targets(pending.targets)
                if target.node.uuid not in have and self._is_at_it(pending, target.node.uuid)
            )
        if not left:
            del self._pending[block_id]
        return left

    def _is_at_it(self, pending: PendingCopy, uuid: str) -> bool:
        """Whether a DataNode is alive, and was not restarted since the copy was ordered."""
        node = self._datanodes.get(uuid)
        return (
            node is not None
            and self._datanodes.is_alive(node)
            and node.registered_s <= pending.ordered_s
        )

    def _order(self, facts: BlockFacts, copy: Copy) -> None:
        node = self._datanodes.get(copy.source.uuid)
        numbers = tuple(self._numbers(copy.targets))
        if node is None or not numbers:
            return
        targets = tuple(self._datanodes.locate_in_order(numbers))
        node.transfers.append(Transfer(facts.block, targets))
        self._pending[facts.block.id] = PendingCopy(copy.source.uuid, numbers, self._now_s())
        log.info(
            "%s is copied from %s to %s",
            facts.block,
            node.record.transfer_address,
            ", ".join(target.datanode.transfer_address for target in targets),
        )

    async def _drop(self, facts: BlockFacts, view: BlockView, plan: BlockPlan) -> None:
        dropped = {
            number
            for replica in (*plan.deletions, *plan.invalidations)
            if (number := self._number(replica.uuid, replica.storage.storage_id)) is not None
        }
        if not dropped:
            return
        kept = [
            number
            for replica in view.replicas
            if replica.integrity is Integrity.GOOD
            and replica.node.is_alive
            and (number := self._number(replica.uuid, replica.storage.storage_id)) is not None
            and number not in dropped
        ]
        if not kept:
            return
        await run(
            self._runner, Call(drop_replicas, (facts.block.id, sorted(dropped), sorted(kept)))
        )

    def _numbers(self, targets: Iterable[Target]) -> list[StorageNumber]:
        found = (self._number(each.node.uuid, each.storage.storage_id) for each in targets)
        return [number for number in found if number is not None]

    def _number(self, uuid: str, storage_id: str) -> StorageNumber | None:
        return self._datanodes.number_of(uuid, storage_id)


def _is_postponed(view: BlockView) -> bool:
    """Whether there may be too many replicas, which will be known when all have been reported."""
    alive = [replica for replica in view.replicas if replica.node.is_alive]
    return len(alive) > view.replication and any(
        replica.storage.contents_are_stale for replica in alive
    )
