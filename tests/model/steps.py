"""Steps in a small universe, so that they get in each other's way.

A step is plain data: it can be printed, replayed and left out.  What it says
about open files and blocks it says by reference to the steps before it, so
that it still means something when some of those are left out.

Whoever chooses is given as `Choose`: a seeded generator, or Hypothesis.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from cairnfs.testing.model import User

T = TypeVar("T")
SUPERUSER = "hdfs"
USERS = {
    "hdfs": User("hdfs", frozenset({"supergroup"}), is_superuser=True),
    "alice": User("alice", frozenset({"staff"})),
    "bob": User("bob", frozenset({"staff", "dev"})),
    "carol": User("carol", frozenset({"guests"})),
}
NAMES = ("a", "b", "c")
ODD_NAMES = ("ü€𐍈", "x" * 255, "é" * 128, ".snapshot", "a:b", ".a", "...", "Z")
ODD_PATHS = (
    "",
    "a",
    "/a/./b",
    "/a/../b",
    "/a\0b",
    "//a//b/",
    "/.reserved",
    "/\ud800",
    "/.reserved/b",
)
MODES = (0o755, 0o777, 0o1777, 0o700, 0o750, 0o000, 0o070)
MB = 1024 * 1024
BLOCK_SIZES = (MB, MB, 2 * MB)


class Choose(Protocol):
    """Makes every choice."""

    def among(self, options: Sequence[T]) -> T: ...

    def number(self, low: int, high: int) -> int: ...


class RandomChoose:
    """Choices of a seeded generator."""

    def __init__(self, generator: random.Random) -> None:
        self._generator = generator

    def among(self, options: Sequence[T]) -> T:
        return self._generator.choice(options)

    def number(self, low: int, high: int) -> int:
        return self._generator.randint(low, high)


@dataclass(frozen=True)
class FileRef:
    """The file that was opened so many creations ago."""

    back: int


@dataclass(frozen=True)
class BlockRef:
    """A block of such a file, counted from its end, reported with a length."""

    back: int
    from_end: int
    length_bytes: int


@dataclass(frozen=True)
class InodePath:
    """/.reserved/.inodes/ID of such a file, and something below."""

    back: int
    below: str


@dataclass(frozen=True)
class PathOf:
    """The path by which such a file was created."""

    back: int


@dataclass(frozen=True)
class WriterOf:
    """The user who created such a file."""

    back: int


@dataclass(frozen=True)
class Step:
    """One call, or one thing done to the NameNodes."""

    operation: str
    arguments: tuple[Any, ...] = ()
    options: tuple[tuple[str, Any], ...] = ()
    user: str | WriterOf = SUPERUSER
    namenode: int = 0

    def __str__(self) -> str:
        parts = [repr(each) for each in self.arguments]
        parts += [f"{name}={value!r}" for name, value in self.options]
        where = f" @{self.namenode}" if self.namenode else ""
        return f"{self.user}: {self.operation}({', '.join(parts)}){where}"


@dataclass(frozen=True)
class Batch:
    """Calls that are made at the same time."""

    steps: tuple[Step, ...]
    before: tuple[Step, ...] = ()  # made one after the other, first
    slow: bool = False  # on a store that takes its time

    def __str__(self) -> str:
        first = "".join(f"{step}; " for step in self.before)
        return first + " || ".join(map(str, self.steps))


@dataclass
class World:
    """What the chooser may know of the state, to choose what matters."""

    paths: list[str] = field(default_factory=lambda: ["/"])
    usage: dict[str, tuple[int, int]] = field(default_factory=dict)  # inodes, space of directories
    scenes: tuple[Any, ...] = ()  # that batches are to play; all if none is named
    with_snapshots: bool = False
    snapshottable: list[str] = field(default_factory=list)
    snapshots: list[tuple[str, str]] = field(default_factory=list)  # of what, and their names
    in_snapshots: list[str] = field(default_factory=list)  # paths
