"""The server that other tests rely on: it comes back after a kill and leaves nothing."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from cairnfs.testing import postgres_binaries
from cairnfs.testing.postgres_binaries import PostgresUnavailable, find_postgres_bin
from cairnfs.testing.postgres_processes import state_and_parent
from cairnfs.testing.postgres_server import PostgresServer


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    with PostgresServer(durable=True, settings={"shared_buffers": "16MB"}) as started:
        yield started


def query(dsn: str, statement: str) -> Any:
    async def ask() -> Any:
        connection = await asyncpg.connect(dsn)
        try:
            return await connection.fetchval(statement)
        finally:
            await connection.close()

    return asyncio.run(ask())


def is_alive(pid: int) -> bool:
    return state_and_parent(pid)[0] not in "XZ"


def wait_until_dead(pids: list[int], timeout_s: float = 20.0) -> None:
    deadline_s = time.monotonic() + timeout_s
    while any(is_alive(pid) for pid in pids):
        assert time.monotonic() < deadline_s, f"still alive: {[p for p in pids if is_alive(p)]}"
        time.sleep(0.05)


def shared_memory_segments(creators: Iterable[int]) -> set[str]:
    """Segments that one of these processes made; other servers have theirs."""
    lines = Path("/proc/sysvipc/shm").read_text().splitlines()[1:]
    return {line.split()[1] for line in lines if int(line.split()[4]) in set(creators)}


def test_serves_a_database_it_created(server: PostgresServer) -> None:
    dsn = server.create_database("a_new-one")
    assert query(dsn, "SELECT current_database()") == "a_new-one"
    server.drop_database("a_new-one")
    with pytest.raises(asyncpg.InvalidCatalogNameError):
        query(dsn, "SELECT 1")


def test_create_database_works_inside_a_running_loop(server: PostgresServer) -> None:
    async def create() -> str:
        return server.create_database("inside")

    assert query(asyncio.run(create()), "SELECT current_database()") == "inside"


@pytest.mark.parametrize("durable", [True, False])
def test_settings_reach_the_server(durable: bool) -> None:
    with PostgresServer(durable=durable, settings={"work_mem": "5MB"}) as server:
        shown = {
            name: query(server.dsn, f"SHOW {name}")
            for name in ("fsync", "synchronous_commit", "shared_buffers", "jit", "work_mem")
        }
    assert shown == {
        "fsync": "on" if durable else "off",
        "synchronous_commit": "on",
        "shared_buffers": "256MB",
        "jit": "off",
        "work_mem": "5MB",
    }


def test_committed_data_outlives_kill_and_restart(server: PostgresServer) -> None:
    dsn = server.create_database("kept")
    query(dsn, "CREATE TABLE t (n int)")
    query(dsn, "INSERT INTO t SELECT generate_series(1, 1000)")

    for _ in range(2):
        pids = server.pids()
        assert shared_memory_segments(pids)
        server.kill()
        assert not server.running
        assert not any(is_alive(pid) for pid in pids)
        assert not shared_memory_segments(pids)

        server.restart()
        assert query(dsn, "SELECT count(*) FROM t") == 1000


def test_stop_keeps_the_data_for_the_next_start(server: PostgresServer) -> None:
    query(server.dsn, "CREATE TABLE t AS SELECT 7 AS n")
    server.stop()
    assert not server.running
    assert server.pids() == []
    server.start()
    assert query(server.dsn, "SELECT n FROM t") == 7


def test_close_ends_every_process_and_removes_the_directory() -> None:
    server = PostgresServer(durable=False)
    server.start()
    pids, directory = server.pids(), server.directory
    assert len(pids) > 1
    server.close()
    server.close()
    assert not directory.exists()
    assert not any(is_alive(pid) for pid in pids)


def test_close_after_kill_removes_the_directory() -> None:
    with PostgresServer(durable=False) as server:
        directory = server.directory
        server.kill()
    assert not directory.exists()


def test_never_runs_as_root(server: PostgresServer) -> None:
    for pid in server.pids():
        status = Path(f"/proc/{pid}/status").read_text()
        uids = next(line.split()[1:] for line in status.splitlines() if line.startswith("Uid:"))
        assert "0" not in uids


def test_listens_on_tcp_only_when_asked(server: PostgresServer) -> None:
    assert query(server.dsn, "SHOW listen_addresses") == ""
    with pytest.raises(PostgresUnavailable):
        server.tcp_dsn_of("postgres")
    with PostgresServer(durable=False, tcp=True) as open_server:
        assert query(open_server.tcp_dsn_of("postgres"), "SELECT 1") == 1
        assert query(open_server.dsn, "SELECT 1") == 1


def test_server_goes_when_its_owner_is_killed() -> None:
    program = (
        "import time\n"
        "from cairnfs.testing.postgres_server import PostgresServer\n"
        "server = PostgresServer(durable=False)\n"
        "server.start()\n"
        "print(server.directory, *server.pids(), flush=True)\n"
        "time.sleep(600)\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as owner:
        assert owner.stdout is not None
        directory, *pids = owner.stdout.readline().decode().split()
        owner.send_signal(signal.SIGKILL)
    wait_until_dead([int(pid) for pid in pids])
    deadline_s = time.monotonic() + 20
    while os.path.exists(directory):
        assert time.monotonic() < deadline_s, f"{directory} was left behind"
        time.sleep(0.05)


def test_server_goes_when_its_owner_exits_without_closing() -> None:
    program = (
        "from cairnfs.testing.postgres_server import PostgresServer\n"
        "server = PostgresServer(durable=False)\n"
        "server.start()\n"
        "print(server.directory, *server.pids(), flush=True)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    directory, *pids = done.stdout.decode().split()
    assert not any(is_alive(int(pid)) for pid in pids)
    assert not os.path.exists(directory)


def test_a_failed_start_shows_the_log_and_leaves_nothing(tmp_path: Path) -> None:
    server = PostgresServer(durable=False, settings={"no_such_setting": "1"})
    with pytest.raises(PostgresUnavailable, match="no_such_setting"):
        server.start()
    with pytest.raises(PostgresUnavailable):
        _ = server.directory


def test_missing_binaries_name_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CAIRN_POSTGRES_BIN", raising=False)
    monkeypatch.setattr(postgres_binaries, "_candidate_bins", list)
    with pytest.raises(PostgresUnavailable, match="make setup-postgres"):
        PostgresServer()


def test_a_wrong_directory_is_not_passed_over(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CAIRN_POSTGRES_BIN", str(tmp_path))
    with pytest.raises(PostgresUnavailable, match="CAIRN_POSTGRES_BIN"):
        find_postgres_bin()


@pytest.mark.parametrize("turn", [1, 2])
def test_every_test_gets_an_empty_database(postgres_dsn: str, turn: int) -> None:
    assert query(postgres_dsn, "SELECT count(*) FROM pg_class WHERE relname = 'leftover'") == 0
    query(postgres_dsn, "CREATE TABLE leftover ()")
