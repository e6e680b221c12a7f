"""A private PostgreSQL server for tests and benchmarks.

Job: run one server in a temporary directory, and let a test kill it and bring it
back. It listens on a Unix socket in that directory, which only its own account and
root can enter, and on 127.0.0.1 only if asked.

Invariant: no server outlives the process that started it, even one killed with
SIGKILL. The postmaster is therefore a child of `postgres_watchdog`.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Self

import asyncpg

from cairnfs.testing import postgres_watchdog
from cairnfs.testing.postgres_binaries import (
    Account,
    PostgresUnavailable,
    choose_account,
    find_postgres_bin,
    wheel_directory,
)
from cairnfs.testing.postgres_processes import (
    POLL_INTERVAL_S,
    await_gone,
    children_of,
    remove_shared_memory,
)

START_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 60.0
SOCKET_PATH_BYTES_MAX = 107
DEFAULT_PORT = 5432

SETTINGS: Mapping[str, str] = {
    "shared_buffers": "256MB",
    "max_connections": "200",
    "synchronous_commit": "on",
    "autovacuum": "on",
    "max_wal_size": "2GB",
    "jit": "off",
    # In files of the data directory: /dev/shm is small in containers, and what a
    # killed server leaves there would stay.
    "dynamic_shared_memory_type": "mmap",
}


class PostgresServer:
    """One server with its own data directory; made by start(), removed by close().

    `durable=False` gives up surviving a crash of the machine, not of the server:
    committed data outlives kill() either way.
    """

    def __init__(
        self,
        *,
        durable: bool = True,
        tcp: bool = False,
        parent_directory: Path | None = None,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self.durable = durable
        self.port = _choose_free_port() if tcp else DEFAULT_PORT
        self._tcp = tcp
        self._parent_directory = parent_directory
        self._settings = {**SETTINGS, **_durability(durable), **(settings or {})}
        self._account = choose_account()
        self._bin = find_postgres_bin()
        self._directory: Path | None = None
        self._watchdog: subprocess.Popen[bytes] | None = None
        self._postmaster_pid: int | None = None
        self._owner_pid = os.getpid()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def directory(self) -> Path:
        """Holds data, socket and log; only there between start() and close()."""
        if self._directory is None:
            raise PostgresUnavailable("the server was not started, or was closed")
        return self._directory

    @property
    def running(self) -> bool:
        """Whether the postmaster is alive."""
        return self._watchdog is not None and self._watchdog.poll() is None

    @property
    def dsn(self) -> str:
        """Address of the database `postgres` by Unix socket, as asyncpg takes it."""
        return self.dsn_of("postgres")

    def dsn_of(self, database: str) -> str:
        """Address of one database by Unix socket."""
        return f"postgresql://postgres@/{database}?host={self.directory}&port={self.port}"

    def tcp_dsn_of(self, database: str) -> str:
        """Address of one database by TCP, for a server made with tcp=True."""
        if not self._tcp:
            raise PostgresUnavailable("this server listens on its Unix socket only")
        return f"postgresql://postgres@127.0.0.1:{self.port}/{database}"

    def start(self) -> None:
        """Make the data directory if there is none yet, and run until it answers."""
        if self.running:
            return
        if self._directory is None:
            atexit.register(self._close_at_exit)
            self._make_directory()
            self._initialise()
        self._launch()

    def stop(self) -> None:
        """Fast shutdown: ends open sessions, writes a checkpoint, keeps the data."""
        if self._watchdog is None:
            return
        if self.running and self._postmaster_pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._postmaster_pid, signal.SIGINT)
        self._await_watchdog()

    def kill(self) -> None:
        """SIGKILL to the postmaster and all its children: what a power cut leaves."""
        pids = self._freeze()
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._await_watchdog()
        await_gone(pids, STOP_TIMEOUT_S)
        self._remove_leftovers()

    def restart(self) -> None:
        """Stop if running, then start on the same data."""
        self.stop()
        self.start()

    def close(self) -> None:
        """Stop and delete the directory. Safe to call twice."""
        self.stop()
        if self._directory is not None:
            shutil.rmtree(self._directory, ignore_errors=True)
            self._directory = None
            atexit.unregister(self._close_at_exit)

    def pids(self) -> list[int]:
        """The postmaster first, then its children: what to add up for CPU time."""
        if not self.running or self._postmaster_pid is None:
            return []
        return [self._postmaster_pid, *children_of(self._postmaster_pid)]

    def create_database(self, name: str) -> str:
        """A new empty database; its address."""
        # Without STRATEGY: wal_log and file_copy showed no clear difference beside the
        # noise (about 50 ms each), and servers before 15 do not know the word.
        self.execute(f"CREATE DATABASE {_quote_identifier(name)}")
        return self.dsn_of(name)

    def drop_database(self, name: str) -> None:
        """Remove a database, ending the sessions that still use it."""
        self.execute(f"DROP DATABASE IF EXISTS {_quote_identifier(name)} WITH (FORCE)")

    def execute(self, statement: str, *, database: str = "postgres") -> None:
        """Run one statement; callable with or without a running event loop."""
        # In a thread of its own, since asyncio.run refuses inside a running loop.
        with ThreadPoolExecutor(max_workers=1) as thread:
            thread.submit(asyncio.run, _execute(self.dsn_of(database), statement)).result()

    def log(self) -> str:
        """What the server has written to its log."""
        path = self.directory / "server.log"
        return path.read_text(errors="replace") if path.exists() else ""

    # -- Steps of starting

    def _make_directory(self) -> None:
        parent = self._parent_directory or _choose_temporary_root(self._account)
        directory = Path(tempfile.mkdtemp(prefix="cairn-pg-", dir=parent))
        self._directory = directory
        socket_path = directory / f".s.PGSQL.{self.port}"
        if len(os.fsencode(socket_path)) > SOCKET_PATH_BYTES_MAX:
            self.close()
            raise PostgresUnavailable(f"{socket_path} is too long for the path of a Unix socket")
        if self._account is not None:
            self._account.own(directory)
            self._bin = self._reachable_bin(self._account, directory)

    def _reachable_bin(self, account: Account, directory: Path) -> Path:
        """The binaries, copied beside the data if the account cannot get at them.

        A checkout below root's home is closed to others. The whole wheel is copied,
        since its binaries find their libraries and data files by relative path.
        """
        if account.may_enter(self._bin / "postgres"):
            return self._bin
        if not self._bin.is_relative_to(wheel_directory()):
            raise PostgresUnavailable(f"uid {account.uid} may not run {self._bin}/postgres")
        copy = directory / "install"
        shutil.copytree(wheel_directory(), copy, symlinks=True)
        account.own(copy)
        return copy / self._bin.relative_to(wheel_directory())

    def _initialise(self) -> None:
        # No sync: a machine that crashes here has lost nothing worth keeping.
        command = [
            str(self._bin / "initdb"),
            f"--pgdata={self.directory / 'data'}",
            *("--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C"),
            *("--no-sync", "--no-instructions"),
        ]
        done = subprocess.run(
            command,
            cwd=self.directory,
            env=_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            user=self._account.uid if self._account else None,
            group=self._account.gid if self._account else None,
            extra_groups=[] if self._account else None,
        )
        if done.returncode != 0:
            self.close()
            raise PostgresUnavailable(f"initdb failed:\n{done.stdout}")

    def _launch(self) -> None:
        account = f"{self._account.uid}:{self._account.gid}" if self._account else "-"
        # -P keeps its file's folder off the watchdog's import path. A session of its
        # own keeps Ctrl-C, and a SIGKILL to our process group, away from it.
        command = [sys.executable, "-P", postgres_watchdog.__file__, str(self.directory), account]
        with (self.directory / "server.log").open("ab") as log:
            self._watchdog = subprocess.Popen(
                command + self._server_command(),
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                cwd=self.directory,
                env=_environment(),
                start_new_session=True,
            )
        deadline_s = time.monotonic() + START_TIMEOUT_S
        while not self._ready():
            if not self.running or time.monotonic() > deadline_s:
                log_text = self.log()
                self.close()
                raise PostgresUnavailable(f"PostgreSQL did not start:\n{log_text[-4000:]}")
            time.sleep(POLL_INTERVAL_S)

    def _server_command(self) -> list[str]:
        settings = {
            **self._settings,
            "port": str(self.port),
            "unix_socket_directories": str(self.directory),
            "listen_addresses": "127.0.0.1" if self._tcp else "",
        }
        options = [f"-c{name}={value}" for name, value in settings.items()]
        return [str(self._bin / "postgres"), "-D", str(self.directory / "data"), *options]

    def _ready(self) -> bool:
        """The postmaster writes its state into its pid file; pg_ctl reads it there too."""
        lines = self._pid_file_lines()
        if len(lines) < 8 or lines[7].strip() != "ready":
            return False
        self._postmaster_pid = int(lines[0])
        return True

    # -- Steps of ending

    def _await_watchdog(self) -> None:
        """Wait for the postmaster's end, and make sure of it if that takes too long."""
        watchdog = self._watchdog
        assert watchdog is not None
        assert watchdog.stdin is not None
        if self._postmaster_pid is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                watchdog.wait(STOP_TIMEOUT_S)
        # To a watchdog that still runs, a closed pipe means: end the server, clean up.
        watchdog.stdin.close()
        watchdog.wait()
        self._watchdog = None
        self._postmaster_pid = None

    def _freeze(self) -> list[int]:
        """Stop the postmaster from forking, so that the list of pids is complete."""
        if not self.running or self._postmaster_pid is None:
            raise PostgresUnavailable("the server does not run")
        os.kill(self._postmaster_pid, signal.SIGSTOP)
        return self.pids()

    def _remove_leftovers(self) -> None:
        """Let the next start succeed even if another process got the old pid."""
        lines = self._pid_file_lines()
        if len(lines) >= 7 and len(lines[6].split()) == 2:
            remove_shared_memory(int(lines[6].split()[1]))
        (self.directory / "data" / "postmaster.pid").unlink(missing_ok=True)
        for leftover in self.directory.glob(".s.PGSQL.*"):
            leftover.unlink(missing_ok=True)

    def _pid_file_lines(self) -> list[str]:
        with contextlib.suppress(FileNotFoundError):
            return (self.directory / "data" / "postmaster.pid").read_text().splitlines()
        return []

    def _close_at_exit(self) -> None:
        # A forked copy of this process must not take the server from the original.
        if os.getpid() == self._owner_pid:
            self.close()


def _durability(durable: bool) -> dict[str, str]:
    if durable:
        return {"fsync": "on"}
    return {"fsync": "off", "full_page_writes": "off"}


def _environment() -> dict[str, str]:
    """Our environment without PG* and locale, either of which would change the server."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PG", "LC_", "LANG"))}
    return {**kept, "LC_ALL": "C"}


def _choose_free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _choose_temporary_root(account: Account | None) -> Path:
    """The usual temporary folder, unless it is too deep or closed to the account."""
    usual = Path(tempfile.gettempdir())
    room_bytes = len("/cairn-pg-12345678/.s.PGSQL.65535.lock")
    for root in (usual, Path("/tmp"), Path("/var/tmp")):
        short = len(os.fsencode(root)) + room_bytes <= SOCKET_PATH_BYTES_MAX
        if root.is_dir() and short and (account is None or account.may_enter(root)):
            return root
    raise PostgresUnavailable(f"no temporary folder suits a server's socket; tried {usual}")


def _quote_identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


async def _execute(dsn: str, statement: str) -> None:
    connection = await asyncpg.connect(dsn)
    try:
        await connection.execute(statement)
    finally:
        await connection.close()
