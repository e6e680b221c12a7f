"""Calls that only look, but at much, on a shared store: each in a thread, at one moment.

Such a call lacks something again and again.  To run it anew each time, on rows that are all
read anew, would cost the square of what it looks at.  So it is not run anew: it waits until what
it lacks has been read, of the same moment as everything before.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from typing import TypeVar

from cairnfs.clock import Clock
from cairnfs.errors import StoreUnavailableException
from cairnfs.store.base import Found, Reading, Scan, Store, Stored, StoreMoment, Totals
from cairnfs.store.schema import Key
from cairnfs.transaction.calls import Call
from cairnfs.transaction.entries import Entry, Missing
from cairnfs.transaction.memos import Memo
from cairnfs.transaction.rows import PastView, find_lacking
from cairnfs.transaction.runner import RunnerStatistics, stopped
from cairnfs.transaction.seen_rows import Page
from cairnfs.transaction.transaction import Transaction
from cairnfs.transaction.views import LoadedRows

WALKS_MAX = 2  # at a time: each has a connection to the store all the while
ROWS_MAX = 50_000  # at hand; what was forgotten is read again if it is asked for

T = TypeVar("T")
Answer = Callable[[Call, object, BaseException | None], None]


class Walks:
    """Runs such calls; all methods belong to the thread of the event loop."""

    def __init__(self, store: Store, clock: Clock, statistics: RunnerStatistics) -> None:
        self._store = store
        self._clock = clock
        self._statistics = statistics
        self._loop = asyncio.get_running_loop()
        self._turns = asyncio.Semaphore(WALKS_MAX)
        self._tasks: set[asyncio.Task[None]] = set()
        self.calls: set[Call] = set()  # that are not answered yet
        self._closing = False

    def start(self, call: Call, reading: Reading, answer: Answer) -> None:
        """Run a call, with what it will most likely ask for in one read."""
        self.calls.add(call)
        task = self._loop.create_task(self._run(call, reading, answer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """End what is under way: it would only have told something."""
        self._closing = True
        while self._tasks:
            await asyncio.gather(*self._tasks)

    async def _run(self, call: Call, reading: Reading, answer: Answer) -> None:
        result, error = None, None
        try:
            async with self._turns:
                result = await self._walk(call, reading)
        except Exception as failure:  # a user's error or our own: either is the answer
            error = failure
        self.calls.discard(call)
        answer(call, result, error)

    async def _walk(self, call: Call, reading: Reading) -> object:
        for is_last in (False, True):
            try:
                async with self._store.moment() as moment:
                    return await asyncio.to_thread(self._execute, call, reading, moment)
            except StoreUnavailableException:  # perhaps a connection that had broken long before
                if is_last:
                    raise
        raise AssertionError("the last attempt returns or raises")

    def _execute(self, call: Call, reading: Reading, moment: StoreMoment) -> object:
        """In a thread of its own."""

        async def read_once(reading: Reading) -> Found:
            if self._closing:
                raise stopped()
            self._statistics.reads += 1
            return await moment.read(reading)

        def read(reading: Reading) -> Found:
            return asyncio.run_coroutine_threadsafe(read_once(reading), self._loop).result()

        view = WaitingRows(read)
        view.bring(reading)
        transaction = Transaction(view, self._clock.now_ms(), _no_number)
        call.transaction = transaction
        result: object = call.operation.function(transaction, *call.arguments)
        assert not transaction.changes_anything, f"{call.operation.name} is said only to look"
        return result


def _no_number(counter: str) -> int:
    raise AssertionError(f"who only looks takes no {counter}")


class WaitingRows:
    """Committed rows of one moment, read when they are asked for (`rows.View`)."""

    never_lacks = False

    def __init__(self, read: Callable[[Reading], Found]) -> None:
        self.read = read
        self._rows = LoadedRows(Reading(), Found())

    def ask(self, question: Callable[[LoadedRows], T]) -> T:
        """The answer, for which something may have to be read."""
        try:
            return question(self._rows)
        except Missing as missing:
            self._load(missing.reading)
            return question(self._rows)

    def bring(self, reading: Reading) -> None:
        lacking = find_lacking(self._rows, reading)
        if not lacking.is_empty():
            self._load(lacking)

    def _load(self, reading: Reading) -> None:
        rows = LoadedRows(reading, self.read(reading))
        if self._rows.size + rows.size > ROWS_MAX:
            self._rows = rows
        else:
            self._rows.join(rows)

    def entry(self, key: Key) -> Entry:
        return self.ask(lambda rows: rows.entry(key))

    find = entry

    def recall(self, token: Hashable) -> Memo | None:
        return None

    def memorize(self, token: Hashable, memo: Memo) -> None:
        """Nothing is remembered: the next one is of another moment."""

    def keys_of_id(self, table: int, id: int) -> list[Key]:
        return self.ask(lambda rows: rows.keys_of_id(table, id))

    def scan(self, scan: Scan) -> Page:
        return self.ask(lambda rows: rows.scan(scan))

    def totals(self, id: int) -> tuple[Totals, bool]:
        return self.ask(lambda rows: rows.totals(id)), False

    def peek_totals(self, id: int) -> Totals:
        return self.totals(id)[0]

    def at(self, txid: int) -> PastView:
        return _WaitingPast(self, txid)

    def latest_snapshot(self, covered: int) -> int:
        return covered  # nothing is changed here, so nothing is kept

    @property
    def moments(self) -> None:
        return None


class _WaitingPast:
    """The same of an earlier TxID."""

    def __init__(self, now: WaitingRows, txid: int) -> None:
        self._ask = now.ask
        self._read = now.read
        self._txid = txid

    def stored(self, scans: list[Scan]) -> list[list[Stored]]:
        """Not kept at hand: nobody asks for it twice."""
        found = self._read(Reading(past={self._txid: Reading(scans=scans)})).past[self._txid]
        return [[(0, row.key[2], row.since, row.data) for row in found.scans[s]] for s in scans]

    def totals_of(self, ids: list[int]) -> dict[int, Totals]:
        return self._read(Reading(past={self._txid: Reading(totals=ids)})).past[self._txid].totals

    def entry(self, key: Key) -> Entry:
        return self._ask(lambda rows: rows.at(self._txid).entry(key))

    def keys_of_id(self, table: int, id: int) -> list[Key]:
        return self._ask(lambda rows: rows.at(self._txid).keys_of_id(table, id))

    def scan(self, scan: Scan) -> Page:
        return self._ask(lambda rows: rows.at(self._txid).scan(scan))

    def totals(self, id: int) -> Totals:
        return self._ask(lambda rows: rows.at(self._txid).totals(id))
