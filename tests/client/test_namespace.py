"""Calls about names and attributes, on a real cluster, and how their errors look in Python."""

from __future__ import annotations

import errno
import pickle
from collections.abc import Callable
from pathlib import Path, PurePosixPath

import pytest

import cairnfs
from cairnfs.client.addresses import parse_url
from cairnfs.errors import (
    AccessControlException,
    AclException,
    FileAlreadyExistsException,
    FileNotFoundException,
    HadoopIllegalArgumentException,
    HdfsError,
    IllegalArgumentException,
    NSQuotaExceededException,
    ParentNotDirectoryException,
    PathIsDirectoryException,
    PathIsNotEmptyDirectoryException,
    XAttrNotFoundException,
)
from cairnfs.network.address import Address
from cairnfs.testing.cluster import Cluster


def put(fs: cairnfs.FileSystem, path: str, data: bytes = b"") -> None:
    with fs.create(path, replication=1) as file:
        file.write(data)


def names(fs: cairnfs.FileSystem, path: str) -> list[str]:
    return [status.name for status in fs.list_status(path)]


def test_directories(fs: cairnfs.FileSystem, folder: str) -> None:
    assert fs.mkdirs(f"{folder}/a/b", 0o750)
    status = fs.get_file_status(f"{folder}/a/b")
    assert status.is_directory
    assert not status.is_file
    assert status.mode == 0o750
    assert status.path == f"{folder}/a/b"
    assert status.name == "b"
    assert status.owner == fs.user
    put(fs, f"{folder}/a/file", b"12345")
    assert names(fs, folder) == ["a"]
    assert [s.path for s in fs.list_status(f"{folder}/a")] == [
        f"{folder}/a/b",
        f"{folder}/a/file",
    ]
    assert [s.path for s in fs.list_status(f"{folder}/a/file")] == [f"{folder}/a/file"]
    assert fs.exists(f"{folder}/a/file")
    assert not fs.exists(f"{folder}/a/nothing")
    assert fs.get_file_info(f"{folder}/a/nothing") is None
    summary = fs.get_content_summary(folder)
    assert (summary.files, summary.directories, summary.length_bytes) == (1, 3, 5)
    assert fs.delete(f"{folder}/a", recursive=True)
    assert not fs.delete(f"{folder}/a")


def test_a_listing_of_more_than_one_page(fs: cairnfs.FileSystem, folder: str) -> None:
    expected = [f"d{number:04}" for number in range(1100)]
    for name in expected:
        fs.mkdirs(f"{folder}/{name}")
    assert names(fs, folder) == expected
    iterator = fs.list_status_iter(folder)
    assert next(iterator).name == expected[0]
    fs.rename(folder, f"{folder}-elsewhere")
    try:
        with pytest.raises(FileNotFoundException, match="listed in part"):
            list(iterator)
    finally:
        fs.rename(f"{folder}-elsewhere", folder)


def test_how_paths_may_be_written(cluster: Cluster, fs: cairnfs.FileSystem, folder: str) -> None:
    put(fs, f"{folder}/file")
    address = cluster.namenodes[0].address
    for path in (
        PurePosixPath(folder, "file"),
        f"/{folder}//file/",
        f"hdfs://{address}{folder}/file",
        f"cairn://{address}{folder}/file",
    ):
        assert fs.get_file_status(path).path == f"{folder}/file"
    assert fs.absolute_path("x") == f"/user/{fs.user}/x"
    assert fs.absolute_path("/log/http://x") == "/log/http:/x"  # no URL: it begins otherwise
    assert fs.absolute_path("log/http://x") == f"/user/{fs.user}/log/http:/x"
    with pytest.raises(IllegalArgumentException, match="Wrong FS"):
        fs.exists("hdfs://elsewhere:8020/file")
    with pytest.raises(ValueError, match="empty"):
        fs.exists("")


def test_renames(fs: cairnfs.FileSystem, folder: str) -> None:
    put(fs, f"{folder}/one")
    put(fs, f"{folder}/two")
    fs.mkdirs(f"{folder}/dir")
    assert fs.rename(f"{folder}/one", f"{folder}/dir")
    assert names(fs, f"{folder}/dir") == ["one"]
    assert not fs.rename(f"{folder}/nothing", f"{folder}/dir")
    with pytest.raises(FileExistsError):
        fs.rename(f"{folder}/two", f"{folder}/dir/one", overwrite=False)
    assert fs.rename(f"{folder}/two", f"{folder}/dir/one", overwrite=True)
    with pytest.raises(FileNotFoundError):
        fs.rename(f"{folder}/two", f"{folder}/three", overwrite=True)


