"""What the model is made of: users, blocks, nodes, and what is found along a path."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from cairnfs.namesystem.answers import FileStatus
from cairnfs.namesystem.inodes import AclEntry, InodeId, Kind, Quota


@dataclass(frozen=True)
class User:
    """Who calls, and the name of the client program that holds the leases."""

    name: str
    groups: frozenset[str]
    is_superuser: bool = False

    @property
    def holder(self) -> str:
        return f"client-of-{self.name}"


@dataclass
class ModelBlock:
    """One block of a file."""

    id: int
    length_bytes: int = 0  # of one that is open: what is known of it
    is_open: bool = True
    is_flushed: bool = False
    data: int = 0  # whose bytes it begins with; blocks that were cut or copied share them


@dataclass
class Node:
    """A file, a directory or a link, with everything below it."""

    id: int
    kind: Kind
    mode: int
    owner: str
    group: str
    mtime_ms: int
    atime_ms: int
    acl: tuple[AclEntry, ...] | None = None
    quota: Quota | None = None
    children: dict[bytes, Node] = field(default_factory=dict)
    replication: int = 0
    block_size_bytes: int = 0
    blocks: list[ModelBlock] = field(default_factory=list)
    holder: str | None = None  # who writes it
    granted_ms: int = 0
    target: str | None = None
    is_snapshottable: bool = False
    snapshots: dict[str, Node] = field(default_factory=dict)  # whole trees, never changed
    xattrs: dict[str, bytes] = field(default_factory=dict)  # never changed, but replaced

    @property
    def is_directory(self) -> bool:
        return self.kind is Kind.DIRECTORY

    @property
    def is_file(self) -> bool:
        return self.kind is Kind.FILE

    @property
    def is_symlink(self) -> bool:
        return self.kind is Kind.SYMLINK

    @property
    def length_bytes(self) -> int:
        return sum(block.length_bytes for block in self.blocks if not block.is_open)

    @property
    def visible_bytes(self) -> int:
        """With what is known of the open block."""
        return sum(block.length_bytes for block in self.blocks)

    @property
    def space_bytes(self) -> int:
        """What a file takes on all replicas; an open block counts in full."""
        taken = (self.block_size_bytes if b.is_open else b.length_bytes for b in self.blocks)
        return sum(taken) * self.replication

    def walk(self) -> Iterator[Node]:
        """This node and everything below it."""
        yield self
        for child in self.children.values():
            yield from child.walk()

    def copy(self) -> Node:
        return replace(
            self,
            children={name: child.copy() for name, child in self.children.items()},
            blocks=[replace(block) for block in self.blocks],
            snapshots=dict(self.snapshots),
        )

    def close(self) -> None:
        """End a file that was being written with what was known of its open block."""
        self.holder = None
        self.blocks = [
            replace(block, is_open=False, is_flushed=False)
            for block in self.blocks
            if block.length_bytes or not block.is_open
        ]

    def frozen(self) -> Node:
        """A copy of everything, for a snapshot; it has no snapshots of its own."""
        frozen = self.copy()
        for node in frozen.walk():
            node.snapshots = {}
        return frozen


@dataclass(frozen=True)
class Usage:
    """What a subtree counts for, by walking it."""

    inodes: int
    space_bytes: int

    @staticmethod
    def of(node: Node) -> Usage:
        below = list(node.walk())
        return Usage(len(below), sum(each.space_bytes for each in below))


@dataclass(frozen=True)
class Found:
    """What there is along a path: the nodes from the root on, then names without one."""

    names: tuple[bytes, ...]
    nodes: list[Node]
    in_snapshot: bool = False  # at or below .snapshot

    @property
    def missing(self) -> tuple[bytes, ...]:
        return self.names[len(self.nodes) - 1 :]

    @property
    def target(self) -> Node | None:
        return None if self.missing else self.nodes[-1]

    @property
    def above(self) -> list[Node]:
        """The nodes there are above the last name."""
        return self.nodes if self.missing else self.nodes[:-1]

    @property
    def parent(self) -> Node | None:
        """The directory of the last name, if there is one."""
        return self.nodes[-2 + len(self.missing)] if len(self.missing) < 2 and self.names else None

    @property
    def nearest(self) -> Node:
        """The lowest node above the last name; of the root, itself."""
        return self.above[-1] if self.above else self.nodes[0]

    @property
    def text(self) -> str:
        return "/" + b"/".join(self.names).decode()


def walk_with_names(
    node: Node, names: tuple[bytes, ...]
) -> Iterator[tuple[tuple[bytes, ...], Node]]:
    yield names, node
    for name, child in node.children.items():
        yield from walk_with_names(child, (*names, name))


def status_of(node: Node, name: bytes = b"") -> FileStatus:
    return FileStatus(
        node.kind,
        name,
        node.visible_bytes,
        node.mode,
        node.owner,
        node.group,
        node.mtime_ms,
        node.atime_ms,
        node.target,
        node.replication,
        node.block_size_bytes,
        InodeId(node.id),
        len(node.children),
        node.acl is not None,
        node.holder is not None,
    )
