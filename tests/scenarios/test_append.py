"""Files that grow and shrink, by Hadoop's own client: append, flush, truncate, tail."""

from __future__ import annotations

import random
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.scenarios.conftest import MakeCluster, MakeJvm
from tests.scenarios.hadoop import FsShell
from tests.scenarios.jvm import JavaError, Jvm, Stream

from cairnfs.testing.cluster import Cluster

MIB = 1 << 20
HEAL_LIMIT_S = 60.0
BEST_EFFORT = {
    "dfs.client.block.write.replace-datanode-on-failure.best-effort": "true",
}

pytestmark = pytest.mark.java


def is_whole(cluster: Cluster, path: str, count: int) -> bool:
    """Whether each block has so many replicas on disk, all of them alike, and no others."""
    for block in cluster.located_blocks(path):
        files = [cluster.replica_files(node).get(block.b.blockId) for node in cluster.datanodes]
        found = [file.read_bytes() for file in files if file is not None]
        if len(found) != count or len(block.locs) != count or len(set(found)) != 1:
            return False
        if len(found[0]) != block.b.numBytes:
            return False
    return True


def write_and_close(out: Stream, data: bytes) -> None:
    """Either may be told that it failed: it depends on how far the client's own thread has come."""
    out.write(data)
    out.close()


def has(shell: FsShell, data: bytes) -> bool:
    return shell.run("-cat", "/file") == data


def test_shell_appends_cuts_and_shows_the_end(
    cluster: Cluster, shell: FsShell, content: Callable[[int], bytes]
) -> None:
    data = content(3 * MIB + 100)
    shell.run("-Ddfs.blocksize=1048576", "-put", "-", "/file", input=data[:1000])
    shell.run("-appendToFile", "-", "/file", input=data[1000:])
    assert has(shell, data)
    assert shell.run("-tail", "/file") == data[-1024:]
    assert b"length: 2000000" in shell.run("-truncate", "-w", "2000000", "/file")
    assert has(shell, data[:2_000_000])
    shell.run("-truncate", str(MIB), "/file")
    shell.run("-appendToFile", "-", "/file", input=b"the end")
    assert has(shell, data[:MIB] + b"the end")
    cluster.wait_until(lambda: is_whole(cluster, "/file", 3), "three replicas", HEAL_LIMIT_S)


def test_tail_follows_a_file_that_grows(cluster: Cluster, shell: FsShell, java: Jvm) -> None:
    """`-tail -f` asks for the file's length, which plain hflush does not tell; nor in HDFS."""
    out = java.create("/log")
    out.write(b"first\n")
    out.hsync(update_length=True)
    with shell.begin("-tail", "-f", "-s", "200", "/log", stdout=subprocess.PIPE) as tail:
        assert tail.stdout is not None
        assert tail.stdout.readline() == b"first\n"
        for number in range(3):
            out.write(b"line %d\n" % number)
            out.hsync(update_length=True)
            assert tail.stdout.readline() == b"line %d\n" % number
    out.close()


