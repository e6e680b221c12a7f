"""What is planned for a block: priorities, copies, deletions, invalidations."""

from __future__ import annotations

from collections import Counter
from itertools import product
from random import Random
from typing import Any

import msgspec
import pytest
from tests.blocks.builders import (
    BLOCK_SIZE,
    block,
    cluster_on,
    node,
    nodes_on,
    on,
    replica,
    storage,
)

from cairnfs.blocks.placement import Target
from cairnfs.blocks.policies import COLD, HOT, ONE_SSD
from cairnfs.blocks.records import AdminState, BlockState, StorageType
from cairnfs.blocks.replication import (
    BlockPlan,
    BlockView,
    Integrity,
    Priority,
    ReplicaState,
    ReplicaView,
    choose_deletions,
    choose_invalidations,
    choose_priority,
    choose_source,
    count_replicas,
    plan_block,
)
from cairnfs.blocks.topology import ClusterView, DataNodeView, StorageState

SEEDS = range(5)
LIVE = AdminState.NORMAL
DECOMMISSIONING = AdminState.DECOMMISSION_INPROGRESS
DECOMMISSIONED = AdminState.DECOMMISSIONED
ENTERING = AdminState.ENTERING_MAINTENANCE
IN_MAINTENANCE = AdminState.IN_MAINTENANCE


def plan(view: BlockView, nodes: list[DataNodeView], seed: int = 0) -> BlockPlan:
    return plan_block(view, ClusterView.of(nodes), Random(seed))


def uuids(replicas: tuple[ReplicaView, ...]) -> set[str]:
    return {each.uuid for each in replicas}


def corrupt(view: DataNodeView) -> ReplicaView:
    return replica(view, Integrity.CORRUPT)


def outdated(view: DataNodeView) -> ReplicaView:
    return replica(view, Integrity.OUTDATED)


def unreported(name: str, rack: str = "/default-rack") -> DataNodeView:
    """A node that has not said since it came back what it has."""
    return node(name, rack, storages=(storage(f"{name}-0", contents_are_stale=True),))


class TestState:
    @pytest.mark.parametrize(
        ("changes", "integrity", "is_excess", "expected"),
        [
            ({}, Integrity.GOOD, False, ReplicaState.LIVE),
            ({"is_stale": True}, Integrity.GOOD, False, ReplicaState.LIVE),
            ({}, Integrity.GOOD, True, ReplicaState.EXCESS),
            ({}, Integrity.CORRUPT, False, ReplicaState.CORRUPT),
            ({}, Integrity.OUTDATED, True, ReplicaState.CORRUPT),
            ({"is_alive": False}, Integrity.GOOD, False, ReplicaState.LOST),
            ({"admin_state": DECOMMISSIONING}, Integrity.GOOD, True, ReplicaState.DECOMMISSIONING),
            ({"admin_state": DECOMMISSIONED}, Integrity.GOOD, False, ReplicaState.DECOMMISSIONED),
            ({"admin_state": ENTERING}, Integrity.GOOD, False, ReplicaState.ENTERING_MAINTENANCE),
            ({"admin_state": IN_MAINTENANCE}, Integrity.GOOD, False, ReplicaState.IN_MAINTENANCE),
            ({"admin_state": IN_MAINTENANCE}, Integrity.CORRUPT, False, ReplicaState.CORRUPT),
            (
                {"admin_state": ENTERING, "is_alive": False},
                Integrity.GOOD,
                False,
                ReplicaState.IN_MAINTENANCE,
            ),
            (
                {"admin_state": DECOMMISSIONED, "is_alive": False},
                Integrity.GOOD,
                False,
                ReplicaState.LOST,
            ),
        ],
    )
    def test_by_node(
        self, changes: dict[str, Any], integrity: Integrity, is_excess: bool, expected: ReplicaState
    ) -> None:
        assert replica(node("n", **changes), integrity, is_excess=is_excess).state is expected

    @pytest.mark.parametrize(
        ("state", "expected"),
        [
            (StorageState.FAILED, ReplicaState.LOST),
            (StorageState.READ_ONLY_SHARED, ReplicaState.READ_ONLY),
        ],
    )
    def test_by_storage(self, state: StorageState, expected: ReplicaState) -> None:
        assert replica(node("n", storages=(storage("s", state=state),))).state is expected

    def test_every_replica_counts_once(self) -> None:
        replicas = [
            replica(node(f"{state.name}{is_alive}{integrity}{is_excess}", **changes), integrity,
                    is_excess=is_excess)
            for state, is_alive, integrity, is_excess in product(
                AdminState, (True, False), Integrity, (True, False)
            )
            for changes in [{"admin_state": state, "is_alive": is_alive}]
        ]  # fmt: skip
        counts = count_replicas(replicas)
        assert sum(msgspec.structs.astuple(counts)) == len(replicas)


