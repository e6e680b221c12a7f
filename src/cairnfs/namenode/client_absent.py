"""ClientNamenodeProtocol: the calls of features that are not there.

They are answered as an HDFS answers that does not use the feature: with nothing where a list
or a value is asked for, and UnsupportedOperationException where something should change.
"""

from __future__ import annotations

from google.protobuf.message import Message

from cairnfs.errors import InvalidToken, UnsupportedOperationException
from cairnfs.namenode.responses import NOTHING
from cairnfs.namenode.service import IncomingCall, Service
from cairnfs.wire.proto import client_namenode_pb2 as pb
from cairnfs.wire.proto import encryption_pb2, security_pb2
from cairnfs.wire.protocols import CLIENT_PROTOCOL

CALLS = Service(CLIENT_PROTOCOL)


def _refuse(feature: str, *names: str) -> None:
    """Let these calls be answered with the news that there is no such feature."""

    def refuse(call: IncomingCall, request: Message) -> None:
        raise UnsupportedOperationException(
            f"{call.method.name} is not supported: this file system has no {feature}"
        )

    for name in names:
        CALLS.handlers[CLIENT_PROTOCOL[name]] = refuse


def _answer_nothing(*names: str) -> None:
    """Let these calls be answered with a response in which nothing is set."""
    for name in names:
        CALLS.handlers[CLIENT_PROTOCOL[name]] = lambda call, request: NOTHING


# Erasure coding

_refuse(
    "erasure coding",
    "addErasureCodingPolicies",
    "removeErasureCodingPolicy",
    "enableErasureCodingPolicy",
    "disableErasureCodingPolicy",
    "setErasureCodingPolicy",
    "unsetErasureCodingPolicy",
    "getECTopologyResultForPolicies",
)
_answer_nothing("getErasureCodingPolicies", "getErasureCodingPolicy", "getErasureCodingCodecs")


# Encryption

_refuse("encryption zones", "createEncryptionZone", "reencryptEncryptionZone")
_answer_nothing("getEZForPath", "getDataEncryptionKey")


@CALLS.handler
def list_encryption_zones(
    call: IncomingCall, request: encryption_pb2.ListEncryptionZonesRequestProto
) -> encryption_pb2.ListEncryptionZonesResponseProto:
    return encryption_pb2.ListEncryptionZonesResponseProto(hasMore=False)


@CALLS.handler
def list_reencryption_status(
    call: IncomingCall, request: encryption_pb2.ListReencryptionStatusRequestProto
) -> encryption_pb2.ListReencryptionStatusResponseProto:
    return encryption_pb2.ListReencryptionStatusResponseProto(hasMore=False)


# Caching

_refuse(
    "centralized cache",
    "addCacheDirective",
    "modifyCacheDirective",
    "removeCacheDirective",
    "addCachePool",
    "modifyCachePool",
    "removeCachePool",
)


@CALLS.handler
def list_cache_directives(
    call: IncomingCall, request: pb.ListCacheDirectivesRequestProto
) -> pb.ListCacheDirectivesResponseProto:
    return pb.ListCacheDirectivesResponseProto(hasMore=False)


@CALLS.handler
def list_cache_pools(
    call: IncomingCall, request: pb.ListCachePoolsRequestProto
) -> pb.ListCachePoolsResponseProto:
    return pb.ListCachePoolsResponseProto(hasMore=False)


# Delegation tokens: none is given, as by any HDFS without Kerberos

_answer_nothing("getDelegationToken")


@CALLS.handler
def renew_delegation_token(
    call: IncomingCall, request: security_pb2.RenewDelegationTokenRequestProto
) -> None:
    raise InvalidToken("this NameNode gives no delegation tokens")


@CALLS.handler
def cancel_delegation_token(
    call: IncomingCall, request: security_pb2.CancelDelegationTokenRequestProto
) -> None:
    raise InvalidToken("this NameNode gives no delegation tokens")


# Events

_refuse("event stream", "getCurrentEditLogTxid", "getEditsFromTxid")
