"""The part of the stores' contract that takes two: locks, the clock, order of commits.

Nothing here is timed.  Who has to wait for whom is seen from the order of events; a
store that waits where it must not makes its check hang until the test's timeout.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence

from cairnfs.store.base import Conflict, LockMode, Reading, Row, Scan, Store
from cairnfs.store.batches import Batch, Put
from cairnfs.store.schema import Key

X: Key = (0, 3, b"x")
Y: Key = (0, 3, b"y")
SHARED, EXCLUSIVE = LockMode.SHARED, LockMode.EXCLUSIVE
READ_COMMITTED = LockMode.READ_COMMITTED

Commit = Callable[[Batch], Awaitable[int]]


class OrderObserver:
    """Watches rows appear, and objects when a smaller TxID comes after a larger one."""

    def __init__(self) -> None:
        self.newest = 0
        self._seen: set[Key] = set()

    def observe(self, rows: Iterable[Row]) -> None:
        fresh = [row for row in rows if row.key not in self._seen]
        late = [row.since for row in fresh if row.since <= self.newest]
        assert not late, f"TxIDs {late} became visible after {self.newest}"
        self._seen.update(row.key for row in fresh)
        self.newest = max([self.newest, *(row.since for row in fresh)])


async def watch_commits(
    reader: Store, commits: Sequence[Commit], rows_each: int, observer: OrderObserver
) -> list[Row]:
    """Let several committers insert one row after another, and observe all the while."""
    everything = Scan(0, 4, b"", 1_000_000)

    async def insert(committer: int) -> None:
        for n in range(rows_each):
            key = (0, 4, b"%d %d" % (committer, n))
            await commits[committer](Batch(1, 0, puts=[Put(key, None, 1, b"", False)]))

    writers = [asyncio.create_task(insert(n)) for n in range(len(commits))]
    try:
        while not all(writer.done() for writer in writers):
            observer.observe((await reader.read(Reading(scans=[everything]))).scans[everything])
            await asyncio.sleep(0)
        await asyncio.gather(*writers)
    finally:
        for writer in writers:
            writer.cancel()
        await asyncio.gather(*writers, return_exceptions=True)
    rows = (await reader.read(Reading(scans=[everything]))).scans[everything]
    observer.observe(rows)
    return rows


class ConcurrencyConformance:
    """Checks on two handles of one namespace."""

    def __init__(self, store: Store, other: Store) -> None:
        self.store = store
        self.other = other

    # Locks: thesis 004, table 5.2.

    async def check_shared_locks_are_compatible(self) -> None:
        await self._both_get(SHARED, SHARED)

    async def check_reading_committed_never_waits(self) -> None:
        await self._both_get(EXCLUSIVE, READ_COMMITTED)
        await self._both_get(READ_COMMITTED, EXCLUSIVE)
        await self._both_get(SHARED, READ_COMMITTED)

    async def check_shared_keeps_exclusive_waiting(self) -> None:
        await self._second_waits(SHARED, EXCLUSIVE)

    async def check_exclusive_keeps_shared_waiting(self) -> None:
        await self._second_waits(EXCLUSIVE, SHARED)

    async def check_exclusive_keeps_exclusive_waiting(self) -> None:
        await self._second_waits(EXCLUSIVE, EXCLUSIVE)

    async def check_locks_return_what_is_there(self) -> None:
        await self._fill()
        missing = (0, 3, b"z")
        async with self.store.transaction() as transaction:
            modes = {Y: EXCLUSIVE, missing: SHARED, X: READ_COMMITTED}
            rows = await transaction.lock(modes)
            assert rows == {X: Row(X, 1, b"x"), Y: Row(Y, 1, b"y")}
            assert await transaction.lock({}) == {}

    async def check_whoever_waited_for_a_lock_sees_the_new_row(self) -> None:
        await self._fill()
        async with self.store.transaction() as first:
            await first.lock({X: EXCLUSIVE})
            waiting = asyncio.create_task(self._lock_once(self.other, {X: EXCLUSIVE}))
            await self._let_others_run()
            change = Batch(1, 0, reads={X: 1}, puts=[Put(X, None, 1, b"new", True)])
            await first.commit(change)
        assert await waiting == {X: Row(X, 2, b"new")}

    async def check_a_row_that_vanished_while_waiting_is_absent(self) -> None:
        await self._fill()
        async with self.store.transaction() as first:
            await first.lock({X: EXCLUSIVE})
            waiting = asyncio.create_task(self._lock_once(self.other, {X: SHARED, Y: SHARED}))
            await self._let_others_run()
            await first.commit(Batch(1, 0, deletes=[X]))
        assert await waiting == {Y: Row(Y, 1, b"y")}

    async def check_a_row_put_anew_while_waiting_is_found(self) -> None:
        await self._fill()
        async with self.store.transaction() as first:
            await first.lock({X: EXCLUSIVE})
            waiting = asyncio.create_task(self._lock_once(self.other, {X: SHARED}))
            await self._let_others_run()
            await first.commit(Batch(1, 0, deletes=[X], puts=[Put(X, None, 1, b"anew", False)]))
        assert await waiting == {X: Row(X, 2, b"anew")}

    # The clock.

    async def check_who_has_the_clock_commits_alone(self) -> None:
        events: list[str] = []

        async def commit_elsewhere() -> int:
            base = await self.other.commit(Batch(1, 0, puts=[Put(Y, None, 1, b"", False)]))
            events.append("the other committed")
            return base

        async with self.store.transaction() as transaction:
            assert await transaction.take_clock() == 0
            waiting = asyncio.create_task(commit_elsewhere())
            await self._let_others_run()
            events.append("we commit")
            assert await transaction.commit(Batch(1, 0, puts=[Put(X, None, 1, b"", False)])) == 0
        assert await waiting == 1
        assert events == ["we commit", "the other committed"]

    async def check_a_transaction_with_the_clock_sees_the_last_commit(self) -> None:
        async with self.store.transaction() as transaction:
            await self.other.commit(Batch(1, 0, puts=[Put(X, None, 1, b"", False)]))
            assert await transaction.take_clock() == 1
            assert (await transaction.read(Reading(keys=[X]))).rows == {X: Row(X, 1, b"")}
            await transaction.commit(Batch(1, 0, reads={X: 1}, puts=[Put(X, None, 1, b"2", True)]))
        assert (await self.other.read(Reading(keys=[X]))).rows == {X: Row(X, 2, b"2")}

    async def check_two_handles_see_each_others_commits(self) -> None:
        for n in range(10):
            store, other = (self.store, self.other) if n % 2 else (self.other, self.store)
            key = (0, 5, b"%d" % n)
            assert await store.commit(Batch(1, 0, puts=[Put(key, None, 1, b"", False)])) == n
            assert (await other.read(Reading(keys=[key]))).rows == {key: Row(key, n + 1, b"")}

    async def check_of_two_with_the_same_reads_one_wins(self) -> None:
        await self._fill()
        outcomes = await asyncio.gather(
            *(
                store.commit(Batch(1, 0, reads={X: 1}, puts=[Put(X, None, 1, data, True)]))
                for store, data in ((self.store, b"1"), (self.other, b"2"))
            ),
            return_exceptions=True,
        )
        assert {type(outcome) for outcome in outcomes} == {int, Conflict}

    async def check_no_increment_is_lost(self) -> None:
        await self.store.commit(Batch(1, 0, puts=[Put(X, None, 1, b"0", False)]))

        async def increment(store: Store, times: int) -> None:
            while times:
                row = (await store.read(Reading(keys=[X]))).rows[X]
                data = b"%d" % (int(row.data) + 1)
                batch = Batch(1, 0, reads={X: row.since}, puts=[Put(X, None, 1, data, True)])
                try:
                    await store.commit(batch)
                    times -= 1
                except Conflict:
                    await asyncio.sleep(0)

        await asyncio.gather(*(increment((self.store, self.other)[n % 2], 20) for n in range(8)))
        assert (await self.store.read(Reading(keys=[X]))).rows[X] == Row(X, 161, b"160")

    async def check_txids_become_visible_in_order_and_without_gaps(self) -> None:
        observer = OrderObserver()
        commits = [(self.store, self.other)[n % 2].commit for n in range(8)]
        rows = await watch_commits(self.other, commits, 40, observer)
        assert sorted(row.since for row in rows) == list(range(1, 321))

    # Moments.

    async def check_a_moment_stays_as_it_is(self) -> None:
        await self._fill()
        scan = Scan(0, 3, b"", 9)
        reading = Reading(keys=[X], scans=[scan])
        async with self.store.moment() as moment:
            found = await moment.read(reading)
            assert [row.key for row in found.scans[scan]] == [X, Y]
            commit = self.other.commit(Batch(1, 0, deletes=[X, Y]))
            waiting = asyncio.create_task(commit)  # where it may have to
            await self._let_others_run()
            assert await moment.read(reading) == found
        await waiting
        async with self.store.moment() as moment:
            assert not (await moment.read(reading)).scans[scan]

    # Steps.

    async def _fill(self) -> None:
        puts = [Put(X, None, 1, b"x", False), Put(Y, None, 1, b"y", False)]
        await self.store.commit(Batch(1, 0, puts=puts))

    async def _both_get(self, first_mode: LockMode, second_mode: LockMode) -> None:
        if not (await self.store.read(Reading(keys=[X]))).rows:
            await self._fill()
        async with self.store.transaction() as first, self.other.transaction() as second:
            await first.lock({X: first_mode})
            assert await second.lock({X: second_mode}) == {X: Row(X, 1, b"x")}

    async def _second_waits(self, first_mode: LockMode, second_mode: LockMode) -> None:
        await self._fill()
        events: list[str] = []

        async def lock_too() -> None:
            await self._lock_once(self.other, {X: second_mode})
            events.append("the second has it")

        async with self.store.transaction() as first:
            await first.lock({X: first_mode})
            waiting = asyncio.create_task(lock_too())
            await self._let_others_run()
            events.append("the first lets go")
        await waiting
        assert events == ["the first lets go", "the second has it"]

    @staticmethod
    async def _lock_once(store: Store, modes: dict[Key, LockMode]) -> dict[Key, Row]:
        async with store.transaction() as transaction:
            return await transaction.lock(modes)

    async def _let_others_run(self) -> None:
        """Long enough for a lock that is free to be granted, in any sane store."""
        for _ in range(30):
            await self.other.read(Reading(keys=[X]))
            await asyncio.sleep(0.002)
