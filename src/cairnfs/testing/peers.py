"""NameNodes that a test drives one against the other, here or in processes of their own.

A `Peer` runs calls by name, waits for them or not, and can be stopped at a step of its
store (`testing.faults`).  `LocalPeer` is a NameNode in this process, with a thread and
an event loop of its own; `ProcessPeer` is the same in another process.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import multiprocessing.connection
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from itertools import count
from typing import Any, Protocol, Self, cast

from cairnfs.clock import SystemClock
from cairnfs.config import NameNodeSettings
from cairnfs.namenode.embedded import ClientProtocol, NameNodeThread
from cairnfs.namenode.namenode import NameNode
from cairnfs.namenode.opening import OpenStore, open_store
from cairnfs.store.base import Store
from cairnfs.testing.faults import PAUSE_LIMIT_S, CarelessStore, PausingStore
from cairnfs.transaction.calls import CallKey, Operation

CALLS_MAX = 16  # at once, of one peer
WAIT_LIMIT_S = 120.0

Wrap = Callable[[Store], Store]


class Peer(Protocol):
    """A NameNode under a test's control.  Every method may be called from any thread."""

    def call(self, method: str, *arguments: Any, **options: Any) -> Any:
        """Run a call of ClientProtocol and wait for its answer."""
        ...

    def start(self, method: str, *arguments: Any, **options: Any) -> Future[Any]:
        """Begin a call of ClientProtocol.

        `user` makes it somebody else's than the superuser's; `key` says which call of
        which client it is, and `is_retry` that it may have run before.
        """
        ...

    def pause_at(self, step: str, skip: int = 0) -> None: ...

    def wait_until_paused(self, step: str, limit_s: float = PAUSE_LIMIT_S) -> bool: ...

    def resume(self, step: str) -> None: ...

    def stop(self) -> None: ...


class KeyedClient(ClientProtocol):
    """A client that says itself which call this is, and whether it is a retry."""

    def __init__(self, namenode: NameNodeThread, user: str | None, client_id: bytes) -> None:
        super().__init__(namenode, namenode.client(user).caller)
        self.client_id = client_id
        self.client_name = f"DFSClient_{client_id.hex()[:12]}"
        self.call_id = 0
        self.is_retry = False

    def _run(self, operation: Operation[Any], *arguments: Any) -> Any:
        key = CallKey(self.client_id, self.call_id)
        return self._namenode.wait(
            self._namenode.namenode.call(operation, *arguments, key=key, is_retry=self.is_retry)
        )


class PendingCalls(ClientProtocol):
    """Calls that return what to await; for many at once in the NameNode's own loop.

    Every call has a key.  Only for the methods that return something.
    """

    def __init__(self, namenode: NameNode, client_id: bytes | None = None) -> None:
        caller = namenode.caller(namenode.superuser, (), "127.0.0.1")
        super().__init__(cast(NameNodeThread, None), caller)
        if client_id is not None:
            self.client_id = client_id
            self.client_name = f"DFSClient_{client_id.hex()[:12]}"
        self._target = namenode

    @property
    def _soft_limit_ms(self) -> int:
        return self._target.lease_soft_limit_ms

    def _run(self, operation: Operation[Any], *arguments: Any) -> Any:
        key = CallKey(self.client_id, next(self._call_ids))
        return self._target.call(operation, *arguments, key=key)


class FaultyNameNodeThread(NameNodeThread):
    """A NameNode in a thread of its own, on a store that is wrapped in faults."""

    def __init__(
        self, settings: NameNodeSettings, wrap: Wrap = PausingStore, *, validate: bool = True
    ) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="peer", daemon=True)
        self._thread.start()
        try:
            self.namenode = self.wait(start_namenode(settings, wrap, validate=validate))
        except BaseException:
            self._end()
            raise


async def start_namenode(
    settings: NameNodeSettings, wrap: Wrap, *, validate: bool = True
) -> NameNode:
    """As NameNode.start, with a wrapped store; perhaps without validation."""
    opened = await open_store(settings)
    store = opened.store if validate else CarelessStore(opened.store)
    opened = OpenStore(wrap(store), opened.membership, opened.meta)
    namenode = NameNode(settings, opened, SystemClock())
    if settings.duties:
        namenode.duties.start()
    return namenode


