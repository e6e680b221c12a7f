"""Calls of an embedded NameNode, typed: how they are made, and those of snapshots and views."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from cairnfs.namesystem import (
    clones,
    job_output,
    rollback,
    root_snapshot,
    snapshot_changes,
    snapshot_diff,
    snapshots,
    tree_scan,
    view_changes,
    views,
)
from cairnfs.namesystem.paths import FsPath
from cairnfs.namesystem.permissions import Caller
from cairnfs.namesystem.snapshot_records import RootSnapshot
from cairnfs.transaction.calls import CallKey, Operation, R

if TYPE_CHECKING:
    from cairnfs.namenode.embedded import NameNodeThread


class EmbeddedCalls:
    """Calls in the name of one user, as one client."""

    def __init__(self, namenode: NameNodeThread, caller: Caller) -> None:
        self._namenode = namenode
        self.caller = caller
        self.client_id = uuid.uuid4().bytes
        self.client_name = f"DFSClient_{self.client_id.hex()[:12]}"
        self._call_ids = itertools.count()

    def _call(self, operation: Operation[R], *arguments: Any) -> R:
        return self._run(operation, self.caller, *arguments)

    def _run(self, operation: Operation[R], *arguments: Any) -> R:
        key = None
        if operation.at_most_once:
            key = CallKey(self.client_id, next(self._call_ids))
        return self._namenode.wait(self._namenode.namenode.call(operation, *arguments, key=key))


class SnapshotCalls(EmbeddedCalls):
    """Snapshots, what can be done with them, and whole trees at one moment."""

    def allow_snapshot(self, path: str) -> None:
        self._call(snapshots.allow_snapshot, FsPath.parse(path))

    def disallow_snapshot(self, path: str) -> None:
        self._call(snapshots.disallow_snapshot, FsPath.parse(path))

    def create_snapshot(self, path: str, name: str = "") -> str:
        return self.create_snapshots([path], name)[0]

    def create_snapshots(self, paths: Iterable[str], name: str = "") -> tuple[str, ...]:
        """Of several directories and files, at one moment."""
        return self._call(snapshots.create_snapshots, tuple(map(FsPath.parse, paths)), name)

    def rename_snapshot(self, path: str, old: str, new: str) -> None:
        self._call(snapshots.rename_snapshot, FsPath.parse(path), old, new)

    def delete_snapshot(self, path: str, name: str) -> None:
        self._call(snapshots.delete_snapshot, FsPath.parse(path), name)

    def list_snapshots(self, path: str) -> list[snapshots.SnapshotInfo]:
        return self._call(snapshots.list_snapshots, FsPath.parse(path))

    def list_snapshottable(self) -> list[snapshots.SnapshottableInfo]:
        return self._call(snapshots.list_snapshottable)

    def open_view(
        self, path: str, txid: int = 0, limit_ms: int = views.VIEW_LIMIT_MS
    ) -> views.View:
        return self._call(views.open_view, FsPath.parse(path), txid, limit_ms)

    def renew_view(self, number: int) -> views.View:
        return self._call(views.renew_view, number)

    def close_view(self, number: int) -> None:
        self._call(views.close_view, number)

    def list_views(self) -> list[views.View]:
        return self._call(views.list_views)

    def split_part(self, view: int, part: tree_scan.Part, inodes: int) -> tree_scan.Split:
        return self._call(tree_scan.split_part, view, part, inodes)

    def scan_part(
        self,
        view: int,
        part: tree_scan.Part,
        cursor: tree_scan.Cursor | None = None,
        limit: int = tree_scan.PAGE_INODES,
        details: int = 0,
    ) -> tree_scan.ScanPage:
        return self._call(tree_scan.scan_part, view, part, cursor, limit, details)

    def is_view_current(self, view: int) -> bool:
        return self._call(view_changes.is_view_current, view)

    def view_changes(
        self,
        old: int,
        new: int,
        resume: snapshot_changes.Position | None = None,
        limit: int = snapshot_changes.CHANGES_LIMIT,
    ) -> snapshot_changes.ChangePage:
        return self._call(view_changes.view_changes, old, new, resume, limit)

    def rollback_snapshot(self, path: str, name: str, safety: str = "", force: bool = False) -> str:
        """Back to a snapshot; what is given up is in another one, if that is named."""
        return self._call(rollback.rollback_snapshot, FsPath.parse(path), name, safety, force)

    def rollback_snapshots(
        self, paths: Sequence[str], name: str, safety: str, force: bool = False
    ) -> tuple[str, ...]:
        """The same for several, together."""
        parsed = tuple(map(FsPath.parse, paths))
        return self._call(rollback.rollback_snapshots, parsed, name, safety, force)

    def commit_output(
        self, src: str, dst: str, mode: job_output.OutputMode = job_output.OutputMode.REPLACE
    ) -> job_output.Committed:
        return self._call(job_output.commit_output, FsPath.parse(src), FsPath.parse(dst), int(mode))

    def create_root_snapshot(self, name: str = "") -> RootSnapshot:
        return self._call(root_snapshot.create_root_snapshot, name)

    def get_root_snapshot_status(self) -> root_snapshot.RootStatus | None:
        return self._call(root_snapshot.get_root_snapshot_status)

    def rollback_root_snapshot(self, safety: str) -> str:
        return self._call(root_snapshot.rollback_root_snapshot, safety)

    def finalize_root_snapshot(self) -> tuple[str, ...]:
        return self._call(root_snapshot.finalize_root_snapshot)

    def clone_snapshot(self, path: str, name: str, destination: str) -> None:
        self._call(clones.clone_snapshot, FsPath.parse(path), name, FsPath.parse(destination))

    def snapshot_diff(
        self, path: str, old: str, new: str = "", limit: int = snapshot_diff.DIFF_LIMIT
    ) -> Iterator[snapshot_diff.DiffEntry]:
        """What is different; without a name, from the snapshot to now."""
        resume: snapshot_diff.Position | None = None
        while True:
            page: snapshot_diff.DiffPage = self._call(
                snapshot_diff.snapshot_diff, FsPath.parse(path), old, new, resume, limit
            )
            yield from map(snapshot_diff.turn, page.entries) if page.is_turned else page.entries
            resume = page.resume
            if resume is None:
                return

    def snapshot_changes(
        self, path: str, old: str, new: str = "", limit: int = snapshot_changes.CHANGES_LIMIT
    ) -> Iterator[snapshot_changes.Change]:
        """The same in an order to apply; without a name, from the snapshot to now."""
        resume: snapshot_changes.Position | None = None
        while True:
            page: snapshot_changes.ChangePage = self._call(
                snapshot_changes.snapshot_changes, FsPath.parse(path), old, new, resume, limit
            )
            yield from page.changes
            resume = page.resume
            if resume is None:
                return
