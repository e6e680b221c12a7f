"""Calls on attributes of the model: permission, owner, times, ACLs, quotas."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import structs

from cairnfs.errors import (
    AccessControlException,
    IllegalArgumentException,
    InvalidPathException,
    PathIsNotDirectoryException,
    UnsupportedActionException,
)
from cairnfs.namesystem import acls
from cairnfs.namesystem.inodes import AclEntry, Quota
from cairnfs.testing.model.names import existing, parse
from cairnfs.testing.model.nodes import Usage, User
from cairnfs.testing.model.permissions import (
    WRITE,
    check_access,
    check_may_list_all,
    check_superuser,
)
from cairnfs.testing.model.tree import DONT_SET, ModelTree


class AttributeCalls(ModelTree):
    """What changes and shows the attributes of a node."""

    def set_permission(self, user: User, path: str, mode: int) -> None:
        if parse(path) == (b".reserved",):
            raise InvalidPathException(path)
        self._owned(user, path).mode = mode & 0o1777

    def set_owner(
        self, user: User, path: str, owner: str | None = None, group: str | None = None
    ) -> None:
        if parse(path) == (b".reserved",):
            raise InvalidPathException(path)
        node = self._owned(user, path)
        if not user.is_superuser:
            if owner is not None and owner != user.name:
                raise AccessControlException("may not give away")
            if group is not None and group not in user.groups:
                raise AccessControlException("not in that group")
        node.owner = node.owner if owner is None else owner
        node.group = node.group if group is None else group

    def set_times(self, user: User, path: str, mtime_ms: int, atime_ms: int) -> None:
        node = existing(self._find_following(user, path))
        check_access(user, node, WRITE)
        if mtime_ms >= 0:
            node.mtime_ms = mtime_ms
        if atime_ms >= 0:
            node.atime_ms = atime_ms

    def check_access(self, user: User, path: str, access: int) -> None:
        node = existing(self._find_following(user, path))
        check_access(user, node, access)

    # ACLs.

    def modify_acl_entries(self, user: User, path: str, spec: list[AclEntry]) -> None:
        self._change_acl(user, path, acls.modify_entries, spec)

    def remove_acl_entries(self, user: User, path: str, spec: list[AclEntry]) -> None:
        self._change_acl(user, path, acls.remove_entries, spec)

    def set_acl(self, user: User, path: str, spec: list[AclEntry]) -> None:
        self._change_acl(user, path, acls.replace_entries, spec)

    def remove_default_acl(self, user: User, path: str) -> None:
        node = self._owned(user, path)
        node.mode, node.acl = acls.remove_default(node.mode, node.acl)

    def remove_acl(self, user: User, path: str) -> None:
        node = self._owned(user, path)
        node.mode, node.acl = acls.remove_all(node.mode, node.acl)

    def get_acl_status(self, user: User, path: str) -> tuple[Any, ...]:
        node = existing(self._find_following(user, path))
        return node.owner, node.group, node.mode, node.acl or ()

    def _change_acl(
        self,
        user: User,
        path: str,
        change: Callable[..., tuple[int, acls.Acl | None]],
        spec: list[AclEntry],
    ) -> None:
        node = self._owned(user, path)
        node.mode, node.acl = change(
            node.mode, node.acl, spec, is_directory=node.is_directory, path=path
        )

    # Quotas.

    def set_quota(
        self,
        user: User,
        path: str,
        namespace_quota: int,
        space_quota_bytes: int,
        storage_type: int | None = None,
    ) -> None:
        """A storage type is DISK (1) or SSD (2) here."""
        check_superuser(user)
        found = self._find_following(user, path)
        if min(namespace_quota, space_quota_bytes) < -1:
            raise IllegalArgumentException("quota")
        if storage_type is not None and namespace_quota != DONT_SET:
            raise UnsupportedActionException("quota")
        node = existing(found)
        if not node.is_directory:
            raise PathIsNotDirectoryException(path)
        changes = {"inodes": namespace_quota, "space_bytes": space_quota_bytes}
        if storage_type is not None:
            changes = {{1: "disk_bytes", 2: "ssd_bytes"}[storage_type]: space_quota_bytes}
        limits = {name: limit for name, limit in changes.items() if limit != DONT_SET}
        quota = structs.replace(node.quota or Quota(), **limits)
        node.quota = None if quota == Quota() else quota

    def get_quota_usage(self, user: User, path: str) -> tuple[Any, ...]:
        """Inodes, space, quota."""
        node = existing(self.find(user, path))
        check_may_list_all(user, node)
        used = Usage.of(node)
        return used.inodes, used.space_bytes, self._reported_quota(node)
