"""The traces, through the rules and through the magician: both are what everybody expects."""

from __future__ import annotations

from itertools import chain

import pytest
from tests.attributes.eager import EagerTree
from tests.attributes.operations import System, Values
from tests.attributes.ruled import RuledTree
from tests.attributes.traces import FILES, Trace, read_traces, replay
from tests.attributes.trees import Node

TRACES = [
    pytest.param(trace, id=f"{path.stem}-{trace.header['seed']}")
    for path in FILES
    for trace in read_traces(path)
]


@pytest.mark.parametrize("trace", TRACES)
@pytest.mark.parametrize("system", [EagerTree(), RuledTree()], ids=["magician", "rules"])
def test_there_is_no_difference(system: System, trace: Trace) -> None:
    assert replay(system, trace) is None


def test_there_are_as_many_operations_as_files_have_lines() -> None:
    traces = list(chain.from_iterable(read_traces(path) for path in FILES))
    assert sum(len(trace.lines) for trace in traces) == 2350


class ForgetsRenames(EagerTree):
    def write_moved(self, node: Node[Values], before: Values, parent: Values) -> None:
        pass


def test_a_difference_is_told() -> None:
    found = [replay(ForgetsRenames(), trace) for path in FILES for trace in read_traces(path)]
    told = next(each for each in found if each is not None)
    assert "expected" in told
    assert "trace 0, operation" in told
