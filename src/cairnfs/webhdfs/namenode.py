"""WebHDFS on a NameNode: every operation, and redirects to where data is."""

from __future__ import annotations

from aiohttp import web

from cairnfs.namenode.server import RpcServer
from cairnfs.webhdfs import changing, looking
from cairnfs.webhdfs.calls import WebCall
from cairnfs.webhdfs.data_parameters import DATA_OPERATIONS
from cairnfs.webhdfs.looking import Operation
from cairnfs.webhdfs.parameters import Target
from cairnfs.webhdfs.redirects import redirect_to_datanode
from cairnfs.webhdfs.requests import add_webhdfs, operation_of

_OPERATIONS: dict[str, dict[str, Operation]] = {
    "GET": looking.GET,
    "PUT": changing.PUT,
    "POST": changing.POST,
    "DELETE": changing.DELETE,
}
_KNOWN = {
    method: [*operations, *DATA_OPERATIONS.get(method, [])]
    for method, operations in _OPERATIONS.items()
}


def add_routes(app: web.Application, server: RpcServer, rpc_address: str) -> None:
    """Offer the namespace of a NameNode; `rpc_address` is how its RPC port is named."""

    async def answer(request: web.Request, target: Target) -> web.StreamResponse:
        name = operation_of(request, target, _KNOWN)
        call = WebCall(server, request, target, name)
        method = "GET" if request.method == "HEAD" else request.method
        operation = _OPERATIONS[method].get(name)
        if operation is not None:
            return await operation(call)
        return await redirect_to_datanode(call, rpc_address)

    add_webhdfs(app, answer)
