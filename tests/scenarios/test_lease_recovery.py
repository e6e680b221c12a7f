"""Writers, DataNodes and NameNodes die while a file is written: the failures of HDFS's design.

What a writer has flushed is there afterwards, and the file is closed within a bound.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest
from tests.scenarios.conftest import MakeCluster, MakeJvm
from tests.scenarios.jvm import JavaError, Jvm, Stream

from cairnfs.testing.cluster import Cluster, Node

MIB = 1 << 20
SOFT_LIMIT_S, HARD_LIMIT_S = 3, 6
CLOSE_LIMIT_S = 60.0
LIMITS = ("--lease-soft-limit", str(SOFT_LIMIT_S), "--lease-hard-limit", str(HARD_LIMIT_S))
BEST_EFFORT = {"dfs.client.block.write.replace-datanode-on-failure.best-effort": "true"}
RETRYING = {"dfs.client.retry.policy.enabled": "true"}  # with a single NameNode, not the default

pytestmark = pytest.mark.java


def write_flushed(writer: Jvm, path: str = "/file", data: bytes = b"flushed") -> Stream:
    """Begin a file; what it has, others may read, whatever becomes of the writer."""
    out = writer.create(path)
    out.write(data)
    out.hflush()
    return out


def wait_until_closed(cluster: Cluster, java: Jvm, path: str = "/file") -> None:
    cluster.wait_until(lambda: java.is_closed(path), f"{path} is closed", CLOSE_LIMIT_S)


def recover(cluster: Cluster, java: Jvm, path: str = "/file") -> None:
    cluster.wait_until(lambda: java.recover_lease(path), f"{path} is recovered", CLOSE_LIMIT_S)


@contextmanager
def hanging(nodes: Sequence[Node]) -> Iterator[None]:
    """Processes that neither work nor end."""
    for node in nodes:
        os.kill(node.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for node in nodes:
            os.kill(node.pid, signal.SIGCONT)


# A client dies while writing to a block.


def test_writer_killed_and_file_closed_after_the_hard_limit(
    make_cluster: MakeCluster, make_java: MakeJvm
) -> None:
    cluster = make_cluster(namenode_options=LIMITS)
    writer, java = make_java(cluster), make_java(cluster)
    out = write_flushed(writer, data=b"x" * MIB + b"flushed")
    out.write(b" and not flushed")
    writer.kill()
    began_s = time.monotonic()
    wait_until_closed(cluster, java)
    assert HARD_LIMIT_S - 1 < time.monotonic() - began_s < HARD_LIMIT_S + 20
    assert java.read("/file")[MIB:].startswith(b"flushed")
    out = java.append("/file")
    out.write(b"!")
    out.close()
    assert java.read("/file").endswith(b"!")


def test_writer_killed_and_file_recovered_by_another_client(
    cluster: Cluster, make_java: MakeJvm
) -> None:
    writer, java = make_java(cluster), make_java(cluster)
    write_flushed(writer)
    writer.create("/empty")  # nothing was written, nor a block asked for
    writer.kill()
    began_s = time.monotonic()
    recover(cluster, java, "/empty")
    recover(cluster, java)
    assert time.monotonic() - began_s < 20
    assert java.read("/file") == b"flushed"
    assert java.read("/empty") == b""


def test_writer_killed_and_file_taken_over_after_the_soft_limit(
    make_cluster: MakeCluster, make_java: MakeJvm
) -> None:
    cluster = make_cluster(namenode_options=("--lease-soft-limit", str(SOFT_LIMIT_S)))
    writer, java = make_java(cluster), make_java(cluster)
    write_flushed(writer)
    writer.kill()
    with pytest.raises(JavaError, match="AlreadyBeingCreatedException"):
        java.append("/file")
    time.sleep(SOFT_LIMIT_S + 0.5)
    with pytest.raises(JavaError, match="RecoveryInProgressException"):
        java.append("/file")
    wait_until_closed(cluster, java)
    out = java.append("/file")
    out.write(b" and more")
    out.close()
    assert java.read("/file") == b"flushed and more"


def test_a_writer_that_is_alive_loses_a_file_that_is_taken_from_it(
    cluster: Cluster, make_java: MakeJvm
) -> None:
    writer, java = make_java(cluster), make_java(cluster)
    out = write_flushed(writer)
    recover(cluster, java)

    def go_on() -> None:
        out.write(b"too late")
        out.hflush()

    with pytest.raises(JavaError, match="LeaseExpiredException"):
        go_on()
    assert java.read("/file") == b"flushed"


def test_open_files_are_listed(cluster: Cluster, java: Jvm) -> None:
    count = 120  # more than a page
    streams = [java.create(f"/d/{number:03}") for number in range(count)]
    other = java.create("/other")
    assert java.open_files() == [*(f"/d/{number:03}" for number in range(count)), "/other"]
    assert java.open_files("/other") == ["/other"]
    for stream in (*streams[:-1], other):
        stream.close()
    assert java.open_files() == [f"/d/{count - 1:03}"]


# A DataNode in the pipeline dies.


def test_datanode_killed_under_a_writer_that_flushes(cluster: Cluster, make_java: MakeJvm) -> None:
    java = make_java(cluster, BEST_EFFORT)
    out = java.create("/file")
    expected = b""
    for number in range(30):
        piece = b"record %d\n" % number * 1000
        out.write(piece)
        out.hflush()
        expected += piece
        if number == 10:
            cluster.datanodes[0].kill()
        if number == 20:
            cluster.datanodes[1].kill()
        assert java.has("/file", expected)
    out.close()
    assert java.has("/file", expected)


@pytest.mark.parametrize("killed", [1, 2])
def test_writer_and_datanodes_killed(cluster: Cluster, make_java: MakeJvm, killed: int) -> None:
    writer, java = make_java(cluster), make_java(cluster)
    write_flushed(writer)
    writer.kill()
    for node in cluster.datanodes[:killed]:
        node.kill()
    recover(cluster, java)
    assert java.read("/file") == b"flushed"
    for node in cluster.datanodes[:killed]:
        node.start()
    cluster.wait_for_datanodes(3)
    assert java.read("/file") == b"flushed"


def test_all_datanodes_are_restarted_while_a_writer_is_gone(
    cluster: Cluster, make_java: MakeJvm
) -> None:
    """What they have is then only waiting to be recovered; until one is back, nothing is lost."""
    writer, java = make_java(cluster), make_java(cluster)
    write_flushed(writer)
    writer.kill()
    for node in cluster.datanodes:
        node.kill()
    assert not java.recover_lease("/file")
    for node in cluster.datanodes:
        node.start()
    recover(cluster, java)
    assert java.read("/file") == b"flushed"


def test_a_datanode_that_hangs_does_not_keep_a_file_open(
    cluster: Cluster, make_java: MakeJvm
) -> None:
    writer, java = make_java(cluster), make_java(cluster)
    write_flushed(writer)
    writer.kill()
    with hanging(cluster.datanodes[:1]):
        recover(cluster, java)
        assert java.read("/file") == b"flushed"


# The NameNode dies; maybe several times before it is back for good.


def test_namenode_killed_under_a_writer(cluster: Cluster, make_java: MakeJvm) -> None:
    """It goes on where it was, also with further blocks."""
    java = make_java(cluster, RETRYING)
    out = java.create("/file")
    expected = b""
    for number in range(3):
        piece = bytes([number]) * (MIB + 1000)
        out.write(piece)
        out.hflush()
        expected += piece
        cluster.namenodes[0].kill()
        cluster.namenodes[0].start()
        cluster.wait_for_namenode(cluster.namenodes[0])
        cluster.wait_for_datanodes(3)
    out.write(b"end")
    out.close()
    assert java.has("/file", expected + b"end")


def test_namenode_killed_during_block_recovery(cluster: Cluster, make_java: MakeJvm) -> None:
    writer, java = make_java(cluster), make_java(cluster, RETRYING)
    namenode = cluster.namenodes[0]
    write_flushed(writer)
    writer.kill()
    for turn in range(3):  # and restarted, and killed again, most likely before it is done
        cluster.wait_for_datanodes(3)
        with hanging(cluster.datanodes):
            is_closed = java.recover_lease("/file")
            assert turn or not is_closed
            namenode.kill()
        namenode.start()
        cluster.wait_for_namenode(namenode)
    recover(cluster, java)
    assert java.read("/file") == b"flushed"


def test_another_namenode_goes_on_with_what_one_has_begun(
    make_cluster: MakeCluster, make_java: MakeJvm, postgres_dsn: str
) -> None:
    cluster = make_cluster(namenodes=2, store=postgres_dsn, namenode_options=LIMITS)
    writer, java = make_java(cluster), make_java(cluster)
    write_flushed(writer, "/recovered")
    write_flushed(writer, "/expired")
    going_on = write_flushed(java, data=b"before ")
    writer.kill()
    java.recover_lease("/recovered")
    cluster.namenodes[0].kill()
    going_on.write(b"after")
    going_on.close()
    assert java.read("/file") == b"before after"
    for path in ("/recovered", "/expired"):
        wait_until_closed(cluster, java, path)
        assert java.read(path) == b"flushed"
