"""Nodes killed and replicas damaged under writers and readers."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.client.conftest import MakeCluster
from tests.client.files import MIB, append, content, read, write

import cairnfs
from cairnfs.client.namenode import NameNodes
from cairnfs.errors import BlockMissingException, IOException
from cairnfs.network.address import Address
from cairnfs.testing.cluster import Cluster, Node
from cairnfs.testing.ports import choose_free_ports
from cairnfs.wire.proto import client_namenode_pb2 as pb

LIMIT_S = 60.0


def pipeline_of(cluster: Cluster, fs: cairnfs.FileSystem, path: str) -> list[Node]:
    """The DataNodes that the last block of a file is being written to, in their order."""
    last = fs.get_block_locations(path)[-1]
    return [cluster.datanode_at(node.port) for node in last.datanodes]


@pytest.mark.parametrize("position", [0, 1, 2])
@pytest.mark.parametrize("flushes", [False, True])
def test_a_writer_goes_on_whichever_datanode_is_killed(
    make_cluster: MakeCluster, position: int, flushes: bool
) -> None:
    cluster = make_cluster(datanodes=4 if flushes else 3)
    data = content(10 * MIB + 123)
    half = 5 * MIB + 1000
    with cairnfs.connect(cluster.uri) as fs:
        with fs.create("/file", replication=3, block_size=4 * MIB) as file:
            file.write(data[:half])
            if flushes:
                file.flush()
            cluster.wait_until(
                lambda: len(fs.get_block_locations("/file")) == 2, "the second block is begun"
            )
            pipeline_of(cluster, fs, "/file")[position].kill()
            file.write(data[half:])
        assert read(fs, "/file") == data
        # A flushed block's DataNode was replaced at once; the others are replicated later.
        blocks = fs.get_block_locations("/file")
        assert [len(block.datanodes) for block in blocks[1:2]] == [3 if flushes else 2]


def test_a_writer_goes_on_without_all_but_one(make_cluster: MakeCluster) -> None:
    cluster = make_cluster(datanodes=3)
    data = content(6 * MIB)
    with cairnfs.connect(cluster.uri) as fs:
        with fs.create("/file", replication=3, block_size=8 * MIB) as file:
            for part in range(3):
                file.write(data[part * 2 * MIB : (part + 1) * 2 * MIB])
                file.flush()
                if part < 2:
                    pipeline_of(cluster, fs, "/file")[0].kill()
        assert read(fs, "/file") == data


def test_a_writer_that_has_lost_all_datanodes_says_so(make_cluster: MakeCluster) -> None:
    cluster = make_cluster(datanodes=1)
    with cairnfs.connect(cluster.uri) as fs:
        file = fs.create("/file", replication=1)
        file.write(content(MIB))
        file.flush()
        cluster.datanodes[0].kill()
        with pytest.raises(IOException, match=r"are bad\. Aborting") as first:
            file.write(content(16 * MIB))
        with pytest.raises(IOException) as second:
            file.write(b"more")
        assert second.value is first.value
        with pytest.raises(IOException):
            file.close()
        assert file.closed


def test_an_append_that_fails_leaves_no_lease(make_cluster: MakeCluster) -> None:
    """Which the client's other files would keep for ever."""
    cluster = make_cluster(datanodes=1)
    with cairnfs.connect(cluster.uri) as fs, fs.create("/other"):
        write(fs, "/file", content(1000))
        [datanode] = cluster.datanodes
        datanode.kill()
        with pytest.raises(IOException, match=r"are bad\. Aborting"):
            fs.append("/file")
        datanode.start()
        cluster.wait_until(lambda: fs.is_file_closed("/file"), "the file is closed", LIMIT_S)
        append(fs, "/file", b"more")
        assert read(fs, "/file") == content(1000) + b"more"


def test_a_new_block_goes_elsewhere_if_a_datanode_does_not_take_it(
    make_cluster: MakeCluster,
) -> None:
    """The NameNode does not know yet that it is gone."""
    cluster = make_cluster(datanodes=3, stale_after_s=30.0, dead_after_s=60.0)
    cluster.datanodes[1].kill()
    with cairnfs.connect(cluster.uri) as fs:
        for number in range(4):
            write(fs, f"/file{number}", content(MIB), replication=2)
            assert read(fs, f"/file{number}") == content(MIB)


