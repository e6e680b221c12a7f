"""What a transaction of the satisfier looks at: so much, each inode once, and all of it."""

from __future__ import annotations

from itertools import pairwise

import pytest
from tests.namesystem.test_quotas_by_type import scan, set_policy

from cairnfs.blocks.placing import PlacementQueue
from cairnfs.namesystem import satisfying
from cairnfs.namesystem.satisfying import Satisfied, get_satisfied, scan_subtree
from cairnfs.store.base import Reading, Scan
from cairnfs.store.schema import Table
from cairnfs.testing.scratch import ScratchClient


def satisfied(fs: ScratchClient) -> Satisfied:
    found: Satisfied = fs.namenode.wait(fs.namenode.namenode.call(get_satisfied))
    return found


def queued(fs: ScratchClient) -> int:
    asked = Scan(Table.PLACEMENTS, PlacementQueue.TO_DO, b"", 1000)
    found = fs.namenode.wait(fs.namenode.namenode.store.read(Reading(scans=[asked])))
    return len(found.scans[asked])


@pytest.mark.parametrize("blocks_max", [1, 2, 100])
def test_every_inode_counts_once_however_many_blocks_it_has(
    fs: ScratchClient, monkeypatch: pytest.MonkeyPatch, blocks_max: int
) -> None:
    monkeypatch.setattr(satisfying, "SCAN_PAGE", 2)
    monkeypatch.setattr(satisfying, "FILE_BLOCKS_MAX", blocks_max)
    monkeypatch.setattr(satisfying, "BLOCKS_PAGE", 2)
    for number, blocks in enumerate((0, 1, 2, 3, 4, 7)):
        fs.write(f"/d/e/f{number}", *[1] * blocks)
    set_policy(fs, "/d", "COLD")
    scan(fs)
    assert queued(fs) == 17
    assert satisfied(fs) == Satisfied(scanned=7, queued=17)  # `e` and six files
    set_policy(fs, "/d/e/f5", "WARM")  # a file by itself
    scan(fs)
    assert satisfied(fs) == Satisfied(scanned=8, queued=24)


def test_a_transaction_queues_a_bounded_number_of_blocks(
    fs: ScratchClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(satisfying, "SCAN_PAGE", 3)
    monkeypatch.setattr(satisfying, "FILE_BLOCKS_MAX", 2)
    monkeypatch.setattr(satisfying, "BLOCKS_PAGE", 6)
    for number in range(8):
        fs.write(f"/d/f{number}", *[1] * (1 + number))
    set_policy(fs, "/d", "COLD")
    namenode, directory = fs.namenode.namenode, fs.info("/d").id
    steps = [0]
    for inode_id in (directory, *(fs.info(f"/d/f{number}").id for number in range(8))):
        is_done = False
        while not is_done:
            is_done = fs.namenode.wait(namenode.call(scan_subtree, inode_id)).is_done
            steps.append(satisfied(fs).queued)
    assert queued(fs) == 36
    assert max(after - before for before, after in pairwise(steps)) <= 6
