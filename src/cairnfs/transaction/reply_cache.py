"""Calls that must not run twice: those running now, and those that have run.

The reply of an at-most-once call is stored with its change.  A client that
lost the answer sends the call again, to this NameNode or another one, and is
given the stored reply.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from cairnfs.store.base import Store
from cairnfs.transaction.calls import Call, CallKey, decode_reply, number_used


class CallsInProgress:
    """At-most-once calls of this NameNode that are not answered yet."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._calls: dict[CallKey, Call] = {}
        self._lookups: set[asyncio.Task[None]] = set()

    def __bool__(self) -> bool:
        return bool(self._calls)

    def admit(self, call: Call, enqueue: Callable[[Call], None]) -> bool:
        """Whether to run the call now.

        A call that is running already is answered with the first one's answer;
        a retry is looked up first, and enqueued if it turns out never to have run.
        """
        assert call.key is not None
        if not call.operation.at_most_once:
            return True
        running = self._calls.get(call.key)
        if running is not None:
            if running.operation is call.operation:
                running.waiters += (call.done,)
            else:
                call.finish(None, number_used(call, running.operation.name))
            return False
        self._calls[call.key] = call
        if not call.is_retry:
            return True
        lookup = asyncio.get_running_loop().create_task(self._look_up(call, enqueue))
        self._lookups.add(lookup)
        lookup.add_done_callback(self._lookups.discard)
        return False

    def remove(self, call: Call) -> None:
        assert call.key is not None
        if self._calls.get(call.key) is call:
            del self._calls[call.key]

    async def finish_lookups(self) -> None:
        """Wait until every retry that is being looked up is answered or enqueued."""
        while self._lookups:
            await asyncio.gather(*self._lookups)

    async def find_reply(self, call: Call) -> tuple[bool, Any]:
        """Whether a retry has run before, on this or another NameNode, and its reply.

        Only for certain while nobody else can commit what the call would change: what
        another NameNode has sent to the store before it died may still take effect.
        """
        if not call.is_retry or not call.operation.at_most_once:
            return False, None
        assert call.key is not None, "only a call with a key can be a retry"
        for blob in await self._store.find_replies(call.key.client_id, call.key.call_id):
            was_there, reply = decode_reply(blob, call)
            if was_there:
                return True, reply
        return False, None

    async def _look_up(self, call: Call, enqueue: Callable[[Call], None]) -> None:
        try:
            was_there, reply = await self.find_reply(call)
        except Exception as error:  # the store's, or our own: nobody may wait for ever
            self.remove(call)
            call.finish(None, error)
            return
        if was_there:
            self.remove(call)
            call.finish(reply, None)
        else:
            enqueue(call)
