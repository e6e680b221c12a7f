"""Paths and names: taking them apart, what they may be, and what has to be there."""

from __future__ import annotations

import posixpath

from cairnfs.errors import (
    FileNotFoundException,
    HadoopIllegalArgumentException,
    InvalidPathException,
    IOException,
    ParentNotDirectoryException,
    PathComponentTooLongException,
    UnresolvedPathException,
)
from cairnfs.testing.model.nodes import Found, Node


def parse(path: str) -> tuple[bytes, ...]:
    """The names of a path."""
    if not path.startswith("/") or "\0" in path:
        raise InvalidPathException(path)
    try:
        names = tuple(name for name in path.encode().split(b"/") if name)
    except UnicodeEncodeError:
        raise InvalidPathException("not UTF-8") from None
    is_parent_of_inode = (
        names[:2] == (b".reserved", b".inodes")
        and names[3:4] == (b"..",)
        and names.count(b"..") == 1
    )
    if b"." in names or (b".." in names and not is_parent_of_inode):
        raise InvalidPathException(path)
    return names


def check_length(names: tuple[bytes, ...], path: str) -> None:
    text = "/" + b"/".join(names).decode()
    if len(text.encode("utf-16-le")) // 2 > 8000 or len(names) > 1000:
        raise IOException(f"{path[:20]}... is too long")


def check_name(names: tuple[bytes, ...], name: bytes) -> None:
    if names[:1] == (b".reserved",) or b".snapshot" in names:
        raise HadoopIllegalArgumentException("reserved")
    if len(name) > 255:
        raise PathComponentTooLongException(name.decode())


def implied_mode(mode: int) -> int:
    return mode & 0o777 | 0o300


def check_parent(found: Found) -> None:
    if len(found.missing) > 1:
        raise FileNotFoundException(found.text)
    if not found.nearest.is_directory:
        raise ParentNotDirectoryException(found.text)


def existing(found: Found) -> Node:
    if found.target is None:
        raise FileNotFoundException(found.text)
    return found.target


def existing_file(found: Found) -> Node:
    node = existing(found)
    if not node.is_file:
        raise FileNotFoundException(f"{found.text} is no file")
    return node


def check_not_a_link(found: Found) -> None:
    """The server follows no link: it tells the client to."""
    if found.target is not None and found.target.is_symlink:
        raise UnresolvedPathException(elsewhere(found))


def elsewhere(found: Found) -> str:
    """The path with the link on it replaced by where it points."""
    link = found.nodes[-1]
    names = [name.decode() for name in found.names]
    depth = len(found.nodes) - 2  # of the link among the names
    target = link.target or ""
    if not target.startswith("/") and "://" not in target:
        target = posixpath.normpath("/" + "/".join([*names[:depth], target]))
    return "/".join([target.rstrip("/"), *names[depth + 1 :]]) or "/"