def test_a_reader_goes_on_without_the_datanode_it_reads_from(make_cluster: MakeCluster) -> None:
    cluster = make_cluster(datanodes=3)
    data = content(32 * MIB)
    with cairnfs.connect(cluster.uri) as fs:
        write(fs, "/file", data, replication=3, block_size=32 * MIB)
        with fs.open("/file") as file:
            assert file.read(MIB) == data[:MIB]
            assert file._reader is not None
            cluster.datanode_at(file._reader.datanode.id.xferPort).kill()
            assert file.read() == data[MIB:]
        assert read(fs, "/file") == data


def test_an_idle_connection_that_was_closed_does_no_harm(make_cluster: MakeCluster) -> None:
    cluster = make_cluster(datanodes=1)
    with cairnfs.connect(cluster.uri) as fs:
        write(fs, "/file", content(1000))
        assert read(fs, "/file") == content(1000)
        for node in (cluster.datanodes[0], cluster.namenodes[0]):
            node.kill()
            node.start()
        cluster.wait_for_datanodes(1)
        assert read(fs, "/file") == content(1000)


def flip(replica: Path) -> None:
    with replica.open("r+b") as file:
        file.seek(MIB)
        byte = file.read(1)
        file.seek(MIB)
        file.write(bytes([byte[0] ^ 0xFF]))


def cut(replica: Path) -> None:
    with replica.open("r+b") as file:
        file.truncate(MIB + 100)


def damage_all_but(
    cluster: Cluster, path: str, keep: int, damage: Callable[[Path], None]
) -> list[Node]:
    """Damage replicas of the first block, those that readers come to first."""
    [places, *_] = cluster.replica_places(path)
    nodes = [cluster.datanode_at(place.port) for place in places[: len(places) - keep]]
    for node in nodes:
        damage(cluster.replica_files(node)[places[0].block_id])
    return nodes


@pytest.mark.parametrize("damage", [flip, cut])
def test_damaged_replicas_are_left_for_good_ones_and_reported(
    make_cluster: MakeCluster, damage: Callable[[Path], None]
) -> None:
    cluster = make_cluster(datanodes=3, datanode_options=("--scan-rate", "0"))
    data = content(4 * MIB)
    with cairnfs.connect(cluster.uri) as fs:
        write(fs, "/file", data, replication=3, block_size=4 * MIB)
        cluster.wait_until(
            lambda: all(len(places) == 3 for places in cluster.replica_places("/file")),
            "three replicas",
        )
        damage_all_but(cluster, "/file", 1, damage)

        def is_well() -> bool:
            # Which replica a reader is given is up to chance, so it may take several.
            assert read(fs, "/file") == data
            with fs.open("/file") as file:
                assert file.pread(MIB - 10, 1000) == data[MIB - 10 : MIB + 990]
            files = [cluster.replica_files(node) for node in cluster.datanodes]
            return all(
                file.read_bytes() == data for replicas in files for file in replicas.values()
            ) and all(len(places) == 3 for places in cluster.replica_places("/file"))

        cluster.wait_until(is_well, "three good replicas", LIMIT_S)


def test_a_block_without_a_good_replica_is_an_error_that_says_why(
    make_cluster: MakeCluster,
) -> None:
    cluster = make_cluster(datanodes=2, datanode_options=("--scan-rate", "0"))
    data = content(2 * MIB)
    with cairnfs.connect(cluster.uri) as fs:
        write(fs, "/file", data, replication=2, block_size=4 * MIB)
        cluster.wait_until(lambda: len(cluster.replica_places("/file")[0]) == 2, "two replicas")
        damage_all_but(cluster, "/file", 0, flip)
        with fs.open("/file") as file:
            assert file.pread(0, 1000) == data[:1000]  # a part that is not damaged
            with pytest.raises(BlockMissingException, match="Checksum error") as caught:
                file.read()
        assert "/file" in str(caught.value)
        # It may well be this machine that is broken: nothing is called bad that all share.
        assert len(cluster.replica_places("/file")[0]) == 2


