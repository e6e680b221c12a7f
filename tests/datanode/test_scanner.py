"""The scanner finds what has decayed, and goes on where it stopped."""

from __future__ import annotations

import time

import pytest
from tests.datanode.client import BlockWriter, write_block
from tests.datanode.conftest import StartNode
from tests.datanode.namenode import FakeNameNode

from cairnfs.datanode.node import DataNode
from cairnfs.datanode.replica import Block
from cairnfs.datanode.scanner import Cursor

BLOCK = Block(1_073_741_825, 1001)


def damage(node: DataNode, block: Block, kind: str) -> None:
    replica = node.replicas.get(block.id)
    if kind == "data changed":
        with replica.data_path.open("r+b") as file:
            file.seek(2_000_000)
            file.write(b"decay")
    elif kind == "data cut":
        with replica.data_path.open("r+b") as file:
            file.truncate(1_500_000)
    elif kind == "checksums changed":
        with replica.meta_path.open("r+b") as file:
            file.seek(1000)
            file.write(b"decay")
    elif kind == "checksums cut":
        with replica.meta_path.open("r+b") as file:
            file.truncate(1000)
    else:
        replica.meta_path.write_bytes(b"")


@pytest.mark.parametrize(
    "kind", ["data changed", "data cut", "checksums changed", "checksums cut", "no header"]
)
def test_decay_is_found(node: DataNode, namenode: FakeNameNode, kind: str) -> None:
    write_block([node], BLOCK, b"x" * 2_500_000, packet_bytes=1 << 20)
    assert node.scanner.scan(BLOCK.id)
    damage(node, BLOCK, kind)
    assert not node.scanner.scan(BLOCK.id)
    namenode.wait_for(lambda: namenode.bad == [BLOCK.id])


def test_what_is_not_there_or_being_written_is_not_corrupt(
    node: DataNode, namenode: FakeNameNode
) -> None:
    assert node.scanner.scan(BLOCK.id)
    BlockWriter([node], BLOCK).setup().write(b"x" * 700)
    assert node.scanner.scan(BLOCK.id)
    assert not namenode.bad


def test_it_runs_by_itself_and_remembers(start_node: StartNode, namenode: FakeNameNode) -> None:
    node = start_node(scan_bytes_per_s=1 << 30)
    write_block([node], BLOCK, b"x" * 2_500_000, packet_bytes=1 << 20)
    damage(node, BLOCK, "data changed")
    write_block([node], Block(BLOCK.id + 1, 1002), b"x")
    namenode.wait_for(lambda: BLOCK.id in namenode.bad, limit_s=15)
    deadline_s = time.monotonic() + 15
    while Cursor.load(node.volumes.good[0]).block_id < BLOCK.id:
        assert time.monotonic() < deadline_s
        time.sleep(0.05)
