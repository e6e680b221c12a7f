"""WebHDFS on a NameNode: every operation; those that move data are sent on, or served here too."""

from __future__ import annotations

from aiohttp import web

from cairnfs.namenode.server import RpcServer
from cairnfs.webhdfs import changing, inherited_xattrs, looking, root_snapshot, snapshots
from cairnfs.webhdfs.calls import WebCall
from cairnfs.webhdfs.data import Data
from cairnfs.webhdfs.data_parameters import DATA_OPERATIONS
from cairnfs.webhdfs.looking import Operation
from cairnfs.webhdfs.parameters import Target
from cairnfs.webhdfs.redirects import LOOPBACK, reachable, redirect_to_datanode, redirect_to_self
from cairnfs.webhdfs.requests import add_webhdfs, operation_of

_OPERATIONS: dict[str, dict[str, Operation]] = {
    "GET": looking.GET | snapshots.GET | root_snapshot.GET | inherited_xattrs.GET,
    "PUT": changing.PUT | snapshots.PUT | root_snapshot.PUT | inherited_xattrs.PUT,
    "POST": changing.POST,
    "DELETE": changing.DELETE | snapshots.DELETE,
}
_KNOWN = {
    method: [*operations, *DATA_OPERATIONS.get(method, [])]
    for method, operations in _OPERATIONS.items()
}


def add_routes(
    app: web.Application, server: RpcServer, rpc_address: str, *, serves_data: bool = False
) -> None:
    """Offer the namespace of a NameNode; `rpc_address` is where its RPC port listens.

    With `serves_data` the data goes through the NameNode, for clients that cannot reach DataNodes.
    """
    data = Data(f"hdfs://{reachable(rpc_address, LOOPBACK)}") if serves_data else None

    async def answer(request: web.Request, target: Target) -> web.StreamResponse:
        name = operation_of(request, target, _KNOWN)
        call = WebCall(server, request, target, name)
        method = "GET" if request.method == "HEAD" else request.method
        operation = _OPERATIONS[method].get(name)
        if operation is not None:
            return await operation(call)
        if data is None:
            return await redirect_to_datanode(call, rpc_address)
        if _brings_or_wants_data(call):
            return await data.answer(request, target, name)
        return redirect_to_self(call, rpc_address)

    async def close(app: web.Application) -> None:
        if data is not None:
            await data.close()

    add_webhdfs(app, answer)
    app.on_cleanup.append(close)


def _brings_or_wants_data(call: WebCall) -> bool:
    """Whether to serve a request at once.

    Clients that write ask first where to, without data, and expect to be sent there.
    """
    return (
        call.request.method in ("GET", "HEAD")
        or call.parameters.boolean("data")
        or call.request.body_exists
    )