def test_symbolic_links_are_followed(fs: cairnfs.FileSystem, folder: str) -> None:
    fs.mkdirs(f"{folder}/real")
    fs.create_symlink(f"{folder}/real", f"{folder}/link")
    fs.create_symlink("link", f"{folder}/again")
    put(fs, f"{folder}/again/file", b"through two links")
    assert names(fs, f"{folder}/real") == ["file"]
    assert fs.get_file_status(f"{folder}/link/file").length_bytes == 17
    assert names(fs, f"{folder}/again") == ["file"]
    with fs.open(f"{folder}/again/file") as file:
        assert file.read() == b"through two links"
    assert fs.get_link_target(f"{folder}/again") == "link"
    assert fs.get_file_status(f"{folder}/link").is_directory
    link = fs.get_file_link_info(f"{folder}/link")
    assert link is not None
    assert link.is_symlink
    assert fs.rename(f"{folder}/link/file", f"{folder}/again/other")
    assert names(fs, f"{folder}/real") == ["other"]
    fs.create_symlink(f"{folder}/loop", f"{folder}/loop")
    with pytest.raises(OSError, match="symbolic links"):
        fs.get_file_info(f"{folder}/loop")


def test_attributes(fs: cairnfs.FileSystem, folder: str) -> None:
    path = f"{folder}/file"
    put(fs, path)
    fs.set_permission(path, 0o640)
    fs.set_owner(path, "ada")
    fs.set_owner(path, group="staff")
    fs.set_times(path, mtime_ms=1_000_000)
    assert fs.set_replication(path, 2)
    status = fs.get_file_status(path)
    assert (status.mode, status.owner, status.group) == (0o640, "ada", "staff")
    assert (status.mtime_ms, status.replication) == (1_000_000, 2)
    fs.check_access(path, "rw")
    with pytest.raises(ValueError, match="letters"):
        fs.check_access(path, "q")


def test_access_control_lists(fs: cairnfs.FileSystem, folder: str) -> None:
    fs.set_acl(folder, "user::rwx,group::r-x,other::---,user:ada:rw-,default:user:bob:r--")
    fs.modify_acl_entries(folder, ["group:staff:--x"])
    status = fs.get_acl_status(folder)
    assert "user:ada:rw-" in status.entries
    assert "group:staff:--x" in status.entries
    assert "default:user:bob:r--" in status.entries
    assert fs.get_file_status(folder).has_acl
    fs.remove_acl_entries(folder, "user:ada")
    assert "user:ada:rw-" not in fs.get_acl_status(folder).entries
    fs.remove_default_acl(folder)
    assert not [entry for entry in fs.get_acl_status(folder).entries if "default" in entry]
    fs.remove_acl(folder)
    assert fs.get_acl_status(folder).entries == []
    for wrong in ("user:ada:rwz", "nobody:ada:rwx", "user:a:b:rwx", "default"):
        with pytest.raises(HadoopIllegalArgumentException, match=r"Invalid .*<aclSpec>"):
            fs.modify_acl_entries(folder, wrong)
    with pytest.raises(AclException):
        fs.set_acl(folder, "user:ada:rwx")


def test_quotas(fs: cairnfs.FileSystem, folder: str) -> None:
    fs.set_quota(folder, namespace_quota=3, space_quota_bytes=1 << 40)
    put(fs, f"{folder}/one", b"x")
    put(fs, f"{folder}/two")
    with pytest.raises(NSQuotaExceededException) as caught:
        put(fs, f"{folder}/three")
    assert caught.value.errno == errno.EDQUOT
    usage = fs.get_quota_usage(folder)
    assert (usage.inodes, usage.namespace_quota, usage.space_quota_bytes) == (3, 3, 1 << 40)
    assert usage.space_bytes == 1
    fs.set_quota(folder, namespace_quota=-1)
    usage = fs.get_quota_usage(folder)
    assert (usage.namespace_quota, usage.space_quota_bytes) == (None, 1 << 40)
    fs.set_quota(folder, space_quota_bytes=1 << 30, storage_type="ssd")
    assert fs.get_quota_usage(folder).types["SSD"].quota_bytes == 1 << 30
    with pytest.raises(ValueError, match="storage type"):
        fs.set_quota(folder, space_quota_bytes=1, storage_type="TAPE")


def test_concat(fs: cairnfs.FileSystem, folder: str) -> None:
    for name in ("one", "two", "three"):
        put(fs, f"{folder}/{name}", name.encode())
    fs.concat(f"{folder}/one", [f"{folder}/two", f"{folder}/three"])
    with fs.open(f"{folder}/one") as file:
        assert file.read() == b"onetwothree"
        assert file.pread(2, 3) == b"etw"
    assert names(fs, folder) == ["one"]


def test_the_cluster(cluster: Cluster, fs: cairnfs.FileSystem, folder: str) -> None:
    status = fs.get_status()
    assert 0 < status.remaining_bytes <= status.capacity_bytes
    report = fs.get_datanode_report("LIVE")
    assert {node.port for node in report} == {node.port for node in cluster.datanodes}
    assert fs.get_datanode_report("DEAD") == []
    defaults = fs.get_server_defaults()
    assert (defaults.block_size_bytes, defaults.replication) == (128 << 20, 3)
    assert not fs.get_safe_mode()
    assert fs.set_safe_mode("enter")
    with pytest.raises(OSError, match="safe mode"):
        fs.mkdirs(f"{folder}/no")
    assert not fs.set_safe_mode("leave")
    put(fs, f"{folder}/file", b"12345")
    [block] = fs.get_block_locations(f"{folder}/file")
    assert (block.offset_bytes, block.length_bytes, len(block.datanodes)) == (0, 5, 1)
    assert block.is_complete
    assert fs.is_file_closed(f"{folder}/file")


