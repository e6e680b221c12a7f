"""Runners: what executes operations, under one concurrency control or another.

All three run the same operation functions and answer a call only when what it
changed, and everything it read, is on disk.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from cairnfs.errors import StandbyException
from cairnfs.store.base import Reading, Store, StoreTransaction
from cairnfs.store.batches import Member
from cairnfs.transaction.calls import Call
from cairnfs.transaction.hints import Hints
from cairnfs.transaction.moments import Moments
from cairnfs.transaction.transaction import Transaction

CONFLICTS_BEFORE_ALONE_MAX = 12
"""Conflicts after which a call runs alone, where it can't conflict."""

CONFLICTS_ALONE_MAX = 3
"""Conflicts of a call that ran alone, after which it is given up: something is amiss."""

WAIT_MIN_S = 0.001
WAIT_MAX_S = 0.2

Prefetch = Callable[[tuple[Any, ...], Hints], Reading]
"""From a call's arguments and the hints: the rows it will most likely ask for."""


@dataclass(slots=True)
class RunnerStatistics:
    """Counted since the start, for people and for tests."""

    calls: int = 0
    commits: int = 0  # store transactions
    committed: int = 0  # calls in them
    conflicts: Counter[str] = field(default_factory=Counter)  # by operation
    ran_alone: int = 0
    reads: int = 0  # round trips of reads


class Membership(Protocol):
    """Who this NameNode is to the others."""

    shard: int

    def next_batch(self) -> Member | None:
        """Identifies a batch, for fencing and for settling unknown outcomes."""
        ...

    async def try_acquire(self, duty: str, lease_s: float) -> bool:
        """Become, or stay, the one NameNode that does this duty."""
        ...

    def holds(self, duty: str) -> bool:
        """Whether the duty is ours for certain, at this moment."""
        ...

    async def owner(self, duty: str) -> str | None:
        """The address of the NameNode that does this duty, if it is known."""
        ...

    async def leave(self) -> None:
        """Say goodbye, so that nobody has to wait for an expiry."""
        ...


class LoneMember:
    """The only NameNode of a store that nobody shares."""

    shard = 0

    def next_batch(self) -> Member | None:
        return None

    async def try_acquire(self, duty: str, lease_s: float) -> bool:
        return True

    def holds(self, duty: str) -> bool:
        return True

    async def owner(self, duty: str) -> str | None:
        return None

    async def leave(self) -> None:
        pass


class Runner(Protocol):
    """Runs calls.  All methods belong to the thread of the event loop."""

    statistics: RunnerStatistics

    moments: Moments
    """Which snapshots there are, as far as is known."""

    receive_waiting: Callable[[], None] | None
    """Takes up what clients have sent, without a turn of the event loop; set by the server."""

    def submit(self, call: Call) -> None:
        """Run a call; its `done` is called later, from the event loop."""
        ...

    def look(self) -> Transaction | None:
        """What one operation that only looks may be run on, at once and by whoever asks.

        None: it has to be submitted, as there may be something to wait for.
        """
        ...

    async def close(self) -> None:
        """Finish what was submitted, then stop."""
        ...


async def run(runner: Runner, call: Call) -> Any:
    """Submit a call and wait for its answer."""
    answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    name = call.operation.name

    def done(result: Any, error: BaseException | None) -> None:
        if answer.cancelled():
            return
        if error is None:
            answer.set_result(result)
        elif isinstance(error, StopIteration):  # which a future refuses
            answer.set_exception(RuntimeError(f"{name} failed: {error!r}"))
        else:
            answer.set_exception(error)

    call.done = done
    runner.submit(call)
    return await answer


async def in_transaction(store: Store, work: Callable[[StoreTransaction], Awaitable[None]]) -> None:
    """Do it in a transaction of the store."""
    async with store.transaction() as transaction:
        await work(transaction)


def stopped() -> StandbyException:
    """The answer to whoever calls a NameNode that is stopping."""
    return StandbyException("this NameNode is stopping; ask another one")
