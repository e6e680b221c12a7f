"""How far the satisfier is: what is left to be looked at, to be moved, and what finds no place.

Counted up to a bound, so that asking costs little however much there is.
"""

from __future__ import annotations

from collections import Counter

from cairnfs.blocks.placing import Placement, PlacementQueue
from cairnfs.namenode.namenode import NameNode
from cairnfs.namenode.redundancy import REDUNDANCY
from cairnfs.namesystem.satisfying import get_satisfied
from cairnfs.store.base import Reading, Scan
from cairnfs.store.schema import Table
from cairnfs.transaction.records import decode
from cairnfs.wire.proto import cairn_pb2

BOUND = 10_000


async def measure_policy_work(namenode: NameNode) -> cairn_pb2.GetPolicyWorkResponseProto:
    subtrees = Scan(Table.POLICY_SCANS, 0, b"", BOUND)
    to_do, unsatisfied = (Scan(Table.PLACEMENTS, queue, b"", BOUND) for queue in PlacementQueue)
    found = (await namenode.store.read(Reading(scans=[subtrees, to_do, unsatisfied]))).scans
    so_far = await namenode.call(get_satisfied)
    response = cairn_pb2.GetPolicyWorkResponseProto(
        subtrees=len(found[subtrees]),
        blocks=len(found[to_do]),
        unsatisfiedBlocks=len(found[unsatisfied]),
        bound=BOUND,
        scannedInodes=so_far.scanned,
        queuedBlocks=so_far.queued,
        placedBlocks=so_far.placed,
    )
    placements: list[Placement] = [decode(Table.PLACEMENTS, r.data) for r in found[unsatisfied]]
    for note, count in Counter(each.note for each in placements).most_common():
        response.reasons.add(text=note, blocks=count)
    owner = await owner_of_moves(namenode)
    if owner is not None:
        response.namenode = owner
    return response


async def owner_of_moves(namenode: NameNode) -> str | None:
    """The NameNode whose duty it is to have replicas moved."""
    owner = await namenode.membership.owner(REDUNDANCY)
    if owner is None and namenode.membership.holds(REDUNDANCY):
        return namenode.settings.address
    return owner
