"""hdfs-native, a client that shares no code with Hadoop's, while nodes are killed."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from tests.scenarios.conftest import MakeCluster

from cairnfs.testing.cluster import Cluster

if TYPE_CHECKING:
    from hdfs_native import Client

MIB = 1 << 20


def connect(cluster: Cluster) -> Client:
    hdfs_native = pytest.importorskip("hdfs_native")
    client: Client = hdfs_native.Client(cluster.uri, cluster.hadoop_settings())
    return client


def write(client: Client, path: str, data: bytes) -> None:
    from hdfs_native import WriteOptions

    with client.create(path, WriteOptions(replication=3, block_size=4 * MIB)) as file:
        file.write(data)


def read(client: Client, path: str) -> bytes:
    return b"".join(client.read(path))


def test_a_tree(cluster: Cluster, content: Callable[[int], bytes]) -> None:
    client = connect(cluster)
    client.mkdirs("/a/b/c", create_parent=True)
    data = content(9 * MIB)
    write(client, "/a/b/big", data)
    write(client, "/a/b/c/small", b"small")
    assert read(client, "/a/b/big") == data
    assert client.read("/a/b/big").read_range(4 * MIB - 10, 20) == data[4 * MIB - 10 : 4 * MIB + 10]
    listed = [status.path for status in client.list_status("/a", recursive=True)]
    assert sorted(listed) == ["/a/b", "/a/b/big", "/a/b/c", "/a/b/c/small"]
    summary = client.get_content_summary("/a")
    assert (summary.file_count, summary.directory_count) == (2, 3)
    assert summary.length == 9 * MIB + 5
    assert summary.space_consumed == 3 * summary.length

    write(client, "/a/other", b"other")
    with pytest.raises(Exception, match="exist"):
        client.rename("/a/other", "/a/b/big")
    client.rename("/a/other", "/a/b/big", overwrite=True)
    assert read(client, "/a/b/big") == b"other"
    with pytest.raises(Exception, match="NotEmpty"):
        client.delete("/a")
    with client.append("/a/b/big") as file:
        file.write(b" and more")
    assert read(client, "/a/b/big") == b"other and more"
    assert client.delete("/a", recursive=True)
    assert [status.path for status in client.list_status("/")] == []


def test_readers_go_on_without_a_datanode(
    cluster: Cluster, content: Callable[[int], bytes]
) -> None:
    """Writers do not: hdfs-native gives up when a new block begins with a DataNode that is gone."""
    client = connect(cluster)
    data = content(16 * MIB)
    write(client, "/file", data)
    parts = iter(client.read("/file"))
    received = next(parts)
    cluster.datanodes[0].kill()
    received += b"".join(parts)
    assert received == data
    assert read(client, "/file") == data


def test_calls_go_on_with_the_other_namenode(
    make_cluster: MakeCluster, postgres_dsn: str, content: Callable[[int], bytes]
) -> None:
    cluster = make_cluster(namenodes=2, store=postgres_dsn)
    client = connect(cluster)
    data = content(9 * MIB)
    write(client, "/one", data)
    for victim in cluster.namenodes:
        victim.kill()
        assert read(client, "/one") == data
        write(client, f"/{victim.name}", data)
        victim.start()
        cluster.wait_for_namenode(victim)
        cluster.wait_for_datanodes(3)
    assert {status.path for status in client.list_status("/")} == {
        "/one",
        *(f"/{namenode.name}" for namenode in cluster.namenodes),
    }
