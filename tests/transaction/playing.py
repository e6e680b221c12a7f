"""A scenario on a NameNode of its own, in the event loop that it runs in."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

from cairnfs.clock import SystemClock
from cairnfs.config import Control, NameNodeSettings
from cairnfs.namenode.namenode import NameNode
from cairnfs.namenode.opening import format_namespace, open_store, sqlite_url
from cairnfs.namesystem.permissions import Caller

Scenario = Callable[[NameNode, Caller], Awaitable[None]]


def play(place: Path | str, control: Control, scenario: Scenario) -> None:
    """Play a scenario on a new NameNode, which is stopped at the end; never wait for ever.

    Its store is a file in a folder, or has an address.
    """

    async def playing() -> None:
        url = place if isinstance(place, str) else sqlite_url(place / "namespace")
        await format_namespace(url)
        settings = NameNodeSettings(url, control, duties=False)
        namenode = NameNode(settings, await open_store(settings), SystemClock())
        await scenario(namenode, namenode.caller(namenode.superuser))
        await namenode.stop()

    asyncio.run(asyncio.wait_for(playing(), 60))
