"""The client's end: with our server, and with servers that do not know how to behave."""

from __future__ import annotations

import pytest

from cairnfs.errors import FileNotFoundException, HdfsError, RemoteError
from cairnfs.wire.framing import ProtocolError, encode_delimited, encode_frame
from cairnfs.wire.proto.client_namenode_pb2 import (
    GetFileInfoRequestProto,
    GetFileInfoResponseProto,
)
from cairnfs.wire.proto.rpc_pb2 import RpcResponseHeaderProto
from cairnfs.wire.protocols import CLIENT_PROTOCOL, MethodTable
from cairnfs.wire.rpc import Call, Closed, ServerConnection
from cairnfs.wire.rpc_client import NO_ERROR_CODE, ClientConnection, ClientEvent, Failure, Reply
from cairnfs.wire.rpc_errors import InvalidProtocolBufferException

GET_FILE_INFO = CLIENT_PROTOCOL["getFileInfo"]
MKDIRS = CLIENT_PROTOCOL["mkdirs"]
CLIENT_ID = bytes(range(16))
REQUEST = GetFileInfoRequestProto(src="/a")
SUCCESS = RpcResponseHeaderProto.SUCCESS
ERROR = RpcResponseHeaderProto.ERROR
FATAL = RpcResponseHeaderProto.FATAL


def make_client(*calls: int) -> ClientConnection:
    client = ClientConnection(CLIENT_PROTOCOL, CLIENT_ID, "alice")
    for call_id in calls:
        client.encode_call(call_id, GET_FILE_INFO, REQUEST)
    return client


def encode_reply(body: bytes = b"", **fields: object) -> bytes:
    header = RpcResponseHeaderProto(**fields)  # type: ignore[arg-type]
    return encode_frame(encode_delimited(header.SerializePartialToString()), body)


def hear(data: bytes) -> ClientEvent:
    """What a client with one call, 5, makes of some bytes; it must be one thing."""
    client = make_client(5)
    (event,) = client.receive_data(data)
    assert isinstance(event, Closed) == (client.receive_data(b"\xff\xff\xff\xff") == [])
    return event


def test_with_our_server() -> None:
    client = ClientConnection(CLIENT_PROTOCOL, CLIENT_ID, "alice")
    server = ServerConnection(MethodTable([CLIENT_PROTOCOL]))
    server.receive_data(client.encode_opening())
    sent = [client.encode_call(call_id, GET_FILE_INFO, REQUEST) for call_id in (3, 4)]
    first, second = server.receive_data(b"".join(sent))
    assert isinstance(first, Call)
    assert isinstance(second, Call)
    assert client.unanswered == {3, 4}

    response = GetFileInfoResponseProto()
    (failure,) = client.receive_data(server.encode_error(second, FileNotFoundException("gone")))
    (reply,) = client.receive_data(server.encode_reply(first, response.SerializeToString()))
    assert isinstance(failure, Failure)
    assert (failure.call_id, str(failure.error)) == (4, "gone")
    assert isinstance(failure.error, FileNotFoundException)
    assert isinstance(reply, Reply)
    assert (reply.call_id, reply.response) == (3, response)
    assert not client.unanswered


def test_an_id_can_be_used_again_once_it_is_answered() -> None:
    client = make_client(5)
    for _ in range(2):
        (reply,) = client.receive_data(encode_reply(b"\0", callId=5, status=SUCCESS))
        assert isinstance(reply, Reply)
        client.encode_call(5, GET_FILE_INFO, REQUEST, retry_count=1)


def test_a_request_that_lacks_a_field_is_never_sent() -> None:
    client = make_client()
    with pytest.raises(Exception, match="missing required fields: src"):
        client.encode_call(1, GET_FILE_INFO, GetFileInfoRequestProto())
    assert not client.unanswered


def test_an_error_of_a_class_unknown_here() -> None:
    failure = hear(
        encode_reply(
            callId=5,
            status=ERROR,
            exceptionClassName="a.b.C",
            errorMsg="why\nand wherefore\n\tat a.b.D.e(D.java:1)\n\tat a.b.F",
        )
    )
    assert isinstance(failure, Failure)
    assert isinstance(failure.error, RemoteError)
    assert failure.error.java_class == "a.b.C"
    assert str(failure.error) == "why\nand wherefore"
    assert failure.code == NO_ERROR_CODE


def test_an_error_that_is_not_utf8() -> None:
    data = encode_reply(callId=5, status=ERROR, exceptionClassName="a.b.C", errorMsg="why")
    failure = hear(data.replace(b"why", b"w\xff\xfe"))
    assert isinstance(failure, Failure)
    assert str(failure.error) == "w\ufffd\ufffd"


@pytest.mark.parametrize("body", [encode_delimited(b""), encode_delimited(b"\xff")])
def test_a_response_that_cannot_be_read_fails_its_call_alone(body: bytes) -> None:
    client = make_client(6)
    client.encode_call(5, MKDIRS, REQUEST)  # its response must say true or false
    failure, reply = client.receive_data(
        encode_reply(body, callId=5, status=SUCCESS) + encode_reply(b"\0", callId=6, status=SUCCESS)
    )
    assert isinstance(failure, Failure)
    assert isinstance(failure.error, InvalidProtocolBufferException)
    assert isinstance(reply, Reply)


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (encode_reply(b"\0", callId=6, status=SUCCESS), "which nobody awaits"),
        (encode_reply(b"\0", callId=(1 << 32) - 33, status=SUCCESS), "which nobody awaits"),
        (encode_reply(callId=6, status=ERROR), "which nobody awaits"),
        (encode_reply(b"\0", callId=5, status=SUCCESS, clientId=b"other"), "another client"),
        (encode_reply(b"\0more", callId=5, status=SUCCESS), "4 bytes too many"),
        (encode_reply(b"", callId=5, status=SUCCESS), "does not end"),
        (encode_reply(b"\x05abc", callId=5, status=SUCCESS), "5 bytes where 3"),
        (encode_reply(b"\0", status=SUCCESS), "missing required fields: callId"),
        (encode_reply(b"\0", callId=5), "missing required fields: status"),
        (encode_frame(b"\x04\x08\x05\x10\x07\0"), "missing required fields: status"),
        (encode_frame(b""), "does not end"),
        (b"\xff\xff\xff\xff\xff\xff\xff\xff", "4294967295"),
        (b"HTTP/1.1 400 Bad Request\r\n", "1213486160"),
    ],
)
def test_a_server_that_does_not_speak_rpc(data: bytes, problem: str) -> None:
    closed = hear(data)
    assert isinstance(closed, Closed)
    assert isinstance(closed.error, ProtocolError | HdfsError)
    assert problem in str(closed.error)


def test_a_fatal_reply_leaves_calls_unanswered() -> None:
    client = make_client(1, 2)
    fatal = encode_reply(
        callId=(1 << 32) - 1,
        status=FATAL,
        exceptionClassName="org.apache.hadoop.security.AccessControlException",
        errorMsg="SIMPLE authentication is not enabled.  Available:[TOKEN, KERBEROS]",
    )
    late = encode_reply(b"\0", callId=1, status=SUCCESS)
    (closed,) = client.receive_data(fatal + late)
    assert isinstance(closed, Closed)
    assert isinstance(closed.error, PermissionError)
    assert client.unanswered == {1, 2}
    assert client.receive_data(late) == []
