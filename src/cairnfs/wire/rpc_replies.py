"""What a server of Hadoop RPC answers: to calls, and to what was not meant for it.

Replies carry what Hadoop's do, so that its clients find the fields they check. Invariant:
the call id comes first in a header, so that the rest can be made before the call is known.
"""

from __future__ import annotations

import struct
from typing import Final

from cairnfs.errors import HdfsError
from cairnfs.wire.framing import encode_delimited, encode_frame, encode_length, encode_varint
from cairnfs.wire.proto.rpc_pb2 import RpcResponseHeaderProto, RpcSaslProto
from cairnfs.wire.rpc_errors import VersionMismatch, error_code
from cairnfs.wire.sasl import SASL_CALL_ID

RPC_VERSION: Final = 9

NO_CALL_ID: Final = -1  # in a reply that answers no call
NO_RETRY_COUNT: Final = -1
NO_CLIENT_ID: Final = b""

HTTP_REPLY: Final = (
    b"HTTP/1.1 404 Not Found\r\n"
    b"Content-type: text/plain\r\n\r\n"
    b"It looks like you are making an HTTP request to a Hadoop IPC port. "
    b"This is not the correct port for the web interface on this daemon.\r\n"
)

_CALL_ID_TAG: Final = b"\x08"  # of field 1


def encode_reply(call_id: int, tail: bytes, response: bytes) -> bytes:
    """A reply without error; `tail` is from `encode_tail`."""
    header = _CALL_ID_TAG + encode_varint(call_id) + tail
    beginning = encode_varint(len(header)) + header + encode_varint(len(response))
    return encode_length(len(beginning) + len(response)) + beginning + response


def encode_tail(client_id: bytes, retry_count: int) -> bytes:
    """The header of a reply without error, from after the call id."""
    header = _make_header(0, client_id, retry_count).SerializeToString()
    beginning = _CALL_ID_TAG + encode_varint(0)
    assert header.startswith(beginning), header
    return header[len(beginning) :]


def encode_error(call_id: int, client_id: bytes, retry_count: int, error: HdfsError) -> bytes:
    """The reply to a call that failed."""
    header = _make_header(call_id, client_id, retry_count)
    header.status = RpcResponseHeaderProto.ERROR
    return _encode_failure(header, error, error_code(error))


def encode_fatal(
    code: RpcResponseHeaderProto.RpcErrorCodeProto,
    error: HdfsError,
    call_id: int = NO_CALL_ID,
    retry_count: int = NO_RETRY_COUNT,
) -> bytes:
    """The last reply of a connection."""
    header = _make_header(call_id, NO_CLIENT_ID, retry_count)
    header.status = RpcResponseHeaderProto.FATAL
    return _encode_failure(header, error, code)


def encode_sasl(answer: RpcSaslProto) -> bytes:
    """A step of the server in a negotiation."""
    header = _make_header(SASL_CALL_ID, NO_CLIENT_ID, NO_RETRY_COUNT)
    return encode_frame(
        encode_delimited(header.SerializeToString()),
        encode_delimited(answer.SerializeToString()),
    )


def encode_version_mismatch(client_version: int, error: VersionMismatch) -> bytes:
    """In the layout of the client's version; clients before version 2 are told nothing."""
    if client_version >= RPC_VERSION:
        return encode_fatal(RpcResponseHeaderProto.FATAL_VERSION_MISMATCH, error)
    texts = [text.encode() for text in (error.java_class, str(error))]
    strings = b"".join(struct.pack(">i", len(text)) + text for text in texts)
    if client_version >= 3:
        return struct.pack(">ii", NO_CALL_ID, -1) + strings  # -1 for a fatal error
    if client_version == 2:
        return struct.pack(">i?", 0, True) + strings
    return b""


def _make_header(call_id: int, client_id: bytes, retry_count: int) -> RpcResponseHeaderProto:
    header = RpcResponseHeaderProto()
    header.callId = call_id & 0xFFFFFFFF
    header.status = RpcResponseHeaderProto.SUCCESS
    header.serverIpcVersionNum = RPC_VERSION
    header.clientId = client_id
    header.retryCount = retry_count
    return header


def _encode_failure(
    header: RpcResponseHeaderProto,
    error: HdfsError,
    code: RpcResponseHeaderProto.RpcErrorCodeProto,
) -> bytes:
    header.exceptionClassName = error.java_class
    # A message may quote a name that is not UTF-8, with surrogates in it. Java has no empty one.
    header.errorMsg = str(error).encode(errors="replace").decode() or error.java_class
    header.errorDetail = code
    return encode_frame(encode_delimited(header.SerializeToString()))
