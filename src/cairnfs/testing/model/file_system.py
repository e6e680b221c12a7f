"""The whole model: every call, all or nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from cairnfs.errors import HdfsError
from cairnfs.testing.model.attributes import AttributeCalls
from cairnfs.testing.model.files import WriterGone
from cairnfs.testing.model.names import parse
from cairnfs.testing.model.namespace import NamespaceCalls
from cairnfs.testing.model.nodes import User
from cairnfs.testing.model.open_files import OpenFileCalls
from cairnfs.testing.model.snapshots import SnapshotCalls
from cairnfs.testing.model.xattrs import XAttrCalls

READING = frozenset(
    {
        *("get_file_info", "get_file_link_info", "get_listing", "get_content_summary"),
        *("get_link_target", "is_file_closed", "get_block_locations", "check_access"),
        *("get_acl_status", "get_quota_usage", "get_xattrs", "list_xattrs"),
        *("list_snapshots", "list_snapshottable", "snapshot_diff"),
    }
)
"""What may be asked of paths in snapshots."""


class ModelFileSystem(NamespaceCalls, OpenFileCalls, AttributeCalls, XAttrCalls, SnapshotCalls):
    """The calls of ClientProtocol, each with the user who makes it."""

    def copy(self) -> ModelFileSystem:
        twin = ModelFileSystem.__new__(ModelFileSystem)
        twin.__dict__.update(
            self.__dict__,
            root=self.root.copy(),
            renewed=dict(self.renewed),
            written=dict(self.written),
            copies=set(self.copies),
            shown_for=dict(self.shown_for),
            doubts=list(self.doubts),
        )
        return twin

    def call(self, user: User, operation: str, *arguments: Any, **options: Any) -> Any:
        """Run one call; an error leaves everything as it was."""
        method: Callable[..., Any] = getattr(self, operation)
        for path in _paths(operation, arguments):
            parse(path)
        before, renewed = self.root.copy(), dict(self.renewed)
        self.is_reading = operation in READING
        try:
            return method(user, *arguments, **options)
        except WriterGone as gone:
            self.root = before
            self.release(next(node for node in self.root.walk() if node.id == gone.file_id))
            return self.call(user, operation, *arguments, **options)
        except HdfsError:
            self.root, self.renewed = before, renewed
            raise
        finally:
            self.is_reading = True


def _paths(operation: str, arguments: tuple[Any, ...]) -> Iterable[str]:
    """The paths among a call's arguments: a client parses them before it calls."""
    if operation in ("renew_lease", "list_snapshottable"):
        return ()
    if operation in ("create_snapshots", "rollback_snapshots"):
        return arguments[0]  # type: ignore[no-any-return]
    if operation == "clone_snapshot":
        return arguments[0], arguments[2]
    if operation == "create_symlink":
        return arguments[1:2]
    if operation in ("rename", "rename2"):
        return arguments[:2]
    if operation == "concat":
        return arguments[0], *arguments[1]
    return arguments[:1]
