"""`fsck` and `scrub` on a cluster of which somebody damages the disks."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from tests.client.test_verifying import change_a_byte, wait_for_replicas
from tests.jobs.driver import SMALL
from tests.jobs.test_kills import kill_in_the_middle
from tests.jobs.trees import write

import cairnfs
from cairnfs.cli.main import main
from cairnfs.errors import FileNotFoundException, IllegalArgumentException
from cairnfs.jobs import BatchSize, JobProgress, fsck, plan_scrub, scrub
from cairnfs.jobs.check_tables import KINDS
from cairnfs.jobs.places import Place
from cairnfs.jobs.records import TableFile, read_table
from cairnfs.spark.views import list_views
from cairnfs.testing.cluster import Cluster

pytestmark = [pytest.mark.java, pytest.mark.usefixtures("spark")]

BLOCK_BYTES = 1 << 20
FILES = 150


@pytest.fixture(scope="module")
def damaged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Two DataNodes that do not look for damage by themselves."""
    directory = tmp_path_factory.mktemp("checks") / "cluster"
    with Cluster(directory, datanodes=2, datanode_options=("--scan-rate", "0")) as cluster:
        yield cluster


@pytest.fixture
def fs(damaged: Cluster) -> Iterator[cairnfs.FileSystem]:
    with cairnfs.connect(damaged.uri) as fs:
        yield fs


def damage(cluster: Cluster, path: str, block: int, at: int) -> str:
    """Change a byte of a replica on its disk; the DataNode that has it."""
    place = cluster.replica_places(path)[block][at]  # the next time in another order, perhaps
    node = cluster.datanode_at(place.port)
    change_a_byte(cluster.replica_files(node)[place.block_id])
    return node.address


def test_a_damaged_replica_is_found_and_replaced(
    damaged: Cluster, fs: cairnfs.FileSystem, tmp_path: Path
) -> None:
    """Also one that only a snapshot still shows; and what cannot be repaired is told."""
    write(fs, "/d/two", b"2" * (BLOCK_BYTES + 10), replication=2, block_size=BLOCK_BYTES)
    write(fs, "/d/deleted", b"3" * 1000, replication=2)
    write(fs, "/d/alone", b"1" * 1000, replication=1)
    write(fs, "/d/empty", b"", replication=2)
    for path, count in {"/d/two": 2, "/d/deleted": 2, "/d/alone": 1}.items():
        wait_for_replicas(damaged, path, count)
    fs.allow_snapshot("/d")
    fs.create_snapshot("/d", "s")
    bad = damage(damaged, "/d/two", block=1, at=0)
    damage(damaged, "/d/deleted", block=0, at=1)
    damage(damaged, "/d/alone", block=0, at=0)
    fs.delete("/d/deleted")

    (line,) = plan_scrub(f"{fs.url}/d", snapshots=False).lines
    total = 2 * (BLOCK_BYTES + 10) + 1000
    assert (line.action, line.kind, line.items, line.bytes) == ("verify", "block", 3, total)
    assert not fs.exists("/.cairn-scrub-d"), "a dry run writes nothing"

    told: list[JobProgress] = []
    state = f"file://{tmp_path}/state"
    done = scrub(
        f"{fs.url}/d",
        bytes_per_s=50 << 20,
        state=state,
        batch=BatchSize(items=1),
        progress=told.append,
    )
    total += 2 * 1000  # of what only the snapshot shows
    found = done.found
    assert (found.blocks, found.replicas, found.gone) == (4, 7, 0)
    assert found.bytes == 2 * BLOCK_BYTES + 10 + 1000
    assert (found.bad, found.reported, found.lost, found.unreachable) == (3, 2, 1, 0)
    assert [(each.path, each.kind, each.is_reported) for each in found.listed] == [
        ("/d/alone", "corrupt", False),
        ("/d/.snapshot/s/deleted", "corrupt", True),
        ("/d/two", "corrupt", True),
    ]
    assert found.listed[2].datanode == bad
    assert (told[-1].bytes, told[-1].bytes_total) == (total, total)
    assert not done.is_healthy
    assert not (tmp_path / "state").exists(), "nothing is left of it"
    assert not list_views(fs)

    def is_repaired() -> bool:
        checks = fs.verify_replicas("/d/two") + fs.verify_replicas("/d/.snapshot/s/deleted")
        return all(check.good == 2 and not check.bad for check in checks)

    damaged.wait_until(is_repaired, "bad replicas are replaced")


