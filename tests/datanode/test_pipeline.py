"""Writing blocks: packets in, acknowledgements out, through pipelines that may fail."""

from __future__ import annotations

import os
import threading
import time

import pytest
from tests.datanode.client import BlockWriter, read_block, write_block
from tests.datanode.conftest import StartNode
from tests.datanode.namenode import FakeNameNode

from cairnfs.datanode.node import DataNode
from cairnfs.datanode.replica import Block, ReplicaState
from cairnfs.errors import EOFException, IOException
from cairnfs.wire.checksum import Checksum, ChecksumType
from cairnfs.wire.packets import UNKNOWN_SEQNO
from cairnfs.wire.transfer import Stage, Status

BLOCK = Block(1_073_741_825, 1001)


def test_a_block_is_written_read_and_reported(node: DataNode, namenode: FakeNameNode) -> None:
    data = os.urandom(1_000_003)
    write_block([node], BLOCK, data)
    namenode.wait_until_received(node.uuid, BLOCK.id)
    assert namenode.received[node.uuid, BLOCK.id].block.numBytes == len(data)
    assert read_block(node, BLOCK, 0, len(data)) == data
    assert node.replicas.get(BLOCK.id).state is ReplicaState.FINALIZED


@pytest.mark.parametrize("length", [0, 1, 511, 512, 513, 64512, 200_000])
def test_blocks_of_all_lengths(node: DataNode, length: int) -> None:
    data = os.urandom(length)
    write_block([node], BLOCK, data)
    assert read_block(node, BLOCK, 0, length) == data


@pytest.mark.parametrize(
    "checksum",
    [
        Checksum(ChecksumType.CRC32, 512),
        Checksum(ChecksumType.CRC32C, 100),
        Checksum(ChecksumType.CRC32C, 65536),
        Checksum(ChecksumType.NULL, 512),
    ],
    ids=str,
)
def test_checksums_of_all_kinds(node: DataNode, checksum: Checksum) -> None:
    data = os.urandom(300_000)
    write_block([node], BLOCK, data, checksum=checksum, packet_bytes=checksum.bytes_per_checksum)
    assert read_block(node, BLOCK, 0, len(data)) == data
    assert read_block(node, BLOCK, 12345, 54321) == data[12345 : 12345 + 54321]


def test_a_pipeline_of_three(start_node: StartNode, namenode: FakeNameNode) -> None:
    nodes = [start_node(f"dn{index}") for index in range(3)]
    data = os.urandom(500_000)
    write_block(nodes, BLOCK, data)
    for node in nodes:
        namenode.wait_until_received(node.uuid, BLOCK.id)
        assert read_block(node, BLOCK, 0, len(data)) == data


def test_many_packets_in_flight(start_node: StartNode) -> None:
    nodes = [start_node(f"dn{index}") for index in range(3)]
    writer = BlockWriter(nodes, BLOCK).setup()
    data = os.urandom(64512 * 40)
    sender = threading.Thread(
        target=lambda: [writer.send(data[at : at + 64512]) for at in range(0, len(data), 64512)]
    )
    sender.start()
    for number in range(40):
        ack = writer.ack()
        assert (ack.seqno, ack.statuses) == (number, (Status.SUCCESS,) * 3)
    sender.join()
    writer.close()
    assert read_block(nodes[0], BLOCK, 0, len(data)) == data


def test_heartbeats_are_acknowledged_and_change_nothing(start_node: StartNode) -> None:
    nodes = [start_node(f"dn{index}") for index in range(2)]
    writer = BlockWriter(nodes, BLOCK).setup()
    writer.write(b"abc")
    writer.send_heartbeat()
    assert writer.ack().seqno == -1
    writer.write(b"def")
    writer.close()
    assert read_block(nodes[1], BLOCK, 0, 6) == b"abcdef"


def test_small_packets_fill_chunks_piece_by_piece(node: DataNode) -> None:
    """As a client that flushes often: each packet begins at its chunk's begin again."""
    data = os.urandom(2000)
    writer = BlockWriter([node], BLOCK).setup()
    for end in range(37, len(data), 37):
        begin = writer.offset - writer.offset % 512
        writer.send(data[begin:end], offset=begin)
        assert writer.ack().is_success
        assert read_block(node, BLOCK, 0, end) == data[:end]
    begin = writer.offset - writer.offset % 512
    writer.send(data[begin:], offset=begin)
    assert writer.ack().is_success
    writer.close()
    assert read_block(node, BLOCK, 0, len(data)) == data


