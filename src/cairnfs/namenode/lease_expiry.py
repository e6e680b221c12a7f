"""The duty that closes files whose writers were not heard of for longer than the hard limit.

All leases are looked at, page by page, in rounds.  Taking one away is a transaction of its own,
so it does not matter where the NameNode that does it dies.

A writer that could not renew its lease is not gone: after a time in which nobody was served,
because no NameNode ran or the store was away, all are taken to have been heard of just now.
"""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Final

from cairnfs.clock import Clock
from cairnfs.errors import HdfsError
from cairnfs.namenode.safe_mode import SafeMode
from cairnfs.namesystem.inodes import InodeId
from cairnfs.namesystem.lease_records import Holder, Lease, holder_key
from cairnfs.namesystem.lease_recovery import release_lease
from cairnfs.store.base import Reading, Scan, Store
from cairnfs.store.schema import NUMBER, Table
from cairnfs.transaction.calls import Call
from cairnfs.transaction.records import decode
from cairnfs.transaction.runner import Runner, run

log = logging.getLogger(__name__)

LEASES: Final = "leases"

PAGE = 500  # leases looked at in one step
REST_MIN_S: Final = 2.0  # between two rounds (dfs.namenode.lease-recheck-interval-ms), and
REST_FACTOR: Final = 20  # so many times as long as the last one took
# Without an answer from the store: it was away, and no lease could be renewed.
GAP_MS: Final = 30_000
NEVER_MS: Final = 1 << 60


class LeaseExpiry:
    """See the module's text.  `step` is for `Duties`."""

    def __init__(
        self,
        runner: Runner,
        store: Store,
        safe_mode: SafeMode,
        clock: Clock,
        hard_limit_ms: int,
    ) -> None:
        self._runner = runner
        self._store = store
        self._safe_mode = safe_mode
        self._clock = clock
        self._hard_limit_ms = hard_limit_ms
        self._after = b""
        self._worked_s = 0.0  # in this round
        self._due_s = 0.0
        self._answered_ms = self._served_since_ms = clock.now_ms()

    def soft_limit_ms(self, limit_ms: int) -> int:
        """The soft limit, unless it has not been possible for so long to renew a lease."""
        served_ms = self._clock.now_ms() - self._served_since_ms
        return limit_ms if served_ms > limit_ms else NEVER_MS

    def store_answered(self) -> None:
        """To be told every now and then, whoever has the duty: leases can be renewed."""
        now_ms, before_ms = self._clock.now_ms(), self._answered_ms
        self._answered_ms = now_ms
        if self._safe_mode.is_on or now_ms - before_ms > GAP_MS:
            self._served_since_ms = now_ms

    async def step(self) -> int:
        """Look at some leases, if it is time to; more than 0 if there are more."""
        began_s = time.monotonic()
        if self._safe_mode.is_on or began_s < self._due_s:
            return 0
        more = await self.look_at_page()
        ended_s = time.monotonic()
        self._worked_s += ended_s - began_s
        if not more:
            rest_s = min(REST_MIN_S, self._hard_limit_ms / 4000)
            self._due_s = ended_s + max(rest_s, REST_FACTOR * self._worked_s)
            self._worked_s = 0.0
        return more

    async def look_at_page(self) -> int:
        """Look at the next page of leases; how many more there are at least."""
        scan = Scan(Table.LEASES, 0, self._after, PAGE)
        rows = (await self._store.read(Reading(scans=[scan]))).scans[scan]
        leases = {
            InodeId(NUMBER.unpack(row.key[2])[0]): decode(Table.LEASES, row.data) for row in rows
        }
        expired = await self._find_expired(leases)
        limits = (self._hard_limit_ms,)
        done = await asyncio.gather(
            *(run(self._runner, Call(release_lease, (id, *limits))) for id in expired),
            return_exceptions=True,
        )
        for id, result in zip(expired, done, strict=True):
            if isinstance(result, HdfsError):
                log.info("inode %d can't be taken from %s yet: %s", id, leases[id].holder, result)
            elif isinstance(result, BaseException):  # the others must not wait for this one
                log.error("inode %d can't be taken from its writer", id, exc_info=result)
            elif not leases[id].is_being_recovered:
                log.info(
                    "inode %d is taken from %s, which was not heard of for too long: %s",
                    id,
                    leases[id].holder,
                    "closed" if result else "recovery begins",
                )
        self._after = rows[-1].key[2] if len(rows) == PAGE else b""
        return len(self._after)

    async def _find_expired(self, leases: dict[InodeId, Lease]) -> list[InodeId]:
        keys = {lease.holder: holder_key(lease.holder) for lease in leases.values()}
        found = (await self._store.read(Reading(keys=list(keys.values())))).rows
        now_ms = self._clock.now_ms()
        expired = []
        for id, lease in leases.items():
            heard_ms = max(lease.granted_ms, self._served_since_ms)
            row = found.get(keys[lease.holder])
            if row is not None:
                holder: Holder = decode(Table.HOLDERS, row.data)
                heard_ms = max(heard_ms, holder.renewed_ms)
            if lease.is_being_recovered or now_ms - heard_ms > self._hard_limit_ms:
                expired.append(id)
        return expired
