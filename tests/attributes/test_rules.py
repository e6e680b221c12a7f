"""The rules, one by one, as docs/attributes.md tells them."""

from __future__ import annotations

import pytest

from cairnfs.namesystem.attribute_rules import (
    UNDECIDED,
    AttributeKind,
    Decision,
    Step,
    decisions,
    resolve,
    row_after_move,
    row_after_remove,
    row_after_rollback,
    row_after_unset,
)

LOCAL, PATH, DATA = AttributeKind
RED, BLUE = b"red", b"blue"


def step(
    row: tuple[int, bytes | None] | None = None, *, renamed: int = 0, restored: int = 0
) -> Step:
    return Step(renamed, restored, None if row is None else Decision(*row))


@pytest.mark.parametrize("kind", [PATH, DATA])
@pytest.mark.parametrize(
    ("way", "expected"),
    [
        ([step()], UNDECIDED),
        ([step((1, RED)), step()], (1, RED)),
        ([step((1, RED)), step((2, BLUE))], (2, BLUE)),
        # HDFS would say red: it was set nearer.
        ([step((2, BLUE)), step((1, RED))], (2, BLUE)),
        ([step((2, None)), step((1, RED))], (2, None)),
        ([step((1, RED)), step((3, BLUE)), step((2, RED))], (3, BLUE)),
        # Rolled back after all that was decided above, and before.
        ([step((4, RED)), step((2, BLUE), restored=5), step((1, RED))], (2, BLUE)),
        ([step((4, RED)), step(restored=5), step()], UNDECIDED),
        ([step((6, RED)), step((2, BLUE), restored=5), step((1, RED))], (6, RED)),
    ],
)
def test_the_latest_operation_decides(
    kind: AttributeKind, way: list[Step], expected: tuple[int, bytes | None]
) -> None:
    assert resolve(kind, way) == expected


@pytest.mark.parametrize(
    ("kind", "expected"), [(LOCAL, (1, BLUE)), (PATH, (3, RED)), (DATA, (1, BLUE))]
)
def test_what_was_moved(kind: AttributeKind, expected: tuple[int, bytes]) -> None:
    assert resolve(kind, [step((2, RED)), step((1, BLUE), renamed=3)]) == expected


def test_a_local_value_is_of_its_inode_alone() -> None:
    assert resolve(LOCAL, [step((1, RED)), step()]) == UNDECIDED


def test_a_way_may_begin_at_the_directory_of_a_snapshot() -> None:
    assert resolve(PATH, [step((1, RED)), step()], entering=Decision(2, BLUE)) == (2, BLUE)


def test_every_inode_of_a_way_can_be_asked_for() -> None:
    way = [step((1, RED)), step(), step((2, BLUE)), step(renamed=3)]
    assert list(decisions(PATH, way)) == [(1, RED), (1, RED), (2, BLUE), (3, BLUE)]


def test_a_removal_is_a_row_where_others_inherit_it() -> None:
    assert row_after_remove(LOCAL, 7) is None
    assert row_after_remove(PATH, 7) == row_after_remove(DATA, 7) == (7, None)


def test_unsetting_takes_what_the_parent_has() -> None:
    assert row_after_unset(LOCAL, Decision(1, RED), 7) is None
    assert row_after_unset(PATH, Decision(1, RED), 7) == (7, RED)


def test_a_move_writes_down_who_decided() -> None:
    own = Decision(1, RED)
    assert row_after_move(DATA, own, Decision(2, None)) == (2, None)
    assert row_after_move(DATA, None, UNDECIDED) is None
    assert row_after_move(PATH, own, Decision(2, BLUE)) is own
    assert row_after_move(LOCAL, own, own) is own


def test_a_rollback_writes_down_what_was_decided_then() -> None:
    assert row_after_rollback(Decision(2, None)) == (2, None)
    assert row_after_rollback(UNDECIDED) is None
    assert row_after_rollback(Decision(0, RED)) == (0, RED)  # local values need no TxID
