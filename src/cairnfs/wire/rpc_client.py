"""Hadoop RPC, version 9: the client's end of a connection, as a machine without I/O.

Invariant: `receive_data` raises nothing. Each call is answered at most once, by `Reply` or
`Failure`; after `Closed`, those of `unanswered` never are. Whether to call again is for the
caller to know; with the same call id and client id, the server will know it for a retry.
"""

from __future__ import annotations

from collections.abc import Set
from typing import TypeAlias

import msgspec
from google.protobuf.message import Message

from cairnfs.errors import HdfsError, rebuild_error
from cairnfs.wire.framing import (
    FrameBuffer,
    ProtocolError,
    decode_delimited,
    encode_delimited,
    encode_frame,
)
from cairnfs.wire.proto.rpc_pb2 import (
    RPC_PROTOCOL_BUFFER,
    IpcConnectionContextProto,
    RpcRequestHeaderProto,
    RpcResponseHeaderProto,
)
from cairnfs.wire.protocols import Method, Protocol, as_text, message_decoder
from cairnfs.wire.rpc import (
    CONNECTION_HEADER,
    CONTEXT_CALL_ID,
    MAGIC,
    PING_CALL_ID,
    SIMPLE_AUTH,
    Closed,
)
from cairnfs.wire.rpc_errors import InvalidProtocolBufferException
from cairnfs.wire.rpc_replies import NO_CLIENT_ID, NO_RETRY_COUNT, RPC_VERSION

NO_ERROR_CODE = 0
SERVICE_CLASS = 0  # for routers that tell kinds of traffic apart

_STACK_TRACE = "\n\tat "  # what Java servers send after the message


class Reply(msgspec.Struct, frozen=True, eq=False):
    """A call succeeded."""

    call_id: int
    response: Message


class Failure(msgspec.Struct, frozen=True, eq=False):
    """A call failed; the connection goes on."""

    call_id: int
    error: HdfsError
    code: int  # RpcErrorCodeProto, if the server gave one


ClientEvent: TypeAlias = Reply | Failure | Closed


class ClientConnection:
    """The client's end, for one user and mostly one protocol."""

    def __init__(
        self, protocol: Protocol, client_id: bytes, user: str, real_user: str | None = None
    ) -> None:
        self._protocol = protocol
        self._client_id = client_id
        self._user = user
        self._real_user = real_user
        self._frames = FrameBuffer()
        self._methods: dict[int, Method] = {}  # of calls that wait for their replies
        self._is_closed = False

    @property
    def unanswered(self) -> Set[int]:
        """The ids of calls that have not been answered."""
        return self._methods.keys()

    def encode_opening(self) -> bytes:
        """What to send first; the server answers only if it does not want us."""
        context = IpcConnectionContextProto()
        context.protocol = self._protocol.name
        context.userInfo.effectiveUser = self._user
        if self._real_user is not None:
            context.userInfo.realUser = self._real_user
        return CONNECTION_HEADER.pack(
            MAGIC, RPC_VERSION, SERVICE_CLASS, SIMPLE_AUTH
        ) + encode_frame(
            self._encode_header(CONTEXT_CALL_ID, NO_RETRY_COUNT),
            encode_delimited(context.SerializeToString()),
        )

    def encode_call(
        self, call_id: int, method: Method, request: Message, retry_count: int = 0
    ) -> bytes:
        """What to send for a call, whose id no other unanswered call may have."""
        assert call_id >= 0, call_id
        assert call_id not in self._methods, call_id
        data = encode_frame(
            self._encode_header(call_id, retry_count),
            encode_delimited(method.header),
            encode_delimited(request.SerializeToString()),
        )
        self._methods[call_id] = method
        return data

    def encode_ping(self) -> bytes:
        """What to send from time to time while waiting; there is no answer."""
        return encode_frame(self._encode_header(PING_CALL_ID, NO_RETRY_COUNT))

    def receive_data(self, data: bytes) -> list[ClientEvent]:
        """What the arrival of `data` brings about."""
        events: list[ClientEvent] = []
        if self._is_closed:
            return events
        try:
            for frame in self._frames.receive(data):
                event = self._receive_reply(frame)
                events.append(event)
                if isinstance(event, Closed):
                    self._is_closed = True
                    break
        except (ProtocolError, InvalidProtocolBufferException) as error:
            self._is_closed = True
            events.append(Closed(error))
        return events

    def _receive_reply(self, frame: bytes) -> ClientEvent:
        data, at = decode_delimited(frame)
        header = _decode_response_header(data)
        if header.clientId not in (self._client_id, NO_CLIENT_ID):
            raise ProtocolError("a reply to another client")
        if header.status == RpcResponseHeaderProto.FATAL:
            return Closed(_rebuild_error(header))

        method = self._methods.pop(header.callId, None)
        if method is None:
            raise ProtocolError(f"a reply to call {header.callId}, which nobody awaits")
        if header.status == RpcResponseHeaderProto.ERROR:
            code = header.errorDetail if header.HasField("errorDetail") else NO_ERROR_CODE
            return Failure(header.callId, _rebuild_error(header), code)
        data, at = decode_delimited(frame, at)
        if at != len(frame):
            raise ProtocolError(f"a reply with {len(frame) - at} bytes too many")
        try:
            return Reply(header.callId, method.decode_response(data))
        except InvalidProtocolBufferException as error:
            return Failure(header.callId, error, NO_ERROR_CODE)

    def _encode_header(self, call_id: int, retry_count: int) -> bytes:
        header = RpcRequestHeaderProto()
        header.rpcKind = RPC_PROTOCOL_BUFFER
        header.rpcOp = RpcRequestHeaderProto.RPC_FINAL_PACKET
        header.callId = call_id
        header.clientId = self._client_id
        header.retryCount = retry_count
        return encode_delimited(header.SerializeToString())


_decode_response_header = message_decoder(RpcResponseHeaderProto)


def _rebuild_error(header: RpcResponseHeaderProto) -> HdfsError:
    message = as_text(header.errorMsg).partition(_STACK_TRACE)[0]
    return rebuild_error(as_text(header.exceptionClassName), message)
