"""A file system of plain objects: what HDFS means, done eagerly and naively.

It walks whole subtrees where the product keeps totals, copies itself before
every call so that a refusal leaves nothing behind, and knows no transactions.
It shares value types and error classes with the product, and the arithmetic
by which ACLs change; everything that decides is written here a second time.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from msgspec import structs

from cairnfs.clock import Clock
from cairnfs.errors import (
    AccessControlException,
    AlreadyBeingCreatedException,
    DSQuotaExceededException,
    FileAlreadyExistsException,
    FileNotFoundException,
    HadoopIllegalArgumentException,
    HdfsError,
    IllegalArgumentException,
    InvalidPathException,
    IOException,
    LeaseExpiredException,
    NSQuotaExceededException,
    ParentNotDirectoryException,
    PathComponentTooLongException,
    PathIsNotDirectoryException,
    PathIsNotEmptyDirectoryException,
    QuotaByStorageTypeExceededException,
    RecoveryInProgressException,
    UnresolvedPathException,
    UnsupportedActionException,
)
from cairnfs.namesystem import acls
from cairnfs.namesystem.inodes import AclEntry, InodeId, Kind, Quota
from cairnfs.namesystem.status import FileStatus

SOFT_LIMIT_MS = 60_000
BLOCK_SIZE_MIN_BYTES = 1024 * 1024
READ, WRITE, EXECUTE, ALL = 4, 2, 1, 7
OVERWRITE, TO_TRASH = 1, 2
ACCESS_TIME_PRECISION_MS = 3_600_000
DONT_SET = 2**63 - 1


@dataclass(frozen=True)
class User:
    """Who calls, and the name of the client program that holds the leases."""

    name: str
    groups: frozenset[str]
    is_superuser: bool = False

    @property
    def holder(self) -> str:
        return f"client-of-{self.name}"


@dataclass
class ModelBlock:
    """One block of a file."""

    id: int
    length_bytes: int = 0
    is_open: bool = True


@dataclass
class Node:
    """A file, a directory or a link, with everything below it."""

    id: int
    kind: Kind
    mode: int
    owner: str
    group: str
    mtime_ms: int
    atime_ms: int
    acl: tuple[AclEntry, ...] | None = None
    quota: Quota | None = None
    children: dict[bytes, Node] = field(default_factory=dict)
    replication: int = 0
    block_size_bytes: int = 0
    blocks: list[ModelBlock] = field(default_factory=list)
    holder: str | None = None  # who writes it
    granted_ms: int = 0
    target: str | None = None

    @property
    def is_directory(self) -> bool:
        return self.kind is Kind.DIRECTORY

    @property
    def is_file(self) -> bool:
        return self.kind is Kind.FILE

    @property
    def is_symlink(self) -> bool:
        return self.kind is Kind.SYMLINK

    @property
    def length_bytes(self) -> int:
        return sum(block.length_bytes for block in self.blocks if not block.is_open)

    @property
    def space_bytes(self) -> int:
        """What a file takes on all replicas; an open block counts in full."""
        taken = (self.block_size_bytes if b.is_open else b.length_bytes for b in self.blocks)
        return sum(taken) * self.replication

    def walk(self) -> Iterator[Node]:
        """This node and everything below it."""
        yield self
        for child in self.children.values():
            yield from child.walk()

    def copy(self) -> Node:
        return replace(
            self,
            children={name: child.copy() for name, child in self.children.items()},
            blocks=[replace(block) for block in self.blocks],
        )


@dataclass(frozen=True)
class Usage:
    """What a subtree counts for, by walking it."""

    inodes: int
    space_bytes: int

    @staticmethod
    def of(node: Node) -> Usage:
        below = list(node.walk())
        return Usage(len(below), sum(each.space_bytes for each in below))


@dataclass(frozen=True)
class Found:
    """What there is along a path: the nodes from the root on, then names without one."""

    names: tuple[bytes, ...]
    nodes: list[Node]

    @property
    def missing(self) -> tuple[bytes, ...]:
        return self.names[len(self.nodes) - 1 :]

    @property
    def target(self) -> Node | None:
        return None if self.missing else self.nodes[-1]

    @property
    def above(self) -> list[Node]:
        """The nodes there are above the last name."""
        return self.nodes if self.missing else self.nodes[:-1]

    @property
    def parent(self) -> Node | None:
        """The directory of the last name, if there is one."""
        return self.nodes[-2 + len(self.missing)] if len(self.missing) < 2 and self.names else None

    @property
    def nearest(self) -> Node:
        """The lowest node above the last name; of the root, itself."""
        return self.above[-1] if self.above else self.nodes[0]

    @property
    def text(self) -> str:
        return "/" + b"/".join(self.names).decode()


class ModelFileSystem:
    """The calls of ClientProtocol, each with the user who makes it."""

    def __init__(self, clock: Clock, superuser: str, supergroup: str = "supergroup") -> None:
        self._clock = clock
        self._last_id = 0
        self.renewed: dict[str, int] = {}
        now = clock.now_ms()
        self.root = Node(self._new_id(), Kind.DIRECTORY, 0o755, superuser, supergroup, now, 0)

    def copy(self) -> ModelFileSystem:
        twin = ModelFileSystem.__new__(ModelFileSystem)
        twin.__dict__.update(self.__dict__, root=self.root.copy(), renewed=dict(self.renewed))
        return twin

    def call(self, user: User, operation: str, *arguments: Any, **options: Any) -> Any:
        """Run one call; an error leaves everything as it was."""
        method: Callable[..., Any] = getattr(self, operation)
        for path in _paths(operation, arguments):
            parse(path)
        before, renewed = self.root.copy(), dict(self.renewed)
        try:
            return method(user, *arguments, **options)
        except HdfsError:
            self.root, self.renewed = before, renewed
            raise

    # Directories.

    def mkdirs(
        self, user: User, path: str, mode: int = 0o755, *, create_parents: bool = True
    ) -> bool:
        found = self._find_to_create(user, path)
        if found.target is not None:
            _follow(found)
            if not found.target.is_directory:
                raise FileAlreadyExistsException(path)
            return True
        _check_ancestor(user, found)
        if not create_parents:
            _check_parent(found)
        missing = found.missing
        for depth, name in enumerate(missing):
            asked = mode if depth == len(missing) - 1 else _implied(mode)
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
        _follow(found)
        return _status(found.target)

    def get_file_link_info(self, user: User, path: str) -> FileStatus | None:
        if parse(path) == (b".reserved",):
            return self._reserved(b"")
        found = self._find_for_status(user, path)
        if found is None or found.target is None:
            return None
        return _status(found.target)

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
            return [_status(target)], False
        _check_access(user, target, READ | EXECUTE)
        names = sorted(name for name in target.children if name > start_after)
        page = [_status(target.children[name], name) for name in names[:limit]]
        return page, len(names) > limit

    def get_content_summary(self, user: User, path: str) -> tuple[Any, ...]:
        """Length, files, directories, links, space, quota."""
        found = self._find(user, path)
        target = _existing(found)
        _check_may_list_all(user, target)
        nodes = list(target.walk())
        return (
            sum(node.length_bytes for node in nodes),
            sum(node.is_file for node in nodes),
            sum(node.is_directory for node in nodes),
            sum(node.is_symlink for node in nodes),
            sum(node.space_bytes for node in nodes),
            self._reported_quota(target),
        )

    # Files.

    def create(
        self,
        user: User,
        path: str,
        mode: int = 0o644,
        *,
        overwrite: bool = False,
        create_parents: bool = True,
        replication: int = 3,
        block_size_bytes: int = 128 * 1024 * 1024,
    ) -> FileStatus:
        names = parse(path)
        if ":" in path or (names[:1] == (b".reserved",) and names[1:2] != (b".inodes",)):
            raise InvalidPathException(path)
        found = self._find_to_create(user, path)
        existing = found.target
        _follow(found)
        _check_ancestor(user, found)
        if existing is not None:
            if existing.is_directory:
                raise FileAlreadyExistsException(path)
            if overwrite:
                _check_access(user, existing, WRITE)
        elif not create_parents:
            _check_parent(found)
        if block_size_bytes < BLOCK_SIZE_MIN_BYTES:
            raise IOException("block size")
        _check_replication(replication)
        if existing is not None:
            if not overwrite:
                raise self._exists_already(user, existing)
            self._unlink(found)
        else:
            implied = _implied(found.nearest.mode)
            for name in found.missing[:-1]:
                made = self._new_directory(user, found.nodes[-1], implied)
                self._add(found, name, made)
                found.nodes.append(made)
        now = self._now()
        parent = found.nodes[-1] if existing is None else found.nodes[-2]
        mode, acl = acls.inherit_default(parent.acl, mode, None, is_directory=False)
        file = Node(self._new_id(), Kind.FILE, mode, user.name, parent.group, now, now, acl)
        file.replication, file.block_size_bytes = replication, block_size_bytes
        file.holder, file.granted_ms = user.holder, now
        above = Found(found.names, found.above)
        self._add(above, found.names[-1], file, inodes=0 if existing else 1)
        return _status(file)

    def add_block(
        self, user: User, path: str, previous: ModelBlock | None = None, file_id: int = 0
    ) -> tuple[ModelBlock, int]:
        """The block, and where in the file it begins."""
        found, file = self._open_file(user, path, file_id)
        last = file.blocks[-1] if file.blocks else None
        before_last = file.blocks[-2] if len(file.blocks) > 1 else None
        if not _same_block(previous, last):
            after_full = (
                previous is None
                and last is not None
                and not last.is_open
                and last.length_bytes >= file.block_size_bytes
            )
            if not after_full:
                if last is None or not _same_block(previous, before_last):
                    raise IOException("previous does not match")
                if last.length_bytes:
                    raise IOException("not a retry")
                return replace(last), file.length_bytes
        before_bytes = file.space_bytes
        _finish_last(file, previous)
        given_back_bytes = before_bytes - file.space_bytes
        block = ModelBlock(self._new_id())
        taken_bytes = file.block_size_bytes * file.replication
        if taken_bytes > given_back_bytes:
            self._check_quotas(found.above, 0, taken_bytes)
        file.blocks.append(block)
        return replace(block), file.length_bytes

    def abandon_block(self, user: User, path: str, block: ModelBlock, file_id: int = 0) -> None:
        _, file = self._open_file(user, path, file_id)
        if file.blocks and file.blocks[-1].is_open and _same_block(block, file.blocks[-1]):
            file.blocks.pop()

    def complete(
        self, user: User, path: str, last: ModelBlock | None = None, file_id: int = 0
    ) -> bool:
        file = self._find_by_id(user, path, file_id).target
        if file is not None and file.is_file and file.holder is None:
            its_last = file.blocks[-1] if file.blocks else None
            if _same_block(last, its_last):
                return True
        _, file = self._open_file(user, path, file_id)
        if file.blocks and file.blocks[-1].is_open and last is None:
            return False
        _finish_last(file, last)
        file.holder = None
        file.mtime_ms = self._now()
        return True

    def set_replication(self, user: User, path: str, replication: int) -> bool:
        _check_replication(replication)
        found = self._find_following(user, path)
        file = found.target
        if file is not None:
            _check_access(user, file, WRITE)
        if file is None or not file.is_file:
            return False
        before = file.space_bytes
        file.replication, old = replication, file.replication
        difference = file.space_bytes - before
        file.replication = old
        self._check_quotas(found.above, 0, difference)
        file.replication = replication
        return True

    def renew_lease(self, user: User) -> None:
        self.renewed[user.holder] = self._now()

    # Removing and moving.

    def delete(self, user: User, path: str, *, recursive: bool = False) -> bool:
        if parse(path) == (b".reserved",):
            raise InvalidPathException(path)
        found = self._find(user, path)
        target = found.target
        self._check_may_remove(user, found, with_subtree=True)
        if target is None:
            return False
        if target.children and not recursive:
            raise PathIsNotEmptyDirectoryException(path)
        if target is self.root:
            return False
        self._unlink(found)
        return True

    def rename(self, user: User, src: str, dst: str) -> bool:
        source = self._find_at(user, src, first=dst)
        destination = self._find_to_create(user, dst)
        if destination.target is not None and destination.target.is_directory and source.names:
            destination = self._find_names((*destination.names, source.names[-1]))
        self._check_may_remove(user, source, with_subtree=False)
        _check_ancestor(user, destination)
        node = source.target
        if node is None or node is self.root:
            return False
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
        _check_ancestor(user, destination)
        node = source.target
        if node is None:
            raise FileNotFoundException(src)
        if node is self.root:
            raise IOException("the root")
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
            # HDFS forgets the sticky bit here; we do not.
            _check_sticky(user, destination.above[-1], replaced)
        if destination.parent is None:
            raise FileNotFoundException(dst)
        self._move(source, destination, node)

    # Attributes.

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
        node = _existing(self._find_following(user, path))
        _check_access(user, node, WRITE)
        if mtime_ms >= 0:
            node.mtime_ms = mtime_ms
        if atime_ms >= 0:
            node.atime_ms = atime_ms

    def check_access(self, user: User, path: str, access: int) -> None:
        node = _existing(self._find_following(user, path))
        _check_access(user, node, access)

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
        node = _existing(self._find_following(user, path))
        return node.owner, node.group, node.mode, node.acl or ()

    def set_quota(
        self,
        user: User,
        path: str,
        namespace_quota: int,
        space_quota_bytes: int,
        storage_type: int | None = None,
    ) -> None:
        """A storage type is DISK (1) or SSD (2) here."""
        _check_superuser(user)
        found = self._find_following(user, path)
        if min(namespace_quota, space_quota_bytes) < -1:
            raise IllegalArgumentException("quota")
        if storage_type is not None and namespace_quota != DONT_SET:
            raise UnsupportedActionException("quota")
        node = _existing(found)
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
        node = _existing(self._find(user, path))
        _check_may_list_all(user, node)
        used = Usage.of(node)
        return used.inodes, used.space_bytes, self._reported_quota(node)

    # Links.

    def create_symlink(
        self, user: User, target: str, link: str, *, create_parents: bool = True
    ) -> None:
        names = parse(link)
        _check_length(names, link)
        if ":" in link:
            raise InvalidPathException(link)
        if not target or target == "/.reserved" or target.startswith("/.reserved/"):
            raise InvalidPathException(target)
        found = self._find(user, link)
        if not create_parents:
            _check_parent(found)
        if found.target is not None:
            raise IOException(f"{link} exists")
        _check_ancestor(user, found)
        missing, implied = found.missing, _implied(found.nearest.mode)
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

    # Whole files.

    def concat(self, user: User, target: str, sources: list[str]) -> None:
        if not sources:
            raise IllegalArgumentException("no sources")
        for path in (target, *sources):
            if parse(path)[:2] in ((b".reserved", b".inodes"), (b".reserved", b"raw")):
                raise IOException(path)
        found = self._find_following(user, target)
        if found.target is not None:
            _check_access(user, found.target, WRITE)
        file = _existing_file(found)
        if file.holder is not None:
            raise HadoopIllegalArgumentException("being written")
        parent = found.above[-1]
        moved: list[Node] = []
        for path in sources:
            source_found = self._find_following(user, path)
            if source_found.target is not None:
                _check_access(user, source_found.target, READ)
            self._check_may_remove(user, source_found, with_subtree=False)
            source = _existing_file(source_found)
            if (
                source_found.above[-1] is not parent
                or source is file
                or source.holder is not None
                or not source.blocks
                or source.block_size_bytes > file.block_size_bytes
            ):
                raise HadoopIllegalArgumentException("not a good source")
            moved.append(source)
        if len({source.id for source in moved}) < len(moved):
            raise HadoopIllegalArgumentException("twice the same")
        more_bytes = sum(
            source.length_bytes * (file.replication - source.replication) for source in moved
        )
        self._check_quotas(found.above, 0, more_bytes)
        for name, node in list(parent.children.items()):
            if any(node is source for source in moved):
                del parent.children[name]
        for source in moved:
            file.blocks += source.blocks
        file.mtime_ms = parent.mtime_ms = self._now()

    def is_file_closed(self, user: User, path: str) -> bool:
        return _existing_file(self._find_following(user, path)).holder is None

    def get_block_locations(
        self, user: User, path: str, offset_bytes: int = 0, length_bytes: int = 2**62
    ) -> tuple[Any, ...]:
        """Id, length, whether being written, blocks with offsets, whether the last is complete."""
        if offset_bytes < 0 or length_bytes < 0:
            raise IllegalArgumentException("negative")
        found = self._locate(path)
        _follow(found)
        if found.target is None and not found.nearest.is_directory:
            self._traverse(user, found, creating=False)
        file = _existing_file(found)
        self._traverse(user, found, creating=False)
        _check_access(user, file, READ)
        offsets, end_bytes = [], 0
        for block in file.blocks:
            offsets.append(end_bytes)
            end_bytes += 0 if block.is_open else block.length_bytes
        located = list(zip(file.blocks, offsets, strict=True))
        first = 0
        if file.blocks and file.blocks[0].length_bytes:  # as HDFS, which expects no empty ones
            while first < len(located):
                block, offset = located[first]
                if offset + block.length_bytes > offset_bytes:
                    break
                first += 1
        chosen = located[first : first + 1] + [
            (block, offset)
            for block, offset in located[first + 1 :]
            if offset < offset_bytes + length_bytes
        ]
        answer = (
            file.id,
            file.length_bytes,
            file.holder is not None,
            [(block.id, block.length_bytes, offset) for block, offset in chosen],
            bool(file.blocks) and not file.blocks[-1].is_open,
        )
        if self._now() > file.atime_ms + ACCESS_TIME_PRECISION_MS:
            file.atime_ms = self._now()
        return answer

    # Finding.

    def _owned(self, user: User, path: str) -> Node:
        node = _existing(self._find_following(user, path))
        _check_owner(user, node)
        return node

    def _find_names(self, names: tuple[bytes, ...]) -> Found:
        nodes = [self.root]
        for name in names:
            child = nodes[-1].children.get(name)
            if child is None:
                break
            nodes.append(child)
        return Found(names, nodes)

    def _locate(self, path: str) -> Found:
        """The nodes along a path, which may begin with the id of an inode."""
        names = parse(path)
        if len(names) < 3 or names[:2] != (b".reserved", b".inodes"):
            return self._find_names(names)
        for above, node in _walk_with_names(self.root, ()):
            if str(node.id).encode() == names[2]:
                below = names[3:]
                if below[:1] == (b"..",):  # HDFS knows it here only, for NFS
                    above, below = above[:-1], below[1:]
                return self._find_names((*above, *below))
        raise FileNotFoundException(path)

    def _find(self, user: User, path: str) -> Found:
        """For calls that create nothing; a link at the end is itself meant."""
        return self._traverse(user, self._locate(path), creating=False)

    def _find_at(self, user: User, path: str, *, first: str) -> Found:
        """As `_find`, for the source of a rename: its destination is parsed first."""
        _check_length(parse(first), first)
        return self._find(user, path)

    def _find_following(self, user: User, path: str) -> Found:
        found = self._find(user, path)
        _follow(found)
        return found

    def _find_to_create(self, user: User, path: str) -> Found:
        names = parse(path)
        _check_length(names, path)
        if ":" in path:
            raise InvalidPathException(path)
        return self._traverse(user, self._locate(path), creating=True)

    def _find_for_status(self, user: User, path: str) -> Found | None:
        try:
            return self._find(user, path)
        except AccessControlException:
            if user.is_superuser:  # below a file: HDFS says nothing is there
                return None
            raise

    def _traverse(self, user: User, found: Found, *, creating: bool) -> Found:
        for node in found.above:
            if node.is_symlink:
                raise UnresolvedPathException(_elsewhere(found))
            if not node.is_directory:
                if creating:
                    raise ParentNotDirectoryException(found.text)
                raise AccessControlException(found.text)
            _check_access(user, node, EXECUTE)
        return found

    def _find_by_id(self, user: User, path: str, file_id: int) -> Found:
        """Who knows the id of a file needs neither its path nor a permission."""
        if not file_id:
            return self._find_following(user, path)
        self._locate(path)
        for names, node in _walk_with_names(self.root, ()):
            if node.id == file_id:
                return self._find_names(names)
        return Found((b"gone",), [self.root])

    def _open_file(self, user: User, path: str, file_id: int) -> tuple[Found, Node]:
        found = self._find_by_id(user, path, file_id)
        file = found.target
        if file is None:
            raise FileNotFoundException(path)
        if not file.is_file or file.holder is None or file.holder != user.holder:
            raise LeaseExpiredException(path)
        return found, file

    # Checking.

    def _check_may_remove(self, user: User, found: Found, *, with_subtree: bool) -> None:
        if found.parent is not None:
            if found.target is not None:
                _check_sticky(user, found.parent, found.target)
            _check_access(user, found.parent, WRITE)
        if with_subtree and found.target is not None:
            for node in found.target.walk():
                if node.children:
                    _check_access(user, node, ALL)
                for child in node.children.values():
                    _check_sticky(user, node, child)

    def _check_not_reserved(self, source: Found, destination: Found) -> None:
        if (b".reserved",) in (source.names, destination.names):
            raise InvalidPathException("reserved")

    def _check_quotas(self, above: Iterable[Node], inodes: int, space_bytes: int) -> None:
        """Nearest directory first, as HDFS: what is added must fit if anything is added."""
        for node in reversed(list(above)):
            quota = node.quota
            if quota is None:
                continue
            used = Usage.of(node)
            if inodes > 0 and -1 < quota.inodes < used.inodes + inodes:
                raise NSQuotaExceededException("inodes")
            if space_bytes > 0:
                if -1 < quota.space_bytes < used.space_bytes + space_bytes:
                    raise DSQuotaExceededException("space")
                if -1 < quota.disk_bytes < used.space_bytes + space_bytes:
                    raise QuotaByStorageTypeExceededException("disk")

    def _exists_already(self, user: User, file: Node) -> HdfsError:
        if file.holder is None:
            return FileAlreadyExistsException("exists")
        heard_ms = max(file.granted_ms, self.renewed.get(file.holder, 0))
        if file.holder != user.holder and self._now() - heard_ms > SOFT_LIMIT_MS:
            return RecoveryInProgressException("its writer is gone")
        return AlreadyBeingCreatedException("being written")

    # Changing.

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

    def _new_directory(self, user: User, parent: Node, mode: int) -> Node:
        mode, acl = acls.inherit_default(parent.acl, mode, None, is_directory=True)
        now = self._now()
        return Node(self._new_id(), Kind.DIRECTORY, mode, user.name, parent.group, now, 0, acl)

    def _add(self, found: Found, name: bytes, node: Node, *, inodes: int = 1) -> None:
        """Put something new into the last of the nodes that were found."""
        _check_name(found.names, name)
        self._check_quotas(found.nodes, inodes, 0)
        found.nodes[-1].children[name] = node
        found.nodes[-1].mtime_ms = self._now()

    def _unlink(self, found: Found) -> None:
        parent = found.above[-1]
        del parent.children[found.names[-1]]
        parent.mtime_ms = self._now()

    def _move(self, source: Found, destination: Found, node: Node) -> None:
        _check_name(destination.names, destination.names[-1])
        moved, replaced = Usage.of(node), Usage(0, 0)
        if destination.target is not None:
            replaced = Usage.of(destination.target)
        affected = [each for each in destination.above if each not in source.above]
        self._check_quotas(
            affected, moved.inodes - replaced.inodes, moved.space_bytes - replaced.space_bytes
        )
        self._unlink(source)
        destination.above[-1].children[destination.names[-1]] = node
        destination.above[-1].mtime_ms = self._now()

    def _reported_quota(self, node: Node) -> Quota:
        quota = node.quota or Quota()
        if node is self.root and quota.inodes == -1:
            quota = structs.replace(quota, inodes=DONT_SET)  # as HDFS tells it
        return quota

    def _reserved(self, name: bytes) -> FileStatus:
        """Of /.reserved and what is in it; its times mean nothing."""
        root = self.root
        mtime_ms = root.mtime_ms
        return FileStatus(
            *(Kind.DIRECTORY, name, 0, 0o770, "", root.group, mtime_ms, mtime_ms),
            *(None, 0, 0, InodeId(0), 0, False, False),
        )

    def _now(self) -> int:
        return self._clock.now_ms()

    def _new_id(self) -> int:
        self._last_id += 1
        return self._last_id


def _paths(operation: str, arguments: tuple[Any, ...]) -> Iterable[str]:
    """The paths among a call's arguments: a client parses them before it calls."""
    if operation == "renew_lease":
        return ()
    if operation == "create_symlink":
        return arguments[1:2]
    if operation in ("rename", "rename2"):
        return arguments[:2]
    if operation == "concat":
        return arguments[0], *arguments[1]
    return arguments[:1]


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


