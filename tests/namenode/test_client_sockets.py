"""Sockets in an epoll of their own: whatever becomes of one connection, the others go on."""

from __future__ import annotations

import asyncio
import errno
import socket
import struct
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from cairnfs.namenode import client_sockets
from cairnfs.namenode.client_sockets import ClientSocket, ClientSockets

LIMIT_BYTES = 64 << 10
MUCH = bytes(range(256)) * (32 << 10)  # 8 MiB: more than a socket takes at once
WAIT_LIMIT_S = 10.0


class Echo:
    """Sends back what it receives, and remembers what it was told."""

    def __init__(self, connection: ClientSocket) -> None:
        self.connection = connection
        self.told: list[str] = []

    def receive(self, data: bytes) -> None:
        if data == b"raise":
            raise ValueError("nobody expected this")
        if data == b"much":
            self.connection.write(MUCH)
        elif data == b"much, and end":
            self.connection.write(MUCH)
            self.connection.close()
            self.connection.write(b"never sent")
        else:
            self.connection.write(data)

    def end_received(self) -> None:
        self.connection.write(b"bye")
        self.connection.close()

    def pause_writing(self) -> None:
        self.told.append("pause")

    def resume_writing(self) -> None:
        self.told.append("resume")

    def connection_lost(self, error: Exception | None) -> None:
        self.told.append("lost")


class Port:
    """A port with an echo behind it, and clients."""

    def __init__(self, kind: type[socket.socket] = socket.socket) -> None:
        self.served: list[Echo] = []
        self.clients: list[socket.socket] = []
        self.sockets = ClientSockets(self._serve, LIMIT_BYTES)
        self.listener: Any = kind(socket.AF_INET, socket.SOCK_STREAM)
        self.listener.bind(("127.0.0.1", 0))
        self.address: tuple[str, int] = self.listener.getsockname()
        self.sockets.listen(self.listener)

    def _serve(self, connection: ClientSocket) -> Echo:
        self.served.append(Echo(connection))
        return self.served[-1]

    async def connect(self) -> tuple[socket.socket, Echo]:
        loop, before = asyncio.get_running_loop(), len(self.served)
        client = socket.socket()
        client.setblocking(False)
        self.clients.append(client)
        await loop.sock_connect(client, self.address)
        await until(lambda: len(self.served) > before)
        return client, self.served[before]

    async def ask(self, client: socket.socket, data: bytes) -> bytes:
        loop = asyncio.get_running_loop()
        await loop.sock_sendall(client, data)
        return await asyncio.wait_for(loop.sock_recv(client, 1 << 16), WAIT_LIMIT_S)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(WAIT_LIMIT_S):
        while not condition():
            await asyncio.sleep(0.005)


async def read_all(client: socket.socket, count: int) -> bytes:
    """So many bytes, or all there are until the end."""
    loop, read = asyncio.get_running_loop(), bytearray()
    while len(read) < count:
        data = await asyncio.wait_for(loop.sock_recv(client, 1 << 16), WAIT_LIMIT_S)
        if not data:
            break
        read += data
    return bytes(read)


@asynccontextmanager
async def opened(kind: type[socket.socket]) -> AsyncIterator[Port]:
    port = Port(kind)
    try:
        yield port
    finally:
        port.sockets.stop_listening()
        for client in port.clients:
            client.close()
        await until(lambda: not port.sockets.sockets)
        assert all(echo.told.count("lost") == 1 and echo.told[-1] == "lost" for echo in port.served)
        port.sockets.close()


def play(
    scenario: Callable[[Port], Awaitable[None]], kind: type[socket.socket] = socket.socket
) -> None:
    async def run() -> None:
        async with opened(kind) as port:
            await scenario(port)

    asyncio.run(run())


def test_clients_are_served_and_end() -> None:
    async def scenario(port: Port) -> None:
        first, echo = await port.connect()
        second, _ = await port.connect()
        assert echo.connection.address == "127.0.0.1"
        assert await port.ask(first, b"one") == b"one"
        assert await port.ask(second, b"two") == b"two"
        first.close()
        await until(lambda: echo.told == ["lost"])
        assert await port.ask(second, b"three") == b"three"

    play(scenario)


def test_what_is_written_arrives_though_the_other_end_reads_late_and_it_is_closed() -> None:
    async def scenario(port: Port) -> None:
        client, echo = await port.connect()
        await asyncio.get_running_loop().sock_sendall(client, b"much, and end")
        await until(lambda: echo.connection.is_closing)
        assert len(echo.connection._unsent) > LIMIT_BYTES
        assert await read_all(client, len(MUCH) + 1) == MUCH

    play(scenario)


def test_who_writes_too_much_is_told_to_pause_and_to_go_on() -> None:
    async def scenario(port: Port) -> None:
        client, echo = await port.connect()
        await asyncio.get_running_loop().sock_sendall(client, b"much")
        await until(lambda: echo.told == ["pause"])
        assert await read_all(client, len(MUCH)) == MUCH
        await until(lambda: echo.told == ["pause", "resume"])
        assert await port.ask(client, b"more") == b"more"

    play(scenario)


def test_what_comes_while_reading_is_paused_is_received_later() -> None:
    async def scenario(port: Port) -> None:
        client, echo = await port.connect()
        echo.connection.pause_reading()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await port.ask(client, b"wait")
        echo.connection.resume_reading()
        assert await read_all(client, 4) == b"wait"

    play(scenario)


