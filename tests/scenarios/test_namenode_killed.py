"""NameNodes that die: one that comes back, and one of two."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.scenarios.conftest import MakeCluster
from tests.scenarios.hadoop import FsShell, peer_ports

from cairnfs.testing.cluster import Cluster, Node
from cairnfs.wire.proto import client_namenode_pb2 as pb

MIB = 1 << 20
LIMIT_S = 120.0
BLOCK = "-Ddfs.blocksize=1048576"
# Without a second NameNode, Hadoop's client gives up at once unless it is told to be patient.
PATIENT = {"dfs.client.retry.policy.enabled": "true"}

pytestmark = pytest.mark.java


def names_in(cluster: Cluster, directory: str, *, namenode: int = 0) -> list[str]:
    """The names in a directory, as a NameNode says."""
    response = cluster.call(
        "getListing",
        pb.GetListingRequestProto(src=directory, startAfter=b"", needLocation=False),
        pb.GetListingResponseProto,
        namenode=namenode,
    )
    return [entry.path.decode() for entry in response.dirList.partialListing]


def count_blocks(cluster: Cluster, path: str, *, namenode: int = 0) -> int:
    return len(cluster.located_blocks(path, namenode=namenode))


def test_writers_and_readers_go_on_when_the_namenode_is_back(
    cluster: Cluster, tmp_path: Path, content: Callable[[int], bytes]
) -> None:
    [namenode] = cluster.namenodes
    shell = FsShell(cluster, tmp_path / "hadoop", PATIENT)
    data = content(8 * MIB)
    shell.run(BLOCK, "-put", "-", "/before", input=data)
    with shell.begin(BLOCK, "-put", "-", "/during", stdin=subprocess.PIPE) as put:
        assert put.stdin is not None
        put.stdin.write(data[: 4 * MIB + 1000])
        put.stdin.flush()
        cluster.wait_until(lambda: count_blocks(cluster, "/during._COPYING_") >= 4, "half is there")
        namenode.kill()
        # The writer needs a block soon, and finds nobody to ask.
        put.stdin.write(data[4 * MIB + 1000 :])
        put.stdin.close()
        namenode.start()
        # DataNodes come back by themselves; until they have, a reader asks again.
        assert shell.run("-cat", "/before") == data
        assert put.wait(LIMIT_S) == 0
    assert shell.run("-cat", "/during") == data
    cluster.wait_for_datanodes(3)
    assert names_in(cluster, "/") == ["before", "during"]


@pytest.fixture
def pair(make_cluster: MakeCluster, postgres_dsn: str) -> Cluster:
    """Two NameNodes on one PostgreSQL, and three DataNodes."""
    return make_cluster(namenodes=2, store=postgres_dsn)


def namenode_of(cluster: Cluster, pid: int) -> Node:
    """The NameNode that a client talks to."""
    found: list[Node] = []

    def is_found() -> bool:
        ports = peer_ports(pid)
        found[:] = [node for node in cluster.namenodes if node.port in ports]
        return len(found) == 1

    cluster.wait_until(is_found, "the client talks to a NameNode")
    return found[0]


def test_a_big_file_is_written_through_the_other_namenode(
    pair: Cluster, tmp_path: Path, content: Callable[[int], bytes]
) -> None:
    shell = FsShell(pair, tmp_path / "hadoop")
    data = content(32 * MIB)
    with shell.begin(BLOCK, "-put", "-", "/big", stdin=subprocess.PIPE) as put:
        assert put.stdin is not None
        put.stdin.write(data[: 16 * MIB])
        put.stdin.flush()
        victim = namenode_of(pair, put.pid)
        victim.kill()
        survivor = 1 - pair.namenodes.index(victim)
        put.stdin.write(data[16 * MIB :])
        put.stdin.close()
        assert put.wait(LIMIT_S) == 0
    assert shell.run("-cat", "/big") == data
    assert count_blocks(pair, "/big", namenode=survivor) == 32
    victim.start()
    pair.wait_for_namenode(victim)
    pair.wait_for_datanodes(3)
    assert count_blocks(pair, "/big", namenode=1 - survivor) == 32


def test_many_files_are_written_once_each_through_both_namenodes(
    pair: Cluster, tmp_path: Path, content: Callable[[int], bytes]
) -> None:
    """The NameNodes are killed in turn.  What was done and not answered is asked for again, and
    answered by the other one as the first would have."""
    shell = FsShell(pair, tmp_path / "hadoop")
    source = tmp_path / "source"
    source.mkdir()
    files = {f"file{n:03}": content(1000 + n) for n in range(200)}
    for name, data in files.items():
        (source / name).write_bytes(data)
    shell.run("-mkdir", "/many")
    paths = [str(source / name) for name in files]
    rounds = 0
    with shell.begin("-put", *paths, "/many") as put:
        while put.poll() is None:
            written = len(names_in(pair, "/many", namenode=rounds % 2))
            if written < 50 * (rounds + 1) or rounds == 3:
                time.sleep(0.05)
                continue
            victim = pair.namenodes[rounds % 2]
            victim.kill()
            rounds += 1
            victim.start()
            pair.wait_for_namenode(victim)
        assert put.wait(LIMIT_S) == 0
    assert rounds == 3
    assert names_in(pair, "/many") == list(files)
    shell.run("-get", "/many", str(tmp_path / "got"))
    assert {p.name: p.read_bytes() for p in (tmp_path / "got").iterdir()} == files
