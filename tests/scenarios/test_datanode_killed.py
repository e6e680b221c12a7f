"""DataNodes that die: writers and readers go on, and what was lost is made anew."""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.scenarios.conftest import MakeCluster
from tests.scenarios.hadoop import FsShell, peer_ports

from cairnfs.testing.cluster import Cluster, Node

MIB = 1 << 20
HEAL_LIMIT_S = 60.0
WRITE_LIMIT_S = 120.0

pytestmark = pytest.mark.java


def has_replicas(cluster: Cluster, path: str, count: int) -> bool:
    """Whether readers are told of so many replicas of each block, and those are on disk."""
    files = {node.port: cluster.replica_files(node) for node in cluster.datanodes}
    return all(
        len(places) == count and all(place.block_id in files[place.port] for place in places)
        for places in cluster.replica_places(path)
    )


def count_files(cluster: Cluster) -> int:
    """All replicas on all disks."""
    return sum(len(cluster.replica_files(node)) for node in cluster.datanodes)


def find_pipeline(cluster: Cluster, writer_pid: int) -> list[Node]:
    """The DataNodes that a client writes to, in their order: each is connected to the next."""
    pipeline: list[Node] = []
    pid = writer_pid
    while True:
        ports = peer_ports(pid)
        following = [n for n in cluster.datanodes if n.port in ports and n not in pipeline]
        if not following:
            return pipeline
        pipeline += following
        pid = following[0].pid


def put_and_kill(
    cluster: Cluster, shell: FsShell, data: bytes, path: str, position: int, block_bytes: int
) -> Node:
    """Write through -put, killing a DataNode of the pipeline when half is written."""
    arguments = (f"-Ddfs.blocksize={block_bytes}", "-put", "-", path)
    with shell.begin(*arguments, stdin=subprocess.PIPE) as put:
        assert put.stdin is not None
        half = len(data) // 2 + block_bytes // 3  # in the middle of a block
        put.stdin.write(data[:half])
        put.stdin.flush()
        cluster.wait_until(
            lambda: len(cluster.located_blocks(f"{path}._COPYING_")) > half // block_bytes,
            "half of the file is being written",
        )
        cluster.wait_until(lambda: len(find_pipeline(cluster, put.pid)) == 3, "there is a pipeline")
        victim = find_pipeline(cluster, put.pid)[position]
        victim.kill()
        put.stdin.write(data[half:])
        put.stdin.close()
        assert put.wait(WRITE_LIMIT_S) == 0
    return victim