def _walk_with_names(
    node: Node, names: tuple[bytes, ...]
) -> Iterator[tuple[tuple[bytes, ...], Node]]:
    yield names, node
    for name, child in node.children.items():
        yield from _walk_with_names(child, (*names, name))


def _check_access(user: User, node: Node, access: int) -> None:
    if not user.is_superuser and not may(user, node, access):
        raise AccessControlException(f"{user.name} may not {access}")


def _check_ancestor(user: User, found: Found) -> None:
    """Something may be added to the nearest directory; nothing can be in place of the root."""
    if found.names:
        _check_access(user, found.nearest, WRITE)


def _check_may_list_all(user: User, top: Node) -> None:
    for node in top.walk():
        if node.is_directory:
            _check_access(user, node, READ | EXECUTE)


def _implied(mode: int) -> int:
    return mode & 0o777 | 0o300


def _check_sticky(user: User, parent: Node, child: Node) -> None:
    if (
        parent.mode & 0o1000
        and not user.is_superuser
        and user.name not in (parent.owner, child.owner)
    ):
        raise AccessControlException("sticky")


def _check_owner(user: User, node: Node) -> None:
    if not user.is_superuser and user.name != node.owner:
        raise AccessControlException("not the owner")


def _check_superuser(user: User) -> None:
    if not user.is_superuser:
        raise AccessControlException("not the superuser")


