"""All that a NameNode offers over HTTP."""

from __future__ import annotations

from aiohttp import web

import cairnfs.observe.routes as pages
import cairnfs.webhdfs.namenode as webhdfs
from cairnfs.config_file import Config
from cairnfs.namenode.server import RpcServer
from cairnfs.observe.namenode_source import NameNodeSource

_INDEX = """\
<!doctype html>
<title>CairnFS NameNode</title>
<h1>CairnFS NameNode</h1>
<ul>
<li><a href="/webhdfs/v1/?op=LISTSTATUS">/webhdfs/v1</a>: files, by WebHDFS
<li><a href="/metrics">/metrics</a>: figures for Prometheus
<li><a href="/jmx">/jmx</a>: the same as HDFS has them
<li><a href="/conf">/conf</a>: every setting and where it comes from
</ul>
"""


def make_app(server: RpcServer, host: str, port: int, config: Config) -> web.Application:
    """An application for `HttpServer`; host and port are where the NameNode's RPC listens."""
    app = web.Application()
    serves_data = server.namenode.settings.data_through_namenode
    webhdfs.add_routes(app, server, f"{host}:{port}", serves_data=serves_data)
    pages.add_routes(app, NameNodeSource(server.namenode, server, port, config))
    app.router.add_get("/", _show_index)
    return app


async def _show_index(request: web.Request) -> web.Response:
    """For people who look where HDFS has its page."""
    return web.Response(text=_INDEX, content_type="text/html")
