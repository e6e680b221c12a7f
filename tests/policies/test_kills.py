"""The satisfier's NameNode is killed, with SIGKILL, again and again while it works."""

from __future__ import annotations

import random
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.policies.clusters import TYPES, wait_until_satisfied, write

import cairnfs
from cairnfs.testing.cluster import Cluster

WRITERS = 8
DATA = b"x" * 100


def make_tree(fs: cairnfs.FileSystem, directories: int, files: int) -> list[str]:
    """Files below `/tree`; their paths."""
    paths = [f"/tree/{n // 10}/{n}/{file}" for n in range(directories) for file in range(files)]
    with ThreadPoolExecutor(WRITERS) as pool:
        list(pool.map(lambda path: write(fs, path, DATA), paths))
    return paths


def count_inodes(directories: int, files: int) -> int:
    """Below `/tree`: groups of ten, directories, files."""
    return -(-directories // 10) + directories + directories * files


def replicas_on_disk(cluster: Cluster) -> dict[str, int]:
    """How many replicas there are in the directories of each type."""
    return {
        type: sum(
            path.name.removeprefix("blk_").isdigit() and "finalized" in path.parts
            for node in cluster.datanodes
            for path in (cluster.directory / node.name / type).rglob("blk_*")
        )
        for type in TYPES
    }


def wait_until_it_goes_on(cluster: Cluster, fs: cairnfs.FileSystem) -> None:
    """Some of it is done by each NameNode, or it would never end."""
    before = fs.storage_policy_work()

    def has_gone_on() -> bool:
        work = fs.storage_policy_work()
        done = (work.scanned_inodes, work.placed_blocks)
        return work.is_done or done != (before.scanned_inodes, before.placed_blocks)

    cluster.wait_until(has_gone_on, "the satisfier goes on", 120.0)


def kill_while_it_works(
    cluster: Cluster, fs: cairnfs.FileSystem, chance: random.Random, kills_max: int
) -> int:
    """Kill the NameNode some time after it has begun, again and again; how often."""
    namenode = cluster.namenodes[0]
    kills = 0
    while kills < kills_max and not fs.storage_policy_work().is_done:
        time.sleep(chance.uniform(0.0, 1.0))
        namenode.kill()
        kills += 1
        namenode.start()
        cluster.wait_for_namenode(namenode)
        cluster.wait_for_datanodes(3)
        wait_until_it_goes_on(cluster, fs)
    return kills


def check(tmp_path: Path, directories: int, files: int, kills_min: int, kills_max: int) -> None:
    chance = random.Random(7)
    with (
        Cluster(
            tmp_path / "cluster", storage_types=TYPES, stale_after_s=30.0, dead_after_s=120.0
        ) as cluster,
        cairnfs.connect(cluster.uri) as fs,
    ):
        paths = make_tree(fs, directories, files)
        fs.set_storage_policy("/tree", "COLD")
        kills = kill_while_it_works(cluster, fs, chance, kills_max)
        wait_until_satisfied(fs, cluster, limit_s=1800.0)
        work = fs.storage_policy_work()
        print(f"{kills} kills; {work}")
        assert kills >= kills_min
        assert work.scanned_inodes == count_inodes(directories, files)
        assert work.unsatisfied_blocks == 0
        expected = {"DISK": 0, "SSD": 0, "ARCHIVE": 3 * len(paths)}
        cluster.wait_until(
            lambda: replicas_on_disk(cluster) == expected, "nothing is left elsewhere", 60.0
        )
        for path in chance.sample(paths, min(len(paths), 100)):
            with fs.open(path) as file:
                assert file.read() == DATA


def test_everything_is_looked_at_once_and_nothing_is_lost(tmp_path: Path) -> None:
    check(tmp_path, directories=11, files=8, kills_min=1, kills_max=4)


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_a_tree_of_10000_files(tmp_path: Path) -> None:
    check(tmp_path, directories=200, files=50, kills_min=10, kills_max=40)


def test_of_two_namenodes_the_one_at_work_is_killed(tmp_path: Path, postgres_dsn: str) -> None:
    """Again and again; the other one goes on, and nothing is looked at twice."""
    with Cluster(
        tmp_path / "cluster",
        namenodes=2,
        store=postgres_dsn,
        storage_types=TYPES,
        stale_after_s=30.0,
        dead_after_s=120.0,
    ) as cluster:
        addresses = ",".join(node.address for node in cluster.namenodes)
        with cairnfs.connect(f"hdfs://{addresses}") as fs:
            paths = make_tree(fs, directories=12, files=8)
            fs.set_storage_policy("/tree", "COLD")
            kills = 0
            while kills < 3 and not (work := fs.storage_policy_work()).is_done:
                at_work = [node for node in cluster.namenodes if node.address == work.namenode]
                if not at_work:
                    continue  # it is nobody's for the moment
                at_work[0].kill()
                kills += 1
                wait_until_it_goes_on(cluster, fs)
                at_work[0].start()
                cluster.wait_for_namenode(at_work[0])
            wait_until_satisfied(fs, cluster, limit_s=600.0)
            work = fs.storage_policy_work()
            print(f"{kills} kills; {work}")
            assert kills
            assert work.scanned_inodes == count_inodes(directories=12, files=8)
            assert work.unsatisfied_blocks == 0
            expected = {"DISK": 0, "SSD": 0, "ARCHIVE": 3 * len(paths)}
            cluster.wait_until(
                lambda: replicas_on_disk(cluster) == expected, "nothing is left elsewhere", 120.0
            )
            for path in paths[::10]:
                with fs.open(path) as file:
                    assert file.read() == DATA
