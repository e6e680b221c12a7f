"""What is committed and answered is forgotten, also if calls follow each other without a pause."""

from __future__ import annotations

import asyncio
import gc
from pathlib import Path
from typing import Any

import pytest
from tests.transaction.playing import play

from cairnfs.config import Control
from cairnfs.namenode.namenode import NameNode
from cairnfs.namesystem.directories import mkdirs
from cairnfs.namesystem.paths import FsPath
from cairnfs.namesystem.permissions import Caller
from cairnfs.testing.postgres_server import PostgresServer
from cairnfs.transaction.calls import Call
from cairnfs.transaction.transaction import Transaction

CALLERS = 32
CALLS = 3200


def alive(kind: type) -> int:
    return sum(type(each) is kind for each in gc.get_objects())


@pytest.mark.parametrize("control", list(Control), ids=lambda control: control.value)
def test_a_call_that_has_ended_is_gone(tmp_path: Path, control: Control) -> None:
    """At once: the collector comes rarely, and does not know of all that may be in a circle."""

    async def scenario(namenode: NameNode, caller: Caller) -> None:
        async def make(number: int) -> None:
            path = FsPath.parse(f"/d{number % 8}/{number}")
            await namenode.call(mkdirs, caller, path, 0o755, 0o755, True)

        await make(0)
        gc.collect()
        gc.disable()
        try:
            before = alive(Transaction)
            for number in range(1, 100):
                await make(number)
            assert alive(Transaction) <= before + 4
        finally:
            gc.enable()

    play(tmp_path, control, scenario)


def test_groups_that_overlap_do_not_keep_each_other(postgres_server: PostgresServer) -> None:
    """While one is committed the next is run: there is never a moment without either."""

    async def scenario(namenode: NameNode, caller: Caller) -> None:
        ended = asyncio.get_running_loop().create_future()
        begun = answered = alive_max = 0

        def begin() -> None:
            nonlocal begun
            if begun < CALLS:
                path = FsPath.parse(f"/d{begun % 8}/{begun}")
                begun += 1
                arguments = (caller, path, 0o755, 0o755, True)
                namenode.runner.submit(Call(mkdirs, arguments, note))

        def note(result: Any, error: BaseException | None) -> None:
            nonlocal answered, alive_max
            assert error is None, error
            answered += 1
            if answered % 400 == 0:
                alive_max = max(alive_max, alive(Call))
            if answered == CALLS:
                ended.set_result(None)
            asyncio.get_running_loop().call_soon(begin)

        for _ in range(CALLERS):
            begin()
        await ended
        assert 0 < alive_max <= 4 * CALLERS

    play(postgres_server.create_database("forgotten_runs"), Control.OPTIMISTIC, scenario)
