"""The rules of `attribute_rules`, on a tree in memory: one inode is written by an operation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

from tests.attributes.operations import Values
from tests.attributes.trees import Node, Tree

from cairnfs.namesystem.attribute_rules import (
    UNDECIDED,
    AttributeKind,
    Decision,
    Step,
    row_after_move,
    row_after_remove,
    row_after_rollback,
    row_after_unset,
    take_step,
)

Decisions: TypeAlias = tuple[Decision, ...]


class Stored(NamedTuple):
    """What an inode keeps."""

    rows: tuple[Decision | None, ...]
    renamed: int = 0
    restored: int = 0


class RuledTree(Tree[Stored, Decisions]):
    """Every inode keeps what the rules say, and values are resolved."""

    def outside(self) -> Decisions:
        return (UNDECIDED,) * len(self.kinds)

    def step(self, above: Decisions, data: Stored) -> Decisions:
        return tuple(
            take_step(kind, entering, Step(data.renamed, data.restored, row))
            for kind, entering, row in zip(self.kinds.values(), above, data.rows, strict=True)
        )

    def show(self, state: Decisions) -> Values:
        return tuple(None if each.value is None else each.value.decode() for each in state)

    def new(self, parent: Decisions) -> Stored:
        return Stored((None,) * len(self.kinds))

    def write(self, node: Node[Stored], name: str, value: str | None) -> None:
        if value is None:
            row = row_after_remove(self.kinds[name], self.txid)
        else:
            row = Decision(self.txid, value.encode())
        self._put(node, name, row)

    def write_unset(self, node: Node[Stored], name: str, parent: Decisions) -> None:
        above = parent[list(self.kinds).index(name)]
        self._put(node, name, row_after_unset(self.kinds[name], above, self.txid))

    def write_moved(self, node: Node[Stored], before: Decisions, parent: Decisions) -> None:
        rows = tuple(
            row_after_move(kind, row, decided)
            for kind, row, decided in zip(self._kinds(), node.data.rows, before, strict=True)
        )
        node.data = node.data._replace(rows=rows, renamed=self.txid)

    def write_restored(self, node: Node[Stored], then: Decisions) -> None:
        rows = tuple(row_after_rollback(decided) for decided in then)
        node.data = node.data._replace(rows=rows, restored=self.txid)

    def _kinds(self) -> Iterator[AttributeKind]:
        return iter(self.kinds.values())

    def _put(self, node: Node[Stored], name: str, row: Decision | None) -> None:
        changed = list(self.kinds).index(name)
        rows = node.data.rows
        node.data = node.data._replace(rows=(*rows[:changed], row, *rows[changed + 1 :]))
