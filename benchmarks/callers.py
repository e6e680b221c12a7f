"""Closed-loop callers: each sends its next call when its last one is answered.

They are callbacks in the NameNode's event loop, as the wire server will be: no
task and no future for a call.  What making the calls costs is part of the
NameNode's CPU time; `measure_driver` tells how much that is.
"""

from __future__ import annotations

import asyncio
import itertools
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from benchmarks.machine import ServerCpu, percentile
from cairnfs.namenode.namenode import NameNode
from cairnfs.namesystem.directories import get_file_info
from cairnfs.namesystem.paths import FsPath
from cairnfs.namesystem.permissions import Caller
from cairnfs.transaction.calls import Call, CallKey, Operation
from cairnfs.transaction.moments import Moments
from cairnfs.transaction.runner import Runner, RunnerStatistics

WARM_UP_PART = 0.15  # of the measured time, before it


class Request(NamedTuple):
    """A call to make, and the call to make after it with its answer."""

    operation: Operation[Any]
    arguments: tuple[Any, ...]  # after the transaction and the caller
    then: Callable[[Any], Request] | None = None


Work = Callable[[int], Request | None]
"""The i-th piece of work, from 0; None: there is no more."""


@dataclass(slots=True)
class Measured:
    """What callers got done in a stretch of time."""

    operations: int
    elapsed_s: float
    cpu_s: float  # of the process that is the NameNode
    server_cpu_s: float | None  # of PostgreSQL
    latencies_s: list[float] = field(repr=False)

    @property
    def per_s(self) -> float:
        return self.operations / self.elapsed_s

    @property
    def cpu_us(self) -> float:
        return self.cpu_s / self.operations * 1e6

    @property
    def server_us(self) -> float | None:
        return None if self.server_cpu_s is None else self.server_cpu_s / self.operations * 1e6

    def latency_ms(self, part: float) -> float:
        return percentile(self.latencies_s, part) * 1000


class Callers:
    """Some callers of one NameNode: the threads of one client, as Hadoop would see them."""

    def __init__(
        self, runner: Runner, caller: Caller, count: int, server: ServerCpu | None = None
    ) -> None:
        self._runner = runner
        self._caller = caller
        self._count = count
        self._server = server
        self._client_id = uuid.uuid4().bytes
        self._call_ids = itertools.count()

    @classmethod
    def of(cls, namenode: NameNode, count: int, server: ServerCpu | None = None) -> Callers:
        return cls(namenode.runner, namenode.caller(namenode.superuser), count, server)

    async def measure(self, work: Work, seconds: float) -> Measured:
        """Work for a time, after a short warm-up, or until there is no more."""
        window = _Window(time.perf_counter() + seconds * WARM_UP_PART, seconds, self._server)
        await self._loop(work, window)
        return window.close()

    async def finish(self, work: Work) -> Measured:
        """Do all the work there is; everything counts."""
        window = _Window(0.0, float("inf"), self._server)
        window.open()
        await self._loop(work, window)
        return window.close()

    async def _loop(self, work: Work, window: _Window) -> None:
        ended = asyncio.get_running_loop().create_future()
        numbers = itertools.count()
        running, idle = self._count, 0  # idle ones have been answered

        def begin() -> None:
            """One caller begins its next piece of work, or goes home."""
            nonlocal running
            request = None if window.is_over else work(next(numbers))
            if request is None:
                running -= 1
                if not running and not ended.done():
                    ended.set_result(None)
                return
            self._send(request, time.perf_counter(), answered)

        def answered(request: Request, start: float, result: Any, error: Any) -> None:
            nonlocal idle
            if result is False:
                error = AssertionError(f"{request} has done nothing")
            if error is not None:
                if not ended.done():
                    ended.set_exception(error)
            elif request.then is not None:
                self._send(request.then(result), start, answered)
            else:
                window.note(start)
                # Not at once: an answer may come before the call has returned.  All that are
                # answered in one turn of the loop together, or it would have as much to do as we.
                if not idle:
                    call_soon(begin_idle)
                idle += 1

        def begin_idle() -> None:
            nonlocal idle
            beginning, idle = idle, 0
            for _ in range(beginning):
                begin()

        call_soon = asyncio.get_running_loop().call_soon
        for _ in range(self._count):
            begin()
        await ended

    def _send(
        self,
        request: Request,
        start: float,
        answered: Callable[[Request, float, Any, Any], None],
    ) -> None:
        def done(result: Any, error: BaseException | None) -> None:
            answered(request, start, result, error)

        operation = request.operation
        key = None
        if operation.at_most_once:
            key = CallKey(self._client_id, next(self._call_ids))
        self._runner.submit(Call(operation, (self._caller, *request.arguments), done, key))


class _Window:
    """The stretch of time that counts."""

    def __init__(self, opens_at: float, seconds: float, server: ServerCpu | None) -> None:
        self._opens_at = opens_at
        self._seconds = seconds
        self._server = server
        self._is_open = False
        self._closes_at = float("inf")
        self._measured: Measured | None = None
        self._latencies_s: list[float] = []

    @property
    def is_over(self) -> bool:
        return self._measured is not None

    def open(self) -> None:
        self._is_open = True
        # The server first, the time last: looking at them is not part of the window.
        self._server_before = self._server.sample() if self._server else {}
        self._cpu_before = time.process_time()
        self._start = time.perf_counter()
        self._closes_at = self._start + self._seconds

    def note(self, start: float) -> None:
        """A piece of work that began at `start` is done."""
        if self._measured is not None:
            return
        now = time.perf_counter()
        if self._is_open:
            self._latencies_s.append(now - start)
            if now >= self._closes_at:
                self.close()
        elif now >= self._opens_at:
            self.open()

    def close(self) -> Measured:
        if self._measured is None:
            if not self._latencies_s:
                raise RuntimeError("no operation ended while it was measured: too little work")
            elapsed_s = time.perf_counter() - self._start
            cpu_s = time.process_time() - self._cpu_before
            server_s = None
            if self._server is not None:
                server_s = self._server.between(self._server_before, self._server.sample())
            count = len(self._latencies_s)
            self._measured = Measured(count, elapsed_s, cpu_s, server_s, self._latencies_s)
        return self._measured


class _NoRunner:
    """Answers at the next turn of the loop and does nothing else."""

    def __init__(self) -> None:
        self.statistics = RunnerStatistics()
        self.moments = Moments()
        self.receive_waiting: Callable[[], None] | None = None

    def submit(self, call: Call) -> None:
        asyncio.get_running_loop().call_soon(call.finish, None, None)

    def look(self) -> None:
        return None

    async def close(self) -> None:
        pass


async def measure_driver(seconds: float) -> float:
    """CPU microseconds that a call costs when nothing is done for it: the callers' part."""
    nobody = Caller("nobody", frozenset(), False, "")

    def work(i: int) -> Request:
        return Request(get_file_info, (FsPath.parse(f"/bench/driver/d{i % 64}/f{i}"),))

    return (await Callers(_NoRunner(), nobody, 32).measure(work, seconds)).cpu_us
