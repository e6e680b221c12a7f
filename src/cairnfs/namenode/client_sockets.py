"""The sockets of many clients in an epoll of their own, which the event loop watches as one.

asyncio looks after each socket by itself: what it does for one read, and to send one answer, takes
as long as some calls need altogether.  Here whatever has come is read in one go, without a handle
for each socket.

Invariant: whoever was given a socket to serve is told once, and last of all, that it is lost;
whatever happens to one socket is nothing to the others.
"""

from __future__ import annotations

import asyncio
import logging
import select
import socket
from collections.abc import Callable
from time import monotonic
from typing import Final, Protocol

log = logging.getLogger(__name__)

RECEIVED_BYTES_MAX: Final = 64 << 10  # in one read
READY_MAX: Final = 256  # sockets that are told of by one look
LOOKS_MAX = 4  # for who has sent something, before the event loop goes on,
LOOKS_LIMIT_S: Final = 0.001  # and none after that: whoever sends without a pause has his share
LOOK_LIMIT_S: Final = 0.005  # the rest of those who are ready come after the event loop's next turn
ACCEPTED_MAX: Final = 64  # by one look
ACCEPT_AGAIN_S = 1.0  # after a failure, as when there are no descriptors left
BACKLOG: Final = 256  # ipc.server.listen.queue.size

_IN: Final = select.EPOLLIN
_OUT: Final = select.EPOLLOUT


class Receiver(Protocol):
    """Whom the bytes of a client are for."""

    def receive(self, data: bytes) -> None: ...

    def end_received(self) -> None:
        """The client sends nothing more; it may still read.  It is yours to close."""
        ...

    def pause_writing(self) -> None:
        """The client does not read: more is unsent than should be."""
        ...

    def resume_writing(self) -> None: ...

    def connection_lost(self, error: Exception | None) -> None: ...


class Client(Protocol):
    """What the receiver may ask of the socket."""

    @property
    def address(self) -> str: ...

    @property
    def moved(self) -> int:
        """Grows with each sending of what was unsent."""
        ...

    @property
    def is_closing(self) -> bool: ...

    @property
    def has_unsent(self) -> bool: ...

    def write(self, data: bytes) -> None:
        """Send it, now or when the client has read more; not after `close`."""
        ...

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...

    def close(self) -> None:
        """Receive nothing more, and end it when everything is sent."""
        ...

    def abort(self) -> None:
        """End it at once."""
        ...


class ClientSockets:
    """A port and its clients, from `listen` until `close`."""

    def __init__(self, serve: Callable[[Client], Receiver], unsent_bytes_max: int) -> None:
        """`serve` tells who receives what comes from a new client."""
        self.unsent_bytes_max = unsent_bytes_max
        self.buffer = memoryview(bytearray(RECEIVED_BYTES_MAX))  # of all: a moment each
        self.loop = asyncio.get_running_loop()
        self.epoll = select.epoll()
        self.sockets: dict[int, ClientSocket] = {}  # by descriptor
        self._ready: list[tuple[int, int]] = []  # told of by the last look, and not served yet
        self._serve = serve
        self._listener: socket.socket | None = None
        self._accepting_again: asyncio.TimerHandle | None = None
        self.loop.add_reader(self.epoll.fileno(), self.poll)

    def listen(self, listener: socket.socket) -> None:
        listener.setblocking(False)
        listener.listen(BACKLOG)
        self.epoll.register(listener.fileno(), _IN)
        self._listener = listener

    def stop_listening(self) -> None:
        if self._accepting_again is not None:
            self._accepting_again.cancel()
        if self._listener is not None:
            self.epoll.unregister(self._listener.fileno())
            self._listener.close()
            self._listener = None

    def close(self) -> None:
        """When nobody listens and all sockets are at their end."""
        assert self._listener is None
        assert not self.sockets
        self.loop.remove_reader(self.epoll.fileno())
        self.epoll.close()

    def poll(self) -> None:
        """Receive what has come; never waits, nor keeps the event loop for long."""
        began_s = monotonic()
        for _ in range(LOOKS_MAX):
            ready = self._ready or self.epoll.poll(0, READY_MAX)
            if not ready:
                return
            self._ready = self._serve_until(began_s + LOOK_LIMIT_S, ready)
            if monotonic() - began_s > LOOKS_LIMIT_S:
                return

    def _serve_until(self, limit_s: float, ready: list[tuple[int, int]]) -> list[tuple[int, int]]:
        """Serve those who are ready, at least one; returns those that there was no time for."""
        sockets = self.sockets
        for n, (descriptor, events) in enumerate(ready, 1):
            client = sockets.get(descriptor)
            if client is None:  # ended by one of those before it, or the port
                self._accept(descriptor)
                continue
            try:
                if events & _OUT:
                    client.send_unsent()
                if events & ~_OUT:  # closed or broken, too: reading tells
                    client.receive()
            except Exception:
                log.exception("the connection of %s failed", client.address)
                client.abort()
            if monotonic() > limit_s:
                return ready[n:]
        return []

    def _accept(self, descriptor: int) -> None:
        listener = self._listener
        if listener is None or listener.fileno() != descriptor:
            return
        for _ in range(ACCEPTED_MAX):
            try:
                sock, address = listener.accept()
            except (BlockingIOError, InterruptedError):
                return
            except ConnectionAbortedError:
                continue
            except OSError as error:
                log.error("connections can't be accepted: %s", error)
                self.epoll.modify(descriptor, 0)
                self._accepting_again = self.loop.call_later(
                    ACCEPT_AGAIN_S, self.epoll.modify, descriptor, _IN
                )
                return
            try:
                sock.setblocking(False)
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
                ClientSocket(self, sock, address[0]).open(self._serve)
            except Exception:
                log.exception("the connection of %s could not be opened", address[0])
                sock.close()


