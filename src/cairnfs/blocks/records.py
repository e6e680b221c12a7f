"""Blocks, their replicas and the DataNodes that keep them, as rows.

A block's row is found by its file and its place there, or by its id; its id and generation
stamp are never given out again.  Two files that share a block, a clone and its origin, have a
row of it each: such a block is not changed, only copied.  A replica's row is found by its
storage and its block, or by the block's id: so both "where is this block" and "what is on this
storage" are one read.

Storages are known by number, since a replica's row is the commonest of all.

Invariant: a replica's row, or the order to delete it, is as its DataNode reported it; a
replica that has to be deleted has no row of its own, and counts for nobody.
"""

from __future__ import annotations

import enum
from typing import NewType

import msgspec

from cairnfs.store.schema import INDEX, NUMBER, Key, Table
from cairnfs.transaction.records import register

BlockId = NewType("BlockId", int)
GenerationStamp = NewType("GenerationStamp", int)
StorageNumber = NewType("StorageNumber", int)

# Plain numbers: keys are compared all the time, and members of an enumeration take longer.
_BLOCKS = int(Table.BLOCKS)
_REPLICAS = int(Table.REPLICAS)
_INVALIDATIONS = int(Table.INVALIDATIONS)
_DELETIONS = int(Table.DELETIONS)
_RECOVERIES = int(Table.RECOVERIES)
_CHECKS = int(Table.CHECKS)


class BlockState(enum.IntEnum):
    """How far a block is; of Hadoop's BlockUCState, UNDER_RECOVERY is `Block.is_recovering`."""

    UNDER_CONSTRUCTION = 0
    COMMITTED = 1  # its writer has said how long it is
    COMPLETE = 2
    TRUNCATING = 3  # its replicas are longer, and are being cut to its length


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
    CORRUPT = 1  # it fails its checksums
    UNFINISHED = 2  # its writer was gone before it was finished, and others finished the block


class CheckQueue(enum.IntEnum):
    """Where a block waits to be looked at: LowRedundancyBlocks' queues, and two beside them."""

    NEW = 0  # something has happened to it
    HIGHEST = 1
    VERY_LOW_REDUNDANCY = 2
    LOW_REDUNDANCY = 3
    BADLY_DISTRIBUTED = 4
    CORRUPT = 5
    POSTPONED = 6  # it has too many replicas, or bad ones, and a full report is awaited


