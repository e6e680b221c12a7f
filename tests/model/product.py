"""The product as the model tests run it: a store, a control, one NameNode or two."""

from __future__ import annotations

import asyncio
import itertools
import tempfile
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.model.comparison import Divergence, Seen
from tests.model.delays import Delays
from tests.model.steps import SUPERUSER, USERS

from cairnfs.clock import ManualClock
from cairnfs.config import Control, FormatSettings, NameNodeSettings
from cairnfs.namenode.duties import LEASE_S, RECLAIM
from cairnfs.namenode.embedded import ClientProtocol, NameNodeThread
from cairnfs.namenode.namenode import NameNode
from cairnfs.namenode.opening import format_namespace
from cairnfs.namesystem import acl_operations, directories, listings, located, xattrs
from cairnfs.namesystem.answers import FileStatus
from cairnfs.namesystem.inodes import ROOT_ID, Kind
from cairnfs.namesystem.paths import FsPath
from cairnfs.namesystem.permissions import Caller
from cairnfs.namesystem.snapshot_diff import DiffEntry
from cairnfs.store.schema import Table
from cairnfs.transaction.calls import CallKey, Operation
from cairnfs.xattr_text import XAttrName

_COUNT_ROWS = (
    "SELECT t, count(*) FROM records GROUP BY t UNION ALL"
    f" SELECT {int(Table.TOTALS)}, count(*) FROM totals WHERE id <> {ROOT_ID}"
)


@dataclass(frozen=True)
class Configuration:
    """A store, a concurrency control, and how many NameNodes."""

    store: str
    control: Control
    namenodes: int = 1

    @property
    def name(self) -> str:
        twice = "-x2" if self.namenodes == 2 else ""
        return f"{self.store}-{self.control.value}{twice}"


CONFIGURATIONS = {
    configuration.name: configuration
    for configuration in (
        *(Configuration("sqlite", control) for control in Control),
        *(Configuration("postgres", control) for control in Control),
        *(Configuration("postgres", control, 2) for control in Control),
    )
}


class Product:
    """One to several NameNodes on one store."""

    def __init__(self, configuration: Configuration, url: str, clock: ManualClock) -> None:
        self.configuration = configuration
        self.clock = clock
        self.call_ids = itertools.count(1)
        self.retryable: tuple[Operation, tuple[Any, ...], CallKey, Any] | None = None
        self._settings = NameNodeSettings(
            url, configuration.control, duties=False, address="127.0.0.1:8020"
        )
        self.delays = Delays()
        self._past_conflicts = 0  # of NameNodes before their restart
        self._pool = ThreadPoolExecutor(8)
        asyncio.run(format_namespace(url, FormatSettings(SUPERUSER), clock))
        self.namenodes: list[NameNodeThread] = []
        self._clients: dict[tuple[int, str], RecordingClient] = {}
        for index in range(configuration.namenodes):
            self.namenodes.append(self._start())
            self._make_clients(index)

    def client(self, namenode: int, user: str) -> RecordingClient:
        return self._clients[namenode % len(self.namenodes), user]

    def start_call(self, namenode: int, user: str, name: str, *args: Any, **kw: Any) -> Future[Any]:
        return self._pool.submit(getattr(self.client(namenode, user), name), *args, **kw)

    def restart(self, namenode: int) -> None:
        index = namenode % len(self.namenodes)
        self._past_conflicts += sum(self.namenodes[index].statistics.conflicts.values())
        self.namenodes[index].stop()
        self.namenodes[index] = self._start()
        self._make_clients(index)

    def reclaim(self, namenode: int) -> None:
        thread = self.namenodes[namenode % len(self.namenodes)]
        membership = thread.namenode.membership
        if thread.wait(membership.try_acquire(RECLAIM, LEASE_S)):
            thread.wait(thread.namenode.duties.reclaiming.step())
            if len(self.namenodes) > 1:  # the other one does it next
                thread.wait(membership.release(RECLAIM))

    def retry(self, namenode: int) -> tuple[Any, Any]:
        """Send the last at-most-once call again: its answer, and the first one."""
        assert self.retryable is not None
        operation, arguments, key, first = self.retryable
        thread = self.namenodes[namenode % len(self.namenodes)]
        again = thread.namenode.call(operation, *arguments, key=key, is_retry=True)
        return thread.wait(again), first

    def tree(self, namenode: int, top: str = "/") -> dict[str, Seen]:
        """Everything there is, as the superuser sees it; or what is in a snapshot."""
        thread = self.namenodes[namenode % len(self.namenodes)]
        tree: dict[str, Seen] = thread.wait(_read_tree(thread.namenode, top))
        return tree

    def rows_left(self) -> dict[str, int]:
        """How many rows there are in each table; totals, and what is in the past, are others."""
        thread = self.namenodes[0]
        store: Any = thread.namenode.store
        if self.configuration.store == "sqlite":
            thread.wait(_write_backlog(store))
            tables = list(store._connection.execute(_COUNT_ROWS))
        else:
            tables = thread.wait(store.fetch(_COUNT_ROWS))
        return {Table(t).name: count for t, count in tables}

    @property
    def conflicts(self) -> int:
        now = sum(sum(each.statistics.conflicts.values()) for each in self.namenodes)
        return self._past_conflicts + now

    def close(self) -> None:
        for thread in self.namenodes:
            thread.stop()
        self._pool.shutdown()

    def _start(self) -> NameNodeThread:
        thread = NameNodeThread(self._settings, self.clock)
        self.delays.wrap(thread.namenode.store)
        return thread

    def _make_clients(self, index: int) -> None:
        for user in USERS:
            self._clients[index, user] = RecordingClient(self, index, user)