class ClientSocket:
    """One of them: what `ClientSockets` and the one who serves it have to say to each other."""

    __slots__ = (
        "_clients",
        "_closing",
        "_descriptor",
        "_is_over",
        "_paused",
        "_reads",
        "_receiver",
        "_recv_into",
        "_send",
        "_socket",
        "_unsent",
        "_watched",
        "address",
        "moved",
    )
    __deletable__ = ("_receiver",)  # for who compiles it

    def __init__(self, clients: ClientSockets, sock: socket.socket, address: str) -> None:
        self.address = address
        self.moved = 0
        self._clients = clients
        self._socket = sock
        self._descriptor = sock.fileno()
        self._recv_into = sock.recv_into
        self._send = sock.send
        self._unsent = bytearray()
        self._paused = False  # the receiver, who writes too much
        self._reads = True
        self._closing = False
        self._is_over = False
        self._watched = 0

    def open(self, serve: Callable[[Client], Receiver]) -> None:
        self._receiver = serve(self)
        self._clients.sockets[self._descriptor] = self
        self._watch()

    # See `Client`.

    @property
    def is_closing(self) -> bool:
        return self._closing

    @property
    def has_unsent(self) -> bool:
        return bool(self._unsent)

    def write(self, data: bytes) -> None:
        if self._closing:
            return
        if self._unsent:
            self._keep_unsent(data)
            return
        try:
            count = self._send(data)
        except (BlockingIOError, InterruptedError):
            count = 0
        except OSError as error:
            self._end(error)
            return
        if count < len(data):
            self._keep_unsent(data[count:])

    def pause_reading(self) -> None:
        self._reads = False
        self._watch()

    def resume_reading(self) -> None:
        self._reads = True
        self._watch()

    def close(self) -> None:
        if not self._closing:
            self._closing = True
            if self._unsent:
                self._watch()
            else:
                self._end(None)

    def abort(self) -> None:
        self._end(None)

    # For `ClientSockets`.

    def receive(self) -> None:
        if self._closing or not self._reads:
            self.send_unsent()  # which fails if it is broken
            return
        buffer = self._clients.buffer
        try:
            count = self._recv_into(buffer)
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            self._end(error)
            return
        if count:
            self._receiver.receive(bytes(buffer[:count]))
        else:
            self.pause_reading()
            self._receiver.end_received()

    def send_unsent(self) -> None:
        if not self._unsent:
            return
        try:
            count = self._send(self._unsent)
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            self._end(error)
            return
        del self._unsent[:count]
        self.moved += 1
        if not self._unsent:
            if self._closing:
                self._end(None)
                return
            self._watch()
        if self._paused and len(self._unsent) <= self._clients.unsent_bytes_max // 4:
            self._paused = False
            self._receiver.resume_writing()

    def _keep_unsent(self, data: bytes) -> None:
        self._unsent += data
        self._watch()
        if not self._paused and len(self._unsent) > self._clients.unsent_bytes_max:
            self._paused = True
            self._receiver.pause_writing()

    def _watch(self) -> None:
        """Have the kernel tell what there is to do.

        A socket that nothing is wanted of is not watched: the kernel would go on telling that it
        is broken, say.
        """
        wanted = 0
        if not self._is_over:
            wanted = _IN if self._reads and not self._closing else 0
            if self._unsent:
                wanted |= _OUT
        if wanted == self._watched:
            return
        epoll = self._clients.epoll
        try:
            if not wanted:
                epoll.unregister(self._descriptor)
            elif self._watched:
                epoll.modify(self._descriptor, wanted)
            else:
                epoll.register(self._descriptor, wanted)
        except OSError as error:  # so many may be watched, and no more
            self._end(error)
        else:
            self._watched = wanted

    def _end(self, error: Exception | None) -> None:
        if self._is_over:
            return
        self._is_over = self._closing = True
        self._unsent = bytearray()  # it may be much
        self._watch()
        del self._clients.sockets[self._descriptor]
        # Not now: whoever serves it may be in the middle of something; nor may its number be that
        # of another one before all that was ready is looked at.
        self._clients.loop.call_soon(self._lose, error)

    def _lose(self, error: Exception | None) -> None:
        self._socket.close()
        receiver = self._receiver
        del self._receiver  # or the two would keep each other until the collector comes
        receiver.connection_lost(error)
