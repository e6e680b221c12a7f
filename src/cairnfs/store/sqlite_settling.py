"""When commits are brought to SQLite's tables: between calls, in turns of the event loop."""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from cairnfs.errors import StoreUnavailableException
from cairnfs.store.sqlite_commits import Commits

log = logging.getLogger(__name__)

REST_S: Final = 0.02  # without a commit


class Settler:
    """Has it done a slice at a time, so that nobody has to wait for all of it."""

    def __init__(self, commits: Commits) -> None:
        self._commits = commits
        self._goes_on_in: asyncio.AbstractEventLoop | None = None
        self._awaits_rest_in: asyncio.AbstractEventLoop | None = None

    def look(self) -> None:
        """See whether it is time: something was committed, or much had to be looked through."""
        if self._commits.is_settling:
            self._go_on_soon()
        elif self._commits.would_settle:
            self._begin_at_rest()

    def _go_on_soon(self) -> None:
        """In the next turn of the loop: once what is committed is answered."""
        loop = asyncio.get_running_loop()
        if self._goes_on_in is not loop:  # or one that has ended
            self._goes_on_in = loop
            loop.call_soon(self._settle_some)

    def _begin_at_rest(self) -> None:
        """Once nobody has committed for a moment: most load comes in bursts."""
        loop = asyncio.get_running_loop()
        if self._awaits_rest_in is not loop:
            self._awaits_rest_in = loop
            loop.call_later(REST_S, self._look_for_rest, self._commits.txid)

    def _look_for_rest(self, txid: int) -> None:
        self._awaits_rest_in = None
        if self._commits.txid == txid:
            self._settle_some()
        else:
            self.look()

    def _settle_some(self) -> None:
        self._goes_on_in = None
        try:
            self._commits.settle_some()
        except StoreUnavailableException as error:  # so will be whoever commits next
            log.warning("commits could not be brought to their tables: %s", error)
        else:
            self.look()