def test_packets_that_go_on_within_a_chunk(node: DataNode) -> None:
    """As a client that appends: the first packet fills the last chunk up."""
    data = os.urandom(1500)
    writer = BlockWriter([node], BLOCK).setup()
    for start, end in ((0, 100), (100, 512), (512, 700), (700, 1024), (1024, 1500)):
        writer.write(data[start:end])
    writer.close()
    assert read_block(node, BLOCK, 0, len(data)) == data


def test_sync_reaches_the_disk(start_node: StartNode) -> None:
    nodes = [start_node(f"dn{index}") for index in range(2)]
    writer = BlockWriter(nodes, BLOCK).setup()
    writer.write(b"x" * 1000, sync=True)
    writer.close(sync=True)
    assert read_block(nodes[1], BLOCK, 0, 1000) == b"x" * 1000


def test_a_corrupt_packet_is_refused(node: DataNode) -> None:
    writer = BlockWriter([node], BLOCK).setup()
    writer.write(b"good" * 128)
    writer.send(b"evil" * 128, sums=b"\0\0\0\0")
    assert writer.ack().statuses == (Status.ERROR_CHECKSUM,)
    with pytest.raises((EOFException, ConnectionError)):
        writer.ack()
    replica = node.replicas.get(BLOCK.id)
    assert replica.acked_bytes == 512


def test_whoever_passes_on_a_corrupt_packet_is_to_blame(start_node: StartNode) -> None:
    nodes = [start_node(f"dn{index}") for index in range(2)]
    writer = BlockWriter(nodes, BLOCK).setup()
    writer.send(b"evil" * 128, sums=b"\0\0\0\0")
    with pytest.raises((EOFException, ConnectionError)):
        writer.ack()


def test_a_gap_between_packets_is_refused(node: DataNode) -> None:
    writer = BlockWriter([node], BLOCK).setup()
    writer.send(b"late", offset=512)
    with pytest.raises((EOFException, ConnectionError)):
        writer.ack()


def test_a_mirror_that_is_not_there_is_named(start_node: StartNode) -> None:
    first, dead = start_node("dn0"), start_node("dn1")
    dead.stop()
    with pytest.raises(IOException, match=f"127.0.0.1:{dead.port}"):
        BlockWriter([first, dead], BLOCK).setup()


def test_a_mirror_further_down_is_named(start_node: StartNode) -> None:
    first, second, dead = (start_node(f"dn{index}") for index in range(3))
    dead.stop()
    with pytest.raises(IOException, match=f"127.0.0.1:{dead.port}"):
        BlockWriter([first, second, dead], BLOCK).setup()


@pytest.mark.parametrize("victim", [0, 1, 2])
def test_a_pipeline_goes_on_without_a_dead_datanode(start_node: StartNode, victim: int) -> None:
    nodes = [start_node(f"dn{index}") for index in range(3)]
    data = os.urandom(10_000)
    writer = BlockWriter(nodes, BLOCK).setup()
    writer.write(data[:5000])
    nodes[victim].stop()
    if victim == 0:
        with pytest.raises((EOFException, ConnectionError)):
            writer.ack()
    else:
        ack = writer.ack()
        assert ack.seqno == UNKNOWN_SEQNO
        assert ack.statuses.index(Status.ERROR) == victim
    writer.connection.close()

    rest = [node for node in nodes if node is not nodes[victim]]
    writer = BlockWriter(
        rest,
        BLOCK,
        stage=Stage.PIPELINE_SETUP_STREAMING_RECOVERY,
        new_stamp=1002,
        min_bytes=5000,
        max_bytes=6000,
    ).setup()
    begin = 5000 - 5000 % 512
    writer.send(data[begin:], offset=begin)
    assert writer.ack().is_success
    writer.close()
    for node in rest:
        replica = node.replicas.get(BLOCK.id)
        assert (replica.generation_stamp, replica.state) == (1002, ReplicaState.FINALIZED)
        assert read_block(node, BLOCK._replace(generation_stamp=1002), 0, 10_000) == data


def test_recovery_stops_a_writer_that_still_lives(node: DataNode) -> None:
    stalled = BlockWriter([node], BLOCK).setup()
    stalled.write(b"a" * 512)
    writer = BlockWriter(
        [node],
        BLOCK,
        stage=Stage.PIPELINE_SETUP_STREAMING_RECOVERY,
        new_stamp=1002,
        min_bytes=512,
        max_bytes=512,
    ).setup()
    with pytest.raises((EOFException, ConnectionError)):
        stalled.ack()
    writer.write(b"b" * 512)
    writer.close()
    assert read_block(node, Block(BLOCK.id, 1002), 0, 1024) == b"a" * 512 + b"b" * 512


