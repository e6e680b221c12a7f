"""Processes in the background that outlive the command that started them.

A pid file names a process so that it cannot be mistaken for another that got its number
later: by its number, when it was started, since which boot, and its command line.

Invariant: nobody is signalled whose four marks do not all agree.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from enum import Enum
from pathlib import Path
from typing import NamedTuple

_POLL_S = 0.05
_START_TIME = 19  # among the fields of /proc/PID/stat that follow the name; see proc(5)


class State(Enum):
    """What has become of a process."""

    STOPPED = "stopped"  # as it was asked to, or never started
    DIED = "died"  # by itself, or with the machine
    RUNNING = "running"


class _Marks(NamedTuple):
    pid: int
    start_ticks: int
    boot: str
    command: list[str]


class Daemon:
    """A process with a pid file and a log."""

    def __init__(self, name: str, pid_file: Path, log: Path) -> None:
        self.name = name
        self.log = log
        self._pid_file = pid_file

    @property
    def pid(self) -> int | None:
        """Its number, while it runs."""
        marks = self._read()
        return marks.pid if marks is not None and _is_running(marks) else None

    @property
    def state(self) -> State:
        if not self._pid_file.exists():
            return State.STOPPED
        return State.DIED if self.pid is None else State.RUNNING

    @property
    def command(self) -> list[str]:
        """What it was started with, the last time."""
        marks = self._read()
        return [] if marks is None else marks.command

    @property
    def started_ms(self) -> int:
        """When it was started, by the clock on the wall."""
        return self._pid_file.stat().st_mtime_ns // 1_000_000

    def start(self, command: list[str], environment: dict[str, str]) -> None:
        """Start it in a session of its own: a Ctrl-C here does not reach it."""
        self.log.parent.mkdir(parents=True, exist_ok=True)
        self._pid_file.parent.mkdir(parents=True, exist_ok=True)
        append = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        pid = os.posix_spawn(
            command[0],
            command,
            environment,
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_OPEN, 1, self.log, append, 0o644),
                (os.POSIX_SPAWN_DUP2, 1, 2),
            ],
            setsid=True,
            setsigmask=(),
            setsigdef=(signal.SIGINT, signal.SIGTERM, signal.SIGPIPE),
        )
        try:
            start_ticks = _start_ticks(pid) or 0
            self._write(_Marks(pid, start_ticks, _boot(), command))
        except BaseException:
            os.kill(pid, signal.SIGKILL)  # nobody could find it again
            os.waitpid(pid, 0)
            raise

    def signal(self, number: signal.Signals) -> None:
        """Send a signal, if it still runs."""
        pid = self.pid
        if pid is not None:
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    def forget(self) -> None:
        """It was stopped on purpose."""
        self._pid_file.unlink(missing_ok=True)

    def _read(self) -> _Marks | None:
        try:
            pid, start_ticks, boot, command = self._pid_file.read_text().splitlines()
            return _Marks(int(pid), int(start_ticks), boot, json.loads(command))
        except (OSError, ValueError):  # none, or cut short by a crash: nobody's
            return None

    def _write(self, marks: _Marks) -> None:
        lines = [str(marks.pid), str(marks.start_ticks), marks.boot, json.dumps(marks.command)]
        temporary = self._pid_file.with_suffix(".tmp")
        temporary.write_text("\n".join(lines) + "\n")
        temporary.replace(self._pid_file)


def python_command(module: str, **options: object) -> list[str]:
    """What runs a module of ours; an option that is None is left out."""
    # -P: what lies in the current directory is not ours.
    command = [sys.executable, "-P", "-m", module]
    for name, value in options.items():
        if value is not None:
            command += [f"--{name.replace('_', '-')}", str(value)]
    return command


def stop(daemons: Sequence[Daemon], patience_s: float) -> list[Daemon]:
    """Ask all to end, and force those that have not after a while; returns these."""
    running = [daemon for daemon in daemons if daemon.pid is not None]
    for daemon in running:
        daemon.signal(signal.SIGTERM)
    stubborn = _wait(running, patience_s)
    for daemon in stubborn:
        daemon.signal(signal.SIGKILL)
    _wait(stubborn, patience_s)
    for daemon in daemons:
        daemon.forget()
    return stubborn


def _wait(daemons: Sequence[Daemon], patience_s: float) -> list[Daemon]:
    """Those that still run after a while."""
    deadline_s = time.monotonic() + patience_s
    running = list(daemons)
    while running := [daemon for daemon in running if daemon.pid is not None]:
        if time.monotonic() > deadline_s:
            break
        time.sleep(_POLL_S)
    return running


def _is_running(marks: _Marks) -> bool:
    with suppress(ChildProcessError):
        os.waitpid(marks.pid, os.WNOHANG)  # if it was our child, and has ended
    if marks.boot != _boot() or _start_ticks(marks.pid) != marks.start_ticks:
        return False
    try:
        command = Path(f"/proc/{marks.pid}/cmdline").read_bytes()
    except OSError:
        return False
    # For a moment after it was started, there is none yet.
    return command in (b"", b"".join(os.fsencode(part) + b"\0" for part in marks.command))


def _start_ticks(pid: int) -> int | None:
    """When a process was started, since boot; None if it has ended."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return None
    state, *fields = text.rpartition(")")[2].split()
    if state in "ZX":  # ended, but its parent has not noticed
        return None
    return int(fields[_START_TIME - 1])


def _boot() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
