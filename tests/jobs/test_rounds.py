"""Rounds of random changes: backups that go on from each other, and a mirror, are equal."""

from __future__ import annotations

import random

import pytest
from tests.client.test_applying import Calls
from tests.jobs.trees import change_at_random, read_tree, write
from tests.snapshots.histories import TOP, History

import cairnfs
from cairnfs.jobs import BatchSize, backup, mirror, restore

pytestmark = [pytest.mark.java, pytest.mark.usefixtures("spark")]

SMALL = BatchSize(items=5)


def run_rounds(
    fs: cairnfs.FileSystem, other: cairnfs.FileSystem, backups: str, seed: int, rounds: int
) -> None:
    history = History(Calls(fs, seed), seed, with_clones=False)  # type: ignore[arg-type]
    draw = random.Random(seed)
    for n in range(rounds):
        history.run(25)
        change_at_random(fs, TOP, draw, 5)
        history.snapshot()
        backup(f"{fs.url}{TOP}", f"s{n}", backups, batch=SMALL)
        mirror(f"{fs.url}{TOP}", f"{other.url}/mirror", batch=SMALL)
        expected = read_tree(fs, f"{TOP}/.snapshot/s{n}", inherited=False)
        assert read_tree(other, "/mirror", inherited=False) == expected
    for n in range(rounds - 1, -1, -2):
        expected = read_tree(fs, f"{TOP}/.snapshot/s{n}", inherited=False)
        restore(backups, f"{other.url}/restored{n}", name=f"s{n}")
        assert read_tree(other, f"/restored{n}", inherited=False) == expected


def test_each_round_is_equal(
    fs: cairnfs.FileSystem, other: cairnfs.FileSystem, backups: str
) -> None:
    run_rounds(fs, other, backups, seed=1, rounds=2)


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", range(2, 5))
def test_ten_rounds_are_equal(
    fs: cairnfs.FileSystem, other: cairnfs.FileSystem, backups: str, seed: int
) -> None:
    run_rounds(fs, other, backups, seed, rounds=10)


def test_a_mirror_moves_what_changed(fs: cairnfs.FileSystem, other: cairnfs.FileSystem) -> None:
    for n in range(20):
        write(fs, f"/data/large/{n}", bytes([n]) * 10_000)
    fs.allow_snapshot("/data")
    source, target = f"{fs.url}/data", f"{other.url}/copies/data"
    first = mirror(source, target)
    assert (first.since, first.copied_files, first.copied_bytes) == (None, 20, 200_000)
    ids = {each.name: each.id for each in other.list_status("/copies/data/large")}

    fs.rename("/data/large", "/data/renamed")
    fs.rename("/data/renamed/1", "/data/between")
    fs.rename("/data/renamed/2", "/data/renamed/1")
    fs.rename("/data/between", "/data/renamed/2")
    write(fs, "/data/renamed/3", b"3" * 100)
    write(fs, "/data/new/file", b"4" * 10)
    fs.delete("/data/renamed/4")
    fs.set_permission("/data/renamed/5", 0o600)
    second = mirror(source, target)
    assert (second.copied_files, second.copied_bytes) == (2, 110)
    assert second.since == first.snapshot
    assert read_tree(other, "/copies/data", inherited=False) == (
        read_tree(fs, "/data", inherited=False)
    )
    now = {each.name: each.id for each in other.list_status("/copies/data/renamed")}
    assert (now["1"], now["2"], now["5"]) == (ids["2"], ids["1"], ids["5"])  # renames as renames
    third = mirror(source, target)
    assert (third.created, third.deleted, third.moved, third.copied_files) == (0, 0, 0, 0)
    assert [each.status.name for each in fs.list_snapshots("/data")] == [third.snapshot]