def test_unacknowledged_bytes_are_dropped_by_recovery(start_node: StartNode) -> None:
    first, second = start_node("dn0"), start_node("dn1")
    writer = BlockWriter([first, second], BLOCK).setup()
    writer.write(b"a" * 700)
    second.stop()
    assert not writer.ack().is_success
    writer.send(b"b" * 412, offset=700)
    deadline_s = time.monotonic() + 5
    while first.replicas.get(BLOCK.id).on_disk_bytes < 1112:
        assert time.monotonic() < deadline_s
        time.sleep(0.01)
    recovered = BlockWriter(
        [first],
        BLOCK,
        stage=Stage.PIPELINE_SETUP_STREAMING_RECOVERY,
        new_stamp=1002,
        min_bytes=700,
        max_bytes=1112,
    ).setup()
    assert first.replicas.get(BLOCK.id).on_disk_bytes == 700
    recovered.write(b"c" * 324)
    recovered.close()
    assert read_block(first, Block(BLOCK.id, 1002), 0, 1024) == b"a" * 700 + b"c" * 324


def test_append(start_node: StartNode, namenode: FakeNameNode) -> None:
    nodes = [start_node(f"dn{index}") for index in range(2)]
    write_block(nodes, BLOCK, b"a" * 700)
    writer = BlockWriter(
        nodes, BLOCK, stage=Stage.PIPELINE_SETUP_APPEND, new_stamp=1005, min_bytes=700
    ).setup()
    writer.write(b"b" * 324)
    writer.write(b"c" * 1000)
    writer.close()
    expected = b"a" * 700 + b"b" * 324 + b"c" * 1000
    for node in nodes:
        assert read_block(node, Block(BLOCK.id, 1005), 0, len(expected)) == expected
        namenode.wait_until_received(node.uuid, BLOCK.id, 1005)


def test_append_with_other_checksums_keeps_those_of_the_block(node: DataNode) -> None:
    write_block([node], BLOCK, b"a" * 700, checksum=Checksum(ChecksumType.CRC32, 256))
    writer = BlockWriter(
        [node], BLOCK, stage=Stage.PIPELINE_SETUP_APPEND, new_stamp=1005, min_bytes=700
    ).setup()
    writer.write(b"b" * 1000)
    writer.close()
    assert read_block(node, Block(BLOCK.id, 1005), 0, 1700) == b"a" * 700 + b"b" * 1000


@pytest.mark.parametrize(("stamp", "length"), [(1000, 700), (1002, 700), (1001, 699)])
def test_append_to_what_is_not_there_is_refused(node: DataNode, stamp: int, length: int) -> None:
    write_block([node], BLOCK, b"a" * 700)
    with pytest.raises((EOFException, ConnectionError)):
        BlockWriter(
            [node],
            Block(BLOCK.id, stamp),
            stage=Stage.PIPELINE_SETUP_APPEND,
            new_stamp=1005,
            min_bytes=length,
        ).setup()
    assert read_block(node, BLOCK, 0, 700) == b"a" * 700


def test_close_recovery(start_node: StartNode, namenode: FakeNameNode) -> None:
    """The client sent all, but the last acknowledgement got lost."""
    nodes = [start_node(f"dn{index}") for index in range(2)]
    write_block(nodes[:1], BLOCK, b"a" * 700)
    unfinished = BlockWriter(nodes[1:], BLOCK).setup()
    unfinished.write(b"a" * 700)
    unfinished.connection.close()
    BlockWriter(
        nodes, BLOCK, stage=Stage.PIPELINE_CLOSE_RECOVERY, new_stamp=1002, min_bytes=700
    ).setup()
    for node in nodes:
        namenode.wait_until_received(node.uuid, BLOCK.id, 1002)
        assert read_block(node, Block(BLOCK.id, 1002), 0, 700) == b"a" * 700


def test_append_recovery(node: DataNode) -> None:
    write_block([node], BLOCK, b"a" * 700)
    BlockWriter(
        [node], BLOCK, stage=Stage.PIPELINE_SETUP_APPEND, new_stamp=1002, min_bytes=700
    ).setup().connection.close()
    writer = BlockWriter(
        [node], BLOCK, stage=Stage.PIPELINE_SETUP_APPEND_RECOVERY, new_stamp=1003, min_bytes=700
    ).setup()
    writer.write(b"b" * 100)
    writer.close()
    assert read_block(node, Block(BLOCK.id, 1003), 0, 800) == b"a" * 700 + b"b" * 100


def test_a_block_cannot_be_created_twice(node: DataNode) -> None:
    write_block([node], BLOCK, b"first")
    with pytest.raises((EOFException, ConnectionError)):
        BlockWriter([node], BLOCK).setup()
    assert read_block(node, BLOCK, 0, 5) == b"first"
