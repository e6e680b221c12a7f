"""What the replicas of a block agree on: pure, from what their DataNodes have found."""

from __future__ import annotations

import pytest

from cairnfs.datanode.recovery import Found, Plan, plan_cut, plan_recovery
from cairnfs.datanode.replica import Block, ReplicaState
from cairnfs.errors import IOException

FINALIZED, RBW, RWR = ReplicaState.FINALIZED, ReplicaState.RBW, ReplicaState.RWR


def found(state: ReplicaState, length: int) -> Found:
    return Found(Block(1, 1001, length), state)


def test_a_finalized_replica_decides() -> None:
    replicas = [found(RBW, 12), found(FINALIZED, 10), found(RBW, 10), found(RWR, 10)]
    assert plan_recovery(replicas) == Plan(10, [1, 2])


def test_else_it_is_what_all_of_the_best_have() -> None:
    assert plan_recovery([found(RBW, 12), found(RBW, 10), found(RWR, 4)]) == Plan(10, [0, 1])
    assert plan_recovery([found(RWR, 12), found(RWR, 10)]) == Plan(10, [0, 1])


def test_finalized_replicas_that_differ_are_nobody_s_to_decide() -> None:
    with pytest.raises(IOException, match="Inconsistent size"):
        plan_recovery([found(FINALIZED, 10), found(FINALIZED, 8)])


def test_a_cut_goes_on_where_one_that_died_has_left_off() -> None:
    replicas = [found(FINALIZED, 4), found(FINALIZED, 10), found(RBW, 3)]
    assert plan_cut(replicas, 4) == Plan(4, [0, 1])
