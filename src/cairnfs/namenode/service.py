"""How a protocol is served: its calls, each with a handler.

A module that serves a protocol makes a `Service` and hands it one function per call, named
as the call is, in snake case; `RpcServer` takes any number of services:

    DATANODE_SERVICE = Service(DATANODE_PROTOCOL)

    @DATANODE_SERVICE.handler
    def version_request(
        call: IncomingCall, request: VersionRequestProto
    ) -> VersionResponseProto:
        return VersionResponseProto(info=...)

A handler is given the call and its decoded request, in the event loop, and so never waits.
It does one of three things, or raises, which is an answer too:

    it returns the response                       which is sent at once
    it returns None after `call.run`              the result of an operation is the answer
    it returns None and keeps the call            for `call.answer` or `call.fail` later, once

Invariant: every call is answered exactly once, whatever its handler does.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from time import perf_counter
from typing import Any, Final, Protocol, TypeAlias, TypeVar

from google.protobuf.message import Message

from cairnfs.errors import HdfsError, IOException
from cairnfs.namenode.audited_calls import note_call
from cairnfs.namenode.groups import UnixGroups
from cairnfs.namenode.namenode import NameNode
from cairnfs.namesystem.permissions import Caller
from cairnfs.observe.audit import AuditLog
from cairnfs.observe.figures import CallFigures
from cairnfs.transaction.calls import Call, CallKey, Operation, R
from cairnfs.wire import rpc, rpc_replies
from cairnfs.wire.protocols import Method
from cairnfs.wire.protocols import Protocol as WireProtocol

log = logging.getLogger(__name__)

CLIENT_ID_BYTES: Final = 16  # any other is none, and its calls cannot be told apart (RetryCache)

Response: TypeAlias = Message | bytes
"""What a call is answered with; bytes are an encoded message."""

Handler: TypeAlias = Callable[["IncomingCall", Any], Response | None]
"""A function of a call and its request; see the module's text."""

H = TypeVar("H", bound=Handler)


class Connection(Protocol):
    """Where a call came from."""

    namenode: NameNode
    groups: UnixGroups
    calls: CallFigures
    audit: AuditLog | None
    ugi: str  # who calls, as the audit log says it
    proto: str  # and how: rpc or webhdfs

    def send_reply(self, reply: bytes) -> None:
        """Send the one reply to a call of this connection, if there is still someone to read it."""
        ...


class Service:
    """The calls of one protocol, and who handles them."""

    def __init__(self, protocol: WireProtocol) -> None:
        self.protocol = protocol
        self.handlers: dict[Method, Handler] = {}
        self._by_name = {name.lower(): method for name, method in protocol.methods.items()}

    @classmethod
    def join(cls, *parts: Service) -> Service:
        """One service of parts that serve the same protocol."""
        joined = cls(parts[0].protocol)
        for part in parts:
            assert part.protocol is joined.protocol
            assert joined.handlers.keys().isdisjoint(part.handlers)
            joined.handlers |= part.handlers
        return joined

    def handler(self, function: H) -> H:
        """Let `function` handle the call of its name: `get_ez_for_path` is getEZForPath.

        An underscore at the end does not count; it tells `delete_` from the module `delete`.
        """
        method = self._by_name[function.__name__.replace("_", "")]
        assert method not in self.handlers, f"{method} has a handler"
        self.handlers[method] = function
        return function


