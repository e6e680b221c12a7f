"""Replicas that are known to be bad, or are to be deleted, on what goes away and comes back."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from tests.namenode.datanodes import (
    FakeCluster,
    FakeDataNode,
    drop,
    fake_cluster,
    numbers_of,
    others,
    report_bad,
    rot,
)

from cairnfs.blocks.invalidations import DELETIONS_KEPT_MS
from cairnfs.blocks.records import (
    CheckQueue,
    Replica,
    ReplicaStatus,
    StorageNumber,
)
from cairnfs.blocks.relocation import Move
from cairnfs.blocks.replication import ReplicaState
from cairnfs.namenode.moves import Mover, Outcome
from cairnfs.namesystem.redundancy import inspect_blocks
from cairnfs.store.base import Found, Reading
from cairnfs.store.schema import Table
from cairnfs.wire.proto import datanode_pb2 as pb


def test_the_last_of_a_block_that_is_back_with_an_old_order_to_delete(
    cluster: FakeCluster,
) -> None:
    """It was one too many when that was ordered; meanwhile the other one is gone."""
    a, b = cluster.add("a", "b")
    block = cluster.write("/f", replication=2)
    a.die()  # before it is told
    cluster.client.set_replication("/f", 1)
    drop(cluster, block, a, keeping=b)
    assert cluster.count(Table.INVALIDATIONS) == 1
    cluster.bury(b)
    del b.disk["DS-b-0"][block.id]
    cluster.pass_time(1)
    a.come()
    cluster.live(2)
    assert a.told == []
    assert cluster.located("/f") == ["a"]
    b.come()
    cluster.live(2)
    assert cluster.holders(block) == ["a"]
    cluster.check_calm()


def test_a_replica_that_is_corrupt_is_replaced(cluster: FakeCluster) -> None:
    cluster.add("a", "b", "c", "d")
    block = cluster.write("/f")
    bad = cluster.nodes[cluster.holders(block)[0]]
    rot(bad, block)
    cluster.live(4)
    assert bad.told == [block.id]
    assert cluster.holders(block) == sorted(node.name for node in others(cluster, bad.name))
    cluster.check_calm()


def test_a_replica_that_is_corrupt_is_not_good_after_the_death_of_its_node(
    cluster: FakeCluster,
) -> None:
    """It comes back with what it had, and reports it: what is wrong with it, it does not know."""
    cluster.add("a", "b", "c", "d")
    block = cluster.write("/f", replication=2)
    bad = cluster.nodes[cluster.holders(block)[0]]
    rot(bad, block)
    cluster.bury(bad)
    cluster.live(3)
    good = cluster.holders(block)
    assert len(good) == 2
    assert not cluster.checks()

    bad.come()
    assert cluster.located("/f") == good
    cluster.live(3)
    assert bad.told == [block.id]
    assert bad.find(block.id) is None
    assert cluster.holders(block) == good
    cluster.check_calm()


def test_a_corrupt_replica_of_the_dead_may_be_needed_after_all(
    sqlite_cluster: FakeCluster,
) -> None:
    cluster = sqlite_cluster
    cluster.add("a", "b", "c")
    block = cluster.write("/f", replication=2)
    bad = cluster.nodes[cluster.holders(block)[0]]
    rot(bad, block)
    cluster.bury(bad)
    cluster.live(3)
    cluster.bury(*others(cluster, bad.name))
    bad.come()
    cluster.live(3)
    assert bad.told == []
    assert bad.find(block.id) is not None
    assert cluster.checks() == {CheckQueue.CORRUPT: 1}


def test_a_corrupt_replica_of_the_dead_does_not_keep_others_from_being_replaced(
    sqlite_cluster: FakeCluster,
) -> None:
    """As many nodes are left as there should be replicas."""
    cluster = sqlite_cluster
    cluster.add("a", "b", "c")
    block = cluster.write("/f", replication=2)
    dead, bad = (cluster.nodes[name] for name in cluster.holders(block))
    rot(dead, block)
    cluster.bury(dead)
    cluster.live(3)
    rot(bad, block)
    cluster.live(8)
    assert cluster.holders(block) == sorted(node.name for node in others(cluster, dead.name))
    cluster.check_calm()


def test_a_corrupt_replica_of_the_dead_does_not_outlive_its_block(
    sqlite_cluster: FakeCluster,
) -> None:
    """Nor does it keep a balancer from it meanwhile; what is left is the order to delete it."""
    cluster = sqlite_cluster
    cluster.add("a", "b", "c")
    block = cluster.write("/f", replication=2)
    dead = cluster.nodes[cluster.holders(block)[0]]
    rot(dead, block)
    cluster.bury(dead)
    cluster.live(3)
    cluster.check_calm()
    [number] = numbers_of(cluster, dead)
    [facts] = cluster.call(inspect_blocks, [block.id])
    view = cluster.namenode.redundancy.view_of(facts)
    assert [replica.state for replica in view.replicas] == [ReplicaState.LIVE] * 2
    assert not view.deleting
    cluster.client.delete("/f")
    cluster.thread.wait(cluster.namenode.duties.reclaim_everything())
    cluster.live(3)
    assert cluster.count(Table.REPLICAS) == 0
    assert cluster.count(Table.INVALIDATIONS) == len(cluster.rows(Table.INVALIDATIONS, number)) == 1
    dead.come()
    cluster.live(2)
    assert dead.find(block.id) is None
    cluster.check_calm()


def test_a_new_disk_in_the_place_of_one_with_a_corrupt_replica(
    sqlite_cluster: FakeCluster,
) -> None:
    cluster = sqlite_cluster
    cluster.add("a", "b", "c")
    block = cluster.write("/f", replication=2)
    node = cluster.nodes[cluster.holders(block)[0]]
    rot(node, block)
    cluster.bury(node)
    cluster.live(3)
    cluster.client.set_replication("/f", 3)
    node.take_out(f"DS-{node.name}-0")
    node.put_in("DS-new")
    node.come()
    cluster.live(5)
    assert cluster.holders(block) == ["a", "b", "c"]
    assert node.told == []
    cluster.check_calm()
    assert len(numbers_of(cluster, node)) == 2  # it is known what is bad on the old one
    cluster.client.delete("/f")
    cluster.thread.wait(cluster.namenode.duties.reclaim_everything())
    cluster.live(5, seconds=20)
    cluster.live(3, seconds=DELETIONS_KEPT_MS / 1000)
    assert len(numbers_of(cluster, node)) == 1
    cluster.check_calm()


def test_a_volume_that_is_replaced_before_its_corrupt_replica_is_deleted(
    sqlite_cluster: FakeCluster,
) -> None:
    """The order is not told any more: the new one may have a good replica by now."""
    cluster = sqlite_cluster
    cluster.add("a", "b", "c")
    block = cluster.write("/f")
    node = cluster.nodes["a"]
    rot(node, block)
    cluster.client.set_replication("/f", 2)
    cluster.pass_time(3)
    cluster.step()
    assert len(node.heartbeat().cmds) == 1  # it does not come to do it
    node.take_out("DS-a-0")
    node.put_in("DS-new")
    cluster.client.set_replication("/f", 3)
    cluster.live(10)
    assert cluster.holders(block) == ["b", "c"]  # it might do it yet
    cluster.live(30)
    assert cluster.holders(block) == ["a", "b", "c"]
    assert node.told == [block.id]
    cluster.check_calm()


def test_a_corrupt_replica_on_a_volume_that_is_mounted_again(cluster: FakeCluster) -> None:
    cluster.add("a", "b", "c")
    block = cluster.write("/f", replication=2)
    node = cluster.nodes[cluster.holders(block)[0]]
    rot(node, block)
    node.take_out(f"DS-{node.name}-0")
    cluster.live(5)
    good = cluster.holders(block)
    assert len(good) == 2
    cluster.check_calm()
    node.put_in(f"DS-{node.name}-0")
    node.report()
    assert cluster.located("/f") == good
    cluster.live(3)
    assert {each.name: each.told for each in cluster.nodes.values() if each.told} == {
        node.name: [block.id]
    }
    assert node.find(block.id) is None
    cluster.check_calm()


def test_a_volume_that_is_mounted_again_before_its_corrupt_replica_is_deleted(
    cluster: FakeCluster,
) -> None:
    cluster.add("a", "b", "c")
    block = cluster.write("/f", replication=2)
    node = cluster.nodes[cluster.holders(block)[0]]
    rot(node, block)
    while not node.told:
        cluster.pass_time(3)
        for other in others(cluster, node.name):
            other.beat()
        node.heartbeat()
        cluster.step()
    node.take_out(f"DS-{node.name}-0")
    cluster.live(30)
    cluster.check_calm()
    good = cluster.holders(block)
    node.put_in(f"DS-{node.name}-0")
    node.report()
    assert cluster.located("/f") == good
    cluster.live(3)
    assert cluster.holders(block) == good
    assert node.told == [block.id] * 2
    assert node.find(block.id) is None
    cluster.check_calm()


def test_a_volume_that_is_reported_before_it_is_heard_of(sqlite_cluster: FakeCluster) -> None:
    cluster = sqlite_cluster
    cluster.add("a", "b", "c")
    block = cluster.write("/f", replication=2)
    node = cluster.nodes[cluster.holders(block)[0]]
    rot(node, block)
    node.take_out(f"DS-{node.name}-0")
    cluster.live(5)
    node.put_in(f"DS-{node.name}-0")
    node.send_report(node.make_report(with_lease=False))
    cluster.pass_time(3)
    cluster.step()
    cluster.live(3)
    assert node.find(block.id) is None
    cluster.check_calm()


def test_what_is_to_be_deleted_may_turn_out_to_be_corrupt(sqlite_cluster: FakeCluster) -> None:
    cluster = sqlite_cluster
    cluster.add("a", "b", "c")
    block = cluster.write("/f", replication=3)
    node, kept, _ = cluster.nodes.values()
    cluster.client.set_replication("/f", 2)
    drop(cluster, block, node, keeping=kept)
    rot(node, block)
    cluster.bury(node)
    cluster.live(3)
    assert not cluster.checks()
    assert cluster.count(Table.INVALIDATIONS) == 1  # it stays, for when the dead comes back
    node.come()
    assert cluster.located("/f") == ["b", "c"]
    cluster.live(3)
    assert node.find(block.id) is None
    assert cluster.holders(block) == ["b", "c"]
    cluster.check_calm()


def test_one_that_was_cut_off_and_still_has_something_to_delete(cluster: FakeCluster) -> None:
    """It is given up for dead, comes back, and reports what it is about to delete."""
    a, b = cluster.add("a", "b")
    b.capacity = 1 << 30  # fuller: if there is one too many, it is here
    b.beat()
    block = cluster.write("/f", replication=2)
    cluster.client.set_replication("/f", 1)
    drop(cluster, block, a, keeping=b)
    a.queued += a.heartbeat().cmds
    assert a.is_about_to_delete(block.id)
    a.cut_off()
    cluster.bury()
    cluster.live(3)
    assert not cluster.checks()  # nobody waits for it
    a.come_back()
    assert cluster.located("/f") == ["b"]
    for _ in range(30):  # longer than what was told is not told again
        cluster.pass_time(3)
        a.queued += a.heartbeat().cmds
        b.beat()
        cluster.step()
    a.work()
    cluster.live(2)
    assert b.told == []
    assert cluster.holders(block) == ["b"]
    cluster.check_calm()


def test_a_volume_that_breaks_again_after_another_namenode_had_the_duty(
    sqlite_cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever had given it up before does so anew: something was written to it meanwhile."""
    cluster = sqlite_cluster
    a, *_ = cluster.add("a", "b", "c")
    a.take_out("DS-a-0")
    cluster.live(2)
    live = cluster.namenode.datanodes.get("a")
    assert live is not None
    assert live.given_up
    with monkeypatch.context() as patch:
        patch.setattr(cluster.namenode.membership, "holds", lambda duty: False)
        a.put_in("DS-a-0")
        a.beat()
        a.report()
        block = cluster.write("/f")
        a.take_out("DS-a-0")
        a.beat()
        assert not live.given_up
    assert not cluster.checks()
    cluster.add("d")
    cluster.live(4)
    assert cluster.holders(block) == ["b", "c", "d"]
    cluster.check_calm()


