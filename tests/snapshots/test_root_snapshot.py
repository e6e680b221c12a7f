"""The root snapshot with DataNodes: every byte comes back, and finalizing releases their disks."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.snapshots.local_cluster import LocalCluster

import cairnfs

BLOCK_BYTES = 1 << 20
REPLICAS = 2
ROLL_BACKS = 6

Files = dict[str, tuple[bytes, bytes]]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[LocalCluster]:
    with LocalCluster(tmp_path / "cluster", datanodes=REPLICAS) as cluster:
        yield cluster


def write(fs: cairnfs.FileSystem, path: str, data: bytes) -> None:
    with fs.create(path, replication=REPLICAS, block_size=BLOCK_BYTES, overwrite=True) as file:
        file.write(data)


def read_all(fs: cairnfs.FileSystem, top: str = "/") -> Files:
    """What is in every file, and its checksum as DataNodes tell it."""
    found: Files = {}
    directories = [top]
    while directories:
        for status in fs.list_status(directories.pop()):
            if status.is_directory:
                directories.append(status.path)
                continue
            with fs.open(status.path) as file:
                data = file.read()
            checksum = fs.get_file_checksum(status.path)
            assert checksum is not None
            found[status.path.removeprefix(top.rstrip("/"))] = (data, checksum.digest)
    return found


def truncate(cluster: LocalCluster, fs: cairnfs.FileSystem, path: str, length: int) -> None:
    fs.truncate(path, length)
    cluster.wait_until(lambda: fs.is_file_closed(path), f"{path} is cut")


def change_everything(
    cluster: LocalCluster, fs: cairnfs.FileSystem, chooser: random.Random
) -> None:
    """Appends, truncates, both one after another, deletions, moves, new files and quotas."""
    with fs.append("/data/appended") as file:
        file.write(chooser.randbytes(700_001))
    truncate(cluster, fs, "/data/cut", 100_003)
    truncate(cluster, fs, "/data/both", BLOCK_BYTES + 17)
    with fs.append("/data/both") as file:
        file.write(chooser.randbytes(200_003))
    fs.delete("/data/deleted")
    fs.rename("/data/below", "/moved")
    write(fs, "/data/kept", chooser.randbytes(99))
    write(fs, "/new", chooser.randbytes(1_500_000))
    fs.set_quota("/data", namespace_quota=3)
    fs.set_quota("/", space_quota_bytes=1 << 40)


def test_every_byte_comes_back_and_space_is_released(cluster: LocalCluster) -> None:
    chooser = random.Random(6)
    with cairnfs.connect(cluster.uri) as fs:
        # Half-filled blocks, and quotas: what the thesis leaves out.
        fs.mkdirs("/data/below")
        fs.set_quota("/data", namespace_quota=20, space_quota_bytes=100 << 20)
        for name in ("appended", "cut", "both", "deleted", "kept", "below/deep"):
            write(fs, f"/data/{name}", chooser.randbytes(2 * BLOCK_BYTES - 300_007))
        before, summary = read_all(fs), fs.get_content_summary("/data")
        taken = fs.create_root_snapshot()
        change_everything(cluster, fs, chooser)
        after = read_all(fs)
        assert read_all(fs, f"/.snapshot/{taken.name}") == before

        safety = fs.rollback_root_snapshot()
        assert read_all(fs) == before
        assert read_all(fs, f"/.snapshot/{safety}") == after
        assert fs.get_content_summary("/data") == summary
        fs.rollback_snapshot("/", safety)
        assert read_all(fs) == after
        fs.rollback_root_snapshot()
        with fs.append("/data/appended") as file:  # what came back can be written on
            file.write(b"more")
        truncate(cluster, fs, "/data/cut", 5)
        changed = read_all(fs)
        differing = {path for path in before if changed[path] != before[path]}
        assert differing == {"/data/appended", "/data/cut"}

        status = fs.root_snapshot_status()
        assert status is not None
        assert (status.snapshot.name, status.snapshot.txid) == (taken.name, taken.txid)
        assert len(status.snapshot.safety_snapshots) == 3
        assert status.now.files == status.then.files == len(before)
        deleted = fs.finalize_root_snapshot()
        assert deleted == [*status.snapshot.safety_snapshots, taken.name]
        cluster.wait_until(lambda: fs.snapshot_work().is_done, "everything is reclaimed")
        assert read_all(fs) == changed
        fs.delete("/data/deleted")  # nothing holds what came back but the file itself
        kept = changed.keys() - {"/data/deleted"}
        blocks = {block.id for path in kept for block in cluster.blocks_of(path)}
        cluster.wait_until(lambda: set(cluster.lengths()) == blocks, "no other block has replicas")
        assert read_all(fs) == {path: changed[path] for path in kept}
        cluster.check()


def test_readers_see_before_or_after(cluster: LocalCluster) -> None:
    """Whoever looks while it is rolled back, back and forth, sees one of two states, whole."""
    names = [f"{number:02}" for number in range(20)]
    with cairnfs.connect(cluster.uri) as fs, cairnfs.connect(cluster.uri) as other:
        for name in names:
            write(fs, f"/d/{name}", b"old")
        before = look(fs)
        fs.create_root_snapshot()
        for name in names[::2]:
            fs.delete(f"/d/{name}")
        for name in names[1::4]:
            write(fs, f"/d/{name}", b"newer")
        after = look(fs)
        is_over = threading.Event()

        def watch() -> set[str]:
            seen = set()
            while not is_over.is_set() or len(seen) < 2:
                found = look(other)
                assert found in (before, after)
                with other.open("/d/01") as file:
                    assert file.read() in (b"old", b"newer")
                seen.add("before" if found == before else "after")
            return seen

        with ThreadPoolExecutor(1) as pool:
            watching = pool.submit(watch)
            try:
                for _ in range(ROLL_BACKS):
                    safety = fs.rollback_root_snapshot()
                    assert look(fs) == before
                    fs.rollback_snapshot("/", safety)
                    assert look(fs) == after
            finally:
                is_over.set()
                fs.rollback_root_snapshot()  # so that both were to be seen
            assert watching.result() == {"before", "after"}


def look(fs: cairnfs.FileSystem) -> tuple[list[tuple[str, int]], int]:
    """All of it, each by one call."""
    listed = [(status.path, status.length_bytes) for status in fs.list_status("/d")]
    return listed, sum(length for _, length in listed)
