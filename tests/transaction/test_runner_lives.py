"""Whatever happens to one call, the others are answered, and the runner goes on."""

from __future__ import annotations

import asyncio
import uuid
from pathlib import Path
from typing import Any

import pytest
from tests.transaction.playing import play

from cairnfs.blocks.records import Recovery
from cairnfs.config import Control
from cairnfs.namenode.namenode import NameNode
from cairnfs.namesystem.delete import delete
from cairnfs.namesystem.directories import get_file_info, mkdirs
from cairnfs.namesystem.inodes import InodeId
from cairnfs.namesystem.paths import FsPath
from cairnfs.namesystem.permissions import Caller
from cairnfs.namesystem.rename import rename
from cairnfs.store.schema import NUMBER, Table
from cairnfs.transaction.calls import Call, CallKey, operation
from cairnfs.transaction.transaction import Transaction
from cairnfs.transaction.views import Speculation

pytestmark = pytest.mark.parametrize("control", list(Control), ids=lambda control: control.value)


@operation()
def stumble(tx: Transaction, caller: Caller) -> None:
    """An operation with a bug."""
    raise ZeroDivisionError("a bug")


@operation()
def look_for_number(tx: Transaction, caller: Caller) -> tuple[int, ...]:
    """Look for rows by numbers that are taken by this very call."""
    ids = tuple(tx.next_inode_id() for _ in range(3))
    stamp = tx.next_number("generation stamp")
    for id in (*ids, stamp):
        assert tx.get((Table.RECOVERIES, 0, NUMBER.pack(id))) is None
        assert tx.get_by_id(Table.INODES, id) is None
    tx.put_new((Table.RECOVERIES, 0, NUMBER.pack(ids[0])), Recovery(InodeId(ids[0]), tx.now_ms))
    return (*ids, stamp)


A, B, C = (FsPath.parse(f"/{name}") for name in "abc")


def new_key() -> CallKey:
    return CallKey(uuid.uuid4().bytes, 1)


def test_what_is_looked_for_by_a_new_number_is_found_out(
    postgres_dsn: str, control: Control
) -> None:
    """A call that runs again has the numbers it had, or would lack something for ever."""

    async def scenario(namenode: NameNode, caller: Caller) -> None:
        taken = await asyncio.gather(*(namenode.call(look_for_number, caller) for _ in range(5)))
        for numbers in zip(*taken, strict=True):
            assert len(set(numbers)) == len(taken)  # no other call has them
        assert len({id for *ids, _ in taken for id in ids}) == 15

    play(postgres_dsn, control, scenario)


def test_a_bug_in_one_operation_is_the_answer_of_that_call_alone(
    tmp_path: Path, control: Control
) -> None:
    async def scenario(namenode: NameNode, caller: Caller) -> None:
        answers = await asyncio.gather(
            namenode.call(mkdirs, caller, A, 0o755, None, True),
            namenode.call(stumble, caller),
            namenode.call(get_file_info, caller, FsPath.parse("/")),
            return_exceptions=True,
        )
        assert answers[0] is True
        assert isinstance(answers[1], ZeroDivisionError)
        assert not isinstance(answers[2], BaseException)
        assert await namenode.call(get_file_info, caller, A) is not None

    play(tmp_path, control, scenario)


@pytest.mark.interpreted
def test_a_bug_of_our_own_is_answered_too(
    tmp_path: Path, control: Control, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(namenode: NameNode, caller: Caller) -> None:
        with monkeypatch.context() as broken:
            broken.setattr(Speculation, "accept", lambda view, transaction: 1 / 0)
            answers = await asyncio.gather(
                *(namenode.call(mkdirs, caller, path, 0o755, None, True) for path in (A, B)),
                return_exceptions=True,
            )
        assert [type(answer) for answer in answers] == [ZeroDivisionError] * 2
        assert await namenode.call(mkdirs, caller, A, 0o755, None, True)

    play(tmp_path, control, scenario)


def test_a_caller_that_can_not_be_told_keeps_nobody_waiting(
    tmp_path: Path, control: Control
) -> None:
    async def scenario(namenode: NameNode, caller: Caller) -> None:
        def deaf(result: Any, error: BaseException | None) -> None:
            raise RuntimeError("nobody is listening")

        namenode.runner.submit(Call(mkdirs, (caller, A, 0o755, None, True), deaf))
        assert await namenode.call(mkdirs, caller, B, 0o755, None, True)
        assert await namenode.call(get_file_info, caller, A) is not None

    play(tmp_path, control, scenario)


def test_stopping_waits_for_a_retry_that_is_being_looked_up(
    tmp_path: Path, control: Control
) -> None:
    retries: list[asyncio.Future[bool]] = []

    async def scenario(namenode: NameNode, caller: Caller) -> None:
        await namenode.call(mkdirs, caller, A, 0o755, None, True)
        key = new_key()
        assert await namenode.call(rename, caller, A, B, key=key)
        retry = asyncio.ensure_future(namenode.call(rename, caller, A, B, key=key, is_retry=True))
        retries.append(retry)
        await asyncio.sleep(0)

    play(tmp_path, control, scenario)
    assert retries[0].result() is True


def test_a_call_repeated_without_saying_so_is_answered_with_the_stored_reply(
    tmp_path: Path, control: Control
) -> None:
    async def scenario(namenode: NameNode, caller: Caller) -> None:
        await namenode.call(mkdirs, caller, A, 0o755, None, True)
        key = new_key()
        assert await namenode.call(rename, caller, A, B, key=key)
        await namenode.call(mkdirs, caller, A, 0o755, None, True)
        assert await namenode.call(rename, caller, A, C, key=key) is True
        assert await namenode.call(get_file_info, caller, A) is not None

    play(tmp_path, control, scenario)


def test_a_number_that_was_used_is_a_mistake_of_that_call_alone(
    postgres_dsn: str, control: Control
) -> None:
    """It is noticed as the call is committed, which goes on alone then, beside others that do."""

    async def scenario(namenode: NameNode, caller: Caller) -> None:
        await namenode.call(mkdirs, caller, A, 0o755, None, True)
        used = new_key()
        assert await namenode.call(rename, caller, A, B, key=used)
        await namenode.call(mkdirs, caller, A, 0o755, None, True)
        for source, destination in [(A, C), (C, A)] * 5:
            answers = await asyncio.gather(
                namenode.call(delete, caller, B, True, key=used),
                namenode.call(rename, caller, source, destination, key=new_key()),
                return_exceptions=True,
            )
            assert "was rename; its number can't be used again for delete" in str(answers[0])
            assert answers[1] is True

    play(postgres_dsn, control, scenario)


def test_a_number_that_is_in_use_is_not_taken_for_the_other_call(
    tmp_path: Path, control: Control
) -> None:
    async def scenario(namenode: NameNode, caller: Caller) -> None:
        await namenode.call(mkdirs, caller, A, 0o755, None, True)
        await namenode.call(mkdirs, caller, B, 0o755, None, True)
        key = new_key()
        answers = await asyncio.gather(
            namenode.call(delete, caller, B, True, key=key),
            namenode.call(rename, caller, A, C, key=key),
            return_exceptions=True,
        )
        assert answers[0] is True
        assert "was delete; its number can't be used again for rename" in str(answers[1])
        assert await namenode.call(get_file_info, caller, A) is not None

    play(tmp_path, control, scenario)
