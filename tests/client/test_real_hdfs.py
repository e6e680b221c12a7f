"""The client with NameNode and DataNodes of Apache HDFS."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pytest
from tests.client.files import MIB, SIZES, content, read, write
from tests.client.real_hdfs import JARS, RealHdfs
from tests.scenarios.hadoop import JAVA_OPTIONS, hadoop_jars

import cairnfs
from cairnfs.errors import FileAlreadyExistsException

pytestmark = [
    pytest.mark.java,
    pytest.mark.skipif(not JARS.is_dir(), reason="there is no Apache HDFS to test with"),
]


@pytest.fixture(scope="module")
def hdfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealHdfs]:
    with RealHdfs(tmp_path_factory.mktemp("apache"), datanodes=3) as hdfs:
        yield hdfs


@pytest.fixture
def fs(hdfs: RealHdfs) -> Iterator[cairnfs.FileSystem]:
    with cairnfs.connect(hdfs.uri) as fs:
        yield fs


def test_names(fs: cairnfs.FileSystem) -> None:
    fs.mkdirs("/names/a/b", 0o750)
    write(fs, "/names/a/file", b"12345")
    assert [status.path for status in fs.list_status("/names/a")] == [
        "/names/a/b",
        "/names/a/file",
    ]
    with pytest.raises(FileExistsError) as caught:
        fs.create("/names/a/file")
    assert isinstance(caught.value, FileAlreadyExistsException)
    with pytest.raises(IsADirectoryError):
        fs.open("/names/a")
    with pytest.raises(FileNotFoundError):
        fs.open("/names/nothing")
    assert fs.rename("/names/a/file", "/names/renamed", overwrite=False)
    fs.set_quota("/names", namespace_quota=10)
    assert fs.get_quota_usage("/names").namespace_quota == 10
    summary = fs.get_content_summary("/names")
    assert (summary.files, summary.directories, summary.length_bytes) == (1, 3, 5)
    fs.set_xattr("/names", "user.author", b"ada")
    assert fs.get_xattrs("/names") == {"user.author": b"ada"}
    assert fs.list_xattrs("/names") == ["user.author"]
    fs.remove_xattr("/names", "user.author")
    assert fs.delete("/names", recursive=True)


def test_a_listing_of_more_than_one_page(fs: cairnfs.FileSystem) -> None:
    for number in range(1100):
        fs.mkdirs(f"/pages/d{number:04}")
    assert len(fs.list_status("/pages")) == 1100


def test_snapshots(fs: cairnfs.FileSystem) -> None:
    fs.mkdirs("/snapshots")
    fs.allow_snapshot("/snapshots")
    assert fs.create_snapshot("/snapshots", "one") == "/snapshots/.snapshot/one"
    write(fs, "/snapshots/x", b"1")
    fs.create_snapshot("/snapshots", "two")
    fs.rename("/snapshots/x", "/snapshots/y")
    report = fs.get_snapshot_diff_report("/snapshots", "one", "two")
    assert [(entry.kind, entry.path) for entry in report.entries] == [("M", "."), ("+", "x")]
    [_, renamed] = fs.get_snapshot_diff_report("/snapshots", "two").entries
    assert (renamed.kind, renamed.path, renamed.target) == ("R", "x", "y")
    [directory] = fs.get_snapshottable_directories()
    assert (directory.status.path, directory.snapshots) == ("/snapshots", 2)
    fs.rename_snapshot("/snapshots", "one", "three")
    listed = [(each.status.path, each.is_deleted) for each in fs.list_snapshots("/snapshots")]
    assert listed == [("/snapshots/.snapshot/three", False), ("/snapshots/.snapshot/two", False)]
    assert read(fs, "/snapshots/.snapshot/two/x") == b"1"
    for name in ("two", "three"):
        fs.delete_snapshot("/snapshots", name)
    fs.disallow_snapshot("/snapshots")


def test_a_diff_of_more_than_one_page(fs: cairnfs.FileSystem) -> None:
    """By default, HDFS tells 1000 entries at a time."""
    for path in ("/diff/here", "/diff/there", "/diff/deleted", "/elsewhere/in", "/elsewhere/out"):
        fs.mkdirs(path)
    for path in ("/diff", "/elsewhere"):
        fs.allow_snapshot(path)
        fs.create_snapshot(path, "old")
    for number in range(1100):
        fs.mkdirs(f"/diff/here/d{number:04}")
    fs.create_snapshot("/diff", "between")
    for number in range(0, 1100, 2):
        fs.rename(f"/diff/here/d{number:04}", f"/diff/there/e{number:04}")
    fs.rename("/elsewhere/in", "/diff/in")
    fs.rename("/diff/deleted", "/elsewhere/deleted")
    fs.create_snapshot("/diff", "new")

    moved = [(f"here/d{number:04}", f"there/e{number:04}") for number in range(0, 1100, 2)]
    entries = list(fs.snapshot_diff("/diff", "between", "new"))
    assert sorted((each.path, each.target or "") for each in entries if each.kind == "R") == moved
    assert sorted((each.kind, each.path) for each in entries if each.kind != "R") == [
        ("+", "in"),
        ("-", "deleted"),
        ("M", "."),
        ("M", "here"),
        ("M", "there"),
    ]
    back = list(fs.snapshot_diff("/diff", "new", "between"))
    assert sorted((each.target or "", each.path) for each in back if each.kind == "R") == moved
    assert {("-", "in"), ("+", "deleted")} <= {(each.kind, each.path) for each in back}
    created = [each.path for each in fs.snapshot_diff("/diff", "old", "new") if each.kind == "+"]
    assert len(created) == 1101
    now = list(fs.snapshot_diff("/diff", "between"))
    as_report = fs.get_snapshot_diff_report("/diff", "between").entries
    assert now == as_report
    assert sorted(now, key=str) == sorted(entries, key=str)


def test_calls_of_our_own_are_refused(fs: cairnfs.FileSystem) -> None:
    with pytest.raises(
        NotImplementedError, match="rollbackSnapshot is not supported: what answers"
    ):
        fs.rollback_snapshot("/", "any")
    with pytest.raises(NotImplementedError, match="is no CairnFS"):
        fs.create_snapshots(["/", "/tmp"])


@pytest.mark.parametrize("size", SIZES)
def test_what_was_written_is_read(fs: cairnfs.FileSystem, size: int) -> None:
    data = content(size)
    write(fs, f"/file-{size}", data, replication=3)
    assert read(fs, f"/file-{size}") == data
    with fs.open(f"/file-{size}") as file:
        for position in (0, 1, 511, 512, 513, size // 2, size - 1):
            assert file.pread(max(0, position), 600) == data[max(0, position) :][:600]


def test_checksums_are_those_of_hadoops_client(hdfs: RealHdfs, fs: cairnfs.FileSystem) -> None:
    for size in SIZES:
        write(fs, f"/checksums/{size}", content(size))
    ours = {s.path: fs.get_file_checksum(s.path) for s in fs.list_status("/checksums")}
    path = f"{hdfs.configuration}:{hadoop_jars()}/*"
    shell = ["java", *JAVA_OPTIONS, "-cp", path, "org.apache.hadoop.fs.FsShell"]
    command = [*shell, "-checksum", f"{hdfs.uri}/checksums/*"]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    theirs = dict(line.split("\t", 1) for line in output.splitlines())
    assert theirs == {
        f"{hdfs.uri}{path}": f"{checksum.algorithm}\t{checksum.digest.hex()}"
        for path, checksum in ours.items()
    }


def test_a_writer_and_a_reader_go_on_when_datanodes_are_killed(
    hdfs: RealHdfs, fs: cairnfs.FileSystem
) -> None:
    """The last test: it leaves one DataNode of three."""
    data = content(9 * MIB)
    with fs.create("/killed", replication=3, block_size=16 * MIB) as file:
        for part in range(3):
            file.write(data[part * 3 * MIB : (part + 1) * 3 * MIB])
            file.flush()
            if part < 2:
                hdfs.kill_datanode(part)
    assert read(fs, "/killed") == data
