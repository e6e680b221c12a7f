"""Inherited attributes of a whole tree: what is decided, step by step down from its directory.

The NameNode tells what was decided for each directory; its reader takes the last step, to each
inode in it, so that a NameNode does not resolve anything for files.
"""

from __future__ import annotations

import msgspec

from cairnfs.namesystem.attribute_rules import (
    AttributeKind,
    Decision,
    Step,
    decisions,
    take_step,
)
from cairnfs.namesystem.inheritance import (
    find_decision,
    find_row,
    inherited_names,
    kind_of,
    steps,
    way_of,
)
from cairnfs.namesystem.inodes import Inode
from cairnfs.namesystem.lookup import Lookup
from cairnfs.xattr_text import XAttrName


class Inherited(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What was decided of one attribute for one inode, and where."""

    namespace: int
    name: str
    kind: AttributeKind
    txid: int  # 0: nothing was
    value: bytes | None  # None: that there is none
    source: str  # the path of the inode on which it was set

    @property
    def attribute(self) -> XAttrName:
        return XAttrName(self.namespace, self.name)


def entering(lookup: Lookup) -> tuple[Inherited, ...]:
    """What comes from above into what was found, of each attribute that may be inherited."""
    return tuple(_entering(lookup, name) for name in inherited_names(lookup.inodes[0]))


def descend(above: tuple[Inherited, ...], inode: Inode, path: str) -> tuple[Inherited, ...]:
    """What was decided for an inode at a path, given what was for the directory it is in."""
    return tuple(_descend(each, inode, path) for each in above)


def _entering(lookup: Lookup, name: XAttrName) -> Inherited:
    kind = kind_of(lookup, name)
    came_in, inodes = way_of(lookup)
    first = len(lookup.inodes) - len(inodes)
    decision, source = find_decision(came_in, name), ""
    above = inodes[:-1]
    for at, then in enumerate(decisions(kind, steps(above, name), decision)):
        if _is_own(above[at], name, then):
            source = lookup.path.text_to(first + at)
        decision = then
    return Inherited(*name, kind, *decision, source)


def _descend(above: Inherited, inode: Inode, path: str) -> Inherited:
    name = above.attribute
    row = find_row(inode, name)
    own = None if row is None or not row.set else Decision(row.set, row.value)
    step = Step(inode.renamed, inode.restored, own)
    then = take_step(above.kind, Decision(above.txid, above.value), step)
    source = path if own is not None and then == own else above.source
    return Inherited(*name, above.kind, *then, source)


def _is_own(inode: Inode, name: XAttrName, decided: Decision) -> bool:
    row = find_row(inode, name)
    return row is not None and bool(row.set) and decided == Decision(row.set, row.value)