# NameNodes


def test_nobody_at_the_address_is_an_error_at_once() -> None:
    [port] = choose_free_ports(1)
    began_s = time.monotonic()
    with (
        cairnfs.connect(f"hdfs://127.0.0.1:{port}") as fs,
        pytest.raises(ConnectionRefusedError, match=f"no NameNode at 127.0.0.1:{port}"),
    ):
        fs.exists("/")
    assert time.monotonic() - began_s < 1.0
    with cairnfs.connect("hdfs://no-such-host.invalid") as fs, pytest.raises(ConnectionError):
        fs.exists("/")


def test_writers_and_readers_wait_for_a_namenode_to_come_back(make_cluster: MakeCluster) -> None:
    cluster = make_cluster(datanodes=2)
    [namenode] = cluster.namenodes
    data = content(3 * MIB)
    with cairnfs.connect(cluster.uri) as fs, fs.create("/file", block_size=MIB) as file:
        file.write(data[:MIB])
        namenode.kill()
        namenode.start()
        file.write(data[MIB:])
        file.close()
        assert read(fs, "/file") == data


def test_impatience(make_cluster: MakeCluster) -> None:
    cluster = make_cluster(datanodes=1)
    with cairnfs.connect(cluster.uri, patience_s=0.5) as fs:
        assert fs.exists("/")
        cluster.namenodes[0].kill()
        with pytest.raises(ConnectionError, match="no NameNode"):
            fs.exists("/")


def test_calls_go_on_with_the_other_namenode(make_cluster: MakeCluster, postgres_dsn: str) -> None:
    cluster = make_cluster(namenodes=2, store=postgres_dsn)
    addresses = ",".join(node.address for node in cluster.namenodes)
    data = content(3 * MIB)
    with cairnfs.connect(f"hdfs://{addresses}") as fs:
        write(fs, "/one", data)
        for victim in cluster.namenodes:
            with fs.create(f"/{victim.name}", block_size=MIB) as file:
                file.write(data[: 2 * MIB])
                victim.kill()
                assert read(fs, "/one") == data
                file.write(data[2 * MIB :])
            assert read(fs, f"/{victim.name}") == data
            victim.start()
            cluster.wait_for_namenode(victim)
            cluster.wait_for_datanodes(3)
        assert [status.name for status in fs.list_status("/")] == ["namenode0", "namenode1", "one"]


def test_a_call_that_is_sent_again_is_done_once(
    make_cluster: MakeCluster, postgres_dsn: str
) -> None:
    """The first NameNode has done it, but its answer was lost: the other has the reply."""
    cluster = make_cluster(namenodes=2, store=postgres_dsn, datanodes=1)
    addresses = [Address("127.0.0.1", node.port) for node in cluster.namenodes]
    namenodes = NameNodes(addresses, "root", timeout_s=10, patience_s=10)
    try:
        namenodes.call("mkdirs", _mkdirs("/dir"), pb.MkdirsResponseProto)
        _lose_the_next_answer(namenodes)
        request = pb.Rename2RequestProto(src="/dir", dst="/moved", overwriteDest=False)
        namenodes.call("rename2", request, pb.Rename2ResponseProto)
        assert namenodes._current == 1
        found = pb.GetFileInfoRequestProto(src="/moved")
        assert namenodes.call("getFileInfo", found, pb.GetFileInfoResponseProto).HasField("fs")
    finally:
        namenodes.close()


def _mkdirs(path: str) -> pb.MkdirsRequestProto:
    request = pb.MkdirsRequestProto(src=path, createParent=True)
    request.masked.perm = 0o755
    return request


def _lose_the_next_answer(namenodes: NameNodes) -> None:
    """Let the idle connection send, and break when the answer has come."""
    [connection] = namenodes._idle
    receive = connection._receive

    def lose() -> object:
        receive()
        raise ConnectionResetError("the answer was lost")

    connection._receive = lose  # type: ignore[method-assign, assignment]
