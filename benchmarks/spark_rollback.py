"""A roll-back and the deletion of its snapshots by Spark, beside the NameNode's own.

By `python -m benchmarks.spark_rollback`.

A directory with so many inodes is rolled back to a snapshot.  That is one transaction; what
counts is how long it takes until all rows that it has replaced were looked at:

- **own**: one call, then it is waited until the NameNode's duty has done the rest;
- **spark**: `cairnfs.jobs.rollback`, on `local[2]`.

Then both snapshots are deleted, the one gone back to and the one of what was given up.  Now
all replaced rows go, and all others get rows of their own: again by the duty, and by
`cairnfs.jobs.reclaim`.  Each way has a namespace of its own, on SQLite with one NameNode, and
on PostgreSQL with two.  CPU seconds are of the NameNodes, and hold on a busy machine as well.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.spark.sessions import make_session

import cairnfs
from benchmarks.machine import cpu_s, describe_machine, peak_mb
from benchmarks.namespaces import POSTGRES, SQLITE, TOP, fill_cluster
from benchmarks.tables import table
from cairnfs import jobs
from cairnfs.testing.cluster import Cluster
from cairnfs.testing.postgres_server import PostgresServer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RESULTS = Path(__file__).resolve().parent / "results" / "spark_rollback.json"
OWN, SPARK = "own", "spark"
POLL_S = 0.25  # a look lists what is left, which costs the NameNode as well

Figures = dict[str, Any]


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parse(arguments)
    with ExitStack() as stack:
        directory = Path(
            stack.enter_context(
                tempfile.TemporaryDirectory(prefix="cairn-bench-", dir=options.directory)
            )
        )
        server = None
        if POSTGRES in options.stores:
            server = stack.enter_context(PostgresServer(durable=True))
        figures = []
        for store in options.stores:
            for way in (OWN, SPARK):
                print(f"{store}, {way}: {options.inodes:,} inodes ...", flush=True)
                url = ""
                if store == POSTGRES:
                    assert server is not None
                    url = server.create_database(f"rollback_{way}")
                figures.append(measure(directory, store, way, options.inodes, url))
                print(f"{store}, {way}: {json.dumps(figures[-1])}", flush=True)
        results = {"machine": describe_machine(directory, server), "figures": figures}
    print(render(figures))
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps(results, indent=1) + "\n")
    print(f"\nAll figures: {options.json}")
    return 0


def measure(directory: Path, store: str, way: str, inodes: int, url: str) -> Figures:
    """One namespace, one way."""
    place = directory / f"{store}-{way}"
    namenodes = 2 if store == POSTGRES else 1
    with Cluster(place, datanodes=0, namenodes=namenodes, store=url) as cluster:
        fill_cluster(cluster, inodes, url)
        addresses = ",".join(node.address for node in cluster.namenodes)
        with cairnfs.connect(f"hdfs://{addresses}") as fs, ExitStack() as stack:
            spark = _start_spark(fs.url, directory, stack) if way == SPARK else None
            bench = _Bench(cluster, fs, spark)
            return {"store": store, "way": way, "inodes": inodes, **bench.run()}


def _start_spark(url: str, directory: Path, stack: ExitStack) -> SparkSession:
    """With a task that was run once: how long it takes to start is not what is measured."""
    quiet = {"spark.ui.showConsoleProgress": "false"}
    session = make_session({}, directory / "spark", quiet)
    stack.callback(session.stop)
    jobs.plan_reclaim(url, spark=session)
    return session


class _Bench:
    """A namespace that is rolled back, and whose snapshots are deleted."""

    def __init__(
        self, cluster: Cluster, fs: cairnfs.FileSystem, spark: SparkSession | None
    ) -> None:
        self._cluster = cluster
        self._fs = fs
        self._spark = spark

    def run(self) -> Figures:
        fs, top = self._fs, f"/{TOP}"
        fs.allow_snapshot(top)
        fs.create_snapshot(top, "s")
        fs.mkdirs(f"{top}/later")
        figures = self._timed("rollback", self._roll_back)
        assert not fs.exists(f"{top}/later")
        for snapshot in fs.list_snapshots(top):
            fs.delete_snapshot(top, snapshot.status.name)
        figures |= self._timed("reclaim", self._reclaim)
        figures["driver_python_mb"] = peak_mb()
        return figures

    def _roll_back(self) -> Figures:
        url = f"{self._fs.url}/{TOP}"
        if self._spark is not None:
            done = jobs.rollback(url, "s", spark=self._spark)
            return {"seen_s": done.rollback_seconds, "rows": done.rows, "rounds": done.rounds}
        start = time.perf_counter()
        self._fs.rollback_snapshot(f"/{TOP}", "s")
        seen_s = time.perf_counter() - start
        self._wait()
        return {"seen_s": seen_s}

    def _reclaim(self) -> Figures:
        if self._spark is not None:
            done = jobs.reclaim(self._fs.url, spark=self._spark)
            return {"rows": done.rows, "rounds": done.rounds}
        self._wait()
        return {}

    def _wait(self) -> None:
        while not self._fs.snapshot_work().is_done:
            time.sleep(POLL_S)

    def _timed(self, name: str, action: Callable[[], Figures]) -> Figures:
        """Until nothing is left."""
        start, used = time.perf_counter(), self._cpu_s()
        figures = action()
        took_s = time.perf_counter() - start
        assert self._fs.snapshot_work().is_done
        figures |= {"s": took_s, "cpu_s": self._cpu_s() - used}
        return {f"{name}_{key}": value for key, value in figures.items()}

    def _cpu_s(self) -> float:
        return sum(cpu_s(namenode.pid) for namenode in self._cluster.namenodes)


def render(figures: Sequence[Figures]) -> str:
    rollback = ("rollback_seen_s", "rollback_s", "rollback_cpu_s")
    reclaim = ("reclaim_s", "reclaim_cpu_s", "driver_python_mb")
    names = ("store", "way", "inodes", *rollback, *reclaim)
    heads = [name.replace("_s", " s").replace("_", " ") for name in names]
    return table(heads, ([each[name] for name in names] for each in figures))


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.spark_rollback", description=__doc__.split("\n\n")[0]
    )
    parser.add_argument("--inodes", type=int, default=2_000_000)
    parser.add_argument(
        "--stores", type=lambda text: tuple(text.split(",")), default=(SQLITE, POSTGRES)
    )
    parser.add_argument("--json", type=Path, default=RESULTS, metavar="FILE")
    parser.add_argument("--directory", type=Path, help="where the SQLite files are made")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    raise SystemExit(main())