def test_many_appends_of_every_length(cluster: Cluster, java: Jvm) -> None:
    """Chunks of checksums are half filled, filled up, begun anew; so are blocks."""
    chooser = random.Random(1)
    expected = b""
    java.create("/file").close()
    for number in range(40):
        piece = chooser.randbytes(chooser.choice((1, 3, 511, 512, 513, 70_000, MIB // 3, MIB)))
        out = java.append("/file", to_new_block=number % 7 == 3)
        cut = chooser.randrange(len(piece) + 1)
        out.write(piece[:cut])
        out.hflush()
        expected += piece[:cut]
        assert java.has("/file", expected)
        out.write(piece[cut:])
        out.close()
        expected += piece[cut:]
        assert java.length("/file") == len(expected)
    assert java.has("/file", expected)
    cluster.wait_until(lambda: is_whole(cluster, "/file", 3), "three replicas", HEAL_LIMIT_S)


def test_flush_is_seen_and_hsync_tells_the_length(java: Jvm) -> None:
    out = java.create("/file")
    out.write(b"x" * 1000)
    out.hflush()
    assert java.has("/file", b"x" * 1000)
    out.write(b"y" * 500)
    out.hsync(update_length=True)
    assert java.length("/file") == 1500
    assert java.has("/file", b"x" * 1000 + b"y" * 500)
    out.write(b"z" * (2 * MIB))
    out.hsync(update_length=True)
    assert java.length("/file") == 1500 + 2 * MIB
    out.close()


def test_append_on_a_single_datanode(make_cluster: MakeCluster, make_java: MakeJvm) -> None:
    java = make_java(make_cluster(datanodes=1))
    out = java.create("/file", replication=3)
    out.write(b"one ")
    out.close()
    for number in range(5):
        out = java.append("/file")
        out.write(b"more %d " % number)
        out.hflush()
        out.close()
    assert java.has("/file", b"one more 0 more 1 more 2 more 3 more 4 ")


@pytest.mark.parametrize("is_noticed", [True, False])
def test_append_with_one_of_three_datanodes_dead(
    cluster: Cluster, make_java: MakeJvm, is_noticed: bool
) -> None:
    """Where the NameNode has noticed, Hadoop's client succeeds as it comes; else best effort."""
    java = make_java(cluster, None if is_noticed else BEST_EFFORT)
    out = java.create("/file")
    out.write(b"before ")
    out.close()
    victim = cluster.datanodes[0]
    victim.kill()
    if is_noticed:
        cluster.wait_for_datanodes(2)
    out = java.append("/file")
    out.write(b"after")
    out.hflush()
    assert java.has("/file", b"before after")
    out.close()
    assert java.has("/file", b"before after")

    # What the dead one has is older: nobody is given it, and it is replaced.
    victim.start()
    cluster.wait_for_datanodes(3)
    cluster.wait_until(lambda: is_whole(cluster, "/file", 3), "three replicas", HEAL_LIMIT_S)
    assert java.has("/file", b"before after")


def test_truncate_then_append_at_once(java: Jvm) -> None:
    """As Flink does when it goes back to a checkpoint."""
    chooser = random.Random(2)
    expected = b""
    java.create("/file").close()
    for _ in range(6):
        out = java.append("/file")
        piece = chooser.randbytes(chooser.randrange(1, 3 * MIB))
        out.write(piece)
        out.close()
        expected += piece
        length = chooser.randrange(len(expected))
        began_s = time.monotonic()
        if not java.truncate("/file", length):
            while not java.is_closed("/file"):
                assert time.monotonic() - began_s < 20
                time.sleep(0.1)
        expected = expected[:length]
        assert java.has("/file", expected)
    out = java.append("/file")
    out.write(b"end")
    out.close()
    assert java.has("/file", expected + b"end")


def test_truncate_refuses_what_hdfs_refuses(java: Jvm) -> None:
    out = java.create("/file")
    out.write(b"x" * 10)
    out.hflush()
    with pytest.raises(JavaError, match="AlreadyBeingCreatedException"):
        java.truncate("/file", 5)
    out.close()
    with pytest.raises(JavaError, match="Cannot truncate to a larger file size"):
        java.truncate("/file", 11)
    assert java.truncate("/file", 10)


def test_truncate_with_a_datanode_dead(cluster: Cluster, java: Jvm) -> None:
    out = java.create("/file")
    out.write(b"0123456789")
    out.close()
    cluster.datanodes[1].kill()
    began_s = time.monotonic()
    if not java.truncate("/file", 4):
        cluster.wait_until(lambda: java.is_closed("/file"), "it is cut", HEAL_LIMIT_S)
    assert time.monotonic() - began_s < 30
    assert java.has("/file", b"0123")
    cluster.datanodes[1].start()
    cluster.wait_until(lambda: is_whole(cluster, "/file", 3), "three replicas", HEAL_LIMIT_S)


def test_rename_and_delete_under_a_writer(java: Jvm) -> None:
    out = java.create("/file")
    out.write(b"before ")
    out.hflush()
    assert java.rename("/file", "/other")
    out.write(b"after")
    out.write(b"x" * (2 * MIB))  # needs further blocks
    out.close()
    assert java.length("/other") == 12 + 2 * MIB

    out = java.create("/file")
    out.write(b"before ")
    out.hflush()
    assert java.delete("/file")
    with pytest.raises(JavaError, match=r"LeaseExpired|FileNotFound|No lease|does not exist"):
        write_and_close(out, b"x" * (2 * MIB))


def test_a_new_block_flag_begins_a_block(cluster: Cluster, java: Jvm, tmp_path: Path) -> None:
    out = java.create("/file")
    out.write(b"one")
    out.close()
    out = java.append("/file", to_new_block=True)
    out.write(b"two")
    out.close()
    assert [block.b.numBytes for block in cluster.located_blocks("/file")] == [3, 3]
    assert java.has("/file", b"onetwo")