class TestPriority:
    """The table of LowRedundancyBlocks, on a cluster of one rack."""

    @pytest.mark.parametrize(
        ("live", "others", "replication", "expected"),
        [
            (0, [], 1, Priority.CORRUPT),
            (0, [], 3, Priority.CORRUPT),
            (0, [DECOMMISSIONING], 3, Priority.HIGHEST),
            (0, [DECOMMISSIONED], 3, Priority.HIGHEST),
            (0, [IN_MAINTENANCE], 3, Priority.HIGHEST),
            (1, [], 2, Priority.HIGHEST),
            (1, [], 3, Priority.HIGHEST),
            (1, [DECOMMISSIONING, DECOMMISSIONED], 3, Priority.HIGHEST),
            (1, [], 10, Priority.HIGHEST),
            (2, [], 3, Priority.LOW_REDUNDANCY),
            (2, [], 6, Priority.LOW_REDUNDANCY),
            (2, [], 7, Priority.VERY_LOW_REDUNDANCY),
            (3, [], 9, Priority.LOW_REDUNDANCY),
            (3, [], 10, Priority.VERY_LOW_REDUNDANCY),
            (3, [], 3, None),
            (4, [], 3, None),
            (1, [], 1, None),
            # Those in maintenance need no replacement, as long as one is live.
            (2, [IN_MAINTENANCE], 3, None),
            (1, [ENTERING, ENTERING], 3, None),
            (0, [ENTERING] * 3, 3, Priority.HIGHEST),
            (2, [IN_MAINTENANCE], 4, Priority.LOW_REDUNDANCY),
        ],
    )
    def test_table(
        self, live: int, others: list[AdminState], replication: int, expected: Priority | None
    ) -> None:
        states = [LIVE] * live + others
        nodes = [node(f"n{i}", admin_state=state) for i, state in enumerate(states)]
        view = block(replication, *nodes)
        assert choose_priority(view, ClusterView.of([*nodes, node("other")])) is expected

    def test_only_corrupt_replicas(self) -> None:
        nodes = nodes_on(a=3)
        view = block(3, *map(corrupt, nodes))
        assert choose_priority(view, ClusterView.of(nodes)) is Priority.CORRUPT
        assert plan(view, [*nodes, node("other")]).is_empty

    def test_only_read_only_replicas(self) -> None:
        shared = node("n", storages=(storage("s", state=StorageState.READ_ONLY_SHARED),))
        view = block(1, shared)
        assert choose_priority(view, ClusterView.of([shared])) is Priority.HIGHEST

    def test_copies_under_way_count(self) -> None:
        nodes = nodes_on(a=4)
        view = block(3, nodes[0], pending=(on(nodes[1]),))
        assert choose_priority(view, ClusterView.of(nodes)) is Priority.HIGHEST
        view = block(3, nodes[0], pending=(on(nodes[1]), on(nodes[2])))
        assert choose_priority(view, ClusterView.of(nodes)) is None

    def test_too_few_racks(self) -> None:
        nodes = nodes_on(a=3, b=1)
        cluster = ClusterView.of(nodes)
        assert choose_priority(block(3, *nodes[:3]), cluster) is Priority.BADLY_DISTRIBUTED
        assert choose_priority(block(2, *nodes[:3]), cluster) is Priority.BADLY_DISTRIBUTED
        assert choose_priority(block(1, *nodes[:3]), cluster) is None
        assert choose_priority(block(3, *nodes[:2]), cluster) is Priority.LOW_REDUNDANCY
        assert choose_priority(block(3, *nodes[1:]), cluster) is None
        coming = block(3, *nodes[:3], pending=(on(nodes[3]),))
        assert choose_priority(coming, cluster) is None

    @pytest.mark.parametrize(
        ("state", "expected"),
        [
            (IN_MAINTENANCE, None),
            (ENTERING, None),
            (DECOMMISSIONING, Priority.BADLY_DISTRIBUTED),
            (DECOMMISSIONED, Priority.BADLY_DISTRIBUTED),
        ],
    )
    def test_a_rack_counts_if_its_node_comes_back(
        self, state: AdminState, expected: Priority | None
    ) -> None:
        nodes = [*nodes_on(a=3, b=1), node("leaving", "/b", admin_state=state)]
        view = block(3, *nodes[:3], nodes[-1])
        assert choose_priority(view, ClusterView.of(nodes)) is expected

    def test_a_rack_without_a_node_in_service_is_none(self) -> None:
        nodes = [*nodes_on(a=3), node("b0", "/b", admin_state=DECOMMISSIONED)]
        assert choose_priority(block(3, *nodes[:3]), ClusterView.of(nodes)) is None

    def test_provided_storage_needs_no_racks(self) -> None:
        nodes = [node("p", "/a", type=StorageType.PROVIDED), *nodes_on(a=1, b=1)]
        assert choose_priority(block(2, *nodes[:2]), ClusterView.of(nodes)) is None

    @pytest.mark.parametrize("state", [BlockState.UNDER_CONSTRUCTION, BlockState.COMMITTED])
    def test_a_block_that_is_being_written_is_left_alone(self, state: BlockState) -> None:
        nodes = nodes_on(a=5)
        for view in (
            block(3, nodes[0], state=state),
            block(1, *nodes[:3], state=state),
            block(1, nodes[0], corrupt(nodes[1]), state=state),
        ):
            assert choose_priority(view, ClusterView.of(nodes)) is None
            assert plan(view, nodes) == BlockPlan()


