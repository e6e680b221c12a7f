"""The reclaim duty: what was deleted, files, directories and snapshots, is worked off in steps.

After that, directories whose content comes from a snapshot that nobody sees any more get rows of
their own (`settling`), so that what only their origins hold can go as well.
"""

from __future__ import annotations

from collections.abc import Callable

from cairnfs.clock import Clock
from cairnfs.namesystem.reclaim import reclaim, reclaim_past, release_orphans
from cairnfs.namesystem.settling import settle
from cairnfs.namesystem.snapshot_records import Removal
from cairnfs.store.base import Key, Reading, Row, Scan, Store
from cairnfs.store.schema import NUMBER, PAIR, Table
from cairnfs.transaction.calls import Call
from cairnfs.transaction.moments import REFRESH_MS
from cairnfs.transaction.records import decode
from cairnfs.transaction.runner import Runner, run

ORPHANS_PAGE = 100  # detached subtrees looked at in one step
PAST_PAGE = 100  # past rows looked at in one transaction
SETTLING_PAGE = 10  # directories looked at in one step
MOMENTS_PAGE = 1000
SETTLING_MS = 2 * REFRESH_MS
_LAST_ID = 2**64 - 1


class Reclaiming:
    """Does it in bounded steps; each is a transaction, or several, of their own."""

    def __init__(
        self, runner: Runner, store: Store, clock: Clock, is_ours: Callable[[], bool]
    ) -> None:
        self._runner = runner
        self._store = store
        self._clock = clock
        self._is_ours = is_ours

    async def step(self) -> int:
        """A bounded part of it; more than 0: there is more to do at once."""
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
            await run(self._runner, Call(reclaim, NUMBER.unpack(row.key[2])))
        return len(orphans)

    async def _reclaim_removed_snapshot(self) -> int:
        """Look at what a deleted snapshot may have been the last to need, a page of it."""
        removals = await self._scan(Table.REMOVALS, b"", 1)
        if not removals or not self._is_ours():
            return 0
        key, work = removals[0].key, decode(Table.REMOVALS, removals[0].data)
        if self._store.local is None and self._clock.now_ms() < work.deleted_ms + SETTLING_MS:
            return 0  # another NameNode may not know yet that it is gone
        until = await self._next_snapshot(*PAIR.unpack(key[2]))
        if work.is_past_done:
            await run(self._runner, Call(release_orphans, (key, until)))
        else:
            await self._reclaim_past(key, work, until)
        return 1

    async def _reclaim_past(self, key: Key, work: Removal, until: int) -> None:
        after = (work.until, (work.table, work.a, work.b))
        rows = await self._store.scan_past(after, until, PAST_PAGE)
        await run(self._runner, Call(reclaim_past, (key, rows, len(rows) < PAST_PAGE)))

    async def _settle(self) -> int:
        """Give some directories rows for what comes from snapshots that are gone; how many."""
        for txid in await self._unseen_origins():
            keys = await self._unsettled(txid, SETTLING_PAGE)
            for key in keys:
                if not self._is_ours():
                    return 0
                await run(self._runner, Call(settle, (key,)))
            if keys:
                return len(keys)
        return 0

    async def count_unsettled(self, limit: int) -> int:
        """How many directories are known to be left for that, up to so many."""
        count = 0
        for txid in await self._unseen_origins():
            if count < limit:
                count += len(await self._unsettled(txid, limit - count))
        return count

    async def _unsettled(self, txid: int, limit: int) -> list[Key]:
        """The notes of directories that have their origin at this TxID."""
        notes = await self._scan(Table.LAYERED, PAIR.pack(txid, 0), limit)
        return [row.key for row in notes if PAIR.unpack(row.key[2])[0] == txid]

    async def _unseen_origins(self) -> list[int]:
        """The TxIDs of which there are pins, but no snapshot that has a name."""
        named, pinned = set[int](), dict[int, None]()
        after = b""
        while page := await self._scan(Table.MOMENTS, after, MOMENTS_PAGE):
            for row in page:
                moment = decode(Table.MOMENTS, row.data)
                if moment.name:
                    named.add(moment.txid)
                else:
                    pinned[moment.txid] = None
            if len(page) < MOMENTS_PAGE:
                break
            after = page[-1].key[2]
        return [txid for txid in pinned if txid not in named]

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

    async def _scan(self, table: Table, after: bytes, limit: int) -> list[Row]:
        scan = Scan(table, 0, after, limit)
        return (await self._store.read(Reading(scans=[scan]))).scans[scan]
