"""What is different between two snapshots of a directory, or between one and now.

The tree of the earlier side is walked, and of each directory both lists of children are
compared; a directory below which nothing has changed since the earlier side is passed over
(`Totals.changed`).  Inodes are told apart by their ids: one that is in both trees under another
parent or name has been moved, with everything below it.

Paths are those of the earlier side, and relative; the target of a move is where it is on the
later side, and what is new is named below the earlier path of its directory.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator

import msgspec

from cairnfs.errors import FileNotFoundException, SnapshotException
from cairnfs.namesystem.identity import Finder, identity_of
from cairnfs.namesystem.inodes import Inode, InodeId, Kind
from cairnfs.namesystem.layers import children_of, rows_of_blocks
from cairnfs.namesystem.lookup import Lookup, check_subtree_access, resolve_to_read
from cairnfs.namesystem.paths import FsPath
from cairnfs.namesystem.permissions import Access, Caller, check_access
from cairnfs.namesystem.snapshot_records import Snapshot, snapshot_key
from cairnfs.store.schema import Table
from cairnfs.transaction.calls import operation
from cairnfs.transaction.transaction import UNCOMMITTED, Rows, Transaction

DIFF_LIMIT = 1000  # entries of a page, and a directory's more
_PAGE = 1000

Names = tuple[bytes, ...]


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
    inode_id: InodeId
    parent_id: InodeId  # of the directory in which the difference is
    is_directory: bool
    is_elsewhere: bool = False  # it was before, or is after, outside of the directory
    txid: int = 0  # at which it came to be so, as far as it is known


class DiffPage(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Some of the differences, and the directory to go on with; None: that was all."""

    entries: list[DiffEntry]
    resume: Names | None


class Side(msgspec.Struct, frozen=True, gc=False):
    """One of the two states that are compared."""

    rows: Rows
    root: Inode
    txid: int | None  # None: now


@operation(mutates=False)
def snapshot_diff(
    tx: Transaction,
    caller: Caller,
    path: FsPath,
    old: str,
    new: str,
    resume: Names = (),
    limit: int = DIFF_LIMIT,
) -> DiffPage:
    """The differences from one snapshot to another; an empty name means now.

    `path` is a directory with snapshots, or below one.  If the later snapshot is given first,
    the answer is what would turn it into the earlier one.
    """
    lookup = resolve_to_read(tx, caller, path)
    if lookup.target is None:
        raise FileNotFoundException(f"Directory does not exist: {lookup.path}")
    check_access(caller, lookup.target, Access.READ, lookup.path)
    owner = _owner_of_snapshots(lookup)
    before, after = (_side(tx, lookup, owner, name) for name in (old, new))
    for side in (before, after):  # names are told of everything below
        check_access(caller, side.root, Access.READ, lookup.path)
        check_subtree_access(
            side.rows, caller, lookup.path, side.root, Access.READ, to_delete=False
        )
    if before.txid == after.txid:
        return DiffPage([], None)
    return Comparison(before, after, limit).page(resume)