class TestSource:
    @staticmethod
    def sources(view: BlockView, priority: Priority = Priority.LOW_REDUNDANCY) -> set[str]:
        found = (choose_source(view, priority, Random(seed)) for seed in range(40))
        return {each.uuid if each else "none" for each in found}

    def test_any_live_one(self) -> None:
        assert self.sources(block(3, *nodes_on(a=2))) == {"a0", "a1"}

    def test_leaving_nodes_first(self) -> None:
        view = block(
            3,
            node("live"),
            node("leaving", admin_state=DECOMMISSIONING),
            node("entering", admin_state=ENTERING),
        )
        assert self.sources(view) == {"leaving", "entering"}

    def test_a_leaving_node_that_is_busy_is_one_of_many(self) -> None:
        view = block(
            3, node("live"), node("leaving", admin_state=DECOMMISSIONING, transfers_queued=2)
        )
        assert self.sources(view) == {"live", "leaving"}

    def test_limits(self) -> None:
        busy, swamped = node("busy", transfers_queued=2), node("swamped", transfers_queued=4)
        assert self.sources(block(3, busy, node("idle"))) == {"idle"}
        assert self.sources(block(3, busy)) == {"none"}
        assert self.sources(block(3, busy, swamped), Priority.HIGHEST) == {"busy"}
        assert self.sources(block(3, swamped), Priority.HIGHEST) == {"none"}
        leaving = node("leaving", admin_state=DECOMMISSIONING, transfers_queued=4)
        assert self.sources(block(3, leaving)) == {"none"}

    def test_a_decommissioned_node_if_there_is_nobody_else(self) -> None:
        left = node("left", admin_state=DECOMMISSIONED)
        assert self.sources(block(3, left)) == {"left"}
        assert self.sources(block(3, left, node("live"))) == {"live"}
        # A live one that is busy now will have time later.
        assert self.sources(block(3, left, node("busy", transfers_queued=2))) == {"none"}

    def test_never_what_cannot_be_read(self) -> None:
        view = block(
            3,
            corrupt(node("corrupt")),
            outdated(node("outdated")),
            replica(node("excess"), is_excess=True),
            node("dead", is_alive=False),
            node("away", admin_state=IN_MAINTENANCE),
        )
        assert self.sources(view, Priority.HIGHEST) == {"none"}

    def test_rather_a_node_that_is_heard_of(self) -> None:
        assert self.sources(block(3, node("stale", is_stale=True), node("fresh"))) == {"fresh"}
        assert self.sources(block(3, node("stale", is_stale=True))) == {"stale"}


