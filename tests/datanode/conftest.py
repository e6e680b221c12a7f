"""A NameNode that only listens, and DataNodes that report to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.datanode.client import close_connections
from tests.datanode.namenode import FakeNameNode

from cairnfs.datanode.disk import Disk
from cairnfs.datanode.node import DataNode
from cairnfs.datanode.settings import DataNodeSettings
from cairnfs.datanode.storage import StorageLocation

StartNode = Callable[..., DataNode]


@pytest.fixture
def namenode() -> Iterator[FakeNameNode]:
    namenode = FakeNameNode()
    yield namenode
    namenode.stop()


@pytest.fixture
def start_node(namenode: FakeNameNode, tmp_path: Path) -> Iterator[StartNode]:
    """Start a DataNode, by default on one directory of its own; all end with the test."""
    nodes: list[DataNode] = []

    def start(
        name: str = "dn", *, data: str | None = None, disk: Disk | None = None, **settings: object
    ) -> DataNode:
        arguments: dict[str, object] = {
            "namenodes": (namenode.address,),
            "data": StorageLocation.parse_list(data or str(tmp_path / name)),
            "port": 0,
            "ipc_port": 0,
            "http_port": 0,
            "heartbeat_interval_s": 0.1,
            "scan_bytes_per_s": 0,
            "socket_timeout_s": 5.0,
        }
        node = DataNode(DataNodeSettings(**(arguments | settings)), disk=disk)  # type: ignore[arg-type]
        nodes.append(node)
        node.start()
        namenode.wait_for(lambda: node.reports.all_registered)
        return node

    yield start
    close_connections()
    for node in nodes:
        node.stop()


@pytest.fixture
def node(start_node: StartNode) -> DataNode:
    return start_node()
