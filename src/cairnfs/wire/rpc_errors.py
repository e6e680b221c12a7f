"""Errors of RPC itself, and the code that goes with each error.

The code tells a client in which layer a call failed. FATAL codes are not here: they belong
to a moment of the connection, not to an error.
"""

from __future__ import annotations

from cairnfs.errors import (
    HdfsError,
    IOException,
    RpcNoSuchMethodException,
    RpcNoSuchProtocolException,
)
from cairnfs.wire.proto.rpc_pb2 import RpcResponseHeaderProto


class RpcServerException(IOException, java_class="org.apache.hadoop.ipc.RpcServerException"):
    """A connection or a header breaks the rules of RPC."""


class VersionMismatch(RpcServerException, java_class="org.apache.hadoop.ipc.RPC$VersionMismatch"):
    """RPC, or a protocol on top of it, is of another version here."""


class IpcException(IOException, java_class="org.apache.hadoop.ipc.IpcException"):
    """A connection cannot be set up."""


class SaslException(IOException, java_class="javax.security.sasl.SaslException"):
    """Authentication went wrong."""


class InvalidProtocolBufferException(
    IOException,
    java_class="org.apache.hadoop.thirdparty.protobuf.InvalidProtocolBufferException",
):
    """A message cannot be read, or lacks a field it must have."""


def error_code(error: HdfsError) -> RpcResponseHeaderProto.RpcErrorCodeProto:
    """The code of a call that failed with `error`, on a connection that goes on."""
    return next((code for cls, code in _CODES if isinstance(error, cls)), _APPLICATION)


_APPLICATION = RpcResponseHeaderProto.ERROR_APPLICATION
_CODES: list[tuple[type[HdfsError], RpcResponseHeaderProto.RpcErrorCodeProto]] = [
    (RpcNoSuchMethodException, RpcResponseHeaderProto.ERROR_NO_SUCH_METHOD),
    (RpcNoSuchProtocolException, RpcResponseHeaderProto.ERROR_NO_SUCH_PROTOCOL),
    (VersionMismatch, RpcResponseHeaderProto.ERROR_RPC_VERSION_MISMATCH),
    (RpcServerException, RpcResponseHeaderProto.ERROR_RPC_SERVER),
]
