"""A NameNode's messages as WebHDFS's JSON: the keys are those of Hadoop's JsonUtil."""

from __future__ import annotations

from collections.abc import Iterable

from cairnfs.client.messages import decode_xattr_name
from cairnfs.namenode.messages import from_acl_entries, to_signed
from cairnfs.namesystem.acls import format_entry
from cairnfs.webhdfs.requests import Json, encode_json
from cairnfs.wire.proto import acl_pb2, cairn_pb2, hdfs_pb2, xattr_pb2
from cairnfs.wire.protocols import as_text
from cairnfs.xattr_text import encode_value

_TYPES = {
    hdfs_pb2.HdfsFileStatusProto.IS_DIR: "DIRECTORY",
    hdfs_pb2.HdfsFileStatusProto.IS_FILE: "FILE",
    hdfs_pb2.HdfsFileStatusProto.IS_SYMLINK: "SYMLINK",
}
_FLAGS = {
    hdfs_pb2.HdfsFileStatusProto.HAS_ACL: "aclBit",
    hdfs_pb2.HdfsFileStatusProto.HAS_CRYPT: "encBit",
    hdfs_pb2.HdfsFileStatusProto.HAS_EC: "ecBit",
    hdfs_pb2.HdfsFileStatusProto.SNAPSHOT_ENABLED: "snapshotEnabled",
}
_DIFFERENCES = {"M": "MODIFY", "+": "CREATE", "-": "DELETE", "R": "RENAME"}


# Files and directories


def describe_status(status: hdfs_pb2.HdfsFileStatusProto) -> Json:
    described = {
        "accessTime": status.access_time,
        "blockSize": status.blocksize,
        "childrenNum": max(0, status.childrenNum),
        "fileId": status.fileId,
        "group": as_text(status.group),
        "length": status.length,
        "modificationTime": status.modification_time,
        "owner": as_text(status.owner),
        "pathSuffix": status.path.decode(errors="replace"),
        "permission": f"{status.permission.perm & 0o1777:o}",
        "replication": status.block_replication,
        "storagePolicy": status.storagePolicy,
        "type": _TYPES[status.fileType],
    }
    if status.HasField("symlink"):
        described["symlink"] = status.symlink.decode(errors="replace")
    for flag, name in _FLAGS.items():
        if status.flags & flag:
            described[name] = True
    return described


def describe_path(path: str, status: hdfs_pb2.HdfsFileStatusProto) -> Json:
    """As Hadoop describes trash roots, and nothing else."""
    return {
        "path": path,
        "length": status.length,
        "isdir": status.fileType == hdfs_pb2.HdfsFileStatusProto.IS_DIR,
        "block_replication": status.block_replication,
        "blocksize": status.blocksize,
        "modification_time": status.modification_time,
        "access_time": status.access_time,
        "permission": f"{status.permission.perm & 0o1777:o}",
        "owner": as_text(status.owner),
        "group": as_text(status.group),
    }


def describe_page(listing: hdfs_pb2.DirectoryListingProto) -> Json:
    statuses = [describe_status(status) for status in listing.partialListing]
    return {
        "DirectoryListing": {
            "partialListing": {"FileStatuses": {"FileStatus": statuses}},
            "remainingEntries": listing.remainingEntries,
        }
    }


def describe_acl(status: acl_pb2.AclStatusProto) -> Json:
    return {
        "AclStatus": {
            "entries": list(map(format_entry, from_acl_entries(status.entries))),
            "group": as_text(status.group),
            "owner": as_text(status.owner),
            "permission": f"{status.permission.perm & 0o1777:o}",
            "stickyBit": status.sticky,
        }
    }


# Space


def describe_content(summary: hdfs_pb2.ContentSummaryProto) -> Json:
    return {
        "ContentSummary": {
            "directoryCount": summary.directoryCount,
            "ecPolicy": summary.erasureCodingPolicy,
            "fileCount": summary.fileCount,
            "length": summary.length,
            **_describe_quota(summary),
            "snapshotDirectoryCount": summary.snapshotDirectoryCount,
            "snapshotFileCount": summary.snapshotFileCount,
            "snapshotLength": summary.snapshotLength,
            "snapshotSpaceConsumed": summary.snapshotSpaceConsumed,
        }
    }


def describe_usage(usage: hdfs_pb2.QuotaUsageProto) -> Json:
    return {
        "QuotaUsage": {
            "fileAndDirectoryCount": usage.fileAndDirectoryCount,
            **_describe_quota(usage),
        }
    }


