"""What is different between two snapshots of a directory, or between one and now, as HDFS tells it.

The tree of the old side is walked, and of each directory both lists of children are compared; a
directory below which nothing has changed since the earlier side is passed over
(`Totals.changed`).  An inode that is in both trees under another parent or name has been moved,
with everything below it.

Paths are those of the earlier side, and relative; the target of a move is where it is on the
later side, and what is new is named below the earlier path of its directory.  What was moved out
of a directory that is gone counts as new.  From a later side to an earlier one, it is the same
turned round: so does HDFS, with the paths of the earlier side again.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator

import msgspec

from cairnfs.namesystem.counterparts import Names, names_of
from cairnfs.namesystem.inodes import Inode
from cairnfs.namesystem.paths import FsPath
from cairnfs.namesystem.permissions import Caller
from cairnfs.namesystem.snapshot_comparison import (
    Comparison,
    Directory,
    Pair,
    is_modified,
    name_of,
)
from cairnfs.namesystem.snapshot_sides import compare
from cairnfs.transaction.calls import operation
from cairnfs.transaction.transaction import Transaction

DIFF_LIMIT = 1000  # entries of a page
LOOKS_MAX = 20_000  # names that are compared for one page, however few entries that gives
WHOLE_DIFF = 2**31 - 1  # entries: as many as there are


class DiffKind(enum.IntEnum):
    """What became of an inode."""

    MODIFIED = 0
    CREATED = 1  # or moved in from outside
    DELETED = 2  # or moved out
    RENAMED = 3


class DiffEntry(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One difference; paths are relative to the directory that was asked about."""

    kind: DiffKind
    path: Names
    target: Names | None  # of what was renamed
    is_directory: bool


