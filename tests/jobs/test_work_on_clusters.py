"""`rollback`, `reclaim` and `satisfy` on a Spark cluster of two workers, with nodes killed."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from benchmarks.namespaces import fill as fill_store
from tests.jobs.standalone import SparkCluster
from tests.jobs.test_clusters import run_driver
from tests.jobs.test_kills import LIMIT_S, wait_until
from tests.jobs.test_work import (
    check_rolled_back,
    fill,
    kill_driver_when_rolled_back,
    names,
)
from tests.jobs.trees import read_tree, write

import cairnfs
from cairnfs.testing.cluster import Cluster

pytestmark = [pytest.mark.java, pytest.mark.long, pytest.mark.timeout(1800)]

DIRECTORIES, FILES = 300, 100


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "postgres":
        dsn: str = request.getfixturevalue("postgres_dsn")
        return dsn
    return f"sqlite://{tmp_path}/cluster/namespace.db"


@pytest.fixture
def cluster(store: str, tmp_path: Path) -> Iterator[Cluster]:
    """One NameNode on SQLite, two on PostgreSQL."""
    with Cluster(
        tmp_path / "cluster",
        datanodes=1,
        namenodes=2 if store.startswith("postgres") else 1,
        store=store,
        storage_types=("DISK", "ARCHIVE"),
    ) as cluster:
        yield cluster


@pytest.fixture
def fs(cluster: Cluster) -> Iterator[cairnfs.FileSystem]:
    with cairnfs.connect(f"hdfs://{','.join(n.address for n in cluster.namenodes)}") as fs:
        yield fs


def safety_of(fs: cairnfs.FileSystem, path: str = "/data") -> str:
    (name,) = (name for name in names(fs, path) if name != "s1")
    return name


def make_many(cluster: Cluster, store: str) -> None:
    """Rows straight to the store, which nobody has open then: more than a duty does at once."""
    for node in cluster.namenodes:
        node.stop()
    asyncio.run(fill_store(store, "many", [(f"{n}", FILES) for n in range(DIRECTORIES)]))
    for node in cluster.namenodes:
        node.start()
        cluster.wait_for_namenode(node)


def has_killed(spark: SparkCluster) -> bool:
    """Executors come when there are tasks."""
    try:
        spark.kill_executor()
    except AssertionError:
        return False
    return True


def counts(fs: cairnfs.FileSystem, path: str) -> tuple[int, int]:
    summary = fs.get_content_summary(path)
    return summary.files, summary.directories


def test_an_executor_and_a_namenode_are_killed(
    cluster: Cluster, store: str, fs: cairnfs.FileSystem, tmp_path: Path
) -> None:
    make_many(cluster, store)
    fs.allow_snapshot("/many")
    fs.create_snapshot("/many", "s1")
    fs.delete("/many/3", recursive=True)
    whole, less = counts(fs, "/many/.snapshot/s1"), counts(fs, "/many")
    with SparkCluster(tmp_path) as spark, ThreadPoolExecutor(1) as pool:
        job = pool.submit(run_driver, "rollback", spark.master, f"{fs.url}/many", "s1")
        wait_until(lambda: len(names(fs, "/many")) > 1 or job.done(), "it is rolled back")
        wait_until(lambda: has_killed(spark) or job.done(), "an executor is killed")
        cluster.namenodes[0].kill()
        if len(cluster.namenodes) == 1:
            cluster.namenodes[0].start()
        assert not job.done()
        job.result()
        safety = safety_of(fs, "/many")
        assert not safety.startswith("unfinished")
        assert (counts(fs, "/many"), counts(fs, f"/many/.snapshot/{safety}")) == (whole, less)
        fs.delete_snapshot("/many", "s1")
        fs.delete_snapshot("/many", safety)
        run_driver("reclaim", spark.master, fs.url)
    assert fs.snapshot_work().is_done
    assert counts(fs, "/many") == whole
    assert len(list(fs.list_status("/many/3"))) == FILES


def test_a_driver_is_killed(cluster: Cluster, fs: cairnfs.FileSystem, tmp_path: Path) -> None:
    fill(fs)
    before = read_tree(fs, "/data")
    with SparkCluster(tmp_path) as spark:
        kill_driver_when_rolled_back(fs, tmp_path / "log", spark.master)
        run_driver("rollback", spark.master, f"{fs.url}/data", "s1")
    check_rolled_back(fs, before, safety_of(fs))


def test_policies(cluster: Cluster, fs: cairnfs.FileSystem, tmp_path: Path) -> None:
    for n in range(40):
        write(fs, f"/data/{n}/file", b"1" * 100, replication=1)
    fs.set_storage_policy("/data", "COLD")
    with SparkCluster(tmp_path) as spark:
        command = [sys.executable, "-m", "cairnfs.cli", "job", "satisfy", "/data", "--json"]
        done = subprocess.run(
            [*command, "--fs", fs.url, "--master", spark.master],
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
        )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["unsatisfied_blocks"] == 0
    for n in range(40):
        (block,) = fs.get_block_locations(f"/data/{n}/file")
        assert block.storage_types == ["ARCHIVE"]
