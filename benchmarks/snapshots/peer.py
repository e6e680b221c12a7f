"""The same snapshots on a real HDFS and on CairnFS, through Hadoop's own client, in turns.

The HDFS is the one of `benchmarks/peer`; where it is not installed, this part is left out.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import cairnfs
from benchmarks.command import Progress
from benchmarks.namespaces import SQLITE
from benchmarks.servers import RealHdfs, check
from benchmarks.snapshots.bench import TOP, Row, Shelf
from cairnfs.testing.cluster import Cluster

# Of HDFS: what `peer` adds to the port of the NameNode for the others.
PORTS = (0, 870, 11, 12, 13, 21, 22, 23, 31, 32, 33)
FIRST_PORTS = range(29_000, 29_800, 40)
BUILD_THREADS = 32


def is_installed(home: Path) -> bool:
    return (home / "classes" / "SnapBench.class").exists()


async def measure_peer(
    shelf: Shelf, home: Path, sizes: Sequence[int], repeats: int, progress: Progress
) -> list[Row]:
    """Milliseconds of createSnapshot by the number of files, on both."""
    rows = []
    with _hdfs(home, progress) as hdfs:
        for size in sizes:
            progress(f"peer: building {size:,} files on HDFS")
            arguments = ("build", f"/n{size}", str(size), str(size), str(BUILD_THREADS))
            _run(hdfs, hdfs.url, *arguments)
            url = await shelf.copy(SQLITE, size)
            try:
                with _cairn(shelf, url, size) as cairn:
                    progress(f"peer: {repeats} snapshots of {size:,} files on both")
                    theirs = _create_ms(hdfs, hdfs.url, f"/n{size}", repeats)
                    ours = _create_ms(hdfs, cairn.uri, f"/{TOP}", repeats)
            finally:
                shelf.namespaces.drop(url)
            row: Row = {"files": size, "hdfs_ms": theirs, "cairnfs_ms": ours}
            rows.append({**row, "ratio": ours / theirs})
    return rows


@contextmanager
def _hdfs(home: Path, progress: Progress) -> Iterator[RealHdfs]:
    hdfs = RealHdfs(home, next(filter(_is_free, FIRST_PORTS)))
    progress("peer: starting HDFS")
    try:
        hdfs.start()
        yield hdfs
    finally:
        hdfs.stop()


@contextmanager
def _cairn(shelf: Shelf, url: str, size: int) -> Iterator[Cluster]:
    """A NameNode process on a namespace that has its files already."""
    directory = shelf.namespaces.directory / f"peer{size}"
    cluster = Cluster(directory, datanodes=0, store=url)
    try:
        cluster.namenodes[0].start()
        cluster.wait_for_namenode(cluster.namenodes[0])
        with cairnfs.connect(cluster.uri) as fs:
            fs.mkdirs(f"/{TOP}/d0")  # which the load generator looks at
        yield cluster
    finally:
        cluster.close()


def _is_free(first: int) -> bool:
    for port in PORTS:
        with socket.socket() as trial:
            if trial.connect_ex(("127.0.0.1", first + port)) == 0:
                return False
    return True


def _create_ms(hdfs: RealHdfs, url: str, directory: str, repeats: int) -> float:
    lines = _run(hdfs, url, "create", directory, str(repeats))
    return next(float(each["median_ms"]) for each in lines if each["step"] == "createSnapshot")


def _run(hdfs: RealHdfs, url: str, *arguments: str) -> list[Row]:
    """What the load generator says; the process ids would be to know the server's CPU."""
    done = hdfs.run("client", "SnapBench", url, "-", *arguments)
    check(done)
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
