"""Groups on their way to the store: validated and updated together (thesis 004, chapter 5).

A `Committer` has the group that finished runs are put into.  While a group is being
committed, the next one grows on top of it, and is made ready in idle moments.  A
conflict throws out the runs that read what others have changed, and those that had
read their changes; the rest of the group goes to the store again.  Whatever happens,
each call is answered or runs again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from cairnfs.clock import Clock
from cairnfs.errors import HdfsError, StandbyException, StoreUnavailableException
from cairnfs.store.base import CommitUnknown, Conflict, Fenced, Store
from cairnfs.store.batches import Batch
from cairnfs.transaction.calls import Call
from cairnfs.transaction.entries import PRESUMED
from cairnfs.transaction.group import (
    Group,
    Run,
    build_batch,
    choose_thrown_out,
    prepare_batch,
)
from cairnfs.transaction.known import Known
from cairnfs.transaction.runner import CONFLICTS_BEFORE_ALONE_MAX, Membership, RunnerStatistics

log = logging.getLogger(__name__)

MARKS_MAX: Final = 50_000  # directories, with those above

Commit = Callable[[Batch], Awaitable[int]]
Answer = Callable[[Call, object, BaseException | None], None]


class Committer:
    """See the module's text.  `run_again` is told of each call that was thrown
    out, `wake` when nothing is on its way any more.
    """

    def __init__(
        self,
        store: Store,
        clock: Clock,
        membership: Membership,
        known: Known,
        statistics: RunnerStatistics,
        answer: Answer,
        run_again: Callable[[Call], None],
        wake: Callable[[], None],
    ) -> None:
        self._store = store
        self._clock = clock
        self._membership = membership
        self._known = known
        self._view = known.view
        self._cache = known.cache
        self._statistics = statistics
        self._answer = answer
        self._run_again = run_again
        self._wake = wake
        self._validate = known.cache is None  # what was read from our own stays true
        self._marks: dict[tuple[int, ...], int] = {}  # `Group.marked`, of what is committed
        self.group = self._new_group()
        self._view.groups = [self.group]
        self.txid = 0  # the clock after our last commit
        self.unanswered: list[Run] = []  # which are committed
        self._task: asyncio.Task[None] | None = None

    @property
    def is_busy(self) -> bool:
        return bool(self._task or self.group.runs or self.unanswered)

    @property
    def has_uncommitted(self) -> bool:
        """Whether a run waits for its commit, or is on its way, even if it writes no row: one
        may add to totals alone."""
        return bool(self.group.runs) or len(self._view.groups) > 1

    @property
    def is_committing(self) -> bool:
        """Whether a group is on its way while others run."""
        return self._task is not None

    def start(self) -> None:
        """Commit while the next calls are run already, unless that is going on."""
        if self.group.runs and self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._commit_all())

    def prepare(self) -> None:
        """There is nothing else to do: make the next group ready while one is on its way.

        If others join it, that was in vain.  So it is done again only for twice as many.
        """
        group = self.group
        if self._task is None or len(group.runs) < group.prepared_from_runs_min:
            return
        group.prepared_from_runs_min = 2 * len(group.runs)
        try:
            batch = prepare_batch(group, self._clock.now_ms(), validate=self._validate)
            if batch.size:
                self._store.prepare(batch)
        except Exception:
            log.exception("a group could not be prepared; it is committed all the same")
        else:
            group.prepared = batch

    async def flush(self) -> None:
        """Commit all there is, and wait for it."""
        self.start()
        while self._task is not None:
            await self._task

    async def commit(self, commit: Commit) -> None:
        """Commit the group; whatever happens, its calls are answered or run again."""
        group, self.group = self.group, self._new_group()
        self._view.groups = [group, self.group]
        try:
            while group.runs:
                try:
                    base = await self._commit_once(group, commit)
                except Conflict as conflict:
                    self._throw_out(group, conflict)
                else:
                    self._finish(group, base)
                    return
        except Fenced:
            message = "this NameNode was taken for dead and is joining again; ask another one"
            self.give_up(StandbyException(message), group)
        except Exception as error:  # the store's, or our own: nobody may wait for ever
            self.give_up(error, group)
        finally:
            self._view.groups = [self.group]

    def give_up(self, error: Exception, group: Group | None = None) -> None:
        """The store failed: forget everything that is not committed, and say so."""
        if not isinstance(error, HdfsError):
            log.error("a commit failed", exc_info=error)
        runs = self.group.runs if group is None else [*group.runs, *self.group.runs]
        for run in reversed(runs):
            self._view.withdraw(run.transaction)
        self._known.forget_committed()
        self._marks.clear()
        self.group.keep_only([])
        for run in runs:
            self._answer(run.call, None, error)

    async def _commit_all(self) -> None:
        try:
            while self.group.runs:
                await self.commit(self._store.commit)
        finally:
            self._task = None
            self._wake()

    async def _commit_once(self, group: Group, commit: Commit) -> int:
        now_ms = self._clock.now_ms()
        member = self._membership.next_batch()
        batch = build_batch(group, now_ms, self._membership.shard, member, validate=self._validate)
        if batch.size == 0 and self._cache is not None:
            return 0  # held reads whose writers were committed before them
        base, unknown = await _try(commit, batch)
        if unknown is not None and member is not None:
            base = await self._store.settle(member)
        elif unknown is not None:
            raise StoreUnavailableException("the outcome of a commit is unknown") from unknown
        if base is None:
            # As if it had never been sent: everybody runs again.
            keys = {key for run in group.runs for key in run.transaction.reads}
            raise Conflict(list(keys)) from unknown
        self._statistics.commits += 1
        self._statistics.committed += len(group.runs)
        return base

    def _finish(self, group: Group, base: int) -> None:
        rows = self._cache or self._known.memory
        for run in group.runs:
            transaction = run.transaction
            if self._cache is not None and transaction.new_inodes:
                self._cache.note_made(transaction.new_inodes)
            self._view.retire(transaction, base + transaction.order, rows)
            if transaction.dropped:
                self._known.moments.is_outdated = True  # a pin may be among what is gone
                if self._cache is not None:
                    self._cache.drop_totals(transaction.dropped)
        if self._cache is not None:
            self._cache.add_totals(group.totals, base, group.size)
        self._view.groups = [self.group]
        if len(self._marks) > MARKS_MAX:
            self._marks.clear()
        self._marks.update(group.marked)
        self._known.trust.was_right()
        self.txid = base + group.size
        self._rerun_what_counted_twice(group, base)
        self.unanswered += group.runs
        group.runs = []  # runs of the next group know this one, and would keep all before it
        if self._task is not None and self.group.runs:
            # First the next group is on its way: the store has something to do meanwhile.
            asyncio.get_running_loop().call_soon(self._answer_committed)
        else:
            self._answer_committed()

    def _answer_committed(self) -> None:
        committed, self.unanswered = self.unanswered, []
        for run in committed:
            self._answer(run.call, run.result, run.error)

    def _rerun_what_counted_twice(self, group: Group, base: int) -> None:
        """Whoever read the totals after a commit, and added those of its group once more.

        It happens between a commit and the news of it.  Only answers can be wrong by
        it: what a call changes is bounded when it is committed.
        """
        if self._cache is not None:
            return
        twice = [
            run
            for run in self.group.runs
            if run.over is group
            and run.read_txid is not None
            and run.read_txid > base
            and not run.transaction.changes_anything
            and not run.transaction.totals_read.isdisjoint(group.totals)
        ]
        if twice:
            self.group.keep_only([run for run in self.group.runs if run not in twice])
        for run in twice:
            self._run_again(run.call)

    def _throw_out(self, group: Group, conflict: Conflict) -> None:
        runs = group.runs + self.group.runs
        self._learn_from(conflict, runs)
        thrown = choose_thrown_out(runs, conflict)
        assert thrown, "a conflict is always somebody's"
        for run in reversed(runs):
            if run in thrown:
                self._view.withdraw(run.transaction)
        group.keep_only([run for run in group.runs if run not in thrown])
        self.group.keep_only([run for run in self.group.runs if run not in thrown])
        for run in runs:
            if run in thrown:
                if run.call.key is not None and run.call.key.client_id in conflict.clients:
                    run.call.is_retry = True  # somebody has run it: straight to its reply
                    run.call.conflicts = CONFLICTS_BEFORE_ALONE_MAX
                self._run_again(run.call)

    def _learn_from(self, conflict: Conflict, runs: list[Run]) -> None:
        """Forget what was stale; names that are taken after all are a reason to look first."""
        for key in conflict.keys:
            self._known.memory.forget(key)
        if any(run.transaction.reads.get(key) is PRESUMED for run in runs for key in conflict.keys):
            self._known.trust.was_wrong()

    def _new_group(self) -> Group:
        return Group(self._marks, validates=self._validate)


async def _try(commit: Commit, batch: Batch) -> tuple[int | None, CommitUnknown | None]:
    """Returns an unknown outcome: who keeps an exception that went through it keeps itself."""
    try:
        return await commit(batch), None
    except CommitUnknown as unknown:
        return None, unknown
