"""The product as a system to be compared: a NameNode in this process, or a cluster by its client.

Each beginning is a new directory that stands for the root: what an exploration begins with has
never had an attribute.  With `at_root` it is the root itself, which has had some.
"""

from __future__ import annotations

import contextlib
import shutil
from abc import ABC, abstractmethod
from collections.abc import Iterator
from itertools import count

from tests.attributes.operations import Kinds, Values
from tests.model.product import temporary_directory

import cairnfs
from cairnfs.config import Control, FormatSettings, NameNodeSettings
from cairnfs.errors import (
    FileAlreadyExistsException,
    FileNotFoundException,
    InvalidPathException,
    IOException,
)
from cairnfs.namenode.embedded import ClientProtocol, NameNodeThread, make_namespace
from cairnfs.namenode.opening import sqlite_url
from cairnfs.namesystem import directories, listings, xattrs
from cairnfs.namesystem.attribute_rules import AttributeKind
from cairnfs.namesystem.declarations import word_for
from cairnfs.namesystem.inheritance import name_of
from cairnfs.namesystem.paths import FsPath
from cairnfs.namesystem.permissions import Caller
from cairnfs.namesystem.rename import RenameOption
from cairnfs.transaction.calls import operation
from cairnfs.transaction.transaction import Transaction

Found = dict[str, dict[str, bytes]]
"""Attributes by relative path, and by name."""


class Product(ABC):
    """What both have in common: where they begin, and what the rules do not ask for."""

    def __init__(self, *, at_root: bool = False) -> None:
        self._at_root = at_root
        self._tops = count(1)
        self._top = ""
        self._kinds: Kinds = {}
        self._has_snapshots = False
        self._declared: dict[str, AttributeKind] = {}

    # What the file system is asked.

    @abstractmethod
    def declare(self, name: str, kind: str) -> None: ...

    @abstractmethod
    def make_directory(self, path: str) -> None:
        """A new one; to HDFS it would not matter that it is there."""

    @abstractmethod
    def make_file(self, path: str) -> None: ...

    @abstractmethod
    def remove_tree(self, path: str) -> bool: ...

    @abstractmethod
    def move(self, source: str, destination: str, *, overwrite: bool) -> None: ...

    @abstractmethod
    def set_value(self, path: str, name: str, value: bytes) -> None: ...

    @abstractmethod
    def remove_value(self, path: str, name: str) -> None: ...

    @abstractmethod
    def unset_value(self, path: str, name: str) -> None: ...

    @abstractmethod
    def take_snapshot(self, path: str, name: str) -> None: ...

    @abstractmethod
    def drop_snapshot(self, path: str, name: str) -> None: ...

    @abstractmethod
    def snapshots(self) -> list[tuple[str, str]]:
        """All there are: paths, which a roll-back may have changed, and names."""

    @abstractmethod
    def roll_back(self, path: str, name: str) -> None: ...

    @abstractmethod
    def make_clone(self, path: str, name: str, destination: str) -> None: ...

    @abstractmethod
    def attributes_below(self, path: str) -> Found: ...

    # `operations.System`.

    def begin(self, kinds: Kinds) -> None:
        if self._has_snapshots:
            for path, name in self.snapshots():
                self.drop_snapshot(path, name)
            self._has_snapshots = False
        for name, kind in kinds.items():
            if self._declared.get(name, AttributeKind.LOCAL) is not kind:
                self.declare(name, word_for(kind))
                self._declared[name] = kind
        self._kinds = kinds
        if not self._at_root:
            self._top = f"/{next(self._tops)}"
            self.make_directory(self._top)
            return
        for path in self.attributes_below("/"):
            if path.count("/") == 1:
                self.remove_tree(path)
        for name in kinds:
            self.remove("/", name)

    def mkdir(self, path: str) -> None:
        self.make_directory(self._at(path))

    def create(self, path: str) -> None:
        self.make_file(self._at(path))

    def delete(self, path: str) -> None:
        if path == "/":
            raise InvalidPathException(path)
        if not self.remove_tree(self._at(path)):
            raise FileNotFoundException(path)

    def rename(self, source: str, destination: str) -> None:
        self.move(self._at(source), self._at(destination), overwrite=False)

    def rename_over(self, source: str, destination: str) -> None:
        self.move(self._at(source), self._at(destination), overwrite=True)

    def set(self, path: str, name: str, value: str) -> None:
        self.set_value(self._at(path), name, value.encode())

    def remove(self, path: str, name: str) -> None:
        try:
            self.remove_value(self._at(path), name)
        except IOException as error:
            if self._kinds[name] is not AttributeKind.LOCAL or "No matching" not in str(error):
                raise  # of a local one, it is a mistake to HDFS only

    def unset(self, path: str, name: str) -> None:
        if self._kinds[name] is AttributeKind.LOCAL:
            self.remove(path, name)
        else:
            self.unset_value(self._at(path), name)

    def create_snapshot(self, path: str, name: str) -> None:
        self._has_snapshots = True
        self.take_snapshot(self._at(path), name)

    def delete_snapshot(self, path: str, name: str) -> None:
        self.drop_snapshot(self._at(path), name)

    def rollback(self, path: str, name: str) -> None:
        self.roll_back(self._at(path), name)

    def clone(self, path: str, name: str, destination: str) -> None:
        self.make_clone(self._at(path), name, self._at(destination))

    def values(self, path: str, snapshot: str | None = None) -> dict[str, Values]:
        where = self._at(path)
        if snapshot is not None:
            where = f"{where.rstrip('/')}/.snapshot/{snapshot}"
        return {
            relative: tuple(self._text(values.get(name)) for name in self._kinds)
            for relative, values in self.attributes_below(where).items()
        }

    def _at(self, path: str) -> str:
        return (self._top + path).rstrip("/") or "/"

    @staticmethod
    def _text(value: bytes | None) -> str | None:
        return None if value is None else value.decode()


