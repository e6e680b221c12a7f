"""`cairn admin`, on a real cluster."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.cli.running import run as run_cairn

from cairnfs.cli.admin.leases import RECOVERING, explain
from cairnfs.cli.admin.report import Node
from cairnfs.client.block_health import judge
from cairnfs.client.filesystem import FileSystem, connect
from cairnfs.testing.cluster import Cluster

SECONDS = 30.0


@pytest.fixture(scope="module")
def exclude_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("admin") / "excluded"
    file.write_text("# nobody\n")
    return file


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, exclude_file: Path) -> Iterator[Cluster]:
    directory = tmp_path_factory.mktemp("admin") / "cluster"
    with Cluster(
        directory, datanodes=3, namenode_options=("--excluded-hosts", str(exclude_file))
    ) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def fs(cluster: Cluster) -> Iterator[FileSystem]:
    with connect(cluster.uri) as fs:
        yield fs


def write(fs: FileSystem, path: str, replication: int = 2) -> None:
    with fs.create(path, replication=replication) as file:
        file.write(b"some bytes\n")


def run(cluster: Cluster, *arguments: str, code: int = 0, **variables: str) -> str:
    """What `cairn admin` prints, on both streams."""
    return run_cairn(cluster, "admin", *arguments, code=code, **variables)


def run_json(cluster: Cluster, *arguments: str, code: int = 0) -> Any:
    return json.loads(run(cluster, *arguments, "--json", code=code))


def test_the_report_is_for_people_and_for_programs(cluster: Cluster) -> None:
    lines = run(cluster, "report").splitlines()
    assert lines[0] == f"The file system at {cluster.uri}"
    assert "3 alive, 0 dead" in lines[3]
    assert [line.split()[0] for line in lines[6:]] == sorted(n.address for n in cluster.datanodes)
    shown = run_json(cluster, "report")
    assert shown["missing_blocks"] == 0
    assert all(node["alive"] and node["state"] == "NORMAL" for node in shown["datanodes"])


@pytest.mark.parametrize(
    ("state", "is_alive", "silent_s", "shown"),
    [
        ("NORMAL", True, 3, "in service"),
        ("NORMAL", True, 31, "stale"),
        ("NORMAL", False, 700, "dead"),
        ("DECOMMISSION_INPROGRESS", True, 31, "leaving, stale"),
        ("IN_MAINTENANCE", False, 700, "in maintenance, dead"),
    ],
)
def test_a_datanode_that_is_silent_is_shown_so(
    fs: FileSystem, state: str, is_alive: bool, silent_s: float, shown: str
) -> None:
    info = fs.get_datanode_report("ALL")[0]
    heard_ms = round((time.time() - silent_s) * 1000)
    info = msgspec.structs.replace(info, state=state, last_update_ms=heard_ms)
    node = Node(info, is_alive)
    assert node.state == shown
    assert node.is_stale == ("stale" in shown)


def test_safe_mode_is_entered_and_left(cluster: Cluster, fs: FileSystem) -> None:
    assert run(cluster, "safemode", "get") == "Safe mode is OFF\n"
    assert run(cluster, "safemode", "enter") == "Safe mode is ON\n"
    assert "safe mode   ON" in run(cluster, "report")
    assert run_json(cluster, "safemode", "leave") == {"safe_mode": False}
    assert run(cluster, "safemode", "wait") == "Safe mode is OFF\n"
    refused = run(cluster, "safemode", "enter", code=1, HADOOP_USER_NAME="alice")
    assert refused.startswith("cairn: Access denied for user alice. Superuser privilege")
    assert not fs.get_safe_mode()


def test_fsck_finds_what_is_lost(cluster: Cluster, fs: FileSystem) -> None:
    fs.mkdirs("/fsck/below")
    write(fs, "/fsck/good")
    write(fs, "/fsck/below/lost", replication=1)
    healthy = run(cluster, "fsck", "/fsck")
    assert f"/fsck at {cluster.uri} is HEALTHY" in healthy
    assert "files             2, 0 of them being written" in healthy

    (place,) = cluster.replica_places("/fsck/below/lost")[0]
    node = cluster.datanode_at(place.port)
    node.kill()
    cluster.wait_until(
        lambda: not fs.get_block_locations("/fsck/below/lost")[0].datanodes, "it is given up"
    )
    damaged = run(cluster, "fsck", "/", code=1)
    assert "/fsck/below/lost: missing: blk_" in damaged
    assert "is DAMAGED" in damaged
    found = run_json(cluster, "fsck", "/fsck/below", code=1)
    assert not found["healthy"]
    assert found["problems"][0]["kind"] == "missing"
    assert "dead" in run(cluster, "report")
    assert "does not exist" in run(cluster, "fsck", "/no/such", code=1)

    node.start()
    cluster.wait_for_datanodes(3)
    cluster.wait_until(
        lambda: bool(fs.get_block_locations("/fsck/below/lost")[0].datanodes), "it is back"
    )
    run(cluster, "fsck", "/fsck/below")


def test_blocks_are_judged_by_lasting_replicas(fs: FileSystem) -> None:
    write(fs, "/judged", replication=1)
    (block,) = fs.get_block_locations("/judged")
    assert judge("/judged", 1, block) is None
    kinds = {}
    for name, changed in {
        "missing": _replace(block, datanodes=[]),
        "corrupt": _replace(block, is_corrupt=True),
        "over-replicated": _replace(block, datanodes=2 * block.datanodes),
        "under-replicated": _replace(
            block, datanodes=[_replace(block.datanodes[0], state="DECOMMISSION_INPROGRESS")]
        ),
        "being written": _replace(block, datanodes=[], is_complete=False),
    }.items():
        problem = judge("/judged", 1, changed)
        kinds[name] = None if problem is None else problem.kind
    assert kinds == {name: name if name != "being written" else None for name in kinds}


def _replace(record: Any, **changes: object) -> Any:
    import msgspec

    return msgspec.structs.replace(record, **changes)


def test_open_files_are_listed_with_the_reason(cluster: Cluster, fs: FileSystem) -> None:
    empty = fs.create("/open/empty")
    written = fs.create("/open/written", replication=1)
    written.write(b"some bytes")
    written.flush()
    try:
        found = {lease["path"]: lease for lease in run_json(cluster, "leases", "/open")}
        table = run(cluster, "leases")
    finally:
        empty.close()
        written.close()
    if not found:
        pytest.skip("this NameNode does not list open files")
    assert found["/open/empty"]["reason"] == "made, nothing written yet"
    assert "is being written to 127.0.0.1:" in found["/open/written"]["reason"]
    assert found["/open/written"]["holder"].startswith("DFSClient_cairnfs_")
    assert abs(found["/open/written"]["changed_ms"] / 1000 - time.time()) < SECONDS
    assert "/open/written" in table
    assert "No file at or below / is open" in run(cluster, "leases")


def test_reasons_follow_from_the_blocks(fs: FileSystem) -> None:
    write(fs, "/reasons", replication=1)
    blocks = fs.get_block_locations("/reasons")
    assert explain("DFSClient_x", blocks).startswith("the last block is complete")
    assert explain(RECOVERING, blocks).startswith("its writer is gone")
    assert explain("DFSClient_x", []) == "made, nothing written yet"


def test_a_datanode_leaves_and_stays_after_all(
    cluster: Cluster, fs: FileSystem, exclude_file: Path
) -> None:
    write(fs, "/leaving", replication=2)
    node = cluster.datanode_at(cluster.replica_places("/leaving")[0][0].port)
    file = ("--exclude-file", str(exclude_file))
    assert "several DataNodes are" in run(cluster, "decommission", "127.0.0.1", *file, code=1)
    assert "no DataNode is" in run(cluster, "decommission", "elsewhere", *file, code=1)
    assert "--exclude-file" in run(cluster, "decommission", node.address, code=1)

    refused = run(cluster, "decommission", node.address, *file, code=1, HADOOP_USER_NAME="ada")
    assert "Access denied" in refused
    assert exclude_file.read_text() == "# nobody\n"

    said = run(cluster, "decommission", node.address, *file, "--wait")
    assert said == f"{node.address} is decommissioned\n"
    assert exclude_file.read_text() == f"# nobody\n{node.address}\n"
    others = {each.address for each in cluster.datanodes} - {node.address}
    holders = {each.address for each in fs.get_block_locations("/leaving")[0].datanodes}
    assert others <= holders

    run(cluster, "recommission", node.address, *file, code=1, HADOOP_USER_NAME="ada")
    assert exclude_file.read_text() == f"# nobody\n{node.address}\n"

    said = run(cluster, "recommission", node.address, *file)
    hint = " now; it will be in service at its next heartbeat"
    assert said in (
        f"{node.address} is decommissioned{hint}\n",
        f"{node.address} is in service\n",
    )
    said = run(cluster, "recommission", node.address, *file, "--wait")
    assert said == f"{node.address} is in service\n"
    assert exclude_file.read_text() == "# nobody\n"


def test_namenodes_are_asked_one_by_one(cluster: Cluster) -> None:
    nobody = "127.0.0.1:1"
    both = f"{cluster.uri},{nobody}"
    alive, silent = json.loads(run(cluster, "--fs", both, "namenodes", "--json", code=1))
    assert alive["alive"]
    assert alive["live_datanodes"] == 3
    assert silent == {"address": nobody, "alive": False, "error": silent["error"]}
    assert "alive  off        3" in run(cluster, "namenodes")


def test_nobody_answers(cluster: Cluster) -> None:
    said = run(cluster, "report", "--fs", "hdfs://127.0.0.1:1", code=1)
    assert said.count("\n") == 1
    assert "nobody answers at hdfs://127.0.0.1:1, which --fs names" in said
