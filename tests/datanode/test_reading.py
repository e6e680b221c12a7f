"""Reading replicas: ranges, replicas being written, replicas that have decayed."""

from __future__ import annotations

import os
import threading

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.datanode.client import BlockWriter, connect, extended, read_block, write_block
from tests.datanode.conftest import StartNode
from tests.datanode.namenode import FakeNameNode
from tests.datanode.namenode import Status as ReplicaChange

from cairnfs.datanode.node import DataNode
from cairnfs.datanode.replica import Block
from cairnfs.errors import IOException
from cairnfs.wire.checksum import Checksum, ChecksumType, md5_of_sums
from cairnfs.wire.proto import data_transfer_pb2 as pb
from cairnfs.wire.proto import hdfs_pb2
from cairnfs.wire.transfer import Op, Status, encode_message, encode_request

BLOCK = Block(1_073_741_825, 1001)


def test_ranges(node: DataNode) -> None:
    data = os.urandom(1_200_000)
    write_block([node], BLOCK, data)

    @settings(
        max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
    )
    @given(st.integers(0, len(data)), st.integers(0, len(data)), st.booleans())
    def read_any_range(start: int, end: int, with_sums: bool) -> None:
        start, end = min(start, end), max(start, end)
        got = read_block(node, BLOCK, start, end - start, with_sums=with_sums)
        assert got == data[start:end]

    read_any_range()


@pytest.mark.parametrize(("offset", "length"), [(0, 1001), (1001, 1), (1 << 40, 1), (0, 1 << 62)])
def test_a_range_beyond_the_end_is_refused(node: DataNode, offset: int, length: int) -> None:
    write_block([node], BLOCK, b"x" * 1000)
    with pytest.raises(IOException, match="don't match block"):
        read_block(node, BLOCK, offset, length)


def test_connections_are_used_again(node: DataNode) -> None:
    write_block([node], BLOCK, b"x" * 1000)
    connection = connect(node)
    for _ in range(3):
        request = pb.OpReadBlockProto(offset=0, len=1000)
        request.header.clientName = "c"
        request.header.baseHeader.block.CopyFrom(extended(BLOCK))
        connection.send(encode_request(Op.READ_BLOCK, request))
        assert connection.read_message(pb.BlockOpResponseProto).status == Status.SUCCESS
        is_complete = False
        while not is_complete:
            is_complete = connection.read_packets()[-1].is_last
        connection.send(encode_message(pb.ClientReadStatusProto(status=Status.CHECKSUM_OK)))


def test_a_reader_who_knows_of_a_newer_generation_is_refused(node: DataNode) -> None:
    write_block([node], BLOCK, b"x" * 1000)
    with pytest.raises(IOException, match="Replica gen stamp < block genstamp"):
        read_block(node, Block(BLOCK.id, 1002), 0, 1000)
    assert read_block(node, Block(BLOCK.id, 1000), 0, 1000) == b"x" * 1000


def test_what_is_not_here_is_refused(node: DataNode) -> None:
    with pytest.raises(IOException, match="Replica not found"):
        read_block(node, BLOCK, 0, 1)


def test_a_reader_beside_the_writer(start_node: StartNode) -> None:
    """Whoever reads while chunks grow sees right data with right checksums, always."""
    nodes = [start_node(f"dn{index}") for index in range(2)]
    data = os.urandom(60_000)
    writer = BlockWriter(nodes, BLOCK).setup()
    acknowledged = [0]
    failures: list[BaseException] = []

    def read() -> None:
        try:
            while acknowledged[0] < len(data):
                length = acknowledged[0]
                for node in nodes:
                    assert read_block(node, BLOCK, 0, length) == data[:length]
        except BaseException as error:
            failures.append(error)

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    while writer.offset < len(data):
        begin = writer.offset - writer.offset % 512
        writer.send(data[begin : writer.offset + 131], offset=begin)
        assert writer.ack().is_success
        acknowledged[0] = writer.offset
    for reader in readers:
        reader.join()
    assert not failures, failures
    writer.close()


def test_a_reader_from_before_an_append_is_not_disturbed(node: DataNode) -> None:
    write_block([node], BLOCK, b"a" * 700)
    with node.replicas.open_for_read(BLOCK) as reader:
        writer = BlockWriter([node], BLOCK, stage=0, new_stamp=1002, min_bytes=700).setup()  # type: ignore[arg-type]
        writer.write(b"b" * 100)
        writer.close()
        assert reader.length_bytes == 700
        assert Checksum().matches(b"a" * 700, reader.read_sums(0, 700))


def test_a_file_that_was_cut_is_reported(node: DataNode, namenode: FakeNameNode) -> None:
    write_block([node], BLOCK, b"x" * 100_000)
    os.truncate(node.replicas.get(BLOCK.id).data_path, 50_000)
    with pytest.raises(OSError, match=r"closed|reset"):
        read_block(node, BLOCK, 0, 100_000)
    namenode.wait_for(lambda: namenode.bad == [BLOCK.id])


def test_a_meta_file_that_was_cut_is_reported(node: DataNode, namenode: FakeNameNode) -> None:
    write_block([node], BLOCK, b"x" * 100_000)
    os.truncate(node.replicas.get(BLOCK.id).meta_path, 100)
    with pytest.raises(OSError, match=r"closed|reset"):
        read_block(node, BLOCK, 0, 100_000)
    namenode.wait_for(lambda: namenode.bad == [BLOCK.id])


def test_a_meta_file_without_a_header_is_refused(node: DataNode) -> None:
    write_block([node], BLOCK, b"x" * 1000)
    os.truncate(node.replicas.get(BLOCK.id).meta_path, 3)
    with pytest.raises(IOException, match="has no header"):
        read_block(node, BLOCK, 0, 1000)


def test_files_that_were_removed_are_no_replica(node: DataNode, namenode: FakeNameNode) -> None:
    write_block([node], BLOCK, b"x" * 1000)
    node.replicas.get(BLOCK.id).data_path.unlink()
    with pytest.raises(IOException, match="Replica not found"):
        read_block(node, BLOCK, 0, 1000)
    assert node.replicas.find(BLOCK.id) is None
    namenode.wait_for(lambda: namenode.status_of(node.uuid, BLOCK.id) == ReplicaChange.DELETED)


@pytest.mark.parametrize("asked", [0, 300_000, 299_000])
def test_checksums_of_blocks(node: DataNode, asked: int) -> None:
    data = os.urandom(300_000)
    write_block([node], BLOCK, data)
    covered = data[: asked or len(data)]
    checksums = {}
    for kind in (hdfs_pb2.MD5CRC, hdfs_pb2.COMPOSITE_CRC):
        connection = connect(node)
        request = pb.OpBlockChecksumProto()
        request.header.block.CopyFrom(extended(BLOCK._replace(length_bytes=asked)))
        request.blockChecksumOptions.blockChecksumType = kind
        connection.send(encode_request(Op.BLOCK_CHECKSUM, request))
        response = connection.read_message(pb.BlockOpResponseProto)
        assert response.status == Status.SUCCESS
        assert response.checksumResponse.bytesPerCrc == 512
        assert response.checksumResponse.crcType == hdfs_pb2.CHECKSUM_CRC32C
        checksums[kind] = response.checksumResponse.blockChecksum
    assert checksums[hdfs_pb2.MD5CRC] == md5_of_sums([Checksum().compute(covered)])
    whole = Checksum(ChecksumType.CRC32C, 1 << 20)
    assert checksums[hdfs_pb2.COMPOSITE_CRC] == whole.compute(covered)
