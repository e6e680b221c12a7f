"""A tree of names in memory, with snapshots as copies; what inodes have is for others to say.

Both sides of the comparison stand on it: they differ in what an inode keeps, in what an
operation does to that, and in how a value is found.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Generic, TypeVar

from tests.attributes.operations import Kinds, Values

from cairnfs.errors import (
    FileAlreadyExistsException,
    FileNotFoundException,
    InvalidPathException,
    ParentNotDirectoryException,
    PathIsNotEmptyDirectoryException,
    SnapshotException,
)

Data = TypeVar("Data")  # what an inode keeps
State = TypeVar("State")  # what is known of an inode after the way to it


@dataclass(eq=False)
class Node(Generic[Data]):
    """An inode; what it keeps is replaced, never changed."""

    id: int
    is_directory: bool
    data: Data
    children: dict[str, Node[Data]] = field(default_factory=dict)

    def walk(self) -> Iterator[Node[Data]]:
        yield self
        for child in self.children.values():
            yield from child.walk()

    def copy(self) -> Node[Data]:
        children = {name: child.copy() for name, child in self.children.items()}
        return Node(self.id, self.is_directory, self.data, children)


@dataclass(frozen=True)
class Snapshot(Generic[Data, State]):
    """A copy of a directory, and what came into it from above."""

    top: Node[Data]
    entering: State


class Tree(ABC, Generic[Data, State]):
    """All of `System` but what concerns values."""

    kinds: Kinds
    root: Node[Data]
    snapshots: dict[int, dict[str, Snapshot[Data, State]]]  # by inode and name
    txid: int

    # What inodes have.

    @abstractmethod
    def outside(self) -> State:
        """What comes into the root."""

    @abstractmethod
    def step(self, above: State, data: Data) -> State: ...

    @abstractmethod
    def show(self, state: State) -> Values: ...

    @abstractmethod
    def new(self, parent: State) -> Data: ...

    @abstractmethod
    def write(self, node: Node[Data], name: str, value: str | None) -> None: ...

    @abstractmethod
    def write_unset(self, node: Node[Data], name: str, parent: State) -> None: ...

    @abstractmethod
    def write_moved(self, node: Node[Data], before: State, parent: State) -> None:
        """Of what was moved, or made of a snapshot: what it was before, and where it is now."""

    @abstractmethod
    def write_restored(self, node: Node[Data], then: State) -> None: ...

    # Operations.

    def begin(self, kinds: Kinds) -> None:
        self.kinds = kinds
        self.txid = 0
        self.snapshots = {}
        self._ids = count()
        self.root = Node(next(self._ids), True, self.new(self.outside()))

    def mkdir(self, path: str) -> None:
        self._create(path, is_directory=True)

    def create(self, path: str) -> None:
        self._create(path, is_directory=False)

    def delete(self, path: str) -> None:
        parent, name = self._directory_of(path)
        node = self._existing(path)[-1]
        self._check_without_snapshots(node, path)
        del parent[-1].children[name]

    def rename(self, source: str, destination: str) -> None:
        if self._find(destination) is not None:
            raise FileAlreadyExistsException(destination)
        self._move(source, destination)

    def rename_over(self, source: str, destination: str) -> None:
        found = self._find(destination)
        if found is not None:
            moved, target = self._existing(source)[-1], found[-1]
            if moved is target or moved.is_directory != target.is_directory:
                raise FileAlreadyExistsException(destination)
            if target.children:
                raise PathIsNotEmptyDirectoryException(destination)
            self._check_without_snapshots(target, destination)
        self._move(source, destination)

    def set(self, path: str, name: str, value: str) -> None:
        node = self._existing(path)[-1]
        self.txid += 1
        self.write(node, name, value)

    def remove(self, path: str, name: str) -> None:
        node = self._existing(path)[-1]
        self.txid += 1
        self.write(node, name, None)

    def unset(self, path: str, name: str) -> None:
        way = self._existing(path)
        self.txid += 1
        self.write_unset(way[-1], name, self._state(way[:-1]))

    def create_snapshot(self, path: str, name: str) -> None:
        way = self._existing(path)
        taken = self.snapshots.setdefault(way[-1].id, {})
        if name in taken:
            raise SnapshotException(name)
        self.txid += 1
        taken[name] = Snapshot(way[-1].copy(), self._state(way[:-1]))

    def delete_snapshot(self, path: str, name: str) -> None:
        node = self._existing(path)[-1]
        self._snapshot(node, name)
        self.txid += 1
        del self.snapshots[node.id][name]
        if not self.snapshots[node.id]:
            del self.snapshots[node.id]

    def rollback(self, path: str, name: str) -> None:
        way = self._existing(path)
        node = way[-1]
        snapshot = self._snapshot(node, name)
        given_up = {each.id for each in node.walk()}
        brought_back = {each.id for each in snapshot.top.walk()}
        if (given_up - brought_back) & self.snapshots.keys():
            raise SnapshotException(f"{path}: snapshots below would be removed")
        self.txid += 1
        elsewhere = {each.id for each in self.root.walk()} - given_up
        copy = self._copy(snapshot, elsewhere)
        self.write_restored(copy, self.step(snapshot.entering, copy.data))
        node.data, node.children = copy.data, copy.children

    def clone(self, path: str, name: str, destination: str) -> None:
        snapshot = self._snapshot(self._existing(path)[-1], name)
        if self._find(destination) is not None:
            raise FileAlreadyExistsException(destination)
        parent, last = self._directory_of(destination)
        self.txid += 1
        copy = self._copy(snapshot, {each.id for each in snapshot.top.walk()})
        self.write_moved(copy, self.step(snapshot.entering, copy.data), self._state(parent))
        parent[-1].children[last] = copy

    # Looking.

    def values(self, path: str, snapshot: str | None = None) -> dict[str, Values]:
        way = self._existing(path)
        top, above = way[-1], self.outside()
        if snapshot is not None:
            taken = self._snapshot(top, snapshot)
            top, above = taken.top, taken.entering
        else:
            above = self._state(way[:-1])
        found: dict[str, Values] = {}
        self._collect(found, "", top, above)
        return found

    def paths(self) -> dict[str, Node[Data]]:
        """Everything there is."""
        found: dict[str, Node[Data]] = {"/": self.root}
        waiting = [("", self.root)]
        while waiting:
            base, node = waiting.pop()
            for name, child in node.children.items():
                found[f"{base}/{name}"] = child
                waiting.append((f"{base}/{name}", child))
        return found

    def _collect(self, found: dict[str, Values], path: str, node: Node[Data], above: State) -> None:
        state = self.step(above, node.data)
        found[path] = self.show(state)
        for name, child in node.children.items():
            self._collect(found, f"{path}/{name}", child, state)

    def _create(self, path: str, *, is_directory: bool) -> None:
        if self._find(path) is not None:
            raise FileAlreadyExistsException(path)
        parent, name = self._directory_of(path)
        self.txid += 1
        data = self.new(self._state(parent))
        parent[-1].children[name] = Node(next(self._ids), is_directory, data)

    def _move(self, source: str, destination: str) -> None:
        way = self._existing(source)
        self._check_without_snapshots(way[-1], source)
        if f"{destination}/".startswith(f"{source.rstrip('/')}/"):
            raise InvalidPathException(f"{destination} is at or below {source}")
        parent, name = self._directory_of(destination)
        self.txid += 1
        self.write_moved(way[-1], self._state(way), self._state(parent))
        del way[-2].children[source.rpartition("/")[2]]
        parent[-1].children[name] = way[-1]

    def _copy(self, snapshot: Snapshot[Data, State], used: Collection[int]) -> Node[Data]:
        """What a snapshot shows; what is also elsewhere is another inode here."""
        copy = snapshot.top.copy()
        for each in copy.walk():
            if each.id in used:
                each.id = next(self._ids)
        return copy

    def _find(self, path: str) -> list[Node[Data]] | None:
        """The inodes from the root to a path."""
        way = [self.root]
        for name in path.split("/"):
            if name:
                child = way[-1].children.get(name)
                if child is None:
                    return None
                way.append(child)
        return way

    def _existing(self, path: str) -> list[Node[Data]]:
        way = self._find(path)
        if way is None:
            raise FileNotFoundException(path)
        return way

    def _directory_of(self, path: str) -> tuple[list[Node[Data]], str]:
        """The way to the directory that something is or will be in, and its name there."""
        parent, _, name = path.rpartition("/")
        if not name:
            raise InvalidPathException(path)
        way = self._existing(parent)
        if not way[-1].is_directory:
            raise ParentNotDirectoryException(parent)
        return way, name

    def _state(self, way: list[Node[Data]]) -> State:
        state = self.outside()
        for node in way:
            state = self.step(state, node.data)
        return state

    def _snapshot(self, node: Node[Data], name: str) -> Snapshot[Data, State]:
        try:
            return self.snapshots[node.id][name]
        except KeyError:
            raise SnapshotException(name) from None

    def _check_without_snapshots(self, node: Node[Data], path: str) -> None:
        if any(each.id in self.snapshots for each in node.walk()):
            raise SnapshotException(f"{path} has snapshots")