def _check_parent(found: Found) -> None:
    if len(found.missing) > 1:
        raise FileNotFoundException(found.text)
    if not found.nearest.is_directory:
        raise ParentNotDirectoryException(found.text)


def _check_length(names: tuple[bytes, ...], path: str) -> None:
    text = "/" + b"/".join(names).decode()
    if len(text.encode("utf-16-le")) // 2 > 8000 or len(names) > 1000:
        raise IOException(f"{path[:20]}... is too long")


def _check_name(names: tuple[bytes, ...], name: bytes) -> None:
    if names[:1] == (b".reserved",) or b".snapshot" in names:
        raise HadoopIllegalArgumentException("reserved")
    if len(name) > 255:
        raise PathComponentTooLongException(name.decode())


def _check_replication(replication: int) -> None:
    if not 1 <= replication <= 512:
        raise IOException(f"replication {replication}")


def _existing(found: Found) -> Node:
    if found.target is None:
        raise FileNotFoundException(found.text)
    return found.target


def _existing_file(found: Found) -> Node:
    node = _existing(found)
    if not node.is_file:
        raise FileNotFoundException(f"{found.text} is no file")
    return node


def _follow(found: Found) -> None:
    """The server follows no link: it tells the client to."""
    if found.target is not None and found.target.is_symlink:
        raise UnresolvedPathException(_elsewhere(found))


