"""Whatever arrives, the machines raise nothing, end at most once, and stay small."""

from __future__ import annotations

import contextlib
from typing import TypeVar

from hypothesis import given, settings
from hypothesis import strategies as st

from cairnfs.errors import FileNotFoundException, HdfsError
from cairnfs.wire.framing import encode_delimited, encode_frame
from cairnfs.wire.proto.client_namenode_pb2 import GetFileInfoRequestProto, GetFileInfoResponseProto
from cairnfs.wire.protocols import CLIENT_PROTOCOL, MethodTable
from cairnfs.wire.rpc import Call, CallHeader, Closed, ServerConnection, ServerEvent
from cairnfs.wire.rpc_client import ClientConnection

EXAMPLES = 300
GET_FILE_INFO = CLIENT_PROTOCOL["getFileInfo"]
METHODS = MethodTable([CLIENT_PROTOCOL])
CLIENT_ID = bytes(range(16))


def make_streams() -> tuple[bytes, bytes]:
    """What a client sends in a few calls, and what it is sent."""
    client = ClientConnection(CLIENT_PROTOCOL, CLIENT_ID, "alice")
    server = ServerConnection(METHODS)
    sent = client.encode_opening()
    for call_id in range(3):
        request = GetFileInfoRequestProto(src="/a")
        sent += client.encode_call(call_id, GET_FILE_INFO, request) + client.encode_ping()
    answered = b""
    for event in server.receive_data(sent):
        if isinstance(event, Call) and event.call_id == 1:
            answered += server.encode_error(event, FileNotFoundException("gone"))
        elif isinstance(event, Call):
            response = GetFileInfoResponseProto().SerializeToString()
            answered += server.encode_reply(event, response)
    return sent, answered


SENT, ANSWERED = make_streams()
SASL = b"hrpc\x09\x00\xdf" + encode_frame(bytes.fromhex("0a08021000184122002801"), b"\x02\x10\x01")


@st.composite
def damaged(draw: st.DrawFn, stream: bytes) -> bytes:
    """A stream with a few bytes changed, lost or added."""
    data = bytearray(stream)
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(data)))
        lost = draw(st.integers(0, 3))
        data[at : at + lost] = draw(st.binary(max_size=4))
    return bytes(data)


@st.composite
def chunks(draw: st.DrawFn, streams: st.SearchStrategy[bytes]) -> list[bytes]:
    """A stream cut into pieces."""
    stream = draw(streams)
    cuts = sorted(draw(st.lists(st.integers(0, len(stream)), max_size=4)))
    return [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]


# Frames whose length is right, so that what is in them is looked at.
frames = st.lists(
    st.one_of(
        st.binary(max_size=60).map(encode_frame),
        st.binary(max_size=60).map(encode_delimited).map(encode_frame),
        damaged(SENT[-60:]).map(encode_frame),
    ),
    max_size=4,
).map(b"".join)
OPENING = ClientConnection(CLIENT_PROTOCOL, CLIENT_ID, "alice").encode_opening()
openings = st.sampled_from([b"", SENT[:7], OPENING, SENT, SASL])
Event = TypeVar("Event")


def check_end(events: list[Event]) -> None:
    """`Closed` comes last, and once."""
    assert not any(isinstance(event, Closed) for event in events[:-1])


def run_server(data: list[bytes]) -> None:
    connection = ServerConnection(METHODS)
    events = [event for chunk in data for event in connection.receive_data(chunk)]
    check_end(events)
    for event in events:
        if isinstance(event, Call):
            with contextlib.suppress(HdfsError):
                event.method.decode_request(event.request)
            connection.encode_reply(event, b"")
            connection.encode_error(event, FileNotFoundException("gone"))
    size = sum(map(len, data))
    assert len(connection._frames._pending) + len(connection._beginning) <= size
    assert len(connection._known) <= 256


def run_client(data: list[bytes]) -> None:
    client = ClientConnection(CLIENT_PROTOCOL, CLIENT_ID, "alice")
    for call_id in range(3):
        client.encode_call(call_id, GET_FILE_INFO, GetFileInfoRequestProto(src="/a"))
    events = [event for chunk in data for event in client.receive_data(chunk)]
    check_end(events)
    answered = [event for event in events if not isinstance(event, Closed)]
    assert len(answered) + len(client.unanswered) <= 3


def test_undamaged_streams() -> None:
    run_server([SENT])
    run_client([ANSWERED])


@settings(max_examples=EXAMPLES)
@given(chunks(st.binary(max_size=200)))
def test_server_with_garbage(data: list[bytes]) -> None:
    run_server(data)


@settings(max_examples=EXAMPLES)
@given(chunks(damaged(SENT)))
def test_server_with_a_damaged_stream(data: list[bytes]) -> None:
    run_server(data)


@settings(max_examples=EXAMPLES)
@given(openings, chunks(frames))
def test_server_with_frames_of_garbage(opening: bytes, data: list[bytes]) -> None:
    run_server([opening, *data])


@settings(max_examples=EXAMPLES)
@given(chunks(st.binary(max_size=200)))
def test_client_with_garbage(data: list[bytes]) -> None:
    run_client(data)


@settings(max_examples=EXAMPLES)
@given(chunks(damaged(ANSWERED)))
def test_client_with_a_damaged_stream(data: list[bytes]) -> None:
    run_client(data)


@settings(max_examples=EXAMPLES)
@given(chunks(frames))
def test_client_with_frames_of_garbage(data: list[bytes]) -> None:
    run_client(data)


def said_by(header: CallHeader) -> list[object]:
    return [
        *(header.client_id, header.retry_count, header.caller_context),
        *(header.caller_signature, header.state_id, header.reply_tail),
    ]


def describe(events: list[ServerEvent]) -> list[object]:
    """Events as what can be compared: a call has no equality of its own."""
    return [
        (event.call_id, event.method, event.request, said_by(event.header))
        if isinstance(event, Call)
        else repr(event)
        for event in events
    ]


ONE_CALL = ClientConnection(CLIENT_PROTOCOL, CLIENT_ID, "alice").encode_call(
    70_000, GET_FILE_INFO, GetFileInfoRequestProto(src="/some/where/else")
)[4:]


@settings(max_examples=EXAMPLES)
@given(damaged(ONE_CALL))
def test_a_call_is_the_same_whether_or_not_one_like_it_was_seen(frame: bytes) -> None:
    fresh, acquainted = ServerConnection(METHODS), ServerConnection(METHODS)
    fresh.receive_data(OPENING)
    acquainted.receive_data(SENT)
    assert acquainted._known
    assert not fresh._known
    data = encode_frame(frame)
    assert describe(acquainted.receive_data(data)) == describe(fresh.receive_data(data))
