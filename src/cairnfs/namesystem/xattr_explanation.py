"""Why an attribute has its value: which operation decided it, when, and on which inode."""

from __future__ import annotations

import enum

import msgspec

from cairnfs.namesystem.attribute_rules import AttributeKind, Decision, decisions
from cairnfs.namesystem.inheritance import (
    STORAGE_POLICY,
    find_decision,
    find_effective,
    find_row,
    kind_of,
    name_of,
    steps,
    way_of,
)
from cairnfs.namesystem.inodes import Inode, XAttr
from cairnfs.namesystem.lookup import Lookup
from cairnfs.namesystem.paths import FsPath
from cairnfs.namesystem.permissions import Caller
from cairnfs.namesystem.xattrs import check_may_use, is_open_to, resolve_to_look
from cairnfs.transaction.calls import operation
from cairnfs.transaction.transaction import Transaction
from cairnfs.xattr_text import XAttrName


class Cause(enum.IntEnum):
    """What decided a value; the numbers are those of CairnProtocol."""

    SET = 1
    REMOVED = 2
    UNSET = 3  # it was to be what the directory above had
    KEPT = 4  # it was decided above, in another place or before a roll-back
    RENAMED = 5  # what was moved took what its new parent has
    ABOVE_SNAPSHOT = 6  # above the directory of the snapshot, when that was taken


class Reason(msgspec.Struct, frozen=True):
    """One operation that a value comes from."""

    cause: Cause
    path: str
    txid: int  # 0: not noted, as of a local attribute


class ExplainedInode(msgspec.Struct, frozen=True):
    """An inode of the way, what it has of the attribute, and what was decided for it."""

    path: str
    renamed: int
    restored: int
    row: XAttr | None
    decided: Decision


class Explanation(msgspec.Struct, frozen=True):
    """Of one attribute of one path."""

    name: XAttrName
    kind: AttributeKind
    value: bytes | None
    reasons: tuple[Reason, ...]  # the last operation first; of a rename, where its value is from
    way: tuple[ExplainedInode, ...]  # from the root, or in a snapshot from its directory


@operation(mutates=False)
def explain_xattrs(
    tx: Transaction, caller: Caller, path: FsPath, *names: XAttrName
) -> list[Explanation]:
    """Why attributes are what they are: these, or all that the caller may see or that may reach."""
    for name in names:
        check_may_use(caller, path, name)
    lookup = resolve_to_look(tx, caller, path)
    if not names:
        own = {name_of(xattr) for xattr in lookup.inodes[-1].xattrs or ()}
        own.update(map(name_of, lookup.inodes[0].declared))
        own.discard(STORAGE_POLICY)
        names = tuple(sorted(name for name in own if is_open_to(caller, path, name)))
    return [explain(lookup, name) for name in names]


def explain(lookup: Lookup, name: XAttrName) -> Explanation:
    """Why what was found has this value of an attribute."""
    kind = kind_of(lookup, name)
    found = find_effective(lookup, name)
    value = None if found is None else found.value
    came_in, inodes = way_of(lookup)
    first = len(lookup.inodes) - len(inodes)
    paths = [lookup.path.text_to(first + at) for at in range(len(inodes))]
    if kind is AttributeKind.LOCAL or (found is not None and not found.set):
        reasons = () if found is None else (Reason(Cause.SET, paths[-1], 0),)
        return Explanation(name, kind, value, reasons, ())
    entering = find_decision(came_in, name)
    decided = list(decisions(kind, steps(inodes, name), entering))
    way = tuple(
        ExplainedInode(path, inode.renamed, inode.restored, find_row(inode, name), decision)
        for path, inode, decision in zip(paths, inodes, decided, strict=True)
    )
    return Explanation(name, kind, value, _reasons(way, inodes, entering), way)


def _reasons(
    way: tuple[ExplainedInode, ...], inodes: tuple[Inode, ...], entering: Decision
) -> tuple[Reason, ...]:
    reasons = []
    at = len(way) - 1
    while at >= 0 and (txid := way[at].decided.txid):
        while at > 0 and way[at - 1].decided.txid == txid:
            at -= 1
        row = way[at].row
        if row is not None and row.set == txid:
            reasons.append(Reason(_cause_of(row), way[at].path, txid))
            return tuple(reasons)
        if inodes[at].renamed != txid:
            break  # it has come in
        reasons.append(Reason(Cause.RENAMED, way[at].path, txid))
        at -= 1
    if at <= 0 and entering.txid:
        reasons.append(Reason(Cause.ABOVE_SNAPSHOT, way[0].path, entering.txid))
    return tuple(reasons)


def _cause_of(row: XAttr) -> Cause:
    if row.is_kept:
        return Cause.KEPT
    if row.is_unset:
        return Cause.UNSET
    return Cause.REMOVED if row.value is None else Cause.SET
