"""Hadoop's own client as tests run it: FsShell, from the jars that pyspark comes with."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from cairnfs.testing.cluster import Cluster

RUN_LIMIT_S = 120.0

# Commands are short: what takes long to warm up is left out.
JAVA_OPTIONS = ("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")

LOGGING = """\
rootLogger.level = warn
rootLogger.appenderRef.stderr.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{ISO8601} %p %c{2}: %m%n
logger.native.name = org.apache.hadoop.util.NativeCodeLoader
logger.native.level = error
"""


def hadoop_jars() -> Path:
    """Where the jars are; the test is skipped if they or Java are not there."""
    pyspark = pytest.importorskip("pyspark")
    if shutil.which("java") is None:
        pytest.skip("there is no Java")
    return Path(pyspark.__file__).parent / "jars"


class FsShell:
    """`hadoop fs`, configured for a cluster."""

    def __init__(
        self, cluster: Cluster, directory: Path, settings: Mapping[str, str] | None = None
    ) -> None:
        configuration = cluster.write_hadoop_configuration(directory, settings)
        (configuration / "log4j2.properties").write_text(LOGGING)
        path = f"{configuration}:{hadoop_jars()}/*"
        self._command = ["java", *JAVA_OPTIONS, "-cp", path, "org.apache.hadoop.fs.FsShell"]

    def run(self, *arguments: str, input: bytes | None = None) -> bytes:
        """Run to the end; the output.  A failure is an error, with what it said."""
        done = self.attempt(*arguments, input=input)
        if done.returncode:
            raise AssertionError(f"{arguments}: {done.returncode}\n{done.stderr.decode()}")
        return done.stdout

    def attempt(
        self, *arguments: str, input: bytes | None = None
    ) -> subprocess.CompletedProcess[bytes]:
        """Run to the end, whatever it is."""
        return subprocess.run(
            [*self._command, *arguments],
            input=input,
            capture_output=True,
            timeout=RUN_LIMIT_S,
            check=False,
        )

    @contextlib.contextmanager
    def begin(self, *arguments: str, **streams: int) -> Iterator[subprocess.Popen[bytes]]:
        """Run while the test does something else, and not longer."""
        with subprocess.Popen([*self._command, *arguments], **streams) as process:
            try:
                yield process
            finally:
                process.kill()


def peer_ports(pid: int) -> set[int]:
    """The ports that a process is connected to, on this machine."""
    sockets = set()
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        try:
            target = os.readlink(descriptor)
        except OSError:  # closed since
            continue
        if target.startswith("socket:["):
            sockets.add(target[len("socket:[") : -1])
    ports = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[9] in sockets and fields[3] == "01":  # established
                ports.add(int(fields[2].rpartition(":")[2], 16))
    return ports
