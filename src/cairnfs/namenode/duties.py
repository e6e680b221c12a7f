"""Background work: each duty has one owner among the NameNodes.

A duty is a lease in the store.  Its owner renews it; when the owner dies,
another NameNode takes it over within seconds.  Every step of a duty is a
transaction of its own, so it does not matter where the owner died, nor whether
for a moment two believe to be the owner.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Mapping

from cairnfs.clock import Clock
from cairnfs.errors import HdfsError
from cairnfs.namenode.opening import OpenStore
from cairnfs.namenode.reclaiming import Reclaiming
from cairnfs.namesystem.leases import forget_holders
from cairnfs.namesystem.views import close_forgotten_views
from cairnfs.transaction.calls import Call
from cairnfs.transaction.runner import Runner, run

log = logging.getLogger(__name__)

RECLAIM = "reclaim"
REPLIES = "replies"
HOLDERS = "holders"
VIEWS = "views"

LEASE_S = 3.0
REPLIES_PAGE = 1000


Step = Callable[[], Awaitable[int]]
"""Does a bounded part of a duty; more than 0: there is more to do at once."""


class Duties:
    """The background work of one NameNode."""

    def __init__(
        self,
        runner: Runner,
        opened: OpenStore,
        clock: Clock,
        interval_s: float,
        lease_hard_limit_ms: int,
        more: Mapping[str, Step] | None = None,
        store_answered: Callable[[], None] = lambda: None,
    ) -> None:
        """`store_answered` is called whenever the store has said whose a duty is."""
        self._runner = runner
        self._store = opened.store
        self._membership = opened.membership
        self._clock = clock
        self._interval_s = interval_s
        self._lease_hard_limit_ms = lease_hard_limit_ms
        self._store_answered = store_answered
        self._task: asyncio.Task[None] | None = None
        self._holders_seen = b""
        self.reclaiming = Reclaiming(
            runner, opened.store, clock, lambda: self._membership.holds(RECLAIM)
        )
        self._steps: dict[str, Step] = {
            RECLAIM: self.reclaiming.step,
            REPLIES: self.expire_replies,
            HOLDERS: self.forget_holders,
            VIEWS: self.close_forgotten_views,
            **(more or {}),
        }
        self.owned: set[str] = set()

    @property
    def names(self) -> list[str]:
        """All that this NameNode would do, if it were its turn."""
        return list(self._steps)

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._work())

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
            self._task = None

    async def reclaim_everything(self) -> None:
        """Until nothing is left to be reclaimed; for whoever can wait."""
        while await self._membership.try_acquire(RECLAIM, LEASE_S):
            if not await self.reclaiming.step():
                return

    async def expire_replies(self) -> int:
        """Forget stored replies that are past their time; how many there were."""
        return await self._store.drop_expired_replies(self._clock.now_ms(), REPLIES_PAGE)

    async def forget_holders(self) -> int:
        """Forget clients that were not heard of for long; whether there are more to look at."""
        call = Call(forget_holders, (self._holders_seen, self._lease_hard_limit_ms))
        self._holders_seen = await run(self._runner, call)
        return len(self._holders_seen)

    async def close_forgotten_views(self) -> int:
        """Close views whose readers are gone; how many there were."""
        closed: int = await run(self._runner, Call(close_forgotten_views, ()))
        return closed

    async def _work(self) -> None:
        while True:
            busy = False
            for name, step in self._steps.items():
                try:
                    busy |= await self._do(name, step)
                except HdfsError as error:
                    log.warning("duty %s: %s; it goes on when the store is back", name, error)
                except Exception:
                    log.exception("duty %s failed; it is tried again", name)
            await asyncio.sleep(0 if busy else self._interval_s)

    async def _do(self, name: str, step: Step) -> bool:
        """Do one step of a duty if it is ours; True if there is more to do at once."""
        is_ours = await self._membership.try_acquire(name, LEASE_S)
        self._store_answered()
        if not is_ours:
            self.owned.discard(name)
            return False
        self.owned.add(name)
        return await step() > 0
