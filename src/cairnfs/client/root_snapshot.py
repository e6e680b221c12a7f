"""The root snapshot: the whole file system, to go back to.  Only on CairnFS, for the superuser."""

from __future__ import annotations

from cairnfs.client.records import RootSnapshot, RootSnapshotStatus, SnapshotWork, TreeCounts
from cairnfs.client.snapshots import Snapshots, check_snapshot_names
from cairnfs.wire.proto import cairn_pb2


class RootSnapshots(Snapshots):
    """The snapshot of everything, of which there is one at a time."""

    def create_root_snapshot(self, name: str | None = None) -> RootSnapshot:
        """Take it; without a name it is named by the time."""
        check_snapshot_names(name)
        response = self._call_cairn(
            "createRootSnapshot",
            cairn_pb2.CreateRootSnapshotRequestProto(snapshotName=name),
            cairn_pb2.CreateRootSnapshotResponseProto,
        )
        return _decode_root_snapshot(response.snapshot)

    def root_snapshot_status(self) -> RootSnapshotStatus | None:
        """It, and what has become of the file system since; None if there is none."""
        response = self._call_cairn(
            "getRootSnapshotStatus",
            cairn_pb2.GetRootSnapshotStatusRequestProto(),
            cairn_pb2.GetRootSnapshotStatusResponseProto,
        )
        if not response.HasField("snapshot"):
            return None
        return RootSnapshotStatus(
            _decode_root_snapshot(response.snapshot),
            _decode_counts(response.then),
            _decode_counts(response.now),
            response.lastTxid,
            tuple(response.hindrances),
        )

    def rollback_root_snapshot(self) -> str:
        """Make the whole file system what it was, in place.

        What it was before is kept in a snapshot of /, whose name is returned.
        """
        return self._call_cairn(
            "rollbackRootSnapshot",
            cairn_pb2.RollbackRootSnapshotRequestProto(),
            cairn_pb2.RollbackRootSnapshotResponseProto,
        ).safetySnapshot

    def finalize_root_snapshot(self) -> list[str]:
        """Delete it, and what its roll-backs have kept: there is no way back; the names."""
        response = self._call_cairn(
            "finalizeRootSnapshot",
            cairn_pb2.FinalizeRootSnapshotRequestProto(),
            cairn_pb2.FinalizeRootSnapshotResponseProto,
        )
        return list(response.deletedSnapshots)

    def snapshot_work(self) -> SnapshotWork:
        """What deletions and roll-backs have left to be done in the background."""
        response = self._call_cairn(
            "getSnapshotWork",
            cairn_pb2.GetSnapshotWorkRequestProto(),
            cairn_pb2.GetSnapshotWorkResponseProto,
        )
        return SnapshotWork(
            response.deletedTrees,
            response.deletedSnapshots,
            response.directoriesToSettle,
            response.percentOfSnapshot,
            response.bound,
            response.namenode if response.HasField("namenode") else None,
        )


def _decode_root_snapshot(message: cairn_pb2.RootSnapshotProto) -> RootSnapshot:
    return RootSnapshot(
        message.snapshotName,
        message.txid,
        message.createdMs,
        message.user,
        message.rolledBackMs if message.HasField("rolledBackMs") else None,
        tuple(message.safetySnapshots),
    )


def _decode_counts(message: cairn_pb2.TreeCountsProto) -> TreeCounts:
    return TreeCounts(message.files, message.directories, message.lengthBytes, message.spaceBytes)
