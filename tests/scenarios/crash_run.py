"""A writer flushes records while its client, DataNodes and the NameNode are killed or stopped.

    python -m tests.scenarios.crash_run --seed 1 --seconds 120 [--two]

What is chosen follows from the seed; when it happens depends on the machine too.  After each
session the file is recovered by another client, and must hold every record that was
acknowledged, nothing that was not written, and be closed in bounded time.
"""

from __future__ import annotations

import argparse
import logging
import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.scenarios.jvm import JavaError, Jvm

from cairnfs.testing.cluster import Cluster, Node
from cairnfs.testing.postgres_server import PostgresServer

RECORD_BYTES_MAX = 8000
SESSION_RECORDS_MAX = 60
FILES_MAX = 8
CLOSE_LIMIT_S = 120.0
READ_LIMIT_S = 120.0

CLIENT = {
    "dfs.client.retry.policy.enabled": "true",
    "dfs.client.retry.policy.spec": "300,100,1000,60",
    "dfs.client.block.write.replace-datanode-on-failure.best-effort": "true",
    "dfs.client.socket-timeout": "5000",
    "ipc.client.connect.timeout": "3000",
    "ipc.client.rpc-timeout.ms": "15000",
}


@dataclass
class File:
    """What was written to a file, and how much of it was acknowledged."""

    path: str
    written: bytearray = field(default_factory=bytearray)
    acknowledged_bytes: int = 0


@dataclass
class Result:
    """What a run came to."""

    seed: int
    faults: Counter[str] = field(default_factory=Counter)
    sessions: int = 0
    failed_sessions: int = 0
    records: int = 0
    acknowledged_bytes: int = 0
    longest_close_s: float = 0.0
    lost: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        faults = ", ".join(f"{count} {name}" for name, count in sorted(self.faults.items()))
        return (
            f"seed {self.seed}: {sum(self.faults.values())} faults ({faults}); {self.sessions}"
            f" sessions, {self.failed_sessions} of them broken; {self.records} records,"
            f" {self.acknowledged_bytes} bytes acknowledged; closed after"
            f" {self.longest_close_s:.1f} s at most; lost: {self.lost or 0}"
        )


def say(what: str) -> None:
    """For whoever wants to know what led to a loss."""
    print(f"{time.strftime('%H:%M:%S')} {what}", flush=True)


class Faults:
    """Does harm in a thread of its own, one thing after another, and repairs it.

    The thread lives until `end`: the nodes that it starts go when it does.
    """

    def __init__(self, cluster: Cluster, kill_client: Callable[[], None], seed: int) -> None:
        self._cluster = cluster
        self._kill_client = kill_client
        self._random = random.Random(f"faults {seed}")
        self._stopping = threading.Event()
        self._repaired = threading.Event()
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._work)
        self.done: Counter[str] = Counter()

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """No more harm; everything runs."""
        self._stopping.set()
        self._repaired.wait()

    def end(self) -> None:
        self._ending.set()
        self._thread.join()

    def _work(self) -> None:
        try:
            self._do_harm()
        finally:
            self._repaired.set()
            self._ending.wait()

    def _do_harm(self) -> None:
        while not self._stopping.wait(self._random.uniform(0.5, 6.0)):
            name, fault = self._random.choice(
                (
                    ("clients killed", self._kill_client),
                    ("clients killed", self._kill_client),
                    ("DataNodes killed", lambda: self._kill(1)),
                    ("DataNodes killed", lambda: self._kill(2)),
                    ("DataNodes killed", lambda: self._kill(3)),
                    ("DataNodes stopped", lambda: self._pause(self._cluster.datanodes)),
                    ("NameNodes killed", self._kill_namenode),
                    ("NameNodes stopped", lambda: self._pause(self._cluster.namenodes)),
                )
            )
            say(name)
            fault()
            say(f"{name}: repaired")
            self.done[name] += 1

    def _kill(self, count: int) -> None:
        victims = self._random.sample(self._cluster.datanodes, count)
        for node in victims:
            node.kill()
        self._stopping.wait(self._random.uniform(0.0, 8.0))
        for node in victims:
            node.start()

    def _kill_namenode(self) -> None:
        namenode = self._random.choice(self._cluster.namenodes)
        namenode.kill()
        self._stopping.wait(self._random.uniform(0.0, 3.0))
        namenode.start()

    def _pause(self, nodes: list[Node]) -> None:
        pid = self._random.choice(nodes).pid
        os.kill(pid, signal.SIGSTOP)
        self._stopping.wait(self._random.uniform(0.5, 8.0))
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


