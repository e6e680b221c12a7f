"""Hadoop RPC, version 9: the server's end of a connection, as a machine without I/O.

A client sends

    connection header   "hrpc", version, service class, auth protocol
    a frame             RpcRequestHeaderProto with call id -3, IpcConnectionContextProto
    a frame per call    RpcRequestHeaderProto, RequestHeaderProto, the request

and is sent, in any order,

    a frame per call    RpcResponseHeaderProto, the response if there was no error.

Invariant: `receive_data` raises nothing, whatever it is given. A call that cannot be served
is answered with an error; a connection that cannot go on ends with `Closed`, after the FATAL
reply that Hadoop's Server.java has for the case.
"""

from __future__ import annotations

import enum
import struct
from collections.abc import Callable
from typing import Final, TypeAlias

import msgspec

from cairnfs.errors import AuthorizationException, HdfsError
from cairnfs.wire import rpc_replies
from cairnfs.wire.framing import FrameBuffer, ProtocolError, decode_delimited, decode_varint
from cairnfs.wire.proto.rpc_pb2 import (
    RPC_PROTOCOL_BUFFER,
    IpcConnectionContextProto,
    RpcKindProto,
    RpcRequestHeaderProto,
    RpcResponseHeaderProto,
    RpcSaslProto,
)
from cairnfs.wire.protocols import Method, MethodTable, message_decoder, text_of
from cairnfs.wire.rpc_errors import (
    InvalidProtocolBufferException,
    IpcException,
    RpcServerException,
    SaslException,
    VersionMismatch,
)
from cairnfs.wire.rpc_replies import NO_CALL_ID, NO_RETRY_COUNT, RPC_VERSION
from cairnfs.wire.sasl import SASL_CALL_ID, answer_simple_only

MAGIC: Final = b"hrpc"
SIMPLE_AUTH: Final = 0
CONNECTION_HEADER: Final = struct.Struct(">4sbBb")  # magic, version, service class, auth protocol

CONTEXT_CALL_ID: Final = -3
PING_CALL_ID: Final = -4


class ConnectionContext(msgspec.Struct, frozen=True):
    """Who calls, as the client says."""

    user: str
    real_user: str | None  # who acts on behalf of `user`
    protocol: str | None
    client_id: bytes


class CallHeader:
    """What a call says of itself besides its id."""

    __slots__ = (
        "caller_context",
        "caller_signature",
        "client_id",
        "reply_tail",
        "retry_count",
        "state_id",
    )

    def __init__(
        self,
        client_id: bytes,
        retry_count: int,
        caller_context: str | None,
        caller_signature: bytes,
        state_id: int | None,
        reply_tail: bytes,
    ) -> None:
        """`state_id` is the last that the client has seen, `reply_tail` as
        `rpc_replies.encode_reply` takes it."""
        self.client_id: Final = client_id
        self.retry_count: Final = retry_count
        self.caller_context: Final = caller_context
        self.caller_signature: Final = caller_signature
        self.state_id: Final = state_id
        self.reply_tail: Final = reply_tail


# Events


class Opened(msgspec.Struct, frozen=True):
    """The client has said who it is; calls may follow."""

    context: ConnectionContext


class Call:
    """A call to be answered."""

    __slots__ = ("call_id", "header", "method", "request")

    def __init__(self, call_id: int, method: Method, request: bytes, header: CallHeader) -> None:
        """`request` is for `method.decode_request`."""
        self.call_id: Final = call_id
        self.method: Final = method
        self.request: Final = request
        self.header: Final = header


class Send(msgspec.Struct, frozen=True):
    """Bytes that the machine has to say by itself."""

    data: bytes


class Closed(msgspec.Struct, frozen=True):
    """The connection is over; what still arrives is not looked at."""

    error: HdfsError | ProtocolError


ServerEvent: TypeAlias = Opened | Call | Send | Closed


