"""Calls that are answered by a coroutine, because they take several steps."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from cairnfs.namenode.service import IncomingCall, Response
from cairnfs.transaction.runner import stopped

_running: set[asyncio.Task[Response]] = set()  # the event loop itself would forget them


def answer_with(call: IncomingCall, work: Coroutine[Any, Any, Response]) -> None:
    """Answer a call with what a coroutine returns or raises."""
    task = asyncio.get_running_loop().create_task(work)
    _running.add(task)

    def done(task: asyncio.Task[Response]) -> None:
        _running.discard(task)
        if task.cancelled():
            call.fail(stopped())
        elif (error := task.exception()) is not None:
            call.fail(error)
        else:
            call.answer(task.result())

    task.add_done_callback(done)
