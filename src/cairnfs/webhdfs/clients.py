"""Clients of the file system, one for each user, kept for their next request."""

from __future__ import annotations

import threading
from dataclasses import dataclass

from cairnfs.client.filesystem import FileSystem, connect

IDLE_MAX = 32  # clients that nobody uses
PATIENCE_S = 20.0  # with NameNodes that do not answer: somebody waits, perhaps for us to end


@dataclass(slots=True, eq=False)
class Client:
    """A client, and for how many requests it is at work."""

    file_system: FileSystem
    key: tuple[str, str | None]
    requests: int = 0


class Clients:
    """Lends clients to threads."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._lock = threading.Lock()
        self._clients: dict[tuple[str, str | None], Client] = {}  # the longest unused first
        self._is_closed = False

    def take(self, user: str, real_user: str | None) -> Client:
        """A client that acts for a user; to be given back."""
        key = (user, real_user)
        with self._lock:
            client = self._clients.pop(key, None)
            if client is None:
                file_system = connect(
                    self._url, user=user, real_user=real_user, patience_s=PATIENCE_S
                )
                client = Client(file_system, key)
            self._clients[key] = client
            client.requests += 1
        return client

    def give_back(self, client: Client) -> None:
        with self._lock:
            client.requests -= 1
            unused = [each for each in self._clients.values() if not each.requests]
            surplus = unused if self._is_closed else unused[: max(0, len(unused) - IDLE_MAX)]
            for each in surplus:
                del self._clients[each.key]
        for each in surplus:
            each.file_system.close()

    def close(self) -> None:
        """Close all that are not at work, and the others when they are given back."""
        with self._lock:
            self._is_closed = True
            unused = [each for each in self._clients.values() if not each.requests]
            for each in unused:
                del self._clients[each.key]
        for each in unused:
            each.file_system.close()
