"""The machine a benchmark runs on: what it is, and CPU time and memory of processes."""

from __future__ import annotations

import contextlib
import os
import platform
import statistics
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import apsw
import asyncpg

from cairnfs.build import is_compiled
from cairnfs.testing.postgres_server import PostgresServer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FDATASYNC_SAMPLES = 200
TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def describe_machine(directory: Path, server: PostgresServer | None) -> dict[str, Any]:
    """What a figure has to be read with."""
    return {
        "when": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "commit": _git("rev-parse", "--short", "HEAD"),
        "uncommitted_changes": bool(_git("status", "--porcelain", "--", "src", "benchmarks")),
        "system": platform.platform(),
        "cpu": _cpu_model(),
        "cores": len(os.sched_getaffinity(0)),
        "load_average_before": round(os.getloadavg()[0], 2),
        "python": platform.python_version(),
        "compiled": is_compiled(),
        "sqlite": apsw.sqlite_lib_version(),
        "apsw": apsw.apsw_version(),
        "asyncpg": asyncpg.__version__,
        "postgres": None if server is None else _postgres_version(server),
        "directory": str(directory),
        "file_system": _file_system(directory),
        **_fdatasync_ms(directory),
    }


class ServerCpu:
    """CPU time of a PostgreSQL server: the postmaster and all its children."""

    def __init__(self, server: PostgresServer) -> None:
        self._server = server

    def sample(self) -> dict[int, float]:
        """CPU seconds of each process until now."""
        return {pid: _cpu_s(pid) for pid in self._server.pids()}

    @staticmethod
    def between(before: dict[int, float], after: dict[int, float]) -> float:
        """Seconds used; a process that has ended meanwhile is left out."""
        return sum(used - before.get(pid, 0.0) for pid, used in after.items())


def _cpu_s(pid: int) -> float:
    with contextlib.suppress(OSError, ValueError, IndexError):
        # Nanoseconds, of a process with one thread, as PostgreSQL's are.
        return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9
    with contextlib.suppress(OSError, ValueError, IndexError):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS_PER_S
    return 0.0


def cpu_s(pid: int) -> float:
    """CPU seconds of a process with all its threads, and of its children that have ended."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return sum(map(int, fields[11:15])) / TICKS_PER_S
    return 0.0


def processes_below(pid: int) -> list[int]:
    """A process, its children, and theirs."""
    found = [pid]
    for each in found:
        for tasks in Path(f"/proc/{each}/task").glob("*/children"):
            with contextlib.suppress(OSError):
                found += map(int, tasks.read_text().split())
    return found


def _fdatasync_ms(directory: Path) -> dict[str, float]:
    """How long the disk takes to keep 4 KiB appended to a file."""
    took_s: list[float] = []
    with tempfile.NamedTemporaryFile(dir=directory) as file:
        for _ in range(FDATASYNC_SAMPLES):
            os.write(file.fileno(), b"x" * 4096)
            start = time.perf_counter()
            os.fdatasync(file.fileno())
            took_s.append(time.perf_counter() - start)
    return {
        "fdatasync_p50_ms": round(statistics.median(took_s) * 1000, 3),
        "fdatasync_p99_ms": round(percentile(took_s, 0.99) * 1000, 3),
    }


def percentile(values: Sequence[float], part: float) -> float:
    """The value that `part` of all do not exceed; 0 of none."""
    if not values:
        return 0.0
    return sorted(values)[min(len(values) - 1, int(len(values) * part))]


def _postgres_version(server: PostgresServer) -> str:
    return (server.directory / "data" / "PG_VERSION").read_text().strip()


def _cpu_model() -> str:
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _file_system(directory: Path) -> str:
    best = ("", "unknown")
    with contextlib.suppress(OSError):
        for line in Path("/proc/mounts").read_text().splitlines():
            mount, kind = line.split()[1:3]
            if directory.resolve().is_relative_to(mount) and len(mount) >= len(best[0]):
                best = (mount, kind)
    return best[1]


def _git(*arguments: str) -> str:
    root = Path(__file__).resolve().parent.parent
    done = subprocess.run(
        ["git", "-C", str(root), *arguments], capture_output=True, text=True, check=False
    )
    return done.stdout.strip()


def heap_mb(spark: SparkSession) -> float:
    """What is left in the driver's JVM, which also runs the tasks, when all is done."""
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    jvm.System.gc()
    runtime = jvm.Runtime.getRuntime()
    return float(runtime.totalMemory() - runtime.freeMemory()) / 1e6


def peak_mb() -> float:
    """The most memory that this process, the driver's Python, has ever had."""
    status = Path("/proc/self/status").read_text()
    (line,) = (line for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) / 1024
