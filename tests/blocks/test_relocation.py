"""What is planned for a block whose replicas are not on the types that its policy names."""

from __future__ import annotations

from collections import Counter
from random import Random

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.blocks.builders import BLOCK_SIZE, block, node, replica, storage

from cairnfs.blocks.policies import (
    ALL_SSD,
    COLD,
    HOT,
    ONE_SSD,
    POLICIES,
    WARM,
    choose_excess_types,
    choose_storage_types,
)
from cairnfs.blocks.records import AdminState, BlockState, StorageType
from cairnfs.blocks.relocation import Move, MovePlan, plan_moves
from cairnfs.blocks.replication import BlockView, ReplicaView, choose_deletions, plan_block
from cairnfs.blocks.topology import ClusterView, DataNodeView

DISK, SSD, ARCHIVE = StorageType.DISK, StorageType.SSD, StorageType.ARCHIVE
SEEDS = range(10)


def mixed(name: str, *types: StorageType, rack: str = "/default-rack") -> DataNodeView:
    return node(name, rack, storages=tuple(storage(f"{name}-{each.name}", each) for each in types))


def on_type(view: DataNodeView, type: StorageType) -> ReplicaView:
    found = next(each for each in view.storages if each.type is type)
    return ReplicaView(view, found)


def plan(
    view: BlockView, *nodes: DataNodeView, seed: int = 0, busy: tuple[str, ...] = ()
) -> MovePlan:
    return plan_moves(view, ClusterView.of(nodes), Random(seed), busy)


def types_after(view: BlockView, moves: tuple[Move, ...]) -> Counter[StorageType]:
    types = Counter(each.storage.type for each in view.replicas)
    for move in moves:
        types[move.source.storage.type] -= 1
        types[move.target.storage.type] += 1
    return +types


def test_replicas_on_the_right_types_stay() -> None:
    nodes = [mixed(name, DISK, ARCHIVE) for name in "abc"]
    view = block(3, *(on_type(each, DISK) for each in nodes), policy=HOT)
    assert plan(view, *nodes) == MovePlan()


def test_each_replica_goes_to_another_volume_of_its_node() -> None:
    nodes = [mixed(name, DISK, ARCHIVE) for name in "abc"]
    view = block(3, *(on_type(each, DISK) for each in nodes), policy=COLD)
    found = plan(view, *nodes)
    assert found.misplaced == len(found.moves) == 3
    assert all(move.is_local and move.target.storage.type is ARCHIVE for move in found.moves)
    assert not found.note
    assert not found.has_to_wait


def test_only_as_many_go_as_the_policy_asks_for() -> None:
    nodes = [mixed(name, DISK, SSD, ARCHIVE) for name in "abc"]
    for policy, expected in ((ONE_SSD, {SSD: 1, DISK: 2}), (WARM, {DISK: 1, ARCHIVE: 2})):
        view = block(3, *(on_type(each, DISK) for each in nodes), policy=policy)
        assert types_after(view, plan(view, *nodes).moves) == expected


def test_the_replica_whose_node_has_the_type_is_the_one_that_goes() -> None:
    nodes = [mixed("a", DISK), mixed("b", DISK, SSD), mixed("c", DISK)]
    view = block(3, *(on_type(each, DISK) for each in nodes), policy=ONE_SSD)
    for seed in SEEDS:
        (move,) = plan(view, *nodes, seed=seed).moves
        assert move.is_local
        assert move.source.uuid == "b"


def test_a_replica_goes_to_another_node_one_at_a_time() -> None:
    holders = [mixed(name, DISK) for name in "abc"]
    archives = [mixed(name, ARCHIVE) for name in "xyz"]
    view = block(3, *holders, policy=COLD)
    found = plan(view, *holders, *archives)
    (move,) = found.moves
    assert move.target.node.uuid in "xyz"
    assert found.has_to_wait


