"""Blocks get their replicas back, and lose those that are too many, whatever becomes of nodes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.namenode.datanodes import (
    FakeCluster,
    FakeDataNode,
    fake_cluster,
    numbers_of,
    others,
)

from cairnfs.blocks.records import (
    AdminState,
    Block,
    CheckQueue,
)
from cairnfs.blocks.reports import mark_corrupt
from cairnfs.errors import IOException
from cairnfs.namesystem.pipelines import update_block_for_pipeline, update_pipeline
from cairnfs.namesystem.redundancy import drop_replicas, inspect_blocks, settle_checks
from cairnfs.store.schema import Table
from cairnfs.wire.proto import datanode_pb2 as pb


def test_a_file_that_is_written_well_leaves_nothing_to_do(cluster: FakeCluster) -> None:
    cluster.add("a", "b", "c", "d")
    block = cluster.write("/f")
    assert len(cluster.holders(block)) == 3
    assert not cluster.checks()
    cluster.live(3)
    cluster.check_calm()


def test_a_death_is_made_good_and_the_return_of_the_dead_too(cluster: FakeCluster) -> None:
    cluster.add("a", "b", "c", "d")
    block = cluster.write("/f")
    dead = cluster.nodes[cluster.holders(block)[0]]
    cluster.bury(dead)
    assert cluster.checks() == {CheckQueue.LOW_REDUNDANCY: 1}
    cluster.live(3)
    assert cluster.holders(block) == sorted(node.name for node in others(cluster, dead.name))
    assert cluster.located("/f") == cluster.holders(block)
    cluster.check_calm()
    assert not cluster.rows(Table.REPLICAS, numbers_of(cluster, dead)[0])

    dead.come()
    assert len(cluster.holders(block)) == 4
    cluster.live(3)
    assert len(cluster.holders(block)) == 3
    assert cluster.located("/f") == cluster.holders(block)
    cluster.check_calm()


def test_a_node_that_comes_back_before_anything_was_copied(sqlite_cluster: FakeCluster) -> None:
    cluster = sqlite_cluster
    cluster.add("a", "b", "c")
    block = cluster.write("/f")
    dead = cluster.nodes["a"]
    cluster.bury(dead)
    cluster.live(2)
    assert cluster.checks() == {CheckQueue.LOW_REDUNDANCY: 1}  # nowhere to copy it to
    dead.come()
    cluster.live(1)
    assert len(cluster.holders(block)) == 3
    cluster.check_calm()


def test_a_deletion_is_not_ordered_if_what_was_to_be_kept_is_gone(cluster: FakeCluster) -> None:
    a, b = cluster.add("a", "b")
    block = cluster.write("/f", replication=2)
    known = cluster.block(block.id)
    [on_a], [on_b] = numbers_of(cluster, a), numbers_of(cluster, b)
    assert cluster.call(drop_replicas, known, [on_a], [on_b])
    # Another NameNode had the duty for a moment, and planned it the other way round.
    assert not cluster.call(drop_replicas, known, [on_b], [on_a])
    assert not cluster.call(drop_replicas, known, [on_b], [])
    cluster.call(mark_corrupt, [on_b], block.id, block.generation_stamp)
    assert not cluster.call(drop_replicas, known, [on_a], [on_b])


def test_a_block_is_not_taken_for_well_if_something_happens_meanwhile(
    cluster: FakeCluster,
) -> None:
    cluster.add("a", "b", "c")
    block = cluster.write("/f", replication=2)
    cluster.client.set_replication("/f", 3)
    cluster.live(2)
    cluster.client.set_replication("/f", 2)
    cluster.client.set_replication("/f", 3)
    [facts] = cluster.call(inspect_blocks, [block.id])
    assert len(facts.replicas) == 3
    cluster.nodes["a"].delete(block.id)  # the row of CHECKS is there already
    settled = [(block.id, facts.news, None)]
    assert cluster.call(settle_checks, settled) == [False]
    assert cluster.checks() == {CheckQueue.NEW: 1}
    cluster.live(2)
    assert len(cluster.holders(block)) == 3
    cluster.check_calm()


def test_replication_goes_up_and_down(cluster: FakeCluster) -> None:
    cluster.add("a", "b", "c", "d", "e")
    block = cluster.write("/f", replication=1)
    for replication in (4, 2, 5, 1):
        cluster.client.set_replication("/f", replication)
        cluster.live(4)
        assert len(cluster.holders(block)) == replication
        assert cluster.located("/f") == cluster.holders(block)
        cluster.check_calm()


def test_files_that_are_joined_get_the_replication_of_the_first(cluster: FakeCluster) -> None:
    cluster.add("a", "b", "c")
    cluster.write("/first", replication=3)
    block = cluster.write("/second", replication=1)
    cluster.client.concat("/first", ["/second"])
    cluster.live(3)
    assert len(cluster.holders(block)) == 3
    cluster.check_calm()


def test_a_deleted_file_is_deleted_everywhere(cluster: FakeCluster) -> None:
    nodes = cluster.add("a", "b", "c")
    block = cluster.write("/f")
    away = nodes[0]
    away.die()
    cluster.client.delete("/f")
    cluster.thread.wait(cluster.namenode.duties.reclaim_everything())
    cluster.live(2)
    assert cluster.holders(block) == []
    assert cluster.count(Table.INVALIDATIONS) == 1
    away.come()
    cluster.live(1)
    assert away.find(block.id) is None
    cluster.check_calm()


def test_what_is_to_be_deleted_is_not_told_with_every_heartbeat(
    sqlite_cluster: FakeCluster,
) -> None:
    cluster = sqlite_cluster
    [node] = cluster.add("a")
    cluster.write("/f", replication=1)
    cluster.client.delete("/f")
    cluster.thread.wait(cluster.namenode.duties.reclaim_everything())
    told = []
    for _ in range(50):  # it does not obey
        cluster.pass_time(3)
        told.append(len(node.heartbeat().cmds))
    assert told[0] == 1
    assert sum(told) == 3
    node.come()  # another process knows nothing of it
    assert node.find(1073741825) is None
    cluster.check_calm()


def test_a_replica_that_moves_between_volumes_counts_once(sqlite_cluster: FakeCluster) -> None:
    cluster = sqlite_cluster
    a, b = cluster.add("a", "b", storages=2)
    block = cluster.write("/f", replication=2)
    source = next(id for id, blocks in a.disk.items() if block.id in blocks)
    target = next(id for id in a.disk if id != source)
    a.disk[target][block.id] = a.disk[source].pop(block.id)
    a.send_change(target, pb.ReceivedDeletedBlockInfoProto.RECEIVED, block.id, 1001, 10)
    cluster.live(2)
    assert a.told == b.told == []
    # It is one too many, whichever volume it is on, and counts on none of them then.
    cluster.client.set_replication("/f", 1)
    cluster.live(4)
    assert len(cluster.holders(block)) == 1
    assert cluster.located("/f") == cluster.holders(block)


def test_another_identity_at_the_same_address_ends_the_one_before(
    sqlite_cluster: FakeCluster,
) -> None:
    cluster = sqlite_cluster
    a, *_ = cluster.add("a", "b", "c", "d")
    block = cluster.write("/f", replication=4)
    cluster.client.set_replication("/f", 3)
    a.die()
    [new] = cluster.add("e")
    new.port = a.port  # its disks were replaced
    new.come()
    cluster.live(3)
    assert cluster.holders(block) == ["b", "c", "d"]
    assert cluster.located("/f") == ["b", "c", "d"]
    cluster.check_calm()


def test_blocks_of_one_replica_come_first(sqlite_cluster: FakeCluster) -> None:
    """With little time, those that are in the greatest danger are copied."""
    cluster = sqlite_cluster
    cluster.add("a")
    urgent = [cluster.write(f"/urgent{n}", replication=1) for n in range(3)]
    for n in range(3):
        cluster.client.set_replication(f"/urgent{n}", 2)
    cluster.live(2)
    assert cluster.checks() == {CheckQueue.HIGHEST: 3}
    cluster.add("b")
    cluster.live(4)
    assert all(len(cluster.holders(block)) == 2 for block in urgent)
    cluster.check_calm()


def test_more_replicas_than_nodes_are_waited_for_in_peace(sqlite_cluster: FakeCluster) -> None:
    cluster = sqlite_cluster
    cluster.add("a")
    blocks = [cluster.write(f"/f{n}") for n in range(20)]
    cluster.live(5)
    assert cluster.checks() == {CheckQueue.HIGHEST: 20}
    assert cluster.namenode.redundancy.lengths[CheckQueue.HIGHEST] == 20
    before = cluster.namenode.statistics.committed
    cluster.live(10)
    assert cluster.namenode.statistics.committed == before
    cluster.add("b", "c")
    cluster.live(15)
    assert all(len(cluster.holders(block)) == 3 for block in blocks)
    cluster.check_calm()


def test_a_copy_that_never_arrives_is_ordered_again(sqlite_cluster: FakeCluster) -> None:
    cluster = sqlite_cluster
    cluster.add("a", "b", "c")
    block = cluster.write("/f", replication=2)
    cluster.client.set_replication("/f", 3)
    cluster.step()
    sources = [node for node in cluster.nodes.values() if node.heartbeat().cmds]  # in vain
    assert len(sources) == 1
    cluster.live(20)
    assert len(cluster.holders(block)) == 2
    cluster.live(100)
    assert len(cluster.holders(block)) == 3
    cluster.check_calm()


class TestDecommissioning:
    @pytest.fixture
    def hosts(self, tmp_path: Path) -> Path:
        return tmp_path / "excluded"

    @pytest.fixture
    def leaving(self, hosts: Path, tmp_path: Path) -> Any:
        hosts.write_text("")
        with fake_cluster(tmp_path, excluded_hosts_file=str(hosts)) as cluster:
            yield cluster
            cluster.check_invariants()

    def exclude(self, cluster: FakeCluster, hosts: Path, *nodes: FakeDataNode) -> None:
        hosts.write_text("".join(f"a-host:{node.port}  # leaves\n" for node in nodes))
        cluster.namenode.redundancy.read_excluded_hosts()

    def state(self, cluster: FakeCluster, node: FakeDataNode) -> AdminState:
        live = cluster.namenode.datanodes.get(node.name)
        assert live is not None
        return live.record.admin_state

    def test_until_all_is_elsewhere(self, leaving: FakeCluster, hosts: Path) -> None:
        cluster = leaving
        cluster.add("a", "b", "c")
        blocks = [cluster.write(f"/f{n}") for n in range(3)]
        node = cluster.nodes["a"]
        self.exclude(cluster, hosts, node)
        cluster.live(3)
        assert self.state(cluster, node) is AdminState.DECOMMISSION_INPROGRESS
        cluster.add("d")
        cluster.live(6)
        assert self.state(cluster, node) is AdminState.DECOMMISSIONED
        for block in blocks:
            assert set(cluster.holders(block)) >= {"b", "c", "d"}
        cluster.bury(node)
        cluster.live(2)
        cluster.check_calm()

        self.exclude(cluster, hosts)
        node.come()
        cluster.live(4)
        assert self.state(cluster, node) is AdminState.NORMAL
        for block in blocks:
            assert len(cluster.holders(block)) == 3
        cluster.check_calm()

    def test_one_that_dies_on_the_way(self, leaving: FakeCluster, hosts: Path) -> None:
        cluster = leaving
        cluster.add("a", "b", "c")
        cluster.write("/f")
        node = cluster.nodes["a"]
        self.exclude(cluster, hosts, node)
        cluster.live(2)
        cluster.bury(node)
        cluster.live(3)
        assert self.state(cluster, node) is AdminState.DECOMMISSION_INPROGRESS
        cluster.add("d")
        cluster.live(5)
        assert self.state(cluster, node) is AdminState.DECOMMISSIONED

    def test_a_list_that_cannot_be_read(self, leaving: FakeCluster, hosts: Path) -> None:
        hosts.unlink()
        with pytest.raises(IOException, match="cannot be read"):
            leaving.namenode.redundancy.read_excluded_hosts()


def test_a_replica_of_an_older_generation_is_kept_as_long_as_there_is_no_other(
    cluster: FakeCluster,
) -> None:
    """BlockManager marks it as corrupt, and deletes it only if there is a good one."""
    a, b = cluster.add("a", "b")
    cluster.client.create("/f", replication=1)
    block = cluster.add_block("/f")
    stamp = block.generation_stamp
    target, other = (a, b) if numbers_of(cluster, a) == list(block.targets) else (b, a)
    newer = restamp(cluster, block)
    target.receive(block.id, newer.generation_stamp, 10)
    assert cluster.complete("/f", newer, 10)
    other.receive(block.id, stamp, 10)
    target.die()
    cluster.bury(target)
    cluster.live(3)
    assert other.told == []
    target.come()
    cluster.live(3)
    assert other.told == [block.id]
    assert target.told == []
    cluster.check_calm()


def restamp(cluster: FakeCluster, block: Block) -> Block:
    who = (cluster.client.caller, cluster.client.client_name)
    newer: Block = cluster.call(update_block_for_pipeline, *who, block).block
    cluster.call(update_pipeline, *who, block, newer, list(block.targets))
    return newer


def test_one_too_many_is_found_by_a_namenode_that_has_not_heard_of_it(tmp_path: Path) -> None:
    """It was reported, and the NameNode died; the next one hears of its DataNode last."""
    with fake_cluster(tmp_path) as cluster:
        cluster.add("a", "b")
        block = cluster.write("/f", replication=2, length=10)
        (late,) = cluster.add("c")
        late.receive(block.id, block.generation_stamp, 10)
        disks = {name: node.disk for name, node in cluster.nodes.items()}
    with fake_cluster(tmp_path, format=False) as cluster:
        for name in ("a", "b", "c"):
            node = cluster.nodes[name] = FakeDataNode(cluster, name)
            node.disk = disks[name]
            node.come()
            cluster.live(3)
        cluster.live(5)
        assert len(cluster.holders(block)) == 2
        cluster.check_calm()
