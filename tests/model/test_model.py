"""Short runs beside the model; `make soak` makes the long ones."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test
from tests.model.calls import OPERATIONS
from tests.model.machine import make_machine
from tests.model.product import CONFIGURATIONS, Configuration, Product
from tests.model.snapshot_calls import SNAPSHOT_OPERATIONS
from tests.model.walk import open_on_server, walk

from cairnfs.testing.postgres_server import PostgresServer

SEED = 20260101
WALK_STEPS = {"sqlite": 1500, "postgres": 500}
EXAMPLES = {"sqlite": 12, "postgres": 4}


@pytest.fixture(params=CONFIGURATIONS.values(), ids=lambda each: each.name)
def configuration(request: pytest.FixtureRequest) -> Configuration:
    chosen: Configuration = request.param
    return chosen


@pytest.fixture
def product(configuration: Configuration, request: pytest.FixtureRequest) -> Iterator[Product]:
    server: PostgresServer | None = None
    if configuration.store == "postgres":
        server = request.getfixturevalue("postgres_server")
    with open_on_server(configuration, server, "model") as product:
        yield product


def test_every_choice_of_hypothesis_agrees_with_the_model(product: Product) -> None:
    run_state_machine_as_test(
        make_machine(product),
        settings=settings(
            max_examples=EXAMPLES[product.configuration.store],
            stateful_step_count=40,
            deadline=None,
            derandomize=True,
            database=None,
            phases=(Phase.generate, Phase.shrink),
            suppress_health_check=list(HealthCheck),
        ),
    )


def test_calls_at_the_same_time_agree_with_some_order_of_them(product: Product) -> None:
    done = walk(product, SEED, WALK_STEPS[product.configuration.store])
    if done.divergence is not None:
        lines = "\n".join(map(str, done.trace))
        pytest.fail(f"seed {SEED}, after {done.steps} steps:\n{lines}\n{done.divergence}")


def test_the_steps_know_all_calls() -> None:
    """So that a new call of ClientProtocol is not forgotten here."""
    from cairnfs.namenode.embedded import ClientProtocol
    from cairnfs.namenode.embedded_snapshots import SnapshotCalls

    methods = {**vars(SnapshotCalls), **vars(ClientProtocol)}
    calls = {name for name, value in methods.items() if callable(value)}
    calls -= {"create_snapshot"}  # one of create_snapshots
    calls -= {"snapshot_changes"}  # see tests/snapshots/test_random_changes.py
    calls = {name for name in calls if "root_snapshot" not in name}  # see test_root_snapshot.py
    # See tests/attributes.
    calls -= {"declare_xattr", "list_declared_xattrs", "unset_xattr", "explain_xattrs"}
    calls -= {"commit_output"}  # see tests/namesystem/test_job_output.py
    calls -= {"rollback_snapshots"}  # see tests/model/nested_calls.py
    # See tests/namesystem/test_tree_scan.py and test_view_changes.py.
    calls -= {"view_changes", "is_view_current"}
    calls -= {"open_view", "renew_view", "close_view", "list_views", "split_part", "scan_part"}
    known = OPERATIONS.keys() | SNAPSHOT_OPERATIONS.keys()
    assert {name for name in calls if not name.startswith("_")} == known
