"""The balancer with DataNodes that exist only as what they say; and NameNodes that die."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.namenode.datanodes import FakeCluster, FakeDataNode, fake_cluster
from tests.namenode.dying import survives

from cairnfs.blocks.records import Block
from cairnfs.errors import AccessControlException, IllegalArgumentException, IOException
from cairnfs.namesystem import balancing, storage_policies
from cairnfs.namesystem.balancing import BalancerParameters, Balancing, BalancingState
from cairnfs.namesystem.paths import FsPath

CAPACITY = 100 << 20
SIZE = 1 << 20


def limited(cluster: FakeCluster, *names: str, **more: Any) -> list[FakeDataNode]:
    """DataNodes that a few blocks fill."""
    added = cluster.add(*names, **more)
    for each in added:
        each.capacity = CAPACITY
        each.beat()
    return added


def start(cluster: FakeCluster, **parameters: Any) -> Balancing:
    begun: Balancing = cluster.call(
        balancing.start_balancing, cluster.client.caller, BalancerParameters(**parameters)
    )
    return begun


def last(cluster: FakeCluster) -> Balancing:
    found: Balancing | None = cluster.call(balancing.get_balancing)
    assert found is not None
    return found


def balance(cluster: FakeCluster, beats: int = 60, **parameters: Any) -> Balancing:
    """Until it ends, and what was moved has settled."""
    start(cluster, **parameters)
    for _ in range(beats):
        cluster.live()
        if not last(cluster).is_running:
            cluster.live(3)
            return last(cluster)
    raise AssertionError(f"it does not end: {last(cluster)}")


def used(node: FakeDataNode) -> int:
    return sum(each.length for blocks in node.disk.values() for each in blocks.values())


def check_whole(cluster: FakeCluster, blocks: list[Block], replication: int) -> None:
    for block in blocks:
        assert len(cluster.holders(block)) == replication
    cluster.check_calm()


def test_a_new_datanode_gets_its_share(cluster: FakeCluster) -> None:
    old = limited(cluster, "a", "b", "c")
    blocks = [cluster.write(f"/f{n}", length=SIZE) for n in range(60)]
    (new,) = limited(cluster, "d")
    ended = balance(cluster, threshold=5.0)
    assert ended.state is BalancingState.BALANCED
    mean = sum(map(used, (*old, new))) / 4
    for node in (*old, new):
        assert abs(used(node) - mean) <= 0.05 * CAPACITY
    assert ended.moved_bytes == used(new) == ended.moved_blocks * SIZE
    check_whole(cluster, blocks, 3)


def test_a_datanode_that_is_silent_is_not_waited_for(sqlite_cluster: FakeCluster) -> None:
    cluster = sqlite_cluster
    limited(cluster, "a", "b")
    blocks = [cluster.write(f"/f{n}", 2, length=SIZE) for n in range(60)]
    silent, new = limited(cluster, "c", "d")
    silent.die()
    cluster.live(12)
    ended = balance(cluster, 30, threshold=5.0)  # a minute and a half: it is not dead yet
    assert ended.state is BalancingState.NO_MOVE_PROGRESS
    assert used(new) > 15 * SIZE
    check_whole(cluster, blocks, 2)


def test_a_balanced_cluster_is_left_alone(cluster: FakeCluster) -> None:
    limited(cluster, "a", "b", "c")
    blocks = [cluster.write(f"/f{n}", length=SIZE) for n in range(10)]
    ended = balance(cluster)
    assert (ended.state, ended.iteration, ended.moved_blocks) == (BalancingState.BALANCED, 0, 0)
    assert not cluster.moves
    check_whole(cluster, blocks, 3)


def test_types_and_racks_are_kept(cluster: FakeCluster) -> None:
    limited(cluster, "a", "b", rack="/1", types=("DISK", "ARCHIVE"))
    limited(cluster, "c", rack="/2", types=("DISK", "ARCHIVE"))
    cluster.client.mkdirs("/cold")
    caller = cluster.client.caller
    cluster.call(storage_policies.set_storage_policy, caller, FsPath.parse("/cold"), "COLD")
    hot = [cluster.write(f"/f{n}", 2, SIZE) for n in range(40)]
    cold = [cluster.write(f"/cold/f{n}", 2, SIZE) for n in range(40)]
    limited(cluster, "d", rack="/1", types=("DISK", "ARCHIVE"))
    limited(cluster, "e", rack="/2", types=("DISK", "ARCHIVE"))
    ended = balance(cluster)
    assert ended.state is BalancingState.BALANCED
    assert ended.moved_blocks
    racks = {"a": 1, "b": 1, "d": 1, "c": 2, "e": 2}
    for blocks, type in ((hot, "DISK"), (cold, "ARCHIVE")):
        for block in blocks:
            assert cluster.types(block) == {type: 2}
            assert {racks[name] for name in cluster.holders(block)} == {1, 2}
        check_whole(cluster, blocks, 2)


def test_what_only_a_snapshot_has_is_moved_too(cluster: FakeCluster) -> None:
    limited(cluster, "a", "b")
    cluster.client.mkdirs("/d")
    cluster.client.allow_snapshot("/d")
    blocks = [cluster.write(f"/d/f{n}", 2, SIZE) for n in range(40)]
    cluster.client.create_snapshot("/d", "s")
    for n in range(40):
        cluster.client.delete(f"/d/f{n}")
    cluster.thread.wait(cluster.namenode.duties.reclaim_everything())
    (new,) = limited(cluster, "c")
    assert balance(cluster, threshold=5.0).state is BalancingState.BALANCED
    assert used(new) > 20 * SIZE
    for block in blocks:
        assert len(cluster.holders(block)) == 2


def test_a_file_that_is_written_is_left_alone(cluster: FakeCluster) -> None:
    limited(cluster, "a")
    cluster.client.create("/open", replication=1, block_size_bytes=1 << 20)
    first = cluster.add_block("/open")
    cluster.finish(first.targets[0], first, SIZE)
    done = Block(first.id, first.generation_stamp, SIZE, first.state)
    cluster.add_block("/open", done)
    (new,) = limited(cluster, "b")
    for node in cluster.nodes.values():
        node.capacity = 4 * SIZE
    ended = balance(cluster, idle_iterations_max=2)
    assert ended.state is BalancingState.NO_MOVE_PROGRESS
    assert not used(new)
    assert not cluster.moves


def test_a_block_does_not_go_to_and_fro(cluster: FakeCluster) -> None:
    """Wherever it is, one DataNode has it and the other has nothing."""
    limited(cluster, "a")
    cluster.write("/f", 1, SIZE)
    limited(cluster, "b")
    for node in cluster.nodes.values():
        node.capacity = 4 * SIZE
    ended = balance(cluster, idle_iterations_max=2)
    assert ended.state is BalancingState.NO_MOVE_PROGRESS
    assert not cluster.moves


def test_who_is_excluded_takes_no_part(cluster: FakeCluster) -> None:
    old = limited(cluster, "a")
    [cluster.write(f"/f{n}", 1, SIZE) for n in range(40)]
    new = limited(cluster, "b", "c")
    ports = {each.name: f"127.0.0.1:{each.port}" for each in (*old, *new)}
    ended = balance(cluster, excluded=(ports["c"],))
    assert ended.state is BalancingState.BALANCED
    assert used(new[0])
    assert not used(new[1])
    ended = balance(cluster, sources=(ports["c"],))
    assert ended.state is BalancingState.NO_MOVE_BLOCK
    ended = balance(cluster, included=(ports["a"], ports["c"]), threshold=1.0)
    assert used(new[1])


def test_there_is_one_at_a_time_and_it_can_be_stopped(cluster: FakeCluster) -> None:
    limited(cluster, "a")
    [cluster.write(f"/f{n}", 1, SIZE) for n in range(60)]
    limited(cluster, "b")
    cluster.beat()
    begun = start(cluster, threshold=5.0)
    assert start(cluster, threshold=5.0) == begun  # the same goes on
    with pytest.raises(IOException, match=r"Another balancer is running.*threshold of 5"):
        start(cluster, threshold=6.0)
    cluster.step()
    caller = cluster.client.caller
    stopped = cluster.call(balancing.stop_balancing, caller)
    assert stopped.state is BalancingState.STOPPED
    moves = cluster.moves
    cluster.live(8)  # what was ordered arrives, nothing else is
    assert moves < cluster.moves <= 32
    assert last(cluster).moved_blocks == cluster.moves
    assert cluster.call(balancing.stop_balancing, caller).state is BalancingState.STOPPED
    assert balance(cluster, threshold=6.0).state is BalancingState.BALANCED


def test_mistakes(sqlite_cluster: FakeCluster) -> None:
    cluster = sqlite_cluster
    for threshold in (0.0, 0.5, 101.0, -1.0, float("nan")):
        with pytest.raises(IllegalArgumentException, match="Number out of range: threshold"):
            start(cluster, threshold=threshold)
    somebody = cluster.namenode.caller("somebody")
    for call in (balancing.stop_balancing, balancing.start_balancing):
        arguments = (BalancerParameters(),) if call is balancing.start_balancing else ()
        with pytest.raises(AccessControlException, match="Superuser privilege"):
            cluster.call(call, somebody, *arguments)
    assert cluster.call(balancing.get_balancing) is None
    assert cluster.call(balancing.stop_balancing, cluster.client.caller) is None


def test_a_datanode_that_dies_meanwhile_loses_nothing(sqlite_cluster: FakeCluster) -> None:
    cluster = sqlite_cluster
    limited(cluster, "a", "b", "c")
    blocks = [cluster.write(f"/f{n}", 2, SIZE) for n in range(60)]
    (new,) = limited(cluster, "d")
    start(cluster, threshold=5.0)
    cluster.step()
    cluster.bury(new)  # with what it was about to get
    for _ in range(60):
        cluster.live()
        if not last(cluster).is_running:
            break
    cluster.live(5)
    assert last(cluster).state is BalancingState.BALANCED
    check_whole(cluster, blocks, 2)


# NameNodes that die.


def live_and_die(directory: Path, nodes: dict[str, FakeDataNode], commits: int) -> bool:
    """A NameNode lives for so many commits; True if the balancing has come to its end."""
    with fake_cluster(directory, format=False) as cluster:
        for name, old in nodes.items():
            node = nodes[name] = FakeDataNode(cluster, name)
            node.disk, node.capacity = old.disk, old.capacity
            cluster.nodes[name] = node
            node.come()

        def balance() -> None:
            for _ in range(40):
                cluster.live()
                if not last(cluster).is_running and not cluster.checks():
                    break

        if not survives(cluster, commits, balance):
            return False
        assert last(cluster).state is BalancingState.BALANCED
        cluster.live(3)
        cluster.check_calm()
        return True


@pytest.mark.parametrize("commits", [7, 12, 20])
def test_namenodes_die_again_and_again(tmp_path: Path, commits: int) -> None:
    """Whoever comes goes on; no replica is lost, and in the end the cluster is balanced."""
    with fake_cluster(tmp_path) as cluster:
        limited(cluster, "a", "b")
        blocks = [cluster.write(f"/f{n}", 2, SIZE) for n in range(60)]
        limited(cluster, "c")
        start(cluster, threshold=5.0)
        nodes = dict(cluster.nodes)
    deaths = 0
    while not live_and_die(tmp_path, nodes, commits):
        deaths += 1
        assert deaths < 100
        for block in blocks:
            assert sum(node.find(block.id) is not None for node in nodes.values()) >= 2
    assert deaths
    for block in blocks:
        assert sum(node.find(block.id) is not None for node in nodes.values()) == 2
    shares = [used(node) for node in nodes.values()]
    assert max(shares) - min(shares) <= 0.1 * CAPACITY + SIZE
