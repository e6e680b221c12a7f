"""`rollback`, `reclaim` and `satisfy` on a Spark cluster of two workers, with nodes killed."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
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
from cairnfs.jobs.rolling_back import unfinished_name
from cairnfs.testing.cluster import Cluster

pytestmark = [pytest.mark.java, pytest.mark.long, pytest.mark.timeout(1800)]

MANY = 400  # directories: so that a job takes a while


@pytest.fixture(params=["sqlite", "postgres"])
def cluster(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Cluster]:
    """One NameNode on SQLite, two on PostgreSQL."""
    is_shared = request.param == "postgres"
    with Cluster(
        tmp_path / "cluster",
        datanodes=1,
        namenodes=2 if is_shared else 1,
        store=request.getfixturevalue("postgres_dsn") if is_shared else "",
        storage_types=("DISK", "ARCHIVE"),
    ) as cluster:
        yield cluster


@pytest.fixture
def fs(cluster: Cluster) -> Iterator[cairnfs.FileSystem]:
    with cairnfs.connect(f"hdfs://{','.join(n.address for n in cluster.namenodes)}") as fs:
        yield fs


@contextmanager
def meanwhile(action: Callable[[], None], fs: cairnfs.FileSystem) -> Iterator[None]:
    """Something is done when a roll-back is done, and the work it left is under way."""
    failures: list[BaseException] = []

    def act() -> None:
        try:
            wait_until(lambda: unfinished_name("s1") in names(fs), "it is rolled back")
            action()
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=act)
    thread.start()
    yield
    thread.join()
    assert not failures


def has_killed(spark: SparkCluster) -> bool:
    """Executors come when there are tasks."""
    try:
        spark.kill_executor()
    except AssertionError:
        return False
    return True


def safety_of(fs: cairnfs.FileSystem) -> str:
    (name,) = (name for name in names(fs) if name != "s1")
    return name


def make_many(fs: cairnfs.FileSystem) -> None:
    fill(fs)
    for n in range(MANY):
        fs.mkdirs(f"/data/many/{n}/below")


def test_an_executor_and_a_namenode_are_killed(
    cluster: Cluster, fs: cairnfs.FileSystem, tmp_path: Path
) -> None:
    make_many(fs)
    before = read_tree(fs, "/data")
    with SparkCluster(tmp_path) as spark:

        def kill() -> None:
            wait_until(lambda: has_killed(spark), "an executor is at work")
            cluster.namenodes[0].kill()
            if len(cluster.namenodes) == 1:
                cluster.namenodes[0].start()

        with meanwhile(kill, fs):
            run_driver("rollback", spark.master, f"{fs.url}/data", "s1")
        check_rolled_back(fs, before, safety_of(fs))
        fs.delete_snapshot("/data", "s1")
        fs.delete_snapshot("/data", safety_of(fs))
        run_driver("reclaim", spark.master, fs.url)
        assert fs.snapshot_work().is_done


def test_a_driver_is_killed(cluster: Cluster, fs: cairnfs.FileSystem, tmp_path: Path) -> None:
    make_many(fs)
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
