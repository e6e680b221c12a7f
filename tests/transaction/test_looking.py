"""Calls that only look: on one object for all of them, while there is nothing to wait for."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.transaction.playing import play

from cairnfs.config import Control
from cairnfs.namenode.namenode import NameNode
from cairnfs.namesystem.directories import get_content_summary, get_file_info, mkdirs
from cairnfs.namesystem.paths import FsPath
from cairnfs.namesystem.permissions import Caller
from cairnfs.transaction.calls import Call, Operation, operation
from cairnfs.transaction.looking import Look
from cairnfs.transaction.transaction import Transaction


@operation(mutates=False)
def add_while_looking(tx: Transaction) -> None:
    tx.add(1, ((0, 1),))


@operation(mutates=False)
def take_while_looking(tx: Transaction) -> None:
    tx.next_inode_id()


class Asked:
    """A call, and what becomes of it."""

    def __init__(self, namenode: NameNode, operation: Operation[Any], *arguments: Any) -> None:
        self.answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.call = Call(operation, arguments, self._tell)
        namenode.runner.submit(self.call)

    def _tell(self, result: Any, error: BaseException | None) -> None:
        self.answer.set_result(result if error is None else error)


def test_those_of_one_turn_share_what_they_look_at(postgres_dsn: str) -> None:
    async def scenario(namenode: NameNode, caller: Caller) -> None:
        for n in range(3):
            await namenode.call(mkdirs, caller, FsPath.parse(f"/d/{n}"), 0o755, None, True)
        paths = [FsPath.parse(f"/d/{n}") for n in range(3)]
        asked = [Asked(namenode, get_file_info, caller, path) for path in paths]
        summary = Asked(namenode, get_content_summary, caller, FsPath.parse("/d"))
        answers = [await each.answer for each in asked]
        assert [answer.is_directory for answer in answers] == [True] * 3
        assert len({answer.id for answer in answers}) == 3
        assert (await summary.answer).directories == 4
        looks = {id(each.call.transaction) for each in asked}
        assert len(looks) == 1
        assert type(asked[0].call.transaction) is Look

    play(postgres_dsn, Control.OPTIMISTIC, scenario)


def test_beside_what_is_not_committed_nobody_looks_at_the_store_alone(postgres_dsn: str) -> None:
    async def scenario(namenode: NameNode, caller: Caller) -> None:
        await namenode.call(mkdirs, caller, FsPath.parse("/d"), 0o755, None, True)
        made = Asked(namenode, mkdirs, caller, FsPath.parse("/d/new"), 0o755, None, True)
        seen = Asked(namenode, get_file_info, caller, FsPath.parse("/d/new"))
        assert await made.answer is True
        assert (await seen.answer).is_directory
        assert type(seen.call.transaction) is Transaction

    play(postgres_dsn, Control.OPTIMISTIC, scenario)


@pytest.mark.parametrize("wrong", [add_while_looking, take_while_looking])
def test_who_only_looks_changes_nothing(postgres_dsn: str, wrong: Operation[None]) -> None:
    async def scenario(namenode: NameNode, caller: Caller) -> None:
        answer = await Asked(namenode, wrong).answer
        assert isinstance(answer, AssertionError)
        assert "only looks" in str(answer)

    play(postgres_dsn, Control.OPTIMISTIC, scenario)
