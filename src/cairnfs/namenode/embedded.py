"""A NameNode embedded in this process, and its calls, typed.

`ClientProtocol` has the calls of ClientNamenodeProtocol, waits for each answer and may
be used from any thread.  `client_protocol` decodes the wire into the same operations.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import threading
from collections.abc import Coroutine, Iterable, Sequence
from typing import Any, Self

from cairnfs.blocks.records import Block, StorageNumber, StorageType
from cairnfs.clock import Clock
from cairnfs.config import FormatSettings, NameNodeSettings
from cairnfs.errors import HdfsError
from cairnfs.namenode.embedded_snapshots import SnapshotCalls
from cairnfs.namenode.namenode import NameNode
from cairnfs.namenode.opening import format_namespace
from cairnfs.namesystem import (
    acl_operations,
    answers,
    append,
    attributes,
    concat,
    declarations,
    delete,
    directories,
    file_blocks,
    files,
    lease_recovery,
    leases,
    listings,
    located,
    pipelines,
    quota_operations,
    rename,
    symlinks,
    truncate,
    xattr_explanation,
    xattrs,
)
from cairnfs.namesystem.acls import parse_spec
from cairnfs.namesystem.answers import FileStatus
from cairnfs.namesystem.inheritance import name_of
from cairnfs.namesystem.inodes import AclEntry, Inode, InodeId
from cairnfs.namesystem.paths import FsPath
from cairnfs.namesystem.quota_operations import QUOTA_DONT_SET
from cairnfs.namesystem.rename import RenameOption
from cairnfs.namesystem.xattr_explanation import Explanation
from cairnfs.transaction.calls import Operation, R
from cairnfs.transaction.runner import RunnerStatistics, stopped
from cairnfs.xattr_text import XAttrName

BLOCK_SIZE_BYTES = 128 * 1024 * 1024
REPLICATION = 3
LENGTH_MAX_BYTES = 2**63 - 1


def make_namespace(url: str, settings: FormatSettings | None = None) -> None:
    """`format_namespace`, for callers that wait; also where an event loop is running."""
    with concurrent.futures.ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, format_namespace(url, settings)).result()


class NameNodeThread:
    """A NameNode with an event loop in a thread of its own."""

    def __init__(self, settings: NameNodeSettings, clock: Clock | None = None) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="namenode", daemon=True)
        self._thread.start()
        try:
            self.namenode = self.wait(NameNode.start(settings, clock))
        except BaseException:
            self._end()
            raise

    def wait(self, work: Coroutine[Any, Any, R]) -> R:
        """Run a coroutine in the NameNode's loop; returns its result."""
        try:
            future = asyncio.run_coroutine_threadsafe(work, self._loop)
        except RuntimeError:  # the loop is closed
            work.close()
            raise stopped() from None
        try:
            return future.result()
        except concurrent.futures.CancelledError:
            raise stopped() from None

    def client(self, user: str | None = None, groups: tuple[str, ...] = ()) -> ClientProtocol:
        """Calls in the name of a user; by default the superuser.

        Rights are checked, identities are not: whoever can open the store can be anybody.
        """
        name = self.namenode.superuser if user is None else user
        caller = self.namenode.caller(name, groups, "127.0.0.1")
        return ClientProtocol(self, caller)

    @property
    def statistics(self) -> RunnerStatistics:
        return self.namenode.statistics

    def stop(self) -> None:
        """Finish what was called, and end; whoever calls from now on is told so."""
        if self._loop.is_closed():
            return
        try:
            self.wait(self.namenode.stop())
        finally:
            self._end()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def _end(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.run_until_complete(_cancel_the_rest())
        self._loop.close()


async def _cancel_the_rest() -> None:
    """End what still runs in this loop: nobody may wait for it for ever."""
    while tasks := asyncio.all_tasks() - {asyncio.current_task()}:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class ClientProtocol(SnapshotCalls):
    """One method for each call; the names are Hadoop's in snake case.

    Errors are those of `cairnfs.errors`, with Hadoop's class names.
    """

    # Directories and names.

    def mkdirs(self, path: str, mode: int = 0o755, *, create_parents: bool = True) -> bool:
        return self._call(directories.mkdirs, FsPath.parse(path), mode, None, create_parents)

    def delete(self, path: str, *, recursive: bool = False) -> bool:
        return self._call(delete.delete, FsPath.parse(path), recursive)

    def rename(self, src: str, dst: str) -> bool:
        return self._call(rename.rename, FsPath.parse(src), FsPath.parse(dst))

    def rename2(self, src: str, dst: str, options: RenameOption = RenameOption.NONE) -> None:
        self._call(rename.rename2, FsPath.parse(src), FsPath.parse(dst), options)

    def create_symlink(self, target: str, link: str, *, create_parents: bool = True) -> None:
        self._call(symlinks.create_symlink, target, FsPath.parse(link), create_parents)

    def get_link_target(self, path: str) -> str:
        return self._call(symlinks.get_link_target, FsPath.parse(path))

    def get_file_info(self, path: str) -> FileStatus | None:
        return self._call(directories.get_file_info, FsPath.parse(path))

    def get_file_link_info(self, path: str) -> FileStatus | None:
        return self._call(directories.get_file_link_info, FsPath.parse(path))

    def get_listing(
        self, path: str, start_after: bytes = b"", limit: int = listings.LISTING_LIMIT
    ) -> listings.Listing | None:
        return self._call(listings.get_listing, FsPath.parse(path), start_after, limit)

    def get_content_summary(self, path: str) -> answers.ContentSummary:
        return self._call(directories.get_content_summary, FsPath.parse(path))

    # Files.

    def create(
        self,
        path: str,
        mode: int = 0o644,
        *,
        overwrite: bool = False,
        create_parents: bool = True,
        replication: int = REPLICATION,
        block_size_bytes: int = BLOCK_SIZE_BYTES,
    ) -> FileStatus:
        flags = files.CreateFlag.CREATE.value
        if overwrite:
            flags |= files.CreateFlag.OVERWRITE.value
        return self._call_or_release(
            files.create,
            FsPath.parse(path),
            mode,
            None,
            self.client_name,
            flags,
            create_parents,
            replication,
            block_size_bytes,
        )

    def add_block(
        self, path: str, previous: Block | None = None, file_id: int = 0
    ) -> answers.LocatedBlock:
        return self._call(
            file_blocks.add_block,
            FsPath.parse(path),
            self.client_name,
            previous,
            InodeId(file_id),
            _no_targets,
        )

    def append(self, path: str, *, to_new_block: bool = False) -> append.LastBlockWithStatus:
        flags = files.CreateFlag.APPEND.value
        if to_new_block:
            flags |= files.CreateFlag.NEW_BLOCK.value
        return self._call_or_release(
            append.append, FsPath.parse(path), self.client_name, flags, _no_replicas
        )

    def truncate(self, path: str, new_length_bytes: int) -> bool:
        return self._call_or_release(
            truncate.truncate,
            FsPath.parse(path),
            new_length_bytes,
            self.client_name,
            _no_replicas,
        )

    def fsync(self, path: str, last_block_length_bytes: int = -1, file_id: int = 0) -> None:
        self._call(
            pipelines.fsync,
            FsPath.parse(path),
            self.client_name,
            InodeId(file_id),
            last_block_length_bytes,
        )

    def abandon_block(self, path: str, block: Block, file_id: int = 0) -> None:
        self._call(
            file_blocks.abandon_block, FsPath.parse(path), self.client_name, block, InodeId(file_id)
        )

    def complete(self, path: str, last: Block | None = None, file_id: int = 0) -> bool:
        return self._call(
            files.complete, FsPath.parse(path), self.client_name, last, InodeId(file_id)
        )

    def concat(self, target: str, sources: Iterable[str]) -> None:
        self._call(concat.concat, FsPath.parse(target), *map(FsPath.parse, sources))

    def is_file_closed(self, path: str) -> bool:
        return self._call(files.is_file_closed, FsPath.parse(path))

    def get_block_locations(
        self, path: str, offset_bytes: int = 0, length_bytes: int = LENGTH_MAX_BYTES
    ) -> answers.LocatedBlocks:
        found = self._call(
            located.get_block_locations, FsPath.parse(path), offset_bytes, length_bytes
        )
        if found.access_time_is_stale:
            # As in HDFS, to read is not refused because this cannot be written.
            with contextlib.suppress(HdfsError):
                self._run(attributes.update_access_time, found.inode_id)
        return found

    def renew_lease(self) -> None:
        self._call(leases.renew_lease, self.client_name)

    def recover_lease(self, path: str) -> bool:
        return self._call(lease_recovery.recover_lease, FsPath.parse(path), self.client_name)

    # Attributes.

    def set_replication(self, path: str, replication: int) -> bool:
        return self._call(files.set_replication, FsPath.parse(path), replication)

    def set_permission(self, path: str, mode: int) -> None:
        self._call(attributes.set_permission, FsPath.parse(path), mode)

    def set_owner(self, path: str, owner: str | None = None, group: str | None = None) -> None:
        self._call(attributes.set_owner, FsPath.parse(path), owner, group)

    def set_times(self, path: str, mtime_ms: int = -1, atime_ms: int = -1) -> None:
        self._call(attributes.set_times, FsPath.parse(path), mtime_ms, atime_ms)

    def check_access(self, path: str, access: int) -> None:
        self._call(attributes.check_access, FsPath.parse(path), access)

    # Access control lists, given as entries or as text: "user:ada:rw-,default:group::r-x".

    def modify_acl_entries(self, path: str, spec: str | Iterable[AclEntry]) -> None:
        self._call(acl_operations.modify_acl_entries, FsPath.parse(path), _entries(spec))

    def remove_acl_entries(self, path: str, spec: str | Iterable[AclEntry]) -> None:
        entries = _entries(spec, with_permissions=False)
        self._call(acl_operations.remove_acl_entries, FsPath.parse(path), entries)

    def remove_default_acl(self, path: str) -> None:
        self._call(acl_operations.remove_default_acl, FsPath.parse(path))

    def remove_acl(self, path: str) -> None:
        self._call(acl_operations.remove_acl, FsPath.parse(path))

    def set_acl(self, path: str, spec: str | Iterable[AclEntry]) -> None:
        self._call(acl_operations.set_acl, FsPath.parse(path), _entries(spec))

    def get_acl_status(self, path: str) -> acl_operations.AclStatus:
        return self._call(acl_operations.get_acl_status, FsPath.parse(path))

    # Extended attributes, named with their name space: "user.author".

    def get_xattrs(self, path: str, names: Iterable[str] = ()) -> dict[str, bytes]:
        """Those of these names, or all that the caller may see."""
        found = self._call(xattrs.get_xattrs, FsPath.parse(path), *map(XAttrName.parse, names))
        return {str(XAttrName(each.namespace, each.name)): each.value or b"" for each in found}

    def list_xattrs(self, path: str) -> list[str]:
        found = self._call(xattrs.list_xattrs, FsPath.parse(path))
        return list(map(str, found))

    def set_xattr(
        self,
        path: str,
        name: str,
        value: bytes | None = None,
        flags: int = xattrs.FLAG_CREATE | xattrs.FLAG_REPLACE,
    ) -> None:
        self._call(xattrs.set_xattr, FsPath.parse(path), XAttrName.parse(name), value, flags)

    def remove_xattr(self, path: str, name: str) -> None:
        self._call(xattrs.remove_xattr, FsPath.parse(path), XAttrName.parse(name))

    def unset_xattr(self, path: str, name: str) -> None:
        """Let an inherited attribute be what it is in the directory above."""
        self._call(xattrs.unset_xattr, FsPath.parse(path), XAttrName.parse(name))

    def declare_xattr(self, name: str, kind: str) -> None:
        """Of what kind a name is: "follow-path", "stay-with-data", or "local" as all others."""
        self._call(declarations.declare_xattr, XAttrName.parse(name), kind)

    def list_declared_xattrs(self) -> dict[str, str]:
        """The names that are not local, each with its kind."""
        found = self._call(declarations.list_declarations)
        return {str(name_of(each)): declarations.word_for(each.kind) for each in found}

    def explain_xattrs(self, path: str, names: Iterable[str] = ()) -> list[Explanation]:
        """Which operations decided these, or all, attributes."""
        wanted = map(XAttrName.parse, names)
        return self._call(xattr_explanation.explain_xattrs, FsPath.parse(path), *wanted)

    # Quotas.

    def set_quota(
        self,
        path: str,
        namespace_quota: int = QUOTA_DONT_SET,
        space_quota_bytes: int = QUOTA_DONT_SET,
        storage_type: StorageType | None = None,
    ) -> None:
        """Limit a directory; QUOTA_DONT_SET keeps a limit, QUOTA_RESET removes it."""
        self._call(
            quota_operations.set_quota,
            FsPath.parse(path),
            namespace_quota,
            space_quota_bytes,
            storage_type,
        )

    def get_quota_usage(self, path: str) -> quota_operations.QuotaUsage:
        return self._call(quota_operations.get_quota_usage, FsPath.parse(path))

    def _call_or_release(self, operation: Operation[R], *arguments: Any) -> R:
        """Call; take the file from a writer who is gone, and call again."""
        limit_ms = self._soft_limit_ms
        try:
            return self._call(operation, *arguments, limit_ms)
        except lease_recovery.LeaseRecoveryNeeded as needed:
            self._run(lease_recovery.release_lease, needed.inode_id, limit_ms)
        return self._call(operation, *arguments, limit_ms)

    @property
    def _soft_limit_ms(self) -> int:
        return self._namenode.namenode.lease_soft_limit_ms


def _entries(spec: str | Iterable[AclEntry], *, with_permissions: bool = True) -> list[AclEntry]:
    if isinstance(spec, str):
        return parse_spec(spec, with_permissions=with_permissions)
    return list(spec)


def _no_targets(file: Inode, policy_id: int) -> tuple[StorageNumber, ...]:
    """Whoever calls from this process keeps data elsewhere, if at all."""
    return ()


def _no_replicas(block: Block, storages: Sequence[StorageNumber]) -> tuple[StorageNumber, ...]:
    """As above."""
    return ()