def test_what_a_reader_saw_was_not_on_a_volume_that_is_away(sqlite_cluster: FakeCluster) -> None:
    """Hadoop's client does not say which volume it means."""
    cluster = sqlite_cluster
    a, b, _ = cluster.add("a", "b", "c", storages=2)
    block = cluster.write("/f", replication=3)
    away = a.storage_of(block.id)
    [other] = a.disk.keys() - {away}
    a.take_out(away)
    a.beat()
    a.receive(block.id, block.generation_stamp, block.length_bytes)
    assert a.storage_of(block.id) == other
    report_bad(a, block)
    [facts] = cluster.call(inspect_blocks, [block.id])
    marked = [storage for storage, replica in facts.replicas if replica.is_marked]
    assert marked == [cluster.namenode.datanodes.number_of("a", other)]
    assert len(facts.replicas) == 4
    # Unless it says so.
    report_bad(a, block, storage_id=away)
    [facts] = cluster.call(inspect_blocks, [block.id])
    assert sum(replica.is_marked for _, replica in facts.replicas) == 2
    # One that it has seen on no volume, for all that is known, is away too.
    b.take_out(b.storage_of(block.id))
    b.beat()
    report_bad(b, block)
    [facts] = cluster.call(inspect_blocks, [block.id])
    assert sum(replica.is_marked for _, replica in facts.replicas) == 2


