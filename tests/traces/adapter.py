"""What the replayer needs of a file system, and the walk that all adapters share.

A method raises HdfsError if the file system refuses; then nothing may have changed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple, TypeAlias

from tests.traces.trace import Entries, Listing, content_digest

REPLICATION = 3

Version: TypeAlias = tuple[int, int, int]
"""The id of a file, when it was last changed, and how long it is."""


class Entry(NamedTuple):
    """One name in a directory, or what a path leads to."""

    name: str
    is_directory: bool
    mode: int
    replication: int
    length_bytes: int
    version: Version | None = None  # if the content is always the same with the same one


class Adapter(ABC):
    """A file system that traces are replayed through."""

    @abstractmethod
    def mkdir(self, path: str) -> None: ...

    @abstractmethod
    def create(self, path: str, text: str, overwrite: bool) -> None: ...

    @abstractmethod
    def append(self, path: str, text: str) -> None: ...

    @abstractmethod
    def truncate(self, path: str, length: int) -> None: ...

    @abstractmethod
    def chmod(self, path: str, mode: int) -> None: ...

    @abstractmethod
    def setrep(self, path: str, replication: int) -> None: ...

    @abstractmethod
    def delete(self, path: str, recursive: bool) -> None: ...

    @abstractmethod
    def rename(self, source: str, destination: str, overwrite: bool) -> None: ...

    @abstractmethod
    def allow(self, path: str) -> None: ...

    @abstractmethod
    def disallow(self, path: str) -> None: ...

    @abstractmethod
    def create_snapshot(self, path: str, name: str) -> None: ...

    @abstractmethod
    def delete_snapshot(self, path: str, name: str) -> None: ...

    @abstractmethod
    def rename_snapshot(self, path: str, old: str, new: str) -> None: ...

    @abstractmethod
    def rollback(self, path: str, name: str) -> None: ...

    @abstractmethod
    def diff(self, path: str, old: str, new: str) -> Entries: ...

    @abstractmethod
    def read(self, path: str) -> bytes: ...

    @abstractmethod
    def status(self, path: str) -> Entry:
        """What is at a path; FileNotFoundException if nothing is."""

    @abstractmethod
    def children(self, path: str) -> list[Entry]: ...

    @abstractmethod
    def snapshottable(self) -> dict[str, list[str]]:
        """All directories that may have snapshots, with the names of those they have."""

    def listing(self, top: str, known: dict[Version, str] | None = None) -> Listing:
        """Everything at and below a path; contents whose digests are `known` are not read."""
        listing: Listing = {}
        self._list(listing, top.rstrip("/"), "", self.status(top), {} if known is None else known)
        return listing

    def begin(self) -> None:
        """Remove everything, so that another trace can begin."""
        for path, names in self.snapshottable().items():
            for name in names:
                self.delete_snapshot(path, name)
            self.disallow(path)
        for entry in self.children("/"):
            self.delete(f"/{entry.name}", recursive=True)
        self.chmod("/", 0o755)

    def _list(
        self, listing: Listing, top: str, path: str, entry: Entry, known: dict[Version, str]
    ) -> None:
        mode = f"{entry.mode:o}"
        if not entry.is_directory:
            seen = known.get(entry.version) if entry.version else None
            if seen is None:
                seen = content_digest(self.read(top + path))
            if entry.version:
                known[entry.version] = seen
            listing[path] = ["f", mode, entry.replication, entry.length_bytes, seen]
            return
        listing[path] = ["d", mode, 0, 0, ""]
        for child in self.children((top + path) or "/"):
            self._list(listing, top, f"{path}/{child.name}", child, known)
