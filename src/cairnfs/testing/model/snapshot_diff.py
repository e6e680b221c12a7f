"""What is different between two states of a tree, by the identity of its inodes.

As in HDFS, paths are those of the earlier state; only where something was moved to, is of the
later one.  Below what is new or gone nothing is told.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from cairnfs.testing.model.nodes import Node

Entry: TypeAlias = tuple[str, ...]
"""("M", path), ("+", path), ("-", path) or ("R", path, later path)."""


def diff(before: Node, after: Node) -> list[Entry]:
    """All entries, sorted; the two are the same directory or file at two times."""
    later = {node.id: (path, node) for path, node in _walk(after, "")}
    later[before.id] = ("", after)
    return sorted(_compare(before, "", "", later, {node.id for _, node in _seen(before, later)}))


def turn(entry: Entry) -> Entry:
    """An entry the other way round; paths stay those of the earlier state."""
    kind, *paths = entry
    return ({"+": "-", "-": "+"}.get(kind, kind), *reversed(paths))


def _compare(
    node: Node, path: str, later_path: str, later: dict[int, tuple[str, Node]], earlier: set[int]
) -> Iterator[Entry]:
    """What is told of something that is in both states, and of everything below it."""
    _, now = later[node.id]
    if _describe(node) != _describe(now):
        yield "M", path
    for name, child in now.children.items():
        if child.id not in earlier:
            yield "+", _join(path, name)
    for name, child in node.children.items():
        if child.id not in later:
            yield "-", _join(path, name)
            continue
        new_path, _ = later[child.id]
        if new_path != _join(later_path, name):
            yield "R", _join(path, name), new_path
        yield from _compare(child, _join(path, name), new_path, later, earlier)


def _seen(before: Node, later: dict[int, tuple[str, Node]]) -> Iterator[tuple[str, Node]]:
    """What of the earlier state can be told of: all that is not below something that is gone.

    What was moved out of a directory that is gone by now counts as new where it is, as in HDFS.
    """
    yield "", before
    for child in before.children.values():
        if child.id in later:
            yield from _seen(child, later)


def _describe(node: Node) -> tuple[object, ...]:
    return (
        *(node.mode, node.owner, node.group, node.acl, node.quota, node.replication),
        node.xattrs,
        [(block.data, block.length_bytes) for block in node.blocks if block.length_bytes],
        {name: child.id for name, child in node.children.items()},
    )


def _walk(node: Node, path: str) -> Iterator[tuple[str, Node]]:
    yield path, node
    for name, child in node.children.items():
        yield from _walk(child, _join(path, name))


def _join(path: str, name: bytes) -> str:
    return f"{path}/{name.decode()}" if path else name.decode()