class IncomingCall:
    """One call, from its arrival to its answer.  All methods belong to the event loop."""

    __slots__ = (
        "_began_s",
        "_call",
        "_connection",
        "_encode",
        "_is_answered",
        "_submitted",
        "caller",
        "request",
    )

    def __init__(self, connection: Connection, call: rpc.Call, caller: Caller) -> None:
        self._connection = connection
        self._call = call
        self._is_answered = False
        self._submitted: Call | None = None  # kept for the audit log alone
        self._began_s = perf_counter()
        self.caller = caller
        self.request: Message | None = None  # as well

    @property
    def method(self) -> Method:
        return self._call.method

    @property
    def namenode(self) -> NameNode:
        return self._connection.namenode

    @property
    def groups(self) -> UnixGroups:
        """The groups of users, as this server knows them."""
        return self._connection.groups

    @property
    def key(self) -> CallKey | None:
        """The same for each retry of this call; None if the client cannot be told apart."""
        client_id = self._call.header.client_id
        if len(client_id) != CLIENT_ID_BYTES:
            return None
        return CallKey(client_id, self._call.call_id)

    @property
    def is_retry(self) -> bool:
        return self._call.header.retry_count > 0

    def run(
        self, operation: Operation[R], encode: Callable[[R], Response], *arguments: object
    ) -> None:
        """Run an operation for the caller; `encode` makes the response of its result.

        The caller goes before the other arguments.
        """
        namenode = self._connection.namenode
        if operation.mutates:
            if namenode.safe_mode.is_on:
                namenode.safe_mode.check_off(operation.name, arguments)
        elif (look := namenode.runner.look()) is not None:
            try:
                response = encode(operation.function(look, self.caller, *arguments))
            except Exception as error:
                self.fail(error)
            else:
                self.answer(response)
            return
        self._encode = encode
        self._submit(operation, (self.caller, *arguments), self._done)

    def start(
        self,
        operation: Operation[R],
        done: Callable[[R | None, BaseException | None], None],
        *arguments: object,
        is_reply: bool = True,
    ) -> None:
        """Run an operation as a part of this call, which `done` goes on with.

        It belongs to no caller unless one is among the arguments.  If `done` raises, that
        is the answer.  Of several operations that run at most once, all but the one that
        decides the reply have to say that they are not it: one is stored for a call.
        """

        def go_on(result: Any, error: BaseException | None) -> None:
            try:
                done(result, error)
            except Exception as failure:
                self.fail(failure)

        self._submit(operation, arguments, go_on, is_reply=is_reply)

    def answer(self, response: Response) -> None:
        """The call has succeeded."""
        if type(response) is not bytes:
            response = response.SerializeToString()  # type: ignore[union-attr]
        call = self._call
        reply = rpc_replies.encode_reply(call.call_id, call.header.reply_tail, response)
        self._reply(reply, response, None)

    def fail(self, error: BaseException) -> None:
        """The call has failed: with an error that callers know, or with one of our own."""
        call, header = self._call, self._call.header
        told = as_told(error, call.method)
        reply = rpc_replies.encode_error(call.call_id, header.client_id, header.retry_count, told)
        self._reply(reply, b"", told)

    def note_end(self, response: bytes, error: HdfsError | None) -> None:
        """The call has its answer: count it, and put it into the audit log."""
        method, connection = self._call.method, self._connection
        connection.calls.note(method, perf_counter() - self._began_s)
        if error is not None:
            connection.calls.note_error(method, error)
        if connection.audit is None:
            return
        submitted, self._submitted = self._submitted, None  # which knows us, too
        try:
            note_call(
                connection.audit,
                method=method,
                request=self.request,
                header=self._call.header,
                ugi=connection.ugi,
                address=self.caller.address,
                proto=connection.proto,
                transaction=None if submitted is None else submitted.transaction,
                response=response,
                error=error,
            )
        except Exception:  # the caller is answered all the same
            log.exception("%s could not be put into the audit log", method)

    def _reply(self, reply: bytes, response: bytes, error: HdfsError | None) -> None:
        if self._is_answered:
            log.error("%s has been answered already", self._call.method)
            return
        self._is_answered = True
        self.note_end(response, error)
        self._connection.send_reply(reply)

    def _submit(
        self,
        operation: Operation[Any],
        arguments: tuple[object, ...],
        done: Callable[[Any, BaseException | None], None],
        *,
        is_reply: bool = True,
    ) -> None:
        key, is_retry = None, False
        if operation.at_most_once and is_reply:
            key, is_retry = self.key, self.is_retry
        call = Call(operation, arguments, done, key, is_retry)
        is_audited = self._connection.audit is not None and not self._is_answered
        if is_audited and (operation.mutates or self._submitted is None):
            self._submitted = call  # else it only waits for what was changed
        self._connection.namenode.runner.submit(call)

    def _done(self, result: Any, error: BaseException | None) -> None:
        if error is None:
            try:
                response = self._encode(result)
            except Exception as failure:
                error = failure
            else:
                self.answer(response)
                return
        self.fail(error)


def as_told(error: BaseException, method: Method) -> HdfsError:
    """The error as callers know it; one of our own goes to the log instead."""
    if isinstance(error, HdfsError):
        return error
    log.error("%s failed", method, exc_info=error)
    return IOException(f"{type(error).__name__} in {method.name}; see the log")
