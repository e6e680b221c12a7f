"""Selective copy-on-append (Agarwal, Borthakur, Stoica, section 3.2): what is copied, and what not.

A file is appended to (A) and cut (T), with a snapshot between any two steps.  Each snapshot has
to be what it was, to the byte, for every client, whatever becomes of DataNodes.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.scenarios.jvm import Jvm
from tests.snapshots.local_cluster import LocalCluster

import cairnfs

BLOCK_BYTES = 1 << 20
STEP_BYTES = 100_003
FIRST_BYTES = 500_009
REPLICAS = 3
SEQUENCES = ("AAA", "TTT", "AAATTT", "TTTA", "TTTAAATTTA")


@pytest.fixture
def make_cluster(tmp_path: Path) -> Iterator[Callable[..., LocalCluster]]:
    made: list[LocalCluster] = []

    def make(**options: Any) -> LocalCluster:
        made.append(LocalCluster(tmp_path / f"cluster{len(made)}", **options))
        return made[-1]

    try:
        yield make
    finally:
        for cluster in made:
            cluster.__exit__(None, None, None)


@pytest.fixture
def cluster(make_cluster: Callable[..., LocalCluster]) -> LocalCluster:
    return make_cluster()


class History:
    """A file in a directory that snapshots are taken of, and what each of them has to have."""

    def __init__(self, cluster: LocalCluster, fs: cairnfs.FileSystem, directory: str) -> None:
        self.cluster = cluster
        self.fs = fs
        self.directory = directory
        self.path = f"{directory}/f"
        self.chooser = random.Random(directory)
        self.copied_bytes = 0  # for one replica
        self.snapshots: dict[str, bytes] = {}
        self.data = self.chooser.randbytes(FIRST_BYTES)
        fs.mkdirs(directory)
        cluster.calls.allow_snapshot(directory)
        with fs.create(self.path, replication=REPLICAS, block_size=BLOCK_BYTES) as file:
            file.write(self.data)

    def snapshot(self) -> None:
        name = f"s{len(self.snapshots)}"
        self.cluster.calls.create_snapshot(self.directory, name)
        self.snapshots[name] = self.data

    def do(self, step: str) -> None:
        if step == "T":
            self.data = self.data[:-STEP_BYTES]
            assert self.fs.truncate(self.path, len(self.data))
            return
        more = self.chooser.randbytes(STEP_BYTES)
        with self.fs.append(self.path) as file:
            file.write(more)
        self.data += more

    def measure(self, step: str) -> None:
        """Do it, and count what disks have more than was written."""
        before_bytes = self._stored_bytes()
        self.do(step)
        written_bytes = STEP_BYTES if step == "A" else 0
        self.copied_bytes += self._stored_bytes() - before_bytes - written_bytes

    def _stored_bytes(self) -> int:
        """What one replica of each block has, when all of them are alike."""
        return sum(self.cluster.wait_for_equal_replicas(REPLICAS).values())

    def run(self, sequence: str, *, is_measured: bool = False) -> None:
        for step in sequence:
            self.snapshot()
            (self.measure if is_measured else self.do)(step)
        self.snapshot()

    def check(self, read: Callable[[str], bytes]) -> None:
        assert read(self.path) == self.data
        for name, expected in self.snapshots.items():
            assert read(f"{self.directory}/.snapshot/{name}/f") == expected, name


def reading(fs: cairnfs.FileSystem) -> Callable[[str], bytes]:
    def read(path: str) -> bytes:
        with fs.open(path) as file:
            data: bytes = file.read()
        return data

    return read


@pytest.mark.parametrize(
    ("sequence", "copied_bytes"),
    [
        ("AAA", 0),
        ("TTT", 0),
        ("AAATTT", 0),
        ("TTTA", FIRST_BYTES - 3 * STEP_BYTES),
        ("TAATA", 2 * (FIRST_BYTES - STEP_BYTES) + 2 * STEP_BYTES - STEP_BYTES),
    ],
)
def test_what_is_copied(cluster: LocalCluster, sequence: str, copied_bytes: int) -> None:
    """No more than what the paper says: an append that follows a truncate."""
    with cairnfs.connect(cluster.uri) as fs:
        history = History(cluster, fs, "/d")
        history.run(sequence, is_measured=True)
        history.check(reading(fs))
        assert history.copied_bytes == copied_bytes


def test_without_a_snapshot_nothing_is_copied(cluster: LocalCluster) -> None:
    """And what is cut is gone, on the disks too."""
    with cairnfs.connect(cluster.uri) as fs:
        history = History(cluster, fs, "/d")
        for step in "AT":
            history.measure(step)
        assert history.copied_bytes == -STEP_BYTES
        history.measure("A")
        assert history.copied_bytes == -STEP_BYTES
        history.check(reading(fs))


def test_a_cut_behind_what_a_snapshot_has_is_made_on_disks(cluster: LocalCluster) -> None:
    with cairnfs.connect(cluster.uri) as fs:
        history = History(cluster, fs, "/d")
        history.snapshot()
        for step in "AATA":
            history.measure(step)
        history.check(reading(fs))
        assert history.copied_bytes == -STEP_BYTES
        (block,) = cluster.blocks_of("/d/f")
        assert block.length_bytes == block.replica_bytes == len(history.data)


def test_always_copied_if_it_is_set(make_cluster: Callable[..., LocalCluster]) -> None:
    cluster = make_cluster(copy_always=True)
    with cairnfs.connect(cluster.uri) as fs:
        history = History(cluster, fs, "/d")
        history.run("AAA", is_measured=True)
        history.check(reading(fs))
        assert history.copied_bytes == 3 * FIRST_BYTES + 3 * STEP_BYTES


@pytest.mark.java
def test_every_client_reads_every_snapshot(cluster: LocalCluster, tmp_path: Path) -> None:
    with (
        cairnfs.connect(cluster.uri) as fs,
        Jvm(cluster, tmp_path / "java") as java,  # type: ignore[arg-type]
    ):
        native = native_reader(cluster)
        for number, sequence in enumerate(SEQUENCES):
            history = History(cluster, fs, f"/{number}")
            history.run(sequence)
            for read in (reading(fs), java.read, native):
                history.check(read)
            # Hadoop's client goes on with the file as the other one has left it.
            for name, more in (("x", b"by Java" * 1000), ("y", b"again")):
                out = java.append(history.path)
                out.write(more)
                out.close()
                history.data += more
                cluster.calls.create_snapshot(history.directory, name)
                history.snapshots[name] = history.data
                assert java.truncate(history.path, len(history.data) - 3)
                history.data = history.data[:-3]
            for read in (reading(fs), java.read, native):
                history.check(read)


def native_reader(cluster: LocalCluster) -> Callable[[str], bytes]:
    hdfs_native = pytest.importorskip("hdfs_native")
    client = hdfs_native.Client(cluster.uri)

    def read(path: str) -> bytes:
        with client.read(path) as file:
            data: bytes = file.read()
        return data

    return read


def test_datanodes_die_and_others_take_their_place(cluster: LocalCluster) -> None:
    with cairnfs.connect(cluster.uri) as fs:
        histories = [History(cluster, fs, f"/{number}") for number in range(len(SEQUENCES))]
        for history, sequence in zip(histories, SEQUENCES, strict=True):
            history.run(sequence)
        expected = cluster.wait_for_equal_replicas(REPLICAS)

        cluster.stop_datanode(0)
        for history in histories:
            history.check(reading(fs))
        cluster.start_datanode(3)  # a new one; what the first had is made anew, as long as it was
        assert cluster.wait_for_equal_replicas(REPLICAS) == expected
        cluster.stop_datanode(1)
        cluster.stop_datanode(2)
        for history in histories:
            history.check(reading(fs))
        for number in (1, 2):
            cluster.start_datanode(number)
        assert cluster.wait_for_equal_replicas(REPLICAS) == expected
        for history in histories:
            history.do("A")
            history.check(reading(fs))


def test_all_nodes_are_started_again(cluster: LocalCluster) -> None:
    with cairnfs.connect(cluster.uri) as fs:
        histories = [History(cluster, fs, f"/{number}") for number in range(len(SEQUENCES))]
        for history, sequence in zip(histories, SEQUENCES, strict=True):
            history.run(sequence)
        cluster.restart()
        for history in histories:
            history.check(reading(fs))
            history.run("TA")
            history.check(reading(fs))


def test_a_writer_has_the_file_open(cluster: LocalCluster) -> None:
    """Each snapshot has what was synced before it, and nothing that came after."""
    with cairnfs.connect(cluster.uri) as fs:
        history = History(cluster, fs, "/d")
        history.run("T")
        writer = fs.append(history.path)
        for number in range(15):
            more = history.chooser.randbytes(STEP_BYTES)
            writer.write(more)
            (writer.hsync if number % 2 else writer.flush)()
            history.data += more
            history.snapshot()
            writer.write(b"not synced")
            history.data += b"not synced"
        writer.hsync()
        history.check(reading(fs))
        cluster.stop_datanode(0)  # the pipeline is mended
        writer.write(b"more")
        writer.hsync()
        history.data += b"more"
        history.check(reading(fs))
        writer.abort()  # as one that is gone
        fs.recover_lease(history.path)
        cluster.wait_until(lambda: fs.is_file_closed(history.path), "it is closed")
        history.check(reading(fs))
        cluster.start_datanode(0)
        cluster.restart()
        history.check(reading(fs))
        history.run("TA")
        history.check(reading(fs))


def test_a_length_that_the_namenode_is_not_told_is_not_in_a_snapshot(cluster: LocalCluster) -> None:
    with cairnfs.connect(cluster.uri) as fs:
        history = History(cluster, fs, "/d")
        writer = fs.append(history.path)
        writer.write(b"told")
        writer.flush()
        history.data += b"told"
        writer.write(b"not told")
        writer.flush(update_length=False)
        history.snapshot()
        history.data += b"not told"
        writer.close()
        history.check(reading(fs))


def test_a_file_deleted_under_its_writer_stays_in_the_snapshot(cluster: LocalCluster) -> None:
    """What was synced survives that its DataNodes are started again."""
    with cairnfs.connect(cluster.uri) as fs:
        history = History(cluster, fs, "/d")
        writer = fs.append(history.path)
        writer.write(b"x" * STEP_BYTES)
        writer.hsync()
        history.data += b"x" * STEP_BYTES
        history.snapshot()
        expected = history.data
        fs.delete(history.path)
        writer.abort()
        read = reading(fs)
        assert read("/d/.snapshot/s0/f") == expected
        cluster.wait_until(
            lambda: list(cluster.lengths().values()) == [[len(expected)] * REPLICAS],
            "the block is finished",
        )
        cluster.restart()
        assert read("/d/.snapshot/s0/f") == expected
        cluster.calls.delete_snapshot("/d", "s0")
        cluster.wait_for_replicas({})


def test_a_directory_deleted_under_a_writer_stays_in_the_snapshot(cluster: LocalCluster) -> None:
    with cairnfs.connect(cluster.uri) as fs:
        fs.mkdirs("/top")
        history = History(cluster, fs, "/top/d")
        cluster.calls.disallow_snapshot("/top/d")
        cluster.calls.allow_snapshot("/top")
        writer = fs.append(history.path)
        writer.write(b"x" * STEP_BYTES)
        writer.hsync()
        expected = history.data + b"x" * STEP_BYTES
        cluster.calls.create_snapshot("/top", "s")
        fs.delete("/top/d", recursive=True)
        writer.abort()
        cluster.wait_until(
            lambda: list(cluster.lengths().values()) == [[len(expected)] * REPLICAS],
            "the block is finished",
        )
        cluster.restart()
        assert reading(fs)("/top/.snapshot/s/d/f") == expected


def test_a_clone_and_its_origin_go_their_own_ways(cluster: LocalCluster) -> None:
    """They share blocks, and whoever appends has a copy of the last one."""
    with cairnfs.connect(cluster.uri) as fs:
        history = History(cluster, fs, "/d")
        history.snapshot()
        cluster.calls.clone_snapshot("/d", "s0", "/clone")
        read = reading(fs)
        clone = history.data
        assert read("/clone/f") == clone
        for step, path in (("A", "/clone/f"), ("A", "/d/f"), ("T", "/clone/f"), ("A", "/clone/f")):
            if path == "/d/f":
                history.do(step)
            elif step == "A":
                with fs.append(path) as file:
                    file.write(b"clone" * 1000)
                clone += b"clone" * 1000
            else:
                clone = clone[:-STEP_BYTES]
                fs.truncate(path, len(clone))
                cluster.wait_until(lambda: fs.is_file_closed("/clone/f"), "it is cut")
            assert read("/clone/f") == clone
            history.check(read)
        cluster.calls.delete_snapshot("/d", "s0")
        fs.delete("/d/f")
        cluster.reclaim()
        assert read("/clone/f") == clone
        cluster.restart()
        assert read("/clone/f") == clone


@pytest.mark.parametrize("cut", ["/clone", "/f"])
def test_truncate_of_a_shared_block_leaves_the_other_file_whole(
    cluster: LocalCluster, cut: str
) -> None:
    """No snapshot needs the block: the other file alone keeps its replicas from being cut."""
    data = random.Random(0).randbytes(FIRST_BYTES)
    with cairnfs.connect(cluster.uri) as fs:
        with fs.create("/f", replication=REPLICAS, block_size=BLOCK_BYTES) as file:
            file.write(data)
        fs.allow_snapshot("/f")
        fs.create_snapshot("/f", "s")
        fs.clone_snapshot("/f", "s", "/clone")
        fs.delete_snapshot("/f", "s")
        cluster.reclaim()
        assert fs.truncate(cut, FIRST_BYTES - STEP_BYTES)
        read = reading(fs)
        expected = {"/f": data, "/clone": data}
        expected[cut] = data[: FIRST_BYTES - STEP_BYTES]
        assert {path: read(path) for path in expected} == expected
        assert list(cluster.wait_for_equal_replicas(REPLICAS).values()) == [FIRST_BYTES]
        with fs.append(cut) as file:
            file.write(b"more")
        expected[cut] += b"more"
        assert {path: read(path) for path in expected} == expected
        cluster.check()


def test_a_file_is_rolled_back_under_its_writer(cluster: LocalCluster) -> None:
    """What was synced is there, also when the block that was being written has another stamp."""
    with cairnfs.connect(cluster.uri) as fs:
        history = History(cluster, fs, "/d")
        writer = fs.append(history.path)
        writer.write(b"x" * STEP_BYTES)
        writer.hsync()
        history.data += b"x" * STEP_BYTES
        history.snapshot()
        expected = history.data
        writer.write(b"y" * STEP_BYTES)
        writer.hsync()
        cluster.calls.rollback_snapshot("/d", "s0")
        read = reading(fs)
        assert read("/d/f") == expected
        writer.abort()
        cluster.wait_until(
            lambda: (
                len(cluster.lengths()) == 1
                and len(next(iter(cluster.lengths().values()))) == REPLICAS
            ),
            "the block is finished",
        )
        assert read("/d/f") == expected
        cluster.restart()
        assert read("/d/f") == read("/d/.snapshot/s0/f") == expected
        with fs.append("/d/f") as file:
            file.write(b"z")
        assert read("/d/f") == expected + b"z"
        assert read("/d/.snapshot/s0/f") == expected
        for snapshot in cluster.calls.list_snapshots("/d"):
            cluster.calls.delete_snapshot("/d", snapshot.name.decode())
        cluster.reclaim()
        cluster.restart()
        assert read("/d/f") == expected + b"z"
