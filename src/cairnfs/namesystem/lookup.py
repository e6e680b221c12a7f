"""From a path to the inodes along it: the semantic related group of thesis 004.

Everything an operation decides, it decides from these rows, and they are what
is validated before it commits.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from cairnfs.errors import (
    AccessControlException,
    FileNotFoundException,
    ParentNotDirectoryException,
    PathIsNotDirectoryException,
    SnapshotAccessControlException,
)
from cairnfs.namesystem.inodes import ROOT_ID, ROOT_NAME, ROOT_PARENT_ID, Inode, InodeId, Kind
from cairnfs.namesystem.layers import child_of, materialize, parent_of
from cairnfs.namesystem.paths import DOT_SNAPSHOT, FsPath
from cairnfs.namesystem.permissions import (
    Caller,
    check_access,
    check_not_symlink,
    check_owner,
    check_traverse,
)
from cairnfs.namesystem.snapshot_records import Snapshot, snapshot_key
from cairnfs.store.schema import Key, Table
from cairnfs.transaction.records import register
from cairnfs.transaction.rows import Rows, ask_all
from cairnfs.transaction.transaction import Transaction

register(Table.INODES, Inode, id_of=lambda inode: inode.id, stamp=Inode.stamped)

_INODES: Final = int(Table.INODES)
_DIRECTORY: Final = Kind.DIRECTORY

ROOT_KEY: Final[Key] = (_INODES, ROOT_PARENT_ID, ROOT_NAME)


def inode_key(parent_id: InodeId, name: bytes) -> Key:
    """Where the inode of this name in this directory is kept."""
    return (_INODES, parent_id, name)


def key_of(inode: Inode) -> Key:
    """Where this inode is kept."""
    assert not inode.is_virtual, f"inode {inode.id} was found in an origin: it has no row here"
    return (_INODES, inode.parent_id, inode.name)


class Lookup:
    """What was found along a path.

    `inodes` are the existing ones, root first; `missing` the names after them.
    A file or link in the middle ends the search: the names below it are missing.
    """

    def __init__(
        self,
        path: FsPath,
        inodes: tuple[Inode, ...],
        missing: tuple[bytes, ...],
        covered_txid: int,
        rows: Rows,
        snapshot: Snapshot | None = None,
        is_dot_snapshot: bool = False,
    ) -> None:
        """`covered_txid` is that of the latest snapshot that covers the path.  What is below is to
        be looked for in `rows`: now, or in the snapshot that the path is in.  With
        `is_dot_snapshot` the path is that of a directory's list of snapshots."""
        self.path: Final = path
        self.inodes: Final = inodes
        self.missing: Final = missing
        self.covered_txid: Final = covered_txid
        self.rows: Final = rows
        self.snapshot: Final = snapshot
        self.is_dot_snapshot: Final = is_dot_snapshot

    def with_inodes(self, inodes: tuple[Inode, ...]) -> Lookup:
        """The same path with other inodes along it."""
        return Lookup(
            self.path,
            inodes,
            self.missing,
            self.covered_txid,
            self.rows,
            self.snapshot,
            self.is_dot_snapshot,
        )

    @property
    def target(self) -> Inode | None:
        """The inode of the whole path, if it exists."""
        return None if self.missing else self.inodes[-1]

    @property
    def ancestors(self) -> tuple[Inode, ...]:
        """The existing inodes above the path's last name."""
        return self.inodes if self.missing else self.inodes[:-1]

    @property
    def deepest(self) -> Inode:
        """The nearest existing ancestor of the path's last name; of `/`, itself."""
        return self.inodes[-1] if self.missing or len(self.inodes) == 1 else self.inodes[-2]

    @property
    def parent(self) -> Inode | None:
        """The directory of the path's last name, if it exists."""
        return None if len(self.missing) > 1 or not self.path.components else self.deepest


def resolve(tx: Transaction, path: FsPath) -> Lookup:
    """Find the inodes along a path; no permission is checked yet."""
    if path.is_reserved:
        path = _resolve_reserved(tx, path)
    if path.snapshot_index >= 0:
        return _resolve_in_snapshot(tx, path)
    components = path.components
    inodes, covered, above = tx.recall(components[:-1]) or _walk(tx, components[:-1])
    found = len(inodes) - 1
    if components and found == len(components) - 1 and inodes[-1].kind is _DIRECTORY:
        directory = inodes[-1]
        child: Inode | None
        if directory.origin is None:
            child = tx.probe((_INODES, directory.content_id or directory.id, components[-1]))
        else:
            child = child_of(tx, directory, components[-1])
        if child is not None:
            inodes = (*inodes, child)
            found += 1
            if child.covered_txid > covered:
                covered = child.covered_txid
            if child.kind is _DIRECTORY and not child.is_virtual:
                above = (*above, child.id)
    tx.cover(covered)
    if tx.covered:
        tx.mark(above)
    return Lookup(path, inodes, components[found:], covered, tx)


