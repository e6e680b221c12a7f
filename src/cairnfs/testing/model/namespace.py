"""Calls on the namespace of the model: directories, listings, deleting, moving, links."""

from __future__ import annotations

from typing import Any

from cairnfs.errors import (
    FileAlreadyExistsException,
    FileNotFoundException,
    InvalidPathException,
    IOException,
    PathIsNotEmptyDirectoryException,
    UnresolvedPathException,
)
from cairnfs.namesystem.answers import FileStatus
from cairnfs.namesystem.inodes import InodeId, Kind
from cairnfs.testing.model.names import (
    check_length,
    check_not_a_link,
    check_parent,
    existing,
    implied_mode,
    parse,
)
from cairnfs.testing.model.nodes import Found, Node, User, status_of
from cairnfs.testing.model.permissions import (
    EXECUTE,
    READ,
    check_access,
    check_ancestor,
    check_may_list_all,
    check_sticky,
)
from cairnfs.testing.model.tree import ModelTree

OVERWRITE, TO_TRASH = 1, 2


class NamespaceCalls(ModelTree):
    """What makes, shows, removes and moves names."""

    # Directories.

    def mkdirs(
        self, user: User, path: str, mode: int = 0o755, *, create_parents: bool = True
    ) -> bool:
        found = self._find_to_create(user, path)
        if found.target is not None:
            check_not_a_link(found)
            if not found.target.is_directory:
                raise FileAlreadyExistsException(path)
            return True
        check_ancestor(user, found)
        if not create_parents:
            check_parent(found)
        missing = found.missing
        for depth, name in enumerate(missing):
            asked = mode if depth == len(missing) - 1 else implied_mode(mode)
            made = self._new_directory(user, found.nodes[-1], asked)
            self._add(found, name, made)
            found.nodes.append(made)
        return True

    def get_file_info(self, user: User, path: str) -> FileStatus | None:
        if parse(path) == (b".reserved",):
            return self._reserved(b"")
        found = self._find_for_status(user, path)
        if found is None or found.target is None:
            return None
        check_not_a_link(found)
        return status_of(found.target)

    def get_file_link_info(self, user: User, path: str) -> FileStatus | None:
        if parse(path) == (b".reserved",):
            return self._reserved(b"")
        found = self._find_for_status(user, path)
        if found is None or found.target is None:
            return None
        return status_of(found.target)

    def get_listing(
        self, user: User, path: str, start_after: bytes = b"", limit: int = 1000
    ) -> tuple[list[FileStatus], bool] | None:
        """The page, and whether there is more behind it."""
        if parse(path) == (b".reserved",):
            return [self._reserved(b".inodes"), self._reserved(b"raw")], False
        found = self._find_following(user, path)
        target = found.target
        if target is None:
            return None
        if not target.is_directory:
            return [status_of(target)], False
        check_access(user, target, READ | EXECUTE)
        names = sorted(name for name in target.children if name > start_after)
        page = [status_of(target.children[name], name) for name in names[:limit]]
        return page, len(names) > limit

    def get_content_summary(self, user: User, path: str) -> tuple[Any, ...]:
        """Length, files, directories, links, space, quota."""
        found = self.find(user, path)
        target = existing(found)
        check_may_list_all(user, target)
        nodes = list(target.walk())
        return (
            sum(node.visible_bytes for node in nodes),
            sum(node.is_file for node in nodes),
            sum(node.is_directory for node in nodes),
            sum(node.is_symlink for node in nodes),
            sum(node.space_bytes for node in nodes),
            self._reported_quota(target),
        )

    # Removing and moving.

    def delete(self, user: User, path: str, *, recursive: bool = False) -> bool:
        if parse(path) == (b".reserved",):
            raise InvalidPathException(path)
        found = self.find(user, path)
        target = found.target
        self._check_may_remove(user, found, with_subtree=True)
        if target is None:
            return False
        if target.children and not recursive:
            raise PathIsNotEmptyDirectoryException(path)
        if target is self.root:
            return False
        self._check_no_snapshots(target)
        self._unlink(found)
        return True

    def rename(self, user: User, src: str, dst: str) -> bool:
        source = self._find_at(user, src, first=dst)
        destination = self._find_to_create(user, dst)
        if destination.target is not None and destination.target.is_directory and source.names:
            check_access(user, destination.target, EXECUTE)
            destination = self._find_names((*destination.names, source.names[-1]))
        self._check_may_remove(user, source, with_subtree=False)
        check_ancestor(user, destination)
        node = source.target
        if node is None or node is self.root:
            return False
        self._check_no_snapshots(node)
        if source.names == destination.names:
            return True
        if node.is_symlink and node.target == destination.text:
            return False
        if destination.names[: len(source.names)] == source.names:
            return False
        self._check_not_reserved(source, destination)
        if destination.target is not None or destination.parent is None:
            return False
        self._move(source, destination, node)
        return True

    def rename2(self, user: User, src: str, dst: str, options: int = 0) -> None:
        source = self._find_at(user, src, first=dst)
        destination = self._find_to_create(user, dst)
        self._check_may_remove(user, source, with_subtree=bool(options & TO_TRASH))
        check_ancestor(user, destination)
        node = source.target
        if node is None:
            raise FileNotFoundException(src)
        if node is self.root:
            raise IOException("the root")
        self._check_no_snapshots(node)
        if source.names == destination.names:
            raise FileAlreadyExistsException(dst)
        if node.is_symlink and node.target == destination.text:
            raise FileAlreadyExistsException(dst)
        if destination.names[: len(source.names)] == source.names:
            raise IOException("below itself")
        self._check_not_reserved(source, destination)
        if not destination.names:
            raise IOException("the root")
        replaced = destination.target
        if replaced is not None:
            if replaced.is_directory != node.is_directory:
                raise IOException("must both be directories")
            if not options & OVERWRITE:
                raise FileAlreadyExistsException(dst)
            if replaced.children:
                raise IOException("not empty")
            self._check_no_snapshots(replaced)
            # HDFS forgets the sticky bit here; we do not.
            check_sticky(user, destination.above[-1], replaced)
        if destination.parent is None:
            raise FileNotFoundException(dst)
        self._move(source, destination, node)

    # Links.

    def create_symlink(
        self, user: User, target: str, link: str, *, create_parents: bool = True
    ) -> None:
        names = parse(link)
        check_length(names, link)
        if ":" in link:
            raise InvalidPathException(link)
        if not target or target == "/.reserved" or target.startswith("/.reserved/"):
            raise InvalidPathException(target)
        found = self.find(user, link)
        if not create_parents:
            check_parent(found)
        if found.target is not None:
            raise IOException(f"{link} exists")
        check_ancestor(user, found)
        missing, implied = found.missing, implied_mode(found.nearest.mode)
        for name in missing[:-1]:
            made = self._new_directory(user, found.nodes[-1], implied)
            self._add(found, name, made)
            found.nodes.append(made)
        group, now = found.nodes[-1].group, self._now()
        node = Node(self._new_id(), Kind.SYMLINK, 0o777, user.name, group, now, now)
        node.target = target
        self._add(found, missing[-1], node)

    def get_link_target(self, user: User, path: str) -> str:
        if parse(path) == (b".reserved",):
            raise IOException("no link")
        try:
            found = self._find_for_status(user, path)
        except UnresolvedPathException as elsewhere:
            return str(elsewhere)
        if found is None or found.target is None:
            raise FileNotFoundException(path)
        if found.target.target is None:
            raise IOException(f"{path} is no link")
        return found.target.target

    def _check_not_reserved(self, source: Found, destination: Found) -> None:
        if (b".reserved",) in (source.names, destination.names):
            raise InvalidPathException("reserved")

    def _reserved(self, name: bytes) -> FileStatus:
        """Of /.reserved and what is in it; its times mean nothing."""
        root = self.root
        mtime_ms = root.mtime_ms
        return FileStatus(
            *(Kind.DIRECTORY, name, 0, 0o770, "", root.group, mtime_ms, mtime_ms),
            *(None, 0, 0, InodeId(0), 0, False, False),
        )