def _describe_quota(usage: hdfs_pb2.ContentSummaryProto | hdfs_pb2.QuotaUsageProto) -> Json:
    types = {
        hdfs_pb2.StorageTypeProto.Name(info.type): {
            "consumed": info.consumed,
            "quota": to_signed(info.quota),
        }
        for info in usage.typeQuotaInfos.typeQuotaInfo
        if to_signed(info.quota) != -1
    }
    return {
        "quota": to_signed(usage.quota),
        "spaceConsumed": usage.spaceConsumed,
        "spaceQuota": to_signed(usage.spaceQuota),
        "typeQuota": types,
    }


# Blocks


def describe_blocks(blocks: hdfs_pb2.LocatedBlocksProto) -> Json:
    last = describe_block(blocks.lastBlock) if blocks.HasField("lastBlock") else None
    return {
        "LocatedBlocks": {
            "fileLength": blocks.fileLength,
            "isLastBlockComplete": blocks.isLastBlockComplete,
            "isUnderConstruction": blocks.underConstruction,
            "lastLocatedBlock": last,
            "locatedBlocks": list(map(describe_block, blocks.blocks)),
        }
    }


def describe_block(located: hdfs_pb2.LocatedBlockProto) -> Json:
    return {
        "block": {
            "blockId": located.b.blockId,
            "blockPoolId": located.b.poolId,
            "generationStamp": located.b.generationStamp,
            "numBytes": located.b.numBytes,
        },
        "blockToken": {"urlString": NO_TOKEN},
        "cachedLocations": [],
        "isCorrupt": located.corrupt,
        "locations": list(map(_describe_datanode, located.locs)),
        "startOffset": located.offset,
        "storageTypes": list(map(hdfs_pb2.StorageTypeProto.Name, located.storageTypes)),
    }


NO_TOKEN = "AAAAAA"  # four parts of no length, as Hadoop's tokens are written


def _describe_datanode(node: hdfs_pb2.DatanodeInfoProto) -> Json:
    id = node.id
    return {
        "adminState": hdfs_pb2.DatanodeInfoProto.AdminState.Name(node.adminState),
        "blockPoolUsed": node.blockPoolUsed,
        "cacheCapacity": node.cacheCapacity,
        "cacheUsed": node.cacheUsed,
        "capacity": node.capacity,
        "dfsUsed": node.dfsUsed,
        "hostName": as_text(id.hostName),
        "infoPort": id.infoPort,
        "infoSecurePort": id.infoSecurePort,
        "ipAddr": as_text(id.ipAddr),
        "ipcPort": id.ipcPort,
        "lastBlockReportMonotonic": node.lastBlockReportMonotonic,
        "lastBlockReportTime": node.lastBlockReportTime,
        "lastUpdate": node.lastUpdate,
        "lastUpdateMonotonic": node.lastUpdateMonotonic,
        "name": _address(node),
        "networkLocation": as_text(node.location),
        "remaining": node.remaining,
        "storageID": as_text(id.datanodeUuid),
        "xceiverCount": node.xceiverCount,
        "xferPort": id.xferPort,
    }


def describe_locations(blocks: Iterable[hdfs_pb2.LocatedBlockProto]) -> Json:
    locations = [
        {
            "cachedHosts": [],
            "corrupt": block.corrupt,
            "hosts": [as_text(node.id.hostName) for node in block.locs],
            "length": block.b.numBytes,
            "names": list(map(_address, block.locs)),
            "offset": block.offset,
            "storageTypes": list(map(hdfs_pb2.StorageTypeProto.Name, block.storageTypes)),
            "topologyPaths": [f"{as_text(node.location)}/{_address(node)}" for node in block.locs],
        }
        for block in blocks
    ]
    return {"BlockLocations": {"BlockLocation": locations}}


def _address(node: hdfs_pb2.DatanodeInfoProto) -> str:
    return f"{as_text(node.id.ipAddr)}:{node.id.xferPort}"


# The file system


def describe_defaults(defaults: hdfs_pb2.FsServerDefaultsProto) -> Json:
    return {
        "FsServerDefaults": {
            "blockSize": defaults.blockSize,
            "bytesPerChecksum": defaults.bytesPerChecksum,
            "checksumType": int(defaults.checksumType),
            "defaultStoragePolicyId": defaults.policyId,
            "encryptDataTransfer": defaults.encryptDataTransfer,
            "fileBufferSize": defaults.fileBufferSize,
            "keyProviderUri": defaults.keyProviderUri,
            "replication": defaults.replication,
            "trashInterval": defaults.trashInterval,
            "writePacketSize": defaults.writePacketSize,
        }
    }