class RecordingClient(ClientProtocol):
    """A client whose at-most-once calls can be sent again, to any NameNode."""

    def __init__(self, product: Product, namenode: int, user: str) -> None:
        thread = product.namenodes[namenode]
        identity = USERS[user]
        caller = thread.namenode.caller(user, tuple(identity.groups), "127.0.0.1")
        super().__init__(thread, caller)
        self.client_id = user.encode().ljust(16, b"\0")
        self.client_name = identity.holder
        self._call_ids = product.call_ids
        self._product = product

    def snapshot_diff(self, path: str, old: str, new: str, limit: int) -> list[DiffEntry]:
        return list(super().snapshot_diff(path, old, new, limit))

    def _run(self, operation: Operation, *arguments: Any) -> Any:
        key = None
        if operation.at_most_once:
            key = CallKey(self.client_id, next(self._call_ids))
        result = self._namenode.wait(self._namenode.namenode.call(operation, *arguments, key=key))
        if key is not None and _was_stored(operation, arguments, result):
            self._product.retryable = (operation, arguments, key, result)
        return result


async def _write_backlog(store: Any) -> None:
    store.write_backlog()


def temporary_directory() -> Path:
    """In memory where there is such a place: durability is tested elsewhere."""
    shared = Path("/dev/shm")
    return Path(tempfile.mkdtemp(prefix="cairn-model-", dir=shared if shared.is_dir() else None))


def _was_stored(operation: Operation, arguments: tuple[Any, ...], result: Any) -> bool:
    """As in HDFS, the reply to a call that changed nothing is not kept."""
    if operation.name == "rename":
        _, source, destination = arguments
        if source.is_reserved or destination in (source, source.parent):
            return False
    return result is not False


async def _read_tree(namenode: NameNode, top: str) -> dict[str, Seen]:
    caller = namenode.caller(SUPERUSER, ("supergroup",))
    tree: dict[str, Seen] = {}

    async def visit(path: str, status: FileStatus) -> None:
        where = FsPath.parse(path)
        summary = await namenode.call(directories.get_content_summary, caller, where)
        acl = blocks = None
        if status.has_acl:
            acl = await namenode.call(acl_operations.get_acl_status, caller, where)
        if status.kind is Kind.FILE:
            whole = (0, 2**62)
            blocks = await namenode.call(located.get_block_locations, caller, where, *whole)
        attributes = await _read_xattrs(namenode, caller, path, status)
        tree[path] = Seen(status, summary, acl, attributes, blocks)
        if status.kind is not Kind.DIRECTORY:
            return
        listing = await namenode.call(listings.get_listing, caller, FsPath.parse(path), b"", 10_000)
        if len(listing.entries) != status.children:
            raise Divergence(f"{path}: {status.children} children, {len(listing.entries)} listed")
        names = [f"{path.rstrip('/')}/{entry.name.decode()}" for entry in listing.entries]
        await asyncio.gather(*map(visit, names, listing.entries))

    root = await namenode.call(directories.get_file_link_info, caller, FsPath.parse(top))
    if root is None:
        raise Divergence(f"{top} is not there")
    await visit(top, root)
    return tree


async def _read_xattrs(
    namenode: NameNode, caller: Caller, path: str, status: FileStatus
) -> dict[str, bytes]:
    if status.kind is Kind.SYMLINK:  # has none, and would be followed
        return {}
    found = await namenode.call(xattrs.get_xattrs, caller, FsPath.parse(path))
    return {str(XAttrName(each.namespace, each.name)): each.value for each in found}
