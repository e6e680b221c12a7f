"""A NameNode without its sockets: calls in, answers out.

It keeps caches, never state: whatever was answered is in the store, and any
other NameNode on the same store goes on where this one stopped.
"""

from __future__ import annotations

import gc
import logging
import zlib
from typing import Any, assert_never

from cairnfs.clock import Clock, SystemClock
from cairnfs.config import Control, NameNodeSettings
from cairnfs.namenode.balancer import Balancer
from cairnfs.namenode.block_recoveries import BlockRecoveries
from cairnfs.namenode.datanodes import DataNodes
from cairnfs.namenode.duties import Duties, Step
from cairnfs.namenode.lease_expiry import LEASES, LeaseExpiry
from cairnfs.namenode.moves import Moves
from cairnfs.namenode.opening import OpenStore, open_store
from cairnfs.namenode.outstanding import Outstanding
from cairnfs.namenode.redundancy import REDUNDANCY, Redundancy
from cairnfs.namenode.safe_mode import SafeMode
from cairnfs.namenode.satisfier import Satisfier
from cairnfs.namenode.scheduling import SCHEDULES, Scheduling
from cairnfs.namenode.trash import TRASH, Trash
from cairnfs.namenode.troubled_blocks import TroubledBlocks
from cairnfs.namenode.upgrading import upgrade_namespace
from cairnfs.namesystem.permissions import Caller, make_caller
from cairnfs.namesystem.prefetching import prefetch_paths
from cairnfs.observe.audit import AuditLog
from cairnfs.observe.figures import CallFigures
from cairnfs.store.base import Store
from cairnfs.transaction.calls import Call, CallKey, Operation, R
from cairnfs.transaction.locking import PessimisticRunner, SystemLockRunner
from cairnfs.transaction.optimistic import OptimisticRunner
from cairnfs.transaction.runner import Membership, Runner, RunnerStatistics, run

log = logging.getLogger(__name__)