@pytest.mark.parametrize("seed", SEEDS)
class TestCopies:
    def test_as_many_as_are_missing(self, seed: int) -> None:
        nodes = nodes_on(a=3, b=3)
        made = plan(block(3, nodes[0]), nodes, seed)
        assert made.priority is Priority.HIGHEST
        assert made.copy is not None
        assert made.copy.source.node is nodes[0]
        assert len({target.node.uuid for target in made.copy.targets} - {"a0"}) == 2
        assert {target.node.rack for target in made.copy.targets} >= {"/b"}
        assert made.note == ""

    def test_not_those_under_way(self, seed: int) -> None:
        nodes = nodes_on(a=2, b=1)
        view = block(3, nodes[0], pending=(on(nodes[1]),))
        made = plan(view, nodes, seed)
        assert made.copy is not None
        assert [target.node.uuid for target in made.copy.targets] == ["b0"]

    def test_never_to_a_node_that_has_one_or_is_deleting_one(self, seed: int) -> None:
        nodes = nodes_on(a=6)
        view = block(
            4,
            nodes[0],
            corrupt(nodes[1]),
            replica(nodes[2], is_excess=True),
            deleting=frozenset(["a3"]),
        )
        made = plan(view, nodes, seed)
        assert made.copy is not None
        assert {target.node.uuid for target in made.copy.targets} == {"a4", "a5"}
        assert made.note.startswith("found 2 of 3 targets")

    def test_to_a_node_whose_storage_failed(self, seed: int) -> None:
        repaired = node("n", storages=(storage("bad", state=StorageState.FAILED), storage("new")))
        other = node("other")
        lost = ReplicaView(repaired, repaired.storages[0])
        made = plan(block(2, other, lost), [repaired, other], seed)
        assert made.copy is not None
        assert [target.storage.storage_id for target in made.copy.targets] == ["new"]

    def test_to_another_rack(self, seed: int) -> None:
        nodes = nodes_on(a=5, b=1)
        made = plan(block(3, *nodes[:3]), nodes, seed)
        assert made.priority is Priority.BADLY_DISTRIBUTED
        assert made.copy is not None
        assert [target.node.uuid for target in made.copy.targets] == ["b0"]

    def test_to_another_rack_or_not_at_all(self, seed: int) -> None:
        nodes = [*nodes_on(a=5), node("b0", "/b", remaining=0)]
        for count in (2, 3):
            made = plan(block(count, *nodes[:count]), nodes, seed)
            assert made.priority is Priority.BADLY_DISTRIBUTED
            assert made.is_empty
            assert "b0:9866 has no room" in made.note

    def test_from_decommissioning_nodes(self, seed: int) -> None:
        nodes = [node("leaving", admin_state=DECOMMISSIONING), *nodes_on(a=3)]
        made = plan(block(1, nodes[0]), nodes, seed)
        assert made.priority is Priority.HIGHEST
        assert made.copy is not None
        assert made.copy.source.uuid == "leaving"
        assert len(made.copy.targets) == 1

    def test_of_the_type_that_is_missing(self, seed: int) -> None:
        disks = [node(f"d{i}") for i in range(3)]
        ssd = node("s", type=StorageType.SSD)
        made = plan(block(3, *disks[:2], policy=ONE_SSD), [*disks, ssd], seed)
        assert made.copy is not None
        assert [target.node for target in made.copy.targets] == [ssd]

    def test_of_another_type_if_there_is_no_room(self, seed: int) -> None:
        nodes = [node("d"), node("full", remaining=0), node("a", type=StorageType.ARCHIVE)]
        made = plan(block(2, nodes[0], policy=HOT), nodes, seed)
        assert made.copy is not None
        assert [target.node.uuid for target in made.copy.targets] == ["a"]

    def test_on_the_rack_of_their_source(self, seed: int) -> None:
        nodes = nodes_on(a=3, b=3, c=3)
        view = block(3, nodes[0], nodes[3])
        made = plan(view, nodes, seed)
        assert made.copy is not None
        assert [target.node.rack for target in made.copy.targets] == [made.copy.source.rack]

    def test_nobody_can_send(self, seed: int) -> None:
        nodes = [node("busy", transfers_queued=4), *nodes_on(a=3)]
        made = plan(block(2, nodes[0]), nodes, seed)
        assert made.is_empty
        assert made.note == "no node with a good replica can send it now"


