"""Inherited attributes: `attribute_rules` on the inodes of a path, and what operations write.

What is needed to find a value is in the rows that the look-up of a path has read anyway: the
inodes, and in the root which attributes are inherited at all.  So nothing more is read, and
whoever commits something that depends on a value has it validated with the path.

As long as no inherited attribute was ever set, nothing is written and nothing is resolved: what
is moved has no TxID of that, and needs none, since it is compared with nothing.

A value that was set while its name was local has the TxID 0.  It stays what it was: it counts for
its inode alone, until an operation decides otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from cairnfs.namesystem.attribute_rules import (
    UNDECIDED,
    AttributeKind,
    Decision,
    Step,
    resolve,
    row_after_move,
    row_after_rollback,
    row_after_unset,
)
from cairnfs.namesystem.inodes import OWN_TXID, Declaration, Inode, XAttr
from cairnfs.namesystem.lookup import ROOT_KEY, Lookup, key_of
from cairnfs.namesystem.snapshot_records import Snapshot
from cairnfs.transaction.entries import MustRunAlone
from cairnfs.transaction.transaction import Transaction
from cairnfs.xattr_text import XAttrName, XAttrNamespace

XAttrs = tuple[XAttr, ...]

STORAGE_POLICY: Final = XAttrName(XAttrNamespace.SYSTEM, "hsm.block.storage.policy.id")
"""HDFS's name for it, which no caller sees; it follows the path without being declared."""


# Looking.


def kind_of(lookup: Lookup, name: XAttrName) -> AttributeKind:
    """How far an attribute of this name reaches."""
    if name == STORAGE_POLICY:
        return AttributeKind.FOLLOWS_PATH
    declared = find_declaration(lookup.inodes[0], name)
    return AttributeKind.LOCAL if declared is None else AttributeKind(declared.kind)


def find_declaration(root: Inode, name: XAttrName) -> Declaration | None:
    """What the root has of a name."""
    return next((each for each in root.declared if name_of(each) == name), None)


def effective(lookup: Lookup) -> XAttrs:
    """All attributes of what was found, with those that it inherits, in order of names."""
    own = lookup.inodes[-1].xattrs or ()
    inherited = _inherited(lookup.inodes[0])
    if not inherited:
        return own
    names = {name_of(declared) for declared in inherited}
    found = [xattr for xattr in own if name_of(xattr) not in names]
    for declared in inherited:
        xattr = find_effective(lookup, name_of(declared))
        if xattr is not None:
            found.append(xattr)
    return tuple(sorted(found, key=name_of))


def find_effective(lookup: Lookup, name: XAttrName) -> XAttr | None:
    """The attribute that what was found has, itself or from above; None if there is no value."""
    own = find_row(lookup.inodes[-1], name)
    kind = kind_of(lookup, name)
    if kind is not AttributeKind.LOCAL:
        txid, value = decide(lookup, name, kind)
        if txid:
            own = XAttr(*name, value, txid)
    return None if own is None or own.value is None else own


def decide(lookup: Lookup, name: XAttrName, kind: AttributeKind) -> Decision:
    """What was decided for the last inode there is of a path.

    To be asked before a transaction writes to an inode of the path.
    """
    entering, inodes = way_of(lookup)
    return resolve(kind, steps(inodes, name), find_decision(entering, name))


def decide_then(snapshot: Snapshot, name: XAttrName, kind: AttributeKind) -> Decision:
    """What was decided for the directory of a snapshot when that was taken."""
    came_in = find_decision(snapshot.entering, name)
    return resolve(kind, steps((snapshot.root,), name), came_in)


def way_of(lookup: Lookup) -> tuple[XAttrs, tuple[Inode, ...]]:
    """The inodes along a path, and what comes into the first one.

    In a snapshot that is its own directory as it was: what is above was left out with it.
    """
    if lookup.snapshot is None:
        return (), lookup.inodes
    return lookup.snapshot.entering, lookup.inodes[lookup.path.snapshot_index + 2 :]


def steps(inodes: Iterable[Inode], name: XAttrName) -> list[Step]:
    """What each of them has to say about an attribute."""
    return [_step(inode, name) for inode in inodes]


def find_row(inode: Inode, name: XAttrName) -> XAttr | None:
    """What an inode itself has under a name."""
    if inode.xattrs is not None:
        namespace, text = name
        for xattr in inode.xattrs:
            if xattr.name == text and xattr.namespace == namespace:
                return xattr
    return None


def inherited_names(root: Inode) -> list[XAttrName]:
    """The attributes of which there may be values that are inherited."""
    return [name_of(declared) for declared in _inherited(root)]


def find_decision(rows: Iterable[XAttr], name: XAttrName) -> Decision:
    for row in rows:
        if name_of(row) == name:
            return Decision(row.set, row.value)
    return UNDECIDED


def name_of(named: XAttr | Declaration) -> XAttrName:
    return XAttrName(named.namespace, named.name)


def entering(lookup: Lookup) -> XAttrs:
    """What comes from above into what was found, for a snapshot of it to keep."""
    above = lookup.ancestors
    found = []
    for declared in _inherited(lookup.inodes[0]):
        name = name_of(declared)
        txid, value = resolve(AttributeKind(declared.kind), steps(above, name))
        if txid:
            found.append(XAttr(*name, value, txid))
    return tuple(found)


