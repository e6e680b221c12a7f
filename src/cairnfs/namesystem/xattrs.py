"""Extended attributes: values that callers attach to files and directories, under names.

A name is in a name space, which says who may use it (Hadoop's XAttrPermissionFilter):

- user: whoever may read what has it may read it, whoever may write that may set it; of a sticky
  directory only the owner sets them;
- trusted: the superuser, for whom alone it is there;
- raw: only on paths below /.reserved/raw, where only the superuser changes anything;
- system and security: the file system itself, but for one name, which keeps the superuser from
  reading a file; that is for everybody, has no value, and stays for ever.

An attribute is local to its inode: nothing is inherited, and a rename takes it along.  Unless its
name was declared otherwise (`declarations`): then what is set on a directory holds for everything
below, and what is shown is what `inheritance` finds.

Invariant: an inode has its attributes in the order of name spaces and names, each once, so that
two with the same ones are equal; one without any has None.
"""

from __future__ import annotations

from types import NoneType

import msgspec

from cairnfs.errors import (
    AccessControlException,
    FileNotFoundException,
    HadoopIllegalArgumentException,
    IOException,
    UnsupportedOperationException,
    XAttrNotFoundException,
)
from cairnfs.modes import STICKY_BIT
from cairnfs.namesystem import inheritance
from cairnfs.namesystem.attribute_rules import AttributeKind
from cairnfs.namesystem.inheritance import (
    XAttrs,
    effective,
    find_effective,
    find_row,
    kind_of,
    name_of,
)
from cairnfs.namesystem.inodes import Inode, XAttr
from cairnfs.namesystem.lookup import Lookup, key_of, resolve_to_read, resolve_to_write
from cairnfs.namesystem.marks import GUARDED, mark
from cairnfs.namesystem.paths import FsPath, check_text
from cairnfs.namesystem.permissions import Access, Caller, check_access, check_owner
from cairnfs.transaction.calls import operation
from cairnfs.transaction.transaction import Transaction
from cairnfs.xattr_text import XAttrName, XAttrNamespace

XATTRS_PER_INODE_MAX = 32  # dfs.namenode.fs-limits.max-xattrs-per-inode
XATTR_BYTES_MAX = 16384  # dfs.namenode.fs-limits.max-xattr-size, name and value

FLAG_CREATE = 1
FLAG_REPLACE = 2

UNREADABLE_BY_SUPERUSER = XAttrName.parse("security.hdfs.unreadable.by.superuser")
_ENCRYPTION_ZONE = XAttrName.parse("raw.hdfs.crypto.encryption.zone")
_ENCRYPTED_FILE = XAttrName.parse("raw.hdfs.crypto.file.encryption.info")

_USER, _TRUSTED, _RAW = XAttrNamespace.USER, XAttrNamespace.TRUSTED, XAttrNamespace.RAW
_COUNTED = (_USER, _TRUSTED)
_GUARDED = (_TRUSTED, _RAW, XAttrNamespace.SECURITY)


# Looking


@operation(mutates=False)
def get_xattrs(tx: Transaction, caller: Caller, path: FsPath, *names: XAttrName) -> XAttrs:
    """The attributes of these names, all of which have to be there; or all that one may see."""
    for name in names:
        check_may_use(caller, path, name)
    found = {name_of(xattr): xattr for xattr in _visible(tx, caller, path)}
    if not names:
        return tuple(found.values())
    if not found.keys() >= set(names):
        raise XAttrNotFoundException("At least one of the attributes provided was not found.")
    return tuple(found[name] for name in names)


@operation(mutates=False)
def list_xattrs(tx: Transaction, caller: Caller, path: FsPath) -> list[XAttrName]:
    """The names of all attributes that one may see."""
    return [name_of(xattr) for xattr in _visible(tx, caller, path)]


def check_readable_by_superuser(caller: Caller, file: Inode, path: FsPath) -> None:
    """Not even the superuser reads a file that is marked so."""
    if caller.is_superuser and find_row(file, UNREADABLE_BY_SUPERUSER) is not None:
        raise AccessControlException(
            f"Access is denied for {caller.user} since the superuser is not allowed to perform"
            f" this operation. It is {path} that has the attribute {UNREADABLE_BY_SUPERUSER}"
        )


