"""Which attributes are inherited: names, each with its kind, as the superuser has declared them.

They are kept in the root's row, which every look-up of a path reads: so they are at hand
wherever a value is resolved, validated with the path, and cost nothing where there are none.

Invariant: the kind of a name does not change once a value of that kind was decided anywhere.
TxIDs that were written for one kind mean something else for another, also in snapshots.
"""

from __future__ import annotations

from types import NoneType
from typing import Final

import msgspec

from cairnfs.errors import HadoopIllegalArgumentException, IOException
from cairnfs.namesystem.attribute_rules import AttributeKind
from cairnfs.namesystem.inheritance import STORAGE_POLICY, find_declaration, name_of
from cairnfs.namesystem.inodes import Declaration, Inode
from cairnfs.namesystem.lookup import ROOT_KEY, resolve
from cairnfs.namesystem.paths import FsPath, check_text
from cairnfs.namesystem.permissions import Caller, check_superuser
from cairnfs.transaction.calls import operation
from cairnfs.transaction.transaction import Transaction
from cairnfs.xattr_text import XAttrName, XAttrNamespace

KINDS: Final = {
    "local": AttributeKind.LOCAL,
    "follow-path": AttributeKind.FOLLOWS_PATH,
    "stay-with-data": AttributeKind.STAYS_WITH_DATA,
}
"""The words for them."""

DECLARED_MAX: Final = 32  # as many as an inode may have attributes
NAME_BYTES_MAX: Final = 255  # they are in a row that everybody reads

_ROOT: Final = FsPath.parse("/")
_DECLARABLE: Final = (XAttrNamespace.USER, XAttrNamespace.TRUSTED)


@operation(stored_reply=NoneType)
def declare_xattr(tx: Transaction, caller: Caller, name: XAttrName, kind: str) -> None:
    """Declare of which kind the attributes of a name are; local, as all are, forgets it.

    Values that are there stay: each is local to its inode until an operation reaches it.
    """
    check_superuser(caller, f"declare {name}")
    wanted = KINDS.get(kind) if type(kind) is str else None
    if wanted is None:
        raise HadoopIllegalArgumentException(
            f"{kind!r} is not a kind of attributes; there are {', '.join(KINDS)}"
        )
    _check_may_be_declared(name)
    resolve(tx, _ROOT)
    root: Inode = tx.get(ROOT_KEY)
    # Written even where nothing is other than before: a call that runs once leaves its reply.
    tx.put(ROOT_KEY, msgspec.structs.replace(root, declared=_declared(root, name, wanted)))


@operation(mutates=False)
def list_declarations(tx: Transaction, caller: Caller) -> tuple[Declaration, ...]:
    """All names that are inherited, but what is the file system's own."""
    root: Inode = tx.get(ROOT_KEY)
    return tuple(each for each in root.declared if name_of(each) != STORAGE_POLICY)


def word_for(kind: int) -> str:
    """The word for a kind."""
    return next(word for word, each in KINDS.items() if each == kind)


def _declared(root: Inode, name: XAttrName, kind: AttributeKind) -> tuple[Declaration, ...]:
    """What is declared if this name is as well."""
    known = find_declaration(root, name)
    if known is not None and known.kind == kind:
        return root.declared
    if known is not None and known.is_used:
        raise IOException(
            f"{name} cannot be declared as {word_for(kind)}: it is in use as"
            f" {word_for(known.kind)}, and what files, directories and snapshots have of it would"
            " mean something else; declare another name, and set that one"
        )
    others = [each for each in root.declared if each is not known]
    if kind is AttributeKind.LOCAL:
        return tuple(others)
    if sum(name_of(each) != STORAGE_POLICY for each in others) >= DECLARED_MAX:
        raise IOException(
            f"{name} cannot be declared: {DECLARED_MAX} names are, and no more can be; declare one"
            " that was never used as local first"
        )
    return tuple(sorted((*others, Declaration(*name, kind)), key=name_of))


def _check_may_be_declared(name: XAttrName) -> None:
    if name.namespace not in _DECLARABLE:
        raise HadoopIllegalArgumentException(
            f"{name} cannot be declared: only names that begin with user. or trusted. are for"
            " callers to use as they like"
        )
    if not name.name:
        raise HadoopIllegalArgumentException("XAttr name cannot be empty.")
    check_text(name.name, "name of an attribute", NAME_BYTES_MAX)