class TestDeletions:
    def test_on_the_rack_with_several_where_least_is_free(self) -> None:
        nodes = [
            node("a0", "/a", remaining=500),
            node("a1", "/a", remaining=300),
            node("a2", "/a", remaining=400),
            node("b0", "/b", remaining=100),
        ]
        assert uuids(choose_deletions(block(3, *nodes))) == {"a1"}
        assert uuids(choose_deletions(block(2, *nodes))) == {"a1", "a2"}
        assert uuids(choose_deletions(block(1, *nodes))) == {"a1", "a2", "b0"}

    def test_of_three_racks_any_may_go(self) -> None:
        nodes = [
            node(name, f"/{name}", remaining=size) for name, size in [("a", 3), ("b", 1), ("c", 2)]
        ]
        assert uuids(choose_deletions(block(2, *nodes))) == {"b"}

    def test_first_where_nothing_is_heard_from(self) -> None:
        nodes = [node("full", remaining=1), node("silent", is_stale=True), node("other")]
        assert uuids(choose_deletions(block(2, *nodes))) == {"silent"}

    def test_first_of_the_wrong_type(self) -> None:
        nodes = [
            node("d0", remaining=1),
            node("d1", remaining=1),
            node("a0", type=StorageType.ARCHIVE),
            node("a1", type=StorageType.ARCHIVE),
        ]
        assert uuids(choose_deletions(block(2, *nodes, policy=HOT))) == {"a0", "a1"}
        assert uuids(choose_deletions(block(2, *nodes, policy=COLD))) == {"d0", "d1"}

    def test_racks_matter_more_than_types(self) -> None:
        nodes = [
            node("d0", "/a"),
            node("d1", "/a", remaining=1),
            node("only", "/b", type=StorageType.ARCHIVE),
        ]
        assert uuids(choose_deletions(block(2, *nodes, policy=HOT))) == {"d1"}

    def test_a_hint_is_taken_where_it_does_no_harm(self) -> None:
        nodes = nodes_on(a=3, b=1)
        assert uuids(choose_deletions(block(3, *nodes, delete_hint="a2"))) == {"a2"}
        assert "b0" not in uuids(choose_deletions(block(3, *nodes, delete_hint="b0")))
        archive = node("a9", "/a", type=StorageType.ARCHIVE)
        hinted = block(3, *nodes[1:], archive, delete_hint="a2")
        assert uuids(choose_deletions(hinted)) == {"a9"}

    def test_only_certain_ones_count(self) -> None:
        nodes = nodes_on(a=3)
        uncertain = unreported("u")
        assert choose_deletions(block(3, *nodes, uncertain)) == ()
        assert uncertain.uuid not in uuids(choose_deletions(block(2, *nodes, uncertain)))

    def test_only_live_ones_count(self) -> None:
        nodes = nodes_on(a=2)
        view = block(
            2,
            *nodes,
            corrupt(node("corrupt")),
            replica(node("excess"), is_excess=True),
            node("dead", is_alive=False),
            node("leaving", admin_state=DECOMMISSIONING),
            node("away", admin_state=IN_MAINTENANCE),
        )
        assert choose_deletions(view) == ()

    def test_none_while_a_copy_is_made_for_another_rack(self) -> None:
        nodes = nodes_on(a=4, b=1)
        made = plan(block(3, *nodes[:4]), nodes)
        assert made.copy is not None
        assert made.deletions == ()


class TestInvalidations:
    def test_all_when_the_block_is_well(self) -> None:
        nodes = nodes_on(a=5)
        view = block(2, *nodes[:2], *map(corrupt, nodes[2:4]), outdated(nodes[4]))
        assert uuids(choose_invalidations(view)) == {"a2", "a3", "a4"}

    def test_those_that_are_leaving_are_good_until_they_have_left(self) -> None:
        leaving = node("leaving", admin_state=DECOMMISSIONING)
        assert uuids(choose_invalidations(block(2, node("a"), leaving, corrupt(node("c"))))) == {
            "c"
        }

    def test_none_without_a_good_one(self) -> None:
        nodes = nodes_on(a=3)
        for good in ([], [replica(nodes[0], is_excess=True)], [replica(unreported("u"))]):
            view = block(1, *good, corrupt(nodes[1]), outdated(nodes[2]))
            assert choose_invalidations(view) == ()

    def test_until_then_only_the_surplus(self) -> None:
        nodes = nodes_on(a=6)
        assert choose_invalidations(block(3, *nodes[:2], corrupt(nodes[2]))) == ()
        view = block(3, *nodes[:2], *map(corrupt, nodes[2:5]))
        assert len(choose_invalidations(view)) == 2

    def test_until_then_what_an_append_left_behind(self) -> None:
        nodes = nodes_on(a=3)
        view = block(3, nodes[0], corrupt(nodes[1]), outdated(nodes[2]))
        assert uuids(choose_invalidations(view)) == {"a2"}

    def test_never_on_a_storage_that_is_shared(self) -> None:
        shared = node("n", storages=(storage("s", state=StorageState.READ_ONLY_SHARED),))
        assert choose_invalidations(block(1, node("a"), corrupt(shared))) == ()

    def test_a_corrupt_replica_makes_room_if_no_other_node_can(self) -> None:
        nodes = nodes_on(a=3)
        view = block(3, *nodes[:2], corrupt(nodes[2]))
        assert uuids(plan(view, nodes).invalidations) == {"a2"}
        assert plan(view, nodes).copy is None

        with_another = plan(view, [*nodes, node("other")])
        assert with_another.invalidations == ()
        assert with_another.copy is not None

    def test_no_room_is_made_where_it_is_of_no_use(self) -> None:
        nodes = nodes_on(a=2)
        for useless in (
            node("leaving", admin_state=DECOMMISSIONING),
            node("full", remaining=BLOCK_SIZE - 1),
        ):
            assert plan(block(3, *nodes, corrupt(useless)), [*nodes, useless]).is_empty

    def test_room_is_made_once(self) -> None:
        nodes = nodes_on(a=4)
        damaged = [corrupt(each) for each in nodes[1:3]]
        view = block(4, nodes[0], *damaged, deleting=frozenset(["a3"]))
        assert plan(view, nodes).is_empty
        view = block(4, nodes[0], *damaged, pending=(on(nodes[3]),))
        assert plan(view, nodes).is_empty


