"""What the file system tells: files, space, access control lists, DataNodes, snapshots.

Times are milliseconds since 1970 and sizes are bytes, as their names say.  A quota that is
not set is None.
"""

from __future__ import annotations

import enum
import posixpath
from typing import TypeAlias

import msgspec


class FileType(enum.Enum):
    """What can be at a path."""

    DIRECTORY = "DIRECTORY"
    FILE = "FILE"
    SYMLINK = "SYMLINK"


class FileStatus(msgspec.Struct, frozen=True):
    """What is known of a file, directory or symbolic link."""

    path: str
    type: FileType
    length_bytes: int
    mode: int
    owner: str
    group: str
    mtime_ms: int
    atime_ms: int
    replication: int
    block_size_bytes: int
    id: int
    children: int | None  # of a directory, where the server says so
    target: str | None  # of a symbolic link
    has_acl: bool
    is_encrypted: bool
    is_erasure_coded: bool
    is_snapshottable: bool
    storage_policy: int  # its id; 0: none was set

    @property
    def name(self) -> str:
        """The last part of the path."""
        return posixpath.basename(self.path)

    @property
    def is_directory(self) -> bool:
        return self.type is FileType.DIRECTORY

    @property
    def is_file(self) -> bool:
        return self.type is FileType.FILE

    @property
    def is_symlink(self) -> bool:
        return self.type is FileType.SYMLINK


# Space


class TypeQuota(msgspec.Struct, frozen=True):
    """The quota for one storage type, and what is used of it."""

    quota_bytes: int | None
    used_bytes: int


class ContentSummary(msgspec.Struct, frozen=True):
    """What is at and below a path."""

    length_bytes: int
    files: int
    directories: int
    space_bytes: int  # with all replicas
    namespace_quota: int | None
    space_quota_bytes: int | None
    types: dict[str, TypeQuota]
    snapshot_length_bytes: int
    snapshot_files: int
    snapshot_directories: int
    snapshot_space_bytes: int
    erasure_coding_policy: str


class QuotaUsage(msgspec.Struct, frozen=True):
    """What counts against a directory's quotas, and these."""

    inodes: int
    space_bytes: int
    namespace_quota: int | None
    space_quota_bytes: int | None
    types: dict[str, TypeQuota]


class FsStatus(msgspec.Struct, frozen=True):
    """The room of the whole cluster, and how its blocks are."""

    capacity_bytes: int
    used_bytes: int
    remaining_bytes: int
    under_replicated_blocks: int
    corrupt_blocks: int
    missing_blocks: int
    missing_blocks_with_one_replica: int
    pending_deletion_blocks: int


class ServerDefaults(msgspec.Struct, frozen=True):
    """What files get when their writers do not choose."""

    block_size_bytes: int
    bytes_per_checksum: int
    write_packet_bytes: int
    replication: int
    file_buffer_bytes: int
    checksum_type: str
    trash_interval_minutes: int
    encrypts_data_transfer: bool


# Access control


class AclStatus(msgspec.Struct, frozen=True):
    """An access control list; entries are text such as `user:ada:rw-`."""

    owner: str
    group: str
    mode: int | None
    is_sticky: bool
    entries: list[str]


# DataNodes and blocks


class DatanodeInfo(msgspec.Struct, frozen=True):
    """A DataNode as the NameNode knows it."""

    uuid: str
    ip: str
    hostname: str
    port: int  # block transfer
    ipc_port: int
    http_port: int
    rack: str
    state: str  # NORMAL, DECOMMISSION_INPROGRESS, DECOMMISSIONED, ...
    capacity_bytes: int
    used_bytes: int
    remaining_bytes: int
    non_dfs_used_bytes: int
    block_pool_used_bytes: int
    blocks: int
    transfers: int
    last_update_ms: int
    version: str

    @property
    def address(self) -> str:
        return f"{self.ip}:{self.port}"


class BlockLocation(msgspec.Struct, frozen=True):
    """A block of a file, and who has it, the nearest first."""

    offset_bytes: int
    length_bytes: int
    block_id: int
    generation_stamp: int
    pool: str
    datanodes: list[DatanodeInfo]
    storage_ids: list[str]
    storage_types: list[str]
    is_corrupt: bool
    is_complete: bool


class FileChecksum(msgspec.Struct, frozen=True):
    """A checksum of a whole file; equal files with equal block sizes have equal ones."""

    algorithm: str
    digest: bytes

    def __str__(self) -> str:
        return f"{self.algorithm}:{self.digest.hex()}"


class OpenFile(msgspec.Struct, frozen=True):
    """A file that somebody writes."""

    id: int
    path: str
    client_name: str
    client_machine: str


class CorruptFiles(msgspec.Struct, frozen=True):
    """Files with blocks of which no good replica is known, and where to go on."""

    paths: list[str]
    cookie: str


# Storage policies and snapshots


class StoragePolicy(msgspec.Struct, frozen=True):
    """On which types of storage replicas are kept."""

    id: int
    name: str
    storage_types: list[str]  # one for each replica; the last one repeats
    creation_fallbacks: list[str]
    replication_fallbacks: list[str]


