"""Calls that come while others are run are committed with them; nobody waits for ever for that."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from tests.transaction.playing import play

from cairnfs.config import Control
from cairnfs.namenode.namenode import NameNode
from cairnfs.namesystem.directories import get_file_info, mkdirs
from cairnfs.namesystem.paths import FsPath
from cairnfs.namesystem.permissions import Caller
from cairnfs.transaction.calls import Call
from cairnfs.transaction.optimistic import GATHERED_MIN, GATHERINGS_MAX


class Made:
    """Directories that are made, and what was answered."""

    @classmethod
    async def on(cls, namenode: NameNode, caller: Caller) -> Made:
        """On a NameNode that has worked before, and is idle."""
        made = cls(namenode, caller)
        made.ask(1)
        await made.wait()
        return made

    def __init__(self, namenode: NameNode, caller: Caller) -> None:
        self._runner = namenode.runner
        self._caller = caller
        self._asked = 0
        self._answers: list[object] = []

    def ask(self, count: int) -> None:
        for number in range(self._asked, self._asked + count):
            path = FsPath.parse(f"/d{number}")
            self._runner.submit(Call(mkdirs, (self._caller, path, 0o755, 0o755, True), self._note))
        self._asked += count

    def _note(self, result: Any, error: BaseException | None) -> None:
        assert error is None, error
        self._answers.append(result)

    @property
    def are_answered(self) -> bool:
        return len(self._answers) == self._asked

    async def wait(self) -> None:
        while not self.are_answered:
            await asyncio.sleep(0)
        assert all(self._answers)


def test_who_comes_meanwhile_is_in_the_same_commit(tmp_path: Path) -> None:
    async def scenario(namenode: NameNode, caller: Caller) -> None:
        made, statistics = await Made.on(namenode, caller), namenode.runner.statistics
        before = statistics.commits
        made.ask(GATHERED_MIN)
        await asyncio.sleep(0)
        assert not made.are_answered
        made.ask(5)
        await made.wait()
        assert statistics.commits == before + 1

    play(tmp_path, Control.OPTIMISTIC, scenario)


def test_who_is_alone_is_not_kept_waiting_for_others(tmp_path: Path) -> None:
    async def scenario(namenode: NameNode, caller: Caller) -> None:
        made = await Made.on(namenode, caller)
        made.ask(GATHERED_MIN - 1)
        await asyncio.sleep(0)
        assert made.are_answered

    play(tmp_path, Control.OPTIMISTIC, scenario)


def test_a_stream_of_calls_does_not_keep_a_commit_waiting(tmp_path: Path) -> None:
    async def scenario(namenode: NameNode, caller: Caller) -> None:
        made = await Made.on(namenode, caller)
        looks = 0

        def look_again(*_: object) -> None:
            nonlocal looks
            looks += 1
            if not made.are_answered:
                again = Call(get_file_info, (caller, FsPath.parse("/d0")), look_again)
                asyncio.get_running_loop().call_soon(namenode.runner.submit, again)

        made.ask(GATHERED_MIN)
        look_again()
        await made.wait()
        assert looks < 10

    play(tmp_path, Control.OPTIMISTIC, scenario)


def test_what_clients_have_sent_is_received_without_a_turn_of_the_loop(tmp_path: Path) -> None:
    async def scenario(namenode: NameNode, caller: Caller) -> None:
        made, statistics = await Made.on(namenode, caller), namenode.runner.statistics
        before, looks = statistics.commits, 0

        def receive() -> None:
            nonlocal looks
            looks += 1
            made.ask(3)  # there is always somebody

        namenode.runner.receive_waiting = receive
        made.ask(GATHERED_MIN)
        await asyncio.sleep(0)
        assert made.are_answered
        assert statistics.commits == before + 1
        assert looks == GATHERINGS_MAX
        namenode.runner.receive_waiting = None

    play(tmp_path, Control.OPTIMISTIC, scenario)


def test_a_server_that_fails_to_receive_keeps_nobody_from_an_answer(tmp_path: Path) -> None:
    async def scenario(namenode: NameNode, caller: Caller) -> None:
        made = await Made.on(namenode, caller)

        def fail() -> None:
            raise OSError("no more")

        namenode.runner.receive_waiting = fail
        for _ in range(2):
            made.ask(GATHERED_MIN)
            await asyncio.wait_for(made.wait(), 10)
        namenode.runner.receive_waiting = None

    play(tmp_path, Control.OPTIMISTIC, scenario)
