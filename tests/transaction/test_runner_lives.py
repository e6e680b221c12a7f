"""Whatever happens to one call, the others are answered, and the runner goes on."""

from __future__ import annotations

import asyncio
import uuid
from pathlib import Path
from typing import Any

import pytest

from cairnfs.clock import SystemClock
from cairnfs.config import Control, NameNodeSettings
from cairnfs.namenode.namenode import NameNode
from cairnfs.namenode.opening import format_namespace, open_store
from cairnfs.namesystem.directories import get_file_info, mkdirs
from cairnfs.namesystem.paths import FsPath
from cairnfs.namesystem.permissions import Caller
from cairnfs.namesystem.rename import rename
from cairnfs.transaction.calls import Call, CallKey, operation
from cairnfs.transaction.transaction import Transaction

pytestmark = pytest.mark.parametrize("control", list(Control), ids=lambda control: control.value)


@operation()
def stumble(tx: Transaction, caller: Caller) -> None:
    """An operation with a bug."""
    raise ZeroDivisionError("a bug")


async def start(folder: Path, control: Control) -> NameNode:
    url = f"sqlite://{folder / 'namespace'}"
    await format_namespace(url)
    settings = NameNodeSettings(url, control, duties=False)
    return NameNode(settings, await open_store(settings), SystemClock())


def test_a_bug_in_one_operation_is_the_answer_of_that_call_alone(
    tmp_path: Path, control: Control
) -> None:
    async def scenario() -> None:
        namenode = await start(tmp_path, control)
        caller = namenode.caller(namenode.superuser)
        path = FsPath.parse("/a")
        answers = await asyncio.gather(
            namenode.call(mkdirs, caller, path, 0o755, None, True),
            namenode.call(stumble, caller),
            namenode.call(get_file_info, caller, FsPath.parse("/")),
            return_exceptions=True,
        )
        assert answers[0] is True
        assert isinstance(answers[1], ZeroDivisionError)
        assert not isinstance(answers[2], BaseException)
        assert await namenode.call(get_file_info, caller, path) is not None
        await namenode.stop()

    asyncio.run(asyncio.wait_for(scenario(), 60))


def test_a_caller_that_can_not_be_told_keeps_nobody_waiting(
    tmp_path: Path, control: Control
) -> None:
    async def scenario() -> None:
        namenode = await start(tmp_path, control)
        caller = namenode.caller(namenode.superuser)

        def deaf(result: Any, error: BaseException | None) -> None:
            raise RuntimeError("nobody is listening")

        path = FsPath.parse("/a")
        namenode.runner.submit(Call(mkdirs, (caller, path, 0o755, None, True), deaf))
        assert await namenode.call(mkdirs, caller, FsPath.parse("/b"), 0o755, None, True)
        assert await namenode.call(get_file_info, caller, path) is not None
        await namenode.stop()

    asyncio.run(asyncio.wait_for(scenario(), 60))


def test_stopping_waits_for_a_retry_that_is_being_looked_up(
    tmp_path: Path, control: Control
) -> None:
    async def scenario() -> None:
        namenode = await start(tmp_path, control)
        caller = namenode.caller(namenode.superuser)
        source, target = FsPath.parse("/a"), FsPath.parse("/b")
        await namenode.call(mkdirs, caller, source, 0o755, None, True)
        key = CallKey(uuid.uuid4().bytes, 1)
        assert await namenode.call(rename, caller, source, target, key=key)
        retry = asyncio.ensure_future(
            namenode.call(rename, caller, source, target, key=key, is_retry=True)
        )
        await asyncio.sleep(0)
        await namenode.stop()
        assert await retry is True

    asyncio.run(asyncio.wait_for(scenario(), 60))


def test_a_call_repeated_without_saying_so_is_answered_with_the_stored_reply(
    tmp_path: Path, control: Control
) -> None:
    async def scenario() -> None:
        namenode = await start(tmp_path, control)
        caller = namenode.caller(namenode.superuser)
        source, target = FsPath.parse("/a"), FsPath.parse("/b")
        await namenode.call(mkdirs, caller, source, 0o755, None, True)
        key = CallKey(uuid.uuid4().bytes, 1)
        assert await namenode.call(rename, caller, source, target, key=key)
        await namenode.call(mkdirs, caller, source, 0o755, None, True)
        assert await namenode.call(rename, caller, source, FsPath.parse("/c"), key=key) is True
        assert await namenode.call(get_file_info, caller, source) is not None
        await namenode.stop()

    asyncio.run(asyncio.wait_for(scenario(), 60))
