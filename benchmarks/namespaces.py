"""Fresh namespaces on either store, NameNodes on them, and filling them fast."""

from __future__ import annotations

import asyncio
import itertools
import multiprocessing
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from pathlib import Path

from benchmarks.machine import ServerCpu
from cairnfs.clock import SystemClock
from cairnfs.config import Control, NameNodeSettings
from cairnfs.namenode.membership import PostgresMembership
from cairnfs.namenode.namenode import NameNode
from cairnfs.namenode.opening import OpenStore, format_namespace, open_store
from cairnfs.namesystem.inodes import ROOT_ID, Inode, InodeId, Kind
from cairnfs.namesystem.lookup import key_of
from cairnfs.store.base import Count, Store
from cairnfs.store.batches import Batch, Put, Touch
from cairnfs.store.postgres import PostgresStore
from cairnfs.testing.cluster import Cluster
from cairnfs.testing.postgres_server import PostgresServer
from cairnfs.transaction.records import encode

SQLITE = "sqlite"
POSTGRES = "postgres"

CONNECTIONS_MAX = 48  # so that 32 callers that hold locks never wait for a connection
BULK_ROWS = 5_000  # rows of one batch when filling
BLOCK_SIZE_BYTES = 128 * 1024 * 1024
TOP = "top"  # what `fill_cluster` fills
FILES_OF_A_DIRECTORY = 100  # in it


@dataclass
class Namespaces:
    """Makes namespaces in a directory, and in a PostgreSQL server if there is one."""

    directory: Path
    server: PostgresServer | None
    _numbers: itertools.count[int] = field(default_factory=itertools.count)

    @property
    def kinds(self) -> list[str]:
        return [SQLITE] if self.server is None else [SQLITE, POSTGRES]

    def server_cpu(self, kind: str) -> ServerCpu | None:
        return ServerCpu(self.server) if kind == POSTGRES and self.server is not None else None

    async def fresh(self, kind: str) -> str:
        """The address of a new, empty namespace."""
        number = next(self._numbers)
        if kind == POSTGRES:
            assert self.server is not None
            url = self.server.create_database(f"bench{number}")
        else:
            url = f"sqlite://{self.directory}/bench{number}.db"
        await format_namespace(url)
        return url

    def copy(self, url: str) -> str:
        """The address of a namespace that begins as another one; nobody may have that open."""
        name = f"bench{next(self._numbers)}"
        if url.startswith("sqlite:"):
            source = Path(url.removeprefix("sqlite://"))
            for file in self.directory.glob(f"{source.name}*"):
                shutil.copyfile(file, self.directory / file.name.replace(source.stem, name))
            return f"sqlite://{self.directory}/{name}.db"
        assert self.server is not None
        self.server.execute(f"CREATE DATABASE {name} TEMPLATE {database_of(url)}")
        return self.server.dsn_of(name)

    def settle(self, url: str) -> None:
        """Do what a PostgreSQL would do sooner or later after many changes, and then disturb."""
        if self.server is not None and not url.startswith("sqlite:"):
            self.server.execute("VACUUM ANALYZE", database=database_of(url))

    def drop(self, url: str) -> None:
        """Give the space back; nobody may have it open."""
        if url.startswith("sqlite:"):
            for file in self.directory.glob(Path(url.removeprefix("sqlite://")).name + "*"):
                file.unlink()
        elif self.server is not None:
            self.server.drop_database(database_of(url))


def database_of(url: str) -> str:
    """The name of a PostgreSQL database, from its address."""
    return url.partition("?")[0].rpartition("/")[2]


async def open_namenode(url: str, control: Control) -> NameNode:
    """A NameNode without background work, with connections enough for every caller."""
    settings = NameNodeSettings(url, control, duties=False)
    if url.startswith("sqlite:"):
        opened = await open_store(settings)
    else:
        store = await PostgresStore.open(url, pool_max=CONNECTIONS_MAX)
        membership = await PostgresMembership.join(store, settings.address)
        opened = OpenStore(store, membership, await store.meta())
    return NameNode(settings, opened, SystemClock())


