"""Plans that are carried out bring a block to its replicas, and then stop."""

from __future__ import annotations

from collections import Counter
from random import Random

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.blocks.builders import node, nodes_on, replica, storage
from tests.blocks.simulation import Simulation

from cairnfs.blocks.policies import HOT
from cairnfs.blocks.records import AdminState
from cairnfs.blocks.replication import Integrity, ReplicaState, ReplicaView, count_replicas
from cairnfs.blocks.topology import DataNodeView

LEAVING = [AdminState.DECOMMISSION_INPROGRESS, AdminState.DECOMMISSIONED]
AWAY = [AdminState.ENTERING_MAINTENANCE, AdminState.IN_MAINTENANCE]


# The machine may be busy: how long an example takes says nothing.
unhurried = settings(deadline=None)


@st.composite
def simulations(draw: st.DrawFn, *, maintenance: bool = False) -> Simulation:
    """A cluster of a few racks, where replicas of every kind are about."""
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    states = [AdminState.NORMAL] * 4 + LEAVING + (AWAY if maintenance else [])
    nodes: dict[str, DataNodeView] = {}
    for rack, size in enumerate(sizes):
        for number in range(size):
            name = f"n{rack}{number}"
            state = draw(st.sampled_from(states))
            nodes[name] = node(name, f"/{rack}", admin_state=state, is_stale=draw(st.booleans()))
    replicas = {
        name: draw(any_replica(nodes[name]))
        for name in draw(st.lists(st.sampled_from(sorted(nodes)), unique=True))
    }
    replication = draw(st.integers(1, 5))
    return Simulation(nodes, replication, HOT, Random(draw(st.integers())), replicas)


@st.composite
def any_replica(draw: st.DrawFn, view: DataNodeView) -> ReplicaView:
    integrity = draw(st.sampled_from([Integrity.GOOD] * 3 + list(Integrity)))
    if draw(st.integers(0, 3)) == 0:
        unreported = (storage(f"{view.uuid}-0", contents_are_stale=True),)
        return ReplicaView(view, unreported[0], integrity)
    return replica(view, integrity, is_excess=draw(st.integers(0, 5)) == 0)


def can_heal(simulation: Simulation) -> bool:
    """There is something to copy, and the racks can hold it, each no more than its share."""
    if not simulation.is_readable:
        return False
    per_rack = Counter(each.rack for each in simulation.nodes.values() if is_serving(each))
    wanted, racks = simulation.replication, len(per_rack)
    share = wanted if racks <= 1 else (wanted - 1) // racks + 2
    if racks > 1 and share == wanted:
        share -= 1
    return sum(min(count, share) for count in per_rack.values()) >= wanted


def is_serving(view: DataNodeView) -> bool:
    return view.is_alive and view.is_in_service


def check_healed(simulation: Simulation) -> None:
    counts = count_replicas(simulation.replicas.values())
    assert counts.live == simulation.replication
    assert counts.corrupt == counts.excess == 0
    racks = {each.rack for each in simulation.live}
    all_racks = {each.rack for each in simulation.nodes.values() if is_serving(each)}
    assert len(racks) >= min(2, simulation.replication, len(all_racks))


@unhurried
@given(simulations())
def test_a_block_gets_its_replicas_and_is_left_alone(simulation: Simulation) -> None:
    simulation.run()
    assert len(simulation.live) <= simulation.replication
    if can_heal(simulation):
        check_healed(simulation)


@unhurried
@given(simulations(maintenance=True))
def test_what_is_in_maintenance_need_not_be_replaced(simulation: Simulation) -> None:
    simulation.run()
    if not can_heal(simulation):
        return
    counts = count_replicas(simulation.replicas.values())
    assert counts.live >= min(1, simulation.replication)
    assert simulation.replication - counts.maintenance <= counts.live <= simulation.replication

    # They come back: then there are exactly as many as there should be.
    for view in list(simulation.nodes.values()):
        if view.admin_state in AWAY:
            back = msgspec.structs.replace(view, admin_state=AdminState.NORMAL)
            simulation.change(back)
    simulation.run()
    assert can_heal(simulation)
    check_healed(simulation)


@unhurried
@given(simulations(), st.lists(st.integers(0, 15), max_size=3))
def test_nodes_that_die_one_after_the_other_take_nothing_along(
    simulation: Simulation, deaths: list[int]
) -> None:
    simulation.replication = max(simulation.replication, 2)
    simulation.run()
    for death in deaths:
        if not can_heal(simulation):
            break
        check_healed(simulation)
        serving = sorted(each.uuid for each in simulation.nodes.values() if is_serving(each))
        dying = simulation.nodes[serving[death % len(serving)]]
        simulation.change(msgspec.structs.replace(dying, is_alive=False))
        assert simulation.live, "one death took the last replica"
        simulation.run()


@unhurried
@given(simulations(), st.data())
def test_nodes_that_leave_are_replaced_before_they_go(
    simulation: Simulation, data: st.DataObject
) -> None:
    simulation.run()
    if not can_heal(simulation):
        return
    for each in data.draw(st.lists(st.sampled_from(simulation.live), unique_by=id, max_size=2)):
        leaving = msgspec.structs.replace(
            simulation.nodes[each.uuid], admin_state=AdminState.DECOMMISSION_INPROGRESS
        )
        simulation.change(leaving)
    simulation.run()
    if can_heal(simulation):
        assert len(simulation.live) == simulation.replication


@pytest.mark.parametrize("replication", [1, 2, 3])
def test_as_many_nodes_as_replicas_heal_after_corruption(replication: int) -> None:
    nodes = nodes_on(a=replication)
    for damaged in range(replication):
        simulation = Simulation(
            {each.uuid: each for each in nodes},
            replication,
            HOT,
            Random(damaged),
            {
                each.uuid: replica(each, Integrity.CORRUPT if i < damaged else Integrity.GOOD)
                for i, each in enumerate(nodes)
            },
        )
        simulation.run()
        assert len(simulation.live) == replication


@unhurried
@given(simulations())
def test_a_new_replication_is_reached(simulation: Simulation) -> None:
    for replication in (4, 1, 3, 2):
        simulation.replication = replication
        simulation.run()
        if can_heal(simulation):
            check_healed(simulation)


def test_a_block_of_which_all_is_corrupt_keeps_what_it_has() -> None:
    nodes = nodes_on(a=2, b=3)
    replicas = {each.uuid: replica(each, Integrity.CORRUPT) for each in nodes[:3]}
    simulation = Simulation({each.uuid: each for each in nodes}, 3, HOT, Random(0), replicas)
    plan = simulation.run()
    assert plan.is_empty
    assert set(simulation.replicas) == set(replicas)
    assert all(each.state is ReplicaState.CORRUPT for each in simulation.replicas.values())
