"""How evenly DataNodes are used, who gives to whom, and which blocks may go."""

from __future__ import annotations

from collections import Counter

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.blocks.builders import BLOCK_SIZE, block, node, replica

from cairnfs.blocks.balancing import (
    BalancePlan,
    Exchange,
    Level,
    choose_move,
    plan_balance,
)
from cairnfs.blocks.records import AdminState, BlockState, StorageType
from cairnfs.blocks.replication import BlockView, Integrity, choose_deletions
from cairnfs.blocks.topology import ClusterView, DataNodeView, StorageView

DISK, SSD, RAM_DISK = StorageType.DISK, StorageType.SSD, StorageType.RAM_DISK
GB = 1 << 30


def used(
    name: str,
    percent: float,
    rack: str = "/default-rack",
    *,
    type: StorageType = DISK,
    capacity: int = GB,
    **more: object,
) -> DataNodeView:
    """A node of which so much is used."""
    taken = int(capacity * percent / 100)
    volume = StorageView(f"{name}-0", type, capacity, capacity - taken, used_bytes=taken)
    return msgspec.structs.replace(node(name, rack, storages=(volume,)), **more)


def levels(plan: BalancePlan) -> dict[str, Level]:
    return {share.node.uuid: share.level for each in plan.types for share in each.shares}


def pairs(plan: BalancePlan) -> list[tuple[str, str]]:
    return [(each.source.uuid, each.target.uuid) for each in plan.exchanges]


def test_nodes_within_the_threshold_are_balanced() -> None:
    plan = plan_balance([used("a", 45), used("b", 50), used("c", 55)], 10.0)
    assert plan.left_bytes == 0
    assert plan.exchanges == ()
    assert plan.types[0].mean == pytest.approx(50)


def test_levels_are_those_of_hdfs() -> None:
    plan = plan_balance([used("a", 80), used("b", 55), used("c", 45), used("d", 20)], 10.0)
    assert levels(plan) == {
        "a": Level.OVER_UTILIZED,
        "b": Level.ABOVE_AVERAGE,
        "c": Level.BELOW_AVERAGE,
        "d": Level.UNDER_UTILIZED,
    }
    assert plan.left_bytes == pytest.approx(0.20 * GB, rel=1e-6)
    assert pairs(plan) == [("a", "d")]
    assert plan.moving_bytes == pytest.approx(0.30 * GB, rel=1e-6)


def test_an_empty_node_takes_from_all_that_are_above_the_mean() -> None:
    """Nobody is over-utilized: HDFS's third step."""
    plan = plan_balance([*(used(name, 60) for name in "abcdefgh"), used("new", 0)], 10.0)
    assert levels(plan)["a"] is Level.ABOVE_AVERAGE
    assert {target for _, target in pairs(plan)} == {"new"}
    assert plan.left_bytes > 0
    assert plan.moving_bytes > plan.left_bytes  # to the mean, not just to the threshold


def test_a_full_node_gives_to_those_below_the_mean() -> None:
    plan = plan_balance([used("full", 100), *(used(name, 60) for name in "abcdefgh")], 10.0)
    assert {source for source, _ in pairs(plan)} == {"full"}


def test_pairs_in_a_rack_come_first() -> None:
    nodes = [used("a", 90, "/1"), used("b", 90, "/2"), used("c", 10, "/2"), used("d", 10, "/1")]
    assert sorted(pairs(plan_balance(nodes, 10.0))) == [("a", "d"), ("b", "c")]


def test_those_that_are_not_heard_of_come_last() -> None:
    nodes = [used("a", 90), used("b", 10, is_stale=True), used("c", 20), used("d", 80)]
    plan = plan_balance(nodes, 10.0)
    assert pairs(plan)[0] == ("a", "c")
    nodes = [used("a", 90, is_stale=True), used("b", 10), used("c", 20), used("d", 80)]
    assert pairs(plan_balance(nodes, 10.0))[0] == ("d", "b")


def test_types_are_balanced_by_themselves() -> None:
    nodes = [
        used("a", 90),
        used("b", 10),
        used("x", 90, type=SSD),
        used("y", 10, type=SSD),
        used("m", 90, type=RAM_DISK),
        used("n", 10, type=RAM_DISK),
    ]
    plan = plan_balance(nodes, 10.0)
    assert sorted(pairs(plan)) == [("a", "b"), ("x", "y")]
    assert [each.type for each in plan.types] == [DISK, SSD]


def test_capacities_may_differ() -> None:
    plan = plan_balance([used("small", 50, capacity=GB), used("large", 50, capacity=9 * GB)], 1.0)
    assert plan.left_bytes == 0


def test_only_sources_give_and_who_leaves_takes_no_part() -> None:
    nodes = [
        used("a", 90),
        used("b", 90),
        used("c", 10),
        used("d", 10, admin_state=AdminState.DECOMMISSION_INPROGRESS),
    ]
    assert pairs(plan_balance(nodes, 10.0, {"b"})) == [("b", "c")]
    assert pairs(plan_balance(nodes, 10.0, set())) == []


def test_no_nodes_and_no_capacity() -> None:
    assert plan_balance([], 10.0) == BalancePlan((), ())
    empty = used("a", 0, capacity=0)
    assert plan_balance([empty], 10.0).left_bytes == 0


NODES = st.lists(
    st.tuples(st.integers(0, 100), st.sampled_from(["/1", "/2"]), st.integers(1, 50)),
    min_size=1,
    max_size=12,
)


