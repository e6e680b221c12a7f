"""WebHDFS on a DataNode: the operations that NameNodes redirect to it."""

from __future__ import annotations

from collections.abc import Sequence

from aiohttp import web

from cairnfs.errors import IllegalArgumentException
from cairnfs.webhdfs.data import Data
from cairnfs.webhdfs.data_parameters import DATA_OPERATIONS
from cairnfs.webhdfs.parameters import Target
from cairnfs.webhdfs.requests import add_webhdfs


def add_routes(app: web.Application, namenodes: Sequence[str]) -> None:
    """Serve data as a client of these NameNodes, by their RPC addresses.

    A request names a NameNode too.  Any of them serves any call, so that its own are asked: nobody
    can make a DataNode connect to where they like.
    """
    data = Data(f"hdfs://{','.join(namenodes)}")

    async def answer(request: web.Request, target: Target) -> web.StreamResponse:
        operation = (target.parameters.text("op") or "").upper()
        method = "GET" if request.method == "HEAD" else request.method
        if operation not in DATA_OPERATIONS.get(method, ()):
            raise IllegalArgumentException(f"Invalid operation {target.parameters.text('op')}")
        return await data.answer(request, target, operation)

    async def close(app: web.Application) -> None:
        await data.close()

    add_webhdfs(app, answer)
    app.on_cleanup.append(close)
