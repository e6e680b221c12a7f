"""The calls of Hadoop's protocols: their names, requests and responses.

A call names its protocol by the Java interface, and its method as that interface does; which
there are, the services of wire/proto say. Invariant: there is one `Method` object for each,
so that a server can keep its handlers in a dict by them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Final, TypeVar

from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass

from cairnfs.errors import RpcNoSuchMethodException, RpcNoSuchProtocolException
from cairnfs.wire.proto import (
    administration_pb2,
    cairn_pb2,
    client_datanode_pb2,
    client_namenode_pb2,
    datanode_pb2,
    ha_service_pb2,
    inter_datanode_pb2,
    namenode_pb2,
    reconfiguration_pb2,
    rpc_pb2,
)
from cairnfs.wire.rpc_errors import InvalidProtocolBufferException, VersionMismatch

VERSION: Final = 1  # of every protocol; they grow by optional fields instead

# A client could vary its headers without end by fields that nobody knows.
_KNOWN_HEADERS_MAX: Final = 1024
_KNOWN_HEADER_LENGTH_MAX: Final = 256

AnyMessage = TypeVar("AnyMessage", bound=Message)


def message_decoder(message_class: type[AnyMessage]) -> Callable[[bytes], AnyMessage]:
    """A function that reads messages of a class and is as strict as Java.

    That is, it raises InvalidProtocolBufferException also if a required field is missing. A
    string that is not UTF-8 comes out as bytes, against what its type promises.
    """
    # To look these up takes as long as to call them.
    parse, is_initialized = message_class.FromString, message_class.IsInitialized

    def decode(data: bytes) -> AnyMessage:
        try:
            message = parse(data)
        except DecodeError as error:
            raise InvalidProtocolBufferException(str(error)) from None
        if is_initialized(message):
            return message
        missing = ", ".join(message.FindInitializationErrors())  # type: ignore[attr-defined]
        raise InvalidProtocolBufferException(f"Message missing required fields: {missing}")

    return decode


def as_text(value: str | bytes) -> str:
    """A field of type string, with U+FFFD for what is not UTF-8, as Java reads it."""
    return value if isinstance(value, str) else value.decode(errors="replace")


def text_of(message: Message, field: str) -> str:
    """The same of a message's field; for code that may be compiled, where types are kept to."""
    return as_text(getattr(message, field))


class Method:
    """One call of a protocol."""

    __slots__ = ("decode_request", "decode_response", "header", "name", "protocol", "request_type")

    def __init__(
        self, protocol: str, name: str, request: type[Message], response: type[Message]
    ) -> None:
        self.protocol = protocol
        self.name = name
        self.request_type = request
        self.decode_request = message_decoder(request)
        self.decode_response = message_decoder(response)
        header = rpc_pb2.RequestHeaderProto()
        header.methodName = name
        header.declaringClassProtocolName = protocol
        header.clientProtocolVersion = VERSION
        self.header = header.SerializeToString()

    def __repr__(self) -> str:
        return f"<{self.protocol.rpartition('.')[2]}.{self.name}>"


class Protocol:
    """A Java interface whose methods are called over RPC."""

    def __init__(self, name: str, module: ModuleType, service: str) -> None:
        self.name = name
        self.methods = {
            method.name: Method(
                name,
                method.name,
                GetMessageClass(method.input_type),
                GetMessageClass(method.output_type),
            )
            for method in module.DESCRIPTOR.services_by_name[service].methods
        }

    def __getitem__(self, method: str) -> Method:
        return self.methods[method]

    def __repr__(self) -> str:
        return f"<{self.name}>"


