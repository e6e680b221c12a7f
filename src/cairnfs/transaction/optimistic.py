"""The optimistic runner: run at once, validate and commit together (thesis 004, chapter 5).

    read      the rows of the path, without locks
    execute   on that private snapshot, over what this NameNode has not committed yet
    validate  that every version that was read is still current
    update    all changes of a group in one store transaction, in key order

The runner here reads and executes; a `Committer` validates and updates.  Inside one
NameNode calls run one after another and never conflict.  What validation finds is
what *other* NameNodes changed.  Calls that are thrown out by a conflict wait a
random, growing moment and run again.  After a bounded number of conflicts a call
runs alone, with the store's clock in hand, and succeeds.

A call that changes something is first tried *from memory*: on the rows that are at
hand, and as if a new name were free, since validation will tell whether that is
so.  Only if it lacks a row, fails, or turns out to change nothing are its rows
read; what only reads is never answered from memory.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Iterable
from functools import partial
from typing import Final

from cairnfs.clock import Clock
from cairnfs.errors import IOException, StoreUnavailableException
from cairnfs.store.base import Store, StoreTransaction, join_readings
from cairnfs.transaction.calls import Call
from cairnfs.transaction.committing import Committer
from cairnfs.transaction.entries import Missing, MustRunAlone, OutOfNumbers
from cairnfs.transaction.group import Run
from cairnfs.transaction.known import Known
from cairnfs.transaction.looking import Look
from cairnfs.transaction.numbers import Numbers
from cairnfs.transaction.reply_cache import CallsInProgress
from cairnfs.transaction.runner import (
    CONFLICTS_ALONE_MAX,
    CONFLICTS_BEFORE_ALONE_MAX,
    WAIT_MAX_S,
    WAIT_MIN_S,
    LoneMember,
    Membership,
    Prefetch,
    RunnerStatistics,
    in_transaction,
    stopped,
)
from cairnfs.transaction.transaction import Transaction
from cairnfs.transaction.views import CommittedRows, LoadedRows
from cairnfs.transaction.walks import Walks

log = logging.getLogger(__name__)

TURN_MAX: Final = 1024  # calls taken up together
LACKED_MAX: Final = 8  # after which a call that only looks is one that looks at much
GATHERINGS_MAX: Final = 2  # times that a group is made larger before it is committed
GATHERED_MIN: Final = 4  # calls in a group from which on others are likely to come
GATHERED_MAX: Final = 64  # more would save next to nothing
HALVED_MIN: Final = 16  # fewer calls are not worth two commits


class OptimisticRunner:
    """See the module's text, and `runner.Runner`."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        prefetch: Prefetch,
        *,
        membership: Membership | None = None,
    ) -> None:
        self.statistics = RunnerStatistics()
        self.receive_waiting: Callable[[], None] | None = None
        self._store = store
        self._clock = clock
        self._prefetch = prefetch
        self._numbers = Numbers(store)
        self._short_of: set[str] = set()
        self._known = Known(store)
        self.moments = self._known.moments
        self._cache = self._known.cache
        self._view = self._known.view
        self._committer = Committer(
            store,
            clock,
            membership or LoneMember(),
            self._known,
            self.statistics,
            answer=self._answer,
            run_again=self._run_again,
            wake=self._wake,
        )
        self._look = None if self._cache is None else self._look_at(self._cache)
        self._loaded: LoadedRows | None = None  # what was read for this turn, of a shared store
        self._loaded_look: Look | None = None  # at just that, once somebody looks
        self._in_progress = CallsInProgress(store)
        self._walks = Walks(store, clock, self.statistics)
        self._arrived: list[Call] = []
        self._alone: list[Call] = []
        self._waiting: set[Call] = set()  # that sit out a moment after a conflict
        self._read_txid: int | None = None  # the clock when totals were last read
        self._next_txid: int | None = None  # of a call that is solitary
        self._wakeup: asyncio.Future[None] | None = None
        self._closing = False
        self._driver = asyncio.get_running_loop().create_task(self._drive())

    def submit(self, call: Call) -> None:
        if self._closing:
            call.finish(None, stopped())
            return
        self.statistics.calls += 1
        if call.key is not None and not self._in_progress.admit(call, self._enqueue):
            return
        if call.operation.walks and self._cache is None:
            self._walk(call)
        elif self._cache is None or call.operation.mutates or not self._is_quiet:
            self._enqueue(call)
        else:  # nothing to wait for: neither a row nor a commit
            self._execute(call, alone=False)

    def look(self) -> Transaction | None:
        look = self._look
        if look is not None:
            if self._closing or not self._is_quiet:
                return None
            self.statistics.calls += 1
            look.now_ms = self._clock.now_ms()
        return look

    async def close(self) -> None:
        self._closing = True
        await self._in_progress.finish_lookups()
        await self._walks.close()
        self._wake()
        await self._driver
        await self._walks.close()  # of those that have begun since

    def _look_at(self, rows: CommittedRows) -> Look:
        alone = rows.never_lacks  # on a store of our own, who looks is never disturbed
        return Look(self._view, self._numbers.take, rows, alone=alone)

    # Turns.

    async def _drive(self) -> None:
        if self._cache is not None:
            await self._refresh_moments()
        while True:
            if self._known.moments.is_outdated:
                await self._refresh_moments()
            if self._alone:
                await self._committer.flush()
                await self._turn_alone()
            elif self._arrived:
                await self._run_arrived()
                if self._cache is None:
                    self._committer.start()
                elif self._committer.group.runs:
                    await self._gather()
                    # A local store never makes us wait.
                    await self._committer.commit(self._store.commit)
                await asyncio.sleep(0)
            elif self._closing and not self._is_busy():
                return
            else:
                self._committer.prepare()
                await self._sleep()

    async def _run_arrived(self, calls_max: int = TURN_MAX) -> None:
        calls = self._arrived[:calls_max]
        del self._arrived[:calls_max]
        try:
            await self._turn(calls, None)
        except Exception as error:  # our own: nobody may wait for ever
            log.exception("calls could not be run")
            self._answer_all(self._stranded(calls), error)

    async def _gather(self) -> None:
        """Run who has come meanwhile as well: a commit costs the same for two calls and for ten."""
        for _ in range(GATHERINGS_MAX):
            room = GATHERED_MAX - len(self._committer.group.runs)
            if room <= 0 or len(self._committer.group.runs) < GATHERED_MIN:
                return
            if self.receive_waiting is not None:
                try:
                    self.receive_waiting()
                except Exception:  # the server's own: these calls are committed all the same
                    log.exception("what clients have sent could not be received")
            else:  # the loop goes on with us before it runs what its look at the sockets has found
                await asyncio.sleep(0)
                await asyncio.sleep(0)
            if not self._arrived or any(call.operation.walks for call in self._arrived[:room]):
                return  # who walks takes a while
            await self._run_arrived(room)

    def _stranded(self, calls: list[Call]) -> list[Call]:
        """Those that nobody will answer: not answered, in no group, and not to run again."""
        runs = [run for group in self._view.groups for run in group.runs]
        kept = {run.call for run in [*runs, *self._committer.unanswered]}
        kept.update(self._alone, self._waiting, self._walks.calls)
        return [call for call in calls if not call.is_answered and call not in kept]

    async def _turn(self, calls: list[Call], transaction: StoreTransaction | None) -> None:
        """Run calls, bringing what they lack, until each is answered or in the group."""
        if transaction is None:
            calls = await self._try_from_memory(calls)
        while calls:
            failure = await self._bring(calls, transaction)
            if failure is None:
                alone = transaction is not None
                calls = [call for call in calls if not self._execute(call, alone=alone)]
            elif len(calls) == 1 or isinstance(failure, StoreUnavailableException):
                self._answer_all(calls, failure)
                return
            else:  # one of them asks for what can't be read: the others must not suffer
                for call in calls:
                    await self._turn([call], transaction)
                return

    async def _bring(
        self, calls: list[Call], transaction: StoreTransaction | None
    ) -> Exception | None:
        """Bring what calls lack.  Returns why that failed: who keeps an exception that went
        through it keeps itself.
        """
        try:
            await self._load(calls, transaction)
            while self._short_of:
                await self._numbers.reserve(self._short_of.pop())
        except Exception as error:
            return error
        return None

    async def _try_from_memory(self, calls: list[Call]) -> list[Call]:
        """Run what may be run on rows that were seen before; returns the other calls."""
        if not self._known.trust.allows(len(calls)):
            return calls
        if self._cache is None and self._known.moments.is_stale(self._clock.now_ms()):
            return calls  # or what others have deleted would be kept for, for ever
        if self._known.peeked is not None:
            self._known.peeked.expire(self._clock.now_ms())
        try:
            return await self._try_each_from_memory(calls)
        finally:
            if self._cache is not None:
                self._view.committed = self._cache

    async def _try_each_from_memory(self, calls: list[Call]) -> list[Call]:
        self._view.committed = self._known.at_hand
        others = []
        for call in calls:
            if (
                call.conflicts
                or not call.operation.mutates
                or not self._execute(call, alone=False, from_memory=True)
            ):
                others.append(call)
            elif (
                self._cache is None
                and not self._committer.is_committing
                and 2 * len(self._committer.group.runs) >= max(HALVED_MIN, len(calls))
            ):
                # The store works on one half while we run the other.  With a steady stream
                # of calls both are busy all the time from then on.
                self._committer.start()
                await asyncio.sleep(0)
                self._view.committed = self._known.at_hand
        return others

    async def _turn_alone(self) -> None:
        """Run the calls that need it while nobody else can commit."""
        calls = self._next_alone()
        self.statistics.ran_alone += len(calls)
        try:
            await in_transaction(self._store, partial(self._run_alone, calls))
        except Exception as error:
            self._committer.give_up(error)
            self._answer_all(self._stranded(calls), error)
        finally:
            self._next_txid = None
        if calls[0].operation.solitary:
            await self._refresh_moments()

    async def _run_alone(self, calls: list[Call], transaction: StoreTransaction) -> None:
        txid = await transaction.take_clock()
        self._next_txid = txid + 1 if calls[0].operation.solitary else None
        await self._turn(await self._not_run_before(calls), transaction)
        await self._committer.commit(transaction.commit)

    def _next_alone(self) -> list[Call]:
        """The calls to run alone next: all up to one that is solitary, or that one."""
        count = 0
        while count < len(self._alone) and not self._alone[count].operation.solitary:
            count += 1
        count = count or 1
        calls = self._alone[:count]
        del self._alone[:count]
        return calls

    async def _refresh_moments(self) -> None:
        try:
            await self._known.moments.refresh(self._store, self._clock.now_ms())
        except Exception:  # what is known errs only by keeping too much
            log.exception("which snapshots there are could not be read")

    async def _not_run_before(self, calls: list[Call]) -> list[Call]:
        """Answer the retries that have run on another NameNode; the others are left.

        Nobody else can commit now, so there is no doubt.
        """
        left = []
        for call in calls:
            try:
                was_there, reply = await self._in_progress.find_reply(call)
            except StoreUnavailableException:
                raise
            except Exception as error:  # its number was another call's, say: its answer alone
                self._answer(call, None, error)
                continue
            if was_there:
                self._answer(call, reply, None)
            else:
                left.append(call)
        return left

    async def _load(self, calls: list[Call], transaction: StoreTransaction | None) -> None:
        if self._known.peeked is None:
            return
        if self._known.moments.is_stale(self._clock.now_ms()):
            await self._refresh_moments()
        for call in calls:
            if call.wanted is None:
                call.wanted = self._prefetch(call.arguments, self._known.memory)
        reading = join_readings([call.wanted for call in calls if call.wanted])
        memory = self._known.memory
        known = memory.find_all(reading.keys)
        reading.known_versions = {key: entry.since for key, entry in known.items()}
        found = await (transaction or self._store).read(reading)
        self.statistics.reads += 1
        rows = LoadedRows(reading, found, memory, known)
        self._view.committed = rows
        self._loaded = rows if transaction is None else None
        self._loaded_look = None
        self._read_txid = found.txid
        if len(found.unchanged) < len(reading.keys):
            told = [key for key in reading.keys if key not in found.unchanged]
            memory.note(told, rows.entries)
        self._known.peeked.note(found, self._clock.now_ms())

    def _execute(self, call: Call, *, alone: bool, from_memory: bool = False) -> bool:
        """Run a call once.  False: it lacks something and has to run again."""
        transaction = self._transaction_for(call, alone, from_memory)
        call.transaction = transaction
        result, error = None, None
        try:
            result = call.operation.function(transaction, *call.arguments)
            transaction.seal()
        except Missing as missing:
            call.numbers = transaction.taken
            if self._cache is None:  # from memory, it lacks the same as soon as it is read
                wanted = call.wanted or self._prefetch(call.arguments, self._known.memory)
                call.wanted = join_readings([wanted, missing.reading])
                call.lacked += 1
                if call.lacked > LACKED_MAX and not call.operation.mutates and not alone:
                    self._walk(call)
                    return True
            else:
                assert from_memory, "a store of our own is read as rows are asked for"
            return False
        except OutOfNumbers as out:
            self._short_of.add(out.counter)
            return False
        except MustRunAlone:
            self._alone.append(call)
            return True
        except Exception as failure:  # a user's error or our own: either is the answer
            error = failure
            transaction.forget_changes()
        if transaction.changes_anything:
            self._view.accept(transaction)
        elif from_memory and (self._cache is None or transaction.presumed):
            return False  # what does not commit is not validated: no answer to give
        elif not transaction.saw_uncommitted:
            self._answer(call, result, error)
            return True
        elif self._read_txid is not None and self._read_txid < self._committer.txid:
            # A commit ended while we read, and is in neither: not in what was read, and
            # no longer in what is uncommitted.
            return False
        over = self._view.groups[0] if len(self._view.groups) > 1 else None
        self._committer.group.append(Run(call, transaction, result, error, self._read_txid, over))
        return True

    def _transaction_for(self, call: Call, alone: bool, from_memory: bool) -> Transaction:
        now_ms = self._clock.now_ms()
        if (
            self._loaded is not None
            and not call.operation.mutates
            and not self._committer.has_uncommitted
        ):  # what it sees is committed: nobody has to know what that was
            look = self._loaded_look
            if look is None:
                look = self._loaded_look = self._look_at(self._loaded)
            assert self._view.committed is self._loaded, "both are what was read for this turn"
            look.now_ms = now_ms
            return look
        return Transaction(
            self._view,
            now_ms,
            self._numbers.take,
            alone or self._cache is not None,
            from_memory,
            self._next_txid,
            call.numbers,
        )

    # Calls.

    def _enqueue(self, call: Call) -> None:
        must_look_up = call.is_retry and call.operation.at_most_once
        if call.operation.solitary or (must_look_up and self._cache is None):
            self._alone.append(call)
        else:
            self._arrived.append(call)
        self._wake()

    def _run_again(self, call: Call) -> None:
        self.statistics.conflicts[call.operation.name] += 1
        call.conflicts += 1
        call.wanted = None
        if call.conflicts > CONFLICTS_BEFORE_ALONE_MAX + CONFLICTS_ALONE_MAX:
            log.error("%s conflicts, though nobody else commits", call.operation.name)
            message = f"{call.operation.name} could not be committed; see the NameNode's log"
            self._answer(call, None, IOException(message))
            return
        if call.conflicts > CONFLICTS_BEFORE_ALONE_MAX:
            self._alone.append(call)
            self._wake()
            return
        wait_s = random.uniform(0, min(WAIT_MAX_S, WAIT_MIN_S * 2**call.conflicts))
        self._waiting.add(call)

        def come_back() -> None:
            self._waiting.discard(call)
            self._enqueue(call)

        asyncio.get_running_loop().call_later(wait_s, come_back)

    def _walk(self, call: Call) -> None:
        self._walks.start(call, self._prefetch(call.arguments, self._known.memory), self._answer)

    def _answer(self, call: Call, result: object, error: BaseException | None) -> None:
        if call.key is not None:
            self._in_progress.remove(call)
        call.finish(result, error)

    def _answer_all(self, calls: Iterable[Call], error: BaseException) -> None:
        for call in list(calls):
            self._answer(call, None, error)

    @property
    def _is_quiet(self) -> bool:
        """Whether all there is is committed, and nobody has a claim to run alone."""
        return not (self._view.is_speculating or self._arrived or self._alone)

    def _is_busy(self) -> bool:
        return bool(self._committer.is_busy or self._waiting or self._in_progress)

    def _wake(self) -> None:
        if self._wakeup is not None and not self._wakeup.done():
            self._wakeup.set_result(None)

    async def _sleep(self) -> None:
        self._wakeup = asyncio.get_running_loop().create_future()
        try:
            await self._wakeup
        finally:
            self._wakeup = None
