"""What it takes a look at many rows to know: told as of a short while ago, whoever asks."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from cairnfs.errors import HdfsError

log = logging.getLogger(__name__)

PART_MAX = 0.002  # of all time is spent with it
WAIT_S = 1.0  # then what was known before is told

T = TypeVar("T")


class Rationed(Generic[T]):
    """An answer that is found out when somebody asks for it, and was not for a while."""

    def __init__(
        self,
        find_out: Callable[[], Awaitable[T]],
        unknown: T,
        *,
        kept_for_s: float = 0.0,
        clock_s: Callable[[], float] = time.monotonic,
    ) -> None:
        """It is `unknown` until it was found out for the first time."""
        self._find_out = find_out
        self._known = unknown
        self._kept_for_s = kept_for_s
        self._clock_s = clock_s
        self._next_s = 0.0
        self._finding: asyncio.Task[None] | None = None

    async def get(self) -> T:
        if self._finding is None and self._clock_s() >= self._next_s:
            self._finding = asyncio.create_task(self._find())
        if self._finding is not None:
            await asyncio.wait([self._finding], timeout=WAIT_S)
        return self._known

    async def _find(self) -> None:
        began_s = self._clock_s()
        self._next_s = began_s + self._kept_for_s
        try:
            self._known = await self._find_out()
            took_s = self._clock_s() - began_s
            self._next_s = began_s + max(self._kept_for_s, took_s / PART_MAX)
        except HdfsError as error:
            log.info("rows cannot be counted: %s", error)
        finally:
            self._finding = None