class MethodTable:
    """The methods a server offers, by the headers that ask for them."""

    def __init__(self, protocols: Iterable[Protocol]) -> None:
        self._protocols = {protocol.name: protocol for protocol in protocols}
        self._known = {
            method.header: method
            for protocol in self._protocols.values()
            for method in protocol.methods.values()
        }

    def find(self, header: bytes) -> Method:
        """The method that an encoded RequestHeaderProto asks for; raises as Hadoop does."""
        method = self._known.get(header)
        if method is None:
            method = self._look_up(_decode_header(header))
            if len(header) <= _KNOWN_HEADER_LENGTH_MAX and len(self._known) < _KNOWN_HEADERS_MAX:
                self._known[header] = method
        return method

    def _look_up(self, header: rpc_pb2.RequestHeaderProto) -> Method:
        name = text_of(header, "declaringClassProtocolName")
        version = header.clientProtocolVersion
        protocol = self._protocols.get(name)
        if protocol is None:
            raise RpcNoSuchProtocolException(f"Unknown protocol: {name}")
        if version != VERSION:
            raise VersionMismatch(
                f"Protocol {name} version mismatch. (client = {version}, server = {VERSION})"
            )
        method_name = text_of(header, "methodName")
        method = protocol.methods.get(method_name)
        if method is None:
            raise RpcNoSuchMethodException(
                f"Unknown method {method_name} called on {name} protocol."
            )
        return method


_decode_header = message_decoder(rpc_pb2.RequestHeaderProto)


# What clients, balancers and administrators ask of a NameNode

CLIENT_PROTOCOL: Final = Protocol(
    "org.apache.hadoop.hdfs.protocol.ClientProtocol",
    client_namenode_pb2,
    "ClientNamenodeProtocol",
)
NAMENODE_PROTOCOL: Final = Protocol(
    "org.apache.hadoop.hdfs.server.protocol.NamenodeProtocol",
    namenode_pb2,
    "NamenodeProtocolService",
)
HA_SERVICE_PROTOCOL: Final = Protocol(
    "org.apache.hadoop.ha.HAServiceProtocol", ha_service_pb2, "HAServiceProtocolService"
)

# What only ours are asked

CAIRN_PROTOCOL: Final = Protocol("cairnfs.CairnProtocol", cairn_pb2, "CairnProtocol")

# What DataNodes ask of a NameNode

DATANODE_PROTOCOL: Final = Protocol(
    "org.apache.hadoop.hdfs.server.protocol.DatanodeProtocol",
    datanode_pb2,
    "DatanodeProtocolService",
)
DATANODE_LIFELINE_PROTOCOL: Final = Protocol(
    "org.apache.hadoop.hdfs.server.protocol.DatanodeLifelineProtocol",
    datanode_pb2,
    "DatanodeLifelineProtocolService",
)

# What clients and other DataNodes ask of a DataNode

CLIENT_DATANODE_PROTOCOL: Final = Protocol(
    "org.apache.hadoop.hdfs.protocol.ClientDatanodeProtocol",
    client_datanode_pb2,
    "ClientDatanodeProtocolService",
)
INTER_DATANODE_PROTOCOL: Final = Protocol(
    "org.apache.hadoop.hdfs.server.protocol.InterDatanodeProtocol",
    inter_datanode_pb2,
    "InterDatanodeProtocolService",
)

# What any server may be asked

RECONFIGURATION_PROTOCOL: Final = Protocol(
    "org.apache.hadoop.hdfs.protocol.ReconfigurationProtocol",
    reconfiguration_pb2,
    "ReconfigurationProtocolService",
)
GET_USER_MAPPINGS_PROTOCOL: Final = Protocol(
    "org.apache.hadoop.tools.GetUserMappingsProtocol",
    administration_pb2,
    "GetUserMappingsProtocolService",
)
REFRESH_USER_MAPPINGS_PROTOCOL: Final = Protocol(
    "org.apache.hadoop.security.RefreshUserMappingsProtocol",
    administration_pb2,
    "RefreshUserMappingsProtocolService",
)
REFRESH_AUTHORIZATION_POLICY_PROTOCOL: Final = Protocol(
    "org.apache.hadoop.security.authorize.RefreshAuthorizationPolicyProtocol",
    administration_pb2,
    "RefreshAuthorizationPolicyProtocolService",
)
REFRESH_CALL_QUEUE_PROTOCOL: Final = Protocol(
    "org.apache.hadoop.ipc.RefreshCallQueueProtocol",
    administration_pb2,
    "RefreshCallQueueProtocolService",
)
GENERIC_REFRESH_PROTOCOL: Final = Protocol(
    "org.apache.hadoop.ipc.GenericRefreshProtocol",
    administration_pb2,
    "GenericRefreshProtocolService",
)
PROTOCOL_INFO_PROTOCOL: Final = Protocol(
    "org.apache.hadoop.ipc.ProtocolMetaInfoPB", rpc_pb2, "ProtocolInfoService"
)
