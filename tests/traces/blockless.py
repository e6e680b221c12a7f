"""Traces through what has no DataNodes: the model, and a NameNode in this process.

The bytes of each block are kept here.  A block that grows in place, although a snapshot needs
what it held before, shows: its bytes are then not what the snapshot had.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, NamedTuple

import msgspec
from tests.model.comparison import describe_difference
from tests.traces.adapter import REPLICATION, Adapter, Entry
from tests.traces.trace import Entries

from cairnfs.clock import ManualClock
from cairnfs.errors import FileAlreadyExistsException, FileNotFoundException
from cairnfs.namenode.embedded import ClientProtocol
from cairnfs.namesystem.rename import RenameOption
from cairnfs.testing.model import ModelBlock, ModelFileSystem, User, existing_file


class BlockPart(NamedTuple):
    """A block of a file, as far as the file knows of it."""

    id: int
    length_bytes: int


class BlocklessAdapter(Adapter):
    """Calls of ClientProtocol by name; bytes by block."""

    def __init__(self) -> None:
        self._data: dict[int, bytes] = {}

    @abstractmethod
    def call(self, name: str, *arguments: Any, **options: Any) -> Any: ...

    @abstractmethod
    def blocks(self, path: str) -> list[BlockPart]: ...

    @abstractmethod
    def write_block(self, path: str, last: BlockPart | None, more_bytes: int) -> None:
        """Make the open file longer, by its last block if it has one, and close it."""

    def mkdir(self, path: str) -> None:
        if self.call("get_file_info", path) is not None:
            raise FileAlreadyExistsException(path)  # to HDFS it would not matter
        self.call("mkdirs", path, 0o755, create_parents=False)

    def create(self, path: str, text: str, overwrite: bool) -> None:
        options = {"overwrite": overwrite, "create_parents": False, "replication": REPLICATION}
        self.call("create", path, 0o644, **options)
        self._write(path, b"", text)

    def append(self, path: str, text: str) -> None:
        before = self.read(path)
        self.call("append", path)
        self._write(path, before, text)

    def truncate(self, path: str, length: int) -> None:
        content = self.read(path)
        self.call("truncate", path, length)
        self._keep(path, content[:length])

    def chmod(self, path: str, mode: int) -> None:
        self.call("set_permission", path, mode)

    def setrep(self, path: str, replication: int) -> None:
        if not self.call("set_replication", path, replication):
            raise FileNotFoundException(path)

    def delete(self, path: str, recursive: bool) -> None:
        if not self.call("delete", path, recursive=recursive):
            raise FileNotFoundException(path)

    def rename(self, source: str, destination: str, overwrite: bool) -> None:
        option = RenameOption.OVERWRITE if overwrite else RenameOption.NONE
        self.call("rename2", source, destination, option)

    def allow(self, path: str) -> None:
        self.call("allow_snapshot", path)

    def disallow(self, path: str) -> None:
        self.call("disallow_snapshot", path)

    def create_snapshot(self, path: str, name: str) -> None:
        self.call("create_snapshots", (path,), name)

    def delete_snapshot(self, path: str, name: str) -> None:
        self.call("delete_snapshot", path, name)

    def rename_snapshot(self, path: str, old: str, new: str) -> None:
        self.call("rename_snapshot", path, old, new)

    def rollback(self, path: str, name: str) -> None:
        self.call("rollback_snapshot", path, name)

    def read(self, path: str) -> bytes:
        return b"".join(self._data[part.id][: part.length_bytes] for part in self.blocks(path))

    def status(self, path: str) -> Entry:
        status = self.call("get_file_info", path)
        if status is None:
            raise FileNotFoundException(path)
        return _entry(status)

    def _write(self, path: str, before: bytes, text: str) -> None:
        """Close a file that was opened, with something more in it."""
        blocks = self.blocks(path)
        last = blocks[-1] if blocks else None
        if text:
            self.write_block(path, last, len(text.encode()))
        else:
            self.call("complete", path, None)
        self._keep(path, before + text.encode())

    def _keep(self, path: str, content: bytes) -> None:
        position = 0
        for part in self.blocks(path):
            held = content[position : position + part.length_bytes]
            if not self._data.get(part.id, b"").startswith(held):  # else it was cut, if at all
                self._data[part.id] = held
            position += part.length_bytes


class ModelAdapter(BlocklessAdapter):
    """The plain-dict file system of the model tests."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = ManualClock()
        self._user = User("hdfs", frozenset({"supergroup"}), is_superuser=True)
        self.model = ModelFileSystem(self.clock, "hdfs")

    def begin(self) -> None:
        self.__init__()  # type: ignore[misc]

    def call(self, name: str, *arguments: Any, **options: Any) -> Any:
        self.clock.advance(1)
        return self.model.call(self._user, name, *arguments, **options)

    def blocks(self, path: str) -> list[BlockPart]:
        """By their data: blocks that were cut or copied begin with the same bytes."""
        return [BlockPart(each.data, each.length_bytes) for each in self._blocks(path)]

    def write_block(self, path: str, last: BlockPart | None, more_bytes: int) -> None:
        if last is None:
            self.call("add_block", path)
        block = self._blocks(path)[-1]
        self.call("complete", path, ModelBlock(block.id, block.length_bytes + more_bytes))

    def _blocks(self, path: str) -> list[ModelBlock]:
        return existing_file(self.model.find(self._user, path)).blocks

    def children(self, path: str) -> list[Entry]:
        entries, _ = self.call("get_listing", path, b"", 100_000)
        return [_entry(status) for status in entries]

    def diff(self, path: str, old: str, new: str) -> Entries:
        return set(self.call("snapshot_diff", path, old, new))

    def snapshottable(self) -> dict[str, list[str]]:
        paths = self.call("list_snapshottable")
        return {path: self.call("list_snapshots", path) for path in paths}


class EmbeddedAdapter(BlocklessAdapter):
    """A NameNode in this process."""

    def __init__(self, client: ClientProtocol) -> None:
        super().__init__()
        self._client = client

    def call(self, name: str, *arguments: Any, **options: Any) -> Any:
        return getattr(self._client, name)(*arguments, **options)

    def blocks(self, path: str) -> list[BlockPart]:
        located = self._client.get_block_locations(path)
        return [BlockPart(each.block.id, each.block.length_bytes) for each in located.blocks]

    def write_block(self, path: str, last: BlockPart | None, more_bytes: int) -> None:
        block = self._client.get_block_locations(path).blocks[-1].block if last else None
        if block is None:
            block = self._client.add_block(path).block
        longer = msgspec.structs.replace(block, length_bytes=block.length_bytes + more_bytes)
        self._client.complete(path, longer)

    def children(self, path: str) -> list[Entry]:
        listing = self._client.get_listing(path, b"", 100_000)
        if listing is None:
            raise FileNotFoundException(path)
        return [_entry(status) for status in listing.entries]

    def diff(self, path: str, old: str, new: str) -> Entries:
        return {describe_difference(entry) for entry in self.call("snapshot_diff", path, old, new)}

    def snapshottable(self) -> dict[str, list[str]]:
        paths = [each.path for each in self.call("list_snapshottable")]
        return {
            path: [each.name.decode() for each in self.call("list_snapshots", path)]
            for path in paths
        }


def _entry(status: Any) -> Entry:
    return Entry(
        status.name.decode(),
        status.kind.name == "DIRECTORY",
        status.mode,
        status.replication,
        status.length_bytes,
    )