@pytest.mark.parametrize("unsent", [False, True])
def test_a_reset_while_reading_is_paused_does_not_keep_the_processor_busy(unsent: bool) -> None:
    async def scenario(port: Port) -> None:
        client, echo = await port.connect()
        if unsent:
            await asyncio.get_running_loop().sock_sendall(client, b"much")
            await until(lambda: len(echo.connection._unsent) > 0)
        echo.connection.pause_reading()
        # Closing it resets it then.
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.close()
        polls = 0
        poll = port.sockets.poll

        def count() -> None:
            nonlocal polls
            polls += 1
            poll()

        loop = asyncio.get_running_loop()
        loop.add_reader(port.sockets.epoll.fileno(), count)
        await asyncio.sleep(0.2)
        assert polls < 10
        assert ("lost" in echo.told) is unsent  # it was noticed by sending
        echo.connection.resume_reading()
        await until(lambda: "lost" in echo.told)

    play(scenario)


def test_a_fault_of_one_receiver_ends_its_own_connection(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(port: Port) -> None:
        faulty, echo = await port.connect()
        other, _ = await port.connect()
        assert await port.ask(faulty, b"raise") == b""
        assert echo.told == ["lost"]
        assert await port.ask(other, b"still there") == b"still there"

    play(scenario)
    assert "nobody expected this" in caplog.text


def test_one_that_another_ends_in_the_same_moment_is_left_alone() -> None:
    async def scenario(port: Port) -> None:
        first, one = await port.connect()
        second, two = await port.connect()
        one.receive = lambda data: two.connection.abort()  # type: ignore[method-assign]
        two.receive = lambda data: one.connection.abort()  # type: ignore[method-assign]
        first.send(b"x")
        second.send(b"x")
        await until(lambda: bool(one.told or two.told))
        await asyncio.sleep(0.05)
        assert sorted(one.told + two.told) == ["lost"]

    play(scenario)


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ECONNABORTED])
def test_connections_are_accepted_again_after_a_failure(
    number: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class FailingOnce(socket.socket):
        has_failed = False

        def accept(self) -> tuple[socket.socket, object]:
            if not self.has_failed:
                self.has_failed = True
                raise OSError(number, "not now")
            return super().accept()

    async def scenario(port: Port) -> None:
        client, _ = await port.connect()
        assert port.listener.has_failed
        assert await port.ask(client, b"here") == b"here"

    monkeypatch.setattr(client_sockets, "ACCEPT_AGAIN_S", 0.05)
    play(scenario, FailingOnce)
    assert ("not now" in caplog.text) is (number == errno.EMFILE)


def test_one_who_can_not_be_served_is_sent_away(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(port: Port) -> None:
        loop = asyncio.get_running_loop()

        def fail(connection: ClientSocket) -> Echo:
            raise ValueError("there is no room")

        with monkeypatch.context() as context:
            context.setattr(port.sockets, "_serve", fail)
            refused = socket.create_connection(port.address)
            refused.setblocking(False)
            assert await loop.sock_recv(refused, 1) == b""
            refused.close()
        client, _ = await port.connect()
        assert await port.ask(client, b"served") == b"served"

    play(scenario)
    assert "there is no room" in caplog.text


def test_nobody_listens_who_was_stopped_at_once() -> None:
    async def run() -> tuple[str, int]:
        port = Port()
        port.sockets.stop_listening()
        port.sockets.close()
        return port.address

    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(asyncio.run(run()))


def test_a_fault_in_going_on_is_nothing_to_others(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(port: Port) -> None:
        faulty, echo = await port.connect()
        other, _ = await port.connect()

        def fail() -> None:
            raise ValueError("it can't go on")

        echo.resume_writing = fail  # type: ignore[method-assign]
        await asyncio.get_running_loop().sock_sendall(faulty, b"much")
        await until(lambda: echo.told == ["pause"])
        await read_all(faulty, len(MUCH) + 1)
        await until(lambda: echo.told == ["pause", "lost"])
        assert await port.ask(other, b"here") == b"here"

    play(scenario)
    assert "it can't go on" in caplog.text


def test_who_sends_nothing_more_may_still_be_answered() -> None:
    async def scenario(port: Port) -> None:
        client, _ = await port.connect()
        client.send(b"last words; ")
        client.shutdown(socket.SHUT_WR)
        assert await read_all(client, 100) == b"last words; bye"

    play(scenario)


def test_who_sends_without_a_pause_does_not_keep_the_loop_from_others() -> None:
    """After a millisecond it is not looked again, though there is always more to be read."""

    async def scenario(port: Port) -> None:
        client, echo = await port.connect()
        received = []

        def receive_slowly(data: bytes) -> None:
            received.append(data)
            time.sleep(2 * client_sockets.LOOKS_LIMIT_S)

        echo.receive = receive_slowly  # type: ignore[method-assign]
        client.setblocking(True)
        client.sendall(bytes(2 * client_sockets.RECEIVED_BYTES_MAX))
        port.sockets.poll()
        assert len(received) == 1
        await until(lambda: sum(map(len, received)) == 2 * client_sockets.RECEIVED_BYTES_MAX)

    play(scenario)
