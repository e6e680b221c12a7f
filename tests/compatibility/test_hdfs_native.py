"""hdfs-native, a client of HDFS in Rust, works with CairnFS."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

hdfs_native = pytest.importorskip("hdfs_native")

from cairnfs.testing.cluster import Cluster  # noqa: E402


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[hdfs_native.Client]:
    with Cluster(tmp_path_factory.mktemp("hdfs-native") / "cluster") as cluster:
        yield hdfs_native.Client(cluster.uri)


def test_files_are_written_read_and_listed(client: hdfs_native.Client) -> None:
    data = bytes(range(256)) * 5000
    client.mkdirs("/native", 0o755, True)
    with client.create("/native/file", hdfs_native.WriteOptions(replication=2)) as writer:
        writer.write(data)
    with client.read("/native/file") as reader:
        assert reader.read() == data
    with client.read("/native/file") as reader:
        assert reader.read_range(1000, 300) == data[1000:1300]
    (status,) = client.list_status("/native")
    assert (status.path, status.length, status.replication) == ("/native/file", len(data), 2)


def test_names_are_changed(client: hdfs_native.Client) -> None:
    client.mkdirs("/names/a", 0o755, True)
    client.rename("/names/a", "/names/b")
    assert client.get_file_info("/names/b").isdir
    with pytest.raises(FileNotFoundError):
        client.get_file_info("/names/a")
    assert client.delete("/names", True)


def test_attributes_are_changed(client: hdfs_native.Client) -> None:
    client.mkdirs("/attributes", 0o755, True)
    client.set_permission("/attributes", 0o700)
    client.set_owner("/attributes", "alice", "staff")
    status = client.get_file_info("/attributes")
    assert (status.permission, status.owner, status.group) == (0o700, "alice", "staff")
    summary = client.get_content_summary("/attributes")
    assert summary.directory_count == 1


def test_access_control_lists_are_changed(client: hdfs_native.Client) -> None:
    client.mkdirs("/acl", 0o755, True)
    entry = hdfs_native.AclEntry("user", "access", "r-x", "bob")
    client.modify_acl_entries("/acl", [entry])
    names = [each.name for each in client.get_acl_status("/acl").entries]
    assert "bob" in names
    client.remove_acl("/acl")
    assert "bob" not in [each.name for each in client.get_acl_status("/acl").entries]
