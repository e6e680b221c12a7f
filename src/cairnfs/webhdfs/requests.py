"""A WebHDFS request on its way to an answer, whatever node it has come to."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias
from urllib.parse import urlsplit

import msgspec
from aiohttp import web

from cairnfs.errors import HdfsError, IOException, UnsupportedOperationException
from cairnfs.webhdfs.parameters import PREFIX, USER_PATTERN, Target, invalid_operation

log = logging.getLogger(__name__)

METHODS = ("GET", "PUT", "POST", "DELETE")
DEFAULT_USER = "dr.who"  # hadoop.http.staticuser.user, of requests that name nobody
_NONE = "NULL"  # the operation of a request that names none
_UNCACHED = {"Cache-Control": "no-cache", "Pragma": "no-cache"}

Json: TypeAlias = Any
encode_json = msgspec.json.encode
Answer: TypeAlias = Callable[[web.Request, Target], Awaitable[web.StreamResponse]]


def add_webhdfs(app: web.Application, answer: Answer) -> None:
    """Let `answer` answer everything below `PREFIX`; what it raises is an answer too."""

    async def handle(request: web.Request) -> web.StreamResponse:
        try:
            if request.method not in (*METHODS, "HEAD"):
                raise web.HTTPMethodNotAllowed(request.method, METHODS)
            return await answer(request, Target.parse(_raw_target(request)))
        except HdfsError as error:
            return fail(request, error)
        except (ConnectionError, web.HTTPException):
            raise
        except Exception as error:
            log.exception("%s %s failed", request.method, request.raw_path)
            return fail(request, IOException(f"{type(error).__name__}; see the server's log"))

    def fail(request: web.Request, error: HdfsError) -> web.Response:
        if request.writer.output_size:  # part of another answer
            cut_short(request, str(error))
            raise ConnectionAbortedError(str(error))
        return answer_error(error)

    for path in (PREFIX, PREFIX + "/{path:.*}"):
        app.router.add_route("*", path, handle, expect_handler=_wait_with_continue)
    app.on_response_prepare.append(_hide_type_from_java)


def operation_of(request: web.Request, target: Target, known: dict[str, list[str]]) -> str:
    """The operation by its name in capitals; `known` has those of each method."""
    method = "GET" if request.method == "HEAD" else request.method
    given = target.parameters.text("op") or _NONE
    operation = given.upper()
    if operation == _NONE:
        raise UnsupportedOperationException("op=NULL is not supported")
    if operation not in known.get(method, ()):
        raise invalid_operation(method, given)
    return operation


def user_of(target: Target) -> tuple[str, str | None]:
    """In whose name a request is made, and who makes it in that name, if somebody else does."""
    user = target.parameters.text("user.name", USER_PATTERN) or DEFAULT_USER
    acts_for = target.parameters.text("doas")
    return (user, None) if acts_for is None else (acts_for, user)


def answer_json(answer: Json, status: int = 200) -> web.Response:
    return web.Response(
        body=encode_json(answer),
        status=status,
        content_type="application/json",
        headers=_UNCACHED,
    )


def answer_nothing() -> web.Response:
    return web.Response(content_type="application/octet-stream", headers=_UNCACHED)


def answer_error(error: HdfsError) -> web.Response:
    described = {
        "exception": error.exception_name,
        "javaClassName": error.java_class,
        "message": str(error),
    }
    return answer_json({"RemoteException": described}, error.http_status)


def cut_short(request: web.Request, reason: str) -> None:
    """End the connection: of an answer that has begun, there is no other way to say it failed."""
    log.info("%s ends before its end: %s", request.raw_path, reason)
    if request.transport is not None:
        request.transport.abort()


async def send_continue(request: web.Request) -> None:
    """Tell a client that waits for it to send its data."""
    if request.headers.get("Expect", "").lower() == "100-continue":
        await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        request.writer.output_size = 0  # that was no part of the response


async def _hide_type_from_java(request: web.Request, response: web.StreamResponse) -> None:
    """Leave out that an answer is JSON, for Hadoop's own client.

    That of Hadoop 3.5, as Spark 4 brings it, lacks the class that it reads the header with, and so
    fails with every WebHDFS; without the header it takes the answer for JSON.
    """
    is_java = request.headers.get("User-Agent", "").startswith("Java/")
    if is_java and response.content_type == "application/json":
        response.headers.popall("Content-Type", None)


async def _wait_with_continue(request: web.Request) -> None:
    """Who is to be redirected need not send anything: see `send_continue`."""


def _raw_target(request: web.Request) -> str:
    """The target as it came; a proxy may have made a whole URL of it."""
    raw = request.raw_path
    if raw.startswith("/"):
        return raw
    url = urlsplit(raw)
    return f"{url.path}?{url.query}"
