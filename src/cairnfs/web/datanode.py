"""All that a DataNode offers over HTTP."""

from __future__ import annotations

from collections.abc import Sequence

from aiohttp import web

import cairnfs.observe.routes as pages
import cairnfs.webhdfs.datanode as webhdfs


def make_app(namenodes: Sequence[str], source: pages.Source) -> web.Application:
    """An application for `HttpServer`; `namenodes` are the RPC addresses of its NameNodes."""
    app = web.Application()
    webhdfs.add_routes(app, namenodes)
    pages.add_routes(app, source)
    return app
