"""What happened between two snapshots in the categories of thesis 000, in an order to apply.

First, with paths of the old side, what *leaves* its place: what was deleted or moved out, each
after what leaves from below it.  Then, with paths of the new side, what *arrives* or is
different: what was created or moved in, and what was modified, each before what is below it.
Whoever keeps what was moved out aside until it is moved in can so take one step after the
other: no step needs a name that is still taken, a directory that is not there yet, or anything
that is gone already; also where names were exchanged or directories turned inside out.

What was deleted is told with its directory only; of what is new every inode is told.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator

import msgspec

from cairnfs.errors import SnapshotException
from cairnfs.namesystem.counterparts import Names, Side, names_of
from cairnfs.namesystem.inodes import Inode, Kind
from cairnfs.namesystem.layers import totals_of
from cairnfs.namesystem.lookup import key_of
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
from cairnfs.store.base import FOREVER, PRESENT, Totals
from cairnfs.transaction.calls import operation
from cairnfs.transaction.transaction import Transaction

CHANGES_LIMIT = 1000  # of a page
LOOKS_MAX = 20_000  # names that are compared for one page, however few changes that gives
PRESENT_LIMIT = 100_000  # changes up to now, which come in one answer


class ChangeKind(enum.IntEnum):
    """What happened to an inode; the numbers are those of the protocol."""

    CREATED = 1
    DELETED = 2
    MODIFIED = 3
    MOVED_OUT = 4
    MOVED_IN = 5


class Change(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One change; paths are relative to the directory that was asked about.

    `path` is of the old side for what leaves, else of the new side.
    """

    kind: ChangeKind
    path: Names
    other: Names | None  # of a move within the directory: its other end
    inode_id: int  # by which both ends of a move are known
    inode_kind: Kind
    txid: int
    is_rewritten: bool = False  # of a file that was modified: its content, too


