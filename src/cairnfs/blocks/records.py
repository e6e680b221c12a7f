"""Blocks, their replicas and the DataNodes that keep them, as rows.

A block's row is found by its file and its place there, or by its id, and belongs to one
file at a time; its id and generation stamp are never given out again.  A replica's row
is found by its storage and its block, or by the block's id: so both "where is this
block" and "what is on this storage" are one read.

Storages are known by number, since a replica's row is the commonest of all.
"""

from __future__ import annotations

import enum
from typing import NewType

import msgspec

from cairnfs.store.base import Key
from cairnfs.store.schema import INDEX, NUMBER, Table
from cairnfs.transaction.records import register

BlockId = NewType("BlockId", int)
GenerationStamp = NewType("GenerationStamp", int)
StorageNumber = NewType("StorageNumber", int)


class BlockState(enum.IntEnum):
    """How far a block is; Hadoop's BlockUCState, recovery aside."""

    UNDER_CONSTRUCTION = 0
    COMMITTED = 1  # its writer has said how long it is
    COMPLETE = 2


class StorageType(enum.IntEnum):
    """What a replica is kept on; the numbers are Hadoop's StorageTypeProto."""

    DISK = 1
    SSD = 2
    ARCHIVE = 3
    RAM_DISK = 4
    PROVIDED = 5
    NVDIMM = 6


class AdminState(enum.IntEnum):
    """What an operator wants of a DataNode; the numbers are Hadoop's."""

    NORMAL = 0
    DECOMMISSION_INPROGRESS = 1
    DECOMMISSIONED = 2
    ENTERING_MAINTENANCE = 3
    IN_MAINTENANCE = 4


class ReplicaStatus(enum.IntEnum):
    """What is known of a replica."""

    GOOD = 0
    CORRUPT = 1  # it fails its checksums, or is not what the block should be
    EXCESS = 2  # its DataNode is told to delete it


class Block(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One block of a file.  Its row's version says since when it is so."""

    id: BlockId
    generation_stamp: GenerationStamp
    length_bytes: int
    state: BlockState
    targets: tuple[StorageNumber, ...] = ()  # the pipeline, while it is written

    def with_length(self, length_bytes: int) -> Block:
        """The same block as its writer reports it: so many bytes were written."""
        return msgspec.structs.replace(self, length_bytes=length_bytes)

    def __str__(self) -> str:
        return f"blk_{self.id}_{self.generation_stamp}"


class Replica(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A finished replica of a block, as its DataNode reported it."""

    block_id: BlockId
    generation_stamp: GenerationStamp
    length_bytes: int
    status: ReplicaStatus = ReplicaStatus.GOOD


class Storage(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A volume of a DataNode."""

    number: StorageNumber
    id: str
    type: StorageType


class DataNode(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A DataNode that has registered at some time; what it does now is in no row."""

    uuid: str
    ip_address: str
    host_name: str
    transfer_port: int
    info_port: int
    ipc_port: int
    info_secure_port: int
    rack: str
    software_version: str
    storages: tuple[Storage, ...] = ()
    admin_state: AdminState = AdminState.NORMAL
    is_dead: bool = False  # its blocks were put down for a check; it has to report them anew

    @property
    def transfer_address(self) -> str:
        return f"{self.ip_address}:{self.transfer_port}"


class Check(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A note that a block may have too few, too many or bad replicas."""

    since_ms: int


class Invalidation(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A replica that its DataNode has to delete: its block is gone, or it is of no use."""

    block_id: BlockId
    generation_stamp: GenerationStamp


register(Table.BLOCKS, Block, id_of=lambda block: block.id)
register(Table.REPLICAS, Replica, id_of=lambda replica: replica.block_id)
register(Table.DATANODES, DataNode)
register(Table.CHECKS, Check)
register(Table.INVALIDATIONS, Invalidation, id_of=lambda invalidation: invalidation.block_id)


def block_key(inode_id: int, index: int) -> Key:
    """Where the block at this place in this file is kept."""
    return (Table.BLOCKS, inode_id, INDEX.pack(index))


def replica_key(storage: int, block_id: int) -> Key:
    """Where the replica of this block on this storage is kept."""
    return (Table.REPLICAS, storage, NUMBER.pack(block_id))


def invalidation_key(storage: int, block_id: int) -> Key:
    return (Table.INVALIDATIONS, storage, NUMBER.pack(block_id))


def check_key(block_id: int) -> Key:
    return (Table.CHECKS, 0, NUMBER.pack(block_id))


def datanode_key(uuid: str) -> Key:
    return (Table.DATANODES, 0, uuid.encode())
