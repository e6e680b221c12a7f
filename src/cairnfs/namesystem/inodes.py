"""The inode record: a file, a directory or a symbolic link.

A row is found by `(parent_id, name)`, as the namespace is walked, and by its
`id`, which it keeps through every rename.  What changes on each creation of a
child (a directory's modification time and totals) is not here: it is kept
apart in `Totals`, so that siblings never conflict over their parent.
"""

from __future__ import annotations

import enum
from typing import NewType

import msgspec

InodeId = NewType("InodeId", int)

ROOT_ID = InodeId(16385)  # as in HDFS, where smaller ids are reserved
ROOT_PARENT_ID = InodeId(0)
ROOT_NAME = b""

QUOTA_UNSET = -1

OWN_TXID = -1
"""In a row: the TxID of the very transaction that writes it, which it cannot know beforehand."""


class Kind(enum.IntEnum):
    """What an inode is; the numbers are those of HDFS's `FileType`."""

    DIRECTORY = 1
    FILE = 2
    SYMLINK = 3


# A member of an enumeration takes ten times as long to find as a name of the module.
_DIRECTORY, _FILE, _SYMLINK = Kind


class Quota(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Limits on everything at and below a directory; -1 is no limit."""

    inodes: int = QUOTA_UNSET
    space_bytes: int = QUOTA_UNSET
    ssd_bytes: int = QUOTA_UNSET
    disk_bytes: int = QUOTA_UNSET
    archive_bytes: int = QUOTA_UNSET
    provided_bytes: int = QUOTA_UNSET
    nvdimm_bytes: int = QUOTA_UNSET

    @property
    def is_set(self) -> bool:
        return any(limit != QUOTA_UNSET for limit in msgspec.structs.astuple(self))


class AclEntry(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One entry of an access control list; see `acls`."""

    scope: int
    type: int
    name: str | None
    permission: int


class XAttr(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One extended attribute; see `xattrs`.

    Without a value it has been removed: of a kind that is inherited, that is something to know.
    """

    namespace: int
    name: str
    value: bytes | None
    set: int = 0  # the TxID of the operation that decided the value, of a kind that is inherited
    is_kept: bool = False  # it was decided for another inode, above, before this one was moved
    is_unset: bool = False  # it was decided to be what the directory above had then


class Declaration(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Of which kind the attributes of a name are; see `declarations`."""

    namespace: int
    name: str
    kind: int  # an AttributeKind, never LOCAL
    is_used: bool = False  # some inode has, or had, a value of this kind


class Origin(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Where the content of a clone comes from; see `layers`."""

    content_id: int  # the rows below which, or of a file, its id
    txid: int  # as they were after this TxID
    pin: int  # what holds them
    below: Origin | None = None  # and where that content came from
    is_own: bool = False  # it was this very directory's content, before a roll-back


class Place(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Where something was that a directory had from its origin, before it got a row of its own."""

    parent: int  # the identity of its directory
    name: bytes
    shown_as: InodeId  # the id of the original
    pins: tuple[int, ...] = ()  # of the origins that show it there, the newest first


class Inode(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One version of an inode, as it is stored: append fields only."""

    id: InodeId
    parent_id: InodeId
    name: bytes
    kind: Kind
    mode: int  # permission bits with the sticky bit, 0o1777
    owner: str
    group: str
    mtime_ms: int  # of a directory: when it was made; see Totals
    atime_ms: int

    # Files.
    replication: int = 0
    block_size_bytes: int = 0
    length_bytes: int = 0
    block_count: int = 0
    under_construction: bool = False
    has_open_block: bool = False  # the last block is being written: not in length_bytes

    # Symbolic links.
    target: str | None = None

    # Any inode.
    acl: tuple[AclEntry, ...] | None = None

    # Directories.
    quota: Quota | None = None

    # The latest snapshot of this directory, or the latest one that the inode was covered
    # by where it was before it was moved: its versions up to then are needed.
    covered_txid: int = 0

    # Files being written: what is known to be in the open block.
    open_bytes: int = 0

    # Snapshots of this very directory or file: whether any may be taken, and how many there are.
    is_snapshottable: bool = False
    snapshots: int = 0

    # Directories: where the rows of the children are, if not below the own id, and where what
    # is not there comes from; see `layers`.
    content_id: int = 0
    origin: Origin | None = None
    is_virtual: bool = False  # found in an origin, hence without a row: never stored

    # Files: the most replicas that an older version asks for, if snapshots needed that when it
    # was superseded.  Whether they still do is looked at where it matters (`redundancy`).
    held_replication: int = 0

    known_as: int = 0  # the id that it had before a roll-back of what it is in; see `identity`

    # Of what was moved to where snapshots reach: the latest one that reached where it came from,
    # and the latest of where it came to.  For those between, it was moved in from outside.
    entered: tuple[int, int] | None = None

    # Any inode, in the order of name spaces and names.
    xattrs: tuple[XAttr, ...] | None = None
    # Of what has got its row in a clone: its place, and that of each directory above it that has.
    places: tuple[Place, ...] = ()

    # Files: what the directories above are charged for the open block beyond its length.
    reserved_bytes: int = 0

    # Since an attribute was first inherited: the TxIDs of the last rename, and of the roll-back
    # that brought it back; see `attribute_rules`.
    renamed: int = 0
    restored: int = 0
    is_unstamped: bool = False  # there is an OWN_TXID in it: never so where it was read

    # The root: which attributes are inherited.
    declared: tuple[Declaration, ...] = ()

    # Files: by which storage policy the directories above are charged; 0: all of it is on DISK.
    charged_policy: int = 0

    # Of what has got its row after a roll-back: its place, and that of each directory above it
    # that has, in which snapshots of before that show it; and the same of earlier roll-backs.
    shown_at: tuple[tuple[Place, ...], ...] = ()

    marks: int = 0  # flags of `marks`: what a roll-back keeps is here, or somewhere below

    @property
    def children_id(self) -> int:
        """Under what the rows of a directory's children are kept."""
        return self.content_id or self.id

    @property
    def identity(self) -> int:
        """What it is known by at all times, whatever ids it has had; see `identity`."""
        return self.known_as or self.id

    @property
    def visible_bytes(self) -> int:
        """How long a file is to whoever asks: with what is known of its open block."""
        return self.length_bytes + self.open_bytes

    @property
    def closed(self) -> Inode:
        """A file where nobody writes it: it ends with what is known of its open block."""
        if not self.under_construction:
            return self
        is_empty = self.has_open_block and not self.open_bytes
        return msgspec.structs.replace(
            self,
            under_construction=False,
            has_open_block=False,
            block_count=self.block_count - is_empty,
            length_bytes=self.visible_bytes,
            open_bytes=0,
            # `RESERVED_BYTES` knows only what is reserved on DISK: see `quotas`.
            reserved_bytes=self.reserved_bytes if self.charged_policy else 0,
        )

    def stamped(self, txid: int) -> Inode:
        """The inode as it is read, given the TxID that wrote it."""
        if not self.is_unstamped:
            return self
        xattrs = self.xattrs
        if xattrs is not None:
            xattrs = tuple(
                msgspec.structs.replace(each, set=txid) if each.set == OWN_TXID else each
                for each in xattrs
            )
        renamed = txid if self.renamed == OWN_TXID else self.renamed
        return msgspec.structs.replace(self, xattrs=xattrs, renamed=renamed, is_unstamped=False)

    @property
    def is_directory(self) -> bool:
        return self.kind is _DIRECTORY

    @property
    def is_file(self) -> bool:
        return self.kind is _FILE

    @property
    def is_symlink(self) -> bool:
        return self.kind is _SYMLINK
