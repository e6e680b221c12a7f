"""Operations and calls of them: what a runner is given to run."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, TypeVar, get_type_hints

import msgspec

from cairnfs.store.base import Reading

log = logging.getLogger(__name__)

Done = Callable[[Any, BaseException | None], None]
"""Told the result, or the error, once either is on disk."""


class CallKey(NamedTuple):
    """Which call of which client this is: the same again for a retry."""

    client_id: bytes
    call_id: int


R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Operation(Generic[R]):
    """A function of a transaction, and what runners have to know of it."""

    function: Callable[..., R]
    name: str
    mutates: bool
    at_most_once: bool

    @property
    def reply_type(self) -> Any:
        """What the function returns, for reading stored replies back."""
        return get_type_hints(self.function)["return"]


def operation(
    *, mutates: bool = True, at_most_once: bool = False
) -> Callable[[Callable[..., R]], Operation[R]]:
    """Declare an operation.

    `at_most_once` marks the calls that Hadoop marks so: their reply is stored
    with the change, and a retry is answered with it instead of running again.
    """

    def declare(function: Callable[..., R]) -> Operation[R]:
        return Operation(
            function,
            function.__name__,
            mutates,
            at_most_once,
        )

    return declare


def _nobody(result: Any, error: BaseException | None) -> None:
    raise AssertionError("a call without anybody to tell")


@dataclass(slots=True, eq=False)
class Call:
    """One call on its way: what to run, for whom, and whom to tell."""

    operation: Operation[Any]
    arguments: tuple[Any, ...]  # after the transaction
    done: Done = _nobody
    key: CallKey | None = None
    is_retry: bool = False
    conflicts: int = 0
    wanted: Reading | None = None
    waiters: list[Done] = field(default_factory=list)
    is_answered: bool = False

    def finish(self, result: Any, error: BaseException | None) -> None:
        assert not self.is_answered, f"{self.operation.name} is answered twice"
        self.is_answered = True
        for tell in (self.done, *self.waiters):
            try:
                tell(result, error)
            except Exception:  # one who can't be told must not keep the others waiting
                log.exception("the answer to %s could not be delivered", self.operation.name)


def encode_replies(replies: list[tuple[int, Any]]) -> bytes:
    """Replies of one client, by call id, as one blob."""
    return msgspec.msgpack.encode(
        [(id, msgspec.Raw(msgspec.msgpack.encode(r))) for id, r in replies]
    )


def decode_reply(blob: bytes, call_id: int, reply_type: Any) -> tuple[bool, Any]:
    """Whether the blob holds this call's reply, and the reply."""
    for id, raw in msgspec.msgpack.decode(blob, type=list[tuple[int, msgspec.Raw]]):
        if id == call_id:
            return True, msgspec.msgpack.decode(raw, type=reply_type)
    return False, None