def describe_policy(policy: hdfs_pb2.BlockStoragePolicyProto) -> Json:
    def names(types: hdfs_pb2.StorageTypesProto) -> list[str]:
        return list(map(hdfs_pb2.StorageTypeProto.Name, types.storageTypes))

    return {
        # What is kept in memory first is decided when a file is made, and stays so.
        "copyOnCreateFile": as_text(policy.name) == "LAZY_PERSIST",
        "creationFallbacks": names(policy.creationFallbackPolicy),
        "id": policy.policyId,
        "name": as_text(policy.name),
        "replicationFallbacks": names(policy.replicationFallbackPolicy),
        "storageTypes": names(policy.creationPolicy),
    }


# Extended attributes


def describe_xattrs(attributes: Iterable[xattr_pb2.XAttrProto], encoding: str) -> Json:
    return {
        "XAttrs": [
            {"name": decode_xattr_name(each), "value": encode_value(each.value, encoding)}
            for each in attributes
        ]
    }


def describe_xattr_names(attributes: Iterable[xattr_pb2.XAttrProto]) -> Json:
    """The names are JSON within JSON: a slip of Hadoop's that its clients rely on."""
    return {"XAttrNames": encode_json(list(map(decode_xattr_name, attributes))).decode()}


# Snapshots


def describe_differences(report: hdfs_pb2.SnapshotDiffReportProto) -> Json:
    differences = []
    for entry in report.diffReportEntries:
        difference = {
            "sourcePath": entry.fullpath.decode(errors="replace"),
            "type": _DIFFERENCES[entry.modificationLabel],
        }
        if entry.HasField("targetPath"):
            difference["targetPath"] = entry.targetPath.decode(errors="replace")
        differences.append(difference)
    return {
        "SnapshotDiffReport": {
            "diffList": differences,
            "fromSnapshot": as_text(report.fromSnapshot),
            "snapshotRoot": as_text(report.snapshotRoot),
            "toSnapshot": as_text(report.toSnapshot),
        }
    }


def describe_difference_page(report: hdfs_pb2.SnapshotDiffReportListingProto) -> Json:
    def describe(entry: hdfs_pb2.SnapshotDiffReportListingEntryProto) -> Json:
        described = {
            "dirId": entry.dirId,
            "fileId": entry.fileId,
            "isReference": entry.isReference,
            "sourcePath": entry.fullpath.decode(errors="replace"),
        }
        if entry.HasField("targetPath"):
            described["targetPath"] = entry.targetPath.decode(errors="replace")
        return described

    return {
        "SnapshotDiffReportListing": {
            "lastPath": report.cursor.startPath.decode(errors="replace"),
            "lastIndex": report.cursor.index,
            "isFromEarlier": report.isFromEarlier,
            "modifyList": list(map(describe, report.modifiedEntries)),
            "createList": list(map(describe, report.createdEntries)),
            "deleteList": list(map(describe, report.deletedEntries)),
        }
    }


def describe_changes(response: cairn_pb2.GetSnapshotChangesResponseProto) -> Json:
    message = cairn_pb2.SnapshotChangeProto
    described: Json = {"changes": []}
    for change in response.changes:
        described["changes"].append(
            {
                "kind": message.Kind.Name(change.kind),
                "path": change.path.decode(errors="replace"),
                "otherPath": change.otherPath.decode(errors="replace")
                if change.HasField("otherPath")
                else None,
                "txid": change.txid,
                "fileId": change.fileId,
                "fileType": message.FileType.Name(change.fileType),
                "contentChanged": change.contentChanged,
            }
        )
    if response.cursor:
        described["cursor"] = response.cursor.hex()
    return described


def describe_snapshottable(directories: hdfs_pb2.SnapshottableDirectoryListingProto) -> Json:
    return [
        {
            "dirStatus": describe_status(directory.dirStatus),
            "parentFullPath": directory.parent_fullpath.decode(errors="replace"),
            "snapshotNumber": directory.snapshot_number,
            "snapshotQuota": directory.snapshot_quota,
        }
        for directory in directories.snapshottableDirListing
    ]


def describe_snapshots(snapshots: hdfs_pb2.SnapshotListingProto) -> Json:
    return [
        {
            "deletionStatus": "DELETED" if snapshot.isDeleted else "ACTIVE",
            "dirStatus": describe_status(snapshot.dirStatus),
            "fullPath": "{}/.snapshot/{}".format(
                snapshot.parent_fullpath.decode(errors="replace").rstrip("/"),
                snapshot.dirStatus.path.decode(errors="replace"),
            ),
            "snapshotID": snapshot.snapshotID,
        }
        for snapshot in snapshots.snapshotListing
    ]
