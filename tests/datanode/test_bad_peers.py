"""Peers that stall, vanish or send garbage disturb nobody."""

from __future__ import annotations

import random
import socket
import struct
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.datanode.client import (
    CLIENT,
    BlockWriter,
    connect,
    datanode_info,
    extended,
    raw_socket,
    read_block,
    write_block,
)
from tests.datanode.conftest import StartNode
from tests.datanode.namenode import POOL

from cairnfs.datanode.node import DataNode
from cairnfs.datanode.replica import Block
from cairnfs.wire.checksum import Checksum
from cairnfs.wire.packets import encode_packet_header
from cairnfs.wire.proto import data_transfer_pb2 as pb
from cairnfs.wire.transfer import Op, Stage, Status, encode_checksum, encode_request

BLOCK = Block(1_073_741_825, 1001)


def write_request(block: Block, **changes: object) -> bytes:
    arguments: dict[str, object] = {
        "stage": Stage.PIPELINE_SETUP_CREATE,
        "pipelineSize": 1,
        "minBytesRcvd": 0,
        "maxBytesRcvd": 0,
        "latestGenerationStamp": 0,
        "requestedChecksum": encode_checksum(Checksum()),
    }
    request = pb.OpWriteBlockProto(**(arguments | changes))
    request.header.clientName = CLIENT
    request.header.baseHeader.block.CopyFrom(extended(block))
    return encode_request(Op.WRITE_BLOCK, request)


def is_closed(sock: socket.socket, limit_s: float = 8.0) -> bool:
    """Whether the DataNode ends the connection, whatever it says before."""
    sock.settimeout(limit_s)
    try:
        while sock.recv(65536):
            pass
    except TimeoutError:
        return False
    except OSError:
        pass
    return True


def wait_until_idle(node: DataNode, limit_s: float = 8.0) -> None:
    deadline_s = time.monotonic() + limit_s
    while node.server.active:
        assert time.monotonic() < deadline_s, f"{node.server.active} transfers have not ended"
        time.sleep(0.01)


def test_garbage(node: DataNode) -> None:
    write_block([node], BLOCK, b"x" * 1000)

    @settings(
        max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
    )
    @given(data=st.binary(max_size=300), is_request=st.booleans(), op=st.integers(0, 255))
    def send_garbage(data: bytes, is_request: bool, op: int) -> None:
        with raw_socket(node) as sock:
            sock.sendall(struct.pack(">hB", 28, op) + data if is_request else data)
            sock.shutdown(socket.SHUT_WR)
            assert is_closed(sock)

    send_garbage()
    wait_until_idle(node)
    assert read_block(node, BLOCK, 0, 1000) == b"x" * 1000


def test_damaged_pipelines(node: DataNode) -> None:
    """A write with some bytes changed or cut: no replica with wrong content comes of it."""
    data = bytes(range(256)) * 20
    sums = Checksum().compute(data)
    chance = random.Random(3)
    for number in range(150):
        block = Block(BLOCK.id + 1 + number, 1001)
        stream = bytearray(
            write_request(block)
            + encode_packet_header(0, 0, data_bytes=len(data), sums_bytes=len(sums))
            + sums
            + data
            + encode_packet_header(len(data), 1, data_bytes=0, sums_bytes=0, is_last=True)
        )
        if number % 3 == 0:
            del stream[chance.randrange(len(stream)) :]
        else:
            # Before the data, or in it: a change of the block's id makes another block.
            low, high = ((150, 260), (260, len(stream)))[number % 3 - 1]
            for _ in range(chance.randrange(1, 4)):
                stream[chance.randrange(low, high)] ^= 1 << chance.randrange(8)
        with raw_socket(node) as sock:
            try:
                sock.sendall(stream)
                sock.shutdown(socket.SHUT_WR)
            except OSError:
                pass
            assert is_closed(sock)
        replica = node.replicas.find(block.id)
        if replica is not None and replica.acked_bytes:
            length = replica.acked_bytes
            assert read_block(node, Block(block.id, 0), 0, length) == data[:length]
    wait_until_idle(node)


