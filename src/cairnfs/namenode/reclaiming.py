"""The reclaim duty: what was deleted, files, directories and snapshots, is worked off in steps.

After that, directories whose content comes from a snapshot that nobody sees any more get rows of
their own (`settling`), so that what only their origins hold can go as well.

It is never urgent.  While others have calls to be answered, each step is followed by a rest
that is several times as long, so that hardly any of those calls meets a step.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter

from cairnfs.clock import Clock
from cairnfs.namesystem.layers import LayeredQueue
from cairnfs.namesystem.outstanding import Looked
from cairnfs.namesystem.reclaim import (
    forget_moment_changes,
    note_lost_holder,
    reclaim,
    reclaim_past,
    release_orphans,
)
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
SEARCH_INTERVAL_S = 600.0  # for what is kept for snapshots that are not there
SEARCH_REST = 1000  # or so many times as long as that takes

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
        self._next_search_s = 0.0

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
            or await self._forget_changes()
            or await self._find_lost_holders()
        )

    async def _reclaim_orphans(self) -> int:
        """Look at a bounded number of rows of detached subtrees; how many subtrees are left."""
        orphans = await self._scan(Table.ORPHANS, b"", ORPHANS_PAGE)
        if orphans:
            await self.refresh()
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
            released: Looked = await run(self._runner, Call(release_orphans, (key,)))
            return released
        txid, _ = PAIR.unpack(key[2])
        after = (work.until, (work.table, work.a, work.b))
        until = await self.last_needed(work)
        rows = await self._store.scan_past(txid, after, until, PAST_PAGE)
        await self.refresh()
        await run(self._runner, Call(reclaim_past, (key, rows, len(rows) < PAST_PAGE)))
        return Looked(len(rows), is_done=False)

    async def refresh(self) -> None:
        """Know which snapshots there are, up to now."""
        await self._runner.moments.refresh(self._store, self._clock.now_ms())

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

    async def _forget_changes(self) -> int:
        """Remove notes of snapshots that came and went; how many, if there are more."""
        forgotten: int = await run(self._runner, Call(forget_moment_changes, ()))
        return forgotten

    async def _find_lost_holders(self) -> int:
        """Have what is kept for snapshots that are not there looked at; how many such there are.

        A NameNode that did not know yet that a snapshot was deleted may have kept it.
        """
        now_s = time.monotonic()
        if now_s < self._next_search_s:
            return 0
        holders = {*await self._store.past_holders(), *await self._store.count_each(Table.HOLDS)}
        await self.refresh()
        lost = [txid for txid in holders if not self._runner.moments.index.is_at(txid)]
        for txid in lost:
            await run(self._runner, Call(note_lost_holder, (txid,)))
        took_s = time.monotonic() - now_s
        self._next_search_s = now_s + max(SEARCH_INTERVAL_S, SEARCH_REST * took_s)
        return len(lost)

    async def count_unsettled(self, limit: int) -> int:
        """How many directories are known to be left for that, up to so many."""
        return len(await self.unsettled(limit))

    async def unsettled(self, limit: int, behind: Key | None = None) -> list[Key]:
        """Notes of directories whose origin is a moment of which nobody sees a snapshot.

        And before those, of such with very many origins.
        """
        await self.refresh()
        moments = self._runner.moments.index
        found: list[Key] = []
        _, queue, after = behind or (int(Table.LAYERED), int(LayeredQueue.DEEP), b"")
        if queue == LayeredQueue.DEEP:
            deep = await self._scan(Table.LAYERED, after, limit, LayeredQueue.DEEP)
            found, after = [row.key for row in deep], b""
        while len(found) < limit:
            page = await self._scan(Table.LAYERED, after, limit - len(found))
            if not page:
                break
            txid, _ = PAIR.unpack(page[0].key[2])
            if moments.is_named(txid):
                after = PAIR.pack(txid, _LAST_ID)
                continue
            keys = [row.key for row in page if PAIR.unpack(row.key[2])[0] == txid]
            found += keys
            after = keys[-1][2]
        return found

    async def last_needed(self, work: Removal) -> int:
        """Up to which TxID past rows may have been kept for a deleted snapshot."""
        return work.last or await self._store.last_txid()

    async def _scan(self, table: Table, after: bytes, limit: int, queue: int = 0) -> list[Row]:
        scan = Scan(table, queue, after, limit)
        return (await self._store.read(Reading(scans=[scan]))).scans[scan]
