"""Snapshots are what the traces say: through every client, on both stores.

A few traces are replayed on real clusters and on PostgreSQL each time; `-m long` replays all.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.traces.adapter import Adapter
from tests.traces.generate import make_trace
from tests.traces.replay import replay
from tests.traces.systems import STORES, open_adapter
from tests.traces.trace import read_traces

from cairnfs.testing.postgres_server import PostgresServer

TRACES = {trace.seed: trace for trace in read_traces()}
EVERYWHERE = (0, 8)
ON_CLUSTERS = (8,)  # with roll-backs of nested directories and of the root
SEEDS = (1000, 1006, 7006)  # of traces of our own
MORE_SEEDS = (1001, 1002, 1005, 1007)
OPERATIONS = 150
CLIENTS = ("client", "rpc", "java")
LONG = {("postgres", "java"), ("postgres", "rpc")}


@pytest.fixture(scope="module", params=STORES)
def store(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def embedded(store: str, request: pytest.FixtureRequest) -> Iterator[Adapter]:
    with open_adapter("embedded", store, _server(store, request)) as adapter:
        yield adapter


@pytest.fixture(scope="module", params=CLIENTS)
def clustered(store: str, request: pytest.FixtureRequest) -> Iterator[Adapter]:
    with open_adapter(request.param, store, _server(store, request)) as adapter:
        yield adapter


def _server(store: str, request: pytest.FixtureRequest) -> PostgresServer | None:
    if store == "sqlite":
        return None
    server: PostgresServer = request.getfixturevalue("postgres_server")
    return server


@pytest.mark.parametrize("seed", EVERYWHERE)
def test_metadata(embedded: Adapter, seed: int) -> None:
    difference = replay(embedded, TRACES[seed])
    assert difference is None, difference


@pytest.mark.parametrize(
    "store",
    ["sqlite", pytest.param("postgres", marks=pytest.mark.long)],
    indirect=True,
    scope="module",
)
@pytest.mark.parametrize("seed", sorted(TRACES.keys() - set(EVERYWHERE)))
def test_metadata_of_the_others(embedded: Adapter, seed: int) -> None:
    difference = replay(embedded, TRACES[seed])
    assert difference is None, difference


@pytest.mark.parametrize(
    "seed", [*SEEDS, *(pytest.param(seed, marks=pytest.mark.long) for seed in MORE_SEEDS)]
)
def test_metadata_as_the_model_has_it(embedded: Adapter, seed: int) -> None:
    difference = replay(embedded, make_trace(seed, OPERATIONS))
    assert difference is None, difference


@pytest.mark.parametrize(
    ("store", "clustered"),
    [
        pytest.param(store, client, marks=[pytest.mark.long] if (store, client) in LONG else [])
        for store in STORES
        for client in CLIENTS
    ],
    indirect=True,
    scope="module",
)
@pytest.mark.parametrize("seed", ON_CLUSTERS)
def test_through_clients(clustered: Adapter, seed: int) -> None:
    """Clients do not see which store there is: on PostgreSQL, one of them is enough each time."""
    difference = replay(clustered, TRACES[seed])
    assert difference is None, difference


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", TRACES.keys() - set(ON_CLUSTERS))
def test_through_clients_all_of_them(clustered: Adapter, seed: int) -> None:
    difference = replay(clustered, TRACES[seed])
    assert difference is None, difference
