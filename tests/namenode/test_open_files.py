"""Which files are open, as an administrator asks."""

from __future__ import annotations

import pytest
from tests.namenode.datanodes import FakeCluster, FakeDataNode
from tests.namenode.open_files import open_file
from tests.namenode.rpc import RpcClient

from cairnfs.blocks.records import AdminState
from cairnfs.blocks.registration import set_admin_state
from cairnfs.errors import AccessControlException
from cairnfs.wire.proto import client_namenode_pb2 as pb


def list_open_files(rpc: RpcClient, **more: object) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    after = 0
    while True:
        request = pb.ListOpenFilesRequestProto(id=after, **more)
        response = rpc.call("listOpenFiles", request)
        found += [(entry.path, entry.clientName) for entry in response.entries]
        if not response.hasMore:
            return found
        after = response.entries[-1].id


def test_open_files_are_listed_to_the_superuser(
    cluster: FakeCluster, nodes: list[FakeDataNode], rpc: RpcClient
) -> None:
    me = cluster.client.client_name
    cluster.client.mkdirs("/d")
    for path in ("/d/f", "/e", "/dd"):
        open_file(cluster, path)
    assert list_open_files(rpc) == [("/d/f", me), ("/e", me), ("/dd", me)]
    assert list_open_files(rpc, path="/d") == [("/d/f", me)]
    assert list_open_files(rpc, path="/d/f") == [("/d/f", me)]
    assert list_open_files(rpc, types=[pb.BLOCKING_DECOMMISSION]) == []
    leaving = cluster.call(set_admin_state, "b", AdminState.DECOMMISSION_INPROGRESS)
    cluster.namenode.datanodes.put(leaving)
    assert len(list_open_files(rpc, types=[pb.BLOCKING_DECOMMISSION])) == 3
    with RpcClient(cluster.port, "ada") as other, pytest.raises(AccessControlException):
        list_open_files(other)
