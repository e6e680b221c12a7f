"""All that a NameNode offers over HTTP."""

from __future__ import annotations

from aiohttp import web

import cairnfs.observe.routes as pages
import cairnfs.webhdfs.namenode as webhdfs
from cairnfs.config_file import Config
from cairnfs.namenode.server import RpcServer
from cairnfs.observe.namenode_source import NameNodeSource


def make_app(server: RpcServer, host: str, port: int, config: Config) -> web.Application:
    """An application for `HttpServer`; host and port are where the NameNode's RPC listens."""
    app = web.Application()
    serves_data = server.namenode.settings.data_through_namenode
    webhdfs.add_routes(app, server, f"{host}:{port}", serves_data=serves_data)
    pages.add_routes(app, NameNodeSource(server.namenode, server, port, config))
    return app