def test_what_finds_no_place_is_said_and_stays() -> None:
    nodes = [mixed(name, DISK) for name in "abcd"]
    view = block(3, *nodes[:3], policy=ALL_SSD)
    found = plan(view, *nodes)
    assert found == MovePlan(3, (), "3 of 3 replicas find no place on SSD")


def test_a_full_volume_takes_nothing() -> None:
    full = node("a", storages=(storage("a-0", DISK), storage("a-1", SSD, BLOCK_SIZE - 1)))
    assert plan(block(1, on_type(full, DISK), policy=ALL_SSD), full).note


def test_a_node_that_leaves_takes_nothing() -> None:
    holder = mixed("a", DISK)
    leaving = node("b", type=ARCHIVE, admin_state=AdminState.DECOMMISSION_INPROGRESS)
    assert plan(block(1, holder, policy=COLD), holder, leaving).note


def test_no_move_takes_the_second_rack_away() -> None:
    a, b = mixed("a", DISK, rack="/1"), mixed("b", DISK, rack="/2")
    archive = mixed("x", ARCHIVE, rack="/1")
    view = block(2, a, b, policy=COLD)
    for seed in SEEDS:
        found = plan(view, a, b, archive, seed=seed)
        assert [move.source.uuid for move in found.moves] in ([], ["a"])


def test_copies_and_deletions_come_first() -> None:
    nodes = [mixed(name, DISK, ARCHIVE) for name in "abcd"]
    few = block(3, *(on_type(each, DISK) for each in nodes[:2]), policy=COLD)
    many = block(3, *(on_type(each, DISK) for each in nodes), policy=COLD)
    written = msgspec.structs.replace(few, state=BlockState.UNDER_CONSTRUCTION)
    for view in (few, many, written):
        found = plan(view, *nodes)
        assert found.has_to_wait
        assert not found.moves


def test_a_busy_node_is_asked_later() -> None:
    nodes = [mixed(name, DISK, ARCHIVE) for name in "abc"]
    view = block(3, *(on_type(each, DISK) for each in nodes), policy=COLD)
    found = plan(view, *nodes, busy=("a",))
    assert {move.source.uuid for move in found.moves} == {"b", "c"}
    assert found.has_to_wait
    assert not found.note


def test_one_that_was_reported_on_both_volumes_has_moved() -> None:
    view = mixed("a", DISK, ARCHIVE)
    both = block(1, on_type(view, DISK), on_type(view, ARCHIVE), policy=COLD)
    assert plan(both, view) == MovePlan()


# Whatever the cluster is like.

TYPES = (DISK, SSD, ARCHIVE)


@st.composite
def scenes(draw: st.DrawFn) -> tuple[list[DataNodeView], BlockView]:
    count = draw(st.integers(1, 7))
    nodes = []
    for index in range(count):
        types = draw(st.lists(st.sampled_from(TYPES), min_size=1, max_size=3))
        rooms = [draw(st.sampled_from((0, BLOCK_SIZE, 10 * BLOCK_SIZE))) for _ in types]
        nodes.append(
            node(
                f"n{index}",
                f"/{draw(st.integers(0, 2))}",
                storages=tuple(
                    storage(f"n{index}-{number}", type, room)
                    for number, (type, room) in enumerate(zip(types, rooms, strict=True))
                ),
                is_stale=draw(st.booleans()) and draw(st.booleans()),
            )
        )
    holders = draw(st.lists(st.sampled_from(nodes), unique=True, min_size=1, max_size=count))
    replicas = [ReplicaView(each, draw(st.sampled_from(each.storages))) for each in holders]
    replication = draw(st.integers(1, 4))
    policy = draw(st.sampled_from(POLICIES))
    return nodes, BlockView(BLOCK_SIZE, replication, policy, tuple(replicas))


def distance_to_policy(view: BlockView, types: Counter[StorageType]) -> int:
    lacking = choose_storage_types(
        view.policy, view.replication, types.elements(), is_new_block=False
    )
    excess = choose_excess_types(view.policy, view.replication, types.elements())
    return min(len(lacking), len(excess))


