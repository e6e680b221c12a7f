"""No anomaly: two NameNodes on one PostgreSQL, in threads and in processes; one on SQLite.

Under all three controls.  That these tests can fail at all is shown in
`test_isolation_needs_validation`.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import wait
from itertools import count
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from tests.transaction.audit import audit
from tests.transaction.scenarios import SCENARIOS, Case

from cairnfs.config import Control, NameNodeSettings
from cairnfs.namenode.opening import format_namespace
from cairnfs.testing.peers import LocalPeer, ProcessPeer
from cairnfs.testing.postgres_server import PostgresServer

_numbers = count(1)

DEPLOYMENTS = ["sqlite, one NameNode", "postgres, two threads", "postgres, two processes"]


@pytest.fixture(
    scope="module",
    params=[(where, control) for where in DEPLOYMENTS for control in Control],
    ids=lambda param: f"{param[0]}, {param[1].value}",
)
def peers(
    request: pytest.FixtureRequest,
    postgres_server: PostgresServer,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[Any, Any, Control, str]]:
    where, control = request.param
    if where.startswith("sqlite"):
        path: Path = tmp_path_factory.mktemp("isolation") / "namespace.db"
        url = f"sqlite://{path}"
    else:
        url = postgres_server.create_database(f"isolation_{next(_numbers)}")
    asyncio.run(format_namespace(url))
    settings = NameNodeSettings(url, control=control, duties=False)
    if where.startswith("sqlite"):
        one = LocalPeer(settings)
        yield one, one, control, url
        one.stop()
        audit(url)
        return
    make: Callable[[NameNodeSettings], Any] = ProcessPeer if "processes" in where else LocalPeer
    two = make(settings), make(settings)
    yield *two, control, url
    for peer in two:
        peer.stop()
    audit(url)
    postgres_server.drop_database(url.partition("@/")[2].partition("?")[0])


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_no_anomaly(
    peers: tuple[Any, Any, Control, str], scenario: Callable[[Case], list[str]]
) -> None:
    a, b, control, _ = peers
    root = f"/{scenario.__name__}-{next(_numbers)}"
    a.call("mkdirs", root)
    case = Case(a, b, root, control, shared=a is not b)
    assert scenario(case) == []


# TxID order is commit order, as anybody can observe it.

Moment = tuple[int, dict[bytes, int]]
"""The clock, and the rows that were there at that moment, each with its TxID."""


def find_late(moments: Iterable[Moment]) -> list[str]:
    """Rows that appeared with a TxID at which the clock had been before, or behind the clock."""
    late = []
    clock_before: int = 0
    rows_before: dict[bytes, int] = {}
    for clock, rows in moments:
        if clock < clock_before:
            late.append(f"the clock went back from {clock_before} to {clock}")
        for name, txid in rows.items():
            if txid > clock:
                late.append(f"{name!r} of {txid} was seen at {clock}")
            if name not in rows_before and txid <= clock_before:
                late.append(f"{name!r} of {txid} appeared after {clock_before}")
        clock_before, rows_before = clock, rows
    return late


def test_a_late_commit_would_be_found() -> None:
    """The naive way: numbers are handed out early, and 2 commits before 1."""
    assert find_late([(0, {}), (2, {b"second": 2}), (2, {b"first": 1, b"second": 2})]) != []
    assert find_late([(0, {}), (1, {b"second": 2})]) != []
    assert find_late([(0, {}), (1, {b"first": 1}), (2, {b"first": 1, b"second": 2})]) == []


def test_txid_order_is_commit_order(peers: tuple[Any, Any, Control, str]) -> None:
    a, b, _, url = peers
    if a is b:
        return  # one writer, on a file that nobody else can look into
    root = f"/order-{next(_numbers)}"
    a.call("mkdirs", root)
    directory = a.call("get_file_info", root).id
    moments: list[Moment] = []
    done = threading.Event()

    async def watch() -> None:
        connection = await asyncpg.connect(url)
        statement = (
            "SELECT (SELECT txid FROM cairnfs.clock), b, since FROM"
            " (SELECT 1) one LEFT JOIN cairnfs.records ON t = 0 AND a = $1"
        )
        is_last = False
        while not is_last:
            is_last = done.is_set()
            rows = await connection.fetch(statement, directory)
            moments.append((rows[0][0], {b: since for _, b, since in rows if b is not None}))
        await connection.close()

    watcher = threading.Thread(target=asyncio.run, args=(watch(),))
    watcher.start()
    try:
        for turn in range(10):
            calls = [
                peer.start("create", f"{root}/{name}{turn}-{number}")
                for name, peer in (("a", a), ("b", b))
                for number in range(5)
            ]
            wait(calls)
            for call in calls:
                call.result()
    finally:
        done.set()
        watcher.join()
    assert find_late(moments) == []
    txids = moments[-1][1].values()
    assert len(txids) == 100
    assert len(set(txids)) == 100
