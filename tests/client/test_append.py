"""Append, truncate and lease recovery: on our own cluster as soon as it has them, and on HDFS.

Whatever says that it is not supported yet is skipped, so that these need not be switched on.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest
from tests.client.files import MIB, SIZES, append, content, read, write
from tests.client.real_hdfs import JARS, RealHdfs

import cairnfs
from cairnfs.errors import UnsupportedOperationException
from cairnfs.testing.cluster import Cluster

LIMIT_S = 60.0


@pytest.fixture(
    scope="module",
    params=[
        "ours",
        pytest.param(
            "apache",
            marks=[
                pytest.mark.java,
                pytest.mark.skipif(not JARS.is_dir(), reason="no Apache HDFS to test with"),
            ],
        ),
    ],
)
def any_fs(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[cairnfs.FileSystem]:
    directory = tmp_path_factory.mktemp("append")
    if request.param == "ours":
        with Cluster(directory / "cluster") as ours, cairnfs.connect(ours.uri) as fs:
            yield fs
    else:
        with RealHdfs(directory, datanodes=3) as apache, cairnfs.connect(apache.uri) as fs:
            yield fs


def supported(call: Callable[[], object]) -> None:
    """Skip the test if the server has no such call as yet."""
    try:
        call()
    except UnsupportedOperationException as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("more", [1, 511, 513, 70_000, MIB + 5])
@pytest.mark.parametrize("size", SIZES)
def test_append(any_fs: cairnfs.FileSystem, size: int, more: int) -> None:
    path = f"/append-{size}-{more}"
    write(any_fs, path, content(size), replication=3)
    supported(lambda: append(any_fs, path, content(more)))
    assert read(any_fs, path) == content(size) + content(more)
    assert any_fs.get_file_status(path).length_bytes == size + more


def test_appended_bytes_can_be_read_when_they_are_flushed(any_fs: cairnfs.FileSystem) -> None:
    path, written = "/append-flush", content(1000)
    write(any_fs, path, written)
    supported(lambda: append(any_fs, path, b""))
    with any_fs.append(path) as file:
        assert file.tell() == 1000
        for size in (1, 5, 600, 3, MIB):
            file.write(content(size))
            written += content(size)
            file.flush()
            assert read(any_fs, path) == written
    assert read(any_fs, path) == written


def test_append_in_a_new_block(any_fs: cairnfs.FileSystem) -> None:
    write(any_fs, "/append-new", b"first")
    supported(lambda: append(any_fs, "/append-new", b""))
    with any_fs.append("/append-new", new_block=True) as file:
        file.write(b"second")
    assert read(any_fs, "/append-new") == b"firstsecond"
    lengths = [block.length_bytes for block in any_fs.get_block_locations("/append-new")]
    assert lengths == [5, 6]


def test_append_to_nothing(any_fs: cairnfs.FileSystem) -> None:
    write(any_fs, "/append-something", b"")
    supported(lambda: append(any_fs, "/append-something", b""))
    with pytest.raises(FileNotFoundError):
        any_fs.append("/append-nothing")


def wait_until_closed(fs: cairnfs.FileSystem, path: str) -> None:
    deadline_s = time.monotonic() + LIMIT_S
    while not fs.is_file_closed(path):
        assert time.monotonic() < deadline_s, f"{path} is still open"
        time.sleep(0.1)


@pytest.mark.parametrize("length", [0, 1, 511, MIB - 1, MIB, MIB + 1, 2 * MIB + 5])
def test_truncate(any_fs: cairnfs.FileSystem, length: int) -> None:
    path, data = f"/truncate-{length}", content(2 * MIB + 5)
    write(any_fs, path, data)
    done = False

    def cut() -> None:
        nonlocal done
        done = any_fs.truncate(path, length)

    supported(cut)
    if length in (0, MIB, 2 * MIB + 5):  # no block has to be cut
        assert done
    wait_until_closed(any_fs, path)
    assert read(any_fs, path) == data[:length]
    append(any_fs, path, b"and on")
    assert read(any_fs, path) == data[:length] + b"and on"


def test_a_lease_whose_writer_is_gone_is_recovered(any_fs: cairnfs.FileSystem) -> None:
    path, data = "/abandoned", content(100_000)
    with cairnfs.connect(any_fs.url) as writer:
        file = writer.create(path, replication=3, block_size=MIB)
        file.write(data)
        file.flush()
        file.abort()
        supported(lambda: any_fs.recover_lease(path))
        wait_until_closed(any_fs, path)
    assert read(any_fs, path) == data