def test_a_reader_is_believed_by_a_namenode_that_has_not_heard_of_the_datanode(
    tmp_path: Path,
) -> None:
    with fake_cluster(tmp_path) as cluster:
        a, _ = cluster.add("a", "b")
        block = cluster.write("/f", replication=2)
    with fake_cluster(tmp_path, format=False) as cluster:
        node = cluster.nodes["a"] = FakeDataNode(cluster, "a")
        node.registration = a.registration
        report_bad(node, block)
        [facts] = cluster.call(inspect_blocks, [block.id])
        assert sum(replica.is_marked for _, replica in facts.replicas) == 1


def test_many_that_are_marked_are_reported_with_few_reads(postgres_dsn: str) -> None:
    with fake_cluster(postgres_dsn) as cluster:
        [node] = cluster.add("a")
        blocks = [cluster.write(f"/f{n}", replication=1) for n in range(20)]
        for block in blocks:
            rot(node, block)
        disk = node.disk
    with fake_cluster(postgres_dsn, format=False) as cluster:
        node = cluster.nodes["a"] = FakeDataNode(cluster, "a")
        node.disk = disk
        node.register()
        request = node.make_report()
        store = cluster.namenode.store
        read = store.read
        readings: list[Reading] = []

        async def count(reading: Reading) -> Found:
            readings.append(reading)
            return await read(reading)

        store.read = count  # type: ignore[method-assign]
        node.send_report(request)
        assert len(readings) < 10


