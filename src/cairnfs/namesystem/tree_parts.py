"""What whoever reads a whole tree is sent: parts of it, and pages of parts.

A *part* is what is directly in a directory under a range of names, or everything below the
directories among it, or both.  Pages carry rows as they are stored: a NameNode, whose core is the
scarce one, passes them on, and the reader decodes what it needs.
"""

from __future__ import annotations

import enum
from typing import cast

import msgspec

from cairnfs.blocks.records import AdminState, Block, StorageType
from cairnfs.namesystem.inodes import Inode, InodeId
from cairnfs.namesystem.tree_attributes import Inherited
from cairnfs.store.base import Totals

FORMAT = 3  # of the records that readers are sent

Names = tuple[bytes, ...]


class Detail(enum.IntFlag):
    """What is told beside the inodes themselves; the numbers are those of CairnProtocol."""

    BLOCKS = 1
    REPLICAS = 2  # as they are now; with the blocks
    ATTRIBUTES = 4  # what directories above have decided
    COUNTS = 8  # how many inodes there are instead of them: most need not even be read


class Part(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Some of what is below the directory of a view."""

    path: Names = ()  # of a directory, from that of the view on
    after: bytes = b""  # names in it behind this one,
    until: bytes = b""  # up to this one; empty: to the last
    entries: bool = True  # what has these names
    below: bool = True  # and all that is below the directories of these names

    @property
    def is_first(self) -> bool:
        """Whether it is the one to which the directory of the view itself belongs."""
        return self.entries and not self.path and not self.after


class Cursor(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """How far a part was read: up to a name in a directory."""

    path: Names
    after: bytes
    is_over: bool = False  # all that is in the directory was told


class Sized(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A part, and how many inodes are in it."""

    part: Part
    inodes: int
    is_large: bool = False  # to be split in its turn


class Split(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Parts of a part, and what was not looked at; None: that was all."""

    parts: list[Sized]
    rest: Part | None


class Found(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """An inode; a directory comes with its totals."""

    inode: Inode
    totals: Totals | None = None


class ReplicaState(enum.IntEnum):
    """What a replica is good for; the names are told to people."""

    LIVE = 0  # it is what its block should be
    CORRUPT = 1  # it fails its checksums
    STALE = 2  # of another stamp or length than its block
    UNFINISHED = 3  # its writer was gone before it was finished
    EXCESS = 4  # its DataNode has been told to delete it, or will be
    WRITING = 5  # it is in the pipeline of a writer


class KnownReplica(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A replica, as the NameNodes know of it."""

    storage: int
    generation_stamp: int
    length_bytes: int
    state: ReplicaState


class KnownStorage(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The storage of a replica, and its DataNode as one NameNode sees it now."""

    number: int
    id: str
    type: StorageType
    datanode: str  # its host and port for block transfer
    uuid: str
    rack: str
    admin_state: AdminState
    is_alive: bool


class Listed(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Inodes of one directory; without a path, the directory of the view itself.

    Other lists and tables are by the place of an inode among them.
    """

    path: Names | None
    id: InodeId
    inodes: list[Inode]  # as stored: see `stamped`
    since: list[int]  # the TxID that wrote each of them; 0: it came with a directory above
    totals: dict[int, Totals]  # of directories
    blocks: dict[int, list[Block]] = {}  # of files that have any
    replicas: dict[int, list[KnownReplica]] = {}  # by the ids of the blocks
    inherited: tuple[Inherited, ...] = ()  # what was decided for the directory
    count: int = 0  # of inodes, where there are none of them here

    @property
    def found(self) -> list[Found]:
        totals = self.totals
        return [Found(inode, totals.get(n)) for n, inode in enumerate(self.inodes)]

    @property
    def stamped(self) -> list[Inode]:
        """The inodes with the TxIDs that their attributes have from them."""
        return [inode.stamped(txid) for inode, txid in zip(self.inodes, self.since, strict=True)]


class StoredListing(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The same before it is sent, with rows that nobody has decoded."""

    path: Names | None
    id: InodeId
    inodes: list[msgspec.Raw]
    since: list[int]
    totals: dict[int, Totals]
    blocks: dict[int, list[msgspec.Raw]] = {}
    replicas: dict[int, list[KnownReplica]] = {}
    inherited: tuple[Inherited, ...] = ()
    count: int = 0


class ScanPage(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Some of a part, and where to go on; None: that was all."""

    data: bytes  # a list of `Listed`
    cursor: Cursor | None
    storages: tuple[int, ...] = ()  # the numbers of those that replicas are on

    @property
    def listed(self) -> list[Listed]:
        return decode_page(self.data)


encode_page = msgspec.msgpack.Encoder().encode
decode_page = msgspec.msgpack.Decoder(list[Listed]).decode


def decode_page_of_rows(data: bytes) -> list[Listed]:
    """The same with inodes that can be counted, but not looked at: in a quarter of the time."""
    return cast(list[Listed], _decode_rows(data))


_decode_rows = msgspec.msgpack.Decoder(list[StoredListing]).decode
