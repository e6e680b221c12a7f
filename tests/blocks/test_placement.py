"""Choosing DataNodes for replicas: HDFS's default policy, case by case and at random."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.blocks.builders import BLOCK_SIZE, cluster_on, node, nodes_on, on, storage

from cairnfs.blocks.placement import Placement, choose_storage, choose_targets
from cairnfs.blocks.policies import ALL_SSD, COLD, HOT, ONE_SSD, POLICIES, StoragePolicy
from cairnfs.blocks.records import AdminState, StorageType
from cairnfs.blocks.topology import ClusterView, DataNodeView, Location, StorageState

SEEDS = range(5)


def place(
    cluster: ClusterView | list[DataNodeView], count: int, seed: int = 0, **more: Any
) -> Placement:
    view = ClusterView.of(cluster) if isinstance(cluster, list) else cluster
    more.setdefault("policy", HOT)
    more.setdefault("block_size_bytes", BLOCK_SIZE)
    return choose_targets(view, count, random=Random(seed), **more)


def names(placement: Placement) -> list[str]:
    return [target.node.uuid for target in placement.targets]


def racks(placement: Placement) -> list[str]:
    return [target.node.rack for target in placement.targets]


def changed(nodes: list[DataNodeView], name: str, **changes: Any) -> list[DataNodeView]:
    return [
        msgspec.structs.replace(each, **changes) if each.uuid == name else each for each in nodes
    ]


@pytest.mark.parametrize("seed", SEEDS)
class TestOrder:
    def test_writer_then_another_rack_then_the_same(self, seed: int) -> None:
        cluster = cluster_on(a=4, b=4, c=4)
        placement = place(cluster, 3, seed, writer=cluster.node("a1"))
        assert names(placement)[0] == "a1"
        second, third = racks(placement)[1:]
        assert second == third != "/a"
        assert placement.refusals == ()

    def test_a_client_on_no_datanode_gets_its_rack(self, seed: int) -> None:
        placement = place(cluster_on(a=2, b=2, c=2), 3, seed, writer=Location("/b"))
        assert racks(placement)[0] == "/b"
        assert len(set(racks(placement))) == 2

    def test_a_client_from_nowhere_gets_any(self, seed: int) -> None:
        placement = place(cluster_on(a=2, b=2, c=2), 3, seed)
        first, second, third = racks(placement)
        assert first != second == third

    def test_many_replicas_are_spread(self, seed: int) -> None:
        cluster = cluster_on(a=6, b=6, c=6)
        placement = place(cluster, 8, seed, writer=cluster.node("a0"))
        assert max(Counter(racks(placement)).values()) <= (8 - 1) // 3 + 2

    def test_one_rack_takes_all_if_there_is_no_other(self, seed: int) -> None:
        cluster = cluster_on(a=3)
        assert sorted(names(place(cluster, 3, seed, writer=cluster.node("a1")))) == [
            "a0",
            "a1",
            "a2",
        ]

    def test_a_full_writer_s_rack_takes_its_place(self, seed: int) -> None:
        nodes = [node("full", "/a", remaining=BLOCK_SIZE - 1), *nodes_on(a=1, b=2)]
        placement = place(nodes, 3, seed, writer=nodes[0])
        assert names(placement)[0] == "a0"
        assert set(racks(placement)[1:]) == {"/b"}

    def test_the_second_stays_on_the_rack_if_no_other_has_room(self, seed: int) -> None:
        nodes = [*nodes_on(a=3), node("full", "/b", remaining=0)]
        # One of two racks must not hold all three: better one replica too few.
        assert set(racks(place(nodes, 3, seed, writer=nodes[0]))) == {"/a"}
        assert len(place(nodes, 3, seed, writer=nodes[0]).targets) == 2

    def test_copies_go_off_the_rack_of_two(self, seed: int) -> None:
        cluster = cluster_on(a=3, b=3)
        existing = [on(cluster.nodes[0]), on(cluster.nodes[1])]
        placement = place(
            cluster, 1, seed, writer=cluster.nodes[0], existing=existing, is_new_block=False
        )
        assert racks(placement) == ["/b"]

    def test_copies_stay_on_the_rack_of_their_source(self, seed: int) -> None:
        cluster = cluster_on(a=3, b=3, c=3)
        existing = [on(each) for each in (cluster.nodes[0], cluster.nodes[3])]
        for source, rack in [(cluster.nodes[0], "/a"), (cluster.nodes[3], "/b")]:
            placement = place(
                cluster, 1, seed, writer=source, existing=existing, is_new_block=False
            )
            assert racks(placement) == [rack]
        # To a pipeline of a client that is no DataNode, the first node is the source.
        placement = place(
            cluster, 1, seed, writer=Location("/c"), existing=existing, is_new_block=False
        )
        assert racks(placement) == ["/a"]

    def test_the_third_is_on_the_first_s_rack_if_the_second_s_is_full(self, seed: int) -> None:
        nodes = [*nodes_on(a=3, b=1, c=3)]
        existing = [on(nodes[0]), on(nodes[3])]
        assert racks(place(nodes, 1, seed, existing=existing)) == ["/a"]

    def test_the_pipeline_crosses_racks_once(self, seed: int) -> None:
        cluster = cluster_on(a=5, b=5)
        placement = place(cluster, 5, seed, writer=cluster.node("b3"))
        assert racks(placement) == sorted(racks(placement), reverse=True)


class TestRefusals:
    @pytest.mark.parametrize(
        ("changes", "reason"),
        [
            ({"admin_state": AdminState.DECOMMISSION_INPROGRESS}, "is decommissioning"),
            ({"admin_state": AdminState.DECOMMISSIONED}, "is decommissioned"),
            ({"admin_state": AdminState.ENTERING_MAINTENANCE}, "is entering maintenance"),
            ({"admin_state": AdminState.IN_MAINTENANCE}, "is in maintenance"),
            ({"storages": ()}, "has no room for 128 bytes on DISK"),
            ({"storages": (storage("s", remaining=127),)}, "has no room for 128 bytes on DISK"),
            (
                {"storages": (storage("s", scheduled_bytes=100 * BLOCK_SIZE - 127),)},
                "has no room for 128 bytes on DISK",
            ),
            (
                {"storages": (storage("s", state=StorageState.FAILED),)},
                "has no room for 128 bytes on DISK",
            ),
            (
                {"storages": (storage("s", state=StorageState.READ_ONLY_SHARED),)},
                "has no room for 128 bytes on DISK",
            ),
            ({"xceivers": 100}, "is too busy: 100 transfers, more than 66.7"),
        ],
    )
    def test_a_node_that_is_never_chosen(self, changes: dict[str, Any], reason: str) -> None:
        nodes = changed(nodes_on(a=3), "a1", **changes)
        for seed in SEEDS:
            placement = place(nodes, 3, seed)
            assert sorted(names(placement)) == ["a0", "a2"]
            assert [each.reason for each in placement.refusals] == [reason]
            assert placement.explain().startswith(f"found 2 of 3 targets: a1:9866 {reason}")

    def test_a_dead_node_is_not_even_looked_at(self) -> None:
        placement = place(changed(nodes_on(a=3), "a1", is_alive=False), 3)
        assert sorted(names(placement)) == ["a0", "a2"]
        assert placement.refusals == ()

    def test_the_writer_s_node_is_taken_however_busy(self) -> None:
        nodes = changed(nodes_on(a=3), "a1", xceivers=100)
        assert names(place(nodes, 3, writer=nodes[1]))[0] == "a1"

    def test_a_few_transfers_make_no_node_busy(self) -> None:
        nodes = changed(nodes_on(a=3), "a1", xceivers=8)
        assert len(place(nodes, 3).targets) == 3

    def test_stale_nodes_only_if_there_are_no_others(self) -> None:
        nodes = changed(nodes_on(a=2, b=2), "a1", is_stale=True)
        for seed in SEEDS:
            assert "a1" not in names(place(nodes, 3, seed))
            assert sorted(names(place(nodes, 4, seed))) == ["a0", "a1", "b0", "b1"]
        assert place(nodes, 4).refusals == ()

    def test_most_nodes_being_stale_is_no_reason(self) -> None:
        nodes = [node(f"n{i}", is_stale=i > 0) for i in range(6)]
        chosen = Counter(name for seed in range(200) for name in names(place(nodes, 2, seed)))
        assert min(chosen[each.uuid] for each in nodes) > 30

    def test_a_copy_goes_to_a_stale_node_only_if_there_is_no_other(self) -> None:
        nodes = [node(f"n{i}", is_stale=i > 1) for i in range(6)]
        for seed in SEEDS:
            found = place(nodes, 1, seed, existing=[on(nodes[0])], is_new_block=False)
            assert names(found) == ["n1"]
            found = place(nodes, 2, seed, existing=[on(nodes[0])], is_new_block=False)
            assert len(found.targets) == 2

    def test_a_long_explanation_is_cut(self) -> None:
        nodes = [node(f"n{i}", remaining=0) for i in range(15)]
        text = place(nodes, 2).explain()
        assert text.startswith("found 0 of 2 targets: n")
        assert text.endswith("; and 5 more were refused; no room on DISK, ARCHIVE")

    def test_nothing_to_choose_from(self) -> None:
        assert place([], 3).targets == ()
        assert place(cluster_on(a=3), 0).targets == ()
        assert place(cluster_on(a=3), 3).explain() == "found 3 of 3 targets"


class TestExcludedAndFavored:
    def test_excluded_nodes(self) -> None:
        for seed in SEEDS:
            placement = place(cluster_on(a=2, b=2), 3, seed, excluded={"a0", "gone"})
            assert sorted(names(placement)) == ["a1", "b0", "b1"]

    def test_favored_nodes_first(self) -> None:
        for seed in SEEDS:
            cluster = cluster_on(a=5, b=5, c=5)
            placement = place(
                cluster, 3, seed, favored=["c1", "c2", "gone"], writer=cluster.node("a0")
            )
            assert set(names(placement)) == {"a0", "c1", "c2"}

    def test_favored_nodes_do_not_fill_a_rack(self) -> None:
        for seed in SEEDS:
            placement = place(cluster_on(a=5, b=5), 3, seed, favored=["a1", "a2", "a3"])
            assert Counter(racks(placement)) == {"/a": 2, "/b": 1}

    def test_a_favored_node_that_will_not_do_is_no_failure(self) -> None:
        nodes = changed(nodes_on(a=3, b=3), "a0", admin_state=AdminState.DECOMMISSIONED)
        placement = place(nodes, 3, favored=["a0", "b0"], excluded={"b0"})
        assert len(placement.targets) == 3
        assert not {"a0", "b0"} & set(names(placement))

    def test_no_local_write(self) -> None:
        for seed in SEEDS:
            cluster = cluster_on(a=2, b=2)
            writer = cluster.node("a0")
            placement = place(cluster, 3, seed, writer=writer, no_local_write=True)
            assert len(placement.targets) == 3
            assert "a0" not in names(placement)
            # With nobody to take its place, it is local after all.
            placement = place(cluster, 4, seed, writer=writer, no_local_write=True)
            assert names(placement)[0] == "a0"

    def test_no_local_write_by_a_client_that_is_no_datanode(self) -> None:
        placement = place(cluster_on(a=3), 3, writer=Location("/a"), no_local_write=True)
        assert len(placement.targets) == 3


def on_types(placement: Placement) -> list[str]:
    return sorted(target.storage.type.name for target in placement.targets)


class TestStorageTypes:
    @staticmethod
    def mixed(*, ssds: int, disks: int, archives: int = 0) -> list[DataNodeView]:
        return [
            *(node(f"s{i}", f"/{i % 2}", type=StorageType.SSD) for i in range(ssds)),
            *(node(f"d{i}", f"/{i % 2}", type=StorageType.DISK) for i in range(disks)),
            *(node(f"a{i}", f"/{i % 2}", type=StorageType.ARCHIVE) for i in range(archives)),
        ]

    @pytest.mark.parametrize("seed", SEEDS)
    @pytest.mark.parametrize(
        ("policy", "ssds", "disks", "archives", "expected"),
        [
            (HOT, 4, 4, 4, ["DISK"] * 3),
            (HOT, 4, 0, 4, []),
            (HOT, 4, 2, 4, ["DISK"] * 2),
            (COLD, 4, 4, 4, ["ARCHIVE"] * 3),
            (ALL_SSD, 4, 4, 0, ["SSD"] * 3),
            (ALL_SSD, 0, 4, 0, ["DISK"] * 3),
            (ALL_SSD, 1, 4, 0, ["DISK", "DISK", "SSD"]),
            (ONE_SSD, 4, 4, 0, ["DISK", "DISK", "SSD"]),
            (ONE_SSD, 0, 4, 0, ["DISK"] * 3),
            (ONE_SSD, 4, 0, 0, ["SSD"] * 3),
        ],
    )
    def test_policies_and_fallbacks(
        self,
        policy: StoragePolicy,
        ssds: int,
        disks: int,
        archives: int,
        expected: list[str],
        seed: int,
    ) -> None:
        nodes = self.mixed(ssds=ssds, disks=disks, archives=archives)
        assert on_types(place(nodes, 3, seed, policy=policy)) == expected

    def test_copies_have_other_fallbacks_than_new_blocks(self) -> None:
        nodes = self.mixed(ssds=0, disks=1, archives=4)
        existing = [on(nodes[0])]
        assert place(nodes, 2, existing=existing).targets == ()
        placement = place(nodes, 2, existing=existing, is_new_block=False)
        assert on_types(placement) == ["ARCHIVE", "ARCHIVE"]

    def test_what_is_unavailable_is_explained(self) -> None:
        placement = place(self.mixed(ssds=3, disks=0), 3)
        assert placement.explain() == "found 0 of 3 targets: no room on DISK, ARCHIVE"


class TestRoom:
    def test_the_storage_with_most_room(self) -> None:
        view = node(
            "n",
            storages=(
                storage("small", remaining=200),
                storage("promised", remaining=900, scheduled_bytes=800),
                storage("best", remaining=500),
                storage("ssd", StorageType.SSD),
            ),
        )
        chosen = choose_storage(view, StorageType.DISK, 128)
        assert chosen is not None
        assert chosen.storage_id == "best"

    def test_small_remainders_do_not_add_up(self) -> None:
        view = node("n", storages=tuple(storage(f"{i}", remaining=100) for i in range(9)))
        assert choose_storage(view, StorageType.DISK, 128) is None

    def test_promises_count_against_all_storages_of_the_type(self) -> None:
        storages = (storage("a", remaining=200, scheduled_bytes=200), storage("b", remaining=128))
        view = node("n", storages=storages)
        assert choose_storage(view, StorageType.DISK, 128) is not None
        assert choose_storage(view, StorageType.DISK, 129) is None


@st.composite
def any_node(draw: st.DrawFn, number: int) -> DataNodeView:
    storages = tuple(
        storage(
            f"{number}-{i}",
            draw(st.sampled_from([StorageType.DISK, StorageType.SSD, StorageType.ARCHIVE])),
            remaining=draw(st.sampled_from([0, 100, 200, 10_000])),
            scheduled_bytes=draw(st.sampled_from([0, 0, 100])),
            state=draw(st.sampled_from([StorageState.NORMAL] * 3 + list(StorageState))),
        )
        for i in range(draw(st.integers(0, 3)))
    )
    return node(
        f"n{number}",
        f"/{draw(st.sampled_from('abc'))}",
        storages=storages,
        admin_state=draw(st.sampled_from([AdminState.NORMAL] * 5 + list(AdminState))),
        is_alive=draw(st.sampled_from([True, True, True, False])),
        is_stale=draw(st.booleans()),
        xceivers=draw(st.sampled_from([0, 1, 5, 50])),
    )


@given(st.data(), st.integers(0, 5), st.booleans(), st.booleans(), st.integers())
def test_no_node_twice_nor_excluded_nor_leaving_nor_full(
    data: st.DataObject, count: int, is_new: bool, no_local_write: bool, seed: int
) -> None:
    nodes = [data.draw(any_node(i)) for i in range(data.draw(st.integers(0, 12)))]
    some = st.lists(st.sampled_from(nodes), unique=True, max_size=3) if nodes else st.just([])
    excluded = {each.uuid for each in data.draw(some)}
    existing = [on(each) for each in data.draw(some) if each.storages]
    writer = data.draw(st.sampled_from([None, Location("/a"), *nodes]))
    placement = place(
        nodes,
        count,
        seed,
        policy=data.draw(st.sampled_from(POLICIES)),
        writer=writer,
        excluded=excluded,
        existing=existing,
        favored=[each.uuid for each in data.draw(some)],
        is_new_block=is_new,
        no_local_write=no_local_write,
    )
    chosen = names(placement)
    assert len(chosen) == len(set(chosen)) <= count
    assert not set(chosen) & (excluded | {target.node.uuid for target in existing})
    for target in placement.targets:
        assert target.node.is_alive
        assert target.node.is_in_service
        assert target.storage in target.node.storages
        assert target.storage.state is StorageState.NORMAL
        assert target.storage.remaining_bytes >= BLOCK_SIZE
    assert not set(chosen) & {refusal.node.uuid for refusal in placement.refusals}


@given(
    st.lists(st.integers(1, 4), min_size=2, max_size=5),
    st.integers(0, 19),
    st.booleans(),
    st.integers(),
)
def test_three_replicas_of_a_healthy_cluster_are_on_two_racks(
    sizes: list[int], writer: int, is_datanode: bool, seed: int
) -> None:
    nodes = nodes_on(**{f"r{i}x": size for i, size in enumerate(sizes)})
    local = nodes[writer % len(nodes)]
    placement = place(nodes, 3, seed, writer=local if is_datanode else Location(local.rack))
    on_rack = Counter(racks(placement))
    assert len(placement.targets) == min(3, len(nodes))
    # A third rack only where neither the second's nor the first's has another node.
    if all(size > 1 for size in sizes):
        assert len(on_rack) == 2
    assert len(on_rack) >= 2
    if is_datanode:
        assert names(placement)[0] == local.uuid
    else:
        assert racks(placement)[0] == local.rack


def test_all_healthy_nodes_are_chosen_equally_often() -> None:
    cluster = cluster_on(a=4, b=4, c=4)
    chosen = Counter(name for seed in range(2000) for name in names(place(cluster, 3, seed)))
    assert max(chosen.values()) < 1.3 * min(chosen[each.uuid] for each in cluster.nodes)


class CountingRandom(Random):
    """Counts how often it is asked."""

    asked = 0

    def random(self) -> float:
        self.asked += 1
        return super().random()


def test_a_choice_among_thousands_looks_at_few() -> None:
    cluster = ClusterView.of(
        node(f"n{i}", f"/rack{i % 100}", is_stale=i % 7 == 0) for i in range(5_000)
    )
    random = CountingRandom(0)
    for writer in cluster.nodes[::25]:
        placement = choose_targets(
            cluster, 3, policy=HOT, block_size_bytes=BLOCK_SIZE, random=random, writer=writer
        )
        assert len(placement.targets) == 3
    assert random.asked < 200 * 6