@operation(mutates=False, walks=True)
def show_all(tx: Transaction, caller: Caller, top: FsPath) -> Found:
    """Of everything at and below a path what getXAttrs would say, by one call."""
    found: Found = {}
    waiting = [("", top)]
    while waiting:
        relative, path = waiting.pop()
        seen = xattrs.get_xattrs.function(tx, caller, path)
        found[relative] = {str(name_of(each)): each.value or b"" for each in seen}
        listing = listings.get_listing.function(tx, caller, path, b"", 1000)
        assert listing is not None
        for entry in listing.entries:
            if entry.name:  # of a file, itself
                waiting.append((f"{relative}/{entry.name.decode()}", path.child(entry.name)))
    return found


@operation()
def make_new_directory(tx: Transaction, caller: Caller, path: FsPath) -> None:
    if directories.get_file_info.function(tx, caller, path) is not None:
        raise FileAlreadyExistsException(path.text)
    directories.mkdirs.function(tx, caller, path, 0o755, None, False)


class Embedded(Product):
    """A NameNode in this process; what deletions leave is worked off at once."""

    def __init__(self, namenode: NameNodeThread, *, at_root: bool = False) -> None:
        super().__init__(at_root=at_root)
        self._namenode = namenode
        self.fs: ClientProtocol = namenode.client()

    def declare(self, name: str, kind: str) -> None:
        self.fs.declare_xattr(name, kind)

    def make_directory(self, path: str) -> None:
        self.fs._call(make_new_directory, FsPath.parse(path))

    def make_file(self, path: str) -> None:
        self.fs.create(path, create_parents=False)
        self.fs.complete(path)

    def remove_tree(self, path: str) -> bool:
        return self.fs.delete(path, recursive=True)

    def move(self, source: str, destination: str, *, overwrite: bool) -> None:
        option = RenameOption.OVERWRITE if overwrite else RenameOption.NONE
        self.fs.rename2(source, destination, option)

    def set_value(self, path: str, name: str, value: bytes) -> None:
        self.fs.set_xattr(path, name, value)

    def remove_value(self, path: str, name: str) -> None:
        self.fs.remove_xattr(path, name)

    def unset_value(self, path: str, name: str) -> None:
        self.fs.unset_xattr(path, name)

    def take_snapshot(self, path: str, name: str) -> None:
        self.fs.allow_snapshot(path)
        self.fs.create_snapshot(path, name)

    def drop_snapshot(self, path: str, name: str) -> None:
        self.fs.delete_snapshot(path, name)
        if not self.fs.list_snapshots(path):
            self.fs.disallow_snapshot(path)
        self._namenode.wait(self._namenode.namenode.duties.reclaim_everything())

    def snapshots(self) -> list[tuple[str, str]]:
        return [
            (each.path, snapshot.name.decode())
            for each in self.fs.list_snapshottable()
            for snapshot in self.fs.list_snapshots(each.path)
        ]

    def roll_back(self, path: str, name: str) -> None:
        self.fs.rollback_snapshot(path, name)

    def make_clone(self, path: str, name: str, destination: str) -> None:
        self.fs.clone_snapshot(path, name, destination)

    def attributes_below(self, path: str) -> Found:
        return self.fs._call(show_all, FsPath.parse(path))


