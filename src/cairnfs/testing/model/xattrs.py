"""Calls on extended attributes of the model: a plain dict by name, "user.a", for each node.

Paths below /.reserved/raw are unknown to the model, and so is the name that binds the superuser.
"""

from __future__ import annotations

from collections.abc import Iterable

from cairnfs.errors import (
    AccessControlException,
    FileNotFoundException,
    HadoopIllegalArgumentException,
    IOException,
    XAttrNotFoundException,
)
from cairnfs.testing.model.names import existing
from cairnfs.testing.model.nodes import Node, User
from cairnfs.testing.model.permissions import READ, WRITE, check_access, check_owner
from cairnfs.testing.model.tree import ModelTree

CREATE, REPLACE = 1, 2
SIZE_MAX_BYTES = 16384
COUNT_MAX = 32


class XAttrCalls(ModelTree):
    """What sets and shows extended attributes."""

    def get_xattrs(self, user: User, path: str, names: Iterable[str] = ()) -> dict[str, bytes]:
        wanted = [_parse(name) for name in names]
        for name in wanted:
            _check_may_use(user, name)
        visible = self._visible_xattrs(user, path)
        if any(name not in visible for name in wanted):
            raise XAttrNotFoundException(path)
        return {name: visible[name] for name in wanted or visible}

    def list_xattrs(self, user: User, path: str) -> list[str]:
        return sorted(self._visible_xattrs(user, path), key=_in_order)

    def set_xattr(self, user: User, path: str, name: str, value: bytes | None, flags: int) -> None:
        name = _parse(name)
        if len(name.partition(".")[2].encode() + (value or b"")) > SIZE_MAX_BYTES:
            raise HadoopIllegalArgumentException("too big")
        node = self._find_to_change_xattr(user, path, name)
        if not flags & (CREATE | REPLACE):
            raise HadoopIllegalArgumentException("flags")
        if not flags & (REPLACE if name in node.xattrs else CREATE):
            raise IOException("flags")
        node.xattrs = node.xattrs | {name: value or b""}
        if len(node.xattrs) > COUNT_MAX:
            raise IOException("too many")

    def remove_xattr(self, user: User, path: str, name: str) -> None:
        name = _parse(name)
        node = self._find_to_change_xattr(user, path, name)
        if name not in node.xattrs:
            raise IOException("not there")
        node.xattrs = {each: value for each, value in node.xattrs.items() if each != name}

    def _visible_xattrs(self, user: User, path: str) -> dict[str, bytes]:
        node = existing(self._find_following(user, path))
        if node.id == 0:  # a directory's list of snapshots
            raise FileNotFoundException(path)
        check_access(user, node, READ)
        return {name: value for name, value in node.xattrs.items() if _may_use(user, name)}

    def _find_to_change_xattr(self, user: User, path: str, name: str) -> Node:
        _check_may_use(user, name)
        node = existing(self._find_following(user, path))
        if not name.startswith("user."):
            return node
        if node.is_directory and node.mode & 0o1000:
            check_owner(user, node)
        else:
            check_access(user, node, WRITE)
        return node


def _parse(name: str) -> str:
    """The name with its name space in small letters."""
    space, dot, rest = name.partition(".")
    if not dot or not rest or space.lower() not in _SPACES:
        raise HadoopIllegalArgumentException(name)
    return f"{space.lower()}.{rest}"


def _may_use(user: User, name: str) -> bool:
    return name.startswith("user.") or (name.startswith("trusted.") and user.is_superuser)


def _check_may_use(user: User, name: str) -> None:
    if not _may_use(user, name):
        raise AccessControlException(name)


def _in_order(name: str) -> tuple[int, str]:
    space, _, rest = name.partition(".")
    return _SPACES.index(space), rest


_SPACES = ("user", "trusted", "security", "system", "raw")
