"""Jobs that are killed in the middle go on where they were, and come to the same."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest
from tests.jobs.driver import SMALL
from tests.jobs.trees import make_varied_tree, read_tree, write

import cairnfs
from cairnfs.jobs import backup, mirror, restore
from cairnfs.jobs.backups import BackedUp
from cairnfs.jobs.manifests import read_head
from cairnfs.jobs.places import Place
from cairnfs.testing.cluster import Cluster

pytestmark = [pytest.mark.java, pytest.mark.timeout(1200), pytest.mark.usefixtures("spark")]

LIMIT_S = 400.0  # generous: a JVM has to start, maybe beside much else
FILES = 90


@pytest.fixture
def source(fs: cairnfs.FileSystem) -> str:
    """With a snapshot, s1, of many small files."""
    make_varied_tree(fs, "/data")
    for n in range(FILES):
        write(fs, f"/data/many/{n}", bytes([n]) * n)
    fs.allow_snapshot("/data")
    fs.create_snapshot("/data", "s1")
    return f"{fs.url}/data"


def notes(place: Place) -> set[str]:
    """The batches that are put down as done."""
    return {name for name in place.sizes() if name.endswith(".json")}


def wait_until(is_true: Callable[[], bool], what: str) -> None:
    end_s = time.monotonic() + LIMIT_S
    while not is_true():
        assert time.monotonic() < end_s, f"not within {LIMIT_S} s: {what}"
        time.sleep(0.01)


def kill_in_the_middle(
    place: Place, log: Path, *arguments: str, master: str = "local[2]"
) -> set[str]:
    """Run a job until some of a stage is done, and kill its driver; what was done by then."""
    command = [sys.executable, str(Path(__file__).with_name("driver.py")), arguments[0], master]
    with log.open("wb") as out:
        process = subprocess.Popen([*command, *arguments[1:]], stdout=out, stderr=out)
    try:

        def has_begun() -> bool:
            assert process.poll() is None, log.read_text()
            return len(notes(place)) >= 3

        wait_until(has_begun, f"{place} has notes")
    finally:
        process.kill()
        process.wait()
    return notes(place)


@pytest.mark.long
def test_the_driver_of_a_backup(
    fs: cairnfs.FileSystem, other: cairnfs.FileSystem, source: str, backups: str, tmp_path: Path
) -> None:
    """Run again as a command, which says nothing of what Spark says."""
    done = Place(f"{backups}/s1/work/entries/done")
    before = kill_in_the_middle(done, tmp_path / "log", "backup", source, "s1", backups)
    parts = {msgspec.json.decode(done.read(name), type=BackedUp).part for name in before}
    assert not (tmp_path / "backups/s1/head.json").exists()
    again = subprocess.run(
        [
            *(sys.executable, "-m", "cairnfs.cli", "job", "backup", source, "s1", backups),
            *("--master", "local[2]", "--conf", f"spark.local.dir={tmp_path}"),
        ],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
    )
    assert again.stdout.startswith(f"Backed {source} up as s1 in {backups}: {FILES + 24} files")
    assert again.returncode == 0
    said = again.stderr.splitlines()  # how far it is, now and then
    assert all(line.startswith("cairn job backup: ") for line in said), again.stderr
    assert parts < set(read_head(Place(backups), "s1").parts)  # done, and not done again
    restore(backups, f"{other.url}/again")
    assert read_tree(other, "/again") == read_tree(fs, "/data/.snapshot/s1")


@pytest.mark.long
def test_the_driver_of_a_restore(
    fs: cairnfs.FileSystem, other: cairnfs.FileSystem, source: str, backups: str, tmp_path: Path
) -> None:
    backup(source, "s1", backups)
    done = Place(f"{other.url}/.cairn-restore-again/work/files/done")
    target = f"{other.url}/again"
    kill_in_the_middle(done, tmp_path / "log", "restore", backups, target)
    assert not other.exists("/again")
    restore(backups, target, batch=SMALL)
    assert read_tree(other, "/again") == read_tree(fs, "/data/.snapshot/s1")
    assert [each.name for each in other.list_status("/")] == ["again"]


@pytest.mark.long
def test_the_driver_of_a_mirror(
    fs: cairnfs.FileSystem, other: cairnfs.FileSystem, source: str, tmp_path: Path
) -> None:
    target = f"{other.url}/copy"
    mirror(source, target)
    fs.rename("/data/many", "/data/renamed")
    for n in range(0, FILES, 2):
        fs.rename(f"/data/renamed/{n}", f"/data/plain/{n}.moved")
        write(fs, f"/data/renamed/{n + 1}", b"other")
    done = Place(f"{other.url}/.cairn-mirror-copy/round/arrive/done")
    kill_in_the_middle(done, tmp_path / "log", "mirror", source, target)
    mirror(source, target, batch=SMALL)
    assert read_tree(other, "/copy", inherited=False) == read_tree(fs, "/data", inherited=False)
    assert mirror(source, target).copied_files == 0


def test_a_namenode(
    cluster: Cluster,
    fs: cairnfs.FileSystem,
    other: cairnfs.FileSystem,
    source: str,
    backups: str,
) -> None:
    """It is killed, and started again while the job goes on."""
    done = Place(f"{backups}/s1/work/entries/done")
    with ThreadPoolExecutor(1) as pool:
        job = pool.submit(backup, source, "s1", backups, batch=SMALL)
        wait_until(lambda: len(notes(done)) >= 3 or job.done(), f"{done} has notes")
        cluster.namenodes[0].kill()
        cluster.namenodes[0].start()
        job.result()
    restore(backups, f"{other.url}/again")
    assert read_tree(other, "/again") == read_tree(fs, "/data/.snapshot/s1")