def test_nobody_waits_for_the_dead_to_delete_something(sqlite_cluster: FakeCluster) -> None:
    """Though they may not have been given up: one in maintenance never is."""
    cluster = sqlite_cluster
    a, b, _ = cluster.add("a", "b", "c")
    block = cluster.write("/f")
    cluster.client.set_replication("/f", 2)
    drop(cluster, block, a, keeping=b)
    redundancy = cluster.namenode.redundancy
    [facts] = cluster.call(inspect_blocks, [block.id])
    assert redundancy.view_of(facts).deleting == {"a"}
    a.die()
    for _ in range(30):
        cluster.pass_time(25)
        cluster.beat()
    cluster.namenode.datanodes.refresh_all()
    assert not redundancy.view_of(facts).deleting
    a.come()
    cluster.live(2)
    assert a.told == [block.id]
    cluster.check_calm()


def test_what_was_on_a_volume_that_is_mounted_again_is_not_certain(
    sqlite_cluster: FakeCluster,
) -> None:
    """Until it has reported: it may have lost something."""
    cluster = sqlite_cluster
    a, b = cluster.add("a", "b")
    block = cluster.write("/f", replication=2)
    a.take_out("DS-a-0")
    cluster.live(2)
    del a.aside["DS-a-0"][block.id]
    a.put_in("DS-a-0")
    cluster.client.set_replication("/f", 1)
    cluster.live(3)
    assert a.told == b.told == []
    a.report()
    cluster.live(3)
    assert cluster.located("/f") == ["b"]
    cluster.check_calm()


