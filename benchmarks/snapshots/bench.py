"""A namespace with a large directory, made once, copied for each part; and calls to make there."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

from benchmarks.callers import Callers, Measured, Request
from benchmarks.command import Progress
from benchmarks.core import create_and_complete_of
from benchmarks.namespaces import Namespaces, fill, open_namenode
from cairnfs.config import Control
from cairnfs.namenode.namenode import NameNode
from cairnfs.namesystem import attributes, delete, directories, listings, rename, snapshots
from cairnfs.namesystem.paths import FsPath

CALLERS = 32
STOP_LIMIT_S = 20.0
TOP = "bench"
FILES = f"/{TOP}/files"  # the large directory
ELSEWHERE = f"/{TOP}/elsewhere"  # where files are moved to
OTHERS = f"/{TOP}/others"  # what somebody else works with
OTHER_FILES = 1000

Row = dict[str, Any]


class Bench:
    """A NameNode on one namespace."""

    def __init__(self, namenode: NameNode, url: str) -> None:
        self.namenode = namenode
        self.url = url
        self._caller = namenode.caller(namenode.superuser)

    async def call(self, operation: Any, *arguments: Any) -> Any:
        return await self.namenode.call(operation, self._caller, *arguments)

    async def timed(self, operation: Any, *arguments: Any) -> float:
        """The seconds that a call takes."""
        start = time.perf_counter()
        await self.call(operation, *arguments)
        return time.perf_counter() - start

    async def snapshot(self, name: str, path: str = FILES) -> float:
        return await self.timed(snapshots.create_snapshots, (FsPath.parse(path),), name)

    async def run(self, requests: Sequence[Request], callers: int = CALLERS) -> Measured:
        """Make all calls, by many callers."""
        work = iter(requests)
        return await Callers.of(self.namenode, callers).finish(lambda _: next(work, None))

    async def list_all(self, path: str) -> tuple[int, float]:
        """The entries of a directory, page by page, and the seconds that it took."""
        start, after, count = time.perf_counter(), b"", 0
        while True:
            page = await self.call(listings.get_listing, FsPath.parse(path), after)
            count += len(page.entries)
            if not page.remaining:
                return count, time.perf_counter() - start
            after = page.entries[-1].name


class Shelf:
    """Namespaces with so many files in `FILES`: each is filled once, what is used is a copy."""

    def __init__(self, namespaces: Namespaces, progress: Progress) -> None:
        self.namespaces = namespaces
        self._progress = progress
        self._filled: dict[tuple[str, int], str] = {}

    async def copy(self, kind: str, files: int) -> str:
        """The address of a namespace of one's own; `namespaces.drop` it in the end."""
        if (kind, files) not in self._filled:
            self._progress(f"{kind}: filling a directory with {files:,} files")
            url = await self.namespaces.fresh(kind)
            sizes = [("files", files), ("elsewhere", 1), ("others", OTHER_FILES)]
            await fill(url, TOP, sizes)
            self.namespaces.settle(url)
            self._filled[kind, files] = url
        return self.namespaces.copy(self._filled[kind, files])

    @asynccontextmanager
    async def open(self, kind: str, files: int) -> AsyncIterator[Bench]:
        """A NameNode on a copy, where snapshots may be taken; nothing is left of it."""
        url = await self.copy(kind, files)
        try:
            async with opened(url) as bench:
                await bench.call(snapshots.allow_snapshot, FsPath.parse(FILES))
                yield bench
        finally:
            self.namespaces.drop(url)


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[Bench]:
    """A NameNode without background work."""
    namenode = await open_namenode(url, Control.OPTIMISTIC)
    try:
        yield Bench(namenode, url)
    finally:
        # A call that was given up may go on for hours; what it reads is dropped next.
        with suppress(TimeoutError):
            await asyncio.wait_for(namenode.stop(), STOP_LIMIT_S)


def path_of(number: int, directory: str = FILES) -> FsPath:
    return FsPath.parse(f"{directory}/f{number:07d}")


def creation(path: FsPath) -> Request:
    return create_and_complete_of(path.text)


def chmod(path: FsPath, mode: int = 0o600) -> Request:
    return Request(attributes.set_permission, (path, mode))


def removal(path: FsPath) -> Request:
    return Request(delete.delete, (path, False))


def move(src: FsPath, dst: FsPath) -> Request:
    return Request(rename.rename2, (src, dst, rename.RenameOption.NONE))


def stat(path: FsPath) -> Request:
    return Request(directories.get_file_info, (path,))


def listing(path: FsPath) -> Request:
    return Request(listings.get_listing, (path, b""))
