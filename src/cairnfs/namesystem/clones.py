"""Clones: a directory or file that starts as a snapshot of another one, and goes its own way.

A clone is made in constant time: a directory gets the snapshot as its origin (`layers`), a file
gets pointers to the blocks that the original had.
"""

from __future__ import annotations

from types import NoneType

import msgspec

from cairnfs.errors import (
    FileAlreadyExistsException,
    FileNotFoundException,
    SnapshotException,
)
from cairnfs.namesystem import inheritance
from cairnfs.namesystem.directories import add_inode
from cairnfs.namesystem.inodes import InodeId
from cairnfs.namesystem.layers import (
    as_virtual,
    below_totals,
    check_layers,
    copied,
    copy_blocks,
    note_layered,
    of_another,
    pin,
)
from cairnfs.namesystem.lookup import (
    check_ancestor_access,
    check_parent_exists,
    resolve_to_create,
    resolve_to_read,
)
from cairnfs.namesystem.marks import is_marked, mark
from cairnfs.namesystem.paths import FsPath
from cairnfs.namesystem.permissions import Access, Caller, check_access, check_superuser
from cairnfs.namesystem.policy_changes import note_clone
from cairnfs.namesystem.quotas import (
    ONE_DIRECTORY,
    add_entry,
    check_copied,
    difference,
    negative,
    subtree,
)
from cairnfs.namesystem.snapshots import find_snapshot
from cairnfs.transaction.calls import operation
from cairnfs.transaction.transaction import Transaction


@operation(stored_reply=NoneType, solitary=True)
def clone_snapshot(
    tx: Transaction, caller: Caller, path: FsPath, name: str, destination: FsPath
) -> None:
    """Make a directory or file that starts as a snapshot of another one, and goes its own way."""
    source = resolve_to_read(tx, caller, path)
    origin = source.target
    if origin is None:
        raise FileNotFoundException(f"Directory does not exist: {source.path}")
    snapshot = find_snapshot(tx, origin, name) if origin.is_snapshottable else None
    if snapshot is None:
        raise SnapshotException(f"There is no snapshot {name} of {source.path} to be cloned")
    check_access(caller, snapshot.root, Access.READ, source.path)
    if not caller.is_superuser and caller.user != snapshot.root.owner:
        owner = snapshot.root.owner
        check_superuser(caller, f"clone snapshot {name} of {source.path}, which is {owner}'s")
    check_layers(source.path.text, snapshot.root.origin, "cloned")
    destination.check_length("clone")
    lookup = resolve_to_create(tx, caller, destination)
    if lookup.target is not None:
        raise FileAlreadyExistsException(f"{lookup.path} already exists: nothing was cloned")
    check_parent_exists(lookup)
    check_ancestor_access(caller, lookup, Access.WRITE)
    clone = msgspec.structs.replace(
        snapshot.root.closed,
        id=InodeId(tx.next_inode_id()),
        parent_id=InodeId(lookup.deepest.children_id),
        name=lookup.path.name,
        covered_txid=0,
        is_snapshottable=False,
        snapshots=0,
        content_id=0,
        origin=None,
        known_as=0,
        places=(),
        shown_at=(),
        declared=(),
    )
    clone = inheritance.cloned(lookup.inodes[0], snapshot, clone, tx.txid)
    then = tx.at(snapshot.txid)
    if clone.is_directory:
        root = snapshot.root
        held = pin(tx, origin.id, root.children_id, snapshot.txid, of_another(root.origin))
        clone = msgspec.structs.replace(clone, origin=held)
        note_layered(tx, held, clone.id)
        totals = copied(then.totals(root.id))
        add_inode(tx, lookup.path, lookup.ancestors, clone)
        tx.add(clone.id, tuple(enumerate(totals.counts)), mtime_ms=tx.now_ms)
        counts = difference(below_totals(totals), negative(ONE_DIRECTORY))
    else:
        add_inode(tx, lookup.path, lookup.ancestors, clone)
        copy_blocks(tx, as_virtual(snapshot.root, snapshot.txid), clone.id)
        counts = subtree(tx, clone)
    check_copied(tx, lookup.path, lookup.ancestors, counts)
    add_entry(tx, lookup.path, lookup.ancestors, counts)
    note_clone(tx, source, snapshot, lookup, clone)
    if is_marked(clone):
        mark(tx, (*lookup.ancestors, clone))