class Block(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One block of a file.  Its row's version says since when it is so.

    A block whose end was cut while a snapshot needs it is shorter than its replicas: readers
    are told its length, whoever judges or copies replicas goes by `replica_bytes`.

    While it is written, its replicas may already have a stamp that its row has not: one that
    was given to a writer who mends a pipeline, or to a recovery that is under way.
    """

    id: BlockId
    generation_stamp: GenerationStamp
    length_bytes: int  # of one that is being written: what is known to be acknowledged
    state: BlockState
    targets: tuple[StorageNumber, ...] = ()  # the pipeline, while it is written
    newest_stamp: int = 0  # the last that was given out for it, if not its own
    is_recovering: bool = False  # its writer is gone: DataNodes are to agree on its length
    is_flushed: bool = False  # its writer has been told that something in it is safe
    stored_bytes: int = 0  # how long its replicas are, if they are longer than the block
    held_bytes: int = 0  # how long the longest version was that snapshots may still need

    def with_length(self, length_bytes: int) -> Block:
        """The same block as its writer reports it: so many bytes were written."""
        return msgspec.structs.replace(self, length_bytes=length_bytes)

    @property
    def replica_bytes(self) -> int:
        """How long its replicas are, all of them, once it is complete."""
        return self.stored_bytes or self.length_bytes

    @property
    def last_stamp(self) -> GenerationStamp:
        """The greatest stamp that a replica of it may have."""
        return GenerationStamp(max(self.generation_stamp, self.newest_stamp))

    def completed(self) -> Block:
        """The same block, when its replicas are what they should be."""
        return Block(
            self.id,
            self.generation_stamp,
            self.length_bytes,
            BlockState.COMPLETE,
            stored_bytes=self.stored_bytes,
            held_bytes=self.held_bytes,
        )

    def __str__(self) -> str:
        return f"blk_{self.id}_{self.generation_stamp}"


class Replica(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A replica of a block, as its DataNode reported it."""

    block_id: BlockId
    generation_stamp: GenerationStamp
    length_bytes: int
    status: ReplicaStatus = ReplicaStatus.GOOD

    @property
    def is_marked(self) -> bool:
        """Whether it was found to be bad; its DataNode need not know that."""
        return self.status is ReplicaStatus.CORRUPT

    def is_good_for(self, block: Block) -> bool:
        """Whether it is what the block should be; of one that is written, as far as it is.

        Of a block that is shorter than its replicas, one may be longer than the row knows: the
        row of a clone's file may date from when the original was still being written, and under
        one stamp replicas only grow.
        """
        return (
            self.status is ReplicaStatus.GOOD
            and self.generation_stamp == block.generation_stamp
            and (
                self.length_bytes == block.replica_bytes
                or block.state is BlockState.UNDER_CONSTRUCTION
                or self.length_bytes > block.stored_bytes > 0
            )
        )


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

    @property
    def transfer_address(self) -> str:
        return f"{self.ip_address}:{self.transfer_port}"


class Check(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A note that a block may have too few, too many or bad replicas."""

    block_id: BlockId
    since_ms: int
    touched: int = 0  # more each time that something happens to the block
    delete_hint: str = ""  # the DataNode that a balancer has copied it from


class Invalidation(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A replica that its DataNode has to delete: its block is gone, or it is of no use."""

    block_id: BlockId
    generation_stamp: GenerationStamp
    length_bytes: int = 0
    status: ReplicaStatus = ReplicaStatus.GOOD

    @property
    def is_marked(self) -> bool:
        """Whether it was found to be bad: if the order is withdrawn, it still is."""
        return self.status is ReplicaStatus.CORRUPT

    @property
    def replica(self) -> Replica:
        """What it was before it was to be deleted."""
        return Replica(self.block_id, self.generation_stamp, self.length_bytes, self.status)


class Recovery(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A block that DataNodes have to bring to one length, under a new stamp.

    Or, in the rows by inode, the last block of a closed file, of which they have to make a
    copy for the file to go on with.  Each attempt has an id and a stamp of its own.
    """

    inode_id: int
    began_ms: int
    may_remove: bool = False  # every DataNode that may have it takes part in the attempt
    source_id: int = 0  # the block to be copied,
    length_bytes: int = 0  # so much of it,
    copy_id: int = 0  # to this one,
    copy_stamp: int = 0  # with this stamp


class Deletion(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A replica that its DataNode has deleted: older reports may still speak of it."""

    deleted_ms: int


register(Table.BLOCKS, Block, id_of=lambda block: block.id)
register(Table.REPLICAS, Replica, id_of=lambda replica: replica.block_id)
register(Table.DATANODES, DataNode)
register(Table.CHECKS, Check, id_of=lambda check: check.block_id)
register(Table.INVALIDATIONS, Invalidation, id_of=lambda invalidation: invalidation.block_id)
register(Table.DELETIONS, Deletion)
register(Table.RECOVERIES, Recovery, id_of=lambda recovery: recovery.copy_stamp)


def block_key(inode_id: int, index: int) -> Key:
    """Where the block at this place in this file is kept."""
    return (_BLOCKS, inode_id, INDEX.pack(index))


def replica_key(storage: int, block_id: int) -> Key:
    """Where the replica of this block on this storage is kept."""
    return (_REPLICAS, storage, NUMBER.pack(block_id))


def invalidation_key(storage: int, block_id: int) -> Key:
    return (_INVALIDATIONS, storage, NUMBER.pack(block_id))


def deletion_key(storage: int, block_id: int) -> Key:
    return (_DELETIONS, storage, NUMBER.pack(block_id))


def recovery_key(block_id: int) -> Key:
    return (_RECOVERIES, 0, NUMBER.pack(block_id))


def copy_key(inode_id: int) -> Key:
    """Where it is kept that the last block of this file is to be copied."""
    return (_RECOVERIES, 1, NUMBER.pack(inode_id))


def check_key(block_id: int, queue: CheckQueue = CheckQueue.NEW) -> Key:
    return (_CHECKS, queue, NUMBER.pack(block_id))


def datanode_key(uuid: str) -> Key:
    return (Table.DATANODES, 0, uuid.encode())
