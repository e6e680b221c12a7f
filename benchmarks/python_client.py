"""The Python client beside hdfs-native and Hadoop's own, on one cluster, in one run.

    python benchmarks/python_client.py                   # our cluster, 1 GiB, 2,000 files of 10 KiB
    python benchmarks/python_client.py --url hdfs://host:8020 --rounds 5 --clients cairnfs,java

The clients take turns within each round, so that a disturbance meets all of them; a figure is
the median of the rounds.  Files have one replica: what is measured is the client, not the
pipeline.  Hadoop's client needs Java and runs `peer/src/DataBench.java`.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

# As a script its own folder is on the path, not the one that holds the package.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import cairnfs
from benchmarks.machine import describe_machine
from cairnfs.testing.cluster import Cluster

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "python_client.json"
FOLDER = "/bench-client"
MIB = 1 << 20
BLOCK_BYTES = 128 * MIB
SMALL_BYTES = 10 << 10
JAVA_SMALL_MAX = 300  # files that it writes with one thread; it waits for 400 ms after each


class Contestant:
    """A client that is measured; figures are rates, and its CPU seconds where known."""

    name: str

    def sequential(self, mib: int) -> dict[str, float]:
        raise NotImplementedError

    def small(self, count: int, threads: int) -> dict[str, float]:
        raise NotImplementedError


class Ours(Contestant):
    name = "cairnfs"

    def __init__(self, url: str) -> None:
        self._fs = cairnfs.connect(url)
        self._fs.mkdirs(FOLDER)

    def sequential(self, mib: int) -> dict[str, float]:
        path, piece = f"{FOLDER}/ours", os.urandom(MIB)

        def write() -> None:
            with self._fs.create(
                path, replication=1, block_size=BLOCK_BYTES, overwrite=True
            ) as file:
                for _ in range(mib):
                    file.write(piece)

        def read() -> None:
            with self._fs.open(path) as file:
                check(sum(len(part) for part in iter(lambda: file.read(MIB), b"")) == mib * MIB)

        try:
            return rates(mib, write, read)
        finally:
            self._fs.delete(path)

    def small(self, count: int, threads: int) -> dict[str, float]:
        folder, data = f"{FOLDER}/ours-small", os.urandom(SMALL_BYTES)

        def write(number: int) -> None:
            with self._fs.create(f"{folder}/{number}", replication=1) as file:
                file.write(data)

        def read(number: int) -> None:
            with self._fs.open(f"{folder}/{number}") as file:
                check(file.read() == data)

        self._fs.mkdirs(folder)
        try:
            return rates(count, *in_threads(count, threads, write, read))
        finally:
            self._fs.delete(folder, recursive=True)


class HdfsNative(Contestant):
    name = "hdfs-native"

    def __init__(self, url: str) -> None:
        import hdfs_native

        self._client = hdfs_native.Client(url)
        self._options = hdfs_native.WriteOptions(
            replication=1, block_size=BLOCK_BYTES, overwrite=True
        )
        self._client.mkdirs(FOLDER, 0o755, True)

    def sequential(self, mib: int) -> dict[str, float]:
        path, piece = f"{FOLDER}/native", os.urandom(MIB)

        def write() -> None:
            with self._client.create(path, self._options) as file:
                for _ in range(mib):
                    file.write(piece)

        def read() -> None:
            with self._client.read(path) as file:
                check(sum(len(part) for part in iter(lambda: file.read(MIB), b"")) == mib * MIB)

        try:
            return rates(mib, write, read)
        finally:
            self._client.delete(path)

    def small(self, count: int, threads: int) -> dict[str, float]:
        folder, data = f"{FOLDER}/native-small", os.urandom(SMALL_BYTES)

        def write(number: int) -> None:
            with self._client.create(f"{folder}/{number}", self._options) as file:
                file.write(data)

        def read(number: int) -> None:
            with self._client.read(f"{folder}/{number}") as file:
                check(file.read() == data)

        self._client.mkdirs(folder, 0o755, True)
        try:
            return rates(count, *in_threads(count, threads, write, read))
        finally:
            self._client.delete(folder, True)


class Java(Contestant):
    name = "java"

    def __init__(self, url: str) -> None:
        import pyspark

        if shutil.which("java") is None:
            raise ImportError("there is no java")
        self._url = url
        jars = Path(pyspark.__file__).parent / "jars"
        self._configuration = Path(tempfile.mkdtemp())
        (self._configuration / "core-site.xml").write_text("<configuration/>\n")
        self._command = ["java", "-Xmx1g", "-cp", f"{self._configuration}:{jars}/*"]

    def sequential(self, mib: int) -> dict[str, float]:
        row = self._run("seq", "1", str(mib), "1")
        return {
            "write": row["write_MiB_s"],
            "read": row["read_MiB_s"],
            "write_cpu_s": row["write_cli_cpu_s"],
            "read_cpu_s": row["read_cli_cpu_s"],
        }

    def small(self, count: int, threads: int) -> dict[str, float]:
        count = min(count, JAVA_SMALL_MAX * threads)
        row = self._run("small", str(count), str(SMALL_BYTES >> 10), str(threads), "1", "1")
        return {"write": row["write_files_s"], "read": row["read_files_s"]}

    def _run(self, *arguments: str) -> dict[str, Any]:
        source = str(HERE / "peer" / "src" / "DataBench.java")
        done = subprocess.run(
            [*self._command, source, self._url, "-", *arguments],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"DataBench failed:\n{done.stderr[-2000:]}")
        rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        found: dict[str, Any] = rows[-1]  # those before it are for warming up
        return found


CONTESTANTS: dict[str, type[Ours | HdfsNative | Java]] = {
    each.name: each for each in (Ours, HdfsNative, Java)
}


def rates(amount: int, write: Callable[[], None], read: Callable[[], None]) -> dict[str, float]:
    """How much of it was written and read in a second, and with how much of our CPU."""
    figures = {}
    for name, step in (("write", write), ("read", read)):
        began_s, cpu_s = time.perf_counter(), time.process_time()
        step()
        figures[name] = amount / (time.perf_counter() - began_s)
        figures[f"{name}_cpu_s"] = time.process_time() - cpu_s
    return figures


def in_threads(count: int, threads: int, *steps: Callable[[int], None]) -> list[Callable[[], None]]:
    """Each step, for all numbers up to `count`, by so many threads."""

    def run(step: Callable[[int], None]) -> None:
        def share(first: int) -> None:
            for number in range(first, count, threads):
                step(number)

        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(share, range(threads)))

    return [lambda step=step: run(step) for step in steps]  # type: ignore[misc]


def check(is_right: bool) -> None:
    if not is_right:
        raise RuntimeError("what was read is not what was written")


def measure(
    contestants: Sequence[Contestant], options: argparse.Namespace
) -> dict[str, dict[str, dict[str, float]]]:
    """Medians, by what was measured, client and figure."""
    parts: dict[str, Callable[[Contestant], dict[str, float]]] = {
        f"{options.mib} MiB, MiB/s": lambda client: client.sequential(options.mib)
    }
    for threads in options.threads:
        name = f"{options.files} files of 10 KiB, {threads} threads, files/s"
        parts[name] = lambda client, threads=threads: client.small(  # type: ignore[misc]
            options.files, threads
        )
    results: dict[str, dict[str, dict[str, float]]] = {}
    for name, run in parts.items():
        samples: dict[str, list[dict[str, float]]] = {each.name: [] for each in contestants}
        for client in contestants:
            if not isinstance(client, Java):  # which warms itself up
                client.sequential(64) if "MiB/s" in name else client.small(50, 1)
        for number in range(options.rounds):
            for client in contestants:
                print(f"round {number + 1}: {name}: {client.name}", file=sys.stderr, flush=True)
                samples[client.name].append(run(client))
        results[name] = {
            client: {
                figure: round(statistics.median(row[figure] for row in rows), 2)
                for figure in rows[0]
            }
            for client, rows in samples.items()
        }
    return results


def render(results: dict[str, dict[str, dict[str, float]]]) -> str:
    """A table; the ratio is ours to theirs."""
    lines = [
        f"{'':44}{'client':14}{'write':>9}{'ratio':>7}{'read':>9}{'ratio':>7}{'CPU s w/r':>14}"
    ]
    for name, clients in results.items():
        ours = clients.get(Ours.name)
        for client, row in clients.items():
            cells = []
            for figure in ("write", "read"):
                ratio = f"{ours[figure] / row[figure]:.2f}" if ours else ""
                cells.append(f"{row[figure]:>9.0f}{ratio:>7}")
            cpu = "/".join(f"{row[key]:.2f}" for key in ("write_cpu_s", "read_cpu_s") if key in row)
            lines.append(f"{name:44}{client:14}{''.join(cells)}{cpu:>14}")
            name = ""
    return "\n".join(lines)


@contextlib.contextmanager
def cluster_at(url: str, directory: Path) -> Iterator[str]:
    if url:
        yield url
        return
    with Cluster(directory / "cluster", datanodes=3, heartbeat_s=3.0, stale_after_s=30.0) as ours:
        yield ours.uri


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--url", default="", help="a cluster that runs; else one is started")
    parser.add_argument("--mib", type=int, default=1024)
    parser.add_argument("--files", type=int, default=2000)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 8])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--clients", default=",".join(CONTESTANTS))
    parser.add_argument("--directory", type=Path, default=None, help="where the cluster's data is")
    parser.add_argument("--json", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)

    with tempfile.TemporaryDirectory(dir=options.directory) as folder:
        machine = describe_machine(Path(folder), None)
        with cluster_at(options.url, Path(folder)) as url:
            contestants: list[Contestant] = []
            for name in options.clients.split(","):
                try:
                    contestants.append(CONTESTANTS[name](url))
                except ImportError as error:
                    print(f"without {name}: {error}", file=sys.stderr)
            results = measure(contestants, options)
    print(render(results))
    options.json.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"machine": machine, "url": options.url, "results": results}, indent=1)
    options.json.write_text(text + "\n")
    print(f"\nAll figures: {options.json}; load average before: {machine['load_average_before']}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
