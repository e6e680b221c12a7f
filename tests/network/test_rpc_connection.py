"""Calls over one connection: what comes of servers that do not answer as they should."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from cairnfs.errors import IOException
from cairnfs.network.address import Address
from cairnfs.network.rpc_connection import NoAnswer, RpcConnection, make_call_ids
from cairnfs.wire.proto import client_namenode_pb2 as pb
from cairnfs.wire.protocols import CLIENT_PROTOCOL

METHOD = CLIENT_PROTOCOL["getFileInfo"]
REQUEST = pb.GetFileInfoRequestProto(src="/")
CLIENT_ID = bytes(16)


@contextmanager
def connected(serve: Callable[[socket.socket], object]) -> Iterator[RpcConnection]:
    """A connection to a server that takes one, and does `serve` with it."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def accept() -> None:
            sock, _ = listener.accept()
            with sock:
                serve(sock)

        thread = threading.Thread(target=accept)
        thread.start()
        address = Address("127.0.0.1", listener.getsockname()[1])
        connection = RpcConnection(address, CLIENT_PROTOCOL, CLIENT_ID, "ada", timeout_s=0.5)
        try:
            yield connection
        finally:
            connection.close()
            thread.join()


def read_to_the_end(sock: socket.socket) -> None:
    while sock.recv(1 << 16):
        pass


def test_nobody_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = Address("127.0.0.1", listener.getsockname()[1])
    with pytest.raises(NoAnswer, match=f"Connection refused: {address}") as caught:
        RpcConnection(address, CLIENT_PROTOCOL, CLIENT_ID, "ada", timeout_s=5)
    assert isinstance(caught.value.__cause__, ConnectionRefusedError)


def test_a_server_that_hangs_up() -> None:
    with connected(lambda sock: sock.recv(1 << 16)) as connection:
        with pytest.raises(NoAnswer, match=r"closed the connection|reset by peer"):
            connection.call(0, METHOD, REQUEST)
        assert connection.is_broken


def test_a_server_that_is_silent() -> None:
    with connected(read_to_the_end) as connection:
        with pytest.raises(NoAnswer, match="did not answer getFileInfo in time") as caught:
            connection.call(0, METHOD, REQUEST)
        assert isinstance(caught.value.__cause__, TimeoutError)
        assert connection.is_broken


def test_a_server_of_another_kind() -> None:
    def answer(sock: socket.socket) -> None:
        sock.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        read_to_the_end(sock)

    with connected(answer) as connection:
        with pytest.raises(IOException, match=r"does not speak RPC: .*an HTTP port") as caught:
            connection.call(0, METHOD, REQUEST)
        assert not isinstance(caught.value, NoAnswer)  # it is no use to try again
        assert connection.is_broken


def test_a_call_is_interrupted_by_another_thread() -> None:
    with connected(read_to_the_end) as connection:
        timer = threading.Timer(0.1, connection.interrupt)
        timer.start()
        began_s = time.monotonic()
        with pytest.raises(NoAnswer, match="closed the connection"):
            connection.call(0, METHOD, REQUEST)
        assert time.monotonic() - began_s < 0.45
        timer.join()


def test_an_idle_connection_that_the_server_has_closed_is_stale() -> None:
    with connected(lambda _: None) as connection:
        deadline_s = time.monotonic() + 10
        while not connection.is_stale():
            assert time.monotonic() < deadline_s
            time.sleep(0.01)


def test_call_ids_are_distinct_in_all_threads() -> None:
    ids = make_call_ids()
    taken: list[list[int]] = [[] for _ in range(4)]
    threads = [
        threading.Thread(target=lambda mine=mine: mine.extend(next(ids) for _ in range(5000)))
        for mine in taken
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(id for mine in taken for id in mine) == list(range(20_000))