@pytest.mark.parametrize(
    "changes",
    [
        {"stage": Stage.DATA_STREAMING},
        {"stage": Stage.PIPELINE_CLOSE},
        {"stage": Stage.PIPELINE_CLOSE_RECOVERY},
        {"stage": Stage.PIPELINE_SETUP_STREAMING_RECOVERY},
        {"requestedChecksum": pb.ChecksumProto(type=2, bytesPerChecksum=0)},
        {"requestedChecksum": pb.ChecksumProto(type=2, bytesPerChecksum=1 << 31)},
        {"storageType": 3},
    ],
    ids=str,
)
def test_writes_that_make_no_sense(node: DataNode, changes: dict[str, object]) -> None:
    with raw_socket(node) as sock:
        sock.sendall(write_request(BLOCK, **changes))
        assert is_closed(sock)
    assert node.replicas.find(BLOCK.id) is None


def test_another_block_pool_is_refused(node: DataNode) -> None:
    with raw_socket(node) as sock:
        request = pb.OpCopyBlockProto()
        request.header.block.CopyFrom(extended(BLOCK, "BP-other"))
        sock.sendall(encode_request(Op.COPY_BLOCK, request))
        assert is_closed(sock)


@pytest.mark.parametrize(
    ("op", "request_message", "response_type"),
    [
        (
            Op.REQUEST_SHORT_CIRCUIT_SHM,
            pb.ShortCircuitShmRequestProto(clientName="c"),
            pb.ShortCircuitShmResponseProto,
        ),
        (
            Op.REQUEST_SHORT_CIRCUIT_FDS,
            pb.OpRequestShortCircuitAccessProto(
                header=pb.BaseHeaderProto(block=extended(BLOCK, POOL)), maxVersion=1
            ),
            pb.BlockOpResponseProto,
        ),
        (Op.CUSTOM, pb.OpCustomProto(customId="c"), pb.BlockOpResponseProto),
    ],
)
def test_what_is_not_offered_is_said_to_be_so(
    node: DataNode,
    op: Op,
    request_message: pb.OpCustomProto,
    response_type: type[pb.BlockOpResponseProto],
) -> None:
    connection = connect(node)
    connection.send(encode_request(op, request_message))
    assert connection.read_message(response_type).status == Status.ERROR_UNSUPPORTED


def test_a_client_that_stalls(start_node: StartNode) -> None:
    """Its connection ends in time; its replica can be recovered, others do not wait."""
    node = start_node(socket_timeout_s=0.3)
    stalled = BlockWriter([node], BLOCK).setup()
    silent = raw_socket(node)
    write_block([node], Block(BLOCK.id + 1, 1002), b"x" * 1000)
    with pytest.raises(OSError, match=r"closed|reset"):
        stalled.ack()
    assert is_closed(silent)
    silent.close()
    wait_until_idle(node)


def test_a_reader_that_does_not_read(start_node: StartNode) -> None:
    node = start_node(write_timeout_s=0.3)
    data = bytes(16 << 20)
    write_block([node], BLOCK, data, packet_bytes=1 << 20)
    with raw_socket(node) as sock:
        request = pb.OpReadBlockProto(offset=0, len=len(data))
        request.header.clientName = CLIENT
        request.header.baseHeader.block.CopyFrom(extended(BLOCK))
        sock.sendall(encode_request(Op.READ_BLOCK, request))
        wait_until_idle(node)


def test_only_so_many_transfers(start_node: StartNode) -> None:
    node = start_node(transfer_threads_max=3)
    waiting = [raw_socket(node) for _ in range(3)]
    deadline_s = time.monotonic() + 5
    while node.server.active < 3:
        assert time.monotonic() < deadline_s
        time.sleep(0.01)
    with raw_socket(node) as refused:
        assert is_closed(refused)
    for sock in waiting:
        sock.close()
    wait_until_idle(node)
    write_block([node], BLOCK, b"x")


def test_a_mirror_that_is_no_datanode(start_node: StartNode) -> None:
    """Whatever listens there, the client is told that it is the bad one."""
    node, other = start_node("dn0", socket_timeout_s=0.3), start_node("dn1")
    with socket.create_server(("127.0.0.1", 0)) as server:
        info = datanode_info(other)
        info.id.xferPort = server.getsockname()[1]
        connection = connect(node)
        connection.send(write_request(BLOCK, targets=[info]))
        peer, _ = server.accept()
        with peer:
            peer.sendall(b"\xff" * 100)
            response = connection.read_message(pb.BlockOpResponseProto)
        assert response.status == Status.ERROR
        assert response.firstBadLink == f"127.0.0.1:{info.id.xferPort}"
