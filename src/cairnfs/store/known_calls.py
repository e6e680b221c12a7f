"""Which calls have a reply already, known without a look into a table.

Invariant: `KnownCalls` knows each of a client's calls that has a reply and a number above a
floor; so whatever else is above the floor has none, and nobody has to look.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

CLIENTS_MAX = 10_000  # some of whose calls are known
KNOWN_MAX = 200_000  # calls of all of them
KNOWN_OF_CLIENT_MAX = 1024
_BEFORE_ALL: Final = -(2**63)  # no number of a call is smaller


class KnownCalls:
    """The last calls of each client that have a reply, so many at most.

    The threads of a Hadoop client number their calls together: these arrive nearly in order.
    """

    def __init__(self, find_last: Callable[[bytes], Iterable[int]]) -> None:
        """`find_last` tells what the last call may be, of what is stored wherever it is."""
        self._find_last = find_last
        self._clients: dict[bytes, _Client] = {}
        self._count = 0

    def are_new(self, client_id: bytes, calls: Sequence[int]) -> bool:
        """Whether none of these calls, in ascending order, has a reply, as far as is known."""
        client = self._clients.get(client_id) or self._add(client_id)
        return calls[0] > client.floor and client.calls.isdisjoint(calls)

    def note(self, client_id: bytes, calls: Sequence[int]) -> None:
        """Replies to these calls are stored."""
        client = self._clients.get(client_id)
        if client is None:
            return
        self._count -= len(client.calls)
        client.calls.update(calls)
        if len(client.calls) > KNOWN_OF_CLIENT_MAX:
            client.forget_older_half()
        self._count += len(client.calls)
        if self._count > KNOWN_MAX:
            self._forget_all()

    def _add(self, client_id: bytes) -> _Client:
        """Begin to know a client."""
        if len(self._clients) >= CLIENTS_MAX:
            self._forget_all()
        client = _Client(max(self._find_last(client_id), default=_BEFORE_ALL))
        self._clients[client_id] = client
        return client

    def _forget_all(self) -> None:
        self._clients.clear()
        self._count = 0


class _Client:
    __slots__ = ("calls", "floor")

    def __init__(self, floor: int) -> None:
        self.floor = floor
        self.calls: set[int] = set()  # some of them below the floor, maybe

    def forget_older_half(self) -> None:
        calls = sorted(self.calls)
        half = len(calls) // 2
        self.floor = max(self.floor, calls[half - 1])
        self.calls = set(calls[half:])
