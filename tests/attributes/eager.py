"""The magician: at every operation each inode that it concerns is given its value, at once.

Slow, obvious, and what everybody expects: this is what the rules are compared with.
"""

from __future__ import annotations

from collections.abc import Iterable

from tests.attributes.operations import Values
from tests.attributes.trees import Node, Tree

from cairnfs.namesystem.attribute_rules import AttributeKind


class EagerTree(Tree[Values, Values]):
    """Every inode keeps the values that it has."""

    def outside(self) -> Values:
        return (None,) * len(self.kinds)

    def step(self, above: Values, data: Values) -> Values:
        return data

    def show(self, state: Values) -> Values:
        return state

    def new(self, parent: Values) -> Values:
        inherited = zip(self.kinds.values(), parent, strict=True)
        return tuple(None if kind is AttributeKind.LOCAL else value for kind, value in inherited)

    def write(self, node: Node[Values], name: str, value: str | None) -> None:
        changed = list(self.kinds).index(name)
        for each in self._reached(node, name):
            each.data = (*each.data[:changed], value, *each.data[changed + 1 :])

    def write_unset(self, node: Node[Values], name: str, parent: Values) -> None:
        is_local = self.kinds[name] is AttributeKind.LOCAL
        self.write(node, name, None if is_local else parent[list(self.kinds).index(name)])

    def write_moved(self, node: Node[Values], before: Values, parent: Values) -> None:
        for name, kind in self.kinds.items():
            if kind is AttributeKind.FOLLOWS_PATH:
                self.write(node, name, parent[list(self.kinds).index(name)])

    def write_restored(self, node: Node[Values], then: Values) -> None:
        """The copy has the values of then."""

    def _reached(self, node: Node[Values], name: str) -> Iterable[Node[Values]]:
        return (node,) if self.kinds[name] is AttributeKind.LOCAL else node.walk()
