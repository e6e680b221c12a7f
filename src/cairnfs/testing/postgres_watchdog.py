"""The parent of a PostgreSQL server: ends it when its own parent goes away.

A program, not a module to import: `python postgres_watchdog.py DIRECTORY UID:GID|-
COMMAND...`.  It uses the standard library only, so it runs wherever Python does.

Invariant: the server does not outlive this process's parent, however that ends.
"""

from __future__ import annotations

import os
import select
import shutil
import signal
import subprocess
import sys

PARENT_CHECK_INTERVAL_S = 1.0


def _watch(directory: str, account: str, command: list[str]) -> int:
    """Run the server; when our parent goes away, end it and delete its directory."""
    parent_pid = os.getppid()
    uid, gid = map(int, account.split(":")) if account != "-" else (None, None)
    server = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        user=uid,
        group=gid,
        extra_groups=None if uid is None else [],
    )
    if _await_exit_or_orphaned(server.pid, parent_pid):
        return server.wait()
    # Immediate shutdown: no checkpoint, but shared memory is given back.
    server.send_signal(signal.SIGQUIT)
    try:
        server.wait(timeout=10)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()
    shutil.rmtree(directory, ignore_errors=True)
    return 1


def _await_exit_or_orphaned(server_pid: int, parent_pid: int) -> bool:
    """True once the server has exited; False once nobody holds the pipe to us.

    A forked copy of the parent may hold the pipe open, hence the look at the parent.
    """
    exited_fd = os.pidfd_open(server_pid)
    while True:
        ready, _, _ = select.select([exited_fd, 0], [], [], PARENT_CHECK_INTERVAL_S)
        if exited_fd in ready:
            return True
        if 0 in ready or os.getppid() != parent_pid:
            return False


if __name__ == "__main__":
    sys.exit(_watch(sys.argv[1], sys.argv[2], sys.argv[3:]))
