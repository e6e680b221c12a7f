"""The product beside the magician: sequences, walks, traces; and wrong rules, to be found."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.attributes.exploring import SHAPES, Bounds, Difference, explore, wander
from tests.attributes.product import Client, Embedded, open_embedded
from tests.attributes.traces import FILES, Trace, read_traces, replay

import cairnfs
from cairnfs.config import Control
from cairnfs.namesystem import inheritance, xattrs
from cairnfs.namesystem.attribute_rules import AttributeKind, Decision, Step
from cairnfs.namesystem.inodes import OWN_TXID, Inode
from cairnfs.namesystem.lookup import Lookup
from cairnfs.testing.cluster import Cluster
from cairnfs.transaction.transaction import Transaction
from cairnfs.xattr_text import XAttrName

TRACES = [trace for path in FILES for trace in read_traces(path)]
PART_OF_THEM = [Trace(each.header, each.lines[:50]) for each in (TRACES[0], TRACES[-1])]


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest) -> str:
    """A store of its own; "" is a file."""
    return "" if request.param == "sqlite" else str(request.getfixturevalue("postgres_dsn"))


@pytest.fixture
def system() -> Iterator[Embedded]:
    with open_embedded() as opened:
        yield opened


# Every sequence.


@pytest.mark.parametrize("shape", [(), *SHAPES], ids=lambda shape: " ".join(shape) or "nothing")
def test_every_sequence_is_as_the_magician_has_it(system: Embedded, shape: tuple[str, ...]) -> None:
    assert explore(system, Bounds(operations=2), shapes=[shape]).sequences > 20


@pytest.mark.parametrize("control", list(Control))
def test_every_single_operation_under_each_control(control: Control) -> None:
    with open_embedded(control=control) as system:
        assert explore(system, Bounds(operations=1)).sequences > 100


def test_every_single_operation_on_postgres(postgres_dsn: str) -> None:
    with open_embedded(postgres_dsn) as system:
        assert explore(system, Bounds(operations=1)).sequences > 100


@pytest.mark.long
@pytest.mark.timeout(7200)
def test_every_longer_sequence_is_as_the_magician_has_it(system: Embedded) -> None:
    assert explore(system, Bounds(operations=3)).sequences > 80_000


# At random.


@pytest.mark.parametrize("control", list(Control))
def test_random_walks_are_as_the_magician_has_them(control: Control) -> None:
    comparisons = 5000 if control is Control.OPTIMISTIC else 600
    with open_embedded(control=control) as system:
        assert wander(system, 20261116, comparisons).comparisons >= comparisons


@pytest.mark.parametrize("control", list(Control))
def test_random_walks_on_postgres(postgres_dsn: str, control: Control) -> None:
    with open_embedded(postgres_dsn, control) as system:
        assert wander(system, 4, 200).comparisons >= 200


def test_random_walks_in_the_root_itself() -> None:
    with open_embedded(at_root=True) as system:
        assert wander(system, 5, 2000).comparisons >= 2000


# Traces.


def test_traces_in_this_process(url: str) -> None:
    traces = TRACES if not url else PART_OF_THEM
    with open_embedded(url) as system:
        assert [replay(system, trace) for trace in traces] == [None] * len(traces)


def test_traces_through_rpc(tmp_path: Path, url: str) -> None:
    _replay_through_rpc(tmp_path, url, PART_OF_THEM)


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_all_traces_through_rpc(tmp_path: Path, url: str) -> None:
    _replay_through_rpc(tmp_path, url, TRACES)


def _replay_through_rpc(directory: Path, url: str, traces: list[Trace]) -> None:
    with (
        Cluster(directory / "cluster", datanodes=1, store=url) as cluster,
        cairnfs.connect(cluster.uri) as fs,
    ):
        system = Client(fs)
        assert [replay(system, trace) for trace in traces] == [None] * len(traces)


def test_random_walks_through_rpc(tmp_path: Path) -> None:
    with Cluster(tmp_path / "cluster", datanodes=1) as cluster, cairnfs.connect(cluster.uri) as fs:
        assert wander(Client(fs), 6, 300).comparisons >= 300


# Wrong rules: each is found, as in `verification`.

row_after_move = inheritance.row_after_move
step_of = inheritance._step


def no_capture(kind: AttributeKind, row: Decision | None, decided: Decision) -> Decision | None:
    return row


def own_txid(kind: AttributeKind, row: Decision | None, decided: Decision) -> Decision | None:
    after = row_after_move(kind, row, decided)
    return after if after is None or after == row else Decision(OWN_TXID, after.value)


def no_barrier(inode: Inode, name: XAttrName) -> Step:
    return step_of(inode, name)._replace(renamed=0)


def dropped_tombstones(
    tx: Transaction, lookup: Lookup, name: XAttrName, value: bytes | None
) -> None:
    if value is not None:
        write(tx, lookup, name, value)
        return
    inode = lookup.inodes[-1]
    xattrs._store(tx, inode, xattrs._others(inode, name))


write = inheritance.write

WRONG = {
    "no capture on rename": ("row_after_move", no_capture),
    "own TxID on capture": ("row_after_move", own_txid),
    "no barrier": ("_step", no_barrier),
    "dropped tombstones": ("write", dropped_tombstones),
}


@pytest.mark.parametrize(("replaced", "wrong"), WRONG.values(), ids=WRONG.keys())
@pytest.mark.interpreted
def test_wrong_rules_are_found(
    system: Embedded, monkeypatch: pytest.MonkeyPatch, replaced: str, wrong: Any
) -> None:
    monkeypatch.setattr(inheritance, replaced, wrong)
    with pytest.raises(Difference, match="expected"):
        wander(system, 1, 50_000)
