"""The processes of a PostgreSQL server, as Linux tells of them in /proc."""

from __future__ import annotations

import ctypes
import os
import time
from pathlib import Path

from cairnfs.testing.postgres_binaries import PostgresUnavailable

POLL_INTERVAL_S = 0.02


def children_of(parent_pid: int) -> list[int]:
    children = []
    for entry in os.listdir("/proc"):
        if entry.isdigit() and state_and_parent(int(entry))[1] == parent_pid:
            children.append(int(entry))
    return children


def state_and_parent(pid: int) -> tuple[str, int]:
    """State letter and parent's pid; ("X", 0) for a process that is gone."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return "X", 0
    # The name in parentheses may itself hold spaces and parentheses.
    state, parent = text.rpartition(")")[2].split()[:2]
    return state, int(parent)


def await_gone(pids: list[int], timeout_s: float) -> None:
    """Wait for killed processes; a zombie nobody reaps holds nothing any more."""
    deadline_s = time.monotonic() + timeout_s
    while any(state_and_parent(pid)[0] not in "XZ" for pid in pids):
        if time.monotonic() > deadline_s:
            raise PostgresUnavailable("a server process survived SIGKILL")
        time.sleep(POLL_INTERVAL_S)


def remove_shared_memory(segment_id: int) -> None:
    """Remove a System V segment: a killed postmaster leaves one, which only it would."""
    ipc_rmid = 0
    ctypes.CDLL(None).shmctl(segment_id, ipc_rmid, None)
