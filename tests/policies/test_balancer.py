"""`cairn balancer` on real clusters: DataNodes that are added, and nodes that are killed."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.policies.clusters import MIB, write
from tests.policies.test_command import run

import cairnfs
from cairnfs.client.balancing import BalancerParameters
from cairnfs.errors import AccessControlException
from cairnfs.testing.cluster import Cluster

CAPACITY = 64 * MIB
THRESHOLD = 5.0
LIMIT_S = 300.0
PARAMETERS = BalancerParameters(THRESHOLD)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    """Three small DataNodes; a test may add some, and kill what it likes."""
    with Cluster(
        tmp_path / "cluster",
        stale_after_s=30.0,
        dead_after_s=120.0,
        datanode_options=("--capacity", str(CAPACITY), "--scan-rate", "0"),
    ) as cluster:
        yield cluster


@pytest.fixture
def files(fs: cairnfs.FileSystem) -> dict[str, bytes]:
    """Files of two replicas each, and what is in them."""
    chance = random.Random(3)
    made = {f"/data/f{n}": chance.randbytes(MIB + n) for n in range(24)}
    for path, data in made.items():
        write(fs, path, data, replication=2)
    return made


def utilisations(fs: cairnfs.FileSystem) -> list[float]:
    return [share.utilisation for share in fs.get_balancing(PARAMETERS).shares]


def add_datanode(cluster: Cluster, fs: cairnfs.FileSystem) -> None:
    """An empty one, of which NameNodes know how large it is."""
    cluster.add_datanode()
    cluster.wait_for_datanodes(len(cluster.datanodes))
    cluster.wait_until(
        lambda: len(utilisations(fs)) == len(cluster.datanodes) and min(utilisations(fs)) < 1.0,
        "the new DataNode has told its size",
    )


def wait_for_end(cluster: Cluster, fs: cairnfs.FileSystem) -> str:
    def has_ended() -> bool:
        balancing = fs.get_balancing().balancing
        return balancing is not None and not balancing.is_running

    cluster.wait_until(has_ended, "the balancer ends", LIMIT_S)
    balancing = fs.get_balancing().balancing
    assert balancing is not None
    return balancing.state


def check_balanced(cluster: Cluster, fs: cairnfs.FileSystem) -> None:
    """As even as was asked for, as soon as all DataNodes have told how full they are."""

    def is_balanced() -> bool:
        status = fs.get_balancing(PARAMETERS)
        return len(status.shares) == len(cluster.datanodes) and not status.left_bytes

    cluster.wait_until(is_balanced, "DataNodes are used evenly")


def check_whole(cluster: Cluster, fs: cairnfs.FileSystem, files: dict[str, bytes]) -> None:
    """Two replicas of each block on different DataNodes, in rows and on disk, and all bytes."""

    def has_two(path: str) -> bool:
        places = cluster.replica_places(path)
        on_disk = [node for node in cluster.datanodes for _ in cluster.replica_files(node)]
        return all(
            len({place.port for place in block}) == len(block) == 2 for block in places
        ) and (len(on_disk) == 2 * sum(-(-len(data) // MIB) for data in files.values()))

    for path, data in files.items():
        cluster.wait_until(lambda path=path: has_two(path), f"{path} has two replicas", LIMIT_S)  # type: ignore[misc]
        with fs.open(path) as file:
            assert file.read() == data


def test_an_added_datanode_gets_its_share(
    cluster: Cluster, fs: cairnfs.FileSystem, files: dict[str, bytes]
) -> None:
    fs.allow_snapshot("/data")
    fs.create_snapshot("/data", "s")
    add_datanode(cluster, fs)
    new = cluster.datanodes[-1]

    plan = run(cluster, "balancer", "--threshold", "5", "--dry-run")
    assert "have to move until the cluster is balanced" in plan
    assert "under-utilized" in plan
    assert f"{new.name}:{new.port}" in plan
    assert not cluster.replica_files(new)
    assert fs.get_balancing().balancing is None  # nothing has begun

    output = run(cluster, "balancer", "-threshold", "5")
    assert output.splitlines()[0].startswith("Time Stamp           Iteration#  Bytes Already Moved")
    assert "The cluster is balanced." in output
    check_balanced(cluster, fs)
    assert cluster.replica_files(new)
    check_whole(cluster, fs, files)
    for path, data in files.items():
        with fs.open(path.replace("/data/", "/data/.snapshot/s/")) as file:
            assert file.read() == data

    assert "nothing would be moved" in run(cluster, "balancer", "--threshold", "5", "--dry-run")
    assert "The cluster is balanced." in run(cluster, "balancer", "--status")
    status = json.loads(run(cluster, "balancer", "--status", "--json"))
    assert status["balancing"]["state"] == "BALANCED"
    assert status["balancing"]["moved_bytes"] > 8 * MIB
    assert run(cluster, "balancer", "--stop") == "No balancer is running.\n"


def slow_down(cluster: Cluster, fs: cairnfs.FileSystem) -> None:
    """So that there is a middle to do something in."""
    fs.set_balancer_bandwidth(MIB)


def wait_for_progress(cluster: Cluster, fs: cairnfs.FileSystem, blocks: int) -> None:
    def has_moved() -> bool:
        balancing = fs.get_balancing().balancing
        return balancing is not None and (
            balancing.moved_blocks >= blocks or not balancing.is_running
        )

    cluster.wait_until(has_moved, f"{blocks} blocks have been moved", LIMIT_S)


def test_a_namenode_is_killed_in_the_middle(
    cluster: Cluster, fs: cairnfs.FileSystem, files: dict[str, bytes]
) -> None:
    add_datanode(cluster, fs)
    slow_down(cluster, fs)
    run(cluster, "balancer", "--threshold", "5", "--background")
    for blocks in (1, 4):
        wait_for_progress(cluster, fs, blocks)
        namenode = cluster.namenodes[0]
        namenode.kill()
        namenode.start()
        cluster.wait_for_namenode(namenode)
    assert wait_for_end(cluster, fs) == "BALANCED"
    check_balanced(cluster, fs)
    check_whole(cluster, fs, files)


@pytest.mark.long
def test_datanodes_are_killed_in_the_middle(
    cluster: Cluster, fs: cairnfs.FileSystem, files: dict[str, bytes]
) -> None:
    """The one that takes replicas, and one that gives some; both come back."""
    add_datanode(cluster, fs)
    slow_down(cluster, fs)
    fs.start_balancing(PARAMETERS)
    wait_for_progress(cluster, fs, 1)
    for node in (cluster.datanodes[-1], cluster.datanodes[0]):
        node.kill()
        node.start()
        cluster.wait_for_datanodes(4)
    assert wait_for_end(cluster, fs) == "BALANCED"
    check_balanced(cluster, fs)
    check_whole(cluster, fs, files)


def begin(cluster: Cluster) -> subprocess.Popen[str]:
    """The command, at work."""
    return subprocess.Popen(
        [sys.executable, "-m", "cairnfs.cli", "balancer", "--threshold", "5"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "CAIRN_FS": cluster.uri},
    )


@pytest.mark.long
def test_the_command_is_killed_and_called_again(
    cluster: Cluster, fs: cairnfs.FileSystem, files: dict[str, bytes]
) -> None:
    add_datanode(cluster, fs)
    slow_down(cluster, fs)
    with begin(cluster) as command:
        wait_for_progress(cluster, fs, 1)
        output = run(cluster, "balancer", "--threshold", "7", code=255)
        assert output.startswith("Another balancer is running")
        command.kill()
    balancing = fs.get_balancing().balancing
    assert balancing is not None
    assert balancing.is_running  # the NameNode goes on
    assert "with a threshold of 5 %" in run(cluster, "balancer", "--status")
    with begin(cluster) as command:  # that one's progress
        assert command.stdout is not None
        assert command.stdout.readline().startswith("Time Stamp")
        again = fs.get_balancing().balancing
        assert again is not None
        assert again.started_ms == balancing.started_ms
        wait_for_progress(cluster, fs, 3)
        command.send_signal(signal.SIGINT)
        output, _ = command.communicate(timeout=LIMIT_S)
        assert command.returncode == 250, output
        assert "Stopped: no further moves are begun." in output
    assert wait_for_end(cluster, fs) == "STOPPED"
    fs.set_balancer_bandwidth(100 * MIB)
    assert "The cluster is balanced." in run(cluster, "balancer", "--threshold", "5")
    check_balanced(cluster, fs)
    check_whole(cluster, fs, files)


def test_mistakes_and_limits(cluster: Cluster, fs: cairnfs.FileSystem) -> None:
    write(fs, "/f", replication=1)
    for arguments, expected in (
        (("--threshold", "0"), "Number out of range: threshold = 0"),
        (("--threshold", "much"), "'much' is not a number"),
        (("--include", "@/no/such/file"), "/no/such/file: No such file or directory"),
        (("--fast",), "unrecognized arguments: --fast"),
    ):
        assert expected in run(cluster, "balancer", *arguments, code=251)
    assert "No DataNode takes part." in run(
        cluster, "balancer", "--include", "elsewhere", "--dry-run"
    )
    node = cluster.datanodes[0]
    output = run(cluster, "balancer", "--dry-run", "--exclude", f"{node.name}:{node.port}")
    assert f"{node.name}:{node.port}" not in output
    assert cluster.datanodes[1].name in output
    with cairnfs.connect(cluster.uri, user="somebody") as other:
        for call in (other.start_balancing, other.get_balancing, other.stop_balancing):
            with pytest.raises(AccessControlException, match="Superuser privilege is required"):
                call()
