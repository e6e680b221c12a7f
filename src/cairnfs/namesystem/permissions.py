"""Who may do what to an inode: mode bits, ACLs, sticky bit, superuser.

Pure checks over records, with the answers and the words of Hadoop's
FSPermissionChecker.  Invariant: the superuser passes every check but that an
ancestor is a directory.  A call's checks go in Hadoop's order: traverse,
sticky bit, the nearest existing ancestor, parent, target, subtree, owner.
"""

from __future__ import annotations

import enum
import posixpath
from collections.abc import Iterable, Sequence
from typing import Final, NoReturn

from cairnfs.errors import (
    AccessControlException,
    IllegalArgumentException,
    ParentNotDirectoryException,
    UnresolvedPathException,
)
from cairnfs.modes import STICKY_BIT, format_mode
from cairnfs.namesystem.acls import ACCESS, DEFAULT, USER
from cairnfs.namesystem.inodes import AclEntry, Inode, Kind
from cairnfs.namesystem.paths import FsPath, check_text

SUPERGROUP_DEFAULT: Final = "supergroup"
MODE_MASK: Final = 0o1777


class Access(enum.IntEnum):
    """What is asked of an inode: Hadoop's FsAction, names and numbers."""

    NONE = 0
    EXECUTE = 1
    WRITE = 2
    WRITE_EXECUTE = 3
    READ = 4
    READ_EXECUTE = 5
    READ_WRITE = 6
    ALL = 7


class Caller:
    """The user a call is made for; see `make_caller`."""

    __slots__ = ("address", "groups", "is_superuser", "user")

    def __init__(
        self, user: str, groups: frozenset[str], is_superuser: bool, address: str = ""
    ) -> None:
        """`address` is that of the client's host."""
        self.user: Final = user
        self.groups: Final = groups
        self.is_superuser: Final = is_superuser
        self.address: Final = address


def make_caller(
    user: str,
    groups: Iterable[str],
    superuser_name: str,
    supergroup: str = SUPERGROUP_DEFAULT,
    address: str = "",
) -> Caller:
    """Decide once whether the user is the superuser: by name or by group."""
    if not isinstance(user, str) or not user:
        raise IllegalArgumentException(f"{user!r} is not the name of a user")
    if isinstance(groups, str):
        raise IllegalArgumentException(f"Groups are a list of names, not one text: {groups!r}")
    check_text(user, "user name")
    members = frozenset(groups)
    is_superuser = user == superuser_name or supergroup in members
    return Caller(user, members, is_superuser, address)


def check_traverse(
    caller: Caller,
    ancestors: Sequence[Inode],
    path: FsPath,
    *,
    creating: bool = False,
) -> None:
    """Every existing ancestor, from the root, is a directory one may enter.

    Only the last ancestor can be a file or a link, as nothing is found below
    one.  Calls that create say ParentNotDirectoryException of a file there,
    the others AccessControlException (FSDirectory.resolvePath).
    """
    last_is_directory = not ancestors or ancestors[-1].kind is _DIRECTORY
    if not caller.is_superuser:
        directories = ancestors if last_is_directory else ancestors[:-1]
        for depth, inode in enumerate(directories):
            # Most directories let everyone through.
            if (inode.mode & 0o111 != 0o111 or inode.acl is not None) and not has_permission(
                caller, inode, _EXECUTE
            ):
                raise _denied(caller, inode, _EXECUTE, path.text_to(depth))
    if not last_is_directory:
        _raise_not_a_directory(ancestors, path, creating)


def check_access(caller: Caller, inode: Inode, access: int, path: FsPath, depth: int = -1) -> None:
    """The caller has `access` to the inode at `path`, or at its first `depth` names."""
    if not caller.is_superuser and not has_permission(caller, inode, access):
        text = path.text if depth < 0 else path.text_to(depth)
        raise _denied(caller, inode, access, text)


def check_owner(caller: Caller, inode: Inode, path: FsPath) -> None:
    """The caller owns the inode."""
    if not caller.is_superuser and caller.user != inode.owner:
        raise AccessControlException(
            f"Permission denied. user={caller.user} is not the owner of inode={path}"
        )