# Writing.


def write(tx: Transaction, lookup: Lookup, name: XAttrName, value: bytes | None) -> None:
    """Decide the value of an inherited attribute for what was found and all that is below it.

    None says that there is none.  Written is the row of that inode; and the root's, if no value
    of that name was ever decided: from now on, renames have to say when they were.
    """
    _write(tx, lookup, XAttr(*name, value, OWN_TXID))


def write_unset(tx: Transaction, lookup: Lookup, name: XAttrName) -> None:
    """What was found and all that is below it take what the directory above has."""
    kind = kind_of(lookup, name)
    above = resolve(kind, steps(lookup.ancestors, name))
    row = row_after_unset(kind, above, OWN_TXID)
    assert row is not None, f"{name} is local"
    _write(tx, lookup, XAttr(*name, row.value, row.txid, is_unset=True))


def _write(tx: Transaction, lookup: Lookup, row: XAttr) -> None:
    root, inode, name = lookup.inodes[0], lookup.inodes[-1], name_of(row)
    changed = _with_row(inode, row)
    changed = msgspec.structs.replace(changed, is_unstamped=True)
    declared = _declared_as_used(root, name, kind_of(lookup, name))
    if inode.id == root.id:
        changed = msgspec.structs.replace(changed, declared=declared)
    elif declared != root.declared:
        tx.put(ROOT_KEY, msgspec.structs.replace(root, declared=declared))
    tx.put(key_of(inode), changed)


def moved(source: Lookup, inode: Inode) -> Inode:
    """An inode that a transaction moves away from where it was found.

    What stays with the data is written down before those above are gone who decided it.
    """
    inherited = _inherited(source.inodes[0])
    if not inherited:
        return inode
    for declared in inherited:
        name, kind = name_of(declared), AttributeKind(declared.kind)
        if kind is AttributeKind.STAYS_WITH_DATA:
            inode = _after_move(inode, name, kind, decide(source, name, kind))
    return msgspec.structs.replace(inode, renamed=OWN_TXID, is_unstamped=True)


def cloned(root: Inode, snapshot: Snapshot, clone: Inode, txid: int) -> Inode:
    """What is made of a snapshot is as if it had been moved out of it, by this transaction."""
    inherited = _inherited(root)
    if not inherited:
        return clone
    for declared in inherited:
        name, kind = name_of(declared), AttributeKind(declared.kind)
        clone = _after_move(clone, name, kind, decide_then(snapshot, name, kind))
    return msgspec.structs.replace(clone, renamed=txid)


def rolled_back(root: Inode, snapshot: Snapshot, restored: Inode, txid: int) -> Inode:
    """What was brought back by this transaction has what was decided for it in the snapshot."""
    inherited = _inherited(root)
    if not inherited:
        return restored
    for declared in inherited:
        name = name_of(declared)
        then = decide_then(snapshot, name, AttributeKind(declared.kind))
        restored = _with_decision(restored, name, row_after_rollback(then))
    return msgspec.structs.replace(restored, restored=txid)


def with_decisions(lookup: Lookup, inode: Inode, names: Iterable[XAttrName]) -> Inode:
    """An inode that keeps what is decided now, for what was found, of these attributes."""
    for name in names:
        decided = decide(lookup, name, kind_of(lookup, name))
        if decided.txid:
            inode = _with_decision(inode, name, decided)
    return inode


def _inherited(root: Inode) -> Sequence[Declaration]:
    """Those of which there may be values."""
    return [declared for declared in root.declared if declared.is_used]


def _step(inode: Inode, name: XAttrName) -> Step:
    if inode.is_unstamped:
        raise MustRunAlone  # which TxID that will be is not known before it is committed
    return Step(inode.renamed, inode.restored, _decision_of(inode, name))


def _decision_of(inode: Inode, name: XAttrName) -> Decision | None:
    row = find_row(inode, name)
    return None if row is None or not row.set else Decision(row.set, row.value)


def _after_move(inode: Inode, name: XAttrName, kind: AttributeKind, decided: Decision) -> Inode:
    before = _decision_of(inode, name)
    return _with_decision(inode, name, row_after_move(kind, before, decided))


def _with_decision(inode: Inode, name: XAttrName, decision: Decision | None) -> Inode:
    """The inode with what was decided for it, by whomever; if nothing was, a local value stays."""
    if decision == _decision_of(inode, name):
        return inode
    if decision is None:
        others = tuple(xattr for xattr in inode.xattrs or () if name_of(xattr) != name)
        return msgspec.structs.replace(inode, xattrs=others or None)
    return _with_row(inode, XAttr(*name, decision.value, decision.txid, is_kept=True))


def _with_row(inode: Inode, row: XAttr) -> Inode:
    name = name_of(row)
    others = (xattr for xattr in inode.xattrs or () if name_of(xattr) != name)
    return msgspec.structs.replace(inode, xattrs=tuple(sorted((*others, row), key=name_of)))


def _declared_as_used(root: Inode, name: XAttrName, kind: AttributeKind) -> tuple[Declaration, ...]:
    known = find_declaration(root, name)
    if known is not None and known.is_used:
        return root.declared
    others = (each for each in root.declared if each is not known)
    return tuple(sorted((*others, Declaration(*name, kind, is_used=True)), key=name_of))
