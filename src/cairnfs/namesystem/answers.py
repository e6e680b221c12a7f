"""What operations answer, as records; some of it is stored, for those who ask once more.

They are apart from the operations, which can be compiled: msgspec decodes by annotations, and
compiled code has none (docs/decisions/0024-compiled.md).
"""

from __future__ import annotations

import msgspec

from cairnfs.blocks.records import Block, StorageNumber
from cairnfs.namesystem.inodes import InodeId, Kind, Quota


class FileStatus(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The fields of Hadoop's HdfsFileStatusProto that the namespace decides."""

    kind: Kind
    name: bytes  # the last component; empty where the caller knows the path
    length_bytes: int
    mode: int
    owner: str
    group: str
    mtime_ms: int
    atime_ms: int
    target: str | None
    replication: int
    block_size_bytes: int
    id: InodeId
    children: int
    has_acl: bool
    under_construction: bool
    is_snapshottable: bool = False
    storage_policy: int = 0  # its number; 0: none was chosen, or the caller does not need it

    @property
    def is_directory(self) -> bool:
        return self.kind is Kind.DIRECTORY


class ContentSummary(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What is at and below a path."""

    length_bytes: int
    files: int
    directories: int
    symlinks: int
    space_bytes: int
    quota: Quota
    type_bytes: tuple[int, ...]  # SSD, DISK, ARCHIVE, PROVIDED, NVDIMM

    @property
    def inodes(self) -> int:
        """What counts against a namespace quota."""
        return self.files + self.directories + self.symlinks


class LocatedBlock(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A block, where in the file it begins, and where its replicas are or are being written."""

    block: Block
    offset_bytes: int
    storages: tuple[StorageNumber, ...] = ()
    is_corrupt: bool = False  # it has replicas, and all of them are bad

    @property
    def end_bytes(self) -> int:
        return self.offset_bytes + self.block.length_bytes


class LocatedBlocks(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The blocks of a range of a file, and what a reader has to know of the whole."""

    inode_id: InodeId
    length_bytes: int  # without a block that is being written
    under_construction: bool
    blocks: list[LocatedBlock]
    last: LocatedBlock | None
    last_is_complete: bool
    access_time_is_stale: bool