class ServerConnection:
    """The server's end. `authorize` raises an HdfsError if the client may not call at all."""

    def __init__(
        self,
        methods: MethodTable,
        authorize: Callable[[ConnectionContext], None] = lambda context: None,
    ) -> None:
        self.context: ConnectionContext | None = None
        self._methods = methods
        self._authorize = authorize
        self._state = _State.HEADER
        self._beginning = b""
        self._frames = FrameBuffer()
        self._known: dict[bytes, tuple[CallHeader, Method]] = {}

    def receive_data(self, data: bytes) -> list[ServerEvent]:
        """What the arrival of `data` brings about."""
        events: list[ServerEvent] = []
        is_open = self._state is _OPEN
        if not is_open and self._state is _State.CLOSED:
            return events
        try:
            if not is_open and self._state is _State.HEADER:
                data = self._receive_connection_header(data)
            for frame in self._frames.receive(data):
                event = self._receive_frame(frame)
                if event is not None:
                    events.append(event)
        except _End as end:
            self._state = _State.CLOSED
            if end.reply:
                events.append(Send(end.reply))
            events.append(Closed(end.error))
        except ProtocolError as error:  # a frame too long, to which Hadoop has no reply
            self._state = _State.CLOSED
            events.append(Closed(error))
        return events

    def encode_reply(self, call: Call, response: bytes) -> bytes:
        """What to send for a call that succeeded."""
        return rpc_replies.encode_reply(call.call_id, call.header.reply_tail, response)

    def encode_error(self, call: Call, error: HdfsError) -> bytes:
        """What to send for a call that failed."""
        header = call.header
        return rpc_replies.encode_error(call.call_id, header.client_id, header.retry_count, error)

    def _receive_connection_header(self, data: bytes) -> bytes:
        """Take the connection header once it is complete; return what follows it."""
        data = self._beginning + data
        if len(data) < CONNECTION_HEADER.size:
            self._beginning = data
            return b""
        magic, version, _, auth_protocol = CONNECTION_HEADER.unpack_from(data)
        if magic == b"GET ":
            raise _End(ProtocolError("an HTTP request"), rpc_replies.HTTP_REPLY)
        if magic != MAGIC or version != RPC_VERSION:
            error = VersionMismatch(
                f"Server IPC version {RPC_VERSION} cannot communicate with client version {version}"
            )
            raise _End(error, rpc_replies.encode_version_mismatch(version, error))
        if auth_protocol not in (SIMPLE_AUTH, SASL_CALL_ID):
            raise _fatal(_UNAUTHORIZED, IpcException(f"Unknown auth protocol:{auth_protocol}"))
        self._state = _State.SASL if auth_protocol == SASL_CALL_ID else _State.CONTEXT
        return data[CONNECTION_HEADER.size :]

    def _receive_frame(self, frame: bytes) -> ServerEvent | None:
        if self._state is _OPEN and frame.startswith(_USUAL_BEGINNING, 1):
            call = self._receive_usual(frame)
            if call is not None:
                return call

        call_id, header, at = _decode_header(frame)
        if call_id < 0 or self._state is not _OPEN:
            return self._receive_out_of_band(call_id, header, frame, at)
        try:
            request_header, end = decode_delimited(frame, at)
            method = self._methods.find(request_header)
            request, _ = decode_delimited(frame, end)
        except ProtocolError as problem:
            error: HdfsError = InvalidProtocolBufferException(str(problem))
        except HdfsError as refusal:
            error = refusal
        else:
            self._remember(frame, end, header, method)
            return Call(call_id, method, request, header)
        return Send(rpc_replies.encode_error(call_id, header.client_id, header.retry_count, error))

    def _receive_usual(self, frame: bytes) -> Call | None:
        """A call that differs from an earlier one in nothing but its id and its request."""
        try:
            byte = frame[_CALL_ID_AT]
            at = _CALL_ID_AT + 1
            zigzag, shift = byte & 0x7F, 7
            while byte >= 0x80 and shift < 35:
                byte = frame[at]
                at += 1
                zigzag |= (byte & 0x7F) << shift
                shift += 7
            end = frame[0] + 1  # of the header
            end += frame[end] + 1  # and of the request's header
            known = self._known.get(frame[at:end])
            if known is None or zigzag & 1 or zigzag > _UINT32_MAX:
                return None
            if frame[end] == len(frame) - end - 1:
                request = frame[end + 1 :]
            else:
                request, _ = decode_delimited(frame, end)
        except (IndexError, ProtocolError):
            return None
        return Call(zigzag >> 1, known[1], request, known[0])

    def _remember(self, frame: bytes, end: int, header: CallHeader, method: Method) -> None:
        """What `_receive_usual` has to know; not of headers so long that they are unusual."""
        if not frame.startswith(_USUAL_BEGINNING, 1):
            return
        _, at = decode_varint(frame, _CALL_ID_AT)
        if end == frame[0] + 1 + frame[frame[0] + 1] + 1:
            if len(self._known) >= _KNOWN_MAX:
                self._known.clear()
            self._known[frame[at:end]] = header, method

    def _receive_out_of_band(
        self, call_id: int, header: CallHeader, frame: bytes, at: int
    ) -> ServerEvent | None:
        """Whatever is not a call on an open connection."""
        if call_id == PING_CALL_ID:
            return None
        if call_id == CONTEXT_CALL_ID and self._state is _State.CONTEXT:
            return self._receive_context(header, frame, at)
        if call_id == SASL_CALL_ID and self._state is _State.SASL:
            return self._receive_sasl(header, frame, at)

        if call_id >= 0:
            problem = "Connection context not established"
        elif call_id == CONTEXT_CALL_ID and self._state is _State.SASL:
            problem = "Connection header sent during SASL negotiation"
        elif call_id == CONTEXT_CALL_ID:
            problem = "Connection context already processed"
        elif call_id == SASL_CALL_ID:
            problem = "SASL protocol not requested by client"
        else:
            problem = f"Unknown out of band call #{call_id}"
        raise _fatal(_INVALID_HEADER, RpcServerException(problem), call_id, header.retry_count)

    def _receive_context(self, header: CallHeader, frame: bytes, at: int) -> Opened:
        try:
            message = _decode_context(decode_delimited(frame, at)[0])
        except _MALFORMED as error:
            raise _undecodable(
                "IpcConnectionContextProto", error, CONTEXT_CALL_ID, header.retry_count
            ) from None
        context = ConnectionContext(
            user=text_of(message.userInfo, "effectiveUser"),
            real_user=text_of(message.userInfo, "realUser") or None,
            protocol=text_of(message, "protocol") or None,
            client_id=header.client_id,
        )
        try:
            if not context.user:  # Hadoop would let such a client act as the server itself
                raise AuthorizationException("The connection names no user")
            self._authorize(context)
        except HdfsError as error:
            raise _fatal(_UNAUTHORIZED, error, CONTEXT_CALL_ID, header.retry_count) from None
        self.context = context
        self._state = _State.OPEN
        return Opened(context)

    def _receive_sasl(self, header: CallHeader, frame: bytes, at: int) -> Send:
        try:
            message = _decode_sasl(decode_delimited(frame, at)[0])
        except _MALFORMED as error:
            raise _undecodable("RpcSaslProto", error, SASL_CALL_ID, header.retry_count) from None
        try:
            answer = answer_simple_only(message)
        except SaslException as error:
            raise _fatal(_UNAUTHORIZED, error, SASL_CALL_ID, header.retry_count) from None
        self._state = _State.CONTEXT
        return Send(rpc_replies.encode_sasl(answer))