async def fill(url: str, top: str, sizes: Sequence[tuple[str, int]]) -> None:
    """Make `/top/name` with so many files in it, for each `(name, files)`.

    Rows go straight to the store; no NameNode may have it open, since it would not know.
    """
    opened = await open_store(NameNodeSettings(url, duties=False))
    try:
        await _Filling(opened.store, opened.meta["superuser"], top, sizes).run()
    finally:
        await opened.membership.leave()
        await opened.store.close()


class _Filling:
    """One run of `fill`."""

    def __init__(
        self, store: Store, owner: str, top: str, sizes: Sequence[tuple[str, int]]
    ) -> None:
        self._store = store
        self._owner = owner
        self._top = top
        self._sizes = sizes
        self._now_ms = SystemClock().now_ms()
        self._puts: list[Put] = []
        self._counts: dict[int, list[int]] = {}

    async def run(self) -> None:
        inodes = 1 + sum(1 + files for _, files in self._sizes)
        self._next_id = await self._store.reserve("inode id", inodes)
        top = self._add([ROOT_ID], self._top.encode(), Kind.DIRECTORY)
        for name, files in self._sizes:
            above = [ROOT_ID, top.id]
            directory = self._add(above, name.encode(), Kind.DIRECTORY)
            above = [*above, directory.id]
            for number in range(files):
                self._add(above, b"f%07d" % number, Kind.FILE)
                if len(self._puts) >= BULK_ROWS:
                    await self._commit()
        await self._commit()

    def _add(self, above: list[InodeId], name: bytes, kind: Kind) -> Inode:
        is_file = kind is Kind.FILE
        inode = Inode(
            id=InodeId(self._next_id),
            parent_id=above[-1],
            name=name,
            kind=kind,
            mode=0o644 if is_file else 0o755,
            owner=self._owner,
            group="supergroup",
            mtime_ms=self._now_ms,
            atime_ms=self._now_ms if is_file else 0,
            replication=3 if is_file else 0,
            block_size_bytes=BLOCK_SIZE_BYTES if is_file else 0,
        )
        self._next_id += 1
        self._puts.append(Put(key_of(inode), inode.id, 1, encode(inode), False))
        for id in above:
            counts = self._counts.setdefault(id, [0] * len(Count))
            counts[Count.FILES if is_file else Count.DIRECTORIES] += 1
            counts[Count.INODES] += 1
        self._counts[above[-1]][Count.CHILDREN] += 1
        return inode

    async def _commit(self) -> None:
        touches = [Touch(id, counts, self._now_ms, 1) for id, counts in self._counts.items()]
        puts = sorted(self._puts, key=attrgetter("key"))
        batch = Batch(size=1, now_ms=self._now_ms, puts=puts, touches=touches)
        await self._store.commit(batch)
        self._puts = []
        self._counts = {}


def fill_cluster(cluster: Cluster, inodes: int, url: str = "") -> int:
    """Files without blocks, to be listed as fast as can be; in how many directories they are.

    Rows go straight to the store, which nobody has open then.
    """
    for namenode in cluster.namenodes:
        namenode.stop()
    directories = max(1, inodes // (FILES_OF_A_DIRECTORY + 1))
    sizes = [(f"d{n:06d}", FILES_OF_A_DIRECTORY) for n in range(directories)]
    address = url or f"sqlite://{cluster.directory}/namespace.db"
    filling = multiprocessing.get_context("spawn").Process(target=_fill_here, args=(address, sizes))
    filling.start()
    filling.join()
    if filling.exitcode:
        raise SystemExit(f"filling {address} failed with exit code {filling.exitcode}")
    for namenode in cluster.namenodes:
        namenode.start()
        cluster.wait_for_namenode(namenode)
    return directories


def _fill_here(address: str, sizes: Sequence[tuple[str, int]]) -> None:
    """In a process of its own, whose memory is not the driver's."""
    asyncio.run(fill(address, TOP, sizes))
