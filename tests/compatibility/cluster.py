"""CairnFS as processes: a NameNode with a new namespace, and DataNodes."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

DATANODES = 3
START_TIMEOUT_S = 30.0


@contextmanager
def running_cluster(directory: Path) -> Iterator[str]:
    """A cluster until the end of the block; its URI."""
    with ExitStack() as started:
        port = free_port()
        store = f"sqlite://{directory}/namespace.db"
        _start(
            started, directory / "namenode.log", "cairnfs.namenode",
            "--store", store, "--port", str(port), "--format",
        )  # fmt: skip
        _wait_for_port(port, directory / "namenode.log")
        for number in range(DATANODES):
            data = directory / f"datanode-{number}"
            data.mkdir()
            log = directory / f"datanode-{number}.log"
            _start(
                started, log, "cairnfs.datanode",
                "--namenode", f"127.0.0.1:{port}", "--data", str(data), "--heartbeat", "1",
                "--port", str(free_port()), "--ipc-port", str(free_port()), "--http-port", "0",
            )  # fmt: skip
            _wait_for_text(log, "reported")
        yield f"hdfs://127.0.0.1:{port}"


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port


def _start(started: ExitStack, log: Path, module: str, *arguments: str) -> None:
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            stdout=output,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )

    def stop() -> None:
        process.terminate()
        process.wait(START_TIMEOUT_S)

    started.callback(stop)


def _wait_for_port(port: int, log: Path) -> None:
    deadline_s = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline_s:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.05)
    raise AssertionError(f"nobody listens on port {port}:\n{log.read_text()}")


def _wait_for_text(log: Path, text: str) -> None:
    deadline_s = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline_s:
        if text in log.read_text():
            return
        time.sleep(0.05)
    raise AssertionError(f"{log.name} never says {text!r}:\n{log.read_text()}")
