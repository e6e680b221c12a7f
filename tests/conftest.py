"""Fixtures that many tests share.

The PostgreSQL server is started by the first test that asks for it, serves the whole
session, and gives every test a database of its own.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from itertools import count
from pathlib import Path

import pytest
from hypothesis import settings
from tests.compiled.replacing import CompilableMonkeyPatch

from cairnfs.build import is_compiled
from cairnfs.testing.cluster import Cluster
from cairnfs.testing.postgres_server import PostgresServer

# How long an example takes depends on what else the machine does.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

_database_numbers = count(1)

# A file is run by one worker: begun last, one of these would be all that is left to run.
_LONGEST = (
    "compiled/test_running.py",
    "traces/test_snapshots.py",
    "scenarios/test_lease_recovery.py",
    "transaction/test_snapshot_crash.py",
    "transaction/test_crash.py",
    "scenarios/test_datanode_killed.py",
    "compatibility/test_fsshell.py",
    "namesystem/test_snapshots.py",
    "scenarios/test_append.py",
    "jobs/test_refusals.py",
    "model/test_model.py",
    "model/test_snapshot_model.py",
    "spark/test_tables.py",
    "jobs/test_rounds.py",
    "namesystem/test_settling.py",
    "scenarios/test_namenode_killed.py",
    "jobs/test_work.py",
    "jobs/test_backup.py",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest files come first; what is not for compiled code is left out there."""
    tests = Path(__file__).parent
    places = {tests / name: place for place, name in enumerate(_LONGEST)}
    items.sort(key=lambda item: places.get(item.path, len(places)))
    if is_compiled():
        for item in items:
            if item.get_closest_marker("interpreted"):
                item.add_marker(pytest.mark.skip(reason="the NameNode is compiled"))


@pytest.fixture
def monkeypatch(request: pytest.FixtureRequest) -> Iterator[pytest.MonkeyPatch]:
    """As it is elsewhere; but what compiled code would not notice is for tests that say so."""
    is_interpreted = request.node.get_closest_marker("interpreted")
    patch = pytest.MonkeyPatch() if is_interpreted else CompilableMonkeyPatch()
    yield patch
    patch.undo()


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """One server for the session, fast rather than safe from power cuts.

    A test that kills or reconfigures its server makes a PostgresServer of its own.
    """
    with PostgresServer(durable=False) as server:
        yield server


@pytest.fixture
def postgres_dsn(postgres_server: PostgresServer) -> Iterator[str]:
    """The address of a new, empty database, dropped after the test."""
    name = f"test_{next(_database_numbers)}"
    yield postgres_server.create_database(name)
    postgres_server.drop_database(name)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A test with a cluster that fails shows what the nodes have said."""
    report = yield
    if report.failed:
        for value in getattr(item, "funcargs", {}).values():
            if isinstance(value, Cluster):
                report.sections.append(("cluster", value.log_tails()))
    return report
