"""The satisfier with DataNodes that exist only as what they say; and NameNodes that die."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.namenode.datanodes import FakeCluster, FakeDataNode, drop, fake_cluster, others
from tests.namenode.dying import survives

from cairnfs.blocks.placing import Placement, PlacementQueue
from cairnfs.blocks.records import Block, BlockId
from cairnfs.namenode import satisfier
from cairnfs.namesystem import storage_policies
from cairnfs.namesystem.paths import FsPath
from cairnfs.namesystem.satisfying import SCAN_PAGE, Satisfied, get_satisfied
from cairnfs.store.schema import Table
from cairnfs.transaction.records import decode

ALL = ("DISK", "SSD", "ARCHIVE")


def set_policy(cluster: FakeCluster, path: str, name: str) -> None:
    caller = cluster.client.caller
    cluster.call(storage_policies.set_storage_policy, caller, FsPath.parse(path), name)


def unset_policy(cluster: FakeCluster, path: str) -> None:
    caller = cluster.client.caller
    cluster.call(storage_policies.unset_storage_policy, caller, FsPath.parse(path))


def scans(cluster: FakeCluster) -> int:
    return len(cluster.rows(Table.POLICY_SCANS, 0))


def left(cluster: FakeCluster) -> dict[PlacementQueue, int]:
    return {queue: len(cluster.rows(Table.PLACEMENTS, queue)) for queue in PlacementQueue}


def is_done(cluster: FakeCluster) -> bool:
    return not scans(cluster) and not any(left(cluster).values())


def settle(cluster: FakeCluster, rounds: int = 60) -> None:
    for _ in range(rounds):
        cluster.live()
        if is_done(cluster) and not cluster.checks():
            return
    raise AssertionError(f"{left(cluster)} is left, {cluster.checks()} to be checked")


def satisfied(cluster: FakeCluster) -> Satisfied:
    found: Satisfied = cluster.call(get_satisfied)
    return found


def test_who_sets_no_policy_pays_nothing(sqlite_cluster: FakeCluster) -> None:
    cluster = sqlite_cluster
    cluster.add("a", "b", "c", types=ALL)
    cluster.write("/a/f")
    cluster.client.mkdirs("/b")
    assert cluster.client.rename("/a", "/b")
    cluster.live(3)
    for table in (Table.POLICY_SCANS, Table.POLICY_MARKS, Table.PLACEMENTS, Table.SATISFIED):
        assert not cluster.rows(table, 0), table.name
    assert not cluster.moves


def test_replicas_go_to_other_volumes_of_their_nodes(cluster: FakeCluster) -> None:
    cluster.add("a", "b", "c", types=ALL)
    blocks = [cluster.write(f"/d/e/f{n}") for n in range(3)]
    for policy, expected in (
        ("COLD", {"ARCHIVE": 3}),
        ("ONE_SSD", {"SSD": 1, "DISK": 2}),
        ("WARM", {"DISK": 1, "ARCHIVE": 2}),
        ("HOT", {"DISK": 3}),
    ):
        set_policy(cluster, "/d", policy)
        settle(cluster)
        assert [cluster.types(block) for block in blocks] == [expected] * 3
        assert all(len(cluster.holders(block)) == 3 for block in blocks)
        cluster.check_calm()


def test_replicas_go_to_other_nodes_and_are_never_too_few(cluster: FakeCluster) -> None:
    cluster.add("a", "b", rack="/1")
    cluster.add("c", rack="/2")
    cluster.add("x", "y", rack="/2", types=("ARCHIVE",))
    cluster.add("z", rack="/1", types=("ARCHIVE",))
    block = cluster.write("/d/f")
    set_policy(cluster, "/d", "COLD")
    for _ in range(40):
        cluster.live()
        assert len(cluster.holders(block)) >= 3
    assert is_done(cluster)
    assert cluster.types(block) == {"ARCHIVE": 3}
    cluster.check_calm()


def test_what_finds_no_place_stays_and_is_tried_again(cluster: FakeCluster) -> None:
    cluster.add("a", "b", "c")
    block = cluster.write("/d/f")
    set_policy(cluster, "/d", "COLD")
    cluster.live(5)
    assert left(cluster) == {PlacementQueue.TO_DO: 0, PlacementQueue.UNSATISFIED: 1}
    assert cluster.types(block) == {"DISK": 3}
    cluster.add("x", "y", "z", types=("ARCHIVE",))
    settle(cluster)
    assert cluster.types(block) == {"ARCHIVE": 3}
    cluster.check_calm()


def notes(cluster: FakeCluster) -> list[str]:
    """Why blocks find no place."""
    rows = cluster.rows(Table.PLACEMENTS, PlacementQueue.UNSATISFIED)
    found: list[Placement] = [decode(Table.PLACEMENTS, row.data) for row in rows]
    return [each.note for each in found]


def satisfy(cluster: FakeCluster, path: str) -> None:
    cluster.call(storage_policies.satisfy_storage_policy, cluster.client.caller, FsPath.parse(path))


def test_what_finds_a_place_is_looked_at_until_it_is_done(sqlite_cluster: FakeCluster) -> None:
    """Each of its replicas waits for the one before; and so it does if fewer are asked for."""
    cluster = sqlite_cluster
    cluster.add("a", "b", "c")
    block, other = cluster.write("/d/f"), cluster.write("/d/g")
    set_policy(cluster, "/d", "COLD")
    cluster.live(5)
    cluster.add("x", types=("ARCHIVE",))
    cluster.live()  # it is to take one of each
    assert not notes(cluster)
    assert left(cluster)[PlacementQueue.TO_DO] == 2
    cluster.client.set_replication("/d/f", 1)
    cluster.live(5)
    assert cluster.types(block) == {"ARCHIVE": 1}
    assert notes(cluster) == ["2 of 3 replicas find no place on ARCHIVE"]
    assert cluster.types(other) == {"DISK": 2, "ARCHIVE": 1}
    cluster.add("y", "z", types=("ARCHIVE",))
    settle(cluster, 8)
    assert cluster.types(other) == {"ARCHIVE": 3}
    cluster.check_calm()


@pytest.mark.parametrize("is_deleted", [True, False])
def test_a_few_without_a_place_are_seen_to_change(
    sqlite_cluster: FakeCluster, is_deleted: bool
) -> None:
    cluster = sqlite_cluster
    cluster.add("a", "b")
    cluster.add("x", types=("ARCHIVE",))
    cluster.write("/d/f")
    set_policy(cluster, "/d", "COLD")
    cluster.live(15)
    assert notes(cluster) == ["2 of 3 replicas find no place on ARCHIVE"]
    cluster.namenode.satisfier._retried_s = cluster.now_s
    if is_deleted:
        cluster.client.delete("/d/f")
        cluster.thread.wait(cluster.namenode.duties.reclaim_everything())
    else:
        cluster.client.set_replication("/d/f", 1)
    settle(cluster, 6)


def test_many_without_a_place_are_looked_at_now_and_then(
    sqlite_cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(satisfier, "BLOCKS_PAGE", 2)
    cluster = sqlite_cluster
    cluster.add("a")
    for n in range(5):
        cluster.write(f"/d/{n}", replication=1)
    set_policy(cluster, "/d", "COLD")
    cluster.live(15)
    looked_at = []
    look_at = cluster.namenode.satisfier._look_at

    async def counting_look_at(block_ids: Sequence[BlockId]) -> int:
        looked_at.extend(block_ids)
        return await look_at(block_ids)

    monkeypatch.setattr(cluster.namenode.satisfier, "_look_at", counting_look_at)
    cluster.live(20)  # a minute
    assert len(looked_at) == 2 * 5


def test_a_move_of_a_replica_that_is_deleted_is_not_waited_for(
    sqlite_cluster: FakeCluster,
) -> None:
    cluster = sqlite_cluster
    cluster.add("a", "b", "c")
    cluster.add("x", types=("ARCHIVE",))
    block = cluster.write("/d/f")
    set_policy(cluster, "/d", "COLD")
    cluster.step()
    (going,) = [node for node in cluster.namenode.datanodes if node.moves]
    going.moves.clear()  # it has tried, and there was nothing any more
    source = cluster.nodes[going.record.uuid]
    keeping = next(node for node in others(cluster, source.name, "x"))
    cluster.client.set_replication("/d/f", 1)
    drop(cluster, block, source, keeping)
    settle(cluster, 8)
    assert cluster.types(block) == {"ARCHIVE": 1}


# DataNodes that are silent.


def test_nothing_goes_to_a_datanode_that_is_silent(sqlite_cluster: FakeCluster) -> None:
    cluster = sqlite_cluster
    cluster.add("a", "b", "c")
    (silent,) = cluster.add("x", types=("ARCHIVE",))
    block = cluster.write("/d/f", replication=1)
    silent.cut_off()
    cluster.live(12)
    set_policy(cluster, "/d", "COLD")
    cluster.live(2)
    address = f"127.0.0.1:{silent.port}"
    assert notes(cluster) == [
        f"1 of 1 replicas find no place on ARCHIVE; not heard of lately: {address}"
    ]
    assert left(cluster)[PlacementQueue.TO_DO] == 0
    changes = cluster.namenode.datanodes.changes
    silent.is_up = True
    silent.heartbeat()
    assert cluster.namenode.datanodes.changes > changes  # so it is tried at once
    settle(cluster, 5)
    assert cluster.types(block) == {"ARCHIVE": 1}


def test_one_that_is_heard_of_is_taken_however_many_are_silent(
    sqlite_cluster: FakeCluster,
) -> None:
    cluster = sqlite_cluster
    cluster.add("a")
    silent = cluster.add("w", "x", "y", types=("ARCHIVE",))
    cluster.add("z", types=("ARCHIVE",))
    blocks = [cluster.write(f"/d/{n}", replication=1) for n in range(8)]
    for node in silent:
        node.cut_off()
    cluster.live(12)
    set_policy(cluster, "/d", "COLD")
    settle(cluster, 6)
    assert {name for block in blocks for name in cluster.holders(block)} == {"z"}


def test_a_move_to_a_datanode_that_falls_silent_is_given_up(sqlite_cluster: FakeCluster) -> None:
    cluster = sqlite_cluster
    cluster.add("a", "b", "c")
    (silent,) = cluster.add("x", types=("ARCHIVE",))
    cluster.write("/d/f", replication=1)
    set_policy(cluster, "/d", "COLD")
    cluster.step()
    assert len(cluster.namenode.moves) == 1
    silent.die()
    cluster.live(12)
    assert "not heard of lately" in notes(cluster)[0]
    assert not len(cluster.namenode.moves)


def test_replicas_that_cannot_be_made_are_no_reason_to_wait(sqlite_cluster: FakeCluster) -> None:
    """They come first; but if nobody can make them, that is what there is to say."""
    cluster = sqlite_cluster
    cluster.add("a", "b")
    (archive,) = cluster.add("x", types=("ARCHIVE",))
    cluster.write("/d/one", replication=1)
    cluster.write("/d/two", replication=2)
    set_policy(cluster, "/d", "COLD")
    cluster.live(15)
    assert notes(cluster) == ["1 of 2 replicas find no place on ARCHIVE"]
    cluster.bury(archive)
    satisfy(cluster, "/d")
    cluster.live(5)
    assert left(cluster)[PlacementQueue.TO_DO] == 0
    assert notes(cluster) == [
        "no replica can be read now",
        "replicas are missing, and find no place either",
    ]
    archive.come()
    cluster.live(5)
    assert notes(cluster) == ["1 of 2 replicas find no place on ARCHIVE"]


def test_a_lost_replica_is_made_where_the_policy_wants_it(cluster: FakeCluster) -> None:
    cluster.add("a", "b", "c", "d", types=ALL)
    cluster.client.mkdirs("/d")
    set_policy(cluster, "/d", "COLD")
    block = cluster.write("/d/f")
    assert cluster.types(block) == {"ARCHIVE": 3}
    dead = cluster.nodes[cluster.holders(block)[0]]
    cluster.bury(dead)
    cluster.live(4)
    assert len(cluster.holders(block)) == 3
    alive = [node for node in cluster.nodes.values() if node.is_up]
    assert {types_of(node, block) for node in alive} <= {("ARCHIVE",), ()}


def types_of(node: FakeDataNode, block: Block) -> tuple[str, ...]:
    return tuple(node.types[id] for id, blocks in node.disk.items() if block.id in blocks)


def test_a_subtree_without_change_is_not_looked_at(cluster: FakeCluster) -> None:
    cluster.add("a", "b", "c", types=ALL)
    cluster.write("/x/d/f")
    cluster.client.mkdirs("/y")
    set_policy(cluster, "/x", "HOT")  # what it had
    assert not scans(cluster)
    cluster.client.rename("/x/d", "/y/d")
    assert not scans(cluster)
    set_policy(cluster, "/y/d", "COLD")
    assert scans(cluster) == 1
    settle(cluster)
    set_policy(cluster, "/y", "HOT")  # the same for it, but not for what is below
    settle(cluster)
    assert cluster.moves == 6


def rows_written(cluster: FakeCluster, change: Callable[[], object]) -> int:
    """How many rows a change writes and removes."""
    store, commit, count = cluster.namenode.store, cluster.namenode.store.commit, 0

    async def counting_commit(batch: Any) -> int:
        nonlocal count
        count += len(batch.puts) + len(batch.deletes)
        return await commit(batch)

    store.commit = counting_commit  # type: ignore[method-assign]
    try:
        change()
    finally:
        store.commit = commit  # type: ignore[method-assign]
    return count


def test_a_policy_costs_the_same_whatever_is_below(sqlite_cluster: FakeCluster) -> None:
    cluster = sqlite_cluster
    for path, files in (("/few", 1), ("/many", 300)):
        for n in range(files):
            cluster.client.mkdirs(f"{path}/{n}")
    cluster.client.mkdirs("/to")
    set_policy(cluster, "/to", "WARM")
    few, many = (
        [
            rows_written(cluster, lambda path=path: set_policy(cluster, path, "COLD")),  # type: ignore[misc]
            rows_written(cluster, lambda path=path: cluster.client.rename(path, f"/to{path}")),  # type: ignore[misc]
            rows_written(cluster, lambda path=path: unset_policy(cluster, f"/to{path}")),  # type: ignore[misc]
        ]
        for path in ("/few", "/many")
    )
    assert few[:2] == many[:2] == [2, 2]  # the inode, and a row for the satisfier
    assert max(few) <= 4
    assert many[2] <= few[2]


def test_what_is_moved_on_while_it_waits_is_not_missed(cluster: FakeCluster) -> None:
    """From a directory that is still to be looked at to one that was."""
    cluster.add("a", "b", "c", types=ALL)
    for n in range(SCAN_PAGE + 1):
        cluster.client.mkdirs(f"/d/{n:03}")
    block = cluster.write("/d/zzz/f")
    set_policy(cluster, "/d", "COLD")
    cluster.thread.wait(cluster.namenode.satisfier.step())  # the first page, and some below it
    cluster.client.rename("/d/zzz", "/d/000/zzz")
    settle(cluster)
    assert cluster.types(block) == {"ARCHIVE": 3}


@pytest.mark.parametrize("is_deleted", [True, False])
def test_a_file_that_changes_while_its_blocks_wait(cluster: FakeCluster, is_deleted: bool) -> None:
    cluster.add("a", "b", "c", types=ALL)
    block = cluster.write("/d/f")
    set_policy(cluster, "/d", "COLD")
    cluster.step()
    if is_deleted:
        cluster.client.delete("/d/f")
        cluster.thread.wait(cluster.namenode.duties.reclaim_everything())
    else:
        unset_policy(cluster, "/d")
    settle(cluster)
    assert cluster.types(block) == ({} if is_deleted else {"DISK": 3})


def test_what_goes_into_the_trash_stays_until_it_comes_out(cluster: FakeCluster) -> None:
    cluster.add("a", "b", "c", types=ALL)
    cluster.client.mkdirs("/d")
    cluster.client.mkdirs("/user/hdfs/.Trash/Current")
    set_policy(cluster, "/d", "COLD")
    block = cluster.write("/d/f")
    cluster.client.rename("/d/f", "/user/hdfs/.Trash/Current/f")
    settle(cluster)
    assert cluster.types(block) == {"ARCHIVE": 3}
    cluster.client.rename("/user/hdfs/.Trash/Current/f", "/user/hdfs/f")
    settle(cluster)
    assert cluster.types(block) == {"DISK": 3}


def test_what_only_a_snapshot_has_stays(cluster: FakeCluster) -> None:
    cluster.add("a", "b", "c", types=ALL)
    cluster.client.mkdirs("/d")
    set_policy(cluster, "/d", "COLD")
    block = cluster.write("/d/f")
    cluster.client.allow_snapshot("/d")
    cluster.client.create_snapshot("/d", "s")
    set_policy(cluster, "/d", "ALL_SSD")
    cluster.thread.wait(cluster.namenode.satisfier._scan_subtrees())
    assert left(cluster)[PlacementQueue.TO_DO] == 1
    cluster.client.delete("/d/f")
    cluster.thread.wait(cluster.namenode.duties.reclaim_everything())
    settle(cluster)
    assert cluster.types(block) == {"ARCHIVE": 3}
    assert not cluster.moves


def test_what_a_clone_has_without_rows_is_moved_by_its_own_policy(cluster: FakeCluster) -> None:
    """The original is gone: only the clone, and the snapshot that it comes from, have the block."""
    cluster.add("a", "b", "c", types=ALL)
    block = cluster.write("/d/sub/f")
    cluster.client.allow_snapshot("/d")
    cluster.client.create_snapshot("/d", "s")
    cluster.client.clone_snapshot("/d", "s", "/c")
    cluster.client.delete("/d/sub", recursive=True)
    cluster.thread.wait(cluster.namenode.duties.reclaim_everything())
    set_policy(cluster, "/c", "COLD")
    settle(cluster)
    assert cluster.types(block) == {"ARCHIVE": 3}
    unset_policy(cluster, "/c")
    settle(cluster)
    assert cluster.types(block) == {"DISK": 3}
    cluster.client.mkdirs("/fast")
    set_policy(cluster, "/fast", "ALL_SSD")
    cluster.client.rename("/c/sub", "/fast/sub")  # a directory that has no row, either
    settle(cluster)
    assert cluster.types(block) == {"SSD": 3}
    assert len(cluster.holders(block)) == 3


@pytest.mark.parametrize("pages", [1, 2])
def test_what_is_rolled_back_while_it_waits_is_not_missed(cluster: FakeCluster, pages: int) -> None:
    """What is noted of it, a directory or a block, is noted of inodes that are gone then."""
    cluster.add("a", "b", "c", types=ALL)
    block = cluster.write("/d/e/f")
    cluster.client.allow_snapshot("/d")
    set_policy(cluster, "/d", "COLD")
    for _ in range(pages):
        cluster.thread.wait(cluster.namenode.satisfier._scan_subtrees())
    cluster.client.create_snapshot("/d", "s")
    cluster.client.rollback_snapshot("/d", "s")
    cluster.thread.wait(cluster.namenode.duties.reclaim_everything())
    settle(cluster)
    assert cluster.types(block) == {"ARCHIVE": 3}


@pytest.mark.parametrize("name", ["d", "d/sub/f"])
def test_a_clone_is_moved_by_the_policy_of_where_it_is(cluster: FakeCluster, name: str) -> None:
    cluster.add("a", "b", "c", types=ALL)
    block = cluster.write("/d/sub/f")
    cluster.client.mkdirs("/fast")
    cluster.client.mkdirs("/slow")
    set_policy(cluster, "/fast", "ALL_SSD")
    set_policy(cluster, "/slow", "COLD")
    cluster.client.allow_snapshot(f"/{name}")
    cluster.client.create_snapshot(f"/{name}", "s")
    cluster.client.clone_snapshot(f"/{name}", "s", "/slow/c")
    settle(cluster)
    assert cluster.types(block) == {"DISK": 3}  # the original needs it there
    cluster.client.clone_snapshot(f"/{name}", "s", "/fast/c")
    settle(cluster)
    assert cluster.types(block) == {"SSD": 3}
    assert len(cluster.holders(block)) == 3


def test_a_clone_of_what_had_another_policy_then(cluster: FakeCluster) -> None:
    """The block is where the original's policy of later has wanted it."""
    cluster.add("a", "b", "c", types=ALL)
    block = cluster.write("/d/f")
    cluster.client.allow_snapshot("/d")
    cluster.client.create_snapshot("/d", "s")
    set_policy(cluster, "/d", "COLD")
    settle(cluster)
    cluster.client.clone_snapshot("/d", "s", "/c")
    settle(cluster)
    assert cluster.types(block) == {"DISK": 3}


