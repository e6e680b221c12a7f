"""The redundancy duty: every block has as many good replicas as its file asks for.

CHECKS names the blocks to look at.  Each step takes a page of the new ones, asks
`plan_block` what to do, and does it: copies are queued as commands for DataNodes, replicas
to be deleted become rows in INVALIDATIONS.  A block leaves CHECKS when it is well.  One that
is not, and cannot be helped now or has a copy under way, waits in the queue of its priority;
of those, each step takes some of the most urgent, and some of each queue in turn.

Copies under way are known to the NameNode that has the duty, and to nobody else: when
another one takes over it may order a copy twice, and then has one replica too many, which
is found and deleted.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence

import msgspec

from cairnfs.blocks.placement import Target
from cairnfs.blocks.policies import DEFAULT, policy_by_id
from cairnfs.blocks.records import (
    BlockId,
    BlockState,
    Check,
    CheckQueue,
    Invalidation,
    Replica,
    StorageNumber,
)
from cairnfs.blocks.registration import list_datanodes
from cairnfs.blocks.replication import (
    BlockPlan,
    BlockView,
    Copy,
    Integrity,
    ReplicaState,
    ReplicaView,
    choose_priority,
    count_replicas,
    plan_block,
)
from cairnfs.clock import Clock
from cairnfs.namenode.datanodes import DataNodes, Transfer
from cairnfs.namenode.departures import Departures
from cairnfs.namenode.safe_mode import SafeMode
from cairnfs.namesystem.block_recovery import recover_deleted
from cairnfs.namesystem.policy_attribute import POLICY_UNSPECIFIED
from cairnfs.namesystem.redundancy import (
    BlockFacts,
    Settled,
    drop_replicas,
    forget_block,
    forget_replicas,
    inspect_blocks,
    settle_checks,
)
from cairnfs.store.base import Reading, Scan, Store
from cairnfs.store.schema import Table
from cairnfs.transaction.calls import Call
from cairnfs.transaction.records import decode
from cairnfs.transaction.runner import Runner, run

log = logging.getLogger(__name__)

REDUNDANCY = "redundancy"

CHECKS_PAGE = 200  # new blocks looked at in one step
WAITING_PAGE = 100  # blocks of one queue looked at in one step
GRACE_MS = 3_000  # the other DataNodes of a pipeline are given so long to report
COPY_LIMIT_S = 300.0  # dfs.namenode.reconstruction.pending.timeout-sec

WAITING: tuple[CheckQueue, ...] = tuple(
    queue for queue in CheckQueue if queue is not CheckQueue.NEW
)


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
    ) -> None:
        self._runner = runner
        self._store = store
        self._datanodes = datanodes
        self._safe_mode = safe_mode
        self._clock = clock
        self._departures = Departures(runner, store, datanodes, excluded_hosts_file)
        self._pending: dict[BlockId, PendingCopy] = {}
        self._after = dict.fromkeys(CheckQueue, b"")  # where the next page of a queue begins
        self._seen = dict.fromkeys(CheckQueue, 0)  # in this round
        self._turn = 0  # which of the queues is looked at beside the most urgent one
        self._hurried = -1  # the state of the cluster that all have been looked at in
        self._hurrying = -1
        # Of the queues, in the last round.
        self.lengths: dict[CheckQueue, int] = dict.fromkeys(WAITING, 0)

    @property
    def copies_pending(self) -> int:
        """Blocks of which copies were ordered, and have not been reported."""
        return len(self._pending)

    async def load(self) -> None:
        """Learn which DataNodes there are, which are to leave, and what is to be done."""
        self.read_excluded_hosts()
        after = b""
        while page := await run(self._runner, Call(list_datanodes, (after,))):
            for record in page:
                self._datanodes.put(record)
            after = page[-1].uuid.encode()
        await self.count_waiting()

    async def count_waiting(self) -> None:
        """Learn from the store how long the queues are: before we work on them, or if others do."""
        counts = await self._store.count_each(Table.CHECKS)
        self.lengths = {queue: counts.get(queue, 0) for queue in WAITING}

    def read_excluded_hosts(self) -> None:
        """Read the list of DataNodes that are to leave; it is acted on in the next steps."""
        self._departures.read_excluded_hosts()

    async def step(self) -> int:
        """Look at some blocks; more than 0 if there is more to do at once."""
        self._datanodes.refresh_all()
        if self._safe_mode.is_on:
            return 0
        await self._departures.step()
        new = await self._take_page(CheckQueue.NEW, CHECKS_PAGE)
        return new + await self._take_waiting()

    # Queues.

    async def _take_waiting(self) -> int:
        """Look at some of those that wait.

        When DataNodes have come, gone or reported, all of them, without a rest: what could
        not be helped before perhaps can be now.  Else at a pace that is hardly noticed.
        """
        if self._hurrying < 0 and self._hurried != self._datanodes.changes:
            self._hurrying, self._turn = self._datanodes.changes, 0
            self._after.update(dict.fromkeys(WAITING, b""))
        page = max(WAITING_PAGE, 2 * len(self._datanodes.cluster.nodes))
        if self._hurrying >= 0:
            if not await self._take_page(WAITING[self._turn], page):
                self._turn += 1
            if self._turn == len(WAITING):
                self._turn, self._hurried, self._hurrying = 0, self._hurrying, -1
            return 1
        await self._take_page(CheckQueue.HIGHEST, page)
        for _ in WAITING:
            queue = WAITING[self._turn]
            self._turn = (self._turn + 1) % len(WAITING)
            if queue is not CheckQueue.HIGHEST and self.lengths[queue]:
                await self._take_page(queue, page)
                break
        return 0

    async def _take_page(self, queue: CheckQueue, count_max: int) -> int:
        """Look at a page of a queue; more than 0 if there is another one."""
        scan = Scan(Table.CHECKS, queue, self._after[queue], count_max)
        rows = (await self._store.read(Reading(scans=[scan]))).scans[scan]
        checks: list[Check] = [decode(Table.CHECKS, row.data) for row in rows]
        now_ms = self._clock.now_ms()
        due = [
            check.block_id
            for check in checks
            if queue is not CheckQueue.NEW or now_ms - check.since_ms >= GRACE_MS
        ]
        await self._look_at(due)
        self._seen[queue] += len(rows)
        if len(rows) == count_max:
            self._after[queue] = rows[-1].key[2]
            return len(rows)
        self._after[queue] = b""
        if queue is not CheckQueue.NEW:
            self.lengths[queue] = self._seen[queue]
        self._seen[queue] = 0
        return 0

    # Blocks.

    async def _look_at(self, block_ids: Sequence[BlockId]) -> None:
        if not block_ids:
            return
        found = await run(self._runner, Call(inspect_blocks, (list(block_ids),)))
        settled: list[Settled] = []
        for block_id, facts in zip(block_ids, found, strict=True):
            if facts is None:
                self._pending.pop(block_id, None)
                await run(self._runner, Call(forget_block, (block_id,)))
            elif facts.block.state is BlockState.COMPLETE:
                settled += await self._help(facts)
            elif await run(self._runner, Call(recover_deleted, (block_id,))):
                settled.append((block_id, facts.news, None))
        if not settled:
            return
        done = await run(self._runner, Call(settle_checks, (settled,)))
        for (_, news, queue), is_done in zip(settled, done, strict=True):
            if is_done and queue is not None and news is not None:
                self.lengths[queue] += 1

    async def _help(self, facts: BlockFacts) -> list[Settled]:
        """Do what can be done for one block; says if it is done with, or has to wait."""
        view = self.view_of(facts)
        plan = plan_block(view, self._datanodes.cluster, self._datanodes.random)
        if plan.copy is not None:
            self._order(facts, plan.copy)
        if (plan.deletions or plan.invalidations) and await self._drop(facts, view, plan):
            return []  # it is new again
        forgettable = self._forgettable(facts)
        queue = self._queue_of(view, plan, forgettable)
        if queue is None and forgettable:
            await run(self._runner, Call(forget_replicas, (facts.block.id, forgettable)))
        return [(facts.block.id, facts.news, queue)]

    def _queue_of(
        self, view: BlockView, plan: BlockPlan, forgettable: Collection[StorageNumber]
    ) -> CheckQueue | None:
        """Where a block waits, if it is not well; what is `forgettable` is not expected back.

        Others may be: a NameNode that has just begun has not heard of all DataNodes.
        """
        priority = plan.priority
        if priority is None and view.pending:
            without = msgspec.structs.replace(view, pending=())
            priority = choose_priority(without, self._datanodes.cluster)
        if priority is not None:
            return CheckQueue(priority + 1)
        counts = count_replicas(
            each
            for each in view.one_per_node().replicas
            if self._datanodes.number_of(each.uuid, each.storage.storage_id) not in forgettable
        )
        is_unsettled = counts.corrupt > 0 or counts.live + counts.lost > view.replication
        return CheckQueue.POSTPONED if is_unsettled else None

    def view_of(self, facts: BlockFacts) -> BlockView:
        """The block as plans know it."""
        orders = self.deleting(facts)
        replicas = []
        for storage, replica in facts.replicas:
            if replica.is_marked and self._datanodes.is_given_up(storage):
                continue  # a bad one that is not there: known in case that it comes back
            for target in self._datanodes.targets([storage]):
                order = orders.get(target.node.uuid)
                # Who is told to delete a block deletes it from whichever volume has it.
                is_excess = order is not None and order.generation_stamp >= replica.generation_stamp
                integrity = _integrity(facts, replica)
                replicas.append(ReplicaView(target.node, target.storage, integrity, is_excess))
        return BlockView(
            length_bytes=facts.block.replica_bytes,
            replication=facts.replication,
            policy=policy_by_id(facts.policy_id or POLICY_UNSPECIFIED) or DEFAULT,
            replicas=tuple(replicas),
            state=facts.block.state,
            pending=self._pending_targets(facts.block.id, replicas),
            deleting=frozenset(orders),
            delete_hint="" if facts.news is None else facts.news.delete_hint,
        )

    def deleting(self, facts: BlockFacts) -> dict[str, Invalidation]:
        """What DataNodes have to delete of the block, by their uuids.

        Those that are alive: a dead one does nothing, is no target for anything, and when it
        comes back is one of them again.
        """
        orders: dict[str, Invalidation] = {}
        for storage, order in facts.deleting:
            for located in self._datanodes.locate([storage]):
                known = orders.get(located.uuid, order)
                youngest = max(known, order, key=lambda each: each.generation_stamp)
                orders[located.uuid] = youngest
        return orders

    def _forgettable(self, facts: BlockFacts) -> list[StorageNumber]:
        """The storages that had the block, and whose rows may be forgotten once it is well."""
        return [
            storage
            for storage, replica in facts.replicas
            if self._datanodes.is_given_up(storage) and not replica.is_marked
        ]

    # Copies and deletions.

    def _pending_targets(
        self, block_id: BlockId, replicas: Sequence[ReplicaView]
    ) -> tuple[Target, ...]:
        """The copies to come."""
        pending = self._pending.get(block_id)
        if pending is None:
            return ()
        good = {each.uuid for each in replicas if each.integrity is Integrity.GOOD}
        have = {each.uuid for each in replicas if each.state is not ReplicaState.LOST}
        left: tuple[Target, ...] = ()
        is_late = self._datanodes.now_s() - pending.ordered_s > COPY_LIMIT_S
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
        numbers = tuple(self._datanodes.numbers(copy.targets))
        if node is None or not numbers:
            return
        targets = tuple(self._datanodes.locate_in_order(numbers))
        self._datanodes.order(node, Transfer(facts.block, targets))
        now_s = self._datanodes.now_s()
        self._pending[facts.block.id] = PendingCopy(copy.source.uuid, numbers, now_s)
        log.info(
            "%s is copied from %s to %s",
            facts.block,
            node.record.transfer_address,
            ", ".join(target.datanode.transfer_address for target in targets),
        )

    async def _drop(self, facts: BlockFacts, view: BlockView, plan: BlockPlan) -> bool:
        """Have replicas deleted; False if one that is to be kept is not there any more."""
        leaving = {replica.uuid for replica in (*plan.deletions, *plan.invalidations)}
        dropped, kept = [], []
        for storage, replica in facts.replicas:
            if self._datanodes.is_given_up(storage):
                continue  # nobody can delete it there
            for located in self._datanodes.locate_in_order([storage]):
                if located.uuid in leaving:
                    dropped.append(storage)
                elif (
                    replica.is_good_for(facts.block)
                    and located.uuid not in view.deleting
                    and self._datanodes.is_readable(storage)
                ):
                    kept.append(storage)
        if not dropped or not kept:
            return False
        call = Call(drop_replicas, (facts.block, dropped, kept))
        is_done: bool = await run(self._runner, call)
        return is_done


def _integrity(facts: BlockFacts, replica: Replica) -> Integrity:
    if replica.is_good_for(facts.block):
        return Integrity.GOOD
    is_older = replica.generation_stamp < facts.block.generation_stamp
    if is_older and not replica.is_marked:
        return Integrity.OUTDATED
    return Integrity.CORRUPT