class _State(enum.Enum):
    HEADER = enum.auto()  # the connection header is awaited
    SASL = enum.auto()  # the client would prove who it is
    CONTEXT = enum.auto()  # the connection context is awaited
    OPEN = enum.auto()
    CLOSED = enum.auto()


_OPEN: Final = _State.OPEN  # an enumeration's members are slow to reach

# Of the header of nearly every call, after its length in one byte: its kind is protobuf (field
# 1), its operation final (2), and the call id comes next (3).
_USUAL_BEGINNING: Final = b"\x08\x02\x10\x00\x18"
_CALL_ID_AT: Final = 1 + len(_USUAL_BEGINNING)
_UINT32_MAX: Final = 0xFFFFFFFF

# Caller contexts make for many headers, and a client that means no good for any number.
_KNOWN_MAX: Final = 256

_decode_request_header = message_decoder(RpcRequestHeaderProto)
_decode_context = message_decoder(IpcConnectionContextProto)
_decode_sasl = message_decoder(RpcSaslProto)


def _decode_header(frame: bytes) -> tuple[int, CallHeader, int]:
    """The call id, what else the header says, and where it ends."""
    try:
        data, end = decode_delimited(frame)
        message = _decode_request_header(data)
    except _MALFORMED as error:
        raise _undecodable("RpcRequestHeaderProto", error) from None
    call_id, retry_count = message.callId, message.retryCount
    problem = _find_problem(message)
    if problem is not None:
        raise _fatal(_INVALID_HEADER, RpcServerException(problem), call_id, retry_count)
    has_context = message.HasField("callerContext")
    header = CallHeader(
        client_id=message.clientId,
        retry_count=retry_count,
        caller_context=text_of(message.callerContext, "context") if has_context else None,
        caller_signature=message.callerContext.signature,
        state_id=message.stateId if message.HasField("stateId") else None,
        reply_tail=rpc_replies.encode_tail(message.clientId, retry_count),
    )
    return call_id, header, end