def check_sticky(caller: Caller, parent: Inode, child: Inode, path: FsPath) -> None:
    """In a sticky directory, only its owner and the child's remove the child.

    `path` is the child's.
    """
    if not parent.mode & STICKY_BIT or caller.is_superuser:
        return
    if caller.user not in (parent.owner, child.owner):
        raise AccessControlException(
            f"Permission denied by sticky bit: user={caller.user}, "
            f"path={_describe(child, path.text)}, "
            f"parent={_describe(parent, path.text_to(len(path.components) - 1))}"
        )


def check_superuser(caller: Caller, operation: str) -> None:
    """The caller is the superuser; `operation` is Hadoop's name of the call."""
    if not caller.is_superuser:
        raise AccessControlException(
            f"Access denied for user {caller.user}. Superuser privilege is"
            f" required for operation {operation}"
        )


def check_not_symlink(inode: Inode, path: FsPath) -> None:
    """For calls that follow a link at the end of the path: tell the client to."""
    if inode.kind is _SYMLINK:
        _raise_unresolved(inode, path, len(path.components))


def has_permission(caller: Caller, inode: Inode, access: int) -> bool:
    """Whether mode bits and ACL grant `access`; the superuser is no exception."""
    acl = inode.acl
    if acl and acl[0].scope == ACCESS:
        return _has_acl_permission(caller, inode, acl, access)
    if caller.user == inode.owner:
        granted = inode.mode >> 6
    elif inode.group in caller.groups:
        granted = inode.mode >> 3
    else:
        granted = inode.mode
    return granted & access == access


def valid_mode(mode: int) -> int:
    """The bits of a mode that are stored: permissions and the sticky bit."""
    if mode < 0:
        raise IllegalArgumentException(f"Invalid permission: {mode}")
    return mode & MODE_MASK  # clients also send bits that say "has an ACL" or "is encrypted"


# Looked up once: an enumeration's members are slow to reach.
_DIRECTORY: Final = Kind.DIRECTORY
_SYMLINK: Final = Kind.SYMLINK
_EXECUTE: Final = int(Access.EXECUTE)


def _has_acl_permission(
    caller: Caller, inode: Inode, acl: tuple[AclEntry, ...], access: int
) -> bool:
    # The first class that matches decides: owner, a named user, then groups
    # (any that grants), then other.  The mode's group bits are the mask.
    if caller.user == inode.owner:
        return inode.mode >> 6 & access == access
    mask = inode.mode >> 3
    in_a_group = False
    for entry in acl:
        if entry.scope == DEFAULT:
            break  # the rest is for children
        if entry.type == USER:
            if entry.name == caller.user:
                return entry.permission & mask & access == access
        elif (inode.group if entry.name is None else entry.name) in caller.groups:
            if entry.permission & mask & access == access:
                return True
            in_a_group = True
    return not in_a_group and inode.mode & access == access


def _denied(caller: Caller, inode: Inode, access: int, path: str) -> AccessControlException:
    return AccessControlException(
        f"Permission denied: user={caller.user}, access={Access(access).name},"
        f" inode={_describe(inode, path)}"
    )


def _describe(inode: Inode, path: str) -> str:
    letter = "d" if inode.kind is _DIRECTORY else "-"
    return f'"{path}":{inode.owner}:{inode.group}:{letter}{format_mode(inode.mode)}'


def _raise_not_a_directory(ancestors: Sequence[Inode], path: FsPath, creating: bool) -> NoReturn:
    depth = len(ancestors) - 1
    if ancestors[depth].kind is _SYMLINK:
        _raise_unresolved(ancestors[depth], path, depth)
    message = f"{path.text_to(depth)} (is not a directory)"
    raise ParentNotDirectoryException(message) if creating else AccessControlException(message)


def _raise_unresolved(link: Inode, path: FsPath, depth: int) -> NoReturn:
    # The message is the path with the link replaced; a target that is not
    # absolute, nor a URI, starts at the link's directory.
    target = link.target or ""
    names = path.text.split("/")
    if not target.startswith("/") and "://" not in target:
        target = posixpath.normpath("/".join([*names[:depth], target]))
    raise UnresolvedPathException("/".join([target.rstrip("/"), *names[depth + 1 :]]) or "/")
