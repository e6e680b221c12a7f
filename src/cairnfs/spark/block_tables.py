"""The tables `blocks` and `replicas`: what files are made of, and where that is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import pyarrow as pa

from cairnfs.blocks.records import AdminState, Block, BlockState
from cairnfs.namesystem.inodes import Inode
from cairnfs.namesystem.tree_parts import Detail, KnownReplica, KnownStorage, ReplicaState
from cairnfs.spark.tables import Column, of_row
from cairnfs.spark.view_tables import Directory, Storages, view_table

_STATES = {state: state.name.lower().replace("_", " ") for state in BlockState}
_ADMIN_STATES = {
    AdminState.NORMAL: "live",
    AdminState.DECOMMISSION_INPROGRESS: "decommissioning",
    AdminState.DECOMMISSIONED: "decommissioned",
    AdminState.ENTERING_MAINTENANCE: "entering maintenance",
    AdminState.IN_MAINTENANCE: "in maintenance",
}


class BlockRow(NamedTuple):
    """One block of one file, with what is known of its replicas if that is asked for."""

    path: str
    file: Inode
    place: int  # in the file, from 0
    offset_bytes: int
    block: Block
    replicas: Sequence[KnownReplica]
    storages: Storages

    def count(self, state: ReplicaState, *, is_staying: bool = False) -> int:
        """How many of its replicas are so, on DataNodes that are alive, or will also stay."""
        nodes = [
            self.storages.get(replica.storage)
            for replica in self.replicas
            if replica.state is state
        ]
        return sum(
            node is not None
            and node.is_alive
            and (not is_staying or node.admin_state is AdminState.NORMAL)
            for node in nodes
        )


class ReplicaRow(NamedTuple):
    """One replica of one block, and where it is if that is still known."""

    block: BlockRow
    replica: KnownReplica
    storage: KnownStorage | None


def _blocks_of(directory: Directory, storages: Storages) -> Iterator[BlockRow]:
    known = directory.listed.replicas
    for n, blocks in directory.listed.blocks.items():
        offset_bytes = 0
        for index, block in enumerate(blocks):
            yield BlockRow(
                directory.paths[n],
                directory.inodes[n],
                index,
                offset_bytes,
                block,
                known.get(block.id, ()),
                storages,
            )
            offset_bytes += block.length_bytes


def _blocks(directory: Directory, storages: Storages) -> list[BlockRow]:
    return list(_blocks_of(directory, storages))


def _replicas(directory: Directory, storages: Storages) -> list[ReplicaRow]:
    return [
        ReplicaRow(row, replica, storages.get(replica.storage))
        for row in _blocks_of(directory, storages)
        for replica in row.replicas
    ]


def _datanode_state(row: ReplicaRow) -> str | None:
    storage = row.storage
    if storage is None:
        return None
    return _ADMIN_STATES[storage.admin_state] if storage.is_alive else "dead"


_BLOCK_COLUMNS: dict[str, Column[list[BlockRow]]] = {
    "path": of_row(pa.string(), lambda row: row.path),
    "file_id": of_row(pa.int64(), lambda row: row.file.id),
    "index": of_row(pa.int32(), lambda row: row.place),
    "offset": of_row(pa.int64(), lambda row: row.offset_bytes),
    "length": of_row(pa.int64(), lambda row: row.block.length_bytes),
    "block_id": of_row(pa.int64(), lambda row: row.block.id),
    "generation_stamp": of_row(pa.int64(), lambda row: row.block.generation_stamp),
    "state": of_row(pa.string(), lambda row: _STATES[row.block.state]),
    "replication": of_row(pa.int32(), lambda row: row.file.replication),
    "replica_length": of_row(pa.int64(), lambda row: row.block.replica_bytes),
    "live_replicas": of_row(pa.int32(), lambda row: row.count(ReplicaState.LIVE)),
    "staying_replicas": of_row(
        pa.int32(), lambda row: row.count(ReplicaState.LIVE, is_staying=True)
    ),
    "corrupt_replicas": of_row(pa.int32(), lambda row: row.count(ReplicaState.CORRUPT)),
    "excess_replicas": of_row(pa.int32(), lambda row: row.count(ReplicaState.EXCESS)),
}
_OF_REPLICAS = dict.fromkeys(
    ("live_replicas", "staying_replicas", "corrupt_replicas", "excess_replicas"), Detail.REPLICAS
)

BLOCKS = view_table("blocks", _BLOCK_COLUMNS, _blocks, Detail.BLOCKS, _OF_REPLICAS)

_REPLICA_COLUMNS: dict[str, Column[list[ReplicaRow]]] = {
    "path": of_row(pa.string(), lambda row: row.block.path),
    "file_id": of_row(pa.int64(), lambda row: row.block.file.id),
    "index": of_row(pa.int32(), lambda row: row.block.place),
    "block_id": of_row(pa.int64(), lambda row: row.block.block.id),
    "generation_stamp": of_row(pa.int64(), lambda row: row.replica.generation_stamp),
    "length": of_row(pa.int64(), lambda row: row.replica.length_bytes),
    "state": of_row(pa.string(), lambda row: row.replica.state.name.lower()),
    "datanode": of_row(pa.string(), lambda row: row.storage and row.storage.datanode),
    "datanode_uuid": of_row(pa.string(), lambda row: row.storage and row.storage.uuid),
    "datanode_state": of_row(pa.string(), _datanode_state),
    "rack": of_row(pa.string(), lambda row: row.storage and row.storage.rack),
    "storage": of_row(pa.string(), lambda row: row.storage and row.storage.id),
    "storage_type": of_row(pa.string(), lambda row: row.storage and row.storage.type.name),
}

REPLICAS = view_table("replicas", _REPLICA_COLUMNS, _replicas, Detail.REPLICAS)
