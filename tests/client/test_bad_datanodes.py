"""DataNodes that send what they should not, or stop: readers get an error, never bad bytes."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator

import pytest
from tests.client.files import content

from cairnfs.client.block_reader import BlockReader, CorruptReplica
from cairnfs.client.transfers import DataNodeConnections, TransferRefused
from cairnfs.errors import IOException
from cairnfs.wire.checksum import Checksum
from cairnfs.wire.packets import encode_packet_header
from cairnfs.wire.proto import data_transfer_pb2 as pb
from cairnfs.wire.proto import hdfs_pb2
from cairnfs.wire.transfer import Status, encode_checksum, encode_message, encode_response

Serve = Callable[[bytes], BlockReader]
DATA = content(1000)


@pytest.fixture
def serve() -> Iterator[Serve]:
    """A DataNode that answers a read of 1,000 bytes with whatever it is told to."""
    listener = socket.create_server(("127.0.0.1", 0))
    connections = DataNodeConnections()
    threads: list[threading.Thread] = []

    def answer(data: bytes) -> None:
        sock, _ = listener.accept()
        with sock, contextlib.suppress(OSError):  # a reader may leave at any time
            sock.recv(65536)
            sock.sendall(data)
            sock.shutdown(socket.SHUT_WR)
            sock.recv(65536)

    def read(data: bytes) -> BlockReader:
        thread = threading.Thread(target=answer, args=(data,))
        thread.start()
        threads.append(thread)
        datanode = hdfs_pb2.DatanodeInfoProto()
        datanode.id.ipAddr, datanode.id.xferPort = listener.getsockname()
        block = hdfs_pb2.LocatedBlockProto()
        block.b.blockId, block.b.poolId, block.b.generationStamp = 1, "BP", 1
        block.blockToken.identifier = block.blockToken.password = b""
        block.blockToken.kind = block.blockToken.service = ""
        return BlockReader(connections, block, datanode, 0, len(DATA), "client")

    yield read
    connections.close()
    for thread in threads:
        thread.join(10)
    listener.close()


def answer_to_read(chunk_offset: int = 0) -> bytes:
    response = pb.BlockOpResponseProto(status=Status.SUCCESS)
    response.readOpChecksumInfo.checksum.CopyFrom(encode_checksum(Checksum()))
    response.readOpChecksumInfo.chunkOffset = chunk_offset
    return encode_message(response)


def packet(data: bytes, offset: int, *, is_last: bool = False, sums: bytes | None = None) -> bytes:
    sums = Checksum().compute(data) if sums is None else sums
    header = encode_packet_header(
        offset, 0, data_bytes=len(data), sums_bytes=len(sums), is_last=is_last
    )
    return header + sums + data


END = packet(b"", 1000, is_last=True)
GOOD = answer_to_read() + packet(DATA[:512], 0) + packet(DATA[512:], 512) + END


def read_all(reader: BlockReader, piece: int = 4096) -> bytes:
    buffer, received = bytearray(piece), b""
    try:
        while count := reader.readinto(memoryview(buffer)):
            received += buffer[:count]
    finally:
        reader.close()
    return received


@pytest.mark.parametrize("piece", [1, 100, 512, 4096])
def test_what_is_right_is_read(serve: Serve, piece: int) -> None:
    assert read_all(serve(GOOD), piece) == DATA


@pytest.mark.parametrize("length", range(0, len(GOOD), 53))
def test_a_connection_that_ends_early_is_an_error(serve: Serve, length: int) -> None:
    with pytest.raises(OSError):  # noqa: PT011
        read_all(serve(GOOD[:length]))


def test_a_refusal_is_told(serve: Serve) -> None:
    with pytest.raises(TransferRefused, match=r"blk_1 at 127.0.0.1:\d+: no such replica"):
        serve(encode_response(Status.ERROR, "no such replica"))


@pytest.mark.parametrize(
    "answer",
    [
        answer_to_read(512) + packet(DATA[512:], 512) + END,  # begins too late
        answer_to_read() + packet(DATA[512:], 512) + END,  # a gap
        answer_to_read() + packet(DATA[:512], 0) + packet(DATA[:512], 0) + END,  # twice
        answer_to_read() + packet(DATA[:512], 0) + packet(b"", 512, is_last=True),  # too short
        answer_to_read() + packet(DATA[:512], 0) + b"\xff" * 100,
        b"\xff" * 100,
        b"\x05" + b"\xff" * 100,
    ],
    ids=["late", "gap", "twice", "short", "no packet", "no length", "no message"],
)
def test_what_no_datanode_sends_is_an_error(serve: Serve, answer: bytes) -> None:
    with pytest.raises(IOException):
        read_all(serve(answer))


@pytest.mark.parametrize("piece", [100, 4096])
def test_wrong_checksums_are_found_before_the_bytes_are_handed_out(
    serve: Serve, piece: int
) -> None:
    wrong = bytearray(DATA)
    wrong[700] ^= 1
    answer = answer_to_read() + packet(DATA[:512], 0)
    reader = serve(answer + packet(wrong[512:], 512, sums=Checksum().compute(DATA[512:])) + END)
    received = b""
    buffer = bytearray(piece)
    with pytest.raises(CorruptReplica, match="the chunk at 512 is corrupt"):  # noqa: PT012
        while count := reader.readinto(memoryview(buffer)):
            received += buffer[:count]
    reader.abort()
    assert received == DATA[:512]
    reader = serve(answer + packet(DATA[512:], 512, sums=b"") + END)
    with pytest.raises(CorruptReplica):
        read_all(reader)
