"""Operations and calls of them: what a runner is given to run."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Final, Generic, NamedTuple, TypeVar

import msgspec

from cairnfs.errors import IllegalArgumentException, IOException
from cairnfs.store.base import Reading

log = logging.getLogger(__name__)

CLIENT_ID_BYTES_MAX: Final = 64

Done = Callable[[Any, BaseException | None], None]
"""Told the result, or the error, once either is on disk."""


class CallKey(NamedTuple):
    """Which call of which client this is: the same again for a retry."""

    client_id: bytes
    call_id: int

    def check(self) -> None:
        """Raise IllegalArgumentException if this can't be a key."""
        if type(self.client_id) is not bytes or len(self.client_id) > CLIENT_ID_BYTES_MAX:
            raise IllegalArgumentException("A client id is a few bytes, as Hadoop's sixteen")
        if type(self.call_id) is not int or not -(2**63) <= self.call_id < 2**63:
            raise IllegalArgumentException(f"{self.call_id!r} is not the number of a call")


R = TypeVar("R")


class Operation(Generic[R]):
    """A function of a transaction, and what runners have to know of it."""

    def __init__(
        self,
        function: Callable[..., R],
        *,
        mutates: bool,
        stored_reply: Any,
        solitary: bool,
        walks: bool,
    ) -> None:
        self.function: Final = function
        self.name: Final = function.__name__
        self.mutates: Final = mutates
        self.at_most_once: Final = stored_reply is not None
        self.reply_type: Final = stored_reply
        self.solitary: Final = solitary
        self.walks: Final = walks


def operation(
    *,
    mutates: bool = True,
    stored_reply: Any = None,
    solitary: bool = False,
    walks: bool = False,
) -> Callable[[Callable[..., R]], Operation[R]]:
    """Declare an operation.

    `stored_reply` is the type of what the function returns, for the calls that Hadoop marks to be
    run at most once: their reply is stored with the change, and a retry is answered with it
    instead of running again.
    `solitary` ones run while nobody else commits, and each commits by itself: so it
    knows its TxID beforehand, and is before or after everything else.
    `walks` marks those that only look, but nearly always at more than a page.  Others that turn
    out to, as who counts a tree that is not all his, are found out as they run.
    """

    def declare(function: Callable[..., R]) -> Operation[R]:
        return Operation(
            function,
            mutates=mutates,
            stored_reply=stored_reply,
            solitary=solitary,
            walks=walks,
        )

    return declare


def _nobody(result: Any, error: BaseException | None) -> None:
    raise AssertionError("a call without anybody to tell")


class Call:
    """One call on its way: what to run, for whom, and whom to tell."""

    def __init__(
        self,
        operation: Operation[Any],
        arguments: tuple[Any, ...],
        done: Done = _nobody,
        key: CallKey | None = None,
        is_retry: bool = False,
    ) -> None:
        """`arguments` are those after the transaction."""
        self.operation = operation
        self.arguments = arguments
        self.done = done
        self.key = key
        self.is_retry = is_retry
        self.conflicts = 0
        self.lacked = 0  # how often something that it asked for had to be read first
        self.wanted: Reading | None = None
        self.numbers: list[tuple[str, int]] | None = None  # taken by a run that lacked something
        self.waiters: tuple[Done, ...] = ()  # for the same answer
        self.is_answered = False
        self.transaction: Any = None  # its last run, for those who ask what it did

    def finish(self, result: Any, error: BaseException | None) -> None:
        assert not self.is_answered, f"{self.operation.name} is answered twice"
        self.is_answered = True
        for done in (self.done, *self.waiters):
            try:
                done(result, error)
            except Exception:  # one who can't be told must not keep the others waiting
                log.exception("the answer to %s could not be delivered", self.operation.name)


def encode_replies(replies: list[tuple[int, str, Any]]) -> bytes:
    """Replies of one client, by call id and operation, as one blob."""
    return _encode(replies)


_encode = msgspec.msgpack.Encoder().encode


def decode_reply(blob: bytes, call: Call) -> tuple[bool, Any]:
    """Whether the blob holds this call's reply, and the reply."""
    assert call.key is not None
    operation = call.operation
    for id, name, raw in msgspec.msgpack.decode(blob, type=list[tuple[int, str, msgspec.Raw]]):
        if id == call.key.call_id:
            if name != operation.name:
                raise number_used(call, name)
            return True, msgspec.msgpack.decode(raw, type=operation.reply_type)
    return False, None


def number_used(call: Call, by: str) -> IOException:
    """The answer to whoever gives two calls the same number."""
    assert call.key is not None
    return IOException(
        f"Call {call.key.call_id} of this client was {by}; its number can't be used again"
        f" for {call.operation.name}"
    )
