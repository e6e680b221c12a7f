"""From the messages of Hadoop's protocols to `records`, and what little goes the other way."""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

from cairnfs import acl_text, xattr_text
from cairnfs.client.records import (
    AclStatus,
    BlockLocation,
    ContentSummary,
    DatanodeInfo,
    DiffEntry,
    FileStatus,
    FileType,
    FsStatus,
    QuotaUsage,
    ServerDefaults,
    Snapshot,
    SnapshotDiffReport,
    SnapshottableDirectory,
    StoragePolicy,
    TypeQuota,
)
from cairnfs.wire.proto import client_namenode_pb2 as pb
from cairnfs.wire.proto import hdfs_pb2
from cairnfs.wire.proto.acl_pb2 import AclEntryProto, AclStatusProto
from cairnfs.wire.proto.xattr_pb2 import XAttrProto
from cairnfs.wire.protocols import as_text

UINT64_MAX = (1 << 64) - 1
_INT64_MAX = (1 << 63) - 1

_Flags = hdfs_pb2.HdfsFileStatusProto
_TYPES = {
    hdfs_pb2.HdfsFileStatusProto.IS_DIR: FileType.DIRECTORY,
    hdfs_pb2.HdfsFileStatusProto.IS_FILE: FileType.FILE,
    hdfs_pb2.HdfsFileStatusProto.IS_SYMLINK: FileType.SYMLINK,
}


def decode_name(name: bytes) -> str:
    """A name as text; U+FFFD stands for what is not UTF-8."""
    return name.decode(errors="replace")


def join_path(directory: str, name: str) -> str:
    """The path of something in a directory."""
    if not name:
        return directory
    return f"/{name}" if directory == "/" else f"{directory}/{name}"


def decode_status(message: hdfs_pb2.HdfsFileStatusProto, path: str) -> FileStatus:
    """What is at `path`, or below it at the name that the message has."""
    flags = message.flags
    return FileStatus(
        join_path(path, decode_name(message.path)),
        _TYPES[message.fileType],
        message.length,
        message.permission.perm,
        message.owner,
        message.group,
        message.modification_time,
        message.access_time,
        message.block_replication,
        message.blocksize,
        message.fileId,
        message.childrenNum if message.childrenNum >= 0 else None,
        decode_name(message.symlink) if message.HasField("symlink") else None,
        bool(flags & _Flags.HAS_ACL),
        bool(flags & _Flags.HAS_CRYPT) or message.HasField("fileEncryptionInfo"),
        bool(flags & _Flags.HAS_EC) or message.HasField("ecPolicy"),
        bool(flags & _Flags.SNAPSHOT_ENABLED),
        message.storagePolicy,
    )


# Space


def decode_quota(value: int) -> int | None:
    """A quota, of which the wire says -1 where there is none."""
    return None if value > _INT64_MAX else value


def _decode_type_quotas(message: hdfs_pb2.StorageTypeQuotaInfosProto) -> dict[str, TypeQuota]:
    return {
        hdfs_pb2.StorageTypeProto.Name(info.type): TypeQuota(
            decode_quota(info.quota), info.consumed
        )
        for info in message.typeQuotaInfo
    }


def decode_content_summary(message: hdfs_pb2.ContentSummaryProto) -> ContentSummary:
    return ContentSummary(
        message.length,
        message.fileCount,
        message.directoryCount,
        message.spaceConsumed,
        decode_quota(message.quota),
        decode_quota(message.spaceQuota),
        _decode_type_quotas(message.typeQuotaInfos),
        message.snapshotLength,
        message.snapshotFileCount,
        message.snapshotDirectoryCount,
        message.snapshotSpaceConsumed,
        message.erasureCodingPolicy,
    )


def decode_quota_usage(message: hdfs_pb2.QuotaUsageProto) -> QuotaUsage:
    return QuotaUsage(
        message.fileAndDirectoryCount,
        message.spaceConsumed,
        decode_quota(message.quota),
        decode_quota(message.spaceQuota),
        _decode_type_quotas(message.typeQuotaInfos),
    )


def decode_fs_status(message: pb.GetFsStatsResponseProto) -> FsStatus:
    return FsStatus(
        message.capacity,
        message.used,
        message.remaining,
        message.under_replicated,
        message.corrupt_blocks,
        message.missing_blocks,
        message.missing_repl_one_blocks,
        message.pending_deletion_blocks,
    )


def decode_server_defaults(message: hdfs_pb2.FsServerDefaultsProto) -> ServerDefaults:
    checksum = hdfs_pb2.ChecksumTypeProto.Name(message.checksumType)
    return ServerDefaults(
        message.blockSize,
        message.bytesPerChecksum,
        message.writePacketSize,
        message.replication,
        message.fileBufferSize,
        checksum.removeprefix("CHECKSUM_"),
        message.trashInterval,
        message.encryptDataTransfer,
    )