# Changing


@operation(stored_reply=NoneType)
def set_xattr(
    tx: Transaction,
    caller: Caller,
    path: FsPath,
    name: XAttrName,
    value: bytes | None,
    flags: int,
) -> None:
    """Set an attribute: a new one with FLAG_CREATE, one that is there with FLAG_REPLACE."""
    _check_name(name)
    _check_value(name, value)
    check_may_use(caller, path, name, value)
    lookup, inode = _resolve_to_change(tx, caller, path, name)

    _check_flags(lookup, name, flags)
    others = _others(inode, name)
    if name.namespace in _COUNTED and sum(map(_counts, others)) >= XATTRS_PER_INODE_MAX:
        raise IOException(
            "Cannot add additional XAttr to inode, would exceed limit of"
            f" {XATTRS_PER_INODE_MAX}: {path}"
        )
    if name == UNREADABLE_BY_SUPERUSER and not inode.is_file:
        raise IOException(f"Can only set '{name}' on a file.")
    _check_not_encryption(name)
    if kind_of(lookup, name) is not AttributeKind.LOCAL:
        inheritance.write(tx, lookup, name, value or b"")
    else:
        xattrs = sorted((*others, XAttr(*name, value or b"")), key=name_of)
        _store(tx, inode, tuple(xattrs))
    _mark_guarded(tx, lookup, name)


@operation(stored_reply=NoneType)
def remove_xattr(tx: Transaction, caller: Caller, path: FsPath, name: XAttrName) -> None:
    """Remove an attribute, which has to be there.

    Of one that is inherited, everything below is said to have none, either: whether the inode
    itself has one does not matter.
    """
    _check_name(name)
    check_may_use(caller, path, name)
    lookup, inode = _resolve_to_change(tx, caller, path, name)
    if name == UNREADABLE_BY_SUPERUSER and inode.xattrs is not None:
        raise AccessControlException(f"The xattr '{name}' can not be deleted.")
    if kind_of(lookup, name) is not AttributeKind.LOCAL:
        inheritance.write(tx, lookup, name, None)
    elif find_row(inode, name) is None:
        raise IOException(
            f"No matching attributes found for remove operation: {path} has no {name}"
        )
    else:
        _store(tx, inode, _others(inode, name))
    _mark_guarded(tx, lookup, name)


@operation(stored_reply=NoneType)
def unset_xattr(tx: Transaction, caller: Caller, path: FsPath, name: XAttrName) -> None:
    """Let an inherited attribute be what it is in the directory above, here and below."""
    _check_name(name)
    check_may_use(caller, path, name)
    lookup, _ = _resolve_to_change(tx, caller, path, name)
    if kind_of(lookup, name) is AttributeKind.LOCAL:
        raise HadoopIllegalArgumentException(
            f"{name} is not inherited, so there is nothing above {path} to be taken; remove it, or"
            f" have it declared first (cairn xattr declare {name} follow-path)"
        )
    inheritance.write_unset(tx, lookup, name)
    _mark_guarded(tx, lookup, name)


def _resolve_to_change(
    tx: Transaction, caller: Caller, path: FsPath, name: XAttrName
) -> tuple[Lookup, Inode]:
    """What is at the path, if the caller may change such an attribute of it.

    Of the other name spaces, whoever may use them at all may change them where they can be.
    """
    lookup = resolve_to_write(tx, caller, path)
    inode = lookup.target
    if inode is None:
        raise FileNotFoundException(f"cannot find {lookup.path}")
    if name.namespace == _USER:
        if inode.is_directory and inode.mode & STICKY_BIT:
            check_owner(caller, inode, lookup.path)
        else:
            check_access(caller, inode, Access.WRITE, lookup.path)
    return lookup, inode


def _mark_guarded(tx: Transaction, lookup: Lookup, name: XAttrName) -> None:
    """Have a roll-back find what it must not change on its user's behalf."""
    if is_guarded(name):
        mark(tx, lookup.inodes, GUARDED)


