"""Racks, distances, the order in which a reader tries replicas, and views of a cluster."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.blocks.builders import cluster_on, node, replica

from cairnfs.blocks.records import AdminState, StorageType
from cairnfs.blocks.topology import (
    DEFAULT_RACK,
    ClusterView,
    DataNodeView,
    Location,
    Place,
    distance,
    parse_rack,
    sort_by_distance,
)
from cairnfs.errors import IllegalArgumentException

racks = st.lists(st.sampled_from("abc"), min_size=1, max_size=4).map(
    lambda names: f"/{'/'.join(names)}"
)


@pytest.mark.parametrize(
    ("text", "rack"),
    [
        ("/default-rack", "/default-rack"),
        ("/d/r", "/d/r"),
        ("/d/r/", "/d/r"),
        ("//d//r", "/d/r"),
        ("", DEFAULT_RACK),
        ("/", DEFAULT_RACK),
    ],
)
def test_parse_rack(text: str, rack: str) -> None:
    assert parse_rack(text) == rack


def test_a_rack_begins_with_a_slash() -> None:
    with pytest.raises(IllegalArgumentException, match="does not start with /: 'd/r'"):
        parse_rack("d/r")


@pytest.mark.parametrize(
    ("rack", "expected"),
    [
        ("/d1/r1", 2),
        ("/d1/r2", 4),
        ("/d2/r1", 6),
        ("/d2/r3", 6),
        ("/d1", 3),
        ("/d2", 5),
        ("/d1/r1/s1", 3),
    ],
)
def test_distance(rack: str, expected: int) -> None:
    here = node("here", "/d1/r1")
    assert distance(here, node("there", rack)) == expected
    assert distance(node("there", rack), here) == expected


def test_only_a_datanode_is_at_no_distance() -> None:
    assert distance(node("a"), node("a")) == 0
    assert distance(Location(DEFAULT_RACK), Location(DEFAULT_RACK)) == 2
    assert distance(Location(DEFAULT_RACK), node("a")) == 2


@given(racks, racks, racks)
def test_distances_are_a_metric(a: str, b: str, c: str) -> None:
    x, y, z = node("x", a), node("y", b), node("z", c)
    assert distance(x, x) == 0
    assert distance(x, y) == distance(y, x) >= 2
    assert distance(x, z) <= distance(x, y) + distance(y, z)


def order(reader: Place | None, nodes: list[DataNodeView], seed: int = 0) -> list[str]:
    return [each.uuid for each in sort_by_distance(reader, nodes, Random(seed))]


def test_the_own_node_then_the_own_rack_then_others() -> None:
    reader = node("r", "/d1/r1")
    nodes = [node("far", "/d2/r1"), node("near", "/d1/r2"), node("rack", "/d1/r1"), reader]
    for seed in range(20):
        assert order(reader, nodes, seed) == ["r", "rack", "near", "far"]


def test_a_client_that_is_no_datanode_reads_from_its_rack() -> None:
    nodes = [node("far", "/d2/r1"), node("rack", "/d1/r1")]
    assert order(Location("/d1/r1"), nodes) == ["rack", "far"]


@pytest.mark.parametrize("reader", [None, Location("/elsewhere")])
def test_equally_far_nodes_share_the_load(reader: Location | None) -> None:
    nodes = [node(name, f"/{name}") for name in "abc"]
    first = Counter(order(reader, nodes, seed)[0] for seed in range(300))
    assert min(first[name] for name in "abc") > 60


def test_doubtful_nodes_come_last_however_near() -> None:
    local = {"rack": "/r"}
    nodes = [
        node("decommissioned", **local, admin_state=AdminState.DECOMMISSIONED),
        node("decommissioning", **local, admin_state=AdminState.DECOMMISSION_INPROGRESS),
        node("entering", **local, admin_state=AdminState.ENTERING_MAINTENANCE),
        node("stale", **local, is_stale=True),
        node("slow", **local, is_slow=True),
        node("far", "/elsewhere"),
        node("near", **local),
    ]
    expected = ["near", "far", "slow", "stale", "entering", "decommissioning", "decommissioned"]
    for seed in range(20):
        assert order(Location("/r"), nodes, seed) == expected


def test_provided_storage_comes_after_what_the_cluster_has_itself() -> None:
    reader = node("near", "/r", type=StorageType.PROVIDED)
    replicas = [
        replica(reader),
        replica(node("far", "/s")),
        replica(node("old", "/r", is_stale=True)),
    ]
    found = sort_by_distance(reader, replicas, Random(0))
    assert [each.uuid for each in found] == ["far", "near", "old"]


@given(st.lists(st.tuples(racks, st.booleans()), max_size=8), racks, st.integers())
def test_sorting_loses_nothing(places: list[tuple[str, bool]], here: str, seed: int) -> None:
    nodes = [node(f"n{i}", rack, is_stale=stale) for i, (rack, stale) in enumerate(places)]
    found = sort_by_distance(Location(here), nodes, Random(seed))
    assert sorted(each.uuid for each in found) == sorted(each.uuid for each in nodes)
    keys = [(each.is_stale, distance(Location(here), each)) for each in found]
    assert keys == sorted(keys)


class TestClusterView:
    def test_a_heartbeat(self) -> None:
        cluster = cluster_on(a=2, b=2)
        busy = node("b0", "/b", remaining=1, xceivers=40)
        after = cluster.with_node(busy)
        assert after.node("b0") is busy
        assert after.xceivers_max == 20.0
        assert cluster.node("b0") is not busy
        assert cluster.xceivers_max == 8

    @pytest.mark.parametrize(
        ("stale", "avoided"), [(0, False), (1, True), (2, True), (3, False), (4, False)]
    )
    def test_stale_nodes_are_avoided_unless_they_are_most(self, stale: int, avoided: bool) -> None:
        cluster = ClusterView.of(node(f"n{i}", is_stale=i < stale) for i in range(4))
        assert cluster.avoids_stale is avoided

    @given(
        st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9), st.integers(0, 9)), max_size=12)
    )
    def test_changes_are_as_good_as_a_new_view(self, changes: list[tuple[int, int, int]]) -> None:
        cluster = cluster_on(a=2, b=2)
        current = {each.uuid: each for each in cluster.nodes}
        for which, kind, xceivers in changes:
            uuid = ("a0", "a1", "b0", "new")[which]
            rack = f"/{'ab'[kind % 2]}"
            view = node(
                uuid,
                rack,
                xceivers=xceivers,
                is_stale=kind == 3,
                is_alive=kind != 4,
                admin_state=AdminState(kind % 5),
                type=StorageType.SSD if kind == 5 else StorageType.DISK,
            )
            current[uuid] = view
            cluster = cluster.with_node(view)
        fresh = ClusterView.of(current.values())
        assert set(cluster.positions) == set(fresh.positions)
        for uuid in fresh.positions:
            assert cluster.node(uuid) == fresh.node(uuid)
        assert {rack: len(span) for rack, span in cluster.racks.items()} == {
            rack: len(span) for rack, span in fresh.racks.items()
        }
        for field in ("types", "racks_in_service", "in_service", "stale", "xceivers"):
            assert getattr(cluster, field) == getattr(fresh, field)
