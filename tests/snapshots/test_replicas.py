"""On disks is what the namespace and its snapshots need: nothing is missing, nothing left over."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.snapshots.local_cluster import LocalCluster

import cairnfs
from cairnfs.errors import HdfsError

BLOCK_BYTES = 1 << 20
REPLICAS = 2
STEPS = 40
DIRECTORIES = ("/d", "/d/x", "/d/x/y", "/other")


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[LocalCluster]:
    with LocalCluster(tmp_path / "cluster", datanodes=2) as cluster:
        yield cluster


@pytest.mark.parametrize("acts", [("delete",), ("clone", "roll back", "delete")])
def test_replicas_are_those_that_are_needed(cluster: LocalCluster, acts: tuple[str, ...]) -> None:
    chance = random.Random(0)
    with cairnfs.connect(cluster.uri) as fs:
        for path in DIRECTORIES:
            fs.mkdirs(path)
        for path in ("/d", "/d/x"):
            fs.allow_snapshot(path)
        expected: dict[str, dict[str, bytes]] = {}  # of each snapshot
        for step in range(STEPS):
            change(cluster, fs, chance, step)
            if step % 4 == 3:
                where = fs.create_snapshot(chance.choice(("/d", "/d/x")), f"s{step}")
                expected[where] = read_all(fs, where)
            if step % 8 == 6:
                where = chance.choice(sorted(expected))
                directory, _, name = where.partition("/.snapshot/")
                act = chance.choice(acts)
                if act == "clone":
                    fs.clone_snapshot(directory, name, f"/clone{step}")
                    change_file(fs, chance, f"/clone{step}")
                elif act == "roll back":
                    given_up = f"{directory}/.snapshot/{fs.rollback_snapshot(directory, name)}"
                    expected[given_up] = read_all(fs, given_up)
                else:
                    fs.delete_snapshot(directory, name)
                    del expected[where]
        assert expected
        for where, contents in expected.items():
            assert read_all(fs, where) == contents, f"{where} has changed"
        live = read_all(fs, "/")
        for where in expected:
            directory, _, name = where.partition("/.snapshot/")
            fs.delete_snapshot(directory, name)
        assert read_all(fs, "/") == live
        if acts == ("delete",):  # else directories have an origin, and with it all that was there
            wait_for_no_more_than(cluster, needed_by_files(cluster, fs))
        for entry in fs.list_status("/"):
            fs.delete(entry.path, recursive=True)
        wait_for_no_more_than(cluster, Counter())


def test_blocks_that_files_share_are_waited_for_once(cluster: LocalCluster) -> None:
    """Else a NameNode that starts would wait for more blocks than there are."""
    with cairnfs.connect(cluster.uri) as fs:
        fs.mkdirs("/d")
        for number in range(4):
            write(fs, f"/d/{number}", b"shared")
        fs.allow_snapshot("/d")
        fs.create_snapshot("/d", "s")
        fs.clone_snapshot("/d", "s", "/clone")
        for number in range(4):
            fs.set_permission(f"/clone/{number}", 0o600)  # it has rows of its own now
        cluster.restart()
        assert read_all(fs, "/clone") == {f"/clone/{number}": b"shared" for number in range(4)}


def test_a_directory_is_rolled_back_under_writers(cluster: LocalCluster) -> None:
    """They are told, the directory is what it was, and what they had synced can be gone back to."""
    with cairnfs.connect(cluster.uri) as fs:
        fs.mkdirs("/d/sub")
        write(fs, "/d/old", b"old")
        fs.allow_snapshot("/d")
        fs.create_snapshot("/d", "s")
        new = fs.create("/d/sub/new", replication=REPLICAS, block_size=BLOCK_BYTES)
        more = fs.append("/d/old")
        for writer in (new, more):
            writer.write(b"and more")
            writer.hsync(update_length=True)
        given_up = fs.rollback_snapshot("/d", "s")
        for writer in (new, more):
            with pytest.raises(HdfsError, match="/d/"):
                writer.close()
        assert read_all(fs, "/d") == {"/d/old": b"old"}
        top = f"/d/.snapshot/{given_up}"
        assert read_all(fs, top) == {f"{top}/old": b"oldand more", f"{top}/sub/new": b"and more"}
        with fs.append("/d/old") as file:
            file.write(b" again")
        assert read_all(fs, "/d") == {"/d/old": b"old again"}
        fs.rollback_snapshot("/d", given_up)
        assert read_all(fs, "/d") == {"/d/old": b"oldand more", "/d/sub/new": b"and more"}
        for snapshot in fs.list_snapshots("/d"):
            fs.delete_snapshot("/d", snapshot.status.name)
        fs.delete("/d", recursive=True)
        wait_for_no_more_than(cluster, Counter())


def change(cluster: LocalCluster, fs: cairnfs.FileSystem, chance: random.Random, step: int) -> None:
    directories = [path for path in DIRECTORIES if fs.exists(path)]
    files = sorted(path for path in read_all(fs, "/") if "/clone" not in path)
    match chance.randrange(6) if files else 0:
        case 0 | 1:
            content = chance.randbytes(chance.randrange(1, 3000))
            write(fs, f"{chance.choice(directories)}/f{step}", content)
        case 2:
            fs.delete(chance.choice(files))
        case 3:
            change_file(fs, chance, chance.choice(files))
        case 4:
            fs.rename(chance.choice(files), f"{chance.choice(directories)}/r{step}")
        case _:
            path = chance.choice(files)
            length_bytes = fs.get_file_status(path).length_bytes
            if not fs.truncate(path, chance.randint(0, length_bytes)):
                cluster.wait_until(lambda: fs.is_file_closed(path), f"{path} is cut")


def change_file(fs: cairnfs.FileSystem, chance: random.Random, top: str) -> None:
    """Append to a file at or below a path."""
    files = sorted(read_all(fs, top))
    if files:
        with fs.append(chance.choice(files)) as file:
            file.write(chance.randbytes(100))


def write(fs: cairnfs.FileSystem, path: str, content: bytes) -> None:
    with fs.create(path, replication=REPLICAS, block_size=BLOCK_BYTES) as file:
        file.write(content)


def read_all(fs: cairnfs.FileSystem, top: str) -> dict[str, bytes]:
    """The contents of all files at or below a path."""
    status = fs.get_file_status(top)
    if status.is_file:
        with fs.open(top) as file:
            return {top: file.read()}
    contents: dict[str, bytes] = {}
    for entry in fs.list_status(top):
        contents |= read_all(fs, entry.path)
    return contents


def needed_by_files(cluster: LocalCluster, fs: cairnfs.FileSystem) -> Counter[int]:
    """How many replicas there have to be of each block."""
    needed: Counter[int] = Counter()
    for path in read_all(fs, "/"):
        for located in cluster.calls.get_block_locations(path).blocks:
            needed[located.block.id] = REPLICAS
    return needed


def wait_for_no_more_than(cluster: LocalCluster, needed: Counter[int]) -> None:
    """Until there is just that on disks, finished or not."""

    def found() -> Counter[int]:
        return Counter(
            int(path.name.removeprefix("blk_"))
            for number in cluster.datanodes
            for path in cluster.disk_of(number).rglob("blk_*")
            if path.name.removeprefix("blk_").isdigit()
        )

    cluster.wait_until(lambda: found() == needed, f"just {needed} are on disks")
    cluster.check()