def _find_problem(header: RpcRequestHeaderProto) -> str | None:
    """What Hadoop's checkRpcHeaders would say."""
    if not header.HasField("rpcOp"):
        return " IPC Server: No rpc op in rpcRequestHeader"
    if header.rpcOp != RpcRequestHeaderProto.RPC_FINAL_PACKET:
        operation = RpcRequestHeaderProto.OperationProto.Name(header.rpcOp)
        return f"IPC Server does not implement rpc header operation{operation}"
    if not header.HasField("rpcKind"):
        return " IPC Server: No rpc kind in rpcRequestHeader"
    if header.rpcKind != RPC_PROTOCOL_BUFFER:
        return f"Unknown rpc kind in rpc header{RpcKindProto.Name(header.rpcKind)}"
    return None


class _End(Exception):
    """The connection is over once `reply` is sent."""

    def __init__(self, error: HdfsError | ProtocolError, reply: bytes) -> None:
        self.error = error
        self.reply = reply


_MALFORMED: Final = (ProtocolError, InvalidProtocolBufferException)
_UNAUTHORIZED: Final = RpcResponseHeaderProto.FATAL_UNAUTHORIZED
_INVALID_HEADER: Final = RpcResponseHeaderProto.FATAL_INVALID_RPC_HEADER


def _fatal(
    code: RpcResponseHeaderProto.RpcErrorCodeProto,
    error: HdfsError,
    call_id: int = NO_CALL_ID,
    retry_count: int = NO_RETRY_COUNT,
) -> _End:
    return _End(error, rpc_replies.encode_fatal(code, error, call_id, retry_count))


def _undecodable(
    message: str, error: Exception, call_id: int = NO_CALL_ID, retry_count: int = NO_RETRY_COUNT
) -> _End:
    java_class = InvalidProtocolBufferException.java_class
    problem = RpcServerException(f"Error decoding {message}: {java_class}: {error}")
    code = RpcResponseHeaderProto.FATAL_DESERIALIZING_REQUEST
    return _fatal(code, problem, call_id, retry_count)
