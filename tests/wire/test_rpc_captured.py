"""What Hadoop's own client and server sent, met by our machines.

`captured/java-client.txt` is what the client of Hadoop 3.5.0 sent to a server of ours that
worked; `captured/java-server.txt` what its RPC server answered to good and bad connections.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import pytest

from cairnfs.errors import (
    FileNotFoundException,
    HdfsError,
    IllegalArgumentException,
    RpcNoSuchMethodException,
    RpcNoSuchProtocolException,
)
from cairnfs.wire.framing import FrameBuffer, ProtocolError, decode_delimited
from cairnfs.wire.proto.administration_pb2 import (
    GetGroupsForUserRequestProto,
    GetGroupsForUserResponseProto,
)
from cairnfs.wire.proto.client_namenode_pb2 import GetFileInfoRequestProto
from cairnfs.wire.proto.rpc_pb2 import RpcResponseHeaderProto, RpcSaslProto
from cairnfs.wire.protocols import CLIENT_PROTOCOL, GET_USER_MAPPINGS_PROTOCOL, MethodTable
from cairnfs.wire.rpc import Call, Closed, Opened, Send, ServerConnection, ServerEvent
from cairnfs.wire.rpc_client import ClientConnection, ClientEvent, Failure, Reply
from cairnfs.wire.rpc_errors import SaslException, VersionMismatch

CAPTURED = Path(__file__).parent / "captured"
GET_FILE_INFO = CLIENT_PROTOCOL["getFileInfo"]
GET_GROUPS = GET_USER_MAPPINGS_PROTOCOL["getGroupsForUser"]


def read_sections(name: str) -> dict[str, list[str]]:
    text = re.sub(r"^#.*\n", "", (CAPTURED / name).read_text(), flags=re.MULTILINE)
    _, *parts = re.split(r"^\[(.*)\]\n", text, flags=re.MULTILINE)
    return {name: lines.split("\n") for name, lines in zip(parts[::2], parts[1::2], strict=True)}


CLIENTS = {
    name: [bytes.fromhex(line) for line in lines if line]
    for name, lines in read_sections("java-client.txt").items()
}


class Exchange(NamedTuple):
    sent: bytes
    answered: bytes
    closed: bool


SERVER = {
    name: Exchange(
        bytes.fromhex(lines[0].removeprefix(">")),
        bytes.fromhex(lines[1].removeprefix("<")),
        lines[2] == "closed",
    )
    for name, lines in read_sections("java-server.txt").items()
}


# The client


def receive_all(chunks: list[bytes]) -> list[ServerEvent]:
    connection = ServerConnection(MethodTable([CLIENT_PROTOCOL]))
    return [event for chunk in chunks for event in connection.receive_data(chunk)]


def bytewise(data: bytes) -> list[bytes]:
    return [data[i : i + 1] for i in range(len(data))]


def describe(event: ServerEvent) -> object:
    """An event as something that compares."""
    if isinstance(event, Call):
        return event.call_id, event.method, event.request, event.header.retry_count
    return event


def calls_of(events: list[ServerEvent]) -> list[tuple[str, str]]:
    """Methods and requests, the latter as protobuf shows them on one line."""
    calls = [event for event in events if isinstance(event, Call)]
    return [
        (call.method.name, " ".join(str(call.method.decode_request(call.request)).split()))
        for call in calls
    ]


def test_a_client_at_work() -> None:
    events = receive_all(CLIENTS["simple"])
    (opened,) = (event for event in events if isinstance(event, Opened))
    assert opened.context.user == "alice"
    assert opened.context.real_user is None
    assert opened.context.protocol == CLIENT_PROTOCOL.name
    assert len(opened.context.client_id) == 16
    assert calls_of(events) == [
        ("getFileInfo", 'src: "/a"'),
        ("getFileInfo", 'src: "/missing"'),
        (
            "mkdirs",
            'src: "/a/b/c" masked { perm: 488 } createParent: true unmasked { perm: 488 }',
        ),
        ("getListing", 'src: "/a" startAfter: "" needLocation: false'),
        ("rename", 'src: "/a/b" dst: "/a/d"'),
        ("getContentSummary", 'path: "/a"'),
        ("delete", 'src: "/a" recursive: true'),
        ("getFileInfo", 'src: "/ä/世😀"'),
    ]
    calls = [event for event in events if isinstance(event, Call)]
    assert [call.call_id for call in calls] == list(range(8))
    assert {call.header.client_id for call in calls} == {opened.context.client_id}
    assert {call.header.retry_count for call in calls} == {0}
    contexts = [(call.header.caller_context, call.header.caller_signature) for call in calls]
    assert contexts == [(None, b"")] * 2 + [("job_1", b"sig")] + [(None, b"")] * 5


def test_a_proxy_user() -> None:
    (opened, *_) = receive_all(CLIENTS["proxy"])
    assert isinstance(opened, Opened)
    assert (opened.context.user, opened.context.real_user) == ("bob", "gateway")


@pytest.mark.parametrize("name", ["token", "kerberos-fallback"])
def test_a_client_that_begins_with_sasl_is_told_to_go_on_without(name: str) -> None:
    (answer, opened, *calls) = receive_all(CLIENTS[name])
    assert isinstance(answer, Send)
    (frame,) = FrameBuffer().receive(answer.data)
    header, at = decode_delimited(frame)
    assert RpcResponseHeaderProto.FromString(header).callId == (1 << 32) - 33
    sasl, _ = decode_delimited(frame, at)
    assert RpcSaslProto.FromString(sasl).state == RpcSaslProto.SUCCESS
    assert isinstance(opened, Opened)
    assert opened.context.user == "alice"
    assert calls_of(calls) == [("getFileInfo", 'src: "/a"')] * 2


def test_a_client_that_must_not_fall_back_only_hears_the_answer() -> None:
    (answer,) = receive_all(CLIENTS["kerberos-strict"])
    assert isinstance(answer, Send)


def test_pings_are_taken_in_silence() -> None:
    assert b"\x18\x07" in CLIENTS["ping"][2]
    (opened, *calls) = receive_all(CLIENTS["ping"])
    assert isinstance(opened, Opened)
    assert len(calls) == len(calls_of(calls)) == 3


@pytest.mark.parametrize("name", CLIENTS)
def test_clients_byte_by_byte_and_all_at_once(name: str) -> None:
    events = [describe(event) for event in receive_all(CLIENTS[name])]
    stream = b"".join(CLIENTS[name])
    assert [describe(event) for event in receive_all(bytewise(stream))] == events
    assert [describe(event) for event in receive_all([stream])] == events


# The server


def serve(chunks: list[bytes]) -> tuple[bytes, bool]:
    """What our server sends, and whether it closes."""
    connection = ServerConnection(MethodTable([GET_USER_MAPPINGS_PROTOCOL]))
    sent, closed = b"", False
    for chunk in chunks:
        for event in connection.receive_data(chunk):
            assert not closed
            if isinstance(event, Call):
                sent += answer_call(connection, event)
            elif isinstance(event, Send):
                sent += event.data
            closed = isinstance(event, Closed)
    return sent, closed


def answer_call(connection: ServerConnection, call: Call) -> bytes:
    """As the captured server did."""
    try:
        request = call.method.decode_request(call.request)
        assert isinstance(request, GetGroupsForUserRequestProto)
        if request.user == "nobody":
            raise FileNotFoundException("no such user: nobody")
        if request.user == "null":
            raise IllegalArgumentException
    except HdfsError as error:
        return connection.encode_error(call, error)
    response = GetGroupsForUserResponseProto(groups=[request.user, "users"])
    return connection.encode_reply(call, response.SerializeToString())


def without_stack_traces(data: bytes) -> object:
    """Replies as headers and bodies; as they are, if they are not replies of version 9."""
    try:
        frames = list(FrameBuffer().receive(data))
    except ProtocolError:
        return data
    if sum(4 + len(frame) for frame in frames) != len(data) or not all(frames):
        return data
    replies = []
    for frame in frames:
        header, at = decode_delimited(frame)
        reply = RpcResponseHeaderProto.FromString(header)
        if reply.HasField("errorMsg"):
            reply.errorMsg = reply.errorMsg.partition("\n\tat ")[0]
        replies.append((reply, frame[at:]))
    return replies


# Where a text is protobuf's own, it is not compared.
OTHER_TEXT = {
    "no request",
    "request garbage",
    "request longer than frame",
    "context garbage",
    "context missing",
    "header garbage",
    "empty frame",
    "header longer than frame",
    "endless varint",
    "sasl garbage",
    "sasl response",
}

# Where we differ on purpose.
DIFFERENT = {
    # Hadoop's handler stumbles and never answers.
    "request header lacks a field",
    "request header garbage",
    "no request header",
    # Hadoop lets it act as the user the server runs as.
    "context without user",
    # Hadoop's error code is FATAL_INVALID_RPC_HEADER.
    "sasl wrap",
}


@pytest.mark.parametrize("name", sorted(SERVER.keys() - DIFFERENT))
def test_answers_are_hadoops(name: str) -> None:
    exchange = SERVER[name]
    sent, closed = serve([exchange.sent])
    ours, theirs = without_stack_traces(sent), without_stack_traces(exchange.answered)
    if name in OTHER_TEXT:
        assert isinstance(ours, list)
        assert isinstance(theirs, list)
        for reply, _ in ours + theirs:
            reply.ClearField("errorMsg")
    assert ours == theirs
    assert closed == exchange.closed


@pytest.mark.parametrize("name", SERVER)
def test_answers_do_not_depend_on_how_the_bytes_arrive(name: str) -> None:
    sent = SERVER[name].sent
    assert serve(bytewise(sent)) == serve([sent])


@pytest.mark.parametrize("name", ["request header lacks a field", "no request header"])
def test_a_call_without_method_is_answered_and_the_next_served(name: str) -> None:
    sent, closed = serve([SERVER[name].sent])
    replies = without_stack_traces(sent)
    assert isinstance(replies, list)
    assert [(reply.callId, reply.status) for reply, _ in replies] == [(5, 1), (0, 0)]
    assert not closed


def test_a_connection_without_a_user_is_refused() -> None:
    sent, closed = serve([SERVER["context without user"].sent])
    replies = without_stack_traces(sent)
    assert isinstance(replies, list)
    ((reply, _),) = replies
    assert reply.status == RpcResponseHeaderProto.FATAL
    assert reply.errorDetail == RpcResponseHeaderProto.FATAL_UNAUTHORIZED
    assert closed


# Our client, with the server's answers


def hear(name: str, calls: tuple[int, ...]) -> list[ClientEvent]:
    client = ClientConnection(GET_USER_MAPPINGS_PROTOCOL, bytes(range(16)), "alice")
    for call_id in calls:
        client.encode_call(call_id, GET_GROUPS, GetGroupsForUserRequestProto(user="bob"))
    events = [e for byte in bytewise(SERVER[name].answered) for e in client.receive_data(byte)]
    answered = [event for event in events if not isinstance(event, Closed)]
    assert len(answered) + len(client.unanswered) == len(calls)
    return events


def test_our_client_sends_what_hadoops_does() -> None:
    client = ClientConnection(GET_USER_MAPPINGS_PROTOCOL, bytes(range(16)), "alice")
    opening = client.encode_opening()
    call = client.encode_call(0, GET_GROUPS, GetGroupsForUserRequestProto(user="bob"))
    assert opening + call == SERVER["call"].sent
    assert opening + client.encode_ping() + call == SERVER["ping"].sent


@pytest.mark.parametrize("name", ["simple", "proxy"])
def test_our_client_opens_as_hadoops_does(name: str) -> None:
    (opened, *_) = receive_all(CLIENTS[name])
    assert isinstance(opened, Opened)
    context = opened.context
    client = ClientConnection(
        CLIENT_PROTOCOL, context.client_id, context.user, real_user=context.real_user
    )
    request = GetFileInfoRequestProto(src="/a")
    opening, call = client.encode_opening(), client.encode_call(0, GET_FILE_INFO, request)
    assert opening + call == CLIENTS[name][0]


def test_our_client_reads_replies() -> None:
    bob, carol = hear("two calls", (0, 7))
    assert isinstance(bob, Reply)
    assert bob.call_id == 0
    assert bob.response == GetGroupsForUserResponseProto(groups=["bob", "users"])
    assert isinstance(carol, Reply)
    assert carol.call_id == 7


@pytest.mark.parametrize(
    ("name", "call_id", "error", "message", "code"),
    [
        ("error", 1, FileNotFoundException, "no such user: nobody", 1),
        ("unknown method", 5, RpcNoSuchMethodException, "Unknown method noSuch called on", 2),
        ("unknown protocol", 5, RpcNoSuchProtocolException, "Unknown protocol: no.such", 3),
        ("protocol version", 5, VersionMismatch, "version mismatch. (client = 2, server = 1)", 6),
    ],
)
def test_our_client_rebuilds_errors(
    name: str, call_id: int, error: type[HdfsError], message: str, code: int
) -> None:
    failure, reply = hear(name, (0, call_id))
    assert isinstance(failure, Failure)
    assert (failure.call_id, type(failure.error), failure.code) == (call_id, error, code)
    assert message in str(failure.error)
    assert "\n" not in str(failure.error)
    assert isinstance(reply, Reply)


@pytest.mark.parametrize(
    ("name", "error"), [("version 10", VersionMismatch), ("sasl success", SaslException)]
)
def test_our_client_hears_that_it_is_over(name: str, error: type[HdfsError]) -> None:
    (closed,) = hear(name, (0,))
    assert isinstance(closed, Closed)
    assert type(closed.error) is error
