"""A Spark cluster of a master and workers, each a process, on 127.0.0.1."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Self

from cairnfs.testing.ports import HOST, choose_free_ports

_DEPLOY = "org.apache.spark.deploy"
_START_LIMIT_S = 120.0


class SparkCluster:
    """`with` starts and ends it; `master` is its URL."""

    def __init__(self, directory: Path, workers: int = 2) -> None:
        self._directory = directory
        self._workers = workers
        self._processes: list[subprocess.Popen[bytes]] = []
        port, self._web_port = choose_free_ports(2)
        self._port = port

    @property
    def master(self) -> str:
        return f"spark://{HOST}:{self._port}"

    def __enter__(self) -> Self:
        self._run("master", f"{_DEPLOY}.master.Master", "--port", str(self._port))
        self._wait_for("master", "New state: ALIVE", 1)
        for index in range(self._workers):
            self._run(
                f"worker{index}",
                f"{_DEPLOY}.worker.Worker",
                *("--cores", "1", "--memory", "1g"),
                *("--work-dir", str(self._directory / f"work{index}"), self.master),
            )
        self._wait_for("master", "Registering worker", self._workers)
        return self

    def __exit__(self, *_: object) -> None:
        for process in reversed(self._processes):
            process.terminate()  # a worker ends its executors
        for process in self._processes:
            process.wait()

    def kill_executor(self) -> None:
        """One that works for a job now, without a warning."""
        for worker in self._processes[1:]:
            for pid in _children(worker.pid):
                if b"CoarseGrainedExecutorBackend" in Path(f"/proc/{pid}/cmdline").read_bytes():
                    os.kill(pid, signal.SIGKILL)
                    return
        raise AssertionError("no executor is at work")

    def _run(self, name: str, program: str, *arguments: str) -> None:
        import pyspark

        command = [f"{Path(pyspark.__file__).parent}/bin/spark-class", program, "--host", HOST]
        environment = {
            **os.environ,
            "PYSPARK_PYTHON": sys.executable,
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_LOCAL_DIRS": str(self._directory / "local"),
            "SPARK_MASTER_WEBUI_PORT": str(self._web_port),
            "SPARK_WORKER_WEBUI_PORT": "0",
            "SPARK_NO_DAEMONIZE": "1",
        }
        with (self._directory / f"{name}.log").open("wb") as log:
            self._processes.append(
                subprocess.Popen([*command, *arguments], stdout=log, stderr=log, env=environment)
            )

    def _wait_for(self, name: str, words: str, count: int) -> None:
        log = self._directory / f"{name}.log"
        end_s = time.monotonic() + _START_LIMIT_S
        while len(re.findall(words, log.read_text(errors="replace"))) < count:
            assert time.monotonic() < end_s, log.read_text(errors="replace")
            time.sleep(0.1)


def _children(pid: int) -> list[int]:
    """Those of each of its threads: which one has started them is Java's own affair."""
    found = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(each) for children in found for each in children.read_text().split()]
