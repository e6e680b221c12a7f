"""Snapshots and differences between them as Hadoop's messages."""

from __future__ import annotations

from collections.abc import Iterable

from cairnfs.namenode.messages import fill_status
from cairnfs.namesystem.paths import FsPath
from cairnfs.namesystem.snapshots import SnapshotInfo, SnapshottableInfo
from cairnfs.wire.proto import hdfs_pb2

_ID_MASK = 2**31 - 1  # snapshots of HDFS have numbers; the last bits of a TxID will do for one


def to_snapshottable(
    found: Iterable[SnapshottableInfo],
) -> hdfs_pb2.SnapshottableDirectoryListingProto:
    message = hdfs_pb2.SnapshottableDirectoryListingProto()
    for info in found:
        added = message.snapshottableDirListing.add()
        fill_status(added.dirStatus, info.status)
        added.dirStatus.flags = 0  # as in HDFS: here they go without saying
        added.snapshot_quota = info.quota
        added.snapshot_number = info.snapshots
        parent = "" if info.path == "/" else info.path.rpartition("/")[0] or "/"
        added.parent_fullpath = parent.encode()
    return message


def to_snapshots(found: Iterable[SnapshotInfo], path: FsPath) -> hdfs_pb2.SnapshotListingProto:
    message = hdfs_pb2.SnapshotListingProto()
    for info in found:
        added = message.snapshotListing.add()
        fill_status(added.dirStatus, info.status)
        added.snapshotID = info.txid & _ID_MASK
        added.parent_fullpath = path.text.encode()
        added.isDeleted = False
    return message