def _elsewhere(found: Found) -> str:
    """The path with the link on it replaced by where it points."""
    link = found.nodes[-1]
    names = [name.decode() for name in found.names]
    depth = len(found.nodes) - 2  # of the link among the names
    target = link.target or ""
    if not target.startswith("/") and "://" not in target:
        target = posixpath.normpath("/" + "/".join([*names[:depth], target]))
    return "/".join([target.rstrip("/"), *names[depth + 1 :]]) or "/"


def _same_block(a: ModelBlock | None, b: ModelBlock | None) -> bool:
    return a is b if a is None or b is None else a.id == b.id


def _finish_last(file: Node, reported: ModelBlock | None) -> None:
    if not file.blocks or not file.blocks[-1].is_open:
        return
    if not _same_block(reported, file.blocks[-1]):
        raise IOException("another block")
    length = reported.length_bytes if reported is not None else 0
    if not 0 <= length <= file.block_size_bytes:
        raise IOException(f"a block of {length} bytes")
    file.blocks[-1].length_bytes = length
    file.blocks[-1].is_open = False


def _status(node: Node, name: bytes = b"") -> FileStatus:
    return FileStatus(
        node.kind,
        name,
        node.length_bytes,
        node.mode,
        node.owner,
        node.group,
        node.mtime_ms,
        node.atime_ms,
        node.target,
        node.replication,
        node.block_size_bytes,
        InodeId(node.id),
        len(node.children),
        node.acl is not None,
        node.holder is not None,
    )
