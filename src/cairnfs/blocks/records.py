"""Blocks as metadata: the pieces of a file, in order.

Invariant: a block's row is found by its file and its place there, or by its id, and
belongs to one file at a time; its id and generation stamp are never given out again.
"""

from __future__ import annotations

import enum
from typing import NewType

import msgspec

from cairnfs.store.base import Key
from cairnfs.store.schema import INDEX, Table
from cairnfs.transaction.records import register

BlockId = NewType("BlockId", int)
GenerationStamp = NewType("GenerationStamp", int)


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


class Block(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One block of a file.  Its row's version says since when it is so."""

    id: BlockId
    generation_stamp: GenerationStamp
    length_bytes: int
    state: BlockState

    def with_length(self, length_bytes: int) -> Block:
        """The same block as its writer reports it: so many bytes were written."""
        return msgspec.structs.replace(self, length_bytes=length_bytes)


register(Table.BLOCKS, Block, id_of=lambda block: block.id)


def block_key(inode_id: int, index: int) -> Key:
    """Where the block at this place in this file is kept."""
    return (Table.BLOCKS, inode_id, INDEX.pack(index))
