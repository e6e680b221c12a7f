"""Changes between two snapshots, made to a copy of the first one: so it becomes the second.

One change after the other, in the order in which `FileSystem.snapshot_changes` tells them.  What
was moved out is kept aside, in a directory of the target whose name nobody else has, until it is
moved in; that is how names are exchanged.  A directory gets its attributes, of which its time is
one, when all that is below it is done.  Nothing is kept in memory but the way to where we are.
"""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Iterable
from typing import TYPE_CHECKING

from cairnfs.client.matching import Wanted, match
from cairnfs.client.messages import join_path
from cairnfs.client.records import ChangeKind, FileType, SnapshotChange
from cairnfs.errors import FileNotFoundException

if TYPE_CHECKING:
    from cairnfs.client.filesystem import FileSystem

_BUFFER_BYTES = 4 << 20
_ITSELF = "."


def apply_changes(
    changes: Iterable[SnapshotChange],
    source: FileSystem,
    new_state: str,
    target: FileSystem,
    copy: str,
) -> int:
    """Make `copy`, which is as the old state was, what `new_state` is; how many changes it were.

    Both may be on clusters of their own.  `new_state` is where to read what is new: a snapshot,
    such as `/data/.snapshot/monday`, or the directory itself while nobody changes it.
    """
    return _Copy(source, new_state, target, copy).apply(changes)


class _Copy:
    """The copy, and how far it is."""

    def __init__(self, source: FileSystem, new_state: str, target: FileSystem, copy: str) -> None:
        self._source = source
        self._new_state = new_state
        self._target = target
        self._copy = copy
        self._aside = join_path(copy, f".cairn-aside-{uuid.uuid4().hex}")
        self._has_aside = False
        self._open: list[str] = []  # directories whose attributes are still to be set

    def apply(self, changes: Iterable[SnapshotChange]) -> int:
        mtime_ms = self._target.get_file_status(self._copy).mtime_ms
        count = 0
        for change in changes:
            count += 1
            if change.kind in (ChangeKind.DELETED, ChangeKind.MOVED_OUT):
                self._take_away(change)
            else:
                self._finish_directories(change.path)
                self._put(change)
        self._finish_directories(None)
        if self._has_aside:
            self._target.delete(self._aside)
        if count:
            mtime_ms = self._source.get_file_status(self._new_state).mtime_ms
        if self._target.get_file_status(self._copy).mtime_ms != mtime_ms:
            self._target.set_times(self._copy, mtime_ms)
        return count

    def _take_away(self, change: SnapshotChange) -> None:
        path = self._in_copy(change.path)
        if change.other is not None:
            if not self._has_aside:
                self._target.mkdirs(self._aside, 0o700)
                self._has_aside = True
            self._target.rename(path, self._kept_aside(change), overwrite=False)
        elif not self._target.delete(path, recursive=True):
            raise FileNotFoundException(
                f"{path} is not there to be deleted: {self._copy} is no copy of the old state"
            )

    def _put(self, change: SnapshotChange) -> None:
        path = self._in_copy(change.path)
        is_moved = change.kind is ChangeKind.MOVED_IN and change.other is not None
        if is_moved:
            self._target.rename(self._kept_aside(change), path, overwrite=False)
            return  # if it is different, too, that is told next
        if change.kind is not ChangeKind.MODIFIED:
            self._create(change, path)
        elif change.is_rewritten:
            self._write(change.path, path)
        if change.type is FileType.DIRECTORY:
            self._open.append(change.path)
        elif change.type is FileType.FILE:
            self._set_attributes(change.path)

    def _create(self, change: SnapshotChange, path: str) -> None:
        if change.type is FileType.DIRECTORY:
            self._target.mkdirs(path, 0o700, create_parents=False)
        elif change.type is FileType.FILE:
            self._write(change.path, path)
        else:
            link = self._source.get_link_target(self._in_new_state(change.path))
            self._target.create_symlink(link, path, create_parents=False)

    def _write(self, name: str, path: str) -> None:
        where = self._in_new_state(name)
        status = self._source.get_file_status(where)
        with (
            self._source.open(where) as content,
            self._target.create(
                path,
                overwrite=True,
                replication=status.replication,
                block_size=status.block_size_bytes,
                create_parents=False,
            ) as written,
        ):
            shutil.copyfileobj(content, written, _BUFFER_BYTES)

    def _set_attributes(self, name: str) -> None:
        where, path = self._in_new_state(name), self._in_copy(name)
        status = self._source.get_file_status(where)
        wanted = Wanted(
            owner=status.owner,
            group=status.group,
            mode=status.mode,
            acl=self._source.get_acl_status(where).entries if status.has_acl else [],
            replication=status.replication if status.is_file else None,
        )
        match(self._target, path, self._target.get_file_status(path), wanted)
        self._target.set_times(path, status.mtime_ms)

    def _finish_directories(self, name: str | None) -> None:
        """Those that are done when `name` is next: it is not below them."""
        while self._open and (name is None or not _is_below(name, self._open[-1])):
            self._set_attributes(self._open.pop())

    def _kept_aside(self, change: SnapshotChange) -> str:
        return join_path(self._aside, str(change.id))

    def _in_copy(self, name: str) -> str:
        return self._copy if name == _ITSELF else join_path(self._copy, name)

    def _in_new_state(self, name: str) -> str:
        return self._new_state if name == _ITSELF else join_path(self._new_state, name)


def _is_below(name: str, directory: str) -> bool:
    return directory == _ITSELF or name == directory or name.startswith(f"{directory}/")