@pytest.mark.parametrize(
    ("call", "hadoop", "python", "code"),
    [
        (lambda fs: fs.open("/nothing"), FileNotFoundException, FileNotFoundError, errno.ENOENT),
        (lambda fs: fs.open("/"), PathIsDirectoryException, IsADirectoryError, errno.EISDIR),
        (lambda fs: fs.list_status("/nothing"), FileNotFoundException, OSError, errno.ENOENT),
        (lambda fs: fs.create("/e/f"), FileAlreadyExistsException, FileExistsError, errno.EEXIST),
        (lambda fs: fs.create("/e"), FileAlreadyExistsException, FileExistsError, errno.EEXIST),
        (
            lambda fs: fs.mkdirs("/e/f/below"),
            ParentNotDirectoryException,
            NotADirectoryError,
            errno.ENOTDIR,
        ),
        (lambda fs: fs.delete("/e"), PathIsNotEmptyDirectoryException, OSError, errno.ENOTEMPTY),
        (lambda fs: fs.create("/x", replication=9999), OSError, OSError, None),
        (lambda fs: fs.create("/x", block_size=1000), HdfsError, ValueError, None),
        (
            lambda fs: fs.get_xattr("/e", "user.a"),
            XAttrNotFoundException,
            OSError,
            errno.ENODATA,
        ),
        (lambda fs: fs.set_xattr("/e", "a", b""), HadoopIllegalArgumentException, ValueError, None),
    ],
)
def test_errors_are_hadoops_and_pythons(
    fs: cairnfs.FileSystem,
    call: Callable[[cairnfs.FileSystem], object],
    hadoop: type[Exception],
    python: type[Exception],
    code: int | None,
) -> None:
    fs.mkdirs("/e")
    if not fs.exists("/e/f"):
        put(fs, "/e/f")
    with pytest.raises(hadoop) as caught:
        call(fs)
    assert isinstance(caught.value, python)
    if code is not None:
        assert caught.value.errno == code  # type: ignore[attr-defined]
    copy = pickle.loads(pickle.dumps(caught.value))
    assert (type(copy), str(copy)) == (type(caught.value), str(caught.value))
    assert str(copy)


def test_another_user_has_fewer_rights(cluster: Cluster, fs: cairnfs.FileSystem) -> None:
    fs.mkdirs("/private", 0o700)
    with (
        cairnfs.connect(cluster.uri, user="mallory") as other,
        pytest.raises(PermissionError, match="user=mallory") as caught,
    ):
        other.list_status("/private")
    assert isinstance(caught.value, AccessControlException)
    assert caught.value.errno == errno.EACCES
    host = cluster.uri.replace("hdfs://", "hdfs://eve@")
    assert cairnfs.connect(host).user == "eve"


def test_the_user_is_that_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HADOOP_USER_NAME", "grace")
    assert cairnfs.connect("hdfs://nowhere").user == "grace"


def test_urls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
    location = parse_url("cairn://one,two:8021,[::1]:9000/data/x")
    assert location.namenodes == (Address("one", 8020), Address("two", 8021), Address("::1", 9000))
    assert location.path == "/data/x"
    assert parse_url("hdfs://one").path == "/"
    for wrong in ("s3://bucket", "hdfs:///path", "hdfs://host:port", "hdfs://a,,b", ""):
        with pytest.raises(IllegalArgumentException):
            parse_url(wrong)


def test_urls_without_an_address_are_as_hadoop_is_configured(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
    with pytest.raises(IllegalArgumentException, match="names no NameNode"):
        cairnfs.connect("hdfs:///")
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
    assert parse_url("hdfs://name/x").namenodes == (Address("name", 8020),)
    several = {
        "dfs.ha.namenodes.name": "a, b",
        "dfs.namenode.rpc-address.name.a": "one:8021",
        "dfs.namenode.rpc-address.name.b": "two:8022",
    }
    cluster.write_hadoop_configuration(tmp_path, several)
    assert parse_url("hdfs://name/x").namenodes == (Address("one", 8021), Address("two", 8022))
    assert parse_url("hdfs://name:1/x").namenodes == (Address("name", 1),)
    with cairnfs.connect("hdfs:///") as fs:
        assert fs.exists("hdfs:///")
    (tmp_path / "core-site.xml").write_text("<configuration>")
    with pytest.raises(IllegalArgumentException, match=r"core-site.xml is not XML"):
        cairnfs.connect("hdfs:///")


def test_a_file_system_can_be_pickled(fs: cairnfs.FileSystem, folder: str) -> None:
    copy = pickle.loads(pickle.dumps(fs))
    with copy:
        assert copy.exists(folder)
        assert copy.user == fs.user
    assert fs.exists(folder)


def test_a_closed_file_system_says_so(cluster: Cluster) -> None:
    fs = cairnfs.connect(cluster.uri)
    fs.exists("/")
    fs.close()
    with pytest.raises(OSError, match="closed"):
        fs.exists("/")
