"""The tree of the model: finding, checking against quotas, adding, moving.

Nothing is kept twice: what a quota is compared with is counted each time.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from msgspec import structs

from cairnfs.clock import Clock
from cairnfs.errors import (
    AccessControlException,
    DSQuotaExceededException,
    FileNotFoundException,
    InvalidPathException,
    NSQuotaExceededException,
    ParentNotDirectoryException,
    QuotaByStorageTypeExceededException,
    SnapshotAccessControlException,
    SnapshotException,
    UnresolvedPathException,
)
from cairnfs.namesystem import acls
from cairnfs.namesystem.inodes import Kind, Quota
from cairnfs.testing.model.names import (
    check_length,
    check_name,
    check_not_a_link,
    elsewhere,
    existing,
    parse,
)
from cairnfs.testing.model.nodes import Found, Node, Usage, User, walk_with_names
from cairnfs.testing.model.permissions import (
    ALL,
    EXECUTE,
    WRITE,
    check_access,
    check_owner,
    check_sticky,
)

DONT_SET = 2**63 - 1
DOT_SNAPSHOT = b".snapshot"


class ModelTree:
    """The nodes, and what all calls do with them."""

    def __init__(self, clock: Clock, superuser: str, supergroup: str = "supergroup") -> None:
        self._clock = clock
        self._last_id = 0
        self.renewed: dict[str, int] = {}
        self.written: dict[int, int] = {}  # how many bytes there are of each block's data
        self.copies: set[int] = set()  # ids of what a roll-back or a clone has brought
        self.shown_for: dict[int, int] = {}  # the id of the first in whose place this came
        self.doubts: list[str] = []  # what was rolled back where the product may decide otherwise
        self.diffs_copies = True  # or diffs leave open which of them is which
        self.is_reading = True  # what runs now changes nothing, and may look into snapshots
        now = clock.now_ms()
        self.root = Node(self._new_id(), Kind.DIRECTORY, 0o755, superuser, supergroup, now, 0)

    # Finding.

    def _owned(self, user: User, path: str) -> Node:
        node = existing(self._find_following(user, path))
        check_owner(user, node)
        return node

    def _find_names(self, names: tuple[bytes, ...]) -> Found:
        nodes = [self.root]
        in_snapshot = False
        for name in names:
            if name == DOT_SNAPSHOT and nodes[-1].is_snapshottable and not in_snapshot:
                in_snapshot = True
                nodes.append(_dot_snapshot(nodes[-1]))
                continue
            child = nodes[-1].children.get(name)
            if child is None:
                break
            nodes.append(child)
        return Found(names, nodes, in_snapshot)

    def _locate(self, path: str) -> Found:
        """The nodes along a path, which may begin with the id of an inode."""
        names = parse(path)
        if len(names) < 3 or names[:2] != (b".reserved", b".inodes"):
            return self._find_names(names)
        for above, node in walk_with_names(self.root, ()):
            if str(node.id).encode() == names[2]:
                below = names[3:]
                if below[:1] == (b"..",):  # HDFS knows it here only, for NFS
                    above, below = above[:-1], below[1:]
                return self._find_names((*above, *below))
        raise FileNotFoundException(path)

    def find(self, user: User, path: str) -> Found:
        """For calls that create nothing; a link at the end is itself meant."""
        return self._traverse(user, self._locate(path), creating=False)

    def _find_at(self, user: User, path: str, *, first: str) -> Found:
        """As `find`, for the source of a rename: its destination is parsed first."""
        check_length(parse(first), first)
        return self.find(user, path)

    def _find_following(self, user: User, path: str) -> Found:
        found = self.find(user, path)
        check_not_a_link(found)
        return found

    def _find_to_create(self, user: User, path: str) -> Found:
        names = parse(path)
        check_length(names, path)
        if ":" in path:
            raise InvalidPathException(path)
        return self._traverse(user, self._locate(path), creating=True)

    def _find_for_status(self, user: User, path: str) -> Found | None:
        try:
            return self.find(user, path)
        except AccessControlException:
            if user.is_superuser:  # below a file: HDFS says nothing is there
                return None
            raise

    def _traverse(self, user: User, found: Found, *, creating: bool) -> Found:
        for depth, node in enumerate(found.above):
            if node.is_file and node.is_snapshottable and found.names[depth] == DOT_SNAPSHOT:
                readable = node.mode | (node.mode & 0o444) >> 2  # may look into its snapshots
                check_access(user, replace(node, mode=readable), EXECUTE)
                continue
            if node.is_symlink:
                raise UnresolvedPathException(elsewhere(found))
            if not node.is_directory:
                if creating:
                    raise ParentNotDirectoryException(found.text)
                raise AccessControlException(found.text)
            check_access(user, node, EXECUTE)
        if found.in_snapshot and not self.is_reading:
            raise SnapshotAccessControlException("Modification on a read-only snapshot")
        return found

    # Checking.

    def _check_may_remove(self, user: User, found: Found, *, with_subtree: bool) -> None:
        if found.parent is not None:
            if found.target is not None:
                check_sticky(user, found.parent, found.target)
            check_access(user, found.parent, WRITE)
        if with_subtree and found.target is not None:
            for node in found.target.walk():
                if node.children:
                    check_access(user, node, ALL)
                for child in node.children.values():
                    check_sticky(user, node, child)

    def _check_no_snapshots(self, top: Node) -> None:
        """Nothing at or below it has a snapshot, so that it may go away."""
        if any(node.snapshots for node in top.walk()):
            raise SnapshotException("it, or something below it, has snapshots")

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

    # Changing.

    def _new_directory(self, user: User, parent: Node, mode: int) -> Node:
        mode, acl = acls.inherit_default(parent.acl, mode, None, is_directory=True)
        now = self._now()
        return Node(self._new_id(), Kind.DIRECTORY, mode, user.name, parent.group, now, 0, acl)

    def _add(
        self, found: Found, name: bytes, node: Node, *, inodes: int = 1, space_bytes: int = 0
    ) -> None:
        """Put something new into the last of the nodes that were found."""
        check_name(found.names, name)
        self._check_quotas(found.nodes, inodes, space_bytes)
        found.nodes[-1].children[name] = node
        found.nodes[-1].mtime_ms = self._now()

    def _unlink(self, found: Found) -> None:
        parent = found.above[-1]
        del parent.children[found.names[-1]]
        parent.mtime_ms = self._now()

    def _move(self, source: Found, destination: Found, node: Node) -> None:
        check_name(destination.names, destination.names[-1])
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

    # Telling.

    def _reported_quota(self, node: Node) -> Quota:
        quota = node.quota or Quota()
        if node.id == self.root.id and quota.inodes == -1:
            quota = structs.replace(quota, inodes=DONT_SET)  # as HDFS tells it
        return quota

    def _now(self) -> int:
        return self._clock.now_ms()

    def _new_id(self) -> int:
        self._last_id += 1
        return self._last_id


def _dot_snapshot(node: Node) -> Node:
    """The directory that is there only for who asks for it by name."""
    dot = Node(0, Kind.DIRECTORY, 0o777, "", "", 0, 0)
    dot.children = {name.encode(): top for name, top in node.snapshots.items()}
    return dot