@contextlib.contextmanager
def open_embedded(
    url: str = "", control: Control = Control.OPTIMISTIC, *, at_root: bool = False
) -> Iterator[Embedded]:
    """A new namespace, in a file unless a store is given."""
    directory = temporary_directory()
    url = url or sqlite_url(directory / "namespace")
    make_namespace(url, FormatSettings("root"))
    try:
        with NameNodeThread(NameNodeSettings(url, control, duties=False)) as namenode:
            yield Embedded(namenode, at_root=at_root)
    finally:
        shutil.rmtree(directory)


class Client(Product):
    """A cluster, by the messages that the Python client sends."""

    def __init__(self, fs: cairnfs.FileSystem, *, at_root: bool = False) -> None:
        super().__init__(at_root=at_root)
        self._fs = fs

    def declare(self, name: str, kind: str) -> None:
        self._fs.declare_xattr(name, kind)

    def make_directory(self, path: str) -> None:
        if self._fs.exists(path):
            raise FileAlreadyExistsException(path)
        self._fs.mkdirs(path, create_parents=False)

    def make_file(self, path: str) -> None:
        self._fs.create(path, create_parents=False).close()

    def remove_tree(self, path: str) -> bool:
        return self._fs.delete(path, recursive=True)

    def move(self, source: str, destination: str, *, overwrite: bool) -> None:
        self._fs.rename(source, destination, overwrite=overwrite)

    def set_value(self, path: str, name: str, value: bytes) -> None:
        self._fs.set_xattr(path, name, value)

    def remove_value(self, path: str, name: str) -> None:
        self._fs.remove_xattr(path, name)

    def unset_value(self, path: str, name: str) -> None:
        self._fs.unset_xattr(path, name)

    def take_snapshot(self, path: str, name: str) -> None:
        self._fs.allow_snapshot(path)
        self._fs.create_snapshot(path, name)

    def drop_snapshot(self, path: str, name: str) -> None:
        self._fs.delete_snapshot(path, name)

    def snapshots(self) -> list[tuple[str, str]]:
        return [
            (each.status.path, snapshot.status.name)
            for each in self._fs.get_snapshottable_directories()
            for snapshot in self._fs.list_snapshots(each.status.path)
        ]

    def roll_back(self, path: str, name: str) -> None:
        """What it gives up is kept in a snapshot, which nobody here knows of."""
        self._fs.delete_snapshot(path, self._fs.rollback_snapshot(path, name))

    def make_clone(self, path: str, name: str, destination: str) -> None:
        self._fs.clone_snapshot(path, name, destination)

    def attributes_below(self, path: str) -> Found:
        found: Found = {}
        waiting = [""]
        while waiting:
            relative = waiting.pop()
            where = path.rstrip("/") + relative or "/"
            found[relative] = self._fs.get_xattrs(where)
            if self._fs.get_file_status(where).is_directory:
                names = (each.name for each in self._fs.list_status(where))
                waiting += [f"{relative}/{name}" for name in names]
        return found
