"""The reclaim duty: what was deleted, files, directories and snapshots, is worked off in steps.

After that, directories whose content comes from a snapshot that nobody sees any more get rows of
their own (`settling`), so that what only their origins hold can go as well.

It is never urgent.  While others have calls to be answered, each step is followed by a rest
that is several times as long, so that hardly any of those calls meets a step.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter

from cairnfs.clock import Clock
from cairnfs.namesystem.layers import LayeredQueue
from cairnfs.namesystem.outstanding import Looked
from cairnfs.namesystem.reclaim import reclaim, reclaim_past, release_orphans
from cairnfs.namesystem.settling import settle
from cairnfs.namesystem.snapshot_records import Removal
from cairnfs.store.base import Reading, Row, Scan, Store
from cairnfs.store.schema import NUMBER, PAIR, Key, Table
from cairnfs.transaction.calls import Call
from cairnfs.transaction.moments import REFRESH_MS
from cairnfs.transaction.records import decode
from cairnfs.transaction.runner import Runner, run

ORPHANS_PAGE = 100  # detached subtrees looked at in one step
PAST_PAGE = 32  # past rows looked at in one transaction: other callers wait for it
SETTLING_PAGE = 10  # directories looked at in one step
MOMENTS_PAGE = 1000
SETTLING_MS = 2 * REFRESH_MS
_LAST_ID = 2**64 - 1

RESTS = 9  # times as long as the step before, if anybody else is there
REST_MIN_S = 0.005
REST_MAX_S = 0.02


class Pace:
    """Leaves most of the time to others while they have something to do."""

    def __init__(self, runner: Runner) -> None:
        self._statistics = runner.statistics
        self._calls_seen = 0
        self._began_s = 0.0

    def begin(self) -> None:
        """A step begins."""
        self._began_s = perf_counter()

    async def rest(self, own_calls: int = 1) -> None:
        """A step is done; wait, if others have called since the one before."""
        calls = self._statistics.calls
        others, self._calls_seen = calls - self._calls_seen - own_calls, calls
        if others > 0:
            took_s = perf_counter() - self._began_s
            await asyncio.sleep(min(max(RESTS * took_s, REST_MIN_S), REST_MAX_S))


class Reclaiming:
    """Does it in bounded steps; each is a transaction, or several, of their own."""

    def __init__(
        self, runner: Runner, store: Store, clock: Clock, is_ours: Callable[[], bool]
    ) -> None:
        self._runner = runner
        self._store = store
        self._clock = clock
        self._is_ours = is_ours
        self._pace = Pace(runner)
        self._others = 0

    @contextmanager
    def left_to_another(self) -> Iterator[None]:
        """Meanwhile the duty is not done here: somebody has asked for the same to be done."""
        self._others += 1
        try:
            yield
        finally:
            self._others -= 1

    async def step(self) -> int:
        """A bounded part of it; more than 0: there is more to do at once."""
        if self._others:
            return 0
        return (
            await self._reclaim_orphans()
            or await self._reclaim_removed_snapshot()
            or await self._settle()
        )

    async def _reclaim_orphans(self) -> int:
        """Look at a bounded number of rows of detached subtrees; how many subtrees are left."""
        orphans = await self._scan(Table.ORPHANS, b"", ORPHANS_PAGE)
        for row in orphans:
            if not self._is_ours():
                break
            self._pace.begin()
            await run(self._runner, Call(reclaim, NUMBER.unpack(row.key[2])))
            await self._pace.rest()
        return len(orphans)

    async def _reclaim_removed_snapshot(self) -> int:
        """Look at what a deleted snapshot may have been the last to need, a page of it."""
        removals = await self._scan(Table.REMOVALS, b"", 1)
        if not removals or not self._is_ours():
            return 0
        key, work = removals[0].key, decode(Table.REMOVALS, removals[0].data)
        if not self.is_known_to_all(work):
            return 0
        self._pace.begin()
        await self.look_through(key, work)
        await self._pace.rest()
        return 1

    def is_known_to_all(self, work: Removal) -> bool:
        """Whether no other NameNode can believe any more that a deleted snapshot is there."""
        is_only = self._store.local is not None
        return is_only or self._clock.now_ms() >= work.deleted_ms + SETTLING_MS

    async def look_through(self, key: Key, work: Removal) -> Looked:
        """Look at a page of what a deleted snapshot may have been the last to need."""
        if work.is_past_done:
            until = await self._next_snapshot(*PAIR.unpack(key[2]))
            released: Looked = await run(self._runner, Call(release_orphans, (key, until)))
            return released
        after = (work.until, (work.table, work.a, work.b))
        rows = await self._store.scan_past(after, await self.last_needed(key, work), PAST_PAGE)
        await run(self._runner, Call(reclaim_past, (key, rows, len(rows) < PAST_PAGE)))
        return Looked(len(rows), is_done=False)

    async def _settle(self) -> int:
        """Give some directories rows for what comes from snapshots that are gone; how many."""
        keys = await self.unsettled(SETTLING_PAGE)
        for key in keys:
            if not self._is_ours():
                return 0
            self._pace.begin()
            await run(self._runner, Call(settle, (key,)))
            await self._pace.rest()
        return len(keys)

    async def count_unsettled(self, limit: int) -> int:
        """How many directories are known to be left for that, up to so many."""
        return len(await self.unsettled(limit))

    async def unsettled(self, limit: int, behind: Key | None = None) -> list[Key]:
        """Notes of directories whose origin is a moment of which nobody sees a snapshot.

        And before those, of such with very many origins.
        """
        named: set[int] | None = None
        found: list[Key] = []
        _, queue, after = behind or (int(Table.LAYERED), int(LayeredQueue.DEEP), b"")
        if queue == LayeredQueue.DEEP:
            deep = await self._scan(Table.LAYERED, after, limit, LayeredQueue.DEEP)
            found, after = [row.key for row in deep], b""
        while len(found) < limit:
            page = await self._scan(Table.LAYERED, after, limit - len(found))
            if not page:
                break
            if named is None:
                named = await self._named_moments()
            txid, _ = PAIR.unpack(page[0].key[2])
            if txid in named:
                after = PAIR.pack(txid, _LAST_ID)
                continue
            keys = [row.key for row in page if PAIR.unpack(row.key[2])[0] == txid]
            found += keys
            after = keys[-1][2]
        return found

    async def _named_moments(self) -> set[int]:
        """The TxIDs of the snapshots that somebody sees."""
        named: set[int] = set()
        after = b""
        while page := await self._scan(Table.MOMENTS, after, MOMENTS_PAGE):
            moments = [decode(Table.MOMENTS, row.data) for row in page]
            named |= {moment.txid for moment in moments if moment.name}
            if len(page) < MOMENTS_PAGE:
                break
            after = page[-1].key[2]
        return named

    async def last_needed(self, key: Key, work: Removal) -> int:
        """Up to which TxID past rows may have been kept for a deleted snapshot alone."""
        until = await self._next_snapshot(*PAIR.unpack(key[2]))
        return min(until, work.last or until)

    async def _next_snapshot(self, txid: int, inode_id: int) -> int:
        """The TxID of the same inode's next snapshot; if there is none, the latest of all."""
        last_txid = await self._store.last_txid()
        after = PAIR.pack(txid, _LAST_ID)
        while True:
            page = await self._scan(Table.MOMENTS, after, MOMENTS_PAGE)
            for row in page:
                taken, of = PAIR.unpack(row.key[2])
                if of == inode_id:
                    return int(taken)
            if len(page) < MOMENTS_PAGE:
                return last_txid
            after = page[-1].key[2]

    async def _scan(self, table: Table, after: bytes, limit: int, queue: int = 0) -> list[Row]:
        scan = Scan(table, queue, after, limit)
        return (await self._store.read(Reading(scans=[scan]))).scans[scan]
