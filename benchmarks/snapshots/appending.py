"""An append-heavy log under more and more snapshots (paper 003, figure 10).

Each transaction opens the log, appends a record and closes it, through the Python client on a
real cluster.  *Selective* is what CairnFS does: an append goes on in the last block, whatever
snapshots need of it.  *Always* is the setting `snapshots.copy_always`: the first append after
each snapshot has DataNodes copy the last block.  Both clusters take turns.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

import cairnfs
from benchmarks.command import Progress
from benchmarks.namespaces import POSTGRES, Namespaces
from benchmarks.snapshots.bench import Row
from cairnfs.testing.cluster import Cluster

SELECTIVE, ALWAYS = "selective", "always"
REPLICAS = 3
RECORD_BYTES = 1000
BLOCK_BYTES = 64 << 20  # of the paper's time
_VARIABLE = "CAIRN_SNAPSHOTS_COPY_ALWAYS"


class Log(NamedTuple):
    """How much is written."""

    snapshots: Sequence[int]  # how many of them, in each run
    transactions: int
    first_bytes: int  # that the log has before
    rounds: int


def measure_append(namespaces: Namespaces, kind: str, log: Log, progress: Progress) -> list[Row]:
    """Seconds of all transactions, and the bytes that disks have more than the log."""
    took: dict[tuple[str, int], list[Row]] = {}
    with ExitStack() as stack:
        clusters = {}
        for variant in (SELECTIVE, ALWAYS):
            progress(f"append, {kind}: starting a cluster, {variant}")
            clusters[variant] = stack.enter_context(_cluster(namespaces, kind, variant))
        for round_ in range(log.rounds):
            for count in log.snapshots:
                for variant, cluster in clusters.items():
                    progress(f"append, {kind}: round {round_ + 1}, {count} snapshots, {variant}")
                    run = _run(cluster, f"/{round_}-{count}", count, log)
                    took.setdefault((variant, count), []).append(run)
    rows = []
    for count in log.snapshots:
        row: Row = {"snapshots": count}
        for variant in (SELECTIVE, ALWAYS):
            runs = took[variant, count]
            row[f"{variant}_s"] = statistics.median(run["seconds"] for run in runs)
            row[f"{variant}_copied_mib"] = statistics.median(run["copied_mib"] for run in runs)
        rows.append({**row, "ratio": row["selective_s"] / row["always_s"]})
    for row in rows:
        row["selective_over_none"] = row["selective_s"] / rows[0]["selective_s"]
    return rows


@contextmanager
def _cluster(namespaces: Namespaces, kind: str, variant: str) -> Iterator[Cluster]:
    store = ""
    if kind == POSTGRES:
        assert namespaces.server is not None
        store = namespaces.server.create_database(f"log_{variant}")
    cluster = Cluster(namespaces.directory / f"log-{kind}-{variant}", store=store)
    os.environ[_VARIABLE] = str(variant == ALWAYS).lower()
    try:
        cluster.start()
    finally:
        del os.environ[_VARIABLE]
    try:
        yield cluster
    finally:
        cluster.close()
        if store:
            namespaces.drop(store)


def _run(cluster: Cluster, directory: str, snapshots: int, log: Log) -> Row:
    """The log of one run, in a directory of its own that is gone afterwards."""
    path = f"{directory}/log"
    # Before which transactions a snapshot is taken: all through the log.
    due = {log.transactions * number // snapshots for number in range(snapshots)}
    with cairnfs.connect(cluster.uri) as fs:
        fs.mkdirs(directory)
        fs.allow_snapshot(directory)
        with fs.create(path, replication=REPLICAS, block_size=BLOCK_BYTES) as file:
            file.write(bytes(log.first_bytes))
        start = time.perf_counter()
        for number in range(log.transactions):
            if number in due:
                fs.create_snapshot(directory, f"s{number}")
            with fs.append(path) as file:
                file.write(bytes(RECORD_BYTES))
        seconds = time.perf_counter() - start
        length = log.first_bytes + log.transactions * RECORD_BYTES
        status = fs.get_file_info(path)
        assert status is not None
        assert status.length_bytes == length
        cluster.wait_until(lambda: _stored(cluster) >= length * REPLICAS, "replicas are written")
        copied = _stored(cluster) - length * REPLICAS
        for number in due:
            fs.delete_snapshot(directory, f"s{number}")
        fs.delete(directory, recursive=True)
    cluster.wait_until(lambda: not _stored(cluster), "replicas are deleted", limit_s=120.0)
    return {"seconds": seconds, "copied_mib": copied / REPLICAS / (1 << 20)}


def _stored(cluster: Cluster) -> int:
    """The bytes of all replicas."""
    files = [file for node in cluster.datanodes for file in cluster.replica_files(node).values()]
    return sum(_size(file) for file in files)


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except FileNotFoundError:  # moved or deleted meanwhile
        return 0