def check_lost_replicas_are_made_anew(
    cluster: Cluster, shell: FsShell, data: bytes, block_bytes: int
) -> None:
    """The whole story of a DataNode that dies while it is written to, and comes back."""
    victim = put_and_kill(cluster, shell, data, "/big", 0, block_bytes)
    assert is_content(shell, "/big", data)

    def is_healed() -> bool:
        places = [place for block in cluster.replica_places("/big") for place in block]
        return has_replicas(cluster, "/big", 3) and victim.port not in {p.port for p in places}

    cluster.wait_for_datanodes(3)
    cluster.wait_until(is_healed, "three replicas of each elsewhere", HEAL_LIMIT_S)
    assert is_content(shell, "/big", data)

    # What the DataNode had is too much by now, or outdated, and goes.
    victim.start()
    cluster.wait_for_datanodes(4)
    blocks = -(-len(data) // block_bytes)
    cluster.wait_until(
        lambda: has_replicas(cluster, "/big", 3) and count_files(cluster) == 3 * blocks,
        "no more than three replicas of each",
        HEAL_LIMIT_S,
    )
    assert is_content(shell, "/big", data)


def is_content(shell: FsShell, path: str, data: bytes) -> bool:
    """Whether a file is what it should be, without its bytes in a failure's report."""
    return shell.run("-cat", path) == data


def test_what_a_killed_datanode_had_is_made_anew_and_not_kept_twice(
    make_cluster: MakeCluster, tmp_path: Path, content: Callable[[int], bytes]
) -> None:
    cluster = make_cluster(datanodes=4)
    shell = FsShell(cluster, tmp_path / "hadoop")
    check_lost_replicas_are_made_anew(cluster, shell, content(64 * MIB), 16 * MIB)


@pytest.mark.long
@pytest.mark.timeout(900)
def test_what_a_killed_datanode_had_of_a_gigabyte_is_made_anew(
    make_cluster: MakeCluster, tmp_path: Path, content: Callable[[int], bytes]
) -> None:
    cluster = make_cluster(datanodes=4)
    shell = FsShell(cluster, tmp_path / "hadoop")
    check_lost_replicas_are_made_anew(cluster, shell, content(1024 * MIB), 128 * MIB)


def test_put_goes_on_whichever_datanode_of_its_pipeline_is_killed(
    cluster: Cluster, shell: FsShell, content: Callable[[int], bytes]
) -> None:
    """With three DataNodes there is none to take the place of the one that is lost."""
    for position in range(3):
        data = content(16 * MIB + position)
        path = f"/file{position}"
        victim = put_and_kill(cluster, shell, data, path, position, 4 * MIB)
        assert is_content(shell, path, data)
        victim.start()
        cluster.wait_for_datanodes(3)
    for position in range(3):
        path = f"/file{position}"
        cluster.wait_until(
            lambda path=path: has_replicas(cluster, path, 3),  # type: ignore[misc]
            f"three replicas of {path}",
            HEAL_LIMIT_S,
        )
    cluster.wait_until(
        lambda: (
            count_files(cluster)
            == 3 * sum(len(cluster.replica_places(f"/file{n}")) for n in range(3))
        ),
        "nothing of the broken pipelines is left",
        HEAL_LIMIT_S,
    )


def test_reader_goes_on_without_the_datanode_it_read_from(
    cluster: Cluster, shell: FsShell, content: Callable[[int], bytes]
) -> None:
    data = content(64 * MIB)
    shell.run("-put", "-", "/big", input=data)
    with shell.begin("-cat", "/big", stdout=subprocess.PIPE) as cat:
        assert cat.stdout is not None
        read = cat.stdout.read(MIB)
        ports = peer_ports(cat.pid)
        [source] = [node for node in cluster.datanodes if node.port in ports]
        source.kill()
        read += cat.stdout.read()
        assert cat.wait(WRITE_LIMIT_S) == 0
    assert hashlib.md5(read).digest() == hashlib.md5(data).digest()


def flip(replica: Path) -> None:
    with replica.open("r+b") as file:
        file.seek(MIB)
        byte = file.read(1)
        file.seek(MIB)
        file.write(bytes([byte[0] ^ 0xFF]))


def cut(replica: Path) -> None:
    with replica.open("r+b") as file:
        file.truncate(MIB + 100)


@pytest.mark.parametrize("damage", [flip, cut])
def test_damaged_replicas_are_not_read_and_made_anew(
    make_cluster: MakeCluster,
    tmp_path: Path,
    content: Callable[[int], bytes],
    damage: Callable[[Path], None],
) -> None:
    """Two of three replicas are damaged: whoever reads finds out, and says so."""
    cluster = make_cluster(datanodes=3, datanode_options=("--scan-rate", "0"))
    shell = FsShell(cluster, tmp_path / "hadoop")
    data = content(4 * MIB)
    shell.run("-put", "-", "/file", input=data)
    cluster.wait_until(lambda: has_replicas(cluster, "/file", 3), "three replicas")
    [places] = cluster.replica_places("/file")
    for place in places[:2]:
        damage(cluster.replica_files(cluster.datanode_at(place.port))[place.block_id])

    def is_well() -> bool:
        # Which replica a reader is given is up to chance, so it may take several.
        assert is_content(shell, "/file", data)
        files = [cluster.replica_files(node) for node in cluster.datanodes]
        return has_replicas(cluster, "/file", 3) and all(
            file.read_bytes() == data for replicas in files for file in replicas.values()
        )

    cluster.wait_until(is_well, "three good replicas", HEAL_LIMIT_S)
