"""How much of the work that deletions and roll-backs have left is still to be done, and by whom.

Counted up to a bound, so that asking costs little however much there is.
"""

from __future__ import annotations

from cairnfs.namenode.duties import RECLAIM
from cairnfs.namenode.namenode import NameNode
from cairnfs.namesystem.snapshot_records import Removal
from cairnfs.store.base import Reading, Row, Scan
from cairnfs.store.schema import PAIR, Table
from cairnfs.transaction.records import decode
from cairnfs.wire.proto import cairn_pb2

BOUND = 1000


async def measure_work(namenode: NameNode) -> cairn_pb2.GetSnapshotWorkResponseProto:
    # What is done here becomes work of the other two kinds, which are therefore counted later.
    settling = await namenode.duties.reclaiming.count_unsettled(BOUND)
    orphans, removals = (Scan(table, 0, b"", BOUND) for table in (Table.ORPHANS, Table.REMOVALS))
    found = (await namenode.store.read(Reading(scans=[orphans, removals]))).scans
    response = cairn_pb2.GetSnapshotWorkResponseProto(
        deletedTrees=len(found[orphans]),
        deletedSnapshots=len(found[removals]),
        directoriesToSettle=settling,
        percentOfSnapshot=await _percent(namenode, found[removals]),
        bound=BOUND,
    )
    owner = await namenode.membership.owner(RECLAIM)
    if owner is None and namenode.membership.holds(RECLAIM):
        owner = namenode.settings.address
    if owner is not None:
        response.namenode = owner
    return response


async def _percent(namenode: NameNode, removals: list[Row]) -> int:
    """How far it has come with the snapshot that it is at, by transactions."""
    if not removals:
        return 0
    work: Removal = decode(Table.REMOVALS, removals[0].data)
    txid, _ = PAIR.unpack(removals[0].key[2])
    last = await namenode.store.last_txid()
    if work.is_past_done or last <= txid:
        return 99  # what was deleted as a whole is left
    return int(99 * (max(work.until, txid) - txid) / (last - txid))