@pytest.mark.long
def test_a_scrub_that_was_killed_goes_on(
    damaged: Cluster, fs: cairnfs.FileSystem, tmp_path: Path
) -> None:
    for n in range(FILES):
        write(fs, f"/k/{n}", bytes([n]) * 1000, replication=2)
    for n in range(FILES):
        wait_for_replicas(damaged, f"/k/{n}", 2)
    work = Place(f"{fs.url}/.cairn-scrub-k/blocks")
    (done, *_) = kill_in_the_middle(work / "done", tmp_path / "log", "scrub", f"{fs.url}/k")
    batch = read_table(work / "plan", TableFile(done.replace(".json", ".parquet")))
    for path in batch.column("path").to_pylist():
        fs.delete(path)
    found = scrub(f"{fs.url}/k", batch=SMALL).found
    assert (found.blocks, found.gone) == (FILES, 0), "what was done is not done again"
    assert (found.replicas, found.bytes, found.bad) == (2 * FILES, 2 * FILES * 1000, 0)
    assert not fs.exists("/.cairn-scrub-k")


def test_what_the_namenodes_know_to_be_wrong(
    damaged: Cluster, fs: cairnfs.FileSystem, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    for n in range(3):
        write(fs, f"/f/a/{n}", b"x" * 100, replication=2)
    write(fs, "/f/several", b"y" * (2 * BLOCK_BYTES + 1), replication=2, block_size=BLOCK_BYTES)
    fs.create_symlink("/nowhere", "/f/a/link")
    fs.mkdirs("/f/none")
    for path in ("/f/several", *(f"/f/a/{n}" for n in range(3))):
        wait_for_replicas(damaged, path, 2)
    report = fsck(f"{fs.url}/f")
    assert report.is_healthy, report
    assert report.problems == []
    assert (report.files, report.directories, report.symlinks) == (4, 3, 1)
    assert (report.blocks, report.replicas) == (6, 12)
    assert report.length_bytes == 2 * BLOCK_BYTES + 301
    assert report.replica_bytes == 2 * report.length_bytes

    write(fs, "/f/lost", b"z" * 100, replication=1)
    write(fs, "/f/wanting", b"z" * 100, replication=3)
    wait_for_replicas(damaged, "/f/wanting", 2)
    with fs.create("/f/open", replication=2) as file:
        file.write(b"open")
        file.flush()
        (place,) = damaged.replica_places("/f/lost")[0]
        node = damaged.datanode_at(place.port)
        node.stop()
        damaged.replica_files(node)[place.block_id].unlink()
        node.start()
        damaged.wait_for_datanodes(2)
        damaged.wait_until(
            lambda: not fs.get_block_locations("/f/lost")[0].datanodes, "the loss is known"
        )
        assert main(_command(fs, "fsck", "/f", "--json")) == 1
    told = json.loads(capfd.readouterr().out)
    assert not told["healthy"]
    assert told["open_files"] == 1
    assert [(each["kind"], each["path"]) for each in told["problems"]] == [
        ("missing", "/f/lost"),
        ("under-replicated", "/f/wanting"),
    ]
    assert told["counts"] == {**dict.fromkeys(KINDS, 0), "missing": 1, "under-replicated": 1}

    fs.delete("/f/open")  # a DataNode of its pipeline was away

    worst = fsck(f"{fs.url}/f", top=1, output=f"file://{tmp_path}/problems")
    assert [each.kind for each in worst.problems] == ["missing"]
    rows = pq.read_table(f"{tmp_path}/problems").to_pylist()
    assert sorted(row["kind"] for row in rows) == ["missing", "under-replicated"]
    fs.delete("/f", recursive=True)


def _command(fs: cairnfs.FileSystem, *arguments: str) -> list[str]:
    return ["job", "--fs", fs.url, *arguments]


def test_records_that_contradict_each_other(
    damaged: Cluster, fs: cairnfs.FileSystem, capfd: pytest.CaptureFixture[str]
) -> None:
    """Somebody has changed the store itself."""
    write(fs, "/r/a/file", b"x" * 100, replication=2)
    wait_for_replicas(damaged, "/r/a/file", 2)
    top = fs.get_file_status("/r")
    (namenode,) = damaged.namenodes
    namenode.stop()
    with sqlite3.connect(damaged.directory / "namespace.db") as store:
        store.execute("UPDATE totals SET files = files + 1 WHERE id = ?", (top.id,))
    store.close()
    namenode.start()
    damaged.wait_for_namenode(namenode)
    damaged.wait_for_datanodes(2)
    fs.set_safe_mode("leave")  # blocks of other tests are being deleted
    assert main(_command(fs, "fsck", "/r")) == 1
    said = capfd.readouterr().out.splitlines()
    assert said[0].startswith("/r: totals: it says 2 files, 1 directories and 100 bytes, there are")
    assert "/r is DAMAGED" in said


def test_refusals(fs: cairnfs.FileSystem, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundException, match="Directory does not exist: /nothing"):
        fsck(f"{fs.url}/nothing")
    with pytest.raises(FileNotFoundException, match="Directory does not exist: /nothing"):
        scrub(f"{fs.url}/nothing")
    with pytest.raises(IllegalArgumentException, match="forever"):
        scrub(f"{fs.url}/", bytes_per_s=0)
