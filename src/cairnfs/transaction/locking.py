"""The two runners of before: one lock for everything, and locks on rows.

They run the same operations as the optimistic runner, each call in a store
transaction of its own, to be compared with it and to be chosen by a setting.

*System lock* (thesis 004, section 3.2): one reader-writer lock.  Across
NameNodes the store's clock, taken first, is that lock.

*Pessimistic* (section 3.3): the path is resolved without locks; then, in a
second round trip, the ancestors are locked shared and the last existing
directory exclusively, which locks everything below it implicitly; then the
operation runs.  Whoever adds to one directory waits for whoever does already.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any

from cairnfs.clock import Clock
from cairnfs.errors import StandbyException, StoreUnavailableException
from cairnfs.store.base import (
    CommitUnknown,
    Conflict,
    Fenced,
    Found,
    LockMode,
    Reading,
    Store,
    StoreTransaction,
    join_readings,
)
from cairnfs.store.batches import Batch, Member
from cairnfs.store.locks import LockTable
from cairnfs.store.schema import Key, Table
from cairnfs.transaction.calls import Call
from cairnfs.transaction.entries import Entry, Missing, OutOfNumbers
from cairnfs.transaction.group import Group, Run, build_batch
from cairnfs.transaction.moments import Moments
from cairnfs.transaction.numbers import Numbers
from cairnfs.transaction.reply_cache import CallsInProgress
from cairnfs.transaction.runner import (
    WAIT_MAX_S,
    WAIT_MIN_S,
    LoneMember,
    Membership,
    Prefetch,
    RunnerStatistics,
    stopped,
)
from cairnfs.transaction.seen_rows import RememberedRows
from cairnfs.transaction.transaction import Transaction
from cairnfs.transaction.views import LoadedRows, PeekedTotals, Speculation

HINTS_MAX = 400_000
CONFLICTS_MAX = 100
PATH_CHANGES_MAX = 8  # after which a call that can't find its rows to lock runs alone

Read = Callable[[Reading], Awaitable[Found]]


class _PathChanged(Exception):
    """Between resolving and locking, the path came to lead elsewhere."""


class LockingRunner:
    """What both have in common: a call is a task, and a store transaction."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        prefetch: Prefetch,
        *,
        membership: Membership | None = None,
    ) -> None:
        self.statistics = RunnerStatistics()
        self.receive_waiting: Callable[[], None] | None = None  # nobody waits for others here
        self._store = store
        self._clock = clock
        self._prefetch = prefetch
        self._membership = membership or LoneMember()
        self._numbers = Numbers(store)
        self._hints = RememberedRows(HINTS_MAX)
        self._peeked = PeekedTotals()
        self.moments = Moments()
        self._in_progress = CallsInProgress(store)
        self._tasks: set[asyncio.Task[None]] = set()
        self._closing = False

    def look(self) -> Transaction | None:
        return None  # whoever looks takes locks, as everybody does

    def submit(self, call: Call) -> None:
        if self._closing:
            call.finish(None, stopped())
            return
        self.statistics.calls += 1
        if call.key is None or self._in_progress.admit(call, self._start):
            self._start(call)

    async def close(self) -> None:
        self._closing = True
        await self._in_progress.finish_lookups()
        while self._tasks:
            await asyncio.gather(*self._tasks)

    async def _run(self, call: Call) -> tuple[Any, BaseException | None]:
        """Run a call to its end; raise `Conflict` or `_PathChanged` to have it run again."""
        raise NotImplementedError

    def _start(self, call: Call) -> None:
        task = asyncio.get_running_loop().create_task(self._run_until_done(call))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _run_until_done(self, call: Call) -> None:
        result, error = None, None
        try:
            result, error = await self._retry(call)
        except Fenced:
            error = StandbyException("this NameNode was taken for dead; ask another one")
        except Exception as failure:
            error = failure
        if call.key is not None:
            self._in_progress.remove(call)
        call.finish(result, error)

    async def _retry(self, call: Call) -> tuple[Any, BaseException | None]:
        while True:
            try:
                return await self._run(call)
            except (Conflict, _PathChanged) as conflict:
                if isinstance(conflict, Conflict) and conflict.clients:
                    call.is_retry = True  # somebody has run it: look for the reply
                self.statistics.conflicts[call.operation.name] += 1
                call.conflicts += 1
                if call.conflicts > CONFLICTS_MAX:
                    raise StoreUnavailableException(
                        f"{call.operation.name} met {call.conflicts} conflicts; try again later"
                    ) from None
                wait_s = random.uniform(0, min(WAIT_MAX_S, WAIT_MIN_S * 2**call.conflicts))
                await asyncio.sleep(wait_s)

    async def _execute(
        self,
        call: Call,
        rows: LoadedRows,
        load: Callable[[Reading], Awaitable[LoadedRows]],
        txid: int | None = None,
    ) -> Run:
        """Run the operation until it lacks nothing."""
        if self.moments.is_stale(self._clock.now_ms()):
            await self.moments.refresh(self._store, self._clock.now_ms())
        while True:
            transaction = Transaction(
                Speculation(rows, self._peeked, moments=self.moments),
                self._clock.now_ms(),
                self._numbers.take,
                alone=True,
                known_txid=txid,
                unused=call.numbers,
            )
            call.transaction = transaction
            try:
                result = call.operation.function(transaction, *call.arguments)
                transaction.seal()
                return Run(call, transaction, result, None)
            except Missing as missing:
                call.numbers = transaction.taken
                rows = await load(missing.reading)
            except OutOfNumbers as out:
                await self._numbers.reserve(out.counter)
            except Exception as failure:
                transaction.forget_changes()
                return Run(call, transaction, None, failure)

    async def _run_alone(self, call: Call) -> tuple[Any, BaseException | None]:
        """Run a call with the clock in hand: nobody else commits until it is done."""
        async with self._store.transaction() as transaction:
            txid = await transaction.take_clock()
            was_there, reply = await self._in_progress.find_reply(call)
            if was_there:
                return reply, None
            run = await self._execute_reading(call, transaction.read, txid + 1)
            await self._commit(run, transaction)
        if call.operation.solitary:
            await self.moments.refresh(self._store, self._clock.now_ms())
        return run.result, run.error

    async def _execute_reading(self, call: Call, read: Read, txid: int | None = None) -> Run:
        """Read everything anew whenever something lacks, so that it is of one moment."""
        wanted = self._prefetch(call.arguments, self._hints)

        async def load(more: Reading) -> LoadedRows:
            nonlocal wanted
            wanted = join_readings([wanted, more])
            found = await read(wanted)
            self.statistics.reads += 1
            rows = LoadedRows(wanted, found)
            self._hints.note(wanted.keys, rows.entries)
            self._peeked.note(found, self._clock.now_ms())
            return rows

        return await self._execute(call, await load(Reading()), load, txid)

    async def _commit(self, run: Run, store_transaction: StoreTransaction) -> None:
        if not run.transaction.changes_anything:
            return
        await store_transaction.take_clock()  # so that batches are numbered as they commit
        member = self._membership.next_batch()
        batch = self._batch_of(run, member)
        try:
            base = await store_transaction.commit(batch)
        except CommitUnknown as unknown:
            if member is None:
                raise StoreUnavailableException("the outcome of a commit is unknown") from unknown
            settled = await self._store.settle(member)
            if settled is None:
                raise Conflict(list(batch.reads)) from unknown
            base = settled
        self.statistics.commits += 1
        self.statistics.committed += 1
        if run.transaction.dropped:
            self.moments.is_outdated = True  # a pin may be among what is gone
        for key, record in run.transaction.writes.items():
            self._hints.remember(key, Entry(record, base + 1))

    def _batch_of(self, run: Run, member: Member | None) -> Batch:
        laid_over = Speculation(LoadedRows(Reading(), Found()))
        laid_over.accept(run.transaction)
        try:
            group = Group()
            group.append(run)
            return build_batch(group, self._clock.now_ms(), self._membership.shard, member)
        finally:  # or the transaction and its entries would keep each other for ever
            laid_over.withdraw(run.transaction)


