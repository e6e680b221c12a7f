"""Bugs that are put in on purpose are found: the walks beside the model can fail."""

from __future__ import annotations

from typing import Any

import pytest
from tests.model.comparison import Divergence
from tests.model.product import CONFIGURATIONS
from tests.model.scenes import last_place, loop, one_file, one_name, vanishing_parent
from tests.model.walk import open_on_server, shrink, walk

from cairnfs.config import Control
from cairnfs.namenode import namenode
from cairnfs.namesystem import delete, files, permissions, quotas
from cairnfs.testing.faults import CarelessStore
from cairnfs.testing.postgres_server import PostgresServer
from cairnfs.transaction.optimistic import OptimisticRunner
from cairnfs.transaction.transaction import Transaction

TWO_NAMENODES = CONFIGURATIONS["postgres-optimistic-x2"]
ONE_NAMENODE = CONFIGURATIONS["sqlite-optimistic"]
STEPS_MAX = 12_000
SEED = 7


def find_concurrent(server: PostgresServer, *scenes: Any) -> Divergence | None:
    with open_on_server(TWO_NAMENODES, server, "mutant") as product:
        return walk(product, SEED, STEPS_MAX, batches_percent=80, scenes=scenes).divergence


@pytest.mark.interpreted
def test_without_validation_two_namenodes_overwrite_each_other(
    postgres_server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def careless(control: Control, store: Any, clock: Any, membership: Any) -> OptimisticRunner:
        prefetch = namenode.prefetch_paths
        return OptimisticRunner(CarelessStore(store), clock, prefetch, membership=membership)

    monkeypatch.setattr(namenode, "make_runner", careless)
    assert find_concurrent(postgres_server, one_name, one_file) is not None


@pytest.mark.interpreted
def test_without_bounds_the_last_place_is_given_twice(
    postgres_server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Transaction, "bound", lambda *arguments: None)
    assert find_concurrent(postgres_server, last_place) is not None


@pytest.mark.interpreted
def test_structural_calls_that_do_not_run_alone_are_noticed(
    postgres_server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Transaction, "require_alone", lambda transaction: None)
    assert find_concurrent(postgres_server, vanishing_parent, loop) is not None


def forget_replication(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(inode: Any) -> int:
        return int(inode.length_bytes)

    monkeypatch.setattr(quotas, "charged_space", wrong)


def forget_sticky_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delete, "check_sticky", lambda *arguments: None)


def forget_lease(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files.leases, "remove", lambda *arguments: None)


def grant_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    right = permissions.has_permission

    def wrong(caller: Any, inode: Any, access: int) -> bool:
        return right(caller, inode, access) or caller.user == "bob"

    monkeypatch.setattr(permissions, "has_permission", wrong)


@pytest.mark.interpreted
@pytest.mark.parametrize(
    "put_in", [forget_replication, forget_sticky_bit, forget_lease, grant_too_much]
)
def test_an_ordinary_bug_is_found_and_shrunk(put_in: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    put_in(monkeypatch)
    with open_on_server(ONE_NAMENODE, None, "") as product:
        done = walk(product, SEED, STEPS_MAX)
    assert done.divergence is not None
    trace, divergence = shrink(
        lambda: open_on_server(ONE_NAMENODE, None, ""), done.trace, budget_s=120
    )
    assert divergence is not None
    assert len(trace) < 15