def test_a_block_of_which_all_is_corrupt_keeps_what_it_has(cluster: FakeCluster) -> None:
    nodes = cluster.add("a", "b", "c")
    block = cluster.write("/f")
    for node in nodes:
        report_bad(node, block)
    cluster.live(5)
    assert [node.told for node in nodes] == [[], [], []]
    assert cluster.checks() == {CheckQueue.CORRUPT: 1}
    assert cluster.namenode.redundancy.lengths[CheckQueue.CORRUPT] == 1
    # So does one full report after the other.
    for node in nodes:
        node.report()
    cluster.live(2)
    assert [node.told for node in nodes] == [[], [], []]


def test_a_reader_that_speaks_of_an_older_generation_is_not_believed(
    sqlite_cluster: FakeCluster,
) -> None:
    cluster = sqlite_cluster
    [node] = cluster.add("a")
    block = cluster.write("/f", replication=1)
    report_bad(node, block, stamp=block.generation_stamp - 1)
    assert not cluster.checks()


def test_as_many_nodes_as_replicas_heal_after_corruption(sqlite_cluster: FakeCluster) -> None:
    cluster = sqlite_cluster
    nodes = cluster.add("a", "b", "c")
    block = cluster.write("/f")
    for node in nodes[:2]:
        rot(node, block)
    cluster.live(8)
    assert cluster.holders(block) == ["a", "b", "c"]
    assert not any(
        found.is_rotten for node in nodes for found in node.disk[f"DS-{node.name}-0"].values()
    )
    cluster.check_calm()


def test_a_broken_volume_is_made_good(sqlite_cluster: FakeCluster) -> None:
    cluster = sqlite_cluster
    cluster.add("a", "b", storages=2)
    cluster.add("c", "d", storages=2)
    blocks = [cluster.write(f"/f{n}") for n in range(10)]
    broken = cluster.nodes["a"]
    lost = broken.disk.pop("DS-a-0")
    assert lost
    cluster.live(10)
    for block in blocks:
        assert len(cluster.holders(block)) == 3
    cluster.check_calm()
    live = cluster.namenode.datanodes.get("a")
    assert live is not None
    assert [storage.id for storage in live.record.storages] == ["DS-a-1"]


def test_a_volume_that_moves_to_another_node(sqlite_cluster: FakeCluster) -> None:
    cluster = sqlite_cluster
    a, b, _ = cluster.add("a", "b", "c", storages=2)
    blocks = [cluster.write(f"/f{n}", replication=1) for n in range(12)]
    moved = a.disk.pop("DS-a-0")
    assert moved
    b.disk["DS-a-0"] = moved
    a.come()
    b.come()
    cluster.live(5)
    for n, block in enumerate(blocks):
        assert len(cluster.holders(block)) == 1
        assert cluster.located(f"/f{n}") == cluster.holders(block)
    cluster.check_calm()


def test_one_too_many_is_waited_for_though_another_node_has_lost_a_volume(tmp_path: Path) -> None:
    """That one counts for what it has on another volume; the late one is still expected."""
    with fake_cluster(tmp_path) as cluster:
        a, *_ = cluster.add("a", "b", "c", storages=2)
        block = cluster.write("/f", replication=3)
        known = a.storage_of(block.id)
        [other] = a.disk.keys() - {known}
        a.send_change(other, pb.ReceivedDeletedBlockInfoProto.RECEIVED, block.id, 1001, 10)
        cluster.client.set_replication("/f", 2)
        a.disk[other] = a.disk.pop(known)
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


def test_a_move_has_not_arrived_where_something_bad_is(sqlite_cluster: FakeCluster) -> None:
    cluster = sqlite_cluster
    cluster.add("a", "b")
    block = cluster.write("/f", replication=1)
    [facts] = cluster.call(inspect_blocks, [block.id])
    [source] = cluster.namenode.redundancy.view_of(facts).replicas
    [taker] = others(cluster, source.uuid)
    number = StorageNumber(numbers_of(cluster, taker)[0])
    [target] = cluster.namenode.datanodes.targets([number])
    moves = cluster.namenode.moves
    assert moves.order(Mover.BALANCER, facts.block, [Move(source, target)])
    for status, outcome in (
        (ReplicaStatus.CORRUPT, Outcome.UNDER_WAY),
        (ReplicaStatus.GOOD, Outcome.ARRIVED),
    ):
        there = Replica(block.id, block.generation_stamp, block.length_bytes, status)
        replicas = [*facts.replicas, (number, there)]
        assert moves.settle(msgspec.structs.replace(facts, replicas=replicas)) is outcome