class CrashRun:
    """Writes, and checks what was written."""

    def __init__(self, cluster: Cluster, directory: Path, seed: int) -> None:
        self._cluster = cluster
        self._directory = directory
        self._random = random.Random(f"records {seed}")
        self._writer: Jvm | None = None
        self._reader = Jvm(cluster, directory / "reader", CLIENT)
        self._files: list[File] = []
        self.result = Result(seed)

    def run(self, seconds: float) -> Result:
        faults = Faults(self._cluster, self._kill_writer, self.result.seed)
        faults.start()
        try:
            deadline_s = time.monotonic() + seconds
            while time.monotonic() < deadline_s and not self.result.lost:
                self._write_and_check()
            faults.stop()
            self.result.faults = faults.done
            for file in self._files:  # once more, when all is quiet
                self._check(file)
            return self.result
        finally:
            faults.stop()
            faults.end()

    def close(self) -> None:
        self._kill_writer()
        self._reader.kill()

    def _write_and_check(self) -> None:
        if (len(self._files) < FILES_MAX and self._random.random() < 0.3) or not self._files:
            self._files.append(File(f"/file{len(self._files)}"))
        file = self._random.choice(self._files)
        self.result.sessions += 1
        try:
            self._write(file)
        except Exception as error:  # whatever broke it: py4j, Java, the network
            say(f"{file.path}: {str(error)[:150]}")
            self.result.failed_sessions += 1
        self._recover(file)
        self._check(file)
        say(f"{file.path}: {file.acknowledged_bytes} bytes are there")

    def _write(self, file: File) -> None:
        if self._writer is None:
            self._writer = Jvm(self._cluster, self._directory / "writer", CLIENT)
        writer = self._writer
        out = writer.append(file.path) if file.written else writer.create(file.path)
        for _ in range(self._random.randrange(1, SESSION_RECORDS_MAX)):
            record = self._random.randbytes(self._random.randrange(1, RECORD_BYTES_MAX))
            file.written += record
            out.write(record)
            if self._random.random() < 0.1:
                out.hsync(update_length=True)
            else:
                out.hflush()
            file.acknowledged_bytes = len(file.written)
            self.result.records += 1
            self.result.acknowledged_bytes += len(record)
        if self._random.random() < 0.5:
            out.close()
        elif self._random.random() < 0.5:
            self._kill_writer()

    def _recover(self, file: File) -> None:
        """The file is closed, whatever has become of its writer."""
        began_s = time.monotonic()
        while time.monotonic() - began_s < CLOSE_LIMIT_S:
            try:
                if self._reader.recover_lease(file.path):
                    closed_s = time.monotonic() - began_s
                    self.result.longest_close_s = max(self.result.longest_close_s, closed_s)
                    return
            except JavaError as error:
                if "FileNotFoundException" in str(error) and not file.acknowledged_bytes:
                    return  # its create was never answered
            time.sleep(0.2)
        self.result.lost.append(f"{file.path} was not closed within {CLOSE_LIMIT_S} s")

    def _check(self, file: File) -> None:
        """It holds all that was acknowledged, and the beginning of what was written."""
        began_s = time.monotonic()
        while True:
            try:
                found = self._reader.read(file.path)
                break
            except JavaError as error:
                if "FileNotFoundException" in str(error) and not file.acknowledged_bytes:
                    found = b""
                    break
                if time.monotonic() - began_s > READ_LIMIT_S:
                    self.result.lost.append(f"{file.path} cannot be read: {error}")
                    return
                time.sleep(0.5)
        if len(found) < file.acknowledged_bytes or not file.written.startswith(found):
            self.result.lost.append(
                f"{file.path}: {file.acknowledged_bytes} bytes were acknowledged, {len(found)}"
                f" are there, {'as' if file.written.startswith(found) else 'other than'} written"
            )
        file.written = bytearray(found)
        file.acknowledged_bytes = len(found)

    def _kill_writer(self) -> None:
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.kill()


def run(directory: Path, seed: int, seconds: float, postgres_dsn: str = "") -> Result:
    """A cluster of its own, harmed for so long; on a PostgreSQL, with two NameNodes."""
    namenodes = 2 if postgres_dsn else 1
    with Cluster(directory / "cluster", namenodes=namenodes, store=postgres_dsn) as cluster:
        crashes = CrashRun(cluster, directory, seed)
        try:
            result = crashes.run(seconds)
            if result.lost:
                print(cluster.log_tails(100))
            return result
        finally:
            crashes.close()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--two", action="store_true", help="NameNodes, on a PostgreSQL")
    given = parser.parse_args()
    for name in (None, "py4j"):  # which tells of every connection that breaks
        logging.getLogger(name).setLevel(logging.CRITICAL)
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        dsn = ""
        if given.two:
            dsn = stack.enter_context(PostgresServer(durable=False)).create_database("crashes")
        result = run(directory, given.seed, given.seconds, dsn)
    print(result)
    return bool(result.lost)


if __name__ == "__main__":
    sys.exit(main())
