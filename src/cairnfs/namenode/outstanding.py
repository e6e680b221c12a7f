"""Work that calls have left for later, done now: for whoever does not wait for the duties.

Items are listed in pages, and worked off as far as a call may take.  Several at a time, so that
their transactions are committed together; the duty that would do the same here stands aside.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from cairnfs.errors import IllegalArgumentException
from cairnfs.namenode import reclaiming
from cairnfs.namenode.reclaiming import Reclaiming
from cairnfs.namenode.safe_mode import SafeMode
from cairnfs.namesystem.layers import LayeredQueue
from cairnfs.namesystem.outstanding import Looked, WorkItem, WorkKind
from cairnfs.namesystem.reclaim import reclaim
from cairnfs.namesystem.removals import note_last, note_looked, ranges_left, reclaim_some_past
from cairnfs.namesystem.satisfying import scan_subtree
from cairnfs.namesystem.settling import settle
from cairnfs.namesystem.snapshot_records import Removal, removal_key
from cairnfs.store.base import Reading, Row, Scan, Store
from cairnfs.store.schema import NUMBER, PAIR, Key, Table
from cairnfs.transaction.calls import Call, Operation
from cairnfs.transaction.records import decode
from cairnfs.transaction.runner import Runner, run

ITEMS_PAGE = 1000
REMOVALS_PAGE = 100
PARTS_MAX = 1000  # of a deleted snapshot
LANES = 8  # items worked on at the same time, for one call


class WorkPage(NamedTuple):
    """Some of what is to be done."""

    items: list[WorkItem]
    cursor: bytes  # behind it; empty: that was all
    not_yet: int  # of which another NameNode may not know that they are to be done


class WorkedOff(NamedTuple):
    """What a call has come to."""

    rows: int
    done: int
    left: list[WorkItem]


@dataclass
class _Budget:
    """How much a call may do."""

    rows_max: int
    end_s: float
    rows: int = 0

    @property
    def is_over(self) -> bool:
        return self.rows >= self.rows_max or time.monotonic() >= self.end_s


class Outstanding:
    """What there is, and doing it."""

    def __init__(
        self, runner: Runner, store: Store, safe_mode: SafeMode, reclaiming: Reclaiming
    ) -> None:
        self._runner = runner
        self._store = store
        self._safe_mode = safe_mode
        self._reclaiming = reclaiming
        self._ways: dict[WorkKind, Callable[[WorkItem, _Budget], Awaitable[WorkItem | None]]] = {
            WorkKind.DETACHED: self._reclaim,
            WorkKind.DELETED_SNAPSHOT: self._look_through,
            WorkKind.TO_SETTLE: self._settle,
            WorkKind.POLICY_SCAN: self._scan_policies,
        }

    # What there is.

    async def list_page(self, kinds: Collection[WorkKind], cursor: bytes, rows: int) -> WorkPage:
        """Items of these kinds, behind a cursor; parts of deleted snapshots have so many rows."""
        at, after = _parse_cursor(cursor)
        for kind in WorkKind:
            if kind not in kinds or kind < at:
                continue
            page = await self._page_of(kind, after if kind == at else b"", rows)
            if page.items or page.cursor or page.not_yet:
                return page._replace(cursor=bytes([kind]) + page.cursor)
        return WorkPage([], b"", 0)

    async def _page_of(self, kind: WorkKind, after: bytes, rows: int) -> WorkPage:
        if kind is WorkKind.DELETED_SNAPSHOT:
            return await self._page_of_removals(after, rows)
        if kind is WorkKind.TO_SETTLE:
            behind = (int(Table.LAYERED), after[0], after[1:]) if after else None
            keys = await self._reclaiming.unsettled(ITEMS_PAGE, behind)
            notes = [PAIR.unpack(key[2]) for key in keys]
            items = [WorkItem(kind, id, txid) for txid, id in notes]
            return WorkPage(items, bytes([keys[-1][1]]) + keys[-1][2] if keys else b"", 0)
        table = Table.ORPHANS if kind is WorkKind.DETACHED else Table.POLICY_SCANS
        found = await self._scan(table, after, ITEMS_PAGE)
        items = [WorkItem(kind, *NUMBER.unpack(row.key[2])) for row in found]
        return WorkPage(items, found[-1].key[2] if found else b"", 0)

    async def _page_of_removals(self, after: bytes, rows: int) -> WorkPage:
        """A large one in parts; of one directory one at a time, as others have much of the same."""
        found = await self._scan(Table.REMOVALS, after, REMOVALS_PAGE)
        items: list[WorkItem] = []
        not_yet = 0
        in_parts: set[int] = set()
        for row in found:
            work: Removal = decode(Table.REMOVALS, row.data)
            txid, id = PAIR.unpack(row.key[2])
            if not self._reclaiming.is_known_to_all(work):
                not_yet += 1
                continue
            whole = WorkItem(WorkKind.DELETED_SNAPSHOT, id, txid)
            ranges = [] if work.is_past_done else await self._ranges(row.key, work, rows)
            if len(ranges) <= 1:
                items.append(whole)
            elif id not in in_parts:
                in_parts.add(id)
                items += [whole._replace(begin=begin, end=end) for begin, end in ranges]
        return WorkPage(items, found[-1].key[2] if found else b"", not_yet)

    async def _ranges(self, key: Key, work: Removal, rows: int) -> list[tuple[int, int]]:
        """Of a transaction a row or two are kept: parts with so many TxIDs."""
        until = await self._reclaiming.last_needed(work)
        size = max(1, rows, -(-(until - PAIR.unpack(key[2])[0]) // PARTS_MAX))
        ranges = ranges_left(key, work, until, size)
        if len(ranges) > 1 and not work.last:
            await run(self._runner, Call(note_last, (key, until)))
        return ranges

    # Doing it.

    async def work_off(self, items: Sequence[WorkItem], rows_max: int, limit_s: float) -> WorkedOff:
        """Work some items off, until they are done, or so many rows were looked at, or it is time.

        Whatever there was no time for is left; what comes of an item is for `list_page` to tell.
        """
        if any(item.kind is WorkKind.POLICY_SCAN for item in items):
            self._safe_mode.check_off("doWork", ())
        budget = _Budget(rows_max, time.monotonic() + limit_s)
        waiting = deque(dict.fromkeys(items))
        left: list[WorkItem] = []
        count = len(waiting)

        async def work() -> None:
            while waiting and not budget.is_over:
                item = waiting.popleft()
                rest = await self._ways[item.kind](item, budget)
                if rest is not None:
                    left.append(rest)

        with self._reclaiming.left_to_another():
            lanes = [work() for _ in range(min(LANES, count))]
            for outcome in await asyncio.gather(*lanes, return_exceptions=True):
                if outcome is not None:
                    raise outcome
        return WorkedOff(budget.rows, count - len(left) - len(waiting), [*left, *waiting])

    async def _reclaim(self, item: WorkItem, budget: _Budget) -> WorkItem | None:
        return await self._repeat(item, budget, reclaim, item.id)

    async def _settle(self, item: WorkItem, budget: _Budget) -> WorkItem | None:
        for queue in LayeredQueue:  # it is in one of them
            key = (int(Table.LAYERED), int(queue), PAIR.pack(item.txid, item.id))
            if await self._repeat(item, budget, settle, key) is not None:
                return item
        return None

    async def _scan_policies(self, item: WorkItem, budget: _Budget) -> WorkItem | None:
        return await self._repeat(item, budget, scan_subtree, item.id)

    async def _repeat(
        self, item: WorkItem, budget: _Budget, step: Operation[Looked], *arguments: object
    ) -> WorkItem | None:
        while True:
            looked: Looked = await run(self._runner, Call(step, arguments))
            budget.rows += looked.rows
            if looked.is_done:
                return None
            if budget.is_over:
                return item

    async def _look_through(self, item: WorkItem, budget: _Budget) -> WorkItem | None:
        """A deleted snapshot, or a part of it."""
        key = removal_key(item.txid, item.id)
        while (work := await self._removal(key)) is not None:
            if item.end:
                return await self._look_through_part(key, work, item, budget)
            looked = await self._reclaiming.look_through(key, work)
            budget.rows += looked.rows
            if looked.is_done:
                break
            if budget.is_over:
                return item
        return None

    async def _look_through_part(
        self, key: Key, work: Removal, part: WorkItem, budget: _Budget
    ) -> WorkItem | None:
        """What was looked at is noted by whole TxIDs, so that others pass it over."""
        until = min(part.end, await self._reclaiming.last_needed(work))
        after, reached = (part.begin + 1, (0, 0, b"")), part.begin
        while reached < until:
            size = reclaiming.PAST_PAGE
            rows = await self._store.scan_past(part.txid, after, until, size)
            if rows:
                await self._reclaiming.refresh()
                await run(self._runner, Call(reclaim_some_past, (rows,)))
            budget.rows += len(rows)
            reached = until if len(rows) < size else max(reached, rows[-1].until - 1)
            if rows:
                after = (rows[-1].until, rows[-1].key)
            if budget.is_over and reached > part.begin:
                break
        if reached > part.begin:
            await run(self._runner, Call(note_looked, (key, part.begin, reached)))
        return None if reached >= until else part._replace(begin=reached)

    async def _removal(self, key: Key) -> Removal | None:
        """A deleted snapshot that can be looked through now."""
        row = (await self._store.read(Reading(keys=[key]))).rows.get(key)
        work: Removal | None = None if row is None else decode(Table.REMOVALS, row.data)
        return work if work is not None and self._reclaiming.is_known_to_all(work) else None

    async def _scan(self, table: Table, after: bytes, limit: int) -> list[Row]:
        scan = Scan(table, 0, after, limit)
        return (await self._store.read(Reading(scans=[scan]))).scans[scan]


def _parse_cursor(cursor: bytes) -> tuple[int, bytes]:
    if cursor and cursor[0] not in WorkKind.__members__.values():
        raise IllegalArgumentException(
            f"{cursor[:40].hex()} is no cursor of a list of work: send back what came"
        )
    return (cursor[0], cursor[1:]) if cursor else (0, b"")
