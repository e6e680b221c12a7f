"""Jobs on a Spark cluster, with several NameNodes, after a disaster, and to a real HDFS."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from tests.client.real_hdfs import JARS, RealHdfs
from tests.jobs.driver import SMALL
from tests.jobs.standalone import SparkCluster
from tests.jobs.test_kills import kill_in_the_middle, notes, wait_until
from tests.jobs.trees import change_at_random, make_varied_tree, read_tree, write

import cairnfs
from cairnfs.jobs import backup, mirror, restore
from cairnfs.jobs.places import Place
from cairnfs.testing.cluster import Cluster

pytestmark = [pytest.mark.java, pytest.mark.long, pytest.mark.timeout(1800)]

FILES = 120


def fill(fs: cairnfs.FileSystem) -> None:
    make_varied_tree(fs, "/data")
    for n in range(FILES):
        write(fs, f"/data/many/{n}", bytes([n]) * n)
    fs.allow_snapshot("/data")
    fs.create_snapshot("/data", "s1")


def run_driver(job: str, master: str, *arguments: str) -> None:
    driver = Path(__file__).with_name("driver.py")
    done = subprocess.run(
        [sys.executable, str(driver), job, master, *arguments],
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr


def test_executors_and_drivers_of_a_spark_cluster_are_killed(
    fs: cairnfs.FileSystem, other: cairnfs.FileSystem, backups: str, tmp_path: Path
) -> None:
    fill(fs)
    done = Place(f"{backups}/s1/work/entries/done")
    with SparkCluster(tmp_path) as spark:
        failures: list[BaseException] = []

        def kill() -> None:
            try:
                wait_until(lambda: len(notes(done)) >= 3, "some is done")
                spark.kill_executor()
            except BaseException as error:
                failures.append(error)

        killer = threading.Thread(target=kill)
        killer.start()
        run_driver("backup", spark.master, f"{fs.url}/data", "s1", backups)
        killer.join()
        assert not failures
        target = f"{other.url}/again"
        done = Place(f"{other.url}/.cairn-restore-again/work/files/done")
        log = tmp_path / "restore.log"
        kill_in_the_middle(done, log, "restore", backups, target, master=spark.master)
        run_driver("restore", spark.master, backups, target)
        assert read_tree(other, "/again") == read_tree(fs, "/data/.snapshot/s1")
        run_driver("mirror", spark.master, f"{fs.url}/data", f"{other.url}/copy")
        fs.rename("/data/many", "/data/moved")
        run_driver("mirror", spark.master, f"{fs.url}/data", f"{other.url}/copy")
        expected = read_tree(fs, "/data", inherited=False)
        assert read_tree(other, "/copy", inherited=False) == expected


@pytest.mark.usefixtures("spark")
def test_two_namenodes_of_which_one_dies(
    postgres_dsn: str, other: cairnfs.FileSystem, backups: str, tmp_path: Path
) -> None:
    with Cluster(tmp_path / "cluster", datanodes=2, namenodes=2, store=postgres_dsn) as cluster:
        addresses = ",".join(node.address for node in cluster.namenodes)
        with cairnfs.connect(f"hdfs://{addresses}") as fs:
            fill(fs)
            done = Place(f"{backups}/s1/work/entries/done")
            source = f"hdfs://{addresses}/data"

            def kill() -> None:
                wait_until(lambda: len(notes(done)) >= 3, "some is done")
                cluster.namenodes[0].kill()

            killer = threading.Thread(target=kill)
            killer.start()
            backup(source, "s1", backups, batch=SMALL)
            killer.join()
            restore(backups, f"hdfs://{addresses}/again", batch=SMALL)
            expected = read_tree(fs, "/data/.snapshot/s1")
            assert read_tree(fs, "/again") == expected
            mirror(source, f"{other.url}/copy", batch=SMALL)
            write(fs, "/data/many/1", b"other")
            assert mirror(source, f"{other.url}/copy").copied_bytes == 5


@pytest.mark.usefixtures("spark")
def test_all_data_is_lost(backups: str, tmp_path: Path) -> None:
    """The NameNode knows all files, and no DataNode has anything of them any more."""
    place = tmp_path / "cluster"
    with Cluster(place, datanodes=2) as cluster, cairnfs.connect(cluster.uri) as fs:
        fill(fs)
        expected = read_tree(fs, "/data/.snapshot/s1")
        backup(f"{cluster.uri}/data", "s1", backups)
        for node in cluster.datanodes:
            node.kill()
            shutil.rmtree(place / node.name)
            node.start()
        cluster.wait_for_datanodes(2)
        with pytest.raises(OSError, match="Could not obtain block"):
            fs.open("/data/many/5").read()
        restore(backups, f"{cluster.uri}/again")
        assert read_tree(fs, "/again") == expected


@pytest.mark.usefixtures("spark")
@pytest.mark.skipif(not JARS.is_dir(), reason="there is no Apache HDFS to test with")
def test_a_real_hdfs_is_kept_equal(fs: cairnfs.FileSystem, backups: str, tmp_path: Path) -> None:
    for n in range(60):
        write(fs, f"/data/{n % 7}/{n}", random.Random(n).randbytes(1000 * n))
    fs.allow_snapshot("/data")
    draw = random.Random(3)
    with RealHdfs(tmp_path, datanodes=1) as hdfs, cairnfs.connect(hdfs.uri) as other:
        mirror(f"{fs.url}/data", f"{hdfs.uri}/copy")
        for n in range(10):
            paths = [
                f"/data/{name}" for name in draw.sample(range(7), 3) if fs.exists(f"/data/{name}")
            ]
            write(fs, f"/data/new/{n}", draw.randbytes(5000))
            for path in paths:
                fs.rename(path, f"{path}x")
                fs.rename(f"{path}x", f"/data/{draw.choice('pqrs')}{n}{path[-1]}")
            change_at_random(fs, "/data", draw, 5)
            done = mirror(f"{fs.url}/data", f"{hdfs.uri}/copy")
            assert done.copied_bytes == 5000
            expected = read_tree(fs, "/data", inherited=False)
            assert read_tree(other, "/copy", inherited=False) == expected
        fs.create_snapshot("/data", "s1")
        backup(f"{fs.url}/data", "s1", f"{hdfs.uri}/backups")
        restore(f"{hdfs.uri}/backups", f"{hdfs.uri}/again")
        assert read_tree(other, "/again", inherited=False) == expected