class NameNode:
    """Serves metadata calls from one store; belongs to one event loop."""

    def __init__(self, settings: NameNodeSettings, opened: OpenStore, clock: Clock) -> None:
        _relax_collector()
        self.settings = settings
        self.store = opened.store
        self.membership = opened.membership
        self.clock = clock
        self.cluster_id = opened.meta["cluster id"]
        # Hadoop has three names for one thing: the others follow from the first.
        self.namespace_id = zlib.crc32(self.cluster_id.encode()) & 0x7FFFFFFF or 1
        created_ms = opened.meta["created"]
        self.block_pool_id = f"BP-{self.namespace_id}-127.0.0.1-{created_ms}"
        self.superuser = opened.meta["superuser"]
        self.supergroup = opened.meta["supergroup"]
        self._runner = make_runner(settings.control, self.store, clock, self.membership)
        self.datanodes = DataNodes(
            stale_after_s=settings.datanode_stale_after_s,
            dead_after_s=settings.datanode_dead_after_s,
        )
        self.calls = CallFigures()
        self.audit: AuditLog | None = None
        self.safe_mode = SafeMode(self.store, settings.safe_mode_threshold)
        self.redundancy = Redundancy(
            self._runner,
            self.store,
            self.datanodes,
            self.safe_mode,
            clock,
            excluded_hosts_file=settings.excluded_hosts_file,
        )
        self.troubled_blocks = TroubledBlocks(
            self.store, self.redundancy, lambda: self.gives_commands
        )
        self.moves = Moves(self.datanodes)
        of_blocks = (self._runner, self.store, self.datanodes, self.redundancy, self.safe_mode)
        self.satisfier = Satisfier(*of_blocks, self.moves)
        self.balancer = Balancer(*of_blocks, self.moves)
        self.block_recoveries = BlockRecoveries(
            self._runner, self.store, self.datanodes, self.safe_mode
        )
        self.lease_expiry = LeaseExpiry(
            self._runner, self.store, self.safe_mode, clock, settings.lease_hard_limit_ms
        )
        duties: dict[str, Step] = {
            LEASES: self.lease_expiry.step,
            REDUNDANCY: self.care_for_blocks,
        }
        superuser = self.caller(self.superuser)
        self.scheduling = Scheduling(self._runner, self.safe_mode, superuser, clock)
        duties[SCHEDULES] = self.scheduling.step
        if settings.trash.emptier_interval_ms:
            trash = Trash(self._runner, clock, self.safe_mode, settings.trash, superuser)
            duties[TRASH] = trash.step
        self._duties = Duties(
            self._runner,
            opened,
            clock,
            settings.duty_interval_s,
            settings.lease_hard_limit_ms,
            duties,
            self.lease_expiry.store_answered,
        )
        self.outstanding = Outstanding(
            self._runner, self.store, self.safe_mode, self._duties.reclaiming
        )

    @classmethod
    async def start(cls, settings: NameNodeSettings, clock: Clock | None = None) -> NameNode:
        """Open the store, join the other NameNodes, and begin to serve."""
        audit = AuditLog.open(settings.audit)
        try:
            opened = await open_store(settings)
        except BaseException:
            if audit is not None:
                audit.close()
            raise
        namenode = cls(settings, opened, clock or SystemClock())
        namenode.audit = audit
        await upgrade_namespace(namenode.runner, opened.store)
        await namenode.redundancy.load()
        await namenode.safe_mode.begin()
        if settings.duties:
            namenode._duties.start()
        return namenode

    async def stop(self) -> None:
        """Finish what was called, leave the others in good order; all of it, whatever fails.

        The first failure is raised, the others are logged.
        """
        failures: list[BaseException] = []
        for step in (
            self.safe_mode.stop,
            self._duties.stop,
            self._runner.close,
            self.membership.leave,
            self.store.close,
        ):
            try:
                await step()
            except BaseException as error:
                failures.append(error)
        if self.audit is not None:
            self.audit.close()
        for failure in failures[1:]:
            log.error("the NameNode did not stop in good order", exc_info=failure)
        if failures:
            raise failures[0]

    def caller(self, user: str, groups: tuple[str, ...] = (), address: str = "") -> Caller:
        """Who calls, with the rights that this namespace gives them."""
        return make_caller(user, groups, self.superuser, self.supergroup, address)

    @property
    def lease_soft_limit_ms(self) -> int:
        """For how long a writer must not have been heard of to lose its file to another."""
        return self.lease_expiry.soft_limit_ms(self.settings.lease_soft_limit_ms)

    async def care_for_blocks(self) -> int:
        """What DataNodes are to do with blocks: the duty of whoever gives commands."""
        recovered = await self.block_recoveries.step()
        moved = await self.redundancy.step() + await self.satisfier.step()
        return recovered + moved + await self.balancer.step()

    @property
    def gives_commands(self) -> bool:
        """Whether DataNodes are to do what this NameNode says: one NameNode has that duty."""
        return self.membership.holds(REDUNDANCY)

    @property
    def statistics(self) -> RunnerStatistics:
        return self._runner.statistics

    @property
    def runner(self) -> Runner:
        return self._runner

    @property
    def duties(self) -> Duties:
        return self._duties

    async def call(
        self,
        operation: Operation[R],
        *arguments: Any,
        key: CallKey | None = None,
        is_retry: bool = False,
    ) -> R:
        """Run an operation and wait for its answer."""
        if key is not None:
            key.check()
        answer: R = await run(self._runner, Call(operation, arguments, key=key, is_retry=is_retry))
        return answer


def make_runner(
    control: Control, store: Store, clock: Clock, membership: Membership | None = None
) -> Runner:
    """The runner for a concurrency control."""
    if control is Control.OPTIMISTIC:
        return OptimisticRunner(store, clock, prefetch_paths, membership=membership)
    if control is Control.PESSIMISTIC:
        return PessimisticRunner(store, clock, prefetch_paths, membership=membership)
    if control is Control.SYSTEM_LOCK:
        return SystemLockRunner(store, clock, prefetch_paths, membership=membership)
    assert_never(control)


def _relax_collector() -> None:
    """Look for cyclic garbage rarely: calls leave none, and caches make each look long."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)