def is_guarded(name: XAttrName) -> bool:
    """Whether the owner of an inode may not change such an attribute of it."""
    return name.namespace in _GUARDED


def _store(tx: Transaction, inode: Inode, xattrs: XAttrs) -> None:
    """Written even where nothing is other than before: a call that runs once leaves its reply."""
    tx.put(key_of(inode), msgspec.structs.replace(inode, xattrs=xattrs or None))


# Rules


def is_open_to(caller: Caller, path: FsPath, name: XAttrName) -> bool:
    """Whether the caller may use such attributes at all, by this path."""
    return (
        name.namespace == _USER
        or (name.namespace == _TRUSTED and caller.is_superuser)
        or (name.namespace == _RAW and path.is_raw)
        or name == UNREADABLE_BY_SUPERUSER
    )


def check_may_use(
    caller: Caller, path: FsPath, name: XAttrName, value: bytes | None = None
) -> None:
    if not is_open_to(caller, path, name):
        raise AccessControlException(f"User doesn't have permission for xattr: {name}")
    if name == UNREADABLE_BY_SUPERUSER and value is not None:
        raise AccessControlException(
            f"Attempt to set a value for '{name}'. Values are not allowed for this xattr."
        )


def _check_name(name: XAttrName) -> None:
    if not name.name:
        raise HadoopIllegalArgumentException("XAttr name cannot be empty.")
    check_text(name.name, "name of an attribute", len(name.name))  # its length: with the value's


def _check_value(name: XAttrName, value: bytes | None) -> None:
    if value is not None and type(value) is not bytes:
        raise HadoopIllegalArgumentException(f"The value of {name} is not bytes: {value!r}")
    size = len(name.name.encode()) + len(value or b"")
    if size > XATTR_BYTES_MAX:
        raise HadoopIllegalArgumentException(
            "The XAttr is too big. The maximum combined size of the name and value is"
            f" {XATTR_BYTES_MAX}, but the total size is {size}"
        )


def _check_flags(lookup: Lookup, name: XAttrName, flags: int) -> None:
    """Whether it may be there, or not; if it makes no difference, nobody looks."""
    wanted = flags & (FLAG_CREATE | FLAG_REPLACE)
    if not wanted:
        raise HadoopIllegalArgumentException("A flag must be specified.")
    if wanted == FLAG_CREATE and find_effective(lookup, name) is not None:
        raise IOException(f"XAttr: {name.name} already exists. The REPLACE flag must be specified.")
    if wanted == FLAG_REPLACE and find_effective(lookup, name) is None:
        raise IOException(f"XAttr: {name.name} does not exist. The CREATE flag must be specified.")


def _check_not_encryption(name: XAttrName) -> None:
    """By these HDFS knows what is encrypted; here they would say what is not so."""
    if name == _ENCRYPTED_FILE:
        raise IOException("Cannot add raw feInfo XAttr to a file in a non-encryption zone")
    if name == _ENCRYPTION_ZONE:
        raise UnsupportedOperationException(
            f"{name} cannot be set: this file system has no encryption zones"
        )


def resolve_to_look(tx: Transaction, caller: Caller, path: FsPath) -> Lookup:
    """What is at the path, of which the caller may see attributes."""
    lookup = resolve_to_read(tx, caller, path)
    inode = lookup.target
    if inode is None or lookup.is_dot_snapshot:
        raise FileNotFoundException(f"cannot find {lookup.path}")
    check_access(caller, inode, Access.READ, lookup.path)
    return lookup


def _visible(tx: Transaction, caller: Caller, path: FsPath) -> XAttrs:
    """The attributes that the caller may see of what is at the path, which they may read."""
    found = effective(resolve_to_look(tx, caller, path))
    return tuple(xattr for xattr in found if is_open_to(caller, path, name_of(xattr)))


def _others(inode: Inode, name: XAttrName) -> XAttrs:
    return tuple(xattr for xattr in inode.xattrs or () if name_of(xattr) != name)


def _counts(xattr: XAttr) -> bool:
    """Whether it is one of those of which an inode may have so many only."""
    return xattr.namespace in _COUNTED and xattr.value is not None