# Access control lists, as text


def decode_acl_status(message: AclStatusProto) -> AclStatus:
    return AclStatus(
        message.owner,
        message.group,
        message.permission.perm if message.HasField("permission") else None,
        message.sticky,
        [
            acl_text.format_entry(entry.scope, entry.type, entry.name, entry.permissions)
            for entry in message.entries
        ],
    )


def encode_acl_entries(
    spec: str | Iterable[str], *, with_permissions: bool = True
) -> list[AclEntryProto]:
    """The entries of an access control list; those to be removed have no permissions."""
    return [
        AclEntryProto(
            type=cast("AclEntryProto.AclEntryTypeProto", entry.type),
            scope=cast("AclEntryProto.AclEntryScopeProto", entry.scope),
            permissions=encode_action(entry.permission),
            name=entry.name,
        )
        for entry in acl_text.parse_spec(spec, with_permissions=with_permissions)
    ]


def encode_action(bits: int) -> AclEntryProto.FsActionProto:
    """Rights as bits: 4 to read, 2 to write, 1 to execute."""
    return cast("AclEntryProto.FsActionProto", bits)


# Extended attributes: their name spaces are written before them, as in "user.author"


def encode_xattr(name: str, value: bytes = b"") -> XAttrProto:
    """An attribute; an empty value is none, to which alone some names can be set."""
    namespace, rest = xattr_text.parse_name(name)
    return XAttrProto(
        namespace=cast("XAttrProto.XAttrNamespaceProto", namespace),
        name=rest,
        value=value or None,
    )


def decode_xattr_name(xattr: XAttrProto) -> str:
    return xattr_text.format_name(xattr.namespace, as_text(xattr.name))


# DataNodes and blocks


def decode_datanode(message: hdfs_pb2.DatanodeInfoProto) -> DatanodeInfo:
    id = message.id
    return DatanodeInfo(
        id.datanodeUuid,
        id.ipAddr,
        id.hostName,
        id.xferPort,
        id.ipcPort,
        id.infoPort,
        message.location,
        hdfs_pb2.DatanodeInfoProto.AdminState.Name(message.adminState),
        message.capacity,
        message.dfsUsed,
        message.remaining,
        message.nonDfsUsed,
        message.blockPoolUsed,
        message.numBlocks,
        message.xceiverCount,
        message.lastUpdate,
        message.softwareVersion,
    )


def decode_block_location(
    message: hdfs_pb2.LocatedBlockProto, *, is_complete: bool
) -> BlockLocation:
    return BlockLocation(
        message.offset,
        message.b.numBytes,
        message.b.blockId,
        message.b.generationStamp,
        message.b.poolId,
        [decode_datanode(node) for node in message.locs],
        list(message.storageIDs),
        [hdfs_pb2.StorageTypeProto.Name(type) for type in message.storageTypes],
        message.corrupt,
        is_complete,
    )


# Storage policies and snapshots


def decode_storage_policy(message: hdfs_pb2.BlockStoragePolicyProto) -> StoragePolicy:
    return StoragePolicy(
        message.policyId,
        message.name,
        *(
            [hdfs_pb2.StorageTypeProto.Name(type) for type in types.storageTypes]
            for types in (
                message.creationPolicy,
                message.creationFallbackPolicy,
                message.replicationFallbackPolicy,
            )
        ),
    )


def decode_snapshottable(
    message: hdfs_pb2.SnapshottableDirectoryStatusProto,
) -> SnapshottableDirectory:
    status = decode_status(message.dirStatus, decode_name(message.parent_fullpath) or "/")
    return SnapshottableDirectory(status, message.snapshot_number, message.snapshot_quota)


def decode_snapshot(message: hdfs_pb2.SnapshotStatusProto) -> Snapshot:
    parent = decode_name(message.parent_fullpath)
    status = decode_status(message.dirStatus, join_path(parent, ".snapshot"))
    return Snapshot(status, message.snapshotID, message.isDeleted)


def decode_diff_report(message: hdfs_pb2.SnapshotDiffReportProto) -> SnapshotDiffReport:
    entries = [
        DiffEntry(
            entry.modificationLabel,
            decode_name(entry.fullpath) or ".",
            decode_name(entry.targetPath) if entry.HasField("targetPath") else None,
        )
        for entry in message.diffReportEntries
    ]
    return SnapshotDiffReport(
        message.snapshotRoot, message.fromSnapshot, message.toSnapshot, entries
    )
