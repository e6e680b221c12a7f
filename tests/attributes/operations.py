"""What is asked of a file system with attributes, to be compared with another one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol, TypeAlias

from cairnfs.errors import HdfsError
from cairnfs.namesystem.attribute_rules import AttributeKind

Kinds: TypeAlias = Mapping[str, AttributeKind]
Values: TypeAlias = tuple[str | None, ...]
"""Of one inode: of each attribute, in the order in which they were declared."""


class System(Protocol):
    """A file system with attributes.

    A method raises HdfsError if it is refused; then nothing may have changed.  What has
    snapshots, at or below it, is neither moved nor deleted.  A roll-back leaves no snapshot.
    """

    def begin(self, kinds: Kinds) -> None:
        """Have nothing but the root, and these attributes."""

    def mkdir(self, path: str) -> None: ...

    def create(self, path: str) -> None: ...

    def delete(self, path: str) -> None: ...

    def rename(self, source: str, destination: str) -> None: ...

    def rename_over(self, source: str, destination: str) -> None: ...

    def set(self, path: str, name: str, value: str) -> None: ...

    def remove(self, path: str, name: str) -> None: ...

    def unset(self, path: str, name: str) -> None: ...

    def create_snapshot(self, path: str, name: str) -> None: ...

    def delete_snapshot(self, path: str, name: str) -> None: ...

    def rollback(self, path: str, name: str) -> None: ...

    def clone(self, path: str, name: str, destination: str) -> None: ...

    def values(self, path: str, snapshot: str | None = None) -> dict[str, Values]:
        """Of everything at and below a path, now or in one of its snapshots.

        By path relative to it: "" is itself, others begin with a slash.
        """


class Operation(NamedTuple):
    """One call of a system."""

    name: str
    arguments: tuple[str, ...]

    def apply(self, system: System) -> HdfsError | None:
        """The error if it was refused."""
        try:
            getattr(system, self.name)(*self.arguments)
        except HdfsError as error:
            return error
        return None

    def __str__(self) -> str:
        return f"{self.name}({', '.join(self.arguments)})"
