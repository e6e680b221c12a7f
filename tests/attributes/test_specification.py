"""TLC's answers are read right, and the smallest cases are as `make verify` has them."""

from __future__ import annotations

import pytest
from verification.cases import CASES, OURS, WRONG
from verification.tlc import Case, Outcome, check
from verification.verify import describe, result

from cairnfs.java import find_java

pytestmark = pytest.mark.java


def test_our_rules_hold() -> None:
    outcome = check(Case("path", inodes=2, forgetful=True), find_java())
    assert (outcome.generated, outcome.distinct, outcome.depth) == (4450, 318, 8)
    assert outcome.is_expected
    assert result(outcome) == "no error"


def test_a_wrong_rule_is_caught_with_a_shortest_counterexample() -> None:
    (case,) = [each for each in WRONG if each.rule == "no capture"]
    outcome = check(case, find_java())
    assert outcome.is_expected
    assert outcome.violated == "Agreement"
    assert [each.split()[0] for each in outcome.counterexample] == ["create", "set", "rename"]
    assert result(outcome).startswith("caught after 3: create")


def test_a_wrong_rule_that_survives_is_not_expected() -> None:
    survived = Outcome(WRONG[0], 1, 1, 1, None, ())
    assert not survived.is_expected
    assert result(survived) == "NOT CAUGHT"
    failed = Outcome(OURS[0], 1, 1, 1, "Agreement", ("set Root red",))
    assert not failed.is_expected
    assert result(failed) == "Agreement VIOLATED after 1: set Root red"


def test_every_case_has_its_own_line() -> None:
    assert len({describe(case) for case in CASES}) == len(CASES)
    assert not any(case.is_caught for case in OURS)
