"""WebHDFS operations as calls of ClientNamenodeProtocol, in the name of their user."""

from __future__ import annotations

from typing import Any

from aiohttp import web
from google.protobuf.message import Message

from cairnfs.namenode.local_calls import call_locally
from cairnfs.namenode.server import RpcServer
from cairnfs.namesystem.permissions import Caller
from cairnfs.observe.audit import describe_user
from cairnfs.webhdfs.parameters import Parameters, Target
from cairnfs.webhdfs.requests import user_of
from cairnfs.wire.proto import client_namenode_pb2 as pb
from cairnfs.wire.protocols import CLIENT_PROTOCOL, Protocol
from cairnfs.wire.rpc import ConnectionContext


class WebCall:
    """One request to a NameNode."""

    def __init__(
        self, server: RpcServer, request: web.Request, target: Target, operation: str
    ) -> None:
        self.server = server
        self.request = request
        self.path = target.path
        self.parameters: Parameters = target.parameters
        self.operation = operation
        self.user, self.real_user = user_of(target)
        context = ConnectionContext(self.user, self.real_user, None, b"")
        self.caller: Caller = server.identify(context, request.remote or "")
        self._ugi = describe_user(self.user, self.real_user)

    async def rpc(self, method: str, message: Message, protocol: Protocol = CLIENT_PROTOCOL) -> Any:
        """Make a call, as if over RPC; returns its response."""
        return await call_locally(self.server, self.caller, self._ugi, protocol[method], message)

    def required(self, name: str, pattern: str | None = None) -> str:
        return self.parameters.required(name, self.operation, pattern)

    async def server_defaults(self) -> Any:
        response = await self.rpc("getServerDefaults", pb.GetServerDefaultsRequestProto())
        return response.serverDefaults
