"""A namespace of its own for one test: a file, a NameNode, a clock that obeys.

`scratch_namespace` gives a client for the superuser, who is called `hdfs`;
when the test is over it checks everything `invariants` knows of.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from cairnfs.blocks.records import Block
from cairnfs.clock import ManualClock
from cairnfs.config import Control, FormatSettings, NameNodeSettings
from cairnfs.namenode.embedded import BLOCK_SIZE_BYTES, ClientProtocol, NameNodeThread
from cairnfs.namenode.opening import format_namespace, sqlite_url
from cairnfs.namesystem.answers import FileStatus
from cairnfs.namesystem.permissions import Caller
from cairnfs.store.schema import FIRST_INODE_ID
from cairnfs.testing.invariants import (
    Namespace,
    Node,
    check_invariants,
    check_no_leftovers,
    read_namespace,
)

SUPERUSER = "hdfs"


class ScratchClient(ClientProtocol):
    """The calls of a client, and what tests need beside them."""

    def __init__(self, namenode: NameNodeThread, caller: Caller, clock: ManualClock) -> None:
        super().__init__(namenode, caller)
        self.namenode = namenode
        self.clock = clock

    def user(self, name: str, *groups: str) -> ScratchClient:
        """A client of another user."""
        caller = self.namenode.namenode.caller(name, groups, "127.0.0.1")
        return ScratchClient(self.namenode, caller, self.clock)

    def write(
        self,
        path: str,
        *lengths_bytes: int,
        mode: int = 0o644,
        replication: int = 3,
        block_size_bytes: int = BLOCK_SIZE_BYTES,
    ) -> FileStatus:
        """Create a file with blocks of these lengths, and close it."""
        self.create(path, mode, replication=replication, block_size_bytes=block_size_bytes)
        self.complete(path, self.write_blocks(path, *lengths_bytes))
        return self.info(path)

    def write_blocks(self, path: str, *lengths_bytes: int) -> Block | None:
        """Add blocks to an open file; returns the last one, with its length."""
        block = None
        for length_bytes in lengths_bytes:
            added = self.add_block(path, block).block
            block = msgspec.structs.replace(added, length_bytes=length_bytes)
        return block

    def info(self, path: str) -> FileStatus:
        """The status of what exists; of a link, its own."""
        status = self.get_file_link_info(path)
        assert status is not None, f"{path} does not exist"
        return status

    def exists(self, path: str) -> bool:
        return self.get_file_link_info(path) is not None

    def names(self, path: str) -> list[str]:
        """What a directory holds, by one call."""
        listing = self.get_listing(path)
        assert listing is not None, f"{path} does not exist"
        return [entry.name.decode() for entry in listing.entries]

    def dump(self) -> dict[str, Node]:
        """Everything that can be reached, rows and versions."""
        namespace: Namespace = self.namenode.wait(read_namespace(self.namenode.namenode.store))
        return namespace.nodes

    def reclaim(self) -> None:
        """Do the background work that deletions have left."""
        self.namenode.wait(self.namenode.namenode.duties.reclaim_everything())

    def check(self) -> None:
        """Check all invariants, then reclaim, and check that nothing is left over."""
        store = self.namenode.namenode.store
        self.namenode.wait(check_invariants(store))
        for view in self.list_views():
            self.close_view(view.number)
        self.reclaim()
        self.namenode.wait(check_invariants(store))
        self.set_quota("/", -1, -1)
        newest = self.create("/the newest inode", overwrite=True).id
        self.namenode.wait(check_no_leftovers(store, range(FIRST_INODE_ID, newest + 1)))


@contextmanager
def scratch_namespace(
    directory: Path, control: Control = Control.OPTIMISTIC, url: str = ""
) -> Iterator[ScratchClient]:
    """A new namespace, in a file in `directory` unless a store is given."""
    clock = ManualClock()
    url = url or sqlite_url(directory / "namespace")
    asyncio.run(format_namespace(url, FormatSettings(SUPERUSER), clock))
    settings = NameNodeSettings(url, control, duties=False)
    with NameNodeThread(settings, clock) as namenode:
        caller = namenode.namenode.caller(SUPERUSER, (), "127.0.0.1")
        client = ScratchClient(namenode, caller, clock)
        yield client
        client.check()
