"""The HTTP server of a node: an aiohttp application on one port.

Everything a node offers over HTTP is added to one application by functions `add_routes(app, ...)`,
each in the package that it belongs to; who starts the node puts them together.

Invariant: a client that is slow, silent or talks nonsense holds a connection, for a bounded time,
and nothing else.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import socket

from aiohttp import web
from aiohttp.typedefs import Handler

LINE_BYTES_MAX = 32 << 10  # of a request: a path has up to 8000 characters, encoded three times
FIELD_BYTES_MAX = 16 << 10  # of a header
FIRST_REQUEST_S = 20.0  # for a new connection to have sent the head of one
KEEP_ALIVE_S = 30.0
LINGER_S = 10.0  # for what the sender of a refused body still sends
STOP_LIMIT_S = 3.0  # for requests under way
BACKLOG = 256

# What clients do wrong they are told; handlers log their own failures.
_silent = logging.getLogger(f"{__name__}.clients")
_silent.setLevel(logging.CRITICAL)


class HttpServer:
    """Serves an application from `start` until `stop`, in one event loop."""

    def __init__(self, app: web.Application) -> None:
        app.middlewares.insert(0, self._note_request)
        self._runner = web.AppRunner(
            app,
            access_log=None,
            logger=_silent,
            handle_signals=False,
            handler_cancellation=True,  # nobody works for a client that has left
            auto_decompress=False,  # a body is data, whatever its encoding
            keepalive_timeout=KEEP_ALIVE_S,
            lingering_time=LINGER_S,
            max_line_size=LINE_BYTES_MAX,
            max_field_size=FIELD_BYTES_MAX,
            shutdown_timeout=STOP_LIMIT_S,
        )
        self._listener: asyncio.Server | None = None
        self._strangers: dict[asyncio.BaseProtocol, asyncio.TimerHandle] = {}

    async def start(self, host: str, port: int) -> int:
        """Listen; returns the port, which is a free one if 0 was asked for."""
        return await self.start_on(take_port(host, port, "HTTP port"))

    async def start_on(self, sock: socket.socket) -> int:
        """The same on a port that was taken before."""
        await self._runner.setup()
        loop = asyncio.get_running_loop()
        self._listener = await loop.create_server(self._accept, sock=sock, backlog=BACKLOG)
        port: int = sock.getsockname()[1]
        return port

    async def stop(self) -> None:
        """Take no more requests, give those under way a moment, and end the connections."""
        if self._listener is not None:
            self._listener.close()
        await self._runner.cleanup()
        for timer in self._strangers.values():
            timer.cancel()

    def _accept(self) -> asyncio.Protocol:
        """A connection, which is ended unless it comes to its first request in time.

        aiohttp looks after the time of all later ones only.
        """
        server = self._runner.server
        assert server is not None, "it was set up"
        connection = server()

        def end() -> None:
            del self._strangers[connection]
            if connection.transport is not None:
                connection.transport.abort()

        loop = asyncio.get_running_loop()
        self._strangers[connection] = loop.call_later(FIRST_REQUEST_S, end)
        return connection

    @web.middleware
    async def _note_request(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        timer = self._strangers.pop(request.protocol, None)
        if timer is not None:
            timer.cancel()
        return await handler(request)


def take_port(host: str, port: int, what: str) -> socket.socket:
    """A socket of this port, which refuses connections until it listens.

    OSError says in one line why there is none.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((host, port))
    except OSError as error:
        sock.close()
        if error.errno == errno.EADDRINUSE:
            raise OSError(error.errno, f"{what} {port} of {host} is in use") from None
        if error.errno == errno.EACCES:
            raise OSError(error.errno, f"{what} {port} of {host} is root's") from None
        raise
    return sock