def test_a_clone_that_changes_no_policy_is_not_looked_at(cluster: FakeCluster) -> None:
    cluster.add("a", "b", "c", types=ALL)
    cluster.write("/d/sub/f")
    cluster.client.mkdirs("/other")
    set_policy(cluster, "/other", "COLD")
    settle(cluster)
    cluster.client.allow_snapshot("/d")
    cluster.client.create_snapshot("/d", "s")
    cluster.client.clone_snapshot("/d", "s", "/c")
    assert not scans(cluster)


def test_what_a_rollback_brings_back_may_have_moved_since(cluster: FakeCluster) -> None:
    """It was deleted while another policy held, which does so neither before nor after."""
    cluster.add("a", "b", "c", types=ALL)
    block = cluster.write("/d/f")
    cluster.client.allow_snapshot("/d")
    cluster.client.create_snapshot("/d", "s")
    set_policy(cluster, "/d", "COLD")
    settle(cluster)
    assert cluster.types(block) == {"ARCHIVE": 3}
    cluster.client.delete("/d/f")
    unset_policy(cluster, "/d")
    settle(cluster)
    cluster.client.rollback_snapshot("/d", "s")
    cluster.live(5)
    assert left(cluster)[PlacementQueue.TO_DO] == 1  # as long as the deleted file is not reclaimed
    cluster.thread.wait(cluster.namenode.duties.reclaim_everything())
    settle(cluster)
    assert cluster.types(block) == {"DISK": 3}