@given(NODES, st.floats(1, 100))
def test_exchanges_bring_nobody_over_the_mean(
    found: list[tuple[int, str, int]], threshold: float
) -> None:
    nodes = [
        used(f"n{at}", percent, rack, capacity=size * GB)
        for at, (percent, rack, size) in enumerate(found)
    ]
    plan = plan_balance(nodes, threshold)
    given_bytes: Counter[str] = Counter()
    taken_bytes: Counter[str] = Counter()
    for each in plan.exchanges:
        assert each.size_bytes > 0
        given_bytes[each.source.uuid] += each.size_bytes
        taken_bytes[each.target.uuid] += each.size_bytes
    assert not given_bytes.keys() & taken_bytes.keys()
    for balance in plan.types:
        for share in balance.shares:
            after = share.used_bytes - given_bytes[share.node.uuid] + taken_bytes[share.node.uuid]
            mean_bytes = balance.mean * share.capacity_bytes / 100
            low, high = sorted((share.used_bytes, mean_bytes))
            assert low - 1 <= after <= high + 1
    if plan.left_bytes:
        assert plan.exchanges


# Blocks.


def exchange(source: DataNodeView, target: DataNodeView, size: int = GB) -> Exchange:
    return Exchange(source, target, DISK, size)


def choose(view: BlockView, given: Exchange, *others: DataNodeView) -> tuple[str, str] | None:
    nodes = {each.uuid: each for each in (given.source, given.target, *others)}
    nodes |= {each.uuid: each.node for each in view.replicas if each.node.uuid not in nodes}
    move = choose_move(view, ClusterView.of(nodes.values()), given)
    return None if move is None else (move.source.uuid, move.target.node.uuid)


def test_a_block_goes_from_source_to_target() -> None:
    a, b, c, d = (used(name, 50) for name in "abcd")
    assert choose(block(3, a, b, c), exchange(a, d)) == ("a", "d")
    assert choose(block(3, b, c), exchange(a, d), a) is None  # it is not there


def test_a_block_that_is_not_in_order_stays() -> None:
    a, b, c, d, e = (used(name, 50) for name in "abcde")
    given = exchange(a, d)
    assert choose(block(3, a, b), given, c) is None  # it lacks one
    assert choose(block(2, a, b, c), given) is None  # one is too many
    assert choose(block(3, a, b, c, state=BlockState.COMMITTED), given) is None
    assert choose(block(3, a, b, c, deleting=frozenset("e")), given, e) is None
    assert choose(block(3, a, b, d), given) is None  # the target has it
    rotten = replica(c, Integrity.CORRUPT)
    assert choose(block(2, a, b, rotten), given) is None
    unsure = msgspec.structs.replace(
        c, storages=(msgspec.structs.replace(c.storages[0], contents_are_stale=True),)
    )
    assert choose(block(3, a, b, unsure), given) is None


def test_a_target_without_room_or_that_is_not_heard_of_takes_nothing() -> None:
    a, b, c = (used(name, 50) for name in "abc")
    assert choose(block(2, a, b), exchange(a, used("d", 100))) is None
    assert choose(block(2, a, b), exchange(a, used("d", 10, is_stale=True))) is None
    leaving = used("d", 10, admin_state=AdminState.DECOMMISSIONED)
    assert choose(block(2, a, b), exchange(a, leaving)) is None
    assert choose(block(2, a, b), exchange(a, used("s", 10, type=SSD))) is None
    assert choose(block(2, a, b), exchange(a, c)) == ("a", "c")


def test_no_move_takes_the_second_rack_away() -> None:
    a, b = used("a", 50, "/1"), used("b", 50, "/2")
    near, far = used("c", 10, "/1"), used("d", 10, "/2")
    assert choose(block(2, a, b), exchange(a, far)) is None
    assert choose(block(2, a, b), exchange(a, near)) == ("a", "c")


def test_a_block_too_large_for_the_exchange_stays() -> None:
    a, b = used("a", 50), used("b", 10)
    assert choose(block(1, a), exchange(a, b, BLOCK_SIZE // 2 + 1)) == ("a", "b")
    assert choose(block(1, a), exchange(a, b, BLOCK_SIZE // 2)) is None  # it would come back


@given(
    st.lists(st.sampled_from("123"), min_size=2, max_size=7),
    st.integers(1, 4),
    st.integers(0, 6),
    st.integers(0, 6),
)
def test_what_a_move_leaves_is_what_is_deleted(
    racks: list[str], replication: int, source: int, target: int
) -> None:
    """With the new replica and the hint, the old one is the one that goes; racks are kept."""
    nodes = [used(f"n{at}", 50, f"/{rack}") for at, rack in enumerate(racks)]
    cluster = ClusterView.of(nodes)
    holders = nodes[: min(replication, len(nodes))]
    view = block(len(holders), *holders)
    giver, taker = nodes[source % len(nodes)], nodes[target % len(nodes)]
    move = choose_move(view, cluster, exchange(giver, taker))
    if move is None:
        return
    arrived = block(len(holders), *holders, taker, delete_hint=giver.uuid)
    assert [each.uuid for each in choose_deletions(arrived)] == [giver.uuid]
    before = {each.rack for each in holders}
    after = {each.rack for each in holders if each is not giver} | {taker.rack}
    assert len(after) >= min(len(before), 2)
