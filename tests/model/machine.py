"""The product beside the model as a Hypothesis state machine.

One rule for each operation, so that Hypothesis can shrink what it finds.  Calls
that are made at the same time are the business of `walk`: their outcome is not
a function of the choices, which Hypothesis insists on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, TypeVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule
from tests.model.calls import OPERATIONS, make_call
from tests.model.driver import Pair
from tests.model.product import Product
from tests.model.snapshot_calls import SNAPSHOT_OPERATIONS
from tests.model.steps import Step

T = TypeVar("T")
CHECK_EVERY = 10


class HypothesisChoose:
    """Choices of Hypothesis."""

    def __init__(self, data: st.DataObject) -> None:
        self._data = data

    def among(self, options: Sequence[T]) -> T:
        return self._data.draw(st.sampled_from(options))

    def number(self, low: int, high: int) -> int:
        return self._data.draw(st.integers(low, high))


class ModelMachine(RuleBasedStateMachine):
    """Rules that are not calls; `make_machine` adds those that are."""

    product: ClassVar[Product]
    with_snapshots: ClassVar[bool]

    def __init__(self) -> None:
        super().__init__()
        self.pair = Pair(self.product, with_snapshots=self.with_snapshots)

    @rule(milliseconds=st.sampled_from((1, 1000, 61_000, 3_700_000)))
    def advance(self, milliseconds: int) -> None:
        self.pair.run(Step("advance", (milliseconds,)))

    @rule(namenode=st.integers(0, 1))
    def reclaim(self, namenode: int) -> None:
        self.pair.run(Step("reclaim", namenode=namenode))

    @rule(namenode=st.integers(0, 1))
    def retry(self, namenode: int) -> None:
        self.pair.run(Step("retry", namenode=namenode))

    @rule(namenode=st.integers(0, 1))
    def restart(self, namenode: int) -> None:
        self.pair.run(Step("restart", namenode=namenode))

    def teardown(self) -> None:
        self.pair.check_tree(0)
        self.pair.check_invariants()

    def call(self, operation: str, data: st.DataObject) -> None:
        choose = HypothesisChoose(data)
        namenodes = self.product.configuration.namenodes
        self.pair.run(make_call(choose, self.pair.world(), namenodes, operation))
        if self.pair.steps % CHECK_EVERY == 0:
            self.pair.check_tree(self.pair.steps)


def make_machine(product: Product, *, with_snapshots: bool = False) -> type[ModelMachine]:
    """A machine with a rule for each operation, on this product."""
    body: dict[str, Any] = {"product": product, "with_snapshots": with_snapshots}
    operations = OPERATIONS | SNAPSHOT_OPERATIONS if with_snapshots else OPERATIONS
    for name, weight in operations.items():
        for copy in range(1 if weight < 8 else 2):
            body[f"{name}_{copy}"] = rule(data=st.data())(_rule_of(name))
    return type("Machine", (ModelMachine,), body)


def _rule_of(name: str) -> Any:
    def run(self: ModelMachine, data: st.DataObject) -> None:
        self.call(name, data)

    run.__name__ = name
    return run