class Position(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """How far the walk has come: the last path that was looked at, in which of its halves."""

    is_arriving: bool
    path: Names


class ChangePage(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Some of the changes, and where to go on; None: that was all."""

    changes: list[Change]
    resume: Position | None


@operation(mutates=False, walks=True)
def snapshot_changes(
    tx: Transaction,
    caller: Caller,
    path: FsPath,
    old: str,
    new: str,
    resume: Position | None = None,
    limit: int = CHANGES_LIMIT,
) -> ChangePage:
    """The changes from one snapshot to another, in the order in which to apply them.

    An empty name means now; since that does not stay as it is, all changes up to it come at once.
    """
    states = compare(tx, caller, path, old, new, is_first=resume is None)
    if states.later.txid != PRESENT:
        return page_of_changes(states, resume, limit)
    page = page_of_changes(states, None, PRESENT_LIMIT + 1, looks_max=FOREVER)
    if len(page.changes) > PRESENT_LIMIT:
        raise SnapshotException(
            f"There are more than {PRESENT_LIMIT} changes of {path} between snapshot"
            f" {old or new} and now: take a snapshot, and compare with that"
        )
    return page


def page_of_changes(
    states: Comparison, resume: Position | None, limit: int, looks_max: int = LOOKS_MAX
) -> ChangePage:
    """Some of the changes from one state to another, behind a place."""
    changes: list[Change] = []
    if not states.is_over:
        for looks, (place, found) in enumerate(Changes(states).walk(resume), 1):
            changes += found
            if len(changes) >= limit or looks >= looks_max:
                return ChangePage(changes, place)
    return ChangePage(changes, None)


class _Walked:
    """A directory in the middle of a walk."""

    def __init__(
        self, directory: Directory, pairs: Iterator[Pair], path: Names, leaving: list[Change]
    ) -> None:
        self.directory = directory
        self.pairs = pairs
        self.path = path
        self.leaving = leaving  # of the directory itself, told after what is below it


_Step = tuple[Names, list[Change], Directory | None]
"""A path, what is told of it, and the directory to go on with."""


class Changes:
    """The two halves of the walk, each of which may begin behind a path."""

    def __init__(self, comparison: Comparison) -> None:
        self._states = comparison

    def walk(self, resume: Position | None) -> Iterator[tuple[Position, list[Change]]]:
        old, new = self._states.old.root, self._states.new.root
        top = self._below(Directory(None, None), old, new)
        if resume is None or not resume.is_arriving:
            if old.is_directory:
                behind = () if resume is None else resume.path
                for path, found in self._walk(top, behind, self._leave, is_postorder=True):
                    yield Position(False, path), found
            resume = None
        if resume is None:
            yield Position(True, ()), self._modified((), old, new, top)
        if new.is_directory:
            behind = () if resume is None else resume.path
            for path, found in self._walk(top, behind, self._arrive, is_postorder=False):
                yield Position(True, path), found

    def _walk(
        self,
        top: Directory,
        behind: Names,
        look: Callable[[Directory, Pair], _Step],
        *,
        is_postorder: bool,
    ) -> Iterator[tuple[Names, list[Change]]]:
        stack = [self._enter(top, (), behind)]
        while stack:
            walked = stack[-1]
            pair = next(walked.pairs, None)
            if pair is None:
                stack.pop()
                if stack and is_postorder:
                    yield walked.path, walked.leaving
                continue
            path, found, below = look(walked.directory, pair)
            is_on_the_way = behind[: len(path)] == path
            if below is not None and not (is_postorder and path == behind):
                stack.append(self._enter(below, path, behind if is_on_the_way else ()))
                stack[-1].leaving = found
                if not is_postorder and not is_on_the_way:
                    yield path, found
            elif not is_on_the_way:
                yield path, found

    def _enter(self, directory: Directory, path: Names, behind: Names) -> _Walked:
        start = behind[len(path)] if len(behind) > len(path) else b""
        return _Walked(directory, self._states.pairs(directory, start), path, [])

    def _below(
        self,
        directory: Directory,
        old: Inode | None,
        new: Inode | None,
        old_path: Names = (),
        new_path: Names = (),
    ) -> Directory:
        """A directory to go on with, of one that is walked."""
        txid = self._txid_of(new if self._states.later is self._states.new else old, directory)
        return self._states.below(directory, old, new, old_path, new_path, txid)

    # What leaves.

    def _leave(self, directory: Directory, pair: Pair) -> _Step:
        """What becomes of a name of the old side."""
        old, new = pair
        path = (*directory.old_path, name_of(pair))
        if old is None:
            return path, [], None
        states = self._states
        if new is not None and states.is_same(directory, old, new):
            if not old.is_directory or not states.is_changed(old, new):
                return path, [], None
            return path, [], self._below(directory, old, new, path, (*directory.new_path, new.name))
        way = states.find_new(path, old)
        if way is not None:
            now, target = way[-1], names_of(way)
            txid = self._txid_of_both(old, now, directory)
            id = states.id_of_both(old, now)
            found = [Change(ChangeKind.MOVED_OUT, path, target, id, old.kind, txid)]
            if not old.is_directory or not states.is_changed(old, now):
                return path, found, None
            return path, found, self._below(directory, old, now, path, target)
        found = []
        if directory.new is not None:  # else it goes with its directory
            is_elsewhere = states.is_from_elsewhere(old, states.old)
            kind = ChangeKind.MOVED_OUT if is_elsewhere else ChangeKind.DELETED
            found.append(_change(kind, path, old, self._txid_of_one(old, states.old, directory)))
        if not old.is_directory or not states.may_have_lost(old, is_layered=directory.is_layered):
            return path, found, None
        return path, found, self._below(directory, old, None, path)

    # What arrives.

    def _arrive(self, directory: Directory, pair: Pair) -> _Step:
        """What a name of the new side is."""
        old, new = pair
        path = (*directory.new_path, name_of(pair))
        if new is None:
            return path, [], None
        states = self._states
        if old is not None and states.is_same(directory, old, new):
            return self._keep(directory, (*directory.old_path, old.name), path, old, new)
        way = states.find_old(path, new)
        if way is not None and states.is_walked(way):
            before, source = way[-1], names_of(way)
            txid = self._txid_of_both(before, new, directory)
            id = states.id_of_both(before, new)
            moved = Change(ChangeKind.MOVED_IN, path, source, id, new.kind, txid)
            _, found, below = self._keep(directory, source, path, before, new)
            return path, [moved, *found], below
        is_elsewhere = states.is_from_elsewhere(new, states.new)
        kind = ChangeKind.MOVED_IN if is_elsewhere else ChangeKind.CREATED
        found = [_change(kind, path, new, self._txid_of_one(new, states.new, directory))]
        if not new.is_directory:
            return path, found, None
        return path, found, self._below(directory, None, new, new_path=path)

    def _keep(
        self, directory: Directory, source: Names, path: Names, old: Inode, new: Inode
    ) -> _Step:
        """What is on both sides, looked at on the new one."""
        is_walked = new.is_directory and self._states.is_changed(old, new)
        if old == new and not is_walked:
            return path, [], None
        below = self._below(directory, old, new, source, path) if is_walked else None
        return path, self._modified(path, old, new, directory), below

    def _modified(self, path: Names, old: Inode, new: Inode, directory: Directory) -> list[Change]:
        """Whether an inode itself is different; here, a time counts too."""
        states = self._states
        is_touched = is_rewritten = False
        if new.is_directory:
            is_touched = self._is_touched(old, new)
        elif old != new:
            is_touched = old.mtime_ms != new.mtime_ms
            is_rewritten = states.is_rewritten(old, new)
        if not (is_touched or is_rewritten or is_modified(old, new)):
            return []
        txid = self._txid_of_both(old, new, directory)
        if new.is_directory and is_touched:
            later = new if states.later is states.new else old
            touched = self._between(totals_of(states.later.rows, later).touched, directory)
            txid = max(txid, touched) if is_modified(old, new) else touched
        kind = ChangeKind.MODIFIED
        return [Change(kind, path, None, new.identity, new.kind, txid, is_rewritten)]

    def _is_touched(self, old: Inode, new: Inode) -> bool:
        """Whether names have come to or gone from a directory, or its time was set.

        Taking a snapshot touches the directory it is of, which is no change of that; nor is it
        one that a clone was made later than its origin.
        """
        states = self._states
        if new is states.new.root and (new.is_snapshottable or states.earlier.is_origin):
            return False
        before, after = totals_of(states.old.rows, old), totals_of(states.new.rows, new)
        if old.id == new.id and not old.is_virtual and not new.is_virtual:
            return before.touched != after.touched or before.mtime_ms != after.mtime_ms
        return _mtime_of(old, before) != _mtime_of(new, after)

    # When.

    def _txid_of_both(self, old: Inode, new: Inode, directory: Directory) -> int:
        """When what is on both sides was last written."""
        return self._txid_of(new if self._states.later is self._states.new else old, directory)

    def _txid_of_one(self, inode: Inode, side: Side, directory: Directory) -> int:
        """When what is on one side only was last written; or was first, before it went."""
        if side is self._states.later or inode.is_virtual:
            return self._txid_of(inode if side is self._states.later else None, directory)
        return self._between(side.rows.until(key_of(inode)), directory)

    def _txid_of(self, inode: Inode | None, directory: Directory) -> int:
        """When an inode of the later side was written; or the directory, if it came with that."""
        if inode is None or inode.is_virtual:
            return directory.txid
        if inode is self._states.later.root and inode.is_snapshottable:
            # Its row was last written when the snapshot was taken.
            first = self._states.earlier.rows.until(key_of(inode))
            if self._states.earlier.txid < first:
                return min(first, self._states.later.txid)
        return self._between(self._states.later.rows.since(key_of(inode)), directory)

    def _between(self, txid: int, directory: Directory) -> int:
        states = self._states
        return txid if states.earlier.txid < txid <= states.later.txid else directory.txid


def _mtime_of(inode: Inode, totals: Totals) -> int:
    return totals.mtime_ms if totals.touched else inode.mtime_ms


def _change(kind: ChangeKind, path: Names, inode: Inode, txid: int) -> Change:
    return Change(kind, path, None, inode.identity, inode.kind, txid)