def test_a_diff_does_not_tell_what_the_satisfier_notes(cluster: FakeCluster) -> None:
    """A policy that was set is a change of the directory alone, as in HDFS."""
    cluster.add("a", "b", "c", types=ALL)
    cluster.write("/d/sub/f")
    cluster.client.allow_snapshot("/d")
    cluster.client.create_snapshot("/d", "s")
    set_policy(cluster, "/d", "COLD")
    settle(cluster)
    assert [entry.path for entry in cluster.client.snapshot_diff("/d", "s")] == [()]
    assert [change.path for change in cluster.client.snapshot_changes("/d", "s")] == [()]


# NameNodes that die.


class Tree:
    """Directories and files on a store that survives its NameNodes."""

    def __init__(self, directory: Path, directories: int, files: int) -> None:
        self.directory = directory
        self.disks: dict[str, dict[str, dict[int, Any]]] = {}
        self.blocks: list[Block] = []
        self.inodes = directories * (1 + files)
        with fake_cluster(directory) as cluster:
            cluster.add("a", "b", "c", types=ALL)
            for n in range(directories):
                self.blocks += [cluster.write(f"/tree/{n}/{file}") for file in range(files)]
            set_policy(cluster, "/tree", "COLD")
            self._keep(cluster)

    def _keep(self, cluster: FakeCluster) -> None:
        self.disks = {name: node.disk for name, node in cluster.nodes.items()}

    def live_and_die(self, commits: int) -> bool:
        """A NameNode lives for so many commits; True if it has come to an end before."""
        with fake_cluster(self.directory, format=False) as cluster:
            for name, disk in self.disks.items():
                node = FakeDataNode(cluster, name, types=ALL)
                node.disk = disk
                cluster.nodes[name] = node
                node.come()
            try:
                if not survives(cluster, commits, lambda: settle(cluster)):
                    return False
            finally:
                self._keep(cluster)
            self._check(cluster)
            return True

    def _check(self, cluster: FakeCluster) -> None:
        assert satisfied(cluster).scanned == self.inodes
        for block in self.blocks:
            assert cluster.types(block) == {"ARCHIVE": 3}
            assert len(cluster.holders(block)) == 3
        cluster.check_calm()


def test_a_namenode_may_die_after_every_commit(tmp_path: Path) -> None:
    """Each comes a commit further; everything is looked at once, and no replica is lost."""
    tree = Tree(tmp_path, directories=3, files=3)
    deaths = 0
    while not tree.live_and_die(1):
        deaths += 1
        assert deaths < 300
    assert deaths > 10


@pytest.mark.parametrize("commits", [2, 3, 5, 8])
def test_namenodes_die_again_and_again(tmp_path: Path, commits: int) -> None:
    tree = Tree(tmp_path, directories=4, files=6)
    deaths = 0
    while not tree.live_and_die(commits):
        deaths += 1
        assert deaths < 300
    assert deaths
