"""Written by one client and read by another: Hadoop's own, hdfs-native, and ours."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.client.files import MIB, SIZES, content, read, write
from tests.scenarios.hadoop import FsShell

import cairnfs
from cairnfs.testing.cluster import Cluster


@pytest.fixture(scope="module")
def shell(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FsShell]:
    return FsShell(cluster, tmp_path_factory.mktemp("hadoop"), {"dfs.blocksize": str(MIB)})


@pytest.mark.java
def test_hadoop_reads_what_we_wrote(fs: cairnfs.FileSystem, shell: FsShell, tmp_path: Path) -> None:
    for size in SIZES:
        write(fs, f"/ours/{size}", content(size), replication=2)
    shell.run("-get", "/ours", str(tmp_path))
    for size in SIZES:
        assert (tmp_path / "ours" / str(size)).read_bytes() == content(size)


@pytest.mark.java
def test_we_read_what_hadoop_wrote(fs: cairnfs.FileSystem, shell: FsShell, tmp_path: Path) -> None:
    folder = tmp_path / "hadoops"
    folder.mkdir()
    for size in SIZES:
        (folder / str(size)).write_bytes(content(size))
    shell.run("-put", str(folder), "/")
    assert len(fs.list_status("/hadoops")) == len(SIZES)
    for size in SIZES:
        assert read(fs, f"/hadoops/{size}") == content(size)


@pytest.mark.java
def test_checksums_are_those_of_hadoops_client(fs: cairnfs.FileSystem, shell: FsShell) -> None:
    for size in SIZES:
        write(fs, f"/checksums/{size}", content(size))
    lines = shell.run("-checksum", "/checksums/*").decode().splitlines()
    expected = []
    for status in fs.list_status("/checksums"):
        checksum = fs.get_file_checksum(status.path)
        expected.append(f"{status.path}\t{checksum.algorithm}\t{checksum.digest.hex()}")
    assert lines == expected


def test_hdfs_native_and_we_read_each_other(cluster: Cluster, fs: cairnfs.FileSystem) -> None:
    hdfs_native = pytest.importorskip("hdfs_native")
    client = hdfs_native.Client(cluster.uri)
    options = hdfs_native.WriteOptions(replication=2, block_size=MIB)
    for size in SIZES:
        data = content(size)
        write(fs, f"/both/ours-{size}", data)
        assert b"".join(client.read(f"/both/ours-{size}")) == data
        with client.create(f"/both/theirs-{size}", options) as file:
            file.write(data)
        assert read(fs, f"/both/theirs-{size}") == data
