"""An HTTP server with an event loop of its own, for a node that is made of threads."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable

from aiohttp import web

from cairnfs.web.server import HttpServer

STOP_LIMIT_S = 10.0  # more than requests are given, and then the threads that work for them


class HttpThread:
    """Serves an application on a listening socket, from `start` until `stop`."""

    def __init__(self, sock: socket.socket, make_app: Callable[[], web.Application]) -> None:
        """`make_app` is called in the thread, where the event loop runs."""
        self._socket = sock
        self._make_app = make_app
        self._loop = asyncio.new_event_loop()
        self._stopping = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="http server", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Take no more requests, and end the connections; what is stuck is left to itself."""
        self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join(STOP_LIMIT_S)

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        server = HttpServer(self._make_app())
        await server.start_on(self._socket)
        await self._stopping.wait()
        await server.stop()
