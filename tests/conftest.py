"""Fixtures that many tests share.

The PostgreSQL server is started by the first test that asks for it, serves the whole
session, and gives every test a database of its own.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from itertools import count

import pytest
from hypothesis import settings

from cairnfs.testing.cluster import Cluster
from cairnfs.testing.postgres_server import PostgresServer

# How long an example takes depends on what else the machine does.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

_database_numbers = count(1)


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
