"""The scenarios of `test_isolation` go wrong, each of them, once validation is off.

So they would notice if it did not work.  Calls that change the structure are kept apart
by running alone: for them the clock is taken away too (`ClocklessStore`).  Either one of
the two would do against loops, as the last test shows.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from tests.transaction.scenarios import (
    Case,
    changed_while_snapshotted,
    create_while_ancestor_moves,
    create_while_deleted,
    deep_rename_loop,
    delete_while_created,
    fuzzy_read,
    lost_update,
    moved_while_first_set_above,
    moved_while_set_above,
    phantom,
    rename_loop,
    write_skew,
)

from cairnfs.config import Control, NameNodeSettings
from cairnfs.namenode.opening import format_namespace
from cairnfs.store.base import Store
from cairnfs.testing.faults import ClocklessStore, PausingStore
from cairnfs.testing.peers import LocalPeer

Scenario = Callable[[Case], list[str]]


def without_clock(store: Store) -> Store:
    return PausingStore(ClocklessStore(store))


def play(url: str, scenario: Scenario, *, validate: bool, alone: bool) -> list[str]:
    """Play a scenario between two optimistic NameNodes that lack something."""
    asyncio.run(format_namespace(url))
    settings = NameNodeSettings(url, duties=False)
    wrap = PausingStore if alone else without_clock
    with (
        LocalPeer(settings, wrap, validate=validate) as a,
        LocalPeer(settings, wrap, validate=validate) as b,
    ):
        a.call("mkdirs", "/case")
        case = Case(a, b, "/case", Control.OPTIMISTIC, shared=True, alone=alone)
        return scenario(case)


@pytest.mark.parametrize(
    "scenario",
    [
        fuzzy_read,
        phantom,
        lost_update,
        write_skew,
        create_while_deleted,
        create_while_ancestor_moves,
        changed_while_snapshotted,
        moved_while_set_above,
        moved_while_first_set_above,
    ],
    ids=lambda scenario: scenario.__name__,
)
def test_without_validation_it_goes_wrong(postgres_dsn: str, scenario: Scenario) -> None:
    assert play(postgres_dsn, scenario, validate=False, alone=True) != []


@pytest.mark.parametrize(
    "scenario",
    [rename_loop, deep_rename_loop, delete_while_created],
    ids=lambda scenario: scenario.__name__,
)
def test_without_validation_and_clock_it_goes_wrong(postgres_dsn: str, scenario: Scenario) -> None:
    assert play(postgres_dsn, scenario, validate=False, alone=False) != []


@pytest.mark.parametrize("scenario", [rename_loop, deep_rename_loop])
@pytest.mark.parametrize(("validate", "alone"), [(True, False), (False, True)])
def test_either_is_enough_against_loops(
    postgres_dsn: str, scenario: Scenario, validate: bool, alone: bool
) -> None:
    assert play(postgres_dsn, scenario, validate=validate, alone=alone) == []
