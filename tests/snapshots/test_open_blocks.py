"""Blocks that are being written when a roll-back, a delete or a clone takes or shares them.

Every acknowledged byte stays readable, whatever becomes of the writer, of the file that it wrote,
and of the DataNodes.  Afterwards each block has as many good replicas as its files ask for.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from tests.snapshots.local_cluster import LocalCluster

import cairnfs
from cairnfs.blocks.records import Block, block_key
from cairnfs.errors import HdfsError
from cairnfs.transaction.calls import operation
from cairnfs.transaction.transaction import Transaction

REPLICAS = 3
BLOCK_BYTES = 1 << 20
FIRST = b"1" * 1000
MORE = b"2" * 500
LAST = b"3" * 700


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[LocalCluster]:
    with LocalCluster(tmp_path / "cluster") as cluster:
        yield cluster


@pytest.fixture
def fs(cluster: LocalCluster) -> Iterator[cairnfs.FileSystem]:
    with cairnfs.connect(cluster.uri) as fs:
        yield fs


def create(fs: cairnfs.FileSystem, path: str) -> cairnfs.OutputStream:
    return fs.create(path, replication=REPLICAS, block_size=BLOCK_BYTES)


def write(fs: cairnfs.FileSystem, path: str, data: bytes) -> None:
    with create(fs, path) as file:
        file.write(data)


def append(fs: cairnfs.FileSystem, path: str, data: bytes) -> None:
    with fs.append(path) as file:
        file.write(data)


def open_with(writer: cairnfs.OutputStream, data: bytes) -> cairnfs.OutputStream:
    """Flush some bytes, and leave the file open."""
    writer.write(data)
    writer.flush()
    return writer


def read(fs: cairnfs.FileSystem, path: str) -> bytes:
    with fs.open(path) as file:
        data: bytes = file.read()
    return data


def check_replicas(cluster: LocalCluster, fs: cairnfs.FileSystem, path: str) -> None:
    """Every block has all its replicas, they are good, and fsck finds nothing wrong."""

    def are_good() -> bool:
        checks = fs.verify_replicas(path)
        return bool(checks) and all(check.good == REPLICAS and not check.bad for check in checks)

    cluster.wait_until(are_good, f"{path} has {REPLICAS} good replicas")
    assert not any(located.is_corrupt for located in fs.get_block_locations(path))


# Roll-backs of a file that has snapshots of its own.


@pytest.mark.parametrize("is_nested", [False, True])
@pytest.mark.parametrize("was_open", [False, True])
def test_rollback_of_an_open_file_keeps_all_flushed_bytes(
    cluster: LocalCluster, fs: cairnfs.FileSystem, was_open: bool, is_nested: bool
) -> None:
    """By itself or inside a directory; closed or being created when the snapshot was taken."""
    fs.mkdirs("/d")
    if was_open:
        writer = open_with(create(fs, "/d/f"), FIRST)
    else:
        write(fs, "/d/f", FIRST)
    fs.allow_snapshot("/d/f")
    fs.create_snapshot("/d/f", "own")
    top = "/d" if is_nested else "/d/f"
    if is_nested:
        fs.allow_snapshot("/d")
        fs.create_snapshot("/d", "s")
    if not was_open:
        writer = fs.append("/d/f")
    open_with(writer, MORE)
    given_up = fs.rollback_snapshot(top, "s" if is_nested else "own")
    writer.abort()
    expected = {
        "/d/f": FIRST,
        "/d/f/.snapshot/own": FIRST,
        f"{top}/.snapshot/{given_up}{'/f' if is_nested else ''}": FIRST + MORE,
    }
    if is_nested:
        expected["/d/.snapshot/s/f"] = FIRST
    assert {path: read(fs, path) for path in expected} == expected
    cluster.check()
    cluster.wait_until(lambda: bool(cluster.lengths()), "the block is finished")
    cluster.restart()
    assert {path: read(fs, path) for path in expected} == expected
    append(fs, "/d/f", LAST)
    expected["/d/f"] += LAST
    assert {path: read(fs, path) for path in expected} == expected
    for path in expected:
        check_replicas(cluster, fs, path)
    cluster.check()


# Files that share a block with one that is being written.


@pytest.fixture(params=["created", "appended"])
def shared(
    request: pytest.FixtureRequest, cluster: LocalCluster, fs: cairnfs.FileSystem
) -> cairnfs.OutputStream:
    """The writer of /d/f, of which /clone/f has got a row of its own while it was being written.

    The file was open when the snapshot was taken, or it was closed, and is appended to now.
    """
    fs.mkdirs("/d")
    fs.allow_snapshot("/d")
    if request.param == "created":
        writer = open_with(create(fs, "/d/f"), FIRST)
        fs.create_snapshot("/d", "s")
    else:
        write(fs, "/d/f", FIRST)
        fs.create_snapshot("/d", "s")
        writer = fs.append("/d/f")
    open_with(writer, MORE)
    fs.clone_snapshot("/d", "s", "/clone")
    fs.set_permission("/clone/f", 0o600)
    return writer


def test_a_clone_is_read_while_its_origin_is_written(
    cluster: LocalCluster, fs: cairnfs.FileSystem, shared: cairnfs.OutputStream
) -> None:
    assert read(fs, "/clone/f") == FIRST
    shared.write(LAST)
    shared.close()
    assert read(fs, "/clone/f") == FIRST
    assert read(fs, "/d/f") == FIRST + MORE + LAST
    check_replicas(cluster, fs, "/clone/f")
    cluster.check()


def test_a_clone_is_appended_to_while_its_origin_is_written(
    cluster: LocalCluster, fs: cairnfs.FileSystem, shared: cairnfs.OutputStream
) -> None:
    append(fs, "/clone/f", b"a" * 10)
    append(fs, "/clone/f", b"b" * 10)
    shared.write(LAST)
    shared.close()
    append(fs, "/clone/f", b"c" * 10)
    assert read(fs, "/clone/f") == FIRST + b"a" * 10 + b"b" * 10 + b"c" * 10
    assert read(fs, "/d/f") == FIRST + MORE + LAST
    for path in ("/clone/f", "/d/f"):
        check_replicas(cluster, fs, path)
    cluster.check()


def test_a_clone_is_cut_while_its_origin_is_written(
    cluster: LocalCluster, fs: cairnfs.FileSystem, shared: cairnfs.OutputStream
) -> None:
    assert fs.truncate("/clone/f", 600)
    append(fs, "/clone/f", LAST)
    shared.write(LAST)
    shared.close()
    assert read(fs, "/clone/f") == FIRST[:600] + LAST
    assert read(fs, "/d/f") == FIRST + MORE + LAST
    cluster.check()


def test_a_clone_is_appended_to_after_its_origin_was_closed(
    cluster: LocalCluster, fs: cairnfs.FileSystem, shared: cairnfs.OutputStream
) -> None:
    shared.close()
    append(fs, "/clone/f", LAST)
    assert read(fs, "/clone/f") == FIRST + LAST
    assert read(fs, "/d/f") == FIRST + MORE
    for path in ("/clone/f", "/d/f"):
        check_replicas(cluster, fs, path)


def test_a_clone_is_replicated_and_appended_to_after_its_origin_is_gone(
    cluster: LocalCluster, fs: cairnfs.FileSystem, shared: cairnfs.OutputStream
) -> None:
    shared.write(LAST)
    shared.close()
    fs.delete("/d/f")
    fs.delete_snapshot("/d", "s")
    cluster.reclaim()
    assert read(fs, "/clone/f") == FIRST
    cluster.stop_datanode(0)
    cluster.start_datanode(3)
    check_replicas(cluster, fs, "/clone/f")
    append(fs, "/clone/f", LAST)
    assert read(fs, "/clone/f") == FIRST + LAST
    cluster.check()


@pytest.mark.parametrize("act", ["delete", "overwrite", "rename over", "rollback", "delete above"])
def test_a_clone_keeps_flushed_bytes_if_its_open_origin_goes(
    cluster: LocalCluster, fs: cairnfs.FileSystem, shared: cairnfs.OutputStream, act: str
) -> None:
    """The origin is detached while it is written, and no snapshot of it is left."""
    if act == "delete":
        fs.delete("/d/f")
    elif act == "overwrite":
        fs.create("/d/f", overwrite=True).close()
    elif act == "rename over":
        write(fs, "/other", b"other")
        fs.rename("/other", "/d/f", overwrite=True)
    elif act == "rollback":
        fs.rollback_snapshot("/d", "s")
    for snapshot in fs.list_snapshots("/d"):
        fs.delete_snapshot("/d", snapshot.status.name)
    if act == "delete above":
        fs.delete("/d", recursive=True)
    elif act == "rollback":
        fs.delete("/d/f")
    assert read(fs, "/clone/f") == FIRST
    cluster.reclaim()
    shared.abort()
    assert read(fs, "/clone/f") == FIRST
    cluster.wait_until(lambda: bool(cluster.lengths()), "the block is finished")
    cluster.check()
    cluster.restart()
    assert read(fs, "/clone/f") == FIRST
    check_replicas(cluster, fs, "/clone/f")
    cluster.reclaim()
    append(fs, "/clone/f", LAST)
    assert read(fs, "/clone/f") == FIRST + LAST
    check_replicas(cluster, fs, "/clone/f")
    cluster.check()


def test_the_writer_of_a_detached_file_is_refused(
    fs: cairnfs.FileSystem, shared: cairnfs.OutputStream
) -> None:
    fs.delete("/d/f")
    shared.write(LAST)
    with pytest.raises(HdfsError, match="/d/f"):
        shared.close()
    assert read(fs, "/clone/f") == FIRST


# Stores of earlier versions: the row of a clone's file did not learn how its origin went on.


@operation()
def make_outdated(tx: Transaction, inode_id: int) -> None:
    """As the row was when the clone's file got it: the replicas are as long as the file."""
    key = block_key(inode_id, 0)
    block: Block = tx.get(key)
    tx.put(key, msgspec.structs.replace(block, stored_bytes=block.length_bytes))


def test_an_outdated_row_of_a_clone_is_read_replicated_and_appended_to(
    cluster: LocalCluster, fs: cairnfs.FileSystem, shared: cairnfs.OutputStream
) -> None:
    shared.close()
    fs.delete("/d/f")
    fs.delete_snapshot("/d", "s")
    cluster.reclaim()
    cluster.run(make_outdated, fs.get_file_status("/clone/f").id)
    assert read(fs, "/clone/f") == FIRST
    cluster.stop_datanode(0)
    cluster.start_datanode(3)
    check_replicas(cluster, fs, "/clone/f")
    append(fs, "/clone/f", LAST)
    assert read(fs, "/clone/f") == FIRST + LAST
    check_replicas(cluster, fs, "/clone/f")
    cluster.check()
