"""Snapshots beside the model, which copies everything; `make soak` makes the long runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test
from tests.model.machine import make_machine
from tests.model.product import CONFIGURATIONS, Configuration, Product
from tests.model.walk import Walk, open_on_server, walk

from cairnfs.namenode.reclaiming import Reclaiming
from cairnfs.namesystem import rollback, snapshots
from cairnfs.namesystem.inodes import Inode
from cairnfs.namesystem.needs import Needs
from cairnfs.testing.postgres_server import PostgresServer
from cairnfs.transaction.transaction import Transaction

SEED = 20260102
NESTED_SEED = 113
WALK_STEPS = {"sqlite": 800, "postgres": 250}
NESTED_STEPS = {"sqlite": 60, "postgres": 30}
EXAMPLES = {"sqlite": 8, "postgres": 3}
CHOSEN = (
    "sqlite-optimistic",
    "sqlite-pessimistic",
    "sqlite-system-lock",
    "postgres-optimistic",
    "postgres-optimistic-x2",
    "postgres-pessimistic-x2",
)


@pytest.fixture(params=CHOSEN)
def product(request: pytest.FixtureRequest) -> Iterator[Product]:
    configuration: Configuration = CONFIGURATIONS[request.param]
    server: PostgresServer | None = None
    if configuration.store == "postgres":
        server = request.getfixturevalue("postgres_server")
    with open_on_server(configuration, server, "snapshots") as product:
        yield product


def test_every_choice_of_hypothesis_agrees_with_the_model(product: Product) -> None:
    run_state_machine_as_test(
        make_machine(product, with_snapshots=True),
        settings=settings(
            max_examples=EXAMPLES[product.configuration.store],
            stateful_step_count=50,
            deadline=None,
            derandomize=True,
            database=None,
            phases=(Phase.generate, Phase.shrink),
            suppress_health_check=list(HealthCheck),
        ),
    )


def test_snapshots_are_clean_cuts_through_calls_at_the_same_time(product: Product) -> None:
    steps = WALK_STEPS[product.configuration.store]
    check_walk(walk(product, SEED, steps, with_snapshots=True, nested_in_10=0))


def test_roll_backs_and_clones_in_each_other_agree_with_the_model(product: Product) -> None:
    steps = NESTED_STEPS[product.configuration.store]
    check_walk(walk(product, NESTED_SEED, steps, with_snapshots=True, nested_in_10=10))


def check_walk(done: Walk) -> None:
    if done.divergence is not None:
        lines = "\n".join(map(str, done.trace))
        pytest.fail(f"seed {done.seed}, after {done.steps} steps:\n{lines}\n{done.divergence}")


# Bugs that are put in on purpose are found.


def keep_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is superseded is lost to the snapshots that need it."""
    monkeypatch.setattr(Transaction, "is_held", lambda transaction, key: False)


def reclaim_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Needs, "holder_of", lambda needs, id, since, until: 0)


def reclaim_too_little(monkeypatch: pytest.MonkeyPatch) -> None:
    async def nothing(reclaiming: Reclaiming) -> int:
        return 0

    monkeypatch.setattr(Reclaiming, "_reclaim_removed_snapshot", nothing)


def forget_to_refuse(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("delete", "rename"):
        name = f"cairnfs.namesystem.{module}.check_without_snapshots"
        monkeypatch.setattr(name, lambda *arguments: None)


def take_the_wrong_one(monkeypatch: pytest.MonkeyPatch) -> None:
    right = snapshots.snapshot_key

    def wrong(inode_id: int, name: bytes) -> Any:
        return right(inode_id, name.replace(b"s3", b"s2"))

    monkeypatch.setattr(snapshots, "snapshot_key", wrong)


def hold_under_the_id_of_now(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of something nested that got another id by a roll-back, what was below the old one goes."""
    right = rollback._restore_directory

    def wrong(tx: Any, now: Inode, then: Inode, txid: int) -> Inode:
        mixed = msgspec.structs.replace(then, id=now.id, content_id=then.children_id)
        return right(tx, now, mixed, txid)

    monkeypatch.setattr(rollback, "_restore_directory", wrong)


@pytest.mark.parametrize(
    "put_in",
    [keep_nothing, reclaim_too_much, reclaim_too_little, forget_to_refuse, take_the_wrong_one],
)
@pytest.mark.interpreted
def test_a_bug_is_found(
    put_in: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    put_in(monkeypatch)
    with open_on_server(CONFIGURATIONS["sqlite-optimistic"], None, "") as product:
        done = walk(product, SEED, 4000, with_snapshots=True, nested_in_10=0)
    assert done.divergence is not None


def test_what_goes_wrong_where_snapshots_are_in_each_other_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hold_under_the_id_of_now(monkeypatch)
    with open_on_server(CONFIGURATIONS["sqlite-optimistic"], None, "") as product:
        done = walk(product, NESTED_SEED, 400, with_snapshots=True, nested_in_10=10)
    assert done.divergence is not None
