"""Reports and checks on a Spark cluster of two workers, with two NameNodes on PostgreSQL."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from tests.client.test_verifying import change_a_byte, replica, wait_for_replicas
from tests.jobs.standalone import SparkCluster
from tests.jobs.trees import write

import cairnfs
from cairnfs.testing.cluster import Cluster

pytestmark = [pytest.mark.java, pytest.mark.long, pytest.mark.timeout(1800)]

FILES = 40
LIMIT_S = 600.0


def test_two_workers_and_two_namenodes(postgres_dsn: str, tmp_path: Path) -> None:
    with (
        Cluster(
            tmp_path / "cluster",
            datanodes=2,
            namenodes=2,
            store=postgres_dsn,
            datanode_options=("--scan-rate", "0"),
        ) as cluster,
        SparkCluster(tmp_path) as spark,
    ):
        addresses = ",".join(node.address for node in cluster.namenodes)
        url = f"hdfs://{addresses}"
        with cairnfs.connect(url) as fs:
            for n in range(FILES):
                write(fs, f"/data/{n % 4}/{n}", bytes([n]) * 1000, replication=2)
                wait_for_replicas(cluster, f"/data/{n % 4}/{n}", 2)
            change_a_byte(replica(cluster, "/data/1/5", 0, 0))

            def run(*arguments: str) -> tuple[int, str]:
                command = [sys.executable, "-m", "cairnfs.cli", "job", *arguments]
                given = ["--fs", url, "--master", spark.master]
                done = subprocess.run(
                    [*command, *given], capture_output=True, text=True, timeout=LIMIT_S
                )
                return done.returncode, done.stdout or done.stderr

            output = tmp_path / "usage"
            code, said = run("usage", "/data", "--output", f"file://{output}")
            assert (code, said.split(":")[0]) == (0, "/data")
            assert f"{FILES} files and 5 directories, 40.0 kB, with all replicas 80.0 kB" in said
            rows = pq.read_table(output).to_pylist()
            assert sum(row["files"] for row in rows if row["report"] == "directory") == FILES
            code, said = run("fsck", "/data")
            assert (code, said.splitlines()[0]) == (0, "/data is HEALTHY")
            code, said = run("scrub", "/data")
            assert code == 0
            assert "/data/1/5: corrupt: Checksum error" in said
            assert f"{2 * FILES} replicas of {FILES} blocks" in said
            cluster.wait_until(
                lambda: [each.good for each in fs.verify_replicas("/data/1/5")] == [2],
                "the bad replica is replaced",
            )
