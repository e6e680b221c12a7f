"""A NameNode without its sockets: calls in, answers out.

It keeps caches, never state: whatever was answered is in the store, and any
other NameNode on the same store goes on where this one stopped.
"""

from __future__ import annotations

import gc
from typing import Any, assert_never

from cairnfs.clock import Clock, SystemClock
from cairnfs.config import Control, NameNodeSettings
from cairnfs.namenode.duties import Duties
from cairnfs.namenode.opening import OpenStore, open_store
from cairnfs.namesystem.lookup import prefetch_paths
from cairnfs.namesystem.permissions import Caller, make_caller
from cairnfs.store.base import Store
from cairnfs.transaction.calls import Call, CallKey, Operation, R
from cairnfs.transaction.locking import PessimisticRunner, SystemLockRunner
from cairnfs.transaction.optimistic import OptimisticRunner
from cairnfs.transaction.runner import Membership, Runner, RunnerStatistics, run


class NameNode:
    """Serves metadata calls from one store; belongs to one event loop."""

    def __init__(self, settings: NameNodeSettings, opened: OpenStore, clock: Clock) -> None:
        _relax_collector()
        self.settings = settings
        self.store = opened.store
        self.membership = opened.membership
        self.superuser = opened.meta["superuser"]
        self.supergroup = opened.meta["supergroup"]
        self._runner = make_runner(settings.control, self.store, clock, self.membership)
        self._duties = Duties(self._runner, opened, clock, settings.duty_interval_s)

    @classmethod
    async def start(cls, settings: NameNodeSettings, clock: Clock | None = None) -> NameNode:
        """Open the store, join the other NameNodes, and begin to serve."""
        opened = await open_store(settings)
        namenode = cls(settings, opened, clock or SystemClock())
        if settings.duties:
            namenode._duties.start()
        return namenode

    async def stop(self) -> None:
        """Finish what was called, leave the others in good order."""
        try:
            await self._duties.stop()
            await self._runner.close()
        finally:
            try:
                await self.membership.leave()
            finally:
                await self.store.close()

    def caller(self, user: str, groups: tuple[str, ...] = (), address: str = "") -> Caller:
        """Who calls, with the rights that this namespace gives them."""
        return make_caller(user, groups, self.superuser, self.supergroup, address)

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
