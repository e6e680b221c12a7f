"""A path as it was written, where it leads, and what is there.

Invariant: messages and listings show a path as the user wrote it: with its scheme if it had
one, from the root or from the home directory.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from cairnfs.cli.connection import Choice, connect
from cairnfs.cli.fs.errors import (
    IS_DIRECTORY,
    IS_NOT_DIRECTORY,
    NOT_FOUND,
    PathError,
    UsageError,
    VerbError,
)
from cairnfs.cli.fs.files import Files
from cairnfs.cli.fs.globs import glob, unescape
from cairnfs.cli.fs.local_files import LocalFiles
from cairnfs.client.addresses import SCHEMES
from cairnfs.client.records import FileStatus

if TYPE_CHECKING:
    from cairnfs.client.filesystem import FileSystem
    from cairnfs.client.namenode import NameNodeUnreachable

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(?=/)")


class Place(NamedTuple):
    """The file system of a path, and how paths of it are written."""

    files: Files
    url: str  # hdfs://host:port, of paths in full
    prefix: str  # what stands before the path as it was written: "", "hdfs://host:port"


class Item:
    """A path and what is there."""

    def __init__(self, place: Place, text: str, path: str, status: FileStatus | None) -> None:
        self.place = place
        self.files = place.files
        self.text = text
        self.path = path
        self.status = status

    def __str__(self) -> str:
        return self.text

    @property
    def exists(self) -> bool:
        return self.status is not None

    @property
    def is_directory(self) -> bool:
        return self.status is not None and self.status.is_directory

    @property
    def name(self) -> str:
        return posixpath.basename(self.path)

    @property
    def qualified(self) -> str:
        """The path in full."""
        return self.place.url + self.path

    @property
    def found(self) -> FileStatus:
        """What is there; an error if there is nothing."""
        if self.status is None:
            raise PathError(self, NOT_FOUND)
        return self.status

    @property
    def remote(self) -> FileSystem:
        """Its file system, for what only clusters can do."""
        from cairnfs.client.filesystem import FileSystem

        if isinstance(self.files, FileSystem):
            return self.files
        raise PathError(self, "is a local file, and this is for files of a cluster")

    @property
    def looks_like_directory(self) -> bool:
        """Whether the text says that it is one."""
        return posixpath.basename(self.text) in ("", ".", "..")

    @property
    def has_parent(self) -> bool:
        """Whether the directory is there in which this is, or would be."""
        path = self.path if self.looks_like_directory else posixpath.dirname(self.path)
        return self.files.get_file_info(path) is not None

    def refresh(self) -> FileStatus:
        """Look again."""
        self.status = self.files.get_file_info(self.path)
        return self.found

    def check_is_file(self) -> FileStatus:
        if self.found.is_directory:
            raise PathError(self, IS_DIRECTORY)
        return self.found

    def check_is_directory(self) -> FileStatus:
        if not self.found.is_directory:
            raise PathError(self, IS_NOT_DIRECTORY)
        return self.found

    def children(self) -> Iterator[Item]:
        """What is in a directory, by name."""
        self.check_is_directory()
        for status in self.files.list_status_iter(self.path):
            yield self._make_child(status.name, status)

    def child(self, name: str, *, is_new: bool = False) -> Item:
        """The entry of this name, there or not; `is_new` if it cannot be there."""
        child = self._make_child(name, None)
        if not is_new:
            child.status = self.files.get_file_info(child.path)
        return child

    def with_suffix(self, suffix: str) -> Item:
        """A neighbour."""
        return Item(self.place, self.text + suffix, self.path + suffix, None)

    def _make_child(self, name: str, status: FileStatus | None) -> Item:
        text = name if self.text == "." else f"{self.text.rstrip('/')}/{name}"
        return Item(self.place, text, posixpath.join(self.path, name), status)


class Paths:
    """Finds the items that texts mean, and keeps the connections to their file systems."""

    def __init__(self, choice: Choice) -> None:
        self._choice = choice
        self._default: Place | None = None
        self._places: dict[str, Place] = {}
        self.local = Place(LocalFiles(), LocalFiles.url, "")
        self._opened: dict[FileSystem, Choice] = {}

    @property
    def default(self) -> Place:
        """The file system of paths without a scheme."""
        if self._default is None:
            self._default = self._open(self._choice, "")
        return self._default

    def expand(self, text: str) -> list[Item]:
        """What matches; of a path without patterns, the path itself, there or not."""
        place, pattern = self._split(text)
        statuses = glob(place.files, pattern)
        if statuses is None:
            return [Item(place, unescape(text), self._absolute(place, unescape(pattern)), None)]
        is_relative = not place.prefix and not pattern.startswith("/")
        write: Callable[[str], str] = (
            (lambda path: posixpath.relpath(path, place.files.home_directory))
            if is_relative
            else (lambda path: place.prefix + path)
        )
        return [Item(place, write(each.path), each.path, each) for each in statuses]

    def find(self, text: str) -> Item:
        """One path, without patterns."""
        place, path = self._split(text)
        absolute = self._absolute(place, path)
        return Item(place, text, absolute, place.files.get_file_info(absolute))

    def find_local(self, text: str) -> Item:
        """A path on this machine."""
        path = text.removeprefix("file://") if text.startswith("file:///") else text
        absolute = self._absolute(self.local, path)
        return Item(self.local, path, absolute, self.local.files.get_file_info(absolute))

    def explain_silence(self, error: NameNodeUnreachable) -> str:
        """What to do about a file system that does not answer; the error names its address."""
        found = [
            choice
            for fs, choice in self._opened.items()
            if fs.url.partition("://")[2].replace(",", ", ") in str(error)
        ]
        return f"{(found or [self._choice])[0].explain_silence()} ({error})"

    def close(self) -> None:
        for opened in self._opened:
            opened.close()

    def _absolute(self, place: Place, path: str) -> str:
        joined = posixpath.normpath(posixpath.join(place.files.home_directory, path))
        return "/" + joined.lstrip("/")

    def _split(self, text: str) -> tuple[Place, str]:
        """Which file system, and which path there."""
        if not text:
            raise UsageError("Can not create a Path from an empty string")
        try:
            text.encode()
        except UnicodeEncodeError:
            raise VerbError(f"{text!a} is not UTF-8, as names have to be") from None
        scheme = _SCHEME.match(text)
        if scheme is None:
            if text.startswith("//") and text.strip("/"):
                path = posixpath.normpath(text.lstrip("/"))
                raise VerbError(f"{text}: a host without a scheme; is /{path} meant?")
            return self.default, text
        name, rest = scheme[1], text[scheme.end() :]
        authority, path = "", rest
        if rest.startswith("//"):
            authority, slash, path = rest[2:].partition("/")
            path = slash + path or "."
        if name == "file":
            return Place(self.local.files, self.local.url, "file:"), path
        if name not in SCHEMES:
            known = ", ".join((*SCHEMES, "file"))
            raise VerbError(f'No FileSystem for scheme "{name}"; there are {known}')
        prefix = f"{name}://{authority}"
        if not authority:
            return Place(self.default.files, self.default.url, prefix), path
        if prefix not in self._places:
            self._places[prefix] = self._place_at(prefix)
        return self._places[prefix], path

    def _place_at(self, prefix: str) -> Place:
        """The file system at a URL; the one that is open already, if it is that."""
        if self._choice.url.partition("://")[2].strip("/") == prefix.partition("://")[2]:
            return Place(self.default.files, self.default.url, prefix)
        return self._open(Choice(prefix, "which a path names: is it the right address?"), prefix)

    def _open(self, choice: Choice, prefix: str) -> Place:
        opened = connect(choice)
        self._opened[opened] = choice
        return Place(opened, opened.url, prefix)
