"""The five cases of a reader in HDFS's append design; what cannot be read is said, not skipped."""

from __future__ import annotations

import pytest
from tests.scenarios.jvm import JavaError, Jvm

from cairnfs.testing.cluster import Cluster

MIB = 1 << 20

pytestmark = pytest.mark.java


def test_case_1_nobody_writes(java: Jvm) -> None:
    out = java.create("/file")
    out.write(b"x" * (2 * MIB) + b"end")
    out.close()
    assert java.has("/file", b"x" * (2 * MIB) + b"end")


def test_case_2_a_reader_comes_while_a_file_is_written(cluster: Cluster, java: Jvm) -> None:
    """It is given all that was flushed before, of finished blocks and of the last one."""
    out = java.create("/file")
    out.write(b"x" * MIB + b"flushed")
    out.hflush()
    out.write(b" and more")
    reader = java.open("/file")
    assert reader.visible_length() >= MIB + 7
    assert reader.read_all()[MIB:].startswith(b"flushed")
    out.hflush()
    assert java.read("/file")[MIB:] == b"flushed and more"
    located = cluster.located_blocks("/file")
    assert len(located[-1].locs) == 3
    out.close()


def test_case_3_a_file_is_appended_to_under_a_reader(java: Jvm) -> None:
    """What it knew it can still read, from replicas that are newer than it knows."""
    out = java.create("/file")
    out.write(b"0123456789")
    out.close()
    reader = java.open("/file")
    assert reader.read_at(0, 4) == b"0123"
    out = java.append("/file")
    out.write(b"more")
    out.hflush()
    assert reader.read_at(4, 6) == b"456789"
    assert java.read("/file") == b"0123456789more"
    out.close()
    assert reader.read_at(0, 10) == b"0123456789"


def test_case_4_a_file_is_cut_under_a_reader(java: Jvm) -> None:
    """Behind the new end there is an error, never something else's data."""
    out = java.create("/file")
    out.write(b"0123456789")
    out.close()
    reader = java.open("/file")
    assert reader.read_at(0, 4) == b"0123"
    assert java.truncate("/file", 5)
    assert reader.read_at(0, 5) == b"01234"
    with pytest.raises(JavaError):
        reader.read_at(0, 10)


def test_case_5_a_reader_comes_after_a_truncate(java: Jvm) -> None:
    out = java.create("/file")
    out.write(b"0123456789")
    out.close()
    assert java.truncate("/file", 5)
    assert java.length("/file") == 5
    assert java.read("/file") == b"01234"


def test_case_5_also_before_the_replicas_are_cut(cluster: Cluster, java: Jvm) -> None:
    """The NameNode has said it: the length is the new one for whoever comes."""
    out = java.create("/file")
    out.write(b"0123456789")
    out.close()
    for node in cluster.datanodes:
        node.kill()
    assert not java.truncate("/file", 5)
    assert java.length("/file") == 5
    for node in cluster.datanodes:
        node.start()
    cluster.wait_until(lambda: java.is_closed("/file"), "it is cut")
    assert java.read("/file") == b"01234"


def test_what_was_flushed_and_cannot_be_read_now_is_an_error(cluster: Cluster, java: Jvm) -> None:
    out = java.create("/file")
    out.write(b"x" * MIB + b"flushed")
    out.hsync(update_length=True)
    for node in cluster.datanodes:
        node.kill()
    with pytest.raises(JavaError, match=r"BlockMissing|Cannot obtain block length|IOException"):
        java.read("/file")
    assert java.length("/file") == MIB + 7
