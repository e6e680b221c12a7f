"""The calls of ClientNamenodeProtocol, typed, for callers in this process.

`ClientProtocol` waits for each answer and may be used from any thread.  The
wire will decode messages into the same operations.
"""

from __future__ import annotations

import asyncio
import itertools
import threading
import uuid
from collections.abc import Coroutine
from typing import Any, Self

from cairnfs.blocks.records import Block
from cairnfs.clock import Clock
from cairnfs.config import NameNodeSettings
from cairnfs.namenode.namenode import NameNode
from cairnfs.namesystem import delete, directories, files, leases, rename
from cairnfs.namesystem.inodes import InodeId
from cairnfs.namesystem.paths import FsPath
from cairnfs.namesystem.permissions import Caller
from cairnfs.namesystem.rename import RenameOption
from cairnfs.namesystem.status import FileStatus
from cairnfs.transaction.calls import CallKey, Operation
from cairnfs.transaction.runner import RunnerStatistics

BLOCK_SIZE_BYTES = 128 * 1024 * 1024
REPLICATION = 3


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

    def wait(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Run a coroutine in the NameNode's loop; returns its result."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def client(self, user: str | None = None, groups: tuple[str, ...] = ()) -> ClientProtocol:
        """Calls in the name of a user; by default the superuser."""
        caller = self.namenode.caller(user or self.namenode.superuser, groups, "127.0.0.1")
        return ClientProtocol(self, caller)

    @property
    def statistics(self) -> RunnerStatistics:
        return self.namenode.statistics

    def stop(self) -> None:
        self.wait(self.namenode.stop())
        self._end()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def _end(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class ClientProtocol:
    """One method for each call; the names are Hadoop's in snake case.

    Errors are those of `cairnfs.errors`, with Hadoop's class names.
    """

    def __init__(self, namenode: NameNodeThread, caller: Caller) -> None:
        self._namenode = namenode
        self.caller = caller
        self.client_id = uuid.uuid4().bytes
        self.client_name = f"DFSClient_{self.client_id.hex()[:12]}"
        self._call_ids = itertools.count()

    def mkdirs(self, path: str, mode: int = 0o755, *, create_parents: bool = True) -> bool:
        return self._call(directories.mkdirs, FsPath.parse(path), mode, None, create_parents)

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
        flags = files.CreateFlag.CREATE
        if overwrite:
            flags |= files.CreateFlag.OVERWRITE
        return self._call(
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
    ) -> files.AllocatedBlock:
        return self._call(
            files.add_block, FsPath.parse(path), self.client_name, previous, InodeId(file_id)
        )

    def abandon_block(self, path: str, block: Block, file_id: int = 0) -> None:
        self._call(
            files.abandon_block, FsPath.parse(path), self.client_name, block, InodeId(file_id)
        )

    def complete(self, path: str, last: Block | None = None, file_id: int = 0) -> bool:
        return self._call(
            files.complete, FsPath.parse(path), self.client_name, last, InodeId(file_id)
        )

    def delete(self, path: str, *, recursive: bool = False) -> bool:
        return self._call(delete.delete, FsPath.parse(path), recursive)

    def rename(self, src: str, dst: str) -> bool:
        return self._call(rename.rename, FsPath.parse(src), FsPath.parse(dst))

    def rename2(
        self, src: str, dst: str, options: RenameOption = RenameOption.NONE
    ) -> None:
        self._call(rename.rename2, FsPath.parse(src), FsPath.parse(dst), options)

    def get_file_info(self, path: str) -> FileStatus | None:
        return self._call(directories.get_file_info, FsPath.parse(path))

    def get_file_link_info(self, path: str) -> FileStatus | None:
        return self._call(directories.get_file_link_info, FsPath.parse(path))

    def get_listing(
        self, path: str, start_after: bytes = b"", limit: int = directories.LISTING_LIMIT
    ) -> directories.Listing | None:
        return self._call(directories.get_listing, FsPath.parse(path), start_after, limit)

    def get_content_summary(self, path: str) -> directories.ContentSummary:
        return self._call(directories.get_content_summary, FsPath.parse(path))

    def set_replication(self, path: str, replication: int) -> bool:
        return self._call(files.set_replication, FsPath.parse(path), replication)

    def renew_lease(self) -> None:
        self._call(leases.renew_lease, self.client_name)

    def _call(self, operation: Operation, *arguments: Any) -> Any:
        key = None
        if operation.at_most_once:
            key = CallKey(self.client_id, next(self._call_ids))
        return self._namenode.wait(
            self._namenode.namenode.call(operation, self.caller, *arguments, key=key)
        )
