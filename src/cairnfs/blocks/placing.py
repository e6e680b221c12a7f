"""Blocks whose replicas have to be brought to where their storage policy wants them, as rows.

A block that waits in the queue TO_DO is looked at soon; one that finds no place, in UNSATISFIED,
now and then, and once there is something to do about it is in TO_DO again.  It leaves the table
when its replicas are where they belong.

Invariant: a block that was put here is looked at under the policy that its file has after that.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Sequence

import msgspec

from cairnfs.blocks.records import BlockId
from cairnfs.store.schema import NUMBER, Key, Table
from cairnfs.transaction.records import register
from cairnfs.transaction.transaction import Transaction

_PLACEMENTS = int(Table.PLACEMENTS)


class PlacementQueue(enum.IntEnum):
    """Where a block waits."""

    TO_DO = 0
    UNSATISFIED = 1


class Placement(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A block that may not be where it belongs."""

    block_id: BlockId
    touched: int  # more each time that it is put here
    policy_id: int = 0  # of a file that has no row of its own for the block; see `layers`
    note: str = ""  # why it could not be satisfied; of those in UNSATISFIED


register(Table.PLACEMENTS, Placement, id_of=lambda placement: placement.block_id)


def placement_key(block_id: int, queue: PlacementQueue = PlacementQueue.TO_DO) -> Key:
    return (_PLACEMENTS, queue, NUMBER.pack(block_id))


def put_placements(tx: Transaction, blocks: Iterable[tuple[BlockId, int]]) -> None:
    """Have blocks brought to where they belong; each with the policy of a file without a row."""
    wanted = dict(blocks)
    need_placements(tx, wanted)
    for block_id, policy_id in wanted.items():
        found: list[Placement] = []
        for queue in PlacementQueue:
            known: Placement | None = tx.get(placement_key(block_id, queue))
            if known is not None:
                found.append(known)
                if queue is not PlacementQueue.TO_DO:
                    tx.delete(placement_key(block_id, queue))
        touched = max((tx.now_ms, *(each.touched + 1 for each in found)))
        tx.put(placement_key(block_id), Placement(block_id, touched, policy_id))


def need_placements(tx: Transaction, block_ids: Iterable[BlockId]) -> None:
    """Have the rows of several blocks at hand with one read."""
    tx.need(placement_key(id, queue) for id in block_ids for queue in PlacementQueue)


def find_placement(tx: Transaction, block_id: BlockId) -> Placement | None:
    """What is put down of a block, in whichever queue."""
    for queue in PlacementQueue:
        found: Placement | None = tx.get(placement_key(block_id, queue))
        if found is not None:
            return found
    return None


def settle_placements(
    tx: Transaction,
    done: Sequence[Placement],
    unsatisfied: Sequence[tuple[Placement, str]],
    going_on: Sequence[Placement] = (),
) -> int:
    """Blocks that are where they belong, and some that cannot be, with the reason; how many left.

    Those that were UNSATISFIED, and of which that is true no more, are `going_on`.  Those that
    were put here again since they were looked at stay as they are.
    """
    looked_at = (*done, *(each for each, _ in unsatisfied), *going_on)
    need_placements(tx, [each.block_id for each in looked_at])
    count = 0
    for placement in done:
        for queue in PlacementQueue:
            key = placement_key(placement.block_id, queue)
            if tx.get(key) == placement:
                tx.delete(key)
                count += 1
    for placement, note in unsatisfied:
        noted = msgspec.structs.replace(placement, note=note)
        to_do = placement_key(placement.block_id)
        waiting = placement_key(placement.block_id, PlacementQueue.UNSATISFIED)
        if tx.get(to_do) == placement:
            tx.delete(to_do)
            tx.get(waiting)
            tx.put(waiting, noted)
        elif tx.get(waiting) == placement and noted != placement:
            tx.put(waiting, noted)
    for placement in going_on:
        waiting = placement_key(placement.block_id, PlacementQueue.UNSATISFIED)
        if tx.get(waiting) == placement and tx.get(placement_key(placement.block_id)) is None:
            tx.delete(waiting)
            tx.put(placement_key(placement.block_id), msgspec.structs.replace(placement, note=""))
    return count
