"""Recovery of blocks: DataNodes agree on what a writer left.

The DataNodes exist only as what they say (`FakeDataNode.recover`).
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.namenode.datanodes import BLOCK_BYTES, FakeCluster, FakeDataNode, fake_cluster
from tests.namenode.open_files import is_closed, length_of, open_file, take_commands

from cairnfs.errors import LeaseExpiredException, RecoveryInProgressException
from cairnfs.namenode.block_recoveries import ATTEMPT_LIMIT_S
from cairnfs.namesystem import pipelines
from cairnfs.namesystem.inodes import InodeId
from cairnfs.namesystem.paths import FsPath
from cairnfs.store.schema import Table


def flush(cluster: FakeCluster, length: int = -1) -> None:
    caller, holder = cluster.client.caller, cluster.client.client_name
    cluster.call(pipelines.fsync, caller, FsPath.parse("/f"), holder, InodeId(0), length)


def test_what_all_replicas_have_is_kept(cluster: FakeCluster, nodes: list[FakeDataNode]) -> None:
    block = open_file(cluster)
    for node, length in zip(nodes, (10, 7, 12), strict=True):
        node.write(block, length)
    assert not cluster.client.recover_lease("/f")
    with pytest.raises(RecoveryInProgressException, match="another recovery is in progress by HDF"):
        cluster.client.append("/f")
    with pytest.raises(LeaseExpiredException):
        cluster.add_block("/f", block)
    cluster.live(2)
    assert is_closed(cluster)
    assert length_of(cluster) == 7
    recovered = cluster.block(block.id)
    assert recovered is not None
    assert recovered.generation_stamp > block.generation_stamp
    assert cluster.holders(recovered) == cluster.located("/f") == ["a", "b", "c"]
    assert cluster.client.recover_lease("/f")
    cluster.live(3)
    cluster.check_calm()


def test_a_block_that_was_never_written_is_removed(
    cluster: FakeCluster, nodes: list[FakeDataNode]
) -> None:
    open_file(cluster)
    cluster.client.recover_lease("/f")
    cluster.live(2)
    assert is_closed(cluster)
    assert cluster.client.get_block_locations("/f").blocks == []
    assert cluster.client.get_content_summary("/").space_bytes == 0


def test_a_block_is_not_removed_while_someone_may_have_it(
    cluster: FakeCluster, nodes: list[FakeDataNode]
) -> None:
    """Two have lost what they had, the third does not answer: it may have what was flushed."""
    block = open_file(cluster)
    nodes[2].write(block, 5)
    nodes[2].die()
    cluster.live(11)  # it is avoided by now, but not given up
    cluster.client.recover_lease("/f")
    cluster.live(3)
    assert not is_closed(cluster)
    assert any("may have data" in error for node in nodes for error in node.refused)
    nodes[2].come()
    cluster.live(10)
    assert is_closed(cluster)
    assert length_of(cluster) == 5


def test_a_block_is_removed_when_whoever_did_not_answer_is_given_up(
    cluster: FakeCluster, nodes: list[FakeDataNode]
) -> None:
    open_file(cluster)
    cluster.client.recover_lease("/f")
    cluster.bury(nodes[2])
    cluster.live(30)
    assert is_closed(cluster)
    assert length_of(cluster) == 0


@pytest.mark.parametrize("length", [-1, 5])
def test_a_block_with_flushed_data_is_never_removed(
    cluster: FakeCluster, nodes: list[FakeDataNode], length: int
) -> None:
    block = open_file(cluster)
    flush(cluster, length)
    cluster.client.recover_lease("/f")
    cluster.live(10)
    assert not is_closed(cluster)
    nodes[0].write(block, 5)  # it was only a disk that was slow to come
    cluster.live(40)
    assert is_closed(cluster)
    assert length_of(cluster) == 5


def test_nothing_that_is_known_to_be_acknowledged_is_cut(
    cluster: FakeCluster, nodes: list[FakeDataNode]
) -> None:
    block = open_file(cluster)
    flush(cluster, 10)
    nodes[0].write(block, 4)
    cluster.client.recover_lease("/f")
    cluster.live(3)
    assert not is_closed(cluster)
    assert any("at least 10" in error for node in nodes for error in node.refused)
    assert length_of(cluster) == 10


def test_another_primary_is_chosen_when_the_first_dies(
    cluster: FakeCluster, nodes: list[FakeDataNode]
) -> None:
    block = open_file(cluster)
    for node in nodes:
        node.write(block, 9)
    cluster.client.recover_lease("/f")
    [(first, command)] = take_commands(cluster, *nodes)
    first.die()
    cluster.pass_time(1)
    first.come()  # it knows nothing of what it was told before
    [(second, again)] = take_commands(cluster, *nodes)
    assert second is not first
    assert again.blocks[0].newGenStamp > command.blocks[0].newGenStamp
    second.recover(again.blocks[0])
    assert is_closed(cluster)
    assert length_of(cluster) == 9


def test_a_primary_that_does_not_answer_in_time_is_overtaken(
    cluster: FakeCluster, nodes: list[FakeDataNode]
) -> None:
    block = open_file(cluster)
    for node in nodes:
        node.write(block, 9)
    cluster.client.recover_lease("/f")
    [(first, command)] = take_commands(cluster, *nodes)
    assert take_commands(cluster, *nodes) == []
    cluster.pass_time(ATTEMPT_LIMIT_S)
    [(second, again)] = take_commands(cluster, *nodes)
    assert second is not first
    first.recover(command.blocks[0])  # late
    assert "does not match current recovery id" in first.refused[0]
    assert not is_closed(cluster)
    second.recover(again.blocks[0])
    second.recover(again.blocks[0])  # the answer was lost, so it says it again
    assert second.refused == []
    assert is_closed(cluster)


def test_a_datanode_that_hangs_is_left_out(cluster: FakeCluster, nodes: list[FakeDataNode]) -> None:
    block = open_file(cluster)
    for node in nodes:
        node.write(block, 9)
    nodes[1].is_up = False
    cluster.live(11)
    cluster.client.recover_lease("/f")
    cluster.live(2)
    assert is_closed(cluster)
    assert cluster.located("/f") == ["a", "c"]
    nodes[1].come()
    cluster.live(3)
    assert nodes[1].told == [block.id]  # what it has is outdated


def test_a_committed_block_waits_for_its_report(
    cluster: FakeCluster, nodes: list[FakeDataNode]
) -> None:
    block = open_file(cluster)
    assert not cluster.complete("/f", block, 8)
    assert not cluster.client.recover_lease("/f")
    cluster.live(3)
    assert not is_closed(cluster)
    nodes[0].receive(block.id, block.generation_stamp, 8)
    cluster.thread.wait(cluster.namenode.lease_expiry.look_at_page())
    assert is_closed(cluster)
    assert length_of(cluster) == 8


def test_a_block_before_the_last_that_was_committed_is_waited_for(
    cluster: FakeCluster, nodes: list[FakeDataNode]
) -> None:
    first = open_file(cluster)
    written = first.with_length(BLOCK_BYTES)
    second = cluster.add_block("/f", written)
    nodes[0].write(second, 3)
    assert not cluster.client.recover_lease("/f")
    cluster.live(2)
    assert not is_closed(cluster)
    nodes[0].receive(first.id, first.generation_stamp, BLOCK_BYTES)
    cluster.thread.wait(cluster.namenode.lease_expiry.look_at_page())
    assert is_closed(cluster)
    assert length_of(cluster) == BLOCK_BYTES + 3


def test_a_file_that_is_deleted_while_its_block_is_recovered(
    cluster: FakeCluster, nodes: list[FakeDataNode]
) -> None:
    block = open_file(cluster)
    for node in nodes:
        node.write(block, 9)
    cluster.client.recover_lease("/f")
    [(primary, command)] = take_commands(cluster, *nodes)
    cluster.client.delete("/f")
    primary.recover(command.blocks[0])
    assert len(primary.refused) == 1
    cluster.thread.wait(cluster.namenode.duties.reclaim_everything())
    cluster.live(20)
    assert not cluster.rows(Table.RECOVERIES, 0)
    assert all(node.find(block.id) is None for node in nodes)


def test_a_namenode_that_comes_back_goes_on_with_recoveries(tmp_path: Path) -> None:
    with fake_cluster(tmp_path) as before:
        nodes = before.add("a", "b", "c")
        block = open_file(before)
        for node in nodes:
            node.write(block, 9)
        before.client.recover_lease("/f")
        assert take_commands(before, *nodes)  # it dies with the NameNode
        disks = {node.name: node.disk for node in nodes}
    with fake_cluster(tmp_path, format=False) as cluster:
        for node in cluster.add("a", "b", "c"):
            node.disk = disks[node.name]
        cluster.live(3)
        assert is_closed(cluster)
        assert length_of(cluster) == 9


def test_a_writer_goes_on_with_a_namenode_that_comes_back(tmp_path: Path) -> None:
    with fake_cluster(tmp_path) as before:
        before.add("a", "b", "c")
        block = open_file(before)
        name = before.client.client_name
    with fake_cluster(tmp_path, format=False) as cluster:
        cluster.client.client_name = name
        nodes = cluster.add("a", "b", "c")
        for node in nodes:
            node.receive(block.id, block.generation_stamp, BLOCK_BYTES)
        second = cluster.add_block("/f", block.with_length(BLOCK_BYTES))
        nodes[0].receive(second.id, second.generation_stamp, 5)
        assert cluster.complete("/f", second, 5)
        assert length_of(cluster) == BLOCK_BYTES + 5
