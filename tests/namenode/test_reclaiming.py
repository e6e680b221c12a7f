"""Reclaiming leaves the time to other callers, if there are any."""

from __future__ import annotations

import asyncio

from cairnfs.namenode.reclaiming import Pace
from cairnfs.transaction.calls import Call
from cairnfs.transaction.runner import RunnerStatistics


class Counting:
    """As much of a runner as `Pace` looks at."""

    def __init__(self) -> None:
        self.statistics = RunnerStatistics()

    def submit(self, call: Call) -> None:
        raise AssertionError("nothing is run")

    async def close(self) -> None:
        raise AssertionError("nothing is run")


def waits(pace: Pace) -> bool:
    """Whether whoever rests is not done at once."""
    rest = pace.rest()
    try:
        rest.send(None)
    except StopIteration:
        return False
    rest.close()
    return True


def test_it_rests_while_others_call() -> None:
    async def check() -> None:
        runner = Counting()
        pace = Pace(runner)
        for others, is_waited in ((0, False), (3, True), (1, True), (0, False), (0, False)):
            pace.begin()
            runner.statistics.calls += 1 + others  # a step's own call, and those of others
            assert waits(pace) is is_waited

    asyncio.run(check())