class SystemLockRunner(LockingRunner):
    """One reader-writer lock around every operation."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        prefetch: Prefetch,
        *,
        membership: Membership | None = None,
    ) -> None:
        super().__init__(store, clock, prefetch, membership=membership)
        self._locks = LockTable()

    async def _run(self, call: Call) -> tuple[Any, BaseException | None]:
        exclusive = call.operation.mutates
        await self._locks.acquire("system", exclusive=exclusive)
        try:
            if not exclusive:
                run = await self._execute_reading(call, self._store.read)
                return run.result, run.error
            return await self._run_alone(call)
        finally:
            self._locks.release("system", exclusive=exclusive)


class PessimisticRunner(LockingRunner):
    """Locks on the rows of the path, in two phases."""

    async def _run(self, call: Call) -> tuple[Any, BaseException | None]:
        if call.conflicts > PATH_CHANGES_MAX:
            return await self._run_alone(call)
        wanted, modes = await self._resolve(call)
        async with self._store.transaction() as transaction:
            found = await transaction.lock(modes)
            if len(found) < len(modes):
                raise _PathChanged  # another directory is the last one now, and not locked as such
            was_there, reply = await self._in_progress.find_reply(call)
            if was_there:
                return reply, None
            reading = Reading(keys=list(modes))
            locked = LoadedRows(reading, Found(rows=found)).entries
            self._hints.note(modes, locked)
            locked_below = {
                locked[key].record.children_id for key in found if key[0] == Table.INODES
            }
            unlocked = Reading()

            async def load(more: Reading) -> LoadedRows:
                """Read what has no lock, all of it anew, so that it is of one moment."""
                nonlocal unlocked
                for key in more.keys:
                    if key[0] == Table.INODES and key[1] not in locked_below:
                        raise _PathChanged
                unlocked = join_readings([unlocked, more])
                rows = LoadedRows(reading, Found(rows=found))
                now_found = await transaction.read(unlocked)
                rows.extend(unlocked, now_found)
                self._peeked.note(now_found, self._clock.now_ms())
                self.statistics.reads += 1
                return rows

            txid = None
            if call.operation.solitary:
                txid = 1 + await transaction.take_clock()
            expected = [key for key in wanted.keys if key not in modes]
            rows = await load(Reading(keys=expected, totals=wanted.totals))
            run = await self._execute(call, rows, load, txid)
            await self._commit(run, transaction)
        if call.operation.solitary:
            await self.moments.refresh(self._store, self._clock.now_ms())
        return run.result, run.error

    async def _resolve(self, call: Call) -> tuple[Reading, dict[Key, LockMode]]:
        """Phase one: which rows there are along the paths, hence which to lock and how."""
        previous: list[Key] | None = None
        while True:
            reading = self._prefetch(call.arguments, self._hints)
            if reading.keys == previous:
                break
            previous = reading.keys
            found = await self._store.read(reading)
            self.statistics.reads += 1
            self._hints.note(reading.keys, LoadedRows(reading, found).entries)
        exclusive = LockMode.EXCLUSIVE if call.operation.mutates else LockMode.SHARED
        modes: dict[Key, LockMode] = dict.fromkeys(found.rows, LockMode.SHARED)
        for path in self._paths(reading.keys):
            there = [key for key in path if key in found.rows]
            # The target and its directory; or the last directory there is.
            for key in there[-2:] if len(there) == len(path) else there[-1:]:
                modes[key] = exclusive
        return reading, modes

    @staticmethod
    def _paths(keys: list[Key]) -> list[list[Key]]:
        """Split prefetched keys into paths: each begins below the root."""
        root = keys[0]
        paths: list[list[Key]] = []
        for key in keys[1:]:
            if not paths or key[1] == paths[0][0][1]:
                paths.append([])
            paths[-1].append(key)
        return [[root, *path] for path in paths] or [[root]]