def _resolve_in_snapshot(tx: Transaction, path: FsPath) -> Lookup:
    """A path through `.snapshot`: the inodes before it as they are, those behind it as they were.

    `.snapshot` itself is a directory like its own, and a snapshot one that has its name.
    """
    index = path.snapshot_index
    base = resolve(tx, path.ancestor(index))
    directory = base.target
    if directory is None or not directory.is_snapshottable:
        missing = path.components[len(base.inodes) - 1 :]
        return Lookup(path, base.inodes, missing, base.covered_txid, tx)
    dot = msgspec.structs.replace(
        directory,
        name=DOT_SNAPSHOT,
        kind=Kind.DIRECTORY,
        mode=0o777,  # whoever may enter the directory
        quota=None,
        acl=None,
        is_snapshottable=False,
    )
    inodes = [*base.inodes, dot]
    if not directory.is_directory:  # who may read a file may look into its snapshots
        inodes[-2:] = [_as_directory(directory), _as_directory(dot)]
    covered, names = base.covered_txid, path.components[index + 1 :]
    if not names:
        return Lookup(path, tuple(inodes), (), covered, tx, is_dot_snapshot=True)
    snapshot: Snapshot | None = tx.get(snapshot_key(directory.id, names[0]))
    if snapshot is None:
        return Lookup(path, tuple(inodes), names, covered, tx)
    rows = tx.at(snapshot.txid)
    inode = msgspec.structs.replace(snapshot.root, name=names[0], is_snapshottable=False)
    inodes.append(inode)
    for name in names[1:]:
        child = child_of(rows, inode, name) if inode.is_directory else None
        if child is None:
            break
        inode = child
        inodes.append(inode)
    missing = path.components[len(inodes) - 1 :]
    return Lookup(path, tuple(inodes), missing, covered, rows, snapshot)


def _as_directory(file: Inode) -> Inode:
    """A file on the way to its snapshots: a directory for those who may read it."""
    mode = file.mode | (file.mode & 0o444) >> 2
    return msgspec.structs.replace(file, kind=Kind.DIRECTORY, mode=mode)


Way = tuple[tuple[Inode, ...], int, tuple[InodeId, ...]]
"""Inodes from the root on, the latest TxID that covers them, and which of them have totals."""


def _walk(tx: Transaction, names: tuple[bytes, ...]) -> Way:
    """The inodes from the root on as far as there are any.

    The way to a directory is remembered: most calls go where others have just gone.
    """
    inode: Inode = tx.get(ROOT_KEY)
    inodes = [inode]
    keys = [ROOT_KEY]
    covered = inode.covered_txid
    for name in names:
        if inode.kind is not _DIRECTORY:
            break
        key = (_INODES, inode.content_id or inode.id, name)
        child: Inode | None = tx.get(key) if not inode.is_virtual else None
        if child is None and inode.origin is not None:
            child = child_of(tx, inode, name)
        if child is None:
            break
        inode = child
        inodes.append(inode)
        keys.append(key)
        if inode.covered_txid > covered:
            covered = inode.covered_txid
    above = tuple(i.id for i in inodes if i.kind is _DIRECTORY and not i.is_virtual)
    way = tuple(inodes), covered, above
    if len(inodes) > len(names) and not inode.is_virtual:
        tx.memorize(names, way, keys)
    return way


def resolve_to_read(tx: Transaction, caller: Caller, path: FsPath) -> Lookup:
    """Resolve for a call that reads; a link at the end must be followed first."""
    return _not_a_link(resolve_link(tx, caller, path))


def resolve_link(tx: Transaction, caller: Caller, path: FsPath) -> Lookup:
    """As `resolve_to_read`, but a link at the end is itself what is meant."""
    lookup = resolve(tx, path)
    check_traverse(caller, lookup.ancestors, lookup.path)
    return lookup


def resolve_to_write(tx: Transaction, caller: Caller, path: FsPath) -> Lookup:
    """Resolve for a call that changes what exists; a link must be followed first."""
    return _not_a_link(resolve_link_to_write(tx, caller, path))


def resolve_link_to_write(tx: Transaction, caller: Caller, path: FsPath) -> Lookup:
    """As `resolve_to_write`, but a link at the end is itself what is meant."""
    lookup = _find_to_write(tx, caller, path)
    return lookup if lookup.missing else with_own_rows(tx, lookup)


def resolve_written(tx: Transaction, caller: Caller, path: FsPath) -> Lookup:
    """As `resolve_to_write`, but what is shared with an origin stays so."""
    return _not_a_link(_find_to_write(tx, caller, path))


def _find_to_write(tx: Transaction, caller: Caller, path: FsPath) -> Lookup:
    lookup = resolve(tx, path)
    if path.is_reserved:
        _check_may_write(caller, path)
    if lookup.path.snapshot_index >= 0:
        check_not_in_snapshot(lookup)
    check_traverse(caller, lookup.ancestors, lookup.path)
    return lookup


def resolve_to_create(tx: Transaction, caller: Caller, path: FsPath) -> Lookup:
    """Resolve for a call that makes something new at `path`; a link there must be followed."""
    return _not_a_link(resolve_link_to_create(tx, caller, path))