@settings(max_examples=400, deadline=None)
@given(scenes(), st.integers(0, 2**32), st.sets(st.integers(0, 6)))
def test_moves_bring_replicas_to_their_types_and_keep_all_rules(
    scene: tuple[list[DataNodeView], BlockView], seed: int, busy: set[int]
) -> None:
    nodes, view = scene
    cluster = ClusterView.of(nodes)
    before = Counter(each.storage.type for each in view.replicas)
    found = plan_moves(view, cluster, Random(seed), {f"n{index}" for index in busy})

    assert (
        len(found.moves) <= found.misplaced == distance_to_policy(view, before) or not found.moves
    )
    if found.misplaced > len(found.moves):
        assert found.note or found.has_to_wait
    assert distance_to_policy(view, types_after(view, found.moves)) == (
        distance_to_policy(view, before) - len(found.moves)
    )
    holders = {each.uuid for each in view.replicas}
    assert len({move.source.uuid for move in found.moves}) == len(found.moves)
    racks_before = len({each.rack for each in view.replicas})
    for move in found.moves:
        assert move.target.storage.remaining_bytes >= BLOCK_SIZE
        assert move.is_local or move.target.node.uuid not in holders
        assert not {int(move.source.uuid[1:]), int(move.target.node.uuid[1:])} & busy
        racks = {each.rack for each in view.replicas if each is not move.source}
        needed = min(2, view.replication, cluster.racks_in_service, racks_before)
        assert len(racks | {move.target.node.rack}) >= needed
    assert sum(not move.is_local for move in found.moves) <= 1


@settings(max_examples=200, deadline=None)
@given(scenes(), st.integers(0, 2**32))
def test_one_step_after_the_other_every_block_comes_to_rest(
    scene: tuple[list[DataNodeView], BlockView], seed: int
) -> None:
    """Moves, copies and deletions as the NameNode orders them: never fewer than there were."""
    nodes, view = scene
    cluster, random = ClusterView.of(nodes), Random(seed)
    least = min(view.replication, len(view.replicas))
    for _ in range(30):
        healing = plan_block(view, cluster, random)
        found = plan_moves(view, cluster, random)
        if healing.is_empty and not found.moves:
            break
        replicas = list(view.replicas)
        if healing.copy is not None:
            replicas += [ReplicaView(each.node, each.storage) for each in healing.copy.targets]
        for each in healing.deletions:
            replicas.remove(each)
        for move in found.moves:
            arrived = ReplicaView(move.target.node, move.target.storage)
            if move.is_local:
                replicas.remove(move.source)  # its DataNode sees to that
            replicas.append(arrived)
        view = msgspec.structs.replace(view, replicas=tuple(replicas))
        assert len({each.uuid for each in replicas}) >= least
        assert len({each.uuid for each in replicas}) == len(replicas)
    else:
        raise AssertionError("it goes on for ever")
    assert not choose_deletions(view)


def test_a_move_to_another_node_ends_with_the_replica_that_was_on_the_wrong_type_deleted() -> None:
    holders, archive = [mixed(name, DISK) for name in "ab"], mixed("x", ARCHIVE)
    view = block(2, *holders, replica(archive), policy=COLD, delete_hint="b")
    (gone,) = choose_deletions(view)
    assert gone.uuid == "b"


def test_a_block_waits_for_datanodes_that_were_not_heard_of() -> None:
    """One replica is where it belongs; of the others it is not known that they are still there."""
    here = mixed("a", DISK, ARCHIVE)
    away = [msgspec.structs.replace(mixed(name, DISK, ARCHIVE), is_alive=False) for name in "bc"]
    view = block(3, on_type(here, ARCHIVE), *(on_type(each, DISK) for each in away), policy=COLD)
    found = plan(view, here)
    assert not found.moves
    assert found.has_to_wait