class Position(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """How far the walk has come: the last name that was looked at, on the old side's paths.

    `told` are the directories on the way, that name included, that were told to be modified.
    """

    path: Names
    told: tuple[bool, ...]


class DiffPage(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Some of the differences, and where to go on; None: that was all.

    If `is_turned`, they are those from what was asked for as new to what was asked for as old.
    """

    entries: list[DiffEntry]
    resume: Position | None
    is_turned: bool = False


@operation(mutates=False, walks=True)
def snapshot_diff(
    tx: Transaction,
    caller: Caller,
    path: FsPath,
    old: str,
    new: str,
    resume: Position | None = None,
    limit: int = DIFF_LIMIT,
) -> DiffPage:
    """The differences from one snapshot to another; an empty name means now."""
    states = compare(tx, caller, path, old, new, is_first=resume is None)
    if states.is_over:
        return DiffPage([], None)
    is_turned = states.old is states.later
    report = Report(states.turned() if is_turned else states)
    entries: list[DiffEntry] = []
    for looks, (place, found) in enumerate(report.walk(resume), 1):
        entries += found
        if len(entries) >= limit or (looks >= LOOKS_MAX and limit != WHOLE_DIFF):
            return DiffPage(entries, place, is_turned)
    return DiffPage(entries, None, is_turned)


_OPPOSITE = {
    DiffKind.MODIFIED: DiffKind.MODIFIED,
    DiffKind.CREATED: DiffKind.DELETED,
    DiffKind.DELETED: DiffKind.CREATED,
    DiffKind.RENAMED: DiffKind.RENAMED,
}


def turn(entry: DiffEntry) -> DiffEntry:
    """A difference the other way round."""
    kind = _OPPOSITE[entry.kind]
    if entry.target is None:
        return msgspec.structs.replace(entry, kind=kind)
    return msgspec.structs.replace(entry, kind=kind, path=entry.target, target=entry.path)


class _Walked:
    """A directory in the middle of the walk."""

    def __init__(self, directory: Directory, pairs: Iterator[Pair], *, is_told: bool) -> None:
        self.directory = directory
        self.pairs = pairs
        self.is_told = is_told  # to be modified: once is enough


class Report:
    """The walk through the old side, directories before what is below them."""

    def __init__(self, comparison: Comparison) -> None:
        self._states = comparison

    def walk(self, resume: Position | None) -> Iterator[tuple[Position, list[DiffEntry]]]:
        """What is told of each name that is looked at, behind a place."""
        old, new = self._states.old.root, self._states.new.root
        if resume is None:
            entries = self._modified((), old, new)
            resume = Position((), (bool(entries),))
            yield resume, entries
        if not old.is_directory:
            return
        stack = [self._enter(Directory(old, new), resume, 0)]
        while stack:
            walked = stack[-1]
            pair = next(walked.pairs, None)
            if pair is None:
                stack.pop()
                continue
            directory = walked.directory
            name = name_of(pair)
            path = (*directory.old_path, name)
            below = self._below(directory, pair)
            if resume.path[: len(path)] == path:  # on the way to where we were
                if below is not None:
                    stack.append(self._enter(below, resume, len(path)))
                continue
            found = self._compare(walked, pair)
            is_told = any(each.kind is DiffKind.MODIFIED and each.path == path for each in found)
            told = (*(each.is_told for each in stack), is_told)
            if below is not None:
                start = Position(path, told)
                stack.append(self._enter(below, start, len(path)))
            yield Position(path, told), found

    def _enter(self, directory: Directory, resume: Position, depth: int) -> _Walked:
        start = resume.path[depth] if len(resume.path) > depth else b""
        is_told = len(resume.told) > depth and resume.told[depth]
        return _Walked(directory, self._states.pairs(directory, start), is_told=is_told)

    def _below(self, directory: Directory, pair: Pair) -> Directory | None:
        """The directory under a name of the old side, if there may be differences in it."""
        old = pair[0]
        if old is None or not old.is_directory:
            return None
        path = (*directory.old_path, old.name)
        now = self._now(directory, pair)
        if now is None or not self._states.is_changed(old, now[0]):
            return None
        return Directory(old, now[0], path, now[1])

    def _now(self, directory: Directory, pair: Pair) -> tuple[Inode, Names] | None:
        """What an inode of the old side is on the new one, and where."""
        old, new = pair
        assert old is not None
        if new is not None and self._states.is_same(directory, old, new):
            return new, (*directory.new_path, new.name)
        found = self._states.find_new((*directory.old_path, old.name), old)
        return (found[-1], names_of(found)) if found else None

    def _compare(self, walked: _Walked, pair: Pair) -> list[DiffEntry]:
        """What is told of a name; the first time that it is not the same, the directory too."""
        directory = walked.directory
        assert directory.old is not None
        old, new = pair
        path = (*directory.old_path, name_of(pair))
        if old is not None and new is not None and self._states.is_same(directory, old, new):
            return self._modified(path, old, new)
        entries: list[DiffEntry] = []
        if not walked.is_told:
            walked.is_told = True
            entries.append(_entry(DiffKind.MODIFIED, directory.old_path, directory.old))
        if old is not None:
            entries += self._gone(path, old)
        if new is not None and not self._is_told_where_it_was(directory, new):
            entries.append(_entry(DiffKind.CREATED, path, new))
        return entries

    def _gone(self, path: Names, inode: Inode) -> list[DiffEntry]:
        """An inode that is not there any more, but perhaps elsewhere in the tree."""
        found = self._states.find_new(path, inode)
        if not found:
            return [_entry(DiffKind.DELETED, path, inode)]
        renamed = DiffEntry(DiffKind.RENAMED, path, names_of(found), inode.is_directory)
        return [renamed, *self._modified(path, inode, found[-1])]

    def _modified(self, path: Names, old: Inode, new: Inode) -> list[DiffEntry]:
        """Whether an inode itself is different; a new time alone does not count."""
        if is_modified(old, new) or (old != new and self._states.is_rewritten(old, new)):
            return [_entry(DiffKind.MODIFIED, path, old)]
        return []

    def _is_told_where_it_was(self, directory: Directory, inode: Inode) -> bool:
        """Whether the walk comes to it on the old side: not if a directory above it is gone."""
        found = self._states.find_old((*directory.new_path, inode.name), inode)
        if not found:
            return False
        path = names_of(found)
        return all(
            self._states.find_new(path[: depth + 1], above)
            for depth, above in enumerate(found[:-1])
        )


def _entry(kind: DiffKind, path: Names, inode: Inode) -> DiffEntry:
    return DiffEntry(kind, path, None, inode.is_directory)
