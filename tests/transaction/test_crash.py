"""Killed with SIGKILL at every step of a commit: what was answered is there, nothing is torn.

The NameNode's process dies at each of its own steps, and at each step of the database
inside a commit; or the database dies there.  Every call is then sent again to another
NameNode: it is told what it would have been told, and has happened exactly once.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import shutil
import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from itertools import count
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from cairnfs.config import Control, NameNodeSettings
from cairnfs.errors import RetriableException
from cairnfs.namenode.opening import format_namespace
from cairnfs.store.sqlite_commits import JOURNALED_CALLS_MAX
from cairnfs.testing.crashes import Load, Plan, check_survived, read_log, run_and_die
from cairnfs.testing.peers import WAIT_LIMIT_S, LocalPeer
from cairnfs.testing.postgres_server import PostgresServer

# A clean process to fork from: a child is there at once, and without our threads.
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["cairnfs.testing.crashes", "cairnfs.store.postgres"])

KILLED = -9
_clients = count(1)


def client_id() -> bytes:
    return next(_clients).to_bytes(16, "big")


def start(plan: Plan) -> BaseProcess:
    process = FORKS.Process(target=run_and_die, args=(plan,), daemon=True)
    process.start()
    return process


def is_reading(step: str) -> bool:
    """A step before which nothing was begun that could be torn."""
    return step.startswith("sql SELECT since, data") or step.startswith("sql SELECT mtime")


# SQLite: the NameNode dies, and another one opens its file.


@pytest.mark.parametrize(
    ("control", "every", "journaled_calls_max"),
    [
        (Control.OPTIMISTIC, 1, JOURNALED_CALLS_MAX),
        (Control.OPTIMISTIC, 1, 1),  # what is in the journal goes to the tables meanwhile
        (Control.PESSIMISTIC, 17, JOURNALED_CALLS_MAX),
        (Control.SYSTEM_LOCK, 17, JOURNALED_CALLS_MAX),
    ],
    ids=lambda value: getattr(value, "value", None),
)
def test_killed_at_each_step_on_sqlite(
    tmp_path: Path, control: Control, every: int, journaled_calls_max: int
) -> None:
    prepared = tmp_path / "prepared.db"
    path = tmp_path / "namespace.db"
    url = f"sqlite://{path}"
    load = Load("/k", client_id())
    asyncio.run(format_namespace(f"sqlite://{prepared}"))
    with LocalPeer(NameNodeSettings(f"sqlite://{prepared}", duties=False)) as peer:
        replaced = load.prepare(peer)
        for file in tmp_path.glob("prepared.db*"):  # as a kill would leave them
            shutil.copy(file, tmp_path / file.name.replace("prepared", "killed"))

    def crash_at(step: int) -> tuple[list[str] | None, int]:
        log = tmp_path / f"log-{step}"
        for file in tmp_path.glob("killed.db*"):
            shutil.copy(file, tmp_path / file.name.replace("killed", "namespace"))
        process = start(
            Plan(url, control, load.root, load.client_id, log, step, journaled_calls_max)
        )
        process.join()
        answers, steps = read_log(log)
        assert process.exitcode == (0 if steps is not None else KILLED)
        with LocalPeer(NameNodeSettings(url, control=control, duties=False)) as other:
            unanswered = check_survived(other, load, replaced, answers)
        for file in tmp_path.glob("namespace.db*"):
            file.unlink()
        return steps, unanswered

    steps, _ = crash_at(0)
    assert steps is not None
    points = [number for number, step in enumerate(steps, 1) if not is_reading(step)]
    unanswered = 0
    for point in points[::every]:
        unanswered += crash_at(point)[1]
    if every == 1:
        wanted = {"commit", "journal", "half of a record", "journal sync", "committed"}
        if journaled_calls_max == 1:
            wanted |= {"sql UPDATE clock SET", "sql COMMIT", "write", "sync"}
        assert wanted <= set(steps)
        assert unanswered > 0  # some died between their commit and their answer


# PostgreSQL: the NameNode dies, and another one is there already.


@pytest.fixture
def survivor(postgres_dsn: str) -> Iterator[LocalPeer]:
    asyncio.run(format_namespace(postgres_dsn))
    with LocalPeer(NameNodeSettings(postgres_dsn, duties=False)) as peer:
        yield peer


@pytest.mark.parametrize(
    ("control", "every"),
    [(Control.OPTIMISTIC, 1), (Control.PESSIMISTIC, 29), (Control.SYSTEM_LOCK, 29)],
    ids=lambda value: getattr(value, "value", None),
)
def test_killed_at_each_step_on_postgres(
    postgres_dsn: str, survivor: LocalPeer, tmp_path: Path, control: Control, every: int
) -> None:
    def crash_at(step: int) -> tuple[list[str] | None, int]:
        load = Load(f"/k{step}", client_id())
        replaced = load.prepare(survivor)
        log = tmp_path / f"log-{step}"
        process = start(Plan(postgres_dsn, control, load.root, load.client_id, log, step))
        process.join()
        answers, steps = read_log(log)
        assert process.exitcode == (0 if steps is not None else KILLED)
        unanswered = check_survived(survivor, load, replaced, answers)
        survivor.call("delete", load.root, recursive=True)
        survivor.thread.wait(survivor.thread.namenode.duties.reclaim_everything())
        return steps, unanswered

    steps, _ = crash_at(0)
    assert steps is not None
    # While it only reads there is nothing to tear.  (From run to run replies come in other
    # pieces, so that a few steps are more or less; no matter.)
    first = steps.index("number batch")
    points = [*range(1, first, 8), *range(first, len(steps) + 1)]
    unanswered = 0
    for point in points[::every]:
        unanswered += crash_at(point)[1]
    if every == 1:
        assert {"send", "sent", "receive", "commit", "committed"} <= set(steps)
        assert unanswered > 0


# PostgreSQL: somebody dies while the database is in the middle of a commit.

GATE = 4711  # an advisory lock: whoever holds it keeps commits at a point

POINTS = {
    "the clock is taken": "AFTER UPDATE ON clock FOR EACH STATEMENT",
    "the batch is numbered": (
        "AFTER UPDATE ON members FOR EACH ROW WHEN (OLD.batch IS DISTINCT FROM NEW.batch)"
    ),
    "everything is validated": "BEFORE DELETE ON records FOR EACH STATEMENT",
    "rows are deleted": "BEFORE INSERT ON records FOR EACH STATEMENT",
    "rows are inserted": "AFTER INSERT ON records FOR EACH STATEMENT",
    "totals are added": "AFTER INSERT ON totals FOR EACH STATEMENT",
    "replies are stored": "AFTER INSERT ON replies FOR EACH STATEMENT",
    "COMMIT has begun": "AFTER INSERT ON replies DEFERRABLE INITIALLY DEFERRED FOR EACH ROW",
}


class Gate:
    """Keeps the next commits at a point inside the database, while it is closed."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._loop = asyncio.new_event_loop()
        self._connection: Any = None

    def run(self, statement: str) -> Any:
        return self._loop.run_until_complete(self._connection.fetch(statement))

    def connect(self) -> None:
        connecting = asyncpg.connect(self._dsn, server_settings={"search_path": "cairnfs"})
        self._connection = self._loop.run_until_complete(connecting)

    def build(self, point: str) -> None:
        constraint = "CONSTRAINT" if "DEFERRABLE" in point else ""
        self.run("DROP FUNCTION IF EXISTS pass_gate CASCADE")
        self.run(
            "CREATE FUNCTION pass_gate() RETURNS trigger LANGUAGE plpgsql AS"
            f" $$ BEGIN PERFORM pg_advisory_xact_lock_shared({GATE}); RETURN NULL; END $$"
        )
        self.run(f"CREATE {constraint} TRIGGER gate {point} EXECUTE FUNCTION pass_gate()")
        self.run(f"SELECT pg_advisory_lock({GATE})")

    def await_waiter(self, call: Future[Any] | BaseProcess) -> None:
        """Until somebody stands at the gate."""
        limit_s = time.monotonic() + WAIT_LIMIT_S
        waiting = "SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
        while not self.run(waiting):
            assert time.monotonic() < limit_s, f"nobody came to the gate: {call}"
            time.sleep(0.01)

    def open(self) -> None:
        self.run(f"SELECT pg_advisory_unlock({GATE})")

    def abandon(self) -> None:
        """The database was killed, and our connection with it."""
        self._connection.terminate()
        self._loop.run_until_complete(asyncio.sleep(0))
        self._loop.close()

    def close(self) -> None:
        self._loop.run_until_complete(self._connection.close())
        self._loop.close()