class Comparison:
    """The walk; each side may be the later one."""

    def __init__(self, old: Side, new: Side, limit: int) -> None:
        self._old = old
        self._new = new
        self._limit = limit
        earlier, later = sorted((old, new), key=lambda side: side.txid or UNCOMMITTED)
        self._since = earlier.txid or 0
        self._later = later.rows
        self._in_old = Finder(old.rows, old.root)
        self._in_new = Finder(new.rows, new.root)

    def page(self, resume: Names) -> DiffPage:
        """The differences from the directory `resume` on."""
        entries: list[DiffEntry] = []
        for directory, found in self._walk(resume):
            if entries and len(entries) + len(found) > self._limit:
                return DiffPage(entries, directory)
            entries += found
        return DiffPage(entries, None)

    def _walk(self, resume: Names) -> Iterator[tuple[Names, list[DiffEntry]]]:
        """Directories of the old side, each before what is below it, in order of names."""
        root = self._old.root
        if not root.is_directory:
            yield (), self._modified((), root, self._new.root)
            return
        stack: list[tuple[Names, Inode, Inode]] = [((), root, self._new.root)]
        while stack:
            path, before, after = stack.pop()
            if not self._is_changed(before, after):
                continue
            if not resume or path >= resume:
                entries, below = self._compare(path, before, after)
                yield path, entries
            elif path == resume[: len(path)]:
                _, below = self._compare(path, before, after)
            else:
                continue
            stack += reversed(below)

    def _compare(
        self, path: Names, before: Inode, after: Inode
    ) -> tuple[list[DiffEntry], list[tuple[Names, Inode, Inode]]]:
        """The differences of one directory, and the directories below to go on with."""
        old = {inode.name: inode for inode in _children(self._old.rows, before)}
        new = {inode.name: inode for inode in _children(self._new.rows, after)}
        entries: list[DiffEntry] = []
        below: list[tuple[Names, Inode, Inode]] = []
        is_changed = False
        for name in sorted(old.keys() | new.keys()):
            here = (*path, name)
            gone, come = old.get(name), new.get(name)
            if gone is not None and come is not None and identity_of(gone) == identity_of(come):
                entries += self._both(here, gone, come, below)
                continue
            is_changed = True
            if gone is not None:
                entries += self._gone(here, gone, before.id, below)
            if come is not None and not self._is_told_where_it_was(come):
                entries.append(self._come(here, come, before.id))
        if is_changed or _is_modified(before, after):
            entries.insert(0, _entry(DiffKind.MODIFIED, path, before, before.id))
        return entries, below

    def _both(
        self, path: Names, old: Inode, new: Inode, below: list[tuple[Names, Inode, Inode]]
    ) -> list[DiffEntry]:
        """An inode that is in both; a directory's own changes are told with its children's."""
        if not old.is_directory:
            return self._modified(path, old, new)
        if self._is_changed(old, new):
            below.append((path, old, new))
            return []
        return self._modified(path, old, new)

    def _modified(self, path: Names, old: Inode, new: Inode) -> list[DiffEntry]:
        if not _is_modified(old, new) and not self._is_rewritten(old, new):
            return []
        return [_entry(DiffKind.MODIFIED, path, old, old.parent_id)]

    def _is_rewritten(self, old: Inode, new: Inode) -> bool:
        """Whether a file that is as long as before has other content."""
        if not old.is_file or old.mtime_ms == new.mtime_ms:
            return False
        return _content(self._old.rows, old) != _content(self._new.rows, new)

    def _gone(
        self,
        path: Names,
        inode: Inode,
        parent_id: InodeId,
        below: list[tuple[Names, Inode, Inode]],
    ) -> list[DiffEntry]:
        """An inode that is not there any more, but perhaps elsewhere in the tree."""
        found = self._in_new.find(identity_of(inode))
        if not found:
            exists = self._new.rows.get_by_id(Table.INODES, inode.id) is not None
            return [_entry(DiffKind.DELETED, path, inode, parent_id, is_elsewhere=exists)]
        now, target = found[-1], tuple(each.name for each in found)
        renamed = msgspec.structs.replace(
            _entry(DiffKind.RENAMED, path, inode, parent_id), target=target
        )
        return [renamed, *self._both(path, inode, now, below)]

    def _come(self, path: Names, inode: Inode, parent_id: InodeId) -> DiffEntry:
        existed = self._old.rows.get_by_id(Table.INODES, inode.id) is not None
        return _entry(DiffKind.CREATED, path, inode, parent_id, is_elsewhere=existed)

    def _is_changed(self, old: Inode, new: Inode) -> bool:
        """Whether anything at or below a directory may be different."""
        if old.is_virtual and new.is_virtual:
            return old.origin != new.origin
        if old.is_virtual or new.is_virtual or old.children_id != new.children_id:
            return True
        return self._later.totals(old.id).changed > self._since

    def _is_told_where_it_was(self, inode: Inode) -> bool:
        """Whether the walk comes to it on the old side: not if a directory above it is gone."""
        found = self._in_old.find(identity_of(inode))
        now = self._in_new.find(identity_of(inode))
        if not now or now[-1].id != inode.id:
            return False
        return found is not None and all(
            self._in_new.find(identity_of(above)) is not None for above in found[:-1]
        )


def _content(rows: Rows, file: Inode) -> list[tuple[int, int]]:
    """The blocks of a file, and how much of each it has."""
    then, id = rows_of_blocks(rows, file)
    blocks = [block for _, block in then.scan(Table.BLOCKS, id, b"", file.block_count or 1)]
    return [(block.id, block.length_bytes) for block in blocks if block.length_bytes]


def _children(rows: Rows, directory: Inode) -> Iterator[Inode]:
    after = b""
    while page := children_of(rows, directory, after, _PAGE):
        yield from page
        if len(page) < _PAGE:
            return
        after = page[-1].name


def _entry(
    kind: DiffKind,
    path: Names,
    inode: Inode,
    parent_id: InodeId,
    *,
    is_elsewhere: bool = False,
) -> DiffEntry:
    is_directory = inode.kind is Kind.DIRECTORY
    return DiffEntry(kind, path, None, inode.id, parent_id, is_directory, is_elsewhere)


def _is_modified(old: Inode, new: Inode) -> bool:
    """Whether more than the place and what is noted for snapshots is different."""
    return _essence(old) != _essence(new)


def _essence(inode: Inode) -> Inode:
    """The inode without what snapshots do not track, and what they change themselves."""
    return msgspec.structs.replace(
        inode.closed,
        parent_id=InodeId(0),
        name=b"",
        atime_ms=0,
        mtime_ms=0,  # of a file: looked at where its content may be another one
        block_count=0,
        covered_txid=0,
        is_snapshottable=False,
        snapshots=0,
        content_id=0,
        origin=None,
        is_virtual=False,
        known_as=0,
        places=(),
        id=InodeId(0),
        held_replication=0,
    )


def _owner_of_snapshots(lookup: Lookup) -> Inode:
    """The nearest directory at or above the path of which there are snapshots."""
    for inode in reversed(lookup.inodes):
        if inode.is_snapshottable:
            return inode
    raise SnapshotException(
        f"Directory is neither snapshottable nor under a snap root! It is {lookup.path}"
    )


def _side(tx: Transaction, lookup: Lookup, owner: Inode, name: str) -> Side:
    target = lookup.inodes[-1]
    if not name:
        return Side(tx, target, None)
    snapshot: Snapshot | None = tx.get(snapshot_key(owner.id, name.encode()))
    if snapshot is None:
        raise SnapshotException(
            f"Cannot find the snapshot of directory {lookup.path} with name {name}"
        )
    rows = tx.at(snapshot.txid)
    side = Side(rows, snapshot.root, snapshot.txid)
    if target.id == owner.id:
        return side
    found = Finder(rows, snapshot.root).find(identity_of(target))
    if not found:
        raise FileNotFoundException(f"{lookup.path} was not in the snapshot {name}")
    return Side(rows, found[-1], snapshot.txid)
