"""Which files have lost what was in them, as an administrator asks."""

from __future__ import annotations

import pytest
from tests.namenode.datanodes import FakeCluster, FakeDataNode, others
from tests.namenode.rpc import RpcClient

from cairnfs.errors import AccessControlException
from cairnfs.namesystem import corrupt_files
from cairnfs.wire.proto import client_namenode_pb2 as pb


def list_corrupt_files(rpc: RpcClient, path: str = "/", cookie: str | None = None) -> list[str]:
    """As Hadoop's client asks: until an answer is empty."""
    found: list[str] = []
    while True:
        request = pb.ListCorruptFileBlocksRequestProto(path=path, cookie=cookie)
        response = rpc.call("listCorruptFileBlocks", request).corrupt
        if not response.files:
            return found
        found += response.files
        cookie = response.cookie


def test_files_that_lost_their_blocks_are_listed_to_the_superuser(
    cluster: FakeCluster,
    nodes: list[FakeDataNode],
    rpc: RpcClient,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(corrupt_files, "CORRUPT_PAGE", 2)
    for directory in ("/d", "/dd"):
        cluster.client.mkdirs(directory)
    lost = ["/d/f", "/d/g", "/dd/f", "/e", "/i"]
    for path in (*lost, "/gone"):
        cluster.write(path, replication=3 if path in lost else 1)
    assert list_corrupt_files(rpc) == []

    cluster.bury(*others(cluster))
    cluster.client.delete("/gone")
    assert list_corrupt_files(rpc) == lost
    assert list_corrupt_files(rpc, "/d") == ["/d/f", "/d/g"]
    assert list_corrupt_files(rpc, "/e") == ["/e"]
    assert list_corrupt_files(rpc, "/i") == ["/i"]  # behind pages that have none
    assert list_corrupt_files(rpc, "/missing") == []
    assert list_corrupt_files(rpc, cookie="no number") == lost
    assert list_corrupt_files(rpc, cookie="-1") == lost
    assert list_corrupt_files(rpc, cookie="9" * 30) == []
    with RpcClient(cluster.port, "ada") as other, pytest.raises(AccessControlException):
        list_corrupt_files(other)

    nodes[0].come()
    cluster.live(3)
    assert list_corrupt_files(rpc) == []


def test_who_shares_a_block_shares_its_loss(
    cluster: FakeCluster, nodes: list[FakeDataNode], rpc: RpcClient
) -> None:
    client = cluster.client
    client.mkdirs("/d")
    for path in ("/d/kept", "/d/deleted"):
        cluster.write(path)
    client.allow_snapshot("/d")
    client.create_snapshot("/d", "s")
    client.clone_snapshot("/d", "s", "/clone")
    client.set_permission("/clone/kept", 0o600)  # from now on it has rows of its own
    client.delete("/d/deleted")
    cluster.bury(*others(cluster))
    assert sorted(set(list_corrupt_files(rpc))) == ["/clone/kept", "/d/kept"]
