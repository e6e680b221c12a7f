"""Which NameNodes share a database, and which of them does what.

A member is an id and an epoch.  The id is the lowest that is free, and its shard of
the totals.  Without a heartbeat it is free again after a while: whoever joins next may
take it, in a new epoch, and a commit under the epoch that ended is refused (`Fenced`).
A NameNode that only slept finds out and joins again.  Until its id is taken its commits
are good; that no call runs twice is ensured by the stored replies.

A duty has one owner at a time: a lease, by the database's clock.  The owner itself
counts from before it asked, by a clock that also runs while the machine sleeps, and
gives up a tenth earlier: it has stopped before another can begin.
"""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import suppress
from datetime import timedelta
from typing import NamedTuple

from cairnfs.errors import StoreUnavailableException
from cairnfs.store.batches import Member
from cairnfs.store.postgres import PostgresStore

log = logging.getLogger(__name__)

HEARTBEAT_INTERVAL_S = 1.0
EXPIRY_S = 4.0
LEASE_BELIEVED = 0.9  # the part of a lease that its owner relies on

_JOIN = "SELECT id_, epoch_ FROM cairn_join($1, $2)"
_BEAT = "UPDATE members SET heartbeat = clock_timestamp() WHERE id = $1 AND epoch = $2 RETURNING 1"
_LEAVE = "UPDATE members SET heartbeat = '-infinity' WHERE id = $1 AND epoch = $2 RETURNING 1"
_MEMBERS = (
    "SELECT id, epoch, address FROM members"
    " WHERE heartbeat + expiry >= clock_timestamp() ORDER BY id"
)
_ACQUIRE = (
    "INSERT INTO duties AS d (name, member, epoch, expires)"
    " SELECT $1, m.id, m.epoch, clock_timestamp() + $4"
    " FROM members m WHERE m.id = $2 AND m.epoch = $3"
    " ON CONFLICT (name) DO UPDATE SET member = excluded.member, epoch = excluded.epoch,"
    " expires = greatest(d.expires, excluded.expires)"
    " WHERE d.expires < clock_timestamp() OR (d.member = excluded.member"
    " AND d.epoch = excluded.epoch) RETURNING 1"
)
_OWNER = (
    "SELECT m.address FROM duties d JOIN members m ON m.id = d.member AND m.epoch = d.epoch"
    " WHERE d.name = $1 AND d.expires >= clock_timestamp()"
)
_RELEASE = "DELETE FROM duties WHERE name = $1 AND member = $2 AND epoch = $3 RETURNING 1"
_RELEASE_ALL = "DELETE FROM duties WHERE member = $1 AND epoch = $2 RETURNING 1"


class MemberInfo(NamedTuple):
    """A NameNode that is alive, as far as the database knows."""

    id: int
    epoch: int
    address: str


class PostgresMembership:
    """This NameNode among those that share a PostgreSQL database.

    `id`, `epoch` and `shard` change when it was fenced and has joined again.
    """

    def __init__(
        self, store: PostgresStore, address: str, heartbeat_interval_s: float, expiry_s: float
    ) -> None:
        self._store = store
        self._address = address
        self._interval_s = heartbeat_interval_s
        self._expiry_s = expiry_s
        self._batch = 0
        self._leases: dict[str, float] = {}  # duty -> until when we rely on it
        self._beating: asyncio.Task[None] | None = None
        self.id = -1
        self.epoch = 0
        self.shard = 0

    @classmethod
    async def join(
        cls,
        store: PostgresStore,
        address: str,
        heartbeat_interval_s: float = HEARTBEAT_INTERVAL_S,
        expiry_s: float = EXPIRY_S,
    ) -> PostgresMembership:
        """Become a member, and stay one until `leave`."""
        if expiry_s <= heartbeat_interval_s:
            raise ValueError("a NameNode must be able to send a heartbeat before it expires")
        membership = cls(store, address, heartbeat_interval_s, expiry_s)
        await membership._enter()
        membership._beating = asyncio.get_running_loop().create_task(membership._beat())
        return membership

    def next_batch(self) -> Member:
        """Identify the next batch.  While fenced it still names the epoch that ended."""
        self._batch += 1
        return Member(self.id, self.epoch, self._batch)

    async def members(self) -> list[MemberInfo]:
        """Those whose heartbeat has not expired, by id."""
        return [MemberInfo(*row) for row in await self._store.fetch(_MEMBERS)]

    async def leave(self) -> None:
        """Give up id and duties at once, if the database can be told."""
        if self._beating is not None:
            self._beating.cancel()
            with suppress(asyncio.CancelledError):
                await self._beating
            self._beating = None
        self._leases.clear()
        try:
            await self._store.fetch(_RELEASE_ALL, self.id, self.epoch)
            await self._store.fetch(_LEAVE, self.id, self.epoch)
        except StoreUnavailableException as error:
            log.info("left without saying so: %s", error)

    # Duties.

    async def try_acquire(self, duty: str, lease_s: float) -> bool:
        """Become, or stay, the one NameNode that does this duty."""
        return await self._lease(_ACQUIRE, duty, lease_s)

    async def release(self, duty: str) -> None:
        """Let another have it now."""
        self._leases.pop(duty, None)
        await self._store.fetch(_RELEASE, duty, self.id, self.epoch)

    def holds(self, duty: str) -> bool:
        """Whether this duty is ours for certain, at this moment."""
        return _now_s() < self._leases.get(duty, 0.0)

    async def owner(self, duty: str) -> str | None:
        """The address of the NameNode that does this duty, if one does."""
        found = await self._store.fetch(_OWNER, duty)
        return found[0][0] if found else None

    async def _lease(self, statement: str, duty: str, lease_s: float) -> bool:
        asked_s = _now_s()
        epoch = self.epoch
        arguments = (duty, self.id, epoch, timedelta(seconds=lease_s))
        granted = bool(await self._store.fetch(statement, *arguments))
        if not granted or epoch != self.epoch:
            self._leases.pop(duty, None)
            return False
        believed_until_s = asked_s + lease_s * LEASE_BELIEVED
        self._leases[duty] = max(believed_until_s, self._leases.get(duty, 0.0))
        return self.holds(duty)

    # Heartbeats.

    async def _enter(self) -> None:
        """Take an id in a new epoch; nothing of the old one is left."""
        expiry = timedelta(seconds=self._expiry_s)
        ((id, epoch),) = await self._store.fetch(_JOIN, self._address, expiry)
        self._leases.clear()
        self._batch = 0
        self.id, self.epoch, self.shard = id, epoch, id
        log.info("%s is member %d in epoch %d", self._address, id, epoch)

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(self._interval_s)
            try:
                if not await self._store.fetch(_BEAT, self.id, self.epoch):
                    log.warning("member %d was taken for dead; joining again", self.id)
                    await self._enter()
            except StoreUnavailableException as error:
                log.warning("no heartbeat: %s", error)
            except Exception:
                log.exception("no heartbeat; the next one is tried all the same")


def _now_s() -> float:
    """Seconds that also pass while the machine is suspended."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)
