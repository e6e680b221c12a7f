"""Calls of the NameNode's protocols from within its own process: those of its HTTP server.

They take the way of a call over RPC, through the same handler, so that there is one place where
each is checked and run; only their answer is awaited instead of sent.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from google.protobuf.message import Message

from cairnfs.namenode.groups import UnixGroups
from cairnfs.namenode.namenode import NameNode
from cairnfs.namenode.server import RpcServer
from cairnfs.namenode.service import IncomingCall, Response, as_told
from cairnfs.namesystem.permissions import Caller
from cairnfs.wire import rpc
from cairnfs.wire.protocols import Method

_NO_HEADER: Final = rpc.CallHeader(
    client_id=b"",
    retry_count=0,
    caller_context=None,
    caller_signature=b"",
    state_id=None,
    reply_tail=b"",
)


async def call_locally(
    server: RpcServer, caller: Caller, ugi: str, method: Method, request: Message
) -> Any:
    """The decoded response to a call; raises what the call was answered with.

    `ugi` is who calls, in the words of the audit log.
    """
    unnumbered = rpc.Call(0, method, b"", _NO_HEADER)
    call = LocalCall(LocalConnection(server, ugi), unnumbered, caller)
    call.request = request
    try:
        response = server.handlers[method](call, request)
    except Exception as error:
        call.fail(error)
    else:
        if response is not None:
            call.answer(response)
    response = await call.answered
    return method.decode_response(response) if isinstance(response, bytes) else response


class LocalConnection:
    """Where such a call comes from."""

    def __init__(self, server: RpcServer, ugi: str) -> None:
        self.namenode: NameNode = server.namenode
        self.groups: UnixGroups = server.groups
        self.calls = server.namenode.calls
        self.audit = server.namenode.audit
        self.ugi = ugi
        self.proto = "webhdfs"

    def send_reply(self, reply: bytes) -> None:
        raise AssertionError("local calls are not answered in bytes")


class LocalCall(IncomingCall):
    """A call whose answer somebody here waits for."""

    __slots__ = ("answered",)

    def __init__(self, connection: LocalConnection, call: rpc.Call, caller: Caller) -> None:
        super().__init__(connection, call, caller)
        self.answered: asyncio.Future[Response] = asyncio.get_running_loop().create_future()

    def answer(self, response: Response) -> None:
        encoded = response if isinstance(response, bytes) else response.SerializeToString()
        self.note_end(encoded, None)
        if not self.answered.done():  # or whoever waited has left
            self.answered.set_result(response)

    def fail(self, error: BaseException) -> None:
        told = as_told(error, self.method)
        self.note_end(b"", told)
        if not self.answered.done():
            self.answered.set_exception(told)
