"""The two servers that are measured beside each other: a real Apache HDFS (`peer/`) and CairnFS.

Both are the same kind of cluster: one NameNode, three DataNodes, loopback, this disk.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cairnfs.testing.cluster import Cluster

PEER = Path(__file__).parent / "peer" / "peer"

HDFS = "HDFS"
CAIRNFS = "CairnFS"


class Server(ABC):
    """A cluster that is measured."""

    name: str
    url: str

    @abstractmethod
    def pids(self) -> str:
        """Its processes, the NameNode first."""

    def namenode_pid(self) -> str:
        return self.pids().split(",")[0]

    @abstractmethod
    def start_namenode(self) -> None:
        """Start it; it answers some time later."""

    @abstractmethod
    def kill_namenode(self) -> None:
        """End it at once, without a chance to clean up; it may have ended already."""


class RealHdfs(Server):
    name = HDFS

    def __init__(self, home: Path, port: int) -> None:
        self.url = f"hdfs://127.0.0.1:{port}"
        self._environment = {**os.environ, "PEER_HOME": str(home), "PEER_PORT": str(port)}
        self._environment["PYTHON"] = sys.executable

    def run(self, *arguments: str, fs: str = "", **more: str) -> subprocess.CompletedProcess[str]:
        environment = {**self._environment, **more}
        if fs:
            environment["FS"] = fs
        return subprocess.run(
            [str(PEER), *arguments], env=environment, text=True, capture_output=True, check=False
        )

    def start(self) -> None:
        home = Path(self._environment["PEER_HOME"])
        if not (home / "classes" / "MetaBench.class").exists():
            show("installing Apache HDFS 3.3.6 (about a minute)")
            check(self.run("install"))
        check(self.run("build"))  # the load generators as they are today
        check(self.run("configure"))  # for our port
        check(self.run("format"))
        check(self.run("start"))

    def stop(self) -> None:
        self.run("stop")

    def pids(self) -> str:
        return self.run("pids").stdout.strip()

    def start_namenode(self) -> None:
        check(self.run("start_namenode"))

    def kill_namenode(self) -> None:
        check(self.run("kill_namenode"))

    def save_namespace(self) -> None:
        """Write its image, so that it need not replay its log when it starts."""
        for command in ("-safemode enter", "-saveNamespace", "-safemode leave"):
            check(self.run("dfsadmin", *command.split(), fs=self.url))


class Cairn(Server):
    name = CAIRNFS

    def __init__(self, directory: Path) -> None:
        # As patient as nodes are unless told otherwise, and not as tests need them.
        self._cluster = Cluster(
            directory, datanodes=3, heartbeat_s=3.0, stale_after_s=30.0, dead_after_s=630.0
        )
        self.url = self._cluster.uri

    def start(self) -> None:
        self._cluster.start()

    def stop(self) -> None:
        self._cluster.close()

    def pids(self) -> str:
        nodes = (*self._cluster.namenodes, *self._cluster.datanodes)
        return ",".join(str(node.pid) for node in nodes)

    def start_namenode(self) -> None:
        self._cluster.namenodes[0].start()

    def kill_namenode(self) -> None:
        self._cluster.namenodes[0].kill()


@contextmanager
def both_servers(peer_home: Path) -> Iterator[tuple[RealHdfs, Cairn]]:
    """Both clusters, up; and gone when it is over, however it ends."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with tempfile.TemporaryDirectory(prefix="cairnfs-bench-") as directory:
        hdfs, cairn = RealHdfs(peer_home, 29000), Cairn(Path(directory, "cairnfs"))
        try:
            show("starting both clusters")
            hdfs.start()
            cairn.start()
            yield hdfs, cairn
        finally:
            hdfs.stop()
            cairn.stop()


def load(hdfs: RealHdfs, program: str, *arguments: str) -> list[dict[str, Any]]:
    """Run a load generator; its lines of JSON."""
    done = hdfs.run("client", program, *arguments)
    check(done)
    rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return [row for row in rows if row["rep"] >= 0]


def check(done: subprocess.CompletedProcess[str]) -> None:
    if done.returncode:
        raise SystemExit(f"bench-peer: {' '.join(done.args[1:3])} failed:\n{done.stderr[-2000:]}")


def show(text: str) -> None:
    print(f"bench-peer: {text}", file=sys.stderr, flush=True)
