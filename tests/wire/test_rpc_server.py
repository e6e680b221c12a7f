"""The server's end, where the captured connections do not go."""

from __future__ import annotations

import pytest

from cairnfs.errors import (
    AuthorizationException,
    FileNotFoundException,
    HdfsError,
    RemoteError,
    RpcNoSuchMethodException,
)
from cairnfs.wire.framing import (
    FrameBuffer,
    ProtocolError,
    decode_delimited,
    encode_delimited,
    encode_frame,
)
from cairnfs.wire.proto.client_namenode_pb2 import GetFileInfoRequestProto
from cairnfs.wire.proto.rpc_pb2 import (
    IpcConnectionContextProto,
    RpcRequestHeaderProto,
    RpcResponseHeaderProto,
)
from cairnfs.wire.protocols import CLIENT_PROTOCOL, MethodTable
from cairnfs.wire.rpc import Call, Closed, ConnectionContext, Opened, Send, ServerConnection
from cairnfs.wire.rpc_client import ClientConnection

GET_FILE_INFO = CLIENT_PROTOCOL["getFileInfo"]
METHODS = MethodTable([CLIENT_PROTOCOL])
CLIENT_ID = bytes(range(16))
REQUEST = GetFileInfoRequestProto(src="/a")


def make_client() -> ClientConnection:
    return ClientConnection(CLIENT_PROTOCOL, CLIENT_ID, "alice")


def open_connection() -> ServerConnection:
    connection = ServerConnection(METHODS)
    (opened,) = connection.receive_data(make_client().encode_opening())
    assert isinstance(opened, Opened)
    return connection


def encode_call(call_id: int = 0, retry_count: int = 0) -> bytes:
    return make_client().encode_call(call_id, GET_FILE_INFO, REQUEST, retry_count)


def receive_call(connection: ServerConnection, data: bytes) -> Call:
    (call,) = connection.receive_data(data)
    assert isinstance(call, Call)
    return call


def decode_reply(data: bytes) -> tuple[RpcResponseHeaderProto, bytes]:
    (frame,) = FrameBuffer().receive(data)
    header, at = decode_delimited(frame)
    return RpcResponseHeaderProto.FromString(header), frame[at:]


# Calls and replies


@pytest.mark.parametrize(
    "call_id", [0, 1, 63, 64, 127, 128, 8191, 8192, 16_383, 16_384, 1 << 20, (1 << 31) - 1]
)
@pytest.mark.parametrize("retry_count", [0, 1, 70, -1])
def test_ids_and_retries_there_and_back(call_id: int, retry_count: int) -> None:
    connection = open_connection()
    for _ in range(2):  # parsed, then known
        call = receive_call(connection, encode_call(call_id, retry_count))
        assert call.call_id == call_id
        assert call.header.retry_count == retry_count
        header, body = decode_reply(connection.encode_reply(call, b"response"))
        assert header == RpcResponseHeaderProto(
            callId=call_id,
            status=RpcResponseHeaderProto.SUCCESS,
            serverIpcVersionNum=9,
            clientId=CLIENT_ID,
            retryCount=retry_count,
        )
        assert body == encode_delimited(b"response")


@pytest.mark.parametrize("size", [0, 127, 128, 100_000])
def test_responses_of_any_size(size: int) -> None:
    connection = open_connection()
    call = receive_call(connection, encode_call())
    _, body = decode_reply(connection.encode_reply(call, bytes(size)))
    assert body == encode_delimited(bytes(size))


def test_many_calls_in_a_chunk_keep_their_order() -> None:
    calls = open_connection().receive_data(b"".join(map(encode_call, range(200))))
    assert [call.call_id for call in calls if isinstance(call, Call)] == list(range(200))


@pytest.mark.parametrize(
    ("error", "java_class", "code"),
    [
        (FileNotFoundException("gone"), "java.io.FileNotFoundException", 1),
        (RemoteError("odd", "a.b.C"), "a.b.C", 1),
        (
            RpcNoSuchMethodException("none"),
            "org.apache.hadoop.ipc.RpcNoSuchMethodException",
            2,
        ),
    ],
)
def test_errors(error: HdfsError, java_class: str, code: int) -> None:
    connection = open_connection()
    call = receive_call(connection, encode_call(7, 3))
    header, body = decode_reply(connection.encode_error(call, error))
    assert header == RpcResponseHeaderProto(
        callId=7,
        status=RpcResponseHeaderProto.ERROR,
        serverIpcVersionNum=9,
        exceptionClassName=java_class,
        errorMsg=str(error),
        errorDetail=code,  # type: ignore[arg-type]
        clientId=CLIENT_ID,
        retryCount=3,
    )
    assert body == b""


def test_an_error_that_quotes_what_is_not_utf8() -> None:
    connection = open_connection()
    call = receive_call(connection, encode_call())
    error = FileNotFoundException(b"/\xff".decode(errors="surrogateescape"))
    assert decode_reply(connection.encode_error(call, error))[0].errorMsg == "/?"