class StoragePolicyWork(msgspec.Struct, frozen=True):
    """What is left to be done until all replicas are where policies want them; up to a bound."""

    subtrees: int  # to be looked through
    blocks: int  # to be brought to where they belong
    unsatisfied_blocks: int  # that find no place there, and are tried again
    bound: int
    scanned_inodes: int  # ever
    queued_blocks: int
    placed_blocks: int
    reasons: dict[str, int]  # why blocks find no place, and how many of them
    namenode: str | None  # which has the duty

    @property
    def is_done(self) -> bool:
        """Whether nothing is left but what cannot be done."""
        return not (self.subtrees or self.blocks)


class SnapshottableDirectory(msgspec.Struct, frozen=True):
    """A directory of which snapshots may be taken."""

    status: FileStatus
    snapshots: int
    snapshots_max: int


class Snapshot(msgspec.Struct, frozen=True):
    """One snapshot of a directory; `status.path` is where it can be read."""

    status: FileStatus
    id: int | None  # None: an HDFS before 3.4 does not tell
    is_deleted: bool


class DiffEntry(msgspec.Struct, frozen=True):
    """One change: `+` created, `-` deleted, `M` modified, `R` renamed (to `target`)."""

    kind: str
    path: str  # relative to the directory; "." is itself
    target: str | None = None


class SnapshotDiffReport(msgspec.Struct, frozen=True):
    """What changed between two snapshots; an empty name is the present."""

    root: str
    from_snapshot: str
    to_snapshot: str
    entries: list[DiffEntry]


class ChangeKind(enum.Enum):
    """What can have happened to something below a directory.

    What was deleted or moved out is told by its old path, and goes with all that is below it.
    """

    CREATED = "CREATED"
    DELETED = "DELETED"
    MODIFIED = "MODIFIED"
    MOVED_OUT = "MOVED_OUT"
    MOVED_IN = "MOVED_IN"


class SnapshotChange(msgspec.Struct, frozen=True):
    """What happened to something between two snapshots, and in which transaction."""

    kind: ChangeKind
    path: str  # relative to the directory; "." is itself
    other: str | None  # of a move within the directory: its other end
    txid: int
    id: int  # the same at both ends of a move
    type: FileType
    is_rewritten: bool = False  # of a file that was modified: its content, too


class SnapshotSpace(msgspec.Struct, frozen=True):
    """What a snapshot takes, with all replicas."""

    name: str
    referenced_bytes: int
    exclusive_bytes: int  # which its deletion would free


class RootSnapshot(msgspec.Struct, frozen=True):
    """The snapshot by which the whole file system can go back."""

    name: str  # of a snapshot of /
    txid: int
    created_ms: int
    user: str
    rolled_back_ms: int | None = None  # when it was gone back to, unless to another one since
    safety_snapshots: tuple[str, ...] = ()  # in these is what roll-backs of / have given up


class TreeCounts(msgspec.Struct, frozen=True):
    """How much there is in the file system."""

    files: int
    directories: int
    length_bytes: int
    space_bytes: int  # with all replicas


class RootSnapshotStatus(msgspec.Struct, frozen=True):
    """The root snapshot, and what has become of the file system since."""

    snapshot: RootSnapshot
    then: TreeCounts
    now: TreeCounts
    last_txid: int
    hindrances: tuple[str, ...]  # paths that a roll-back would remove, with their snapshots

    @property
    def transactions(self) -> int:
        """How many there were since it was taken."""
        return self.last_txid - self.snapshot.txid


class SnapshotWork(msgspec.Struct, frozen=True):
    """What deletions and roll-backs have left to be done in the background; up to a bound."""

    deleted_trees: int  # to be looked through
    deleted_snapshots: int
    directories_to_settle: int  # which get rows of their own
    percent_of_snapshot: int  # of the one that is looked through now
    bound: int
    namenode: str | None  # which has the duty

    @property
    def is_done(self) -> bool:
        return not (self.deleted_trees or self.deleted_snapshots or self.directories_to_settle)


class SnapshotSchedule(msgspec.Struct, frozen=True):
    """How many snapshots of a directory are kept: the newest of each hour, day and so on."""

    path: str
    hourly: int = 0
    daily: int = 0
    weekly: int = 0
    monthly: int = 0
    yearly: int = 0
    prefix: str = "auto"  # of the snapshots' names


class SchedulePreview(msgspec.Struct, frozen=True):
    """What a schedule would do to the snapshots that there are."""

    kept: list[str]
    deleted: list[str]


XAttrs: TypeAlias = dict[str, bytes]


class DeclaredXAttr(msgspec.Struct, frozen=True):
    """A name of attributes that are inherited."""

    name: str
    kind: str  # "follow-path" or "stay-with-data"
    is_used: bool  # then it stays so


class XAttrReason(msgspec.Struct, frozen=True):
    """One operation that a value comes from."""

    cause: str  # SET, REMOVED, UNSET, KEPT, RENAMED or ABOVE_SNAPSHOT
    path: str
    txid: int  # 0: not noted, as of a local attribute


class XAttrStep(msgspec.Struct, frozen=True):
    """A file or directory on the way, and what it says; TxIDs are 0 where nothing was."""

    path: str
    renamed: int
    restored: int  # by a roll-back
    set: int  # here itself
    value: bytes | None  # that was set; None: removed
    decided: int  # what holds here, and since when
    decided_value: bytes | None


class XAttrExplanation(msgspec.Struct, frozen=True):
    """Why an attribute has its value."""

    name: str
    kind: str
    value: bytes | None  # None: it has none
    reasons: list[XAttrReason]  # the last operation first; of a rename, where its value is from
    steps: list[XAttrStep]  # from the root, or in a snapshot from its directory