class LocalPeer:
    """A NameNode in this process."""

    def __init__(
        self, settings: NameNodeSettings, wrap: Wrap = PausingStore, *, validate: bool = True
    ) -> None:
        self.thread = FaultyNameNodeThread(settings, wrap, validate=validate)
        self.store: Any = self.thread.namenode.store
        self._callers = ThreadPoolExecutor(CALLS_MAX)
        self._clients: dict[str | None, ClientProtocol] = {}

    def call(self, method: str, *arguments: Any, **options: Any) -> Any:
        return self.start(method, *arguments, **options).result(WAIT_LIMIT_S)

    def start(
        self,
        method: str,
        *arguments: Any,
        user: str | None = None,
        key: tuple[bytes, int] | None = None,
        is_retry: bool = False,
        **options: Any,
    ) -> Future[Any]:
        client = self.client(user)
        if key is not None:
            client = KeyedClient(self.thread, user, key[0])
            client.call_id = key[1]
            client.is_retry = is_retry
        return self._callers.submit(getattr(client, method), *arguments, **options)

    def client(self, user: str | None = None) -> ClientProtocol:
        client = self._clients.get(user)
        if client is None:
            client = self._clients[user] = self.thread.client(user)
        return client

    def pause_at(self, step: str, skip: int = 0) -> None:
        self.store.pause_at(step, skip)

    def wait_until_paused(self, step: str, limit_s: float = PAUSE_LIMIT_S) -> bool:
        reached: bool = self.store.wait_until_paused(step, limit_s)
        return reached

    def resume(self, step: str) -> None:
        self.store.resume(step)

    def stop(self) -> None:
        self.thread.stop()
        self._callers.shutdown()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()


class ProcessPeer:
    """A NameNode in a process of its own; it can be killed."""

    def __init__(self, settings: NameNodeSettings) -> None:
        context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs, settings), daemon=True)
        self.process.start()
        theirs.close()
        self._sending = threading.Lock()
        self._numbers = count()
        self._open: dict[int, Future[Any]] = {}
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.is_alive = True
        self._ask("_ready").result(WAIT_LIMIT_S)

    def call(self, method: str, *arguments: Any, **options: Any) -> Any:
        return self.start(method, *arguments, **options).result(WAIT_LIMIT_S)

    def start(self, method: str, *arguments: Any, **options: Any) -> Future[Any]:
        return self._ask(method, *arguments, **options)

    def pause_at(self, step: str, skip: int = 0) -> None:
        self._ask("_pause_at", step, skip).result(WAIT_LIMIT_S)

    def wait_until_paused(self, step: str, limit_s: float = PAUSE_LIMIT_S) -> bool:
        reached: bool = self._ask("_wait_until_paused", step, limit_s).result(WAIT_LIMIT_S)
        return reached

    def resume(self, step: str) -> None:
        self._ask("_resume", step).result(WAIT_LIMIT_S)

    def kill(self) -> None:
        """SIGKILL; calls under way are answered with EOFError."""
        self.process.kill()
        self._end()

    def stop(self) -> None:
        with suppress(EOFError, OSError):
            self._ask("_stop").result(WAIT_LIMIT_S)
        self._end()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def _ask(self, method: str, *arguments: Any, **options: Any) -> Future[Any]:
        answer: Future[Any] = Future()
        number = next(self._numbers)
        self._open[number] = answer
        with self._sending:
            self._connection.send((number, method, arguments, options))
        return answer

    def _read(self) -> None:
        while True:
            try:
                number, result, error = self._connection.recv()
            except (EOFError, OSError):
                break
            answer = self._open.pop(number)
            if error is None:
                answer.set_result(result)
            else:
                answer.set_exception(error)
        for answer in list(self._open.values()):
            answer.set_exception(EOFError("the NameNode's process is gone"))

    def _end(self) -> None:
        self.is_alive = False
        self.process.join()
        self._reader.join()
        self._connection.close()
        self.process.close()


def _serve(
    connection: multiprocessing.connection.Connection[Any, Any], settings: NameNodeSettings
) -> None:
    """The other side of a ProcessPeer."""
    peer = LocalPeer(settings)
    sending = threading.Lock()
    controls = {
        "_ready": lambda: None,
        "_pause_at": peer.pause_at,
        "_resume": peer.resume,
        "_wait_until_paused": peer.wait_until_paused,
    }
    waiters = ThreadPoolExecutor(4)

    def answer(number: int, done: Future[Any]) -> None:
        error = done.exception()
        with sending:
            connection.send((number, None if error else done.result(), error))

    while True:
        try:
            number, method, arguments, options = connection.recv()
        except EOFError:
            break  # the test is gone
        if method == "_stop":
            peer.stop()
            with sending:
                connection.send((number, None, None))
            break
        begin = waiters.submit if method in controls else peer.start
        future = begin(controls.get(method, method), *arguments, **options)
        future.add_done_callback(partial(answer, number))
    waiters.shutdown(wait=False)
    connection.close()
