"""The rules beside the magician, and wrong rules, which must be found to be wrong."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.attributes.exploring import Bounds, Difference, Pair, Tally, explore, wander
from tests.attributes.operations import Operation
from tests.attributes.ruled import Decisions, RuledTree, Stored
from tests.attributes.trees import Node

from cairnfs.namesystem.attribute_rules import Decision


def test_every_sequence_of_operations_is_as_the_magician_has_it() -> None:
    tally = explore(RuledTree(), Bounds(operations=2))
    assert tally.sequences > 3000


def test_random_walks_are_as_the_magician_has_them() -> None:
    assert wander(RuledTree(), 20261115, 20_000).comparisons >= 20_000


class NoCapture(RuledTree):
    def write_moved(self, node: Node[Stored], before: Decisions, parent: Decisions) -> None:
        node.data = node.data._replace(renamed=self.txid)


class CaptureWithOwnTxid(RuledTree):
    def write_moved(self, node: Node[Stored], before: Decisions, parent: Decisions) -> None:
        own = tuple(each._replace(txid=self.txid) if each.txid else each for each in before)
        super().write_moved(node, own, parent)


class NoBarrier(RuledTree):
    def step(self, above: Decisions, data: Stored) -> Decisions:
        return super().step(above, data._replace(renamed=0))


class DroppedTombstones(RuledTree):
    def write(self, node: Node[Stored], name: str, value: str | None) -> None:
        if value is None:
            self._put(node, name, None)
        else:
            super().write(node, name, value)


class RollbackLeavesNoMark(RuledTree):
    def write_restored(self, node: Node[Stored], then: Decisions) -> None:
        super().write_restored(node, then)
        node.data = node.data._replace(restored=0)


class RollbackWithOwnTxid(RuledTree):
    def write_restored(self, node: Node[Stored], then: Decisions) -> None:
        super().write_restored(node, tuple(Decision(self.txid, each.value) for each in then))


WRONG = [
    NoCapture,
    CaptureWithOwnTxid,
    NoBarrier,
    DroppedTombstones,
    RollbackLeavesNoMark,
    RollbackWithOwnTxid,
]


@pytest.mark.parametrize("wrong", WRONG)
def test_random_walks_find_wrong_rules(wrong: Callable[[], RuledTree]) -> None:
    with pytest.raises(Difference, match="expected"):
        wander(wrong(), 1, 50_000)


@pytest.mark.parametrize("wrong", WRONG)
def test_short_sequences_find_wrong_rules(wrong: Callable[[], RuledTree]) -> None:
    with pytest.raises(Difference, match="expected"):
        explore(wrong(), Bounds(operations=3))


def test_an_outcome_that_differs_is_told() -> None:
    class Permissive(RuledTree):
        def delete(self, path: str) -> None:
            pass

    pair = Pair(Permissive(), Tally())
    pair.begin()
    with pytest.raises(Difference, match="the outcome"):
        pair.apply(Operation("delete", ("/nothing",)))