def resolve_link_to_create(tx: Transaction, caller: Caller, path: FsPath) -> Lookup:
    """As `resolve_to_create`, but a link at the end is itself what is meant."""
    path.check_valid_for_creation()
    lookup = resolve(tx, path)
    if path.is_reserved:
        _check_may_write(caller, path)
    if lookup.path.snapshot_index >= 0:
        check_not_in_snapshot(lookup)
    check_traverse(caller, lookup.ancestors, lookup.path, creating=True)
    return with_own_rows(tx, lookup)


def with_own_rows(tx: Transaction, lookup: Lookup) -> Lookup:
    """What is to be changed has rows of its own, also where it was shared with an origin."""
    if not lookup.inodes[-1].is_virtual:
        return lookup
    return lookup.with_inodes(materialize(tx, lookup.inodes))


def check_not_in_snapshot(lookup: Lookup) -> None:
    """Of a path through `.snapshot`: snapshots are as they were, for ever."""
    if len(lookup.inodes) > lookup.path.snapshot_index + 1:
        raise SnapshotAccessControlException(
            f"Modification on a read-only snapshot is disallowed: {lookup.path}"
        )


def resolve_owned(tx: Transaction, caller: Caller, path: FsPath) -> tuple[Lookup, Inode]:
    """Resolve what exists and belongs to the caller: for chmod, chown and ACLs."""
    lookup = resolve_to_write(tx, caller, path)
    inode = lookup.target
    if inode is None:
        raise FileNotFoundException(f"Directory/File does not exist {lookup.path}")
    check_owner(caller, inode, lookup.path)
    return lookup, inode


def file_at(lookup: Lookup) -> Inode:
    """What was found, which has to be a file."""
    if lookup.target is None:
        raise FileNotFoundException(f"File does not exist: {lookup.path}")
    if not lookup.target.is_file:
        raise FileNotFoundException(f"Path is not a file: {lookup.path}")
    return lookup.target


def directory_at(lookup: Lookup) -> Inode:
    """What was found, which has to be a directory."""
    if lookup.target is None:
        raise FileNotFoundException(f"Directory does not exist: {lookup.path}")
    if not lookup.target.is_directory:
        raise PathIsNotDirectoryException(f"`{lookup.path}': Is not a directory")
    return lookup.target


def check_ancestor_access(caller: Caller, lookup: Lookup, access: int) -> None:
    """The caller may do this in the nearest existing ancestor; the root has none."""
    if not caller.is_superuser and not lookup.path.is_root:
        check_access(caller, lookup.deepest, access, lookup.path, len(lookup.ancestors) - 1)


def check_parent_exists(lookup: Lookup) -> None:
    """The directory that is to hold the path is there, and is one."""
    if len(lookup.missing) > 1:
        raise FileNotFoundException(f"Parent directory doesn't exist: {lookup.path.parent}")
    if not lookup.deepest.is_directory:
        raise ParentNotDirectoryException(f"Parent path is not a directory: {lookup.path.parent}")


def path_of(tx: Transaction, id: InodeId) -> FsPath | None:
    """Where an inode is now; None if it is not reachable from the root."""
    inode: Inode | None = tx.get_by_id(Table.INODES, id)
    way = None if inode is None else way_to(tx, inode)
    if way is None:
        return None
    return FsPath.parse(b"/" + b"/".join(each.name for each in way[1:]))


def paths_of(tx: Transaction, ids: Iterable[InodeId]) -> list[FsPath | None]:
    """The same for many, all at once: as many reads as the deepest of them has names."""
    wanted = list(ids)
    tx.need(ids=[(int(Table.INODES), id) for id in wanted])
    return ask_all(lambda id: path_of(tx, id), wanted)


def way_to(tx: Rows, inode: Inode) -> tuple[Inode, ...] | None:
    """The inodes from the root to one that has a row; None if it is not reachable from there."""
    way = [inode]
    while way[-1].id != ROOT_ID:
        parent = parent_of(tx, way[-1])
        if parent is None:
            return None
        way.append(parent)
    return tuple(reversed(way))


def _not_a_link(lookup: Lookup) -> Lookup:
    """What was found; if that is a link, the caller is told to follow it."""
    if not lookup.missing:
        check_not_symlink(lookup.inodes[-1], lookup.path)
    return lookup


def _check_may_write(caller: Caller, path: FsPath) -> None:
    if path.is_raw and not caller.is_superuser:
        raise AccessControlException(
            f"Access denied for user {caller.user}. Superuser privilege is required for"
            f" operation on {path}"
        )


def _resolve_reserved(tx: Transaction, path: FsPath) -> FsPath:
    path = path.without_raw()
    id = path.inode_id
    if id is None:
        return path
    base = path_of(tx, id)
    if base is None:
        raise FileNotFoundException(f"File for given inode path does not exist: {path}")
    below = path.below_inode
    if below and below[0] == b"..":
        base, below = base.parent, below[1:]
    for name in below:
        base = base.child(name)
    return base