def test_what_a_header_may_add() -> None:
    header = RpcRequestHeaderProto(rpcKind=2, rpcOp=0, callId=5, clientId=CLIENT_ID, stateId=77)
    header.callerContext.context = "job"
    header.callerContext.signature = b"s"
    data = encode_frame(
        encode_delimited(header.SerializeToString()),
        encode_delimited(GET_FILE_INFO.header),
        encode_delimited(REQUEST.SerializeToString()),
    )
    connection = open_connection()
    for _ in range(2):
        call = receive_call(connection, data)
        assert call.call_id == 5
        assert call.header.state_id == 77
        assert (call.header.caller_context, call.header.caller_signature) == ("job", b"s")
        assert call.header.retry_count == -1


def test_a_call_id_beyond_32_bits_is_cut_as_in_java() -> None:
    connection = open_connection()
    usual = encode_call(1)
    long_id = b"\x18" + b"\x82\x80\x80\x80\x80\x01"  # 2, which is 1 in zigzag, and bit 35
    at = usual.index(b"\x18\x02")
    data = usual[:at] + long_id + usual[at + 2 :]
    data = (len(data) - 4).to_bytes(4, "big") + bytes((data[4] + 5,)) + data[5:]
    receive_call(connection, usual)
    assert receive_call(connection, data).call_id == 1


def test_headers_are_not_remembered_without_end() -> None:
    connection = open_connection()
    for retry_count in range(1000):
        call = receive_call(connection, encode_call(1, retry_count))
        assert call.header.retry_count == retry_count
    assert len(connection._known) <= 256


def test_long_headers_are_not_remembered() -> None:
    connection = open_connection()
    client = ClientConnection(CLIENT_PROTOCOL, bytes(10_000), "alice")
    call = receive_call(connection, client.encode_call(1, GET_FILE_INFO, REQUEST))
    assert len(call.header.client_id) == 10_000
    assert sum(map(len, connection._known)) < 1000
    header, _ = decode_reply(connection.encode_reply(call, b""))
    assert header.clientId == bytes(10_000)


# Who may connect


def test_authorize_sees_the_context() -> None:
    seen: list[ConnectionContext] = []
    connection = ServerConnection(METHODS, authorize=seen.append)
    client = ClientConnection(CLIENT_PROTOCOL, CLIENT_ID, "bob", real_user="gateway")
    connection.receive_data(client.encode_opening())
    assert seen == [ConnectionContext("bob", "gateway", CLIENT_PROTOCOL.name, CLIENT_ID)]
    assert connection.context == seen[0]


def test_a_client_that_is_not_authorized_hears_so_and_is_cut_off() -> None:
    def refuse(context: ConnectionContext) -> None:
        raise AuthorizationException(f"User: {context.user} is not allowed")

    connection = ServerConnection(METHODS, refuse)
    sent, closed = connection.receive_data(make_client().encode_opening() + encode_call())
    assert isinstance(sent, Send)
    header, _ = decode_reply(sent.data)
    assert header.callId == (1 << 32) - 3
    assert header.status == RpcResponseHeaderProto.FATAL
    assert header.errorDetail == RpcResponseHeaderProto.FATAL_UNAUTHORIZED
    assert header.exceptionClassName == AuthorizationException.java_class
    assert header.errorMsg == "User: alice is not allowed"
    assert isinstance(closed, Closed)
    assert connection.context is None


def test_a_user_name_that_is_not_utf8_is_read_as_in_java() -> None:
    opening = make_client().encode_opening().replace(b"alice", b"ali\xffe")
    (opened,) = ServerConnection(METHODS).receive_data(opening)
    assert isinstance(opened, Opened)
    assert opened.context.user == "ali\ufffde"


def test_a_context_may_name_no_protocol() -> None:
    context = IpcConnectionContextProto()
    context.userInfo.effectiveUser = "alice"
    header = RpcRequestHeaderProto(rpcKind=2, rpcOp=0, callId=-3, clientId=CLIENT_ID)
    frame = encode_frame(
        encode_delimited(header.SerializeToString()),
        encode_delimited(context.SerializeToString()),
    )
    (opened,) = ServerConnection(METHODS).receive_data(b"hrpc\x09\x00\x00" + frame)
    assert isinstance(opened, Opened)
    assert opened.context.protocol is None


# The end


def test_after_the_end_nothing_is_looked_at() -> None:
    connection = open_connection()
    (closed,) = connection.receive_data(b"\xff\xff\xff\xff" + encode_call())
    assert isinstance(closed, Closed)
    assert isinstance(closed.error, ProtocolError)
    assert connection.receive_data(encode_call()) == []
    assert connection.receive_data(b"") == []


def test_calls_before_the_end_are_not_lost() -> None:
    call, closed = open_connection().receive_data(encode_call() + b"\xff\xff\xff\xff")
    assert isinstance(call, Call)
    assert isinstance(closed, Closed)


def test_no_data_no_events() -> None:
    assert ServerConnection(METHODS).receive_data(b"") == []
    assert open_connection().receive_data(b"") == []
