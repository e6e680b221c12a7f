"""A DataNode of Apache HDFS beside our own, under our NameNode.

Needs the jars of an HDFS, as `benchmarks/peer/peer install` puts them into $PEER_HOME/jars.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.scenarios.conftest import MakeCluster, MakeJvm
from tests.scenarios.hadoop import FsShell

from cairnfs.testing.cluster import Cluster
from cairnfs.testing.ports import HOST, choose_free_ports

MIB = 1 << 20
JARS = Path(os.environ.get("PEER_HOME") or Path.home() / ".cache" / "hdfs-peer") / "jars"
OPENED = ("java.lang", "java.util", "java.io", "java.net", "sun.nio.ch")

pytestmark = [
    pytest.mark.java,
    pytest.mark.skipif(not JARS.is_dir(), reason="there is no Apache HDFS to test with"),
]


class RealDataNode:
    """Apache's DataNode, as a process."""

    def __init__(self, cluster: Cluster, directory: Path) -> None:
        self.port, ipc_port, http_port = choose_free_ports(3)
        self.data = directory / "data"
        self._directory = directory
        for name in ("datanode", "static"):
            web = directory / "conf" / "webapps" / name / "WEB-INF"
            web.mkdir(parents=True)
            (web / "web.xml").write_text('<web-app version="2.4"/>\n')
        cluster.write_hadoop_configuration(
            directory / "conf",
            {
                "dfs.namenode.rpc-address": cluster.namenodes[0].address,
                "dfs.datanode.data.dir": f"file://{self.data}",
                "dfs.datanode.address": f"{HOST}:{self.port}",
                "dfs.datanode.ipc.address": f"{HOST}:{ipc_port}",
                "dfs.datanode.http.address": f"{HOST}:{http_port}",
                "dfs.datanode.hostname": HOST,
                "dfs.heartbeat.interval": "1",
            },
        )
        self.process = self._run()

    def _run(self) -> subprocess.Popen[bytes]:
        opened = [f"--add-opens=java.base/{name}=ALL-UNNAMED" for name in OPENED]
        path = f"{self._directory / 'conf'}:{JARS}/*"
        program = "org.apache.hadoop.hdfs.server.datanode.DataNode"
        with (self._directory / "log").open("ab") as log:
            return subprocess.Popen(
                ["java", *opened, "-Xmx512m", "-XX:+UseSerialGC", "-cp", path, program],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def restart(self) -> None:
        self.kill()
        self.process = self._run()

    def replicas(self) -> list[Path]:
        return [path for path in self.data.rglob("blk_*") if path.suffix != ".meta"]


@pytest.fixture
def mixed(make_cluster: MakeCluster, tmp_path: Path) -> Iterator[tuple[Cluster, RealDataNode]]:
    """Two DataNodes of ours and one of Apache's."""
    cluster = make_cluster(datanodes=2, stale_after_s=5.0, dead_after_s=10.0)
    with contextlib.ExitStack() as cleanup:
        real = RealDataNode(cluster, tmp_path / "real")
        cleanup.callback(real.kill)
        cluster.wait_for_datanodes(3)
        yield cluster, real


def test_a_real_datanode_is_one_like_the_others(
    mixed: tuple[Cluster, RealDataNode], tmp_path: Path, content: Callable[[int], bytes]
) -> None:
    cluster, real = mixed
    shell = FsShell(cluster, tmp_path / "hadoop", {"dfs.blocksize": str(4 * MIB)})
    data = content(20 * MIB)

    def has_replicas(path: str, count: int) -> bool:
        return all(len(places) == count for places in cluster.replica_places(path))

    # It takes part in pipelines with ours, and what it has is the same.
    shell.run("-put", "-", "/file", input=data)
    cluster.wait_until(lambda: has_replicas("/file", 3), "three replicas")
    assert len(real.replicas()) == 5
    for node in cluster.datanodes:
        node.kill()
    cluster.wait_for_datanodes(1)
    assert shell.run("-cat", "/file") == data

    # It makes copies and is given some, and deletes what it is told to.
    for node in cluster.datanodes:
        node.start()
    cluster.wait_for_datanodes(3)
    shell.run("-setrep", "1", "/file")
    cluster.wait_until(lambda: has_replicas("/file", 1), "one replica")
    shell.run("-setrep", "3", "/file")
    cluster.wait_until(lambda: has_replicas("/file", 3), "three replicas again")
    assert shell.run("-cat", "/file") == data

    # It registers again with a NameNode that was restarted, and when it was itself.
    cluster.namenodes[0].kill()
    cluster.namenodes[0].start()
    cluster.wait_for_datanodes(3)
    real.restart()
    shell.run("-rm", "-skipTrash", "/file")
    cluster.wait_for_datanodes(3)
    cluster.wait_until(lambda: not real.replicas(), "nothing is left")


def test_a_real_datanode_takes_part_in_recoveries(
    make_cluster: MakeCluster, make_java: MakeJvm, tmp_path: Path
) -> None:
    """It leads them when nobody else is there, and is led by one of ours."""
    cluster = make_cluster(datanodes=1, stale_after_s=5.0, dead_after_s=10.0)
    with contextlib.ExitStack() as cleanup:
        real = RealDataNode(cluster, tmp_path / "real")
        cleanup.callback(real.kill)
        cluster.wait_for_datanodes(2)
        java = make_java(cluster)
        for path in ("/one", "/two"):
            writer = make_java(cluster)
            out = writer.create(path, replication=2)
            out.write(b"0123456789")
            out.hflush()
            writer.kill()
        cluster.wait_until(lambda: java.recover_lease("/one"), "both have recovered it")
        assert java.read("/one") == b"0123456789"

        cluster.datanodes[0].kill()
        cluster.wait_until(lambda: java.recover_lease("/two"), "it has recovered it alone")
        assert java.read("/two") == b"0123456789"
        if not java.truncate("/one", 4):
            cluster.wait_until(lambda: java.is_closed("/one"), "it has cut it alone")
        out = java.append("/one")
        out.write(b"more")
        out.close()
        assert java.read("/one") == b"0123more"