@contextmanager
def gate_in(dsn: str) -> Iterator[Gate]:
    gate = Gate(dsn)
    gate.connect()
    try:
        yield gate
    finally:
        gate.close()


@pytest.mark.parametrize("point", POINTS)
def test_namenode_killed_while_the_database_commits(
    postgres_dsn: str, survivor: LocalPeer, tmp_path: Path, point: str
) -> None:
    """And the call is sent to another NameNode before that commit is over."""
    load = Load("/k", client_id())
    replaced = load.prepare(survivor)
    log = tmp_path / "log"
    with gate_in(postgres_dsn) as gate:
        gate.build(POINTS[point])
        plan = Plan(postgres_dsn, Control.OPTIMISTIC, load.root, load.client_id, log, 0)
        process = start(plan)
        gate.await_waiter(process)
        process.kill()
        process.join()
        key = (load.client_id, 0)
        retried = survivor.start("create", f"{load.root}/new", key=key, is_retry=True)
        time.sleep(0.1)  # let it come as far as it can
        gate.open()
        created = retried.result(WAIT_LIMIT_S)
    answers, _ = read_log(log)
    assert answers == {}
    check_survived(survivor, load, replaced, {0: str(created.id)})


def test_the_database_is_killed_at_each_step_of_a_commit() -> None:
    """NameNodes live on; they find out what has happened, or say that it may be tried again."""
    with PostgresServer() as server:
        dsn = server.create_database("killed")
        asyncio.run(format_namespace(dsn))
        settings = NameNodeSettings(dsn, duties=False)
        with LocalPeer(settings) as one, LocalPeer(settings) as other:
            for number, point in enumerate(POINTS.values()):
                _kill_database(server, dsn, one, other, f"/k{number}", point)


def _kill_database(
    server: PostgresServer, dsn: str, one: LocalPeer, other: LocalPeer, root: str, point: str
) -> None:
    load = Load(root, client_id())
    replaced = load.prepare(one)
    gate = Gate(dsn)
    gate.connect()
    gate.build(point)
    calls = {
        call.number: one.start(
            call.method, *call.arguments, key=(load.client_id, call.number), **call.options
        )
        for call in load.calls
    }
    gate.await_waiter(calls[0])
    server.kill()
    server.start()
    answers = {}
    for number, call in calls.items():
        error = call.exception(WAIT_LIMIT_S)
        if error is None:
            answers[number] = str(getattr(call.result(), "id", call.result()))
        else:
            assert isinstance(error, RetriableException), error
    gate.abandon()
    check_survived(other, load, replaced, answers)
