"""A policy is chosen, and a directory moved, at the same cost whatever is below."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from benchmarks.namespaces import fill, open_namenode

from cairnfs.config import Control, FormatSettings
from cairnfs.namenode.namenode import NameNode
from cairnfs.namenode.opening import format_namespace, sqlite_url
from cairnfs.namesystem import rename, storage_policies
from cairnfs.namesystem.paths import FsPath
from cairnfs.namesystem.satisfying import scan_subtree
from cairnfs.store.base import Reading, Scan, StoreTransaction
from cairnfs.store.batches import Batch
from cairnfs.store.schema import NUMBER, Table

SUPERUSER = "hdfs"

Commit = Callable[[Batch], Awaitable[int]]


class Cost(NamedTuple):
    """What a call has had written, and how long it took."""

    rows: int  # written, removed and kept
    totals: int  # of directories
    ms: float


class Costs:
    """Calls of a NameNode, and what each has cost."""

    def __init__(self, namenode: NameNode) -> None:
        self._namenode = namenode
        self._caller = namenode.caller(SUPERUSER)
        self._rows = self._totals = 0
        store = namenode.store
        commit, transaction = store.commit, store.transaction

        @asynccontextmanager
        async def counting_transaction() -> AsyncIterator[StoreTransaction]:
            async with transaction() as opened:
                opened.commit = self._counting(opened.commit)  # type: ignore[method-assign]
                yield opened

        store.commit = self._counting(commit)  # type: ignore[method-assign]
        store.transaction = counting_transaction  # type: ignore[method-assign]

    async def of(self, operation: Any, *arguments: Any) -> Cost:
        self._rows = self._totals = 0
        began_s = time.monotonic()
        await self._namenode.call(operation, self._caller, *arguments)
        return Cost(self._rows, self._totals, 1000 * (time.monotonic() - began_s))

    def _counting(self, commit: Commit) -> Commit:
        async def counted(batch: Batch) -> int:
            self._rows += len(batch.puts) + len(batch.deletes) + len(batch.keeps)
            self._totals += len(batch.touches)
            return await commit(batch)

        return counted


async def measure(url: str, files: int) -> dict[str, list[Cost]]:
    """The cost of each call, for a directory of one file and for one of so many."""
    await format_namespace(url, FormatSettings(SUPERUSER))
    sizes = [("first", 0), ("one", 1), ("many", files), ("into", 0)]
    await fill(url, "top", sizes)
    namenode = await open_namenode(url, Control.OPTIMISTIC)
    try:
        costs = Costs(namenode)
        path = FsPath.parse
        await costs.of(storage_policies.set_storage_policy, path("/top/into"), "WARM")
        # The directories above get a flag with the first thing below them that is marked.
        await costs.of(storage_policies.set_storage_policy, path("/top/first"), "COLD")
        into = (path("/top/first"), path("/top/into/first"), rename.RenameOption.NONE)
        await costs.of(rename.rename2, *into)
        found: dict[str, list[Cost]] = {}
        for name in ("one", "many"):
            here, there = path(f"/top/{name}"), path(f"/top/into/{name}")
            for call, operation, arguments in (
                ("set", storage_policies.set_storage_policy, (here, "COLD")),
                ("unset", storage_policies.unset_storage_policy, (here,)),
                ("set again", storage_policies.set_storage_policy, (here, "ALL_SSD")),
                ("rename", rename.rename2, (here, there, rename.RenameOption.NONE)),
            ):
                found.setdefault(call, []).append(await costs.of(operation, *arguments))
        # What is left to be looked at is a row for each directory, not one for each file.
        scan = Scan(Table.POLICY_SCANS, 0, b"", 10)
        left = (await namenode.store.read(Reading(scans=[scan]))).scans[scan]
        assert len(left) == 4
        for row in left:  # and a page of it is a transaction
            await namenode.call(scan_subtree, *NUMBER.unpack(row.key[2]))
        return found
    finally:
        await namenode.stop()


def check(url: str, files: int) -> None:
    found = asyncio.run(measure(url, files))
    for call, (one, many) in found.items():
        print(f"{call:9}  {one}  {many}")
        assert many.rows == one.rows, call
        assert many.totals == one.totals, call
        assert 0 < many.rows <= 4, call


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_directory_of_some_files(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    is_sqlite = kind == "sqlite"
    check(
        sqlite_url(tmp_path / "n") if is_sqlite else request.getfixturevalue("postgres_dsn"), 2000
    )


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_directory_of_a_million_files(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    is_sqlite = kind == "sqlite"
    url = sqlite_url(tmp_path / "n") if is_sqlite else request.getfixturevalue("postgres_dsn")
    check(url, 1_000_000)
