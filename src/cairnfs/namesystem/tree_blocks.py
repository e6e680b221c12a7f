"""The blocks of many files of a tree, and the replicas of many blocks.

Which blocks a file has is of the moment that is read.  Where their replicas are is of now: no
history is kept of that, and none is needed, since a block is found wherever it is by now.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from cairnfs.blocks.holding import newest_row
from cairnfs.blocks.records import Block, BlockState, Invalidation, Replica, ReplicaStatus
from cairnfs.namesystem.inodes import Inode
from cairnfs.namesystem.tree_parts import KnownReplica, ReplicaState
from cairnfs.store.base import Scan, Stored, whole_scan
from cairnfs.store.schema import Table
from cairnfs.transaction.rows import PastRows
from cairnfs.transaction.transaction import Transaction

_BAD = {
    ReplicaStatus.CORRUPT: ReplicaState.CORRUPT,
    ReplicaStatus.UNFINISHED: ReplicaState.UNFINISHED,
}


def read_blocks(rows: PastRows, files: Iterable[tuple[int, Inode]]) -> dict[int, list[Stored]]:
    """The blocks of files, in order, by the numbers that the files are given with."""
    wanted: dict[int, dict[int, Scan]] = defaultdict(dict)  # by TxIDs, then by those numbers
    for n, file in files:
        if file.is_virtual:
            assert file.origin is not None
            wanted[file.origin.txid][n] = whole_scan(Table.BLOCKS, file.origin.content_id)
        else:
            wanted[rows.txid][n] = whole_scan(Table.BLOCKS, file.id)
    blocks: dict[int, list[Stored]] = {}
    for txid, scans in wanted.items():
        found = rows.at(txid).stored(list(scans.values()))
        blocks.update(zip(scans, found, strict=True))
    return blocks


def read_replicas(tx: Transaction, blocks: Iterable[Block]) -> dict[int, list[KnownReplica]]:
    """The replicas of blocks, by their ids."""
    then = {block.id: block for block in blocks}
    tables = (Table.BLOCKS, Table.REPLICAS, Table.INVALIDATIONS)
    tx.need(ids=[(int(table), id) for table in tables for id in then])
    return {block.id: _replicas_of(tx, block) for block in then.values()}


def _replicas_of(tx: Transaction, then: Block) -> list[KnownReplica]:
    found = newest_row(tx, then.id)
    now = then if found is None else found[1]
    replicas = {}
    if now.state is BlockState.UNDER_CONSTRUCTION:
        for target in now.targets:
            replicas[int(target)] = KnownReplica(
                target, now.generation_stamp, now.length_bytes, ReplicaState.WRITING
            )
    replica: Replica
    for key, replica in tx.list_by_id(Table.REPLICAS, then.id):
        state = _BAD.get(replica.status)
        if state is None:
            state = ReplicaState.LIVE if replica.is_good_for(now) else ReplicaState.STALE
        replicas[key[1]] = _known(key[1], replica, state)
    order: Invalidation
    for key, order in tx.list_by_id(Table.INVALIDATIONS, then.id):
        replicas[key[1]] = _known(key[1], order.replica, ReplicaState.EXCESS)
    return list(replicas.values())


def _known(storage: int, replica: Replica, state: ReplicaState) -> KnownReplica:
    return KnownReplica(storage, replica.generation_stamp, replica.length_bytes, state)