class TestOneReplicaPerNode:
    """A DataNode told to delete a block deletes it from all its volumes."""

    two = node("two", storages=(storage("s0"), storage("s1")))

    def on_both(self, first: Integrity, second: Integrity, **more: Any) -> list[ReplicaView]:
        s0, s1 = self.two.storages
        return [ReplicaView(self.two, s0, first, **more), ReplicaView(self.two, s1, second)]

    def test_it_counts_once(self) -> None:
        nodes = [self.two, *nodes_on(a=2)]
        view = block(2, *self.on_both(Integrity.GOOD, Integrity.GOOD))
        assert plan(view, nodes).priority is Priority.HIGHEST
        view = block(2, *self.on_both(Integrity.GOOD, Integrity.GOOD), nodes[1])
        assert plan(view, nodes) == BlockPlan()

    @pytest.mark.parametrize("bad", [Integrity.CORRUPT, Integrity.OUTDATED])
    def test_a_good_one_beside_a_bad_one_is_kept(self, bad: Integrity) -> None:
        nodes = [self.two, *nodes_on(a=1)]
        for first, second in [(Integrity.GOOD, bad), (bad, Integrity.GOOD)]:
            assert plan(block(2, *self.on_both(first, second), nodes[1]), nodes) == BlockPlan()

    def test_one_that_is_to_be_deleted_takes_the_other_along(self) -> None:
        nodes = [self.two, node("a"), node("b")]
        excess = self.on_both(Integrity.GOOD, Integrity.GOOD, is_excess=True)
        assert plan(block(2, *excess, nodes[1]), nodes).copy is not None

    def test_one_on_a_failed_volume_does_not_count(self) -> None:
        broken = storage("s0", state=StorageState.FAILED)
        repaired = node("repaired", storages=(broken, storage("s1")))
        other = node("other")
        replicas = [ReplicaView(repaired, each) for each in repaired.storages]
        assert plan(block(2, other, *replicas), [repaired, other]) == BlockPlan()

    def test_a_copy_has_arrived_on_whichever_volume(self) -> None:
        arrived = ReplicaView(self.two, self.two.storages[1])
        pending = (Target(self.two, self.two.storages[0]),)
        nodes = [self.two, *nodes_on(a=3)]
        view = block(3, nodes[1], arrived, pending=pending)
        assert choose_priority(view, ClusterView.of(nodes)) is Priority.LOW_REDUNDANCY


def test_a_block_that_is_well_needs_nothing() -> None:
    cluster = cluster_on(a=3, b=3)
    for seed in SEEDS:
        view = block(3, *cluster.nodes[2:5])
        assert plan_block(view, cluster, Random(seed)) == BlockPlan()


def test_random_choices_differ() -> None:
    nodes = nodes_on(a=8, b=8)
    chosen: Counter[str] = Counter()
    for seed in range(100):
        made = plan(block(2, nodes[0]), nodes, seed)
        assert made.copy is not None
        chosen.update(target.node.uuid for target in made.copy.targets)
    assert len(chosen) == 8
