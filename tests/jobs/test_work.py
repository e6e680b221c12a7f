"""`rollback`, `reclaim` and `satisfy`: they come to what the duties come to, also when killed."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.jobs.test_command import run
from tests.jobs.test_kills import wait_until
from tests.jobs.trees import make_varied_tree, read_tree, write

import cairnfs
from cairnfs.errors import AccessControlException, SnapshotException
from cairnfs.jobs import plan_reclaim, reclaim, rollback, satisfy
from cairnfs.jobs.rolling_back import unfinished_name
from cairnfs.testing.cluster import Cluster

pytestmark = [pytest.mark.java, pytest.mark.timeout(1200), pytest.mark.usefixtures("spark")]

SMALL_ROWS = 50
DIRECTORIES = 12
FILES = 6


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """One of its own, with two types of storage."""
    with Cluster(
        tmp_path_factory.mktemp("work") / "cluster",
        datanodes=1,
        storage_types=("DISK", "ARCHIVE"),
    ) as cluster:
        yield cluster


@pytest.fixture
def data(fs: cairnfs.FileSystem) -> Iterator[cairnfs.FileSystem]:
    """/data in snapshot s1, and much that has changed since."""
    fill(fs)
    yield fs
    remove_and_check(fs)


def fill(fs: cairnfs.FileSystem) -> None:
    make_varied_tree(fs, "/data")
    fs.allow_snapshot("/data")
    fs.create_snapshot("/data", "s1")
    for n in range(DIRECTORIES):
        for m in range(FILES):
            write(fs, f"/data/new/{n}/{m}", b"x" * m)
    fs.delete("/data/listed", recursive=True)
    fs.rename("/data/plain/deep", "/data/moved")
    write(fs, "/data/plain/nothing", b"something")
    read_tree(fs, "/data")  # which changes when they were last read


def remove_and_check(fs: cairnfs.FileSystem) -> None:
    """When the last snapshot is gone, and the tree, nothing is left: no block, no replica."""
    for snapshot in fs.list_snapshots("/data"):
        fs.delete_snapshot("/data", snapshot.status.name)
    fs.disallow_snapshot("/data")
    fs.delete("/data", recursive=True)
    reclaim(fs.url, task_rows=SMALL_ROWS)
    assert fs.snapshot_work().is_done
    assert [page.items for page in fs.list_work()] == [[]]
    wait_until(lambda: fs.get_status().used_bytes < 10_000, "replicas are gone")


def names(fs: cairnfs.FileSystem, path: str = "/data") -> list[str]:
    return [each.status.name for each in fs.list_snapshots(path)]


def check_rolled_back(fs: cairnfs.FileSystem, before: object, safety: str) -> None:
    assert read_tree(fs, "/data") == read_tree(fs, "/data/.snapshot/s1")
    assert read_tree(fs, f"/data/.snapshot/{safety}") == before
    assert sorted(names(fs)) == sorted(["s1", safety])


def test_a_roll_back(data: cairnfs.FileSystem) -> None:
    before = read_tree(data, "/data")
    done = rollback(f"{data.url}/data", "s1", safety="before", task_rows=SMALL_ROWS)
    assert (done.directory, done.safety_snapshot, done.was_done) == ("/data", "before", False)
    assert data.snapshot_work().is_done
    check_rolled_back(data, before, "before")
    data.delete_snapshot("/data", "s1")
    data.delete_snapshot("/data", "before")
    reclaim(data.url, task_rows=SMALL_ROWS)
    assert data.snapshot_work().is_done
    assert reclaim(data.url).rounds == 0
    assert data.exists("/data/plain/deep/deeper/3")


def test_what_they_say(
    data: cairnfs.FileSystem, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CAIRN_FS", data.url)
    title, _, *lines = run(capfd, "rollback", "/data", "s1", "--dry-run").splitlines()
    assert title == "Roll /data back to s1"
    assert {line[:12].strip() for line in lines} == {
        *("bring back", "change back", "move back", "remove"),
    }
    assert names(data) == ["s1"]
    told = json.loads(run(capfd, "rollback", "/data", "s1", "--json"))
    assert told["safety_snapshot"].startswith("before-rollback-")
    assert told["rows"] >= 0
    said = run(capfd, "rollback", "/data", told["safety_snapshot"])
    assert said.startswith(f"Rolled /data back to {told['safety_snapshot']}; looked at ")
    assert "\nto undo that: cairn snapshot rollback /data before-rollback-" in said
    assert run(capfd, "reclaim", code=0) == "Nothing was left to be reclaimed\n"
    assert run(capfd, "reclaim", "--dry-run").endswith("\nThere is nothing to do\n")
    said = run(capfd, "rollback", "/data", "never", code=1)
    assert said.startswith("cairn: /data has no snapshot 'never'; there are before-rollback-")


def test_refusals(data: cairnfs.FileSystem) -> None:
    with pytest.raises(SnapshotException, match="has a snapshot 's1' already"):
        rollback(f"{data.url}/data", "s1", safety="s1")
    with pytest.raises(AccessControlException):
        reclaim(data.url, user="mallory")
    with pytest.raises(AccessControlException):
        plan_reclaim(data.url, user="mallory")


def test_policies_are_satisfied(
    fs: cairnfs.FileSystem, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in range(DIRECTORIES):
        write(fs, f"/data/{n}/file", b"1" * 100, replication=1)
    fs.set_storage_policy("/data", "COLD")
    done = satisfy(fs.url, "/data", task_rows=SMALL_ROWS)
    assert (done.waiting_blocks, done.unsatisfied_blocks, done.reasons) == (0, 0, {})
    assert fs.storage_policy_work().is_done
    (block,) = fs.get_block_locations("/data/3/file")
    assert block.storage_types == ["ARCHIVE"]
    monkeypatch.setenv("CAIRN_FS", fs.url)
    fs.set_storage_policy("/data", "ALL_SSD")
    said = run(capfd, "satisfy", "/data", "--no-wait")
    assert said.startswith("Looked through ")


def kill_driver_when_rolled_back(fs: cairnfs.FileSystem, log: Path, master: str) -> None:
    """The job is under way: what it left is not worked off, or nobody has said that it is."""
    driver = str(Path(__file__).with_name("driver.py"))
    with log.open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, driver, "rollback", master, f"{fs.url}/data", "s1"],
            stdout=out,
            stderr=out,
        )
    try:

        def is_under_way() -> bool:
            assert process.poll() is None, log.read_text()
            return unfinished_name("s1") in names(fs)

        wait_until(is_under_way, "it is rolled back")
    finally:
        process.kill()
        process.wait()


def test_the_driver_is_killed(data: cairnfs.FileSystem, tmp_path: Path) -> None:
    before = read_tree(data, "/data")
    kill_driver_when_rolled_back(data, tmp_path / "log", "local[2]")
    assert unfinished_name("s1") in names(data)
    write(data, "/data/plain/since", b"kept")  # somebody goes on to work
    done = rollback(f"{data.url}/data", "s1", safety="before", task_rows=SMALL_ROWS)
    assert done.was_done
    assert data.snapshot_work().is_done
    assert data.open("/data/plain/since").read() == b"kept"
    data.delete("/data/plain/since")
    assert read_tree(data, "/data/.snapshot/before") == before
    assert sorted(names(data)) == ["before", "s1"]


def test_a_namenode_is_killed(cluster: Cluster, data: cairnfs.FileSystem) -> None:
    """It is started again while the job goes on."""
    before = read_tree(data, "/data")
    with ThreadPoolExecutor(1) as pool:
        job = pool.submit(rollback, f"{data.url}/data", "s1", safety="before", task_rows=SMALL_ROWS)
        wait_until(lambda: len(names(data)) > 1 or job.done(), "it is rolled back")
        cluster.namenodes[0].kill()
        cluster.namenodes[0].start()
        job.result()
    check_rolled_back(data, before, "before")
