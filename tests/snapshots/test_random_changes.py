"""Changes that are applied in their order turn one state into the other, whatever has happened."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.snapshots.histories import (
    NOW,
    OUTSIDE,
    TOP,
    History,
    State,
    apply,
    read_ids,
    read_state,
    where,
    without_root_time,
)
from tests.traces.diffs import contradiction

from cairnfs.namenode.reclaiming import SETTLING_MS
from cairnfs.testing.model.snapshot_diff import turn
from cairnfs.testing.scratch import ScratchClient, scratch_namespace

CLONE = "/clone"
ORIGIN = ":origin"
SEEDS = (*range(8), 78)  # where directories are turned inside out around a roll-back
ROUNDS = 3
STEPS = 14


@pytest.fixture
def fs(tmp_path: Path) -> Iterator[ScratchClient]:
    with scratch_namespace(tmp_path) as client:
        yield client
        empty(client)


def empty(client: ScratchClient) -> None:
    """What was rolled back would need its past as long as it is there."""
    for path in (TOP, CLONE, OUTSIDE):
        if not client.exists(path):
            continue
        if path != OUTSIDE:
            for snapshot in client.list_snapshots(path):
                client.delete_snapshot(path, snapshot.name.decode())
        client.delete(path, recursive=True)
    client.clock.advance(SETTLING_MS)


@pytest.mark.parametrize("seed", SEEDS)
def test_applied_in_order_they_turn_one_state_into_the_other(fs: ScratchClient, seed: int) -> None:
    history = History(fs, seed)
    for _ in range(ROUNDS):
        history.run(STEPS)
        history.snapshot()
    history.run(STEPS)
    for old, new in itertools.permutations((*history.snapshots, NOW), 2):
        check(fs, TOP, old, new, where(old), where(new))


@pytest.mark.parametrize("seed", SEEDS)
def test_of_a_clone_since_it_was_made(fs: ScratchClient, seed: int) -> None:
    origin = History(fs, seed)
    for _ in range(ROUNDS):
        origin.run(STEPS)
        origin.snapshot()
    last = origin.snapshots[-1]
    fs.clone_snapshot(TOP, last, CLONE)
    origin.run(STEPS)
    history = History(fs, seed + 1000, top=CLONE)
    for _ in range(ROUNDS):
        history.run(STEPS)
        history.snapshot()
    for old, new in itertools.permutations((ORIGIN, *history.snapshots, NOW), 2):
        places = [where(last) if name == ORIGIN else where(name, CLONE) for name in (old, new)]
        check(fs, CLONE, old, new, *places)


def test_on_a_shared_store(tmp_path: Path, postgres_dsn: str) -> None:
    """Rows come in several reads there, of which each begins the walk again."""
    with scratch_namespace(tmp_path, url=postgres_dsn) as fs:
        history = History(fs, 1)
        history.run(2 * STEPS)
        history.snapshot()
        history.run(2 * STEPS)
        history.snapshot()
        for old, new in itertools.permutations(history.snapshots, 2):
            check(fs, TOP, old, new, where(old), where(new))
        empty(fs)


@pytest.mark.parametrize("seed", SEEDS)
def test_of_directories_and_files_below(fs: ScratchClient, seed: int) -> None:
    history = History(fs, seed, with_clones=False)  # which have inodes of the same ids
    for _ in range(ROUNDS):
        history.run(STEPS)
        history.snapshot()
    history.run(STEPS)
    names = (*history.snapshots, NOW)
    paths = {name: read_ids(fs, where(name)) for name in names}
    found = 0
    for id, path in paths[NOW].items():
        for old, new in itertools.permutations(names, 2):
            if path != TOP and id in paths[old] and id in paths[new]:
                check(fs, path, old, new, paths[old][id], paths[new][id])
                found += 1
    assert found or history.went_back  # after which what is changed gets another id


def check(fs: ScratchClient, path: str, old: str, new: str, before_at: str, after_at: str) -> None:
    """Of what is at `path` now, and was at the other two in what is compared."""
    before, after = read_state(fs, before_at), read_state(fs, after_at)
    changes = list(fs.snapshot_changes(path, old, new))
    applied = apply(before, after, changes)
    assert without_root_time(applied) == without_root_time(after), f"from {old} to {new}"
    assert list(fs.snapshot_changes(path, old, new, 1)) == changes
    check_report(fs, path, old, new, before, after)


def check_report(
    fs: ScratchClient, path: str, old: str, new: str, before: State, after: State
) -> None:
    """What HDFS would tell leads from one to the other as well."""
    report = []
    for entry in fs.snapshot_diff(path, old, new, 1):
        texts = (entry.path,) if entry.target is None else (entry.path, entry.target)
        report.append(("M+-R"[entry.kind], *(b"/".join(each).decode() for each in texts)))
    assert len(set(report)) == len(report)
    if not old or (new and old > new):  # with the paths of the earlier one again
        report = [turn(entry) for entry in report]
        before, after = after, before
    listings = [as_listing(state) for state in (before, after)]
    assert contradiction(*listings, frozenset(report)) is None, f"from {old} to {new}: {report}"


def as_listing(state: State) -> dict[str, list[object]]:
    """As replayed traces have it; a time alone is not told by HDFS."""
    return {
        "".join(f"/{name.decode()}" for name in names): [*seen._replace(mtime_ms=0)]
        for names, seen in state.items()
    }
