"""All that a NameNode offers over HTTP."""

from __future__ import annotations

from aiohttp import web

import cairnfs.webhdfs.namenode as webhdfs
from cairnfs.namenode.server import RpcServer


def make_app(server: RpcServer, rpc_address: str, *, serves_data: bool = False) -> web.Application:
    """An application for `HttpServer`; `rpc_address` is where the NameNode's RPC port listens."""
    app = web.Application()
    webhdfs.add_routes(app, server, rpc_address, serves_data=serves_data)
    return app
