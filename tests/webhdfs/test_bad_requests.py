"""What clients send that is wrong, by mistake or on purpose: they are told, nobody else notices."""

from __future__ import annotations

import asyncio
import json
import socket
import threading

import pytest
from tests.webhdfs.exchange import send
from tests.webhdfs.raw import connect, exchange, exchange_on, status_of

from cairnfs.testing.cluster import Cluster
from cairnfs.web import server as web_server
from cairnfs.web.server import HttpServer

HOST = b"Host: x\r\n"
STATUS = "/webhdfs/v1/?op=GETFILESTATUS"


@pytest.fixture(params=["NameNode", "DataNode"])
def address(request: pytest.FixtureRequest, cluster: Cluster) -> str:
    nodes = cluster.namenodes if request.param == "NameNode" else cluster.datanodes
    return nodes[0].http_address


def get(target: bytes, headers: bytes = b"") -> bytes:
    return b"GET " + target + b" HTTP/1.1\r\n" + HOST + headers + b"\r\n"


@pytest.mark.parametrize(
    ("request_bytes", "statuses"),
    [
        (get(b"/webhdfs/v1/" + b"a" * 100_000 + b"?op=OPEN"), {400, 414}),
        (get(b"/webhdfs/v1/a?op=OPEN", b"X: " + b"y" * 1_000_000 + b"\r\n"), {400, 431}),
        (get(b"/webhdfs/v1/a?op=OPEN", b"X: y\r\n" * 100_000), {400, 431}),
        (get(b"/webhdfs/v1/\xff\xfe?op=OPEN"), {400, 403, 404}),
        (get(b"/webhdfs/v1/%ff%fe?op=OPEN"), {403, 404}),
        (get(b"/webhdfs/v1/%zz?op=OPEN"), {400}),
        (get(b"/webhdfs/v1/%?op=OPEN"), {400}),
        (get(b"/webhdfs/v1/%00?op=OPEN"), {400}),
        (get(b"/webhdfs/v1/x?op=%ff"), {400}),
        (get(b"/webhdfs/v1/x?op=OPEN&offset=%00"), {400}),
        (get(b"/webhdfs/v1/x?" + b"&" * 10_000 + b"op=OPEN"), {403, 404}),
        (get(b"/webhdfs/v1/x?op=OPEN&offset=" + b"9" * 5000), {400}),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(100), {0, 400}),  # TLS
        (b"hrpc\x09\x00\x00" + bytes(100), {0, 400}),  # Hadoop RPC
        (b"GET /webhdfs/v1/\r\n\r\n", {0, 400}),
        (b"GET /webhdfs/v1/?op=OPEN HTTP/9.9\r\n" + HOST + b"\r\n", {0, 400, 505}),
        (b"PATCH /webhdfs/v1/?op=OPEN HTTP/1.1\r\n" + HOST + b"\r\n", {405}),
        (b"get /webhdfs/v1/?op=OPEN HTTP/1.1\r\n" + HOST + b"\r\n", {0, 400, 405}),
        (
            b"PUT /webhdfs/v1/x?op=MKDIRS HTTP/1.1\r\n" + HOST + b"Content-Length: -5\r\n\r\n",
            {0, 400},
        ),
        (
            b"PUT /webhdfs/v1/x?op=MKDIRS HTTP/1.1\r\n"
            + HOST
            + b"Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\nzzz",
            {0, 400},
        ),
    ],
)
def test_nonsense_is_refused_and_forgotten(
    address: str, request_bytes: bytes, statuses: set[int]
) -> None:
    assert status_of(exchange(address, request_bytes)) in statuses
    assert send(address, "GET", STATUS).status in (200, 400)


def test_errors_are_told_as_hadoop_tells_them(address: str) -> None:
    answer = send(address, "GET", "/webhdfs/v1/%zz?op=OPEN")
    error = json.loads(answer.body)["RemoteException"]
    assert error["exception"] == "IllegalArgumentException"
    assert error["javaClassName"] == "java.lang.IllegalArgumentException"
    assert "%zz" in error["message"]


def test_connections_that_say_nothing_keep_nobody_waiting(address: str) -> None:
    silent = [connect(address) for _ in range(200)]
    try:
        for sock in silent[:100]:
            sock.sendall(b"GET /webhdfs/v1/?op=GETFILE")
        assert send(address, "GET", STATUS).status in (200, 400)
    finally:
        for sock in silent:
            sock.close()


def test_a_connection_serves_one_request_after_the_other(cluster: Cluster) -> None:
    with connect(cluster.namenodes[0].http_address) as sock:
        for _ in range(3):
            assert status_of(exchange_on(sock, get(STATUS.encode()))) == 200
        assert status_of(exchange_on(sock, get(b"/webhdfs/v1/missing?op=GETFILESTATUS"))) == 404
        assert status_of(exchange_on(sock, get(STATUS.encode()))) == 200


def test_a_client_that_never_comes_to_its_request_is_sent_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(web_server, "FIRST_REQUEST_S", 0.2)

    async def talk() -> bytes:
        from aiohttp import web

        server = HttpServer(web.Application())
        port = await server.start("127.0.0.1", 0)
        received = asyncio.get_running_loop().create_future()

        def trickle() -> None:
            with socket.create_connection(("127.0.0.1", port), timeout=10) as sock:
                sock.sendall(b"GET / HT")
                try:
                    data = sock.recv(10)
                except ConnectionResetError:
                    data = b""
            loop.call_soon_threadsafe(received.set_result, data)

        loop = asyncio.get_running_loop()
        thread = threading.Thread(target=trickle)
        thread.start()
        data: bytes = await asyncio.wait_for(received, 5)
        thread.join()
        await server.stop()
        return data

    assert asyncio.run(talk()) == b""
