"""Every operation, at 1 to 32 callers, in many directories and in one, under each control.

A scene is one control with so many callers over so many directories.  It makes
directories and files, looks at them, renames and deletes them: each stage
works on what the ones before it made, for a bounded time.  The controls take
turns, several rounds, so that a disturbance of the machine meets all of them.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import Any

from benchmarks.callers import Callers, Measured, Request, Work
from benchmarks.namespaces import BLOCK_SIZE_BYTES, Namespaces, fill, open_namenode
from cairnfs.config import Control
from cairnfs.namenode.namenode import NameNode
from cairnfs.namesystem import delete, directories, files, listings, rename
from cairnfs.namesystem.paths import FsPath

CONTROLS = (Control.SYSTEM_LOCK, Control.PESSIMISTIC, Control.OPTIMISTIC)
SPREAD = 64  # directories that "many" means
LISTED = 1000
WARM_UP_OPERATIONS = 500
HOLDER = "DFSClient_NONMAPREDUCE_1234567890_1"

Progress = Callable[[str], None]


async def measure_core(
    namespaces: Namespaces,
    kind: str,
    *,
    callers: tuple[int, ...],
    rounds: int,
    seconds: float,
    progress: Progress,
) -> list[dict[str, Any]]:
    """A cell for each control, number of callers, number of directories and operation."""
    namenodes: dict[Control, NameNode] = {}
    taken: dict[tuple[Any, ...], list[Measured]] = {}
    try:
        for control in CONTROLS:
            progress(f"core, {kind}: filling directories of {LISTED:,} to list")
            url = await namespaces.fresh(kind)
            await fill(url, "listed", [(f"d{i}", LISTED) for i in range(SPREAD)])
            namenodes[control] = await open_warm(url, control, callers[-1])
        for count in callers:
            for spread in (SPREAD, 1):
                for round in range(rounds):
                    for control, namenode in namenodes.items():
                        progress(
                            f"core, {kind}: {count} callers, {spread} directories,"
                            f" round {round + 1} of {rounds}, {control.value}"
                        )
                        driven = Callers.of(namenode, count, namespaces.server_cpu(kind))
                        scene = Scene(namenode, driven, spread, f"c{count}r{round}s{spread}")
                        for operation, measured in (await scene.run(seconds)).items():
                            cell = (control.value, count, spread, operation)
                            taken.setdefault(cell, []).append(measured)
    finally:
        for namenode in namenodes.values():
            await namenode.stop()
    return [
        {"store": kind, **dict(zip(_CELL, cell, strict=True)), **summarise(measured)}
        for cell, measured in taken.items()
    ]


_CELL = ("control", "callers", "directories", "operation")


def summarise(rounds: list[Measured]) -> dict[str, Any]:
    """The median round; latencies of all rounds together."""
    everything = Measured(
        sum(m.operations for m in rounds),
        sum(m.elapsed_s for m in rounds),
        sum(m.cpu_s for m in rounds),
        None,
        [latency for m in rounds for latency in m.latencies_s],
    )
    server_us = [m.server_us for m in rounds if m.server_us is not None]
    return {
        "per_s": round(statistics.median(m.per_s for m in rounds), 1),
        "cpu_us": round(statistics.median(m.cpu_us for m in rounds), 1),
        "server_us": round(statistics.median(server_us), 1) if server_us else None,
        "p50_ms": round(everything.latency_ms(0.5), 3),
        "p99_ms": round(everything.latency_ms(0.99), 3),
        "operations": everything.operations,
        "rounds_per_s": [round(m.per_s, 1) for m in rounds],
        "rounds_cpu_us": [round(m.cpu_us, 1) for m in rounds],
    }


class Scene:
    """All operations once, by some callers, over some directories."""

    def __init__(self, namenode: NameNode, callers: Callers, spread: int, tag: str) -> None:
        self._namenode = namenode
        self._callers = callers
        self._spread = spread
        self._top = f"/bench/{tag}"
        self._created: list[str] = []  # files that are still open
        self._closed: list[str] = []
        self._renamed: list[str] = []

    async def run(self, seconds: float) -> dict[str, Measured]:
        for i in range(self._spread):
            await self._call(mkdirs_of(f"{self._top}/d{i}"))
        making: dict[str, Work] = {
            "mkdirs": self._mkdirs,
            "create": self._create,
            "create+complete": self._create_and_complete,
        }
        using: dict[str, Work] = {
            "stat": self._stat,
            "list 1,000": self._list,
            "rename": self._rename,
            "delete": self._delete,
        }
        measured = {}
        for name, work in making.items():
            measured[name] = await self._callers.measure(work, seconds)
        await self._callers.finish(self._complete)
        self._closed += self._created
        for name, work in using.items():
            measured[name] = await self._callers.measure(work, seconds)
        return measured

    async def _call(self, request: Request) -> Any:
        caller = self._namenode.caller(self._namenode.superuser)
        return await self._namenode.call(request.operation, caller, *request.arguments)

    def _path(self, i: int, name: str) -> str:
        return f"{self._top}/d{i % self._spread}/{name}{i:06d}"

    def _mkdirs(self, i: int) -> Request:
        return mkdirs_of(self._path(i, "m"))

    def _create(self, i: int) -> Request:
        path = self._path(i, "a")
        self._created.append(path)
        return create_of(path)

    def _create_and_complete(self, i: int) -> Request:
        path = self._path(i, "b")
        self._closed.append(path)
        return create_and_complete_of(path)

    def _complete(self, i: int) -> Request | None:
        if i >= len(self._created):
            return None
        return Request(files.complete, (FsPath.parse(self._created[i]), HOLDER, None, 0))

    def _stat(self, i: int) -> Request:
        return stat_of(self._closed[i % len(self._closed)])

    def _list(self, i: int) -> Request:
        path = FsPath.parse(f"/listed/d{i % self._spread}")
        return Request(listings.get_listing, (path, b"", LISTED))

    def _rename(self, i: int) -> Request | None:
        if i >= len(self._closed):
            return None
        src = self._closed[i]
        dst = f"{src[:-7]}r{i:06d}"
        self._renamed.append(dst)
        return Request(rename.rename, (FsPath.parse(src), FsPath.parse(dst)))

    def _delete(self, i: int) -> Request | None:
        if i >= len(self._closed):
            return None
        path = self._renamed[i] if i < len(self._renamed) else self._closed[i]
        return Request(delete.delete, (FsPath.parse(path), False))


async def open_warm(url: str, control: Control, callers: int) -> NameNode:
    """A NameNode that has its connections open and its statements planned."""
    namenode = await open_namenode(url, control)

    def work(i: int) -> Request | None:
        return mkdirs_of(f"/warm/d{i % SPREAD}/{i}") if i < WARM_UP_OPERATIONS else None

    await Callers.of(namenode, callers).finish(work)
    return namenode


def mkdirs_of(path: str) -> Request:
    return Request(directories.mkdirs, (FsPath.parse(path), 0o755, None, True))


def create_of(path: str) -> Request:
    flags = files.CreateFlag.CREATE.value
    arguments = (FsPath.parse(path), 0o644, None, HOLDER, flags, True, 3, BLOCK_SIZE_BYTES)
    return Request(files.create, arguments)


def stat_of(path: str) -> Request:
    return Request(directories.get_file_info, (FsPath.parse(path),))


def create_and_complete_of(path: str) -> Request:
    """As a client makes an empty file: two calls, the second with the id from the first."""

    def complete(status: Any) -> Request:
        return Request(files.complete, (FsPath.parse(path), HOLDER, None, status.id))

    return create_of(path)._replace(then=complete)
