"""Who may do what to a node, by POSIX's rules.

Every check raises AccessControlException; the superuser passes all of them.
"""

from __future__ import annotations

from cairnfs.errors import AccessControlException
from cairnfs.namesystem import acls
from cairnfs.testing.model.nodes import Found, Node, User

READ, WRITE, EXECUTE, ALL = 4, 2, 1, 7


def may(user: User, node: Node, access: int) -> bool:
    """POSIX 1003.1e's algorithm, for anybody but the superuser."""
    access_acl = [entry for entry in node.acl or () if entry.scope == acls.ACCESS]
    if user.name == node.owner:
        return node.mode >> 6 & access == access
    if not access_acl:
        shift = 3 if node.group in user.groups else 0
        return node.mode >> shift & access == access
    mask = node.mode >> 3 & 7
    for entry in access_acl:
        if entry.type == acls.USER and entry.name == user.name:
            return entry.permission & mask & access == access
    of_groups = [
        entry.permission & mask
        for entry in access_acl
        if entry.type == acls.GROUP and (entry.name or node.group) in user.groups
    ]
    if of_groups:
        return any(granted & access == access for granted in of_groups)
    return node.mode & access == access


def check_access(user: User, node: Node, access: int) -> None:
    if not user.is_superuser and not may(user, node, access):
        raise AccessControlException(f"{user.name} may not {access}")


def check_ancestor(user: User, found: Found) -> None:
    """Something may be added to the nearest directory; nothing can be in place of the root."""
    if found.names:
        check_access(user, found.nearest, WRITE)


def check_may_list_all(user: User, top: Node, access: int = READ | EXECUTE) -> None:
    for node in top.walk():
        if node.is_directory:
            check_access(user, node, access)


def check_sticky(user: User, parent: Node, child: Node) -> None:
    if (
        parent.mode & 0o1000
        and not user.is_superuser
        and user.name not in (parent.owner, child.owner)
    ):
        raise AccessControlException("sticky")


def check_owner(user: User, node: Node) -> None:
    if not user.is_superuser and user.name != node.owner:
        raise AccessControlException("not the owner")


def check_superuser(user: User) -> None:
    if not user.is_superuser:
        raise AccessControlException("not the superuser")
