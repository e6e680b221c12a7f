"""The six calls on access control lists; the rules are in `acls`.

Entries given by a caller are checked here once: they come from outside.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from cairnfs.errors import FileNotFoundException, HadoopIllegalArgumentException
from cairnfs.modes import STICKY_BIT
from cairnfs.namesystem import acls
from cairnfs.namesystem.acls import Acl
from cairnfs.namesystem.inodes import AclEntry, Inode
from cairnfs.namesystem.lookup import key_of, resolve_owned, resolve_to_read
from cairnfs.namesystem.paths import FsPath, check_text
from cairnfs.namesystem.permissions import Caller
from cairnfs.transaction.calls import operation
from cairnfs.transaction.transaction import Transaction

AclSpec = Sequence[AclEntry]


class AclStatus(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """An inode's ACL without what its mode says already: owner, mask and other."""

    owner: str
    group: str
    mode: int
    entries: tuple[AclEntry, ...]

    @property
    def is_sticky(self) -> bool:
        return bool(self.mode & STICKY_BIT)


@operation()
def modify_acl_entries(tx: Transaction, caller: Caller, path: FsPath, spec: AclSpec) -> None:
    """Add entries, or replace those for the same user or group."""
    _transform(tx, caller, path, acls.modify_entries, spec)


@operation()
def remove_acl_entries(tx: Transaction, caller: Caller, path: FsPath, spec: AclSpec) -> None:
    """Remove entries; their permissions do not matter."""
    _transform(tx, caller, path, acls.remove_entries, spec)


@operation()
def set_acl(tx: Transaction, caller: Caller, path: FsPath, spec: AclSpec) -> None:
    """Replace the whole ACL, or that of each scope the entries mention."""
    _transform(tx, caller, path, acls.replace_entries, spec)


@operation()
def remove_default_acl(tx: Transaction, caller: Caller, path: FsPath) -> None:
    """Remove what children inherit."""
    _, inode = resolve_owned(tx, caller, path)
    _store(tx, inode, *acls.remove_default(inode.mode, inode.acl))


@operation()
def remove_acl(tx: Transaction, caller: Caller, path: FsPath) -> None:
    """Remove everything but the mode."""
    _, inode = resolve_owned(tx, caller, path)
    _store(tx, inode, *acls.remove_all(inode.mode, inode.acl))


@operation(mutates=False)
def get_acl_status(tx: Transaction, caller: Caller, path: FsPath) -> AclStatus:
    """The ACL of a path, for whoever may reach it."""
    lookup = resolve_to_read(tx, caller, path)
    inode = lookup.target
    if inode is None:
        raise FileNotFoundException(f"cannot find {lookup.path}")
    return AclStatus(inode.owner, inode.group, inode.mode, inode.acl or ())


def _transform(
    tx: Transaction,
    caller: Caller,
    path: FsPath,
    change: Callable[..., tuple[int, Acl | None]],
    spec: AclSpec,
) -> None:
    for entry in spec:
        _check_entry(entry)
    lookup, inode = resolve_owned(tx, caller, path)
    mode, acl = change(
        inode.mode, inode.acl, spec, is_directory=inode.is_directory, path=lookup.path
    )
    _store(tx, inode, mode, acl)


def _store(tx: Transaction, inode: Inode, mode: int, acl: Acl | None) -> None:
    changed = msgspec.structs.replace(inode, mode=mode, acl=acl)
    if changed != inode:
        tx.put(key_of(inode), changed)


def _check_entry(entry: AclEntry) -> None:
    if (
        entry.scope not in (acls.ACCESS, acls.DEFAULT)
        or entry.type not in (acls.USER, acls.GROUP, acls.MASK, acls.OTHER)
        or entry.permission not in range(8)
    ):
        raise HadoopIllegalArgumentException(f"Invalid ACL entry: {entry}")
    if entry.name is not None:
        check_text(entry.name, "name in an ACL")
